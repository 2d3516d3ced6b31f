"""Where commands run and files lie: the contract, the local executor, and how others are found.

A package of someone else's adds an executor by an entry point of the group ``conjure.executors`` that names
a subclass of ``Executor``.
"""

from __future__ import annotations

from typing import Any

from ..errors import ExecutorError, SettingsError
from .contract import CommandResult, ExecutionContext, Executor, Stat
from .local import LocalExecutor

__all__ = [
    "CommandResult",
    "ExecutionContext",
    "Executor",
    "LocalExecutor",
    "Stat",
    "create_executor",
]

ENTRY_POINTS = "conjure.executors"
DOCKER = "docker"


def create_executor(name: str, **options: Any) -> Executor:
    """A new executor by its name; it is not started.

    Args:
        name: ``local``, ``docker``, or a name that an installed package registered.
        options: arguments of its class.

    Raises:
        SettingsError: there is no such executor, or it does not take these options.
        ExecutorError: the package that registered it cannot be imported.
    """
    kind = LocalExecutor if name == LocalExecutor.name else _docker() if name == DOCKER else _registered(name)
    try:
        return kind(**options)
    except TypeError as error:
        raise SettingsError("executor", f"{name}: {error}") from error


def _docker() -> type[Executor]:
    from .docker import DockerExecutor

    return DockerExecutor


def _registered(name: str) -> type[Executor]:
    from importlib.metadata import entry_points

    points = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in points:
        known = ", ".join(sorted({LocalExecutor.name, DOCKER, *points}))
        raise SettingsError("executor", f"there is no {name!r}; there are: {known}")
    try:
        kind = points[name].load()
    except Exception as error:
        raise ExecutorError(
            f"the executor {name!r} ({points[name].value}) cannot be loaded: {error}"
        ) from error
    if not (isinstance(kind, type) and issubclass(kind, Executor)):
        raise ExecutorError(f"the executor {name!r} ({points[name].value}) is no subclass of Executor")
    return kind
