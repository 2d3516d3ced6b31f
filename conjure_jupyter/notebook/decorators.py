"""IPython's decorators of magics, with types, and with what every magic here has in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from IPython.core import magic, magic_arguments

F = TypeVar("F", bound=Callable[..., Any])


def cell(name: str) -> Callable[[F], F]:
    """A cell magic whose line is taken as it is written: ``{name}`` and ``$name`` are left to the prompt."""

    def decorate(function: F) -> F:
        return cast("F", magic.no_var_expand(cast("Any", magic.cell_magic)(name)(function)))

    return decorate


def line(name: str) -> Callable[[F], F]:
    """A line magic whose line is taken as it is written."""

    def decorate(function: F) -> F:
        return cast("F", magic.no_var_expand(cast("Any", magic.line_magic)(name)(function)))

    return decorate


def options(name: str, table: dict[str, dict[str, Any]]) -> Callable[[F], F]:
    """The options that a magic takes: their names and what ``argparse`` is told of them.

    The magic's docstring becomes its help, and its parser lies in ``.parser``.
    """

    def decorate(function: F) -> F:
        decorated: Any = function
        for names, facts in reversed(table.items()):
            decorated = cast("Any", magic_arguments.argument)(*names.split(), **facts)(decorated)
        return cast("F", cast("Any", magic_arguments.magic_arguments)(name)(decorated))

    return decorate
