"""The inspect_variable tool: a bounded, read-only look at the kernel's variables."""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from typing import Any

from ..errors import ToolError
from . import schemas, variables
from .describe import describe, listing
from .tool import Namespace, Outcome, ToolEnv

#: Seconds that describing a variable may take, the user's ``__repr__`` included.
TIME_LIMIT = 2.0


class InspectVariableTool:
    """Type, size and a preview of a variable; without a name, all variables."""

    name = "inspect_variable"
    read_only = True
    path_fields = ()
    read_fields = ()
    artifact_fields = ()

    def __init__(self, time_limit: float = TIME_LIMIT) -> None:
        self.time_limit = time_limit

    @property
    def definition(self) -> dict[str, Any]:
        """Our own schema; the source document knows no kernel."""
        return schemas.inspect_variable_tool()

    async def run(self, arguments: dict[str, Any], env: ToolEnv) -> Outcome:
        """Describe a variable.

        Raises:
            ToolError: there is none, reaching it would run code, or it takes too long.
        """
        if env.namespace is None:
            raise ToolError("There is no notebook kernel here, so there are no variables to look at")
        name: str = arguments.get("name", "").strip()
        namespace = env.namespace
        return Outcome(await within(self.time_limit, lambda: _look(namespace, name)))


def _look(namespace: Namespace, name: str) -> str:
    if not name:
        return listing(variables.user_variables(namespace()))
    return describe(variables.resolve(namespace(), name), name)


async def within(seconds: float, work: Callable[[], str]) -> str:
    """Run ``work`` in a thread of its own and give it up after a time.

    A daemon thread, because one that hangs in the user's code must not keep the kernel from ending. Given
    up, it is asked to stop: a loop in Python does, one in C goes on.

    Raises:
        ToolError: ``work`` raised, or took too long.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str] = loop.create_future()

    def finish(text: str | None, error: ToolError | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(text or "")

    def body() -> None:
        text, problem = None, None
        try:
            text = work()
        except ToolError as error:
            problem = error
        except BaseException as error:  # noqa: BLE001  the user's code may raise anything, SystemExit too
            problem = ToolError(f"The variable cannot be described: {type(error).__name__}")
        try:
            loop.call_soon_threadsafe(finish, text, problem)
        except RuntimeError:
            return  # the loop was closed meanwhile; nobody waits

    thread = threading.Thread(target=body, name="conjure-inspect", daemon=True)
    thread.start()
    try:
        return await asyncio.wait_for(done, seconds)
    except TimeoutError:
        raise ToolError(
            f"Describing the variable took more than {seconds:g} s and was given up (its __repr__ may be "
            "slow); look at a part of it, such as an attribute or an item"
        ) from None
    finally:
        if thread.is_alive() and (done.cancelled() or not done.done()):
            _ask_to_stop(thread)


def _ask_to_stop(thread: threading.Thread) -> None:
    """Raise SystemExit in a thread at its next Python instruction, where the interpreter can."""
    if thread.ident is not None and hasattr(ctypes, "pythonapi"):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
