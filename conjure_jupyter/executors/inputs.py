"""What every executor asks of a command before it runs it."""

from __future__ import annotations

import math
import os

from ..errors import SettingsError, ToolError
from .contract import ExecutionContext


def check_command(command: str) -> None:
    """See that a command can be one.

    Raises:
        ToolError: it holds what no command can: NUL, or a half of a surrogate pair.
    """
    if "\0" in command:
        raise ToolError("the command holds a NUL character")
    try:
        os.fsencode(command)
    except UnicodeEncodeError as error:
        raise ToolError("the command is not valid text") from error


def time_limit(timeout: float | None, context: ExecutionContext) -> float:
    """The seconds a command may run.

    Raises:
        SettingsError: they are no number of seconds.
    """
    limit = context.timeout if timeout is None else timeout
    if not (math.isfinite(limit) and limit > 0):
        raise SettingsError("timeout", f"{limit!r} is no number of seconds")
    return limit
