"""Running the calls of one answer: validated, in order where order matters, bounded and redacted."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from ..errors import ExecutorError, ToolError, UnknownToolError
from ..executors.contract import ExecutionContext, Executor
from ..redaction import redact
from ..types import Content, ToolCall, ToolResult
from .bash import BashTool
from .bounds import clip
from .create import CreateFileTool
from .inputs import validate
from .inspection import InspectVariableTool
from .replace import StrReplaceTool
from .tool import Namespace, Outcome, Tool, ToolEnv
from .view import ViewTool

logger = logging.getLogger(__name__)

#: Calls of one answer that run at the same time.
PARALLEL = 8


class Toolbox:
    """The tools of a session and the place they work in.

    Args:
        executor: where commands run and files lie; started by its owner.
        context: the working directory and the limits.
        tools: what to offer instead of the standard tools.
        namespace: gives the kernel's variables; with it, ``inspect_variable`` is offered.
        output_limit: characters of a result's text that Claude gets.
    """

    def __init__(
        self,
        executor: Executor,
        context: ExecutionContext,
        *,
        tools: Sequence[Tool] | None = None,
        namespace: Namespace | None = None,
        output_limit: int = 30_000,
    ) -> None:
        self.executor = executor
        self.context = context
        self.output_limit = output_limit
        self._namespace = namespace
        if tools is None:
            tools = [ViewTool(), BashTool(), CreateFileTool(), StrReplaceTool()]
            if namespace is not None:
                tools = [*tools, InspectVariableTool()]
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
        env = self._env(on_output)
        async with self._turn(call, env):
            return await self._run(call, env)

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
            env = self._env(heard)
            async with self._turn(call, env), slots:
                if on_start is not None:
                    on_start(call)
                result = await self._run(call, env)
                if on_finish is not None:
                    on_finish(call, result)
                return result

        # Tasks start in this order, and locks are given in the order they are asked for.
        tasks = [asyncio.ensure_future(one(call)) for call in calls]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    def _env(self, on_output: Callable[[str], None] | None) -> ToolEnv:
        return ToolEnv(self.executor, self.context, self.output_limit, on_output, self._namespace)

    @contextlib.asynccontextmanager
    async def _turn(self, call: ToolCall, env: ToolEnv) -> AsyncIterator[None]:
        """The call's turn among those that use the same file."""
        tool = self.tools.get(call.name)
        key = tool.lock_key(call.input, env) if tool and isinstance(call.input, dict) else None
        if key is None:
            yield
            return
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            yield

    def _tool(self, name: str) -> Tool:
        if name not in self.tools:
            raise UnknownToolError(name, tuple(self.tools))
        return self.tools[name]

    async def _run(self, call: ToolCall, env: ToolEnv) -> ToolResult:
        started = time.monotonic()
        try:
            tool = self._tool(call.name)
            outcome = await tool.run(validate(tool.definition, call.input), env)
        except ToolError as error:
            outcome = Outcome(str(error), is_error=True, meta={"error": error.type})
        except ExecutorError:
            raise
        except Exception as error:
            # A fault of ours must not end the session; its traceback is for the log, not for Claude.
            logger.exception("the tool %s failed on call %s", call.name, call.id)
            message = f"{call.name} failed inside ({type(error).__name__}); try another way"
            outcome = Outcome(message, is_error=True, meta={"error": "internal"})
        return self._finished(call, outcome, time.monotonic() - started)

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
