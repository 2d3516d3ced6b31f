"""What a tool is, and what it is given to work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..executors.contract import ExecutionContext, Executor
from ..types import Content

#: Returns the variables a look at the kernel may see.
Namespace = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ToolEnv:
    """What a tool works with.

    Attributes:
        executor: where commands run and files lie.
        context: the working directory and the limits.
        output_limit: characters of text that will reach Claude; a tool that can choose what to leave out
            keeps below it.
        on_output: hears what a running command prints.
        namespace: gives the kernel's variables, where there is a kernel.
    """

    executor: Executor
    context: ExecutionContext
    output_limit: int = 30_000
    on_output: Callable[[str], None] | None = None
    namespace: Namespace | None = None


@dataclass(slots=True)
class Outcome:
    """What a tool gives back.

    Attributes:
        content: text, or content blocks of the Messages API.
        is_error: whether Claude should read it as a failure.
        meta: facts for the view and the log, never sent to Claude.
    """

    content: str | list[Content]
    is_error: bool = False
    meta: dict[str, Any] = field(default_factory=dict)


class Tool(Protocol):
    """Something Claude can call. Written on the executor's primitives, it works in every place."""

    @property
    def name(self) -> str:
        """The name Claude calls it by."""

    @property
    def definition(self) -> dict[str, Any]:
        """Name, description and input schema, as the Messages API takes them."""

    @property
    def read_only(self) -> bool:
        """Whether a call changes nothing, whatever its input."""

    def lock_key(self, arguments: Mapping[str, Any], env: ToolEnv) -> str | None:
        """Calls with the same key run one after another; None runs at any time."""

    async def run(self, arguments: dict[str, Any], env: ToolEnv) -> Outcome:
        """Do it; ``arguments`` have been validated against the definition.

        Raises:
            ToolError: Claude should hear what went wrong.
            ExecutorError: the place is at fault.
        """
