"""What a tool is, and what it is given to work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..executors.contract import ExecutionContext, Executor
from ..types import Content

if TYPE_CHECKING:
    from ..artifacts.service import ArtifactService

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
        artifacts: the session's artifacts, where there is a session.
        call_id: the API's identifier of the call, which artifacts are known by.
    """

    executor: Executor
    context: ExecutionContext
    output_limit: int = 30_000
    on_output: Callable[[str], None] | None = None
    namespace: Namespace | None = None
    artifacts: ArtifactService | None = None
    call_id: str | None = None


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
        """Whether a call leaves the files it names as they are, whatever its input."""

    @property
    def path_fields(self) -> Sequence[str]:
        """Fields of the input that are paths of files, or lists of them.

        Calls that have a path in common run one after another, in their order. Where there are artifacts, a
        URI or a path of an earlier turn is replaced by the path of the file it stands for.
        """

    @property
    def read_fields(self) -> Sequence[str]:
        """Fields that are paths which a tool that writes reads only; it looks them up itself.

        They count for the order of calls, like ``path_fields``.
        """

    @property
    def artifact_fields(self) -> Sequence[str]:
        """Fields that name artifacts, which the tool looks up itself."""

    async def run(self, arguments: dict[str, Any], env: ToolEnv) -> Outcome:
        """Do it; ``arguments`` have been validated against the definition.

        Raises:
            ToolError: Claude should hear what went wrong.
            ExecutorError: the place is at fault.
        """
