"""Who decides about a call: the mode, the rules, or the user.

Reading in the working directory and the allowed folders, looking at variables, and reading, staging and
returning artifacts never asks. Otherwise rules are tried first; what none allows is allowed (``auto``), asked
(``ask``) or denied (``deny``).

Where there are artifacts, a path field is judged by what it stands for (see ``references``): a URI of an
artifact is a read, a URL that nobody registered is a fetch, and a write to an earlier turn's file is one
under ``outputs/``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..errors import SettingsError
from ..executors.contract import ExecutionContext
from ..timeline.logical import UPLOADS
from ..types import ToolCall
from .locations import in_workspace, normalize, shown
from .references import Reference, is_url, reference, values
from .rules import PLAIN_URL, SAFE_WORD, TOOL_NAMES, Rule, parse_rule
from .shell import Command, read_line
from .summaries import summary as summary  # noqa: PLC0414  part of this module's interface

Mode = Literal["ask", "auto", "deny"]
Verdict = Literal["allow", "ask", "deny"]

#: The field of a file tool's input that says what is read or written.
_FILE_TOOLS = {"view": "path", "create_file": "path", "str_replace": "path", "render_file": "output"}

#: What they do changes no file of the user's and reaches nothing outside the session.
_NEVER_ASKED = frozenset({"inspect_variable", "read_artifact", "return_artifacts"})


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done with a call.

    Attributes:
        verdict: run it, ask the user, or refuse it.
        reason: why; for ``deny`` it is what Claude is told.
        rule: a narrow rule that would allow calls like this one from now on, when there is one.
    """

    verdict: Verdict
    reason: str
    rule: str | None = None


class Policy:
    """Decides about calls. It decides by what a call says, not by what lies on the disk.

    Args:
        mode: what happens to a call that no rule allows.
        rules: the user's own rules.
        preapproved: ``allowed-tools`` of skills that the user loaded or trusts; tools that do not exist
            here are passed over.
        only: ``allowed-tools`` of the one skill the session is restricted to. Everything else is denied,
            but for reading the skills themselves.
        context: the working directory and the readable folders.
        registered: whether the user registered a URL; given where there are artifacts, and None elsewhere:
            URIs and paths of earlier turns are ordinary paths then.

    Raises:
        SettingsError: the mode or one of ``rules`` cannot be used.
    """

    def __init__(
        self,
        mode: Mode = "ask",
        *,
        rules: Sequence[str] = (),
        preapproved: Sequence[str] = (),
        only: Sequence[str] | None = None,
        context: ExecutionContext,
        registered: Callable[[str], bool] | None = None,
    ) -> None:
        if mode not in ("ask", "auto", "deny"):
            raise SettingsError("approve", f"{mode!r} is not one of ask, auto, deny")
        self.mode = mode
        self.context = context
        self._registered = registered
        self._rules: list[Rule] = []
        for text in rules:
            self.add_rule(text)
        self._preapproved = _lenient(preapproved)
        self._only = None if only is None else _lenient(only)

    @property
    def rules(self) -> tuple[str, ...]:
        """The user's rules, as they were written."""
        return tuple(rule.text for rule in self._rules)

    def add_rule(self, text: str) -> None:
        """Allow calls like this from now on.

        Raises:
            SettingsError: it is no rule, or speaks of a tool that does not exist.
        """
        try:
            rule = parse_rule(text)
        except ValueError as error:
            raise SettingsError("approval_rules", str(error)) from None
        if rule.tool is None:
            known = sorted(set(TOOL_NAMES.values()))
            raise SettingsError("approval_rules", f"{text!r} names no tool; there are: {', '.join(known)}")
        if rule.text not in self.rules:
            self._rules.append(rule)

    def preapprove(self, allowed_tools: Sequence[str]) -> None:
        """Let the ``allowed-tools`` of one more skill count; what names no tool here is passed over."""
        self._preapproved += [rule for rule in _lenient(allowed_tools) if rule not in self._preapproved]

    def decide(self, call: ToolCall) -> Decision:
        """What is to be done with a call; never raises, whatever its input."""
        if (
            self._only is not None
            and not self._reads_skill(call)
            and self._allowing(call, self._only) is None
        ):
            return Decision("deny", self._restricted(call))
        if self._reads_only(call):
            return Decision("allow", "it only reads")
        for rules, owner in ((self._rules, "the rule"), (self._preapproved, "a skill's allowed-tools:")):
            if (rule := self._allowing(call, rules)) is not None:
                return Decision("allow", f"{owner} {rule}")
        if self.mode == "auto":
            return Decision("allow", "calls are approved automatically")
        if self.mode == "deny":
            return Decision(
                "deny",
                f"{call.name}: denied. The user lets calls run only by rule, and none allows this one. Go on "
                "without it, or tell the user what you would run and why",
                self.suggest(call),
            )
        return Decision("ask", self._why_ask(call), self.suggest(call))

    def suggest(self, call: ToolCall) -> str | None:
        """A narrow rule that would allow this call, or None when none would."""
        if call.name == "bash_tool":
            return self._suggest_command(call)
        subjects = self._subjects(call)
        path = subjects[0] if len(subjects) == 1 else None
        if path is None:
            return None
        if is_url(path):
            return self._suggest_url(call, path)
        name = shown(path, self.context)
        if not name.isprintable() or any(mark in name for mark in "*?()") or name != name.strip():
            return None
        folder = name.rpartition("/")[0]
        inside = in_workspace(path, self.context) is not None
        return f"{call.name}({folder}/**)" if inside and folder else f"{call.name}({name})"

    def _suggest_url(self, call: ToolCall, url: str) -> str | None:
        host = "/".join(url.split("/")[:3])
        rule = parse_rule(f"{call.name}({host}/**)")
        return rule.text if PLAIN_URL.fullmatch(url) and rule.matches_path(url, self.context) else None

    def _suggest_command(self, call: ToolCall) -> str | None:
        known = [rule for rule in (*self._rules, *self._preapproved) if rule.tool == call.name]
        missing = [
            command
            for command in read_line(_text(call, "command") or "") or ()
            if not any(rule.matches_command(command, self.context) for rule in known)
        ]
        if len(missing) != 1:
            return None
        text = f"bash_tool({command_rule(missing[0])})"
        safe = all(SAFE_WORD.fullmatch(word) for word in (*missing[0].words, missing[0].place))
        return text if safe and parse_rule(text).matches_command(missing[0], self.context) else None

    def _allowing(self, call: ToolCall, rules: Sequence[Rule]) -> str | None:
        """The text of the rule, or rules, that allow a call."""
        mine = [rule for rule in rules if rule.tool == call.name]
        every = next((rule for rule in mine if rule.every_call), None)
        if every is not None or not mine:
            return every.text if every else None
        if call.name == "bash_tool":
            return self._allowing_command(call, mine)
        covering = [self._covering(subject, mine) for subject in self._subjects(call)]
        used = [text for text in covering if text is not None]
        return ", ".join(dict.fromkeys(used)) if used and len(used) == len(covering) else None

    def _covering(self, subject: str | None, rules: Sequence[Rule]) -> str | None:
        """The text of the rule that speaks of a path or URL."""
        if subject is None:
            return None
        return next((rule.text for rule in rules if rule.matches_path(subject, self.context)), None)

    def _allowing_command(self, call: ToolCall, rules: Sequence[Rule]) -> str | None:
        commands = read_line(_text(call, "command") or "")
        used: list[str] = []
        for command in commands or ():
            rule = next((rule.text for rule in rules if rule.matches_command(command, self.context)), None)
            if rule is None:
                return None
            if rule not in used:
                used.append(rule)
        return ", ".join(used) or None

    def _meant(self, call: ToolCall) -> Reference | None:
        """What the path of a file tool's call stands for, when that is more than a path."""
        path = _path(call)
        if path is None or self._registered is None:
            return None
        return reference(path, self.context, write=call.name != "view")

    def _fetches(self, url: str) -> bool:
        return is_url(url) and not (self._registered is not None and self._registered(url))

    def _subjects(self, call: ToolCall) -> list[str | None]:
        """The paths and URLs that a rule must speak of; None for one that only a rule for the tool covers."""
        if call.name == "stage_artifacts":
            urls = [url for url in values(call.input, ("artifact_names",)) if self._fetches(url)]
            return [*urls, *([] if self._stages_uploads(call) else [None])]
        if call.name not in _FILE_TOOLS:
            return []
        meant = self._meant(call)
        if meant is None or meant.kind == "url":
            return [_path(call)]
        return [meant.path]

    def _stages_uploads(self, call: ToolCall) -> bool:
        """Whether files are staged below ``uploads/``, where nothing else lies that could be replaced."""
        given = call.input.get("destination_path") if isinstance(call.input, dict) else None
        if not given:
            return True
        place = in_workspace(given, self.context) if isinstance(given, str) else None
        return place is not None and (place == UPLOADS or place.startswith(f"{UPLOADS}/"))

    def _reads_only(self, call: ToolCall) -> bool:
        if call.name in _NEVER_ASKED:
            return True
        if call.name == "stage_artifacts":
            return self._registered is not None and not self._subjects(call)
        if call.name != "view":
            return False
        path, meant = _path(call), self._meant(call)
        if meant is None:
            return path is not None and self._readable(path)
        return meant.kind != "url" or not self._fetches(meant.value)

    def _readable(self, path: str) -> bool:
        if in_workspace(path, self.context) is not None:
            return True
        folders = (*self.context.allowed_paths, *self.context.writable_paths)
        return any(_beneath(normalize(path, self.context), folder) for folder in folders)

    def _reads_skill(self, call: ToolCall) -> bool:
        path, root = _path(call), self.context.skills_root
        if call.name != "view" or path is None:
            return False
        meant = self._meant(call)
        if meant is not None:
            return meant.kind == "asset" and path.lower().startswith("skill://")
        return root is not None and _beneath(normalize(path, self.context), root)

    def _restricted(self, call: ToolCall) -> str:
        allowed = ", ".join(rule.text for rule in self._only or ()) or "no tools"
        return (
            f"{call.name}: denied. The user restricted this session to the tools that the skill allows: "
            f"{allowed}. A command must be one of those, without redirections or substitutions"
        )

    def _why_ask(self, call: ToolCall) -> str:
        if call.name == "bash_tool":
            if read_line(_text(call, "command") or "") is None:
                return "it runs a command line that no rule can speak of"
            return "it runs a command"
        subjects = self._subjects(call)
        if any(subject is not None and self._fetches(subject) for subject in subjects):
            return "it fetches a URL"
        if call.name == "view":
            return "it reads outside the notebook's folder"
        if any(subject is not None and in_workspace(subject, self.context) is None for subject in subjects):
            return "it writes outside the working directory"
        return "it writes a file"


# A script given to one of these may take any arguments; so may a subcommand that only looks.
_INTERPRETERS = frozenset({"python", "python3", "node", "ruby", "perl", "Rscript", "julia", "bash", "sh"})
_SCRIPTS = (".py", ".sh", ".js", ".mjs", ".rb", ".pl", ".R", ".r", ".jl")
_LOOKING = {"git": frozenset({"status", "rev-parse", "ls-files"})}


def command_rule(command: Command) -> str:
    """What a rule for a command says: any arguments for a script or a look, else the very command."""
    name, first = command.words[0], (*command.words, "")[1]
    script = name in _INTERPRETERS and first.endswith(_SCRIPTS) and not first.startswith("-")
    text = f"{name} {first}:*" if script or first in _LOOKING.get(name, ()) else " ".join(command.words)
    return text if command.place == "." else f"cd {command.place} && {text}"


def _lenient(texts: Sequence[str]) -> list[Rule]:
    rules = []
    for text in texts:
        try:
            rules.append(parse_rule(text))
        except ValueError:
            continue  # a skill's mistake allows nothing
    return [rule for rule in rules if rule.tool is not None]


def _text(call: ToolCall, field: str) -> str | None:
    arguments: Any = call.input
    value = arguments.get(field) if isinstance(arguments, dict) else None
    return value if isinstance(value, str) else None


def _path(call: ToolCall) -> str | None:
    """What a file tool's call reads or writes, as it says it."""
    return _text(call, _FILE_TOOLS.get(call.name, "path"))


def _beneath(path: str, folder: Path) -> bool:
    return Path(path).is_relative_to(folder)
