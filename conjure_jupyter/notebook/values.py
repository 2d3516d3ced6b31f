"""Kernel variables as text for a prompt, and as files to attach."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..artifacts.values import serialise
from ..errors import ConjureError, InvalidArtifactError
from ..fileref import FileRef

#: Characters of one value, rows and columns of a table, items of a collection.
MOST_TEXT, ROWS, COLUMNS, ITEMS = 20_000, 20, 30, 200


def preview(value: Any) -> str:
    """A value as bounded text: a table as its shape, types and first rows, text as it is."""
    try:
        return _cut(_text(value))
    except Exception as error:  # noqa: BLE001  the repr of a user's object may raise anything
        return f"<{type(value).__name__}: {type(error).__name__} while it was read>"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if _is_table(value):
        return _table(value)
    from IPython.lib.pretty import pretty

    return str(pretty(value, max_seq_length=ITEMS))  # type: ignore[no-untyped-call]  # IPython's own


def _is_table(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "to_string")


def _table(value: Any) -> str:
    if not hasattr(value, "columns"):
        return f"{type(value).__name__}, {len(value)} values\n{value.to_string(max_rows=ROWS)}"
    rows, columns = value.shape
    types = ", ".join(f"{name}: {kind}" for name, kind in list(value.dtypes.items())[:COLUMNS])
    shown = value.to_string(max_rows=ROWS, max_cols=COLUMNS, max_colwidth=80)
    return f"DataFrame, {rows} rows × {columns} columns ({types})\n{shown}"  # noqa: RUF001  the sign meant


def _cut(text: str) -> str:
    if len(text) <= MOST_TEXT:
        return text
    half, left_out = MOST_TEXT // 2, len(text) - MOST_TEXT
    return f"{text[:half]}\n… {left_out:,} characters left out …\n{text[-half:]}"


def attachable(name: str, value: Any, scratch: Callable[[], Path]) -> Path | None:
    """A file that holds ``value``, or None when it is no data (a function, a class, a module).

    A path is attached as it is; what has a form as a file in that form (see ``serialise``), and anything
    else as its preview.
    """
    if inspect.ismodule(value) or inspect.isclass(value) or inspect.isroutine(value):
        return None
    if isinstance(value, Path):
        return value if value.is_file() else None
    try:
        made = serialise(value)
        suffix, data = made.suffix, made.data
    except InvalidArtifactError:
        suffix, data = ".txt", preview(value).encode("utf-8", "replace")
    except (ConjureError, OSError):  # a file of the session whose bytes are gone
        return None
    if isinstance(value, FileRef):
        name, suffix = value.name, ""
    path = scratch() / (name + suffix)
    path.write_bytes(data)
    return path
