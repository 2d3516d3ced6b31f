"""The bash tool: a command's output, and how it ended."""

from __future__ import annotations

import codecs
from typing import Any

from ..errors import InvalidToolInputError
from ..executors.contract import CommandResult
from ..redaction import StreamRedactor
from ..wording import size_text
from . import schemas
from .bounds import clip
from .command_uris import with_paths
from .terminal import plain
from .tool import Outcome, ToolEnv

#: A command that took at least this many seconds has its time told to Claude; quick ones give the same
#: text each time they run, which a replay compares.
SLOW = 5.0


class BashTool:
    """Each call is a fresh shell in the working directory; what it leaves running ends with it."""

    name = "bash_tool"
    read_only = False
    path_fields = ()
    read_fields = ()
    artifact_fields = ()

    @property
    def definition(self) -> dict[str, Any]:
        """The source document's schema."""
        return schemas.bash_tool()

    async def run(self, arguments: dict[str, Any], env: ToolEnv) -> Outcome:
        """Run a command.

        Raises:
            InvalidToolInputError: there is no command, or bash could not take it.
            ArtifactError: an artifact that it names cannot be had.
            ExecutorError: bash cannot be started.
        """
        command = arguments["command"]
        if not command.strip():
            raise InvalidToolInputError(self.name, "command is empty; send a bash command", field="command")
        if "\x00" in command:
            raise InvalidToolInputError(
                self.name, "command holds a NUL character, which no command line can", field="command"
            )
        context = env.context
        problems: list[str] = []
        if env.artifacts is not None:
            shown_at = context.artifacts_root
            added = await env.artifacts.environment(
                command, None if shown_at is None else shown_at.as_posix()
            )
            command, problems = await with_paths(command, env)
            context = context.with_(environment={**context.environment, **added})
        if env.on_output is None:
            result = await env.executor.run(command, context)
        else:
            redactor = StreamRedactor(env.on_output)
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            result = await env.executor.run(
                command, context, on_output=lambda data: redactor.feed(decoder.decode(data))
            )
            redactor.feed(decoder.decode(b"", final=True))
            redactor.finish()
        meta: dict[str, Any] = {
            "exit_code": result.exit_code,
            "timed_out": result.timed_out,
            "duration": result.duration,
            "truncated": result.truncated_bytes,
            "leftovers": result.leftovers,
        }
        if result.notes:
            meta["notices"] = [{"code": "place", "text": note} for note in result.notes]
        return Outcome(_report(result, env, problems), result.timed_out or result.exit_code != 0, meta)


def _report(result: CommandResult, env: ToolEnv, problems: list[str]) -> str:
    notes = [*problems[:3], *result.notes]
    if result.timed_out:
        notes.append(
            f"ended at its time limit of {env.context.timeout:g} s, with all its processes; what it had "
            "printed stands above. Do less at a time, or work in steps"
        )
    elif result.exit_code is None:
        notes.append("ended without an exit code")
    elif result.exit_code > 128:
        notes.append(f"exit code {result.exit_code}: ended by signal {result.exit_code - 128}")
    elif result.exit_code:
        notes.append(f"exit code {result.exit_code}")
    if result.truncated_bytes:
        notes.append(
            f"{size_text(result.total_bytes)} of output, {size_text(result.truncated_bytes)} of it left out; "
            "write it to a file and look at parts of that"
        )
    if result.leftovers:
        many = "process" if result.leftovers == 1 else "processes"
        notes.append(f"{result.leftovers} {many} left running, ended with the call")
    if result.duration >= SLOW and not result.timed_out:
        notes.append(f"took {result.duration:.0f} s")
    # The notes come last and are short: whatever is cut of the output, they stay.
    output, _ = clip(plain(result.text).rstrip("\n"), env.output_limit - 600)
    if not output and not notes:
        return "(no output)"
    return "\n".join([*([output] if output else []), *(f"[{note}]" for note in notes)])
