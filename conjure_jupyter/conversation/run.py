"""The conversation as functions, for callers who keep their own history and client.

Specification sections 5.1, 5.10 and 11. They ask nobody for approval unless they are given a policy.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, cast

from ..clients import choose_client
from ..engine import engine
from ..errors import ConversationError
from ..executors import ExecutionContext, Executor, create_executor
from ..executors.contract import Network
from ..places import ExecutorPlace
from ..settings import Settings
from ..skills import Skill
from ..timeline import MemoryTimeline, MessageProjection
from ..tools.permissions import Policy
from ..types import Listener, Message, ToolCall, ToolResult
from .approvals import Approver, Gate
from .cost import Meter
from .loop import Loop, Plan
from .reply import text_of
from .responses import as_dict, conversation_complete, extract_tool_uses
from .turn import caller

#: An executor, or the name of one.
Where: TypeAlias = Executor | str


@dataclass(frozen=True, slots=True)
class Continue:
    """Claude asked for tools: ``results`` are to be sent back."""

    results: list[ToolResult]


@dataclass(frozen=True, slots=True)
class Done:
    """Claude is done and said ``text``."""

    text: str


@lru_cache(maxsize=1)
def _default_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="conjure-work-"))


@lru_cache(maxsize=8)
def _shared(name: str, _folders: tuple[Path | None, ...] = ()) -> Executor:
    """One executor of a kind serves all calls of these functions, in a container one for the same folders.

    It ends with the process.
    """
    return create_executor(name)


def create_context(
    skills: Sequence[Skill] = (),
    *,
    working_dir: Path | str | None = None,
    skills_root: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    allowed_paths: Sequence[Path | str] = (),
    network: str | None = None,
    executor_config: Mapping[str, Any] | None = None,
) -> ExecutionContext:
    """Where tools run and what they may read (specification 9.4).

    Args:
        skills: their folders may be read.
        working_dir: the tools' cwd, made if need be; a private temporary folder of this process when None.
        skills_root: the folder of the skills; that of the first skill when None.
        env: variables for commands.
        timeout: seconds a command may run.
        allowed_paths: more folders that may be read.
        network: ``none``, ``limited`` or ``full``; None leaves it to the executor.
        executor_config: options of one executor.
    """
    folder = Path(working_dir).expanduser().resolve() if working_dir else _default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    root = Path(skills_root).resolve() if skills_root else (skills[0].path.parent if skills else None)
    readable = [*(skill.path for skill in skills), *(Path(path).expanduser() for path in allowed_paths)]
    return ExecutionContext(
        working_directory=folder,
        skills_root=root,
        environment=dict(env or {}),
        timeout=timeout,
        allowed_paths=tuple(path.resolve() for path in readable),
        network_access=cast("Network | None", network),
        executor_config=dict(executor_config or {}),
    )


def _place(
    skills: Sequence[Skill], executor: Where | None, context: ExecutionContext | None, **options: Any
) -> ExecutorPlace:
    bounds = context or create_context(skills, **options)
    if executor is None or executor == "local":
        return ExecutorPlace(_shared("local"), bounds)
    if isinstance(executor, str):
        folders = (
            bounds.working_directory,
            bounds.skills_root,
            *bounds.allowed_paths,
            *bounds.writable_paths,
        )
        return ExecutorPlace(_shared(executor, folders), bounds)
    return ExecutorPlace(executor, bounds)


def execute(
    tool_call: ToolCall,
    skills: Sequence[Skill] = (),
    *,
    executor: Where | None = None,
    context: ExecutionContext | None = None,
    **options: Any,
) -> ToolResult:
    """Run one tool call; a call that fails gives an ``is_error`` result.

    Args:
        tool_call: what Claude asked for.
        skills: their folders may be read.
        executor: where it runs; ``local`` when None.
        context: within what limits; made from ``options`` (see ``create_context``) when None.

    Raises:
        ExecutorError: the executor failed, not the call.
    """
    return execute_tool_calls([tool_call], skills, executor=executor, context=context, **options)[0]


def execute_tool_calls(
    tool_calls: Sequence[ToolCall],
    skills: Sequence[Skill] = (),
    *,
    executor: Where | None = None,
    context: ExecutionContext | None = None,
    **options: Any,
) -> list[ToolResult]:
    """Run calls, at the same time where they are independent; results in their order. See ``execute``."""
    return engine().run(_place(skills, executor, context, **options).execute(tool_calls))


def process_response(response: Any, skills: Sequence[Skill] = (), **options: Any) -> Continue | Done:
    """Run the calls of a response; ``Continue`` with their results, or ``Done`` with the text.

    Args:
        response: the API's, as a dict or an SDK message.
        skills: their folders may be read.
        **options: see ``execute``.
    """
    answer = as_dict(response)
    calls = extract_tool_uses(answer)
    if calls:
        return Continue(execute_tool_calls(calls, skills, **options))
    return Done(text_of(answer)) if conversation_complete(answer) else Continue([])


async def _run_loop(
    messages: Sequence[Message],
    skills: Sequence[Skill],
    api_callback: Callable[..., Any],
    *,
    executor: Where | None = None,
    context: ExecutionContext | None = None,
    max_iterations: int = 25,
    retries: int = 0,
    policy: Policy | None = None,
    approver: Approver | None = None,
    on_event: Listener | None = None,
    **options: Any,
) -> list[Message]:
    place = _place(skills, executor, context, **options)
    before, last = list(messages[:-1]), messages[-1] if messages else {}
    if last.get("role") != "user":
        raise ConversationError("messages must end with what the user says", list(messages))
    timeline, history = MemoryTimeline(), MessageProjection()
    timeline.subscribe(history.feed)
    timeline.begin_turn()
    timeline.append("user", {"content": last["content"]})
    loop = Loop(
        client=choose_client(Settings(), api_callback),
        place=place,
        timeline=timeline,
        history=history,
        gate=Gate(policy, approver),
        meter=Meter(None, free=True),
        plan=Plan(
            model="",
            max_tokens=1,
            system="",
            tools=place.definitions,
            before=before,
            max_iterations=max_iterations,
            retries=retries,
        ),
        emit=caller(on_event),
    )
    try:
        await loop.run()
    except ConversationError as error:
        error.messages = [*messages, *history.messages[1:]]
        raise
    return [*messages, *history.messages[1:]]


def run_loop(
    messages: Sequence[Message], skills: Sequence[Skill], api_callback: Callable[..., Any], **options: Any
) -> list[Message]:
    """Call Claude and run its tools until it is done (specification 11).

    Args:
        messages: the conversation so far, ending with what the user says.
        skills: their folders may be read.
        api_callback: takes the messages and returns the API's response (a dict or an SDK message); may be a
            coroutine function.
        **options: ``executor``, ``context``, ``max_iterations`` (25), ``retries`` (0), ``policy``,
            ``approver``, ``on_event``, and those of ``create_context``.

    Returns:
        The messages with all that was added.

    Raises:
        MaxIterationsError: the limit was reached; ``messages`` holds all until then.
        ApprovalRequiredError: the policy asks and there is no approver.
        APIError: the callback failed with it.
    """
    return engine().run(_run_loop(messages, skills, api_callback, **options))


async def arun_loop(
    messages: Sequence[Message], skills: Sequence[Skill], api_callback: Callable[..., Any], **options: Any
) -> list[Message]:
    """``run_loop``, to be awaited from any event loop; cancelling it stops the conversation."""
    return await engine().submit(_run_loop(messages, skills, api_callback, **options)).wait_async()
