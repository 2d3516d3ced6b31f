"""Kernel variables as text for a prompt, and as files to attach."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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

    A path is attached as it is; tables become CSV, figures and images PNG, text and bytes themselves,
    collections JSON, anything else its preview.
    """
    if inspect.ismodule(value) or inspect.isclass(value) or inspect.isroutine(value):
        return None
    if isinstance(value, Path):
        return value if value.is_file() else None
    try:
        suffix, data = _serialised(value)
    except Exception:  # noqa: BLE001  the user's object may raise anything; then it is not attached
        return None
    path = scratch() / (name + suffix)
    path.write_bytes(data)
    return path


def _serialised(value: Any) -> tuple[str, bytes]:
    if isinstance(value, bytes | bytearray):
        return ".bin", bytes(value)
    if isinstance(value, str):
        return ".txt", value.encode("utf-8", "replace")
    for method in ("to_csv", "write_csv"):  # pandas, polars
        if hasattr(value, method):
            return ".csv", str(getattr(value, method)()).encode()
    png = _png(value)
    if png is not None:
        return ".png", png
    if isinstance(value, dict | list | tuple | int | float | bool):
        return ".json", json.dumps(value, ensure_ascii=False, indent=1, default=str).encode()
    return ".txt", preview(value).encode("utf-8", "replace")


def _png(value: Any) -> bytes | None:
    """A figure or image as PNG, by the ways that IPython's formatters use."""
    made = value._repr_png_() if hasattr(value, "_repr_png_") else None
    if isinstance(made, tuple):
        made = made[0]
    if isinstance(made, bytes):
        return made
    if hasattr(value, "savefig"):
        from io import BytesIO

        stream = BytesIO()
        value.savefig(stream, format="png")
        return stream.getvalue()
    return None
