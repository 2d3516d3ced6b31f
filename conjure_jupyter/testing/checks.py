"""What the public suites check with: they need no test library."""

from __future__ import annotations

import re
from collections.abc import Awaitable


class expecting:  # noqa: N801  reads as a statement
    """A block that must raise ``kind``, with a message in which ``match`` is found.

    Raises:
        AssertionError: it raises nothing, or says something else.
    """

    def __init__(self, kind: type[BaseException], match: str = "") -> None:
        self._kind = kind
        self._match = match

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> bool:
        if kind is None:
            raise AssertionError(f"{self._kind.__name__} was not raised")
        if not issubclass(kind, self._kind):
            return False
        if not re.search(self._match, str(error)):
            raise AssertionError(f"{short(str(error))} says nothing of {self._match!r}")
        return True


async def raises(kind: type[BaseException], work: Awaitable[object], match: str = "") -> None:
    """See ``expecting``."""
    with expecting(kind, match):
        await work


def equal(found: object, expected: object, what: object = "") -> None:
    """Raises ``AssertionError`` unless both are the same; ``what`` names the case."""
    if found != expected:
        raise AssertionError(f"{what}: " * bool(what) + f"{short(found)} in place of {short(expected)}")


def true(condition: object, what: str) -> None:
    """Raises ``AssertionError`` unless the condition holds."""
    if not condition:
        raise AssertionError(f"not so: {what}")


def short(value: object) -> str:
    """As in a message."""
    text = repr(value)
    return text if len(text) <= 500 else text[:500] + "…"
