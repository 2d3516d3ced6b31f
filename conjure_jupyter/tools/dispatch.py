"""Running the calls of one answer: validated, in order where order matters, bounded and redacted.

A call goes through these steps: its turn among the calls that name the same files; the owner's ``before``;
validation; what it names put on disk (``resolving``); the tool; the result cut and redacted; the owner's
``after``, which also hears of calls that were cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ..engine import outlast
from ..errors import ExecutorError, ToolError, UnknownToolError
from ..executors.contract import ExecutionContext, Executor
from ..redaction import redact
from ..rendering import can_render
from ..types import Content, ToolCall, ToolResult
from .bash import BashTool
from .bounds import clip
from .create import CreateFileTool
from .inputs import validate
from .inspection import InspectVariableTool
from .read_artifact import ReadArtifactTool
from .references import lock_keys
from .render import RenderFileTool
from .replace import StrReplaceTool
from .resolving import Notices, resolve
from .return_artifacts import ReturnArtifactsTool
from .stage import StageArtifactsTool
from .tool import Namespace, Outcome, Tool, ToolEnv
from .view import ViewTool

if TYPE_CHECKING:
    from ..artifacts.service import ArtifactService

logger = logging.getLogger(__name__)

#: Calls of one answer that run at the same time.
PARALLEL = 8

#: Awaited before a call runs.
Before = Callable[[ToolCall], Awaitable[None]]
#: Awaited when a call has ended, with its result; for a call that was cut short, with what there is.
After = Callable[[ToolCall, ToolResult], Awaitable[None]]


class Toolbox:
    """The tools of a session and the place they work in.

    Args:
        executor: where commands run and files lie; started by its owner.
        context: the working directory and the limits.
        tools: what to offer instead of the standard tools.
        namespace: gives the kernel's variables; with it, ``inspect_variable`` is offered.
        artifacts: the session's artifacts; with them, the tools that stage, return and read them are
            offered, and inputs may name artifacts where they name files.
        before: awaited before each call runs. It and ``after`` may fail: that is logged and changes nothing.
        after: awaited after each call ran, before anybody is told that it finished. It is not cancelled with
            the call, so that what a stopped call made can be kept; it should be quick.
        output_limit: characters of a result's text that Claude gets.
    """

    def __init__(
        self,
        executor: Executor,
        context: ExecutionContext,
        *,
        tools: Sequence[Tool] | None = None,
        namespace: Namespace | None = None,
        artifacts: ArtifactService | None = None,
        before: Before | None = None,
        after: After | None = None,
        output_limit: int = 30_000,
    ) -> None:
        self.executor = executor
        self.context = context
        self.output_limit = output_limit
        self._namespace = namespace
        self._artifacts = artifacts
        self._before = before
        self._after = after
        if tools is None:
            tools = [ViewTool(), BashTool(), CreateFileTool(), StrReplaceTool()]
            if artifacts is not None:
                tools += [StageArtifactsTool(), ReturnArtifactsTool(), ReadArtifactTool()]
                if can_render():
                    tools += [RenderFileTool()]
            if namespace is not None:
                tools += [InspectVariableTool()]
        self.tools = {tool.name: tool for tool in tools}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """What the Messages API is told, in a fixed order."""
        return [tool.definition for tool in self.tools.values()]

    async def execute(self, call: ToolCall, *, on_output: Callable[[str], None] | None = None) -> ToolResult:
        """Run one call. What goes wrong in it becomes an ``is_error`` result.

        Args:
            call: the call as Claude made it.
            on_output: hears what a command prints, redacted, a line at a time.

        Raises:
            ExecutorError: the place is at fault, not the call.
            asyncio.CancelledError: the caller was cancelled; the call's processes are gone.
        """
        async with self._turn(call):
            return await self._hooked(call, on_output)

    async def execute_all(
        self,
        calls: Sequence[ToolCall],
        *,
        on_start: Callable[[ToolCall], None] | None = None,
        on_output: Callable[[ToolCall, str], None] | None = None,
        on_finish: Callable[[ToolCall, ToolResult], None] | None = None,
    ) -> list[ToolResult]:
        """Run the calls of one answer at the same time; results stand in the order of the calls.

        Calls on one path run in their order. When one raises, or the caller is cancelled, the others are
        stopped before that goes on; ``on_finish`` has been told of those that were done.

        Raises:
            ExecutorError: the place is at fault.
            asyncio.CancelledError: the caller was cancelled.
        """
        slots = asyncio.Semaphore(PARALLEL)

        async def one(call: ToolCall) -> ToolResult:
            heard = None if on_output is None else lambda text: on_output(call, text)
            async with self._turn(call), slots:
                if on_start is not None:
                    on_start(call)
                return await self._hooked(call, heard, on_finish)

        # Tasks start in this order, and locks are given in the order they are asked for.
        tasks = [asyncio.ensure_future(one(call)) for call in calls]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    @contextlib.asynccontextmanager
    async def _turn(self, call: ToolCall) -> AsyncIterator[None]:
        """The call's turn among those that use the same files."""
        async with contextlib.AsyncExitStack() as held:
            # Sorted, so that two calls with several files cannot wait for each other.
            for key in self._lock_keys(call):
                await held.enter_async_context(self._locks.setdefault(key, asyncio.Lock()))
            yield

    def _lock_keys(self, call: ToolCall) -> list[str]:
        tool = self.tools.get(call.name)
        if tool is None:
            return []
        return lock_keys(
            call.input,
            (*tool.path_fields, *tool.read_fields),
            self.context,
            write=not tool.read_only,
            known=self._artifacts is not None,
        )

    async def _hooked(
        self,
        call: ToolCall,
        on_output: Callable[[str], None] | None,
        on_finish: Callable[[ToolCall, ToolResult], None] | None = None,
    ) -> ToolResult:
        """Run a call between the owner's hooks; a result that is there is told before a cancellation."""
        if self._before is not None:
            await _guarded(self._before(call), call)
        try:
            result = await self._run(call, on_output)
        except (asyncio.CancelledError, Exception):
            await self._ended(call, ToolResult(call.id, is_error=True, meta={"error": "cut_short"}))
            raise
        cancelled = await self._ended(call, result)
        if on_finish is not None:
            on_finish(call, result)
        if cancelled:
            raise asyncio.CancelledError
        return result

    async def _ended(self, call: ToolCall, result: ToolResult) -> bool:
        """Let the owner hear of the end of a call; whether the caller was cancelled meanwhile."""
        return self._after is not None and await _to_its_end(_guarded(self._after(call, result), call))

    def _tool(self, name: str) -> Tool:
        if name not in self.tools:
            raise UnknownToolError(name, tuple(self.tools))
        return self.tools[name]

    async def _run(self, call: ToolCall, on_output: Callable[[str], None] | None) -> ToolResult:
        started = time.monotonic()
        notices = Notices()
        env = ToolEnv(
            self.executor,
            self.context,
            self.output_limit,
            on_output,
            self._namespace,
            self._artifacts,
            call.id,
        )
        try:
            tool = self._tool(call.name)
            arguments = await resolve(tool, validate(tool.definition, call.input), env, notices)
            outcome = await tool.run(arguments, env)
        except ToolError as error:
            outcome = Outcome(str(error), is_error=True, meta={"error": error.type})
        except ExecutorError:
            raise
        except Exception as error:
            # A fault of ours must not end the session; its traceback is for the log, not for Claude.
            logger.exception("the tool %s failed on call %s", call.name, call.id)
            message = f"{call.name} failed inside ({type(error).__name__}); try another way"
            outcome = Outcome(message, is_error=True, meta={"error": "internal"})
        return self._finished(call, notices.added_to(outcome), time.monotonic() - started)

    def _finished(self, call: ToolCall, outcome: Outcome, duration: float) -> ToolResult:
        meta = {"duration": duration, **outcome.meta}
        if isinstance(meta.get("diff"), str):
            meta["diff"] = redact(_sendable(meta["diff"]))
        content: str | list[Content]
        if isinstance(outcome.content, str):
            content, cut = self._fit(outcome.content)
        else:
            content, cut = [], 0
            for block in outcome.content:
                if block.get("type") == "text":
                    text, more = self._fit(block["text"])
                    content.append({**block, "text": text})
                    cut += more
                else:
                    content.append(block)
        if cut:
            meta["truncated"] = meta.get("truncated", 0) + cut
        return ToolResult(call.id, content, outcome.is_error, meta)

    def _fit(self, text: str) -> tuple[str, int]:
        return clip(redact(_sendable(text)), self.output_limit)


def _sendable(text: str) -> str:
    """Text without lone surrogates, such as those of a file's name that is no UTF-8."""
    return text.encode("utf-8", "replace").decode()


async def _guarded(hook: Awaitable[None], call: ToolCall) -> None:
    """Await a hook of the owner's; its failure is for the log."""
    try:
        await hook
    except Exception:
        logger.exception("a hook failed on call %s of %s", call.id, call.name)


async def _to_its_end(work: Coroutine[Any, Any, None]) -> bool:
    """Await ``work`` to its end, also when the caller is cancelled meanwhile; whether it was."""
    task = asyncio.ensure_future(work)
    cancelled = await outlast(task)
    if not task.cancelled():
        task.result()
    return cancelled
