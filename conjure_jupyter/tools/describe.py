"""Describing a Python object in a bounded text.

Builtin containers are taken apart here, item by item, so that a list of a million rows costs as much as
one of ten. Only objects of other types have their own ``repr`` called; it may raise, loop or print, which is
why descriptions are made in a thread with a time limit.
"""

from __future__ import annotations

import inspect
import itertools
import types
from collections.abc import Callable, Mapping
from typing import Any

from .bounds import clip, clip_line
from .variables import library_type

#: Items of a container, columns of a table, attributes of an object.
ITEMS = 30
COLUMNS = 60
ROWS = 5
TEXT = 1_000
DEPTH = 3


def describe(value: Any, name: str) -> str:
    """Type, size and a preview of an object."""
    library = library_type(value)
    if library is not None:
        return f"{name}: {library}\n{_LIBRARIES[library](value)}"
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType | type | types.ModuleType):
        return f"{name}: {_code(value)}"
    lines = [f"{name}: {type_name(value)}{_length(value)}"]
    lines.append(clip(preview(value), TEXT * 4)[0])
    if attributes := _attributes(value):
        lines.append(f"attributes: {attributes}")
    return "\n".join(lines)


def listing(variables: Mapping[str, Any]) -> str:
    """One line for each variable; modules and functions are only named."""
    rows, modules, functions = [], [], []
    for name, value in variables.items():
        if isinstance(value, types.ModuleType):
            modules.append(name)
        elif isinstance(value, types.FunctionType | types.BuiltinFunctionType | type):
            functions.append(name)
        else:
            rows.append(f"{name}: {type_name(value)}{_length(value)}{_short(value)}")
    shown = rows[: ITEMS * 5]
    if len(rows) > len(shown):
        shown.append(f"… {len(rows) - len(shown)} more variables")
    if functions:
        shown.append(f"functions and classes: {_names(functions)}")
    if modules:
        shown.append(f"modules: {_names(modules)}")
    return "\n".join(shown) or "The notebook has no variables yet."


def _names(names: list[str]) -> str:
    more = f", … {len(names) - 50} more" if len(names) > 50 else ""
    return ", ".join(names[:50]) + more


def type_name(value: object) -> str:
    """The type's name, with its module when it is not a builtin."""
    kind = type(value)
    module, name = type.__getattribute__(kind, "__module__"), type.__getattribute__(kind, "__qualname__")
    return str(name) if module in ("builtins", "__main__") else f"{module}.{name}"


def preview(value: Any, depth: int = DEPTH) -> str:
    """A bounded ``repr``."""
    kind = type(value)
    if kind in (int, float, complex, bool, type(None)):
        return _number(value)
    if kind in (str, bytes, bytearray):
        part = repr(value[:TEXT])
        return part if len(value) <= TEXT else f"{part}… [{len(value):,} in all]"
    if kind in _CONTAINERS:
        return _container(value, depth)
    if library := library_type(value):
        return f"<{library}{_short(value)}>"
    return _own_repr(value)


def _number(value: Any) -> str:
    if isinstance(value, int) and value.bit_length() > 2_000:
        return f"<a whole number of {value.bit_length():,} bits>"
    return repr(value)


_CONTAINERS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    dict: ("{", "}"),
}


def _container(value: Any, depth: int) -> str:
    start, end = _CONTAINERS[type(value)]
    size = len(value)
    if not size:
        return "set()" if type(value) is set else start + end
    if depth == 0:
        return f"{start}… {size:,} items{end}"
    # A copy of the first items: another thread may change the container meanwhile.
    if isinstance(value, dict):
        pairs = list(itertools.islice(value.items(), ITEMS))
        parts = [f"{preview(key, 0)}: {preview(item, depth - 1)}" for key, item in pairs]
    else:
        parts = [preview(item, depth - 1) for item in itertools.islice(value, ITEMS)]
    if size > len(parts):
        parts.append(f"… {size - len(parts):,} more")
    comma = "," if type(value) is tuple and size == 1 else ""
    return start + ", ".join(clip_line(part, TEXT) for part in parts) + comma + end


def _own_repr(value: Any) -> str:
    try:
        text = repr(value)
        return clip(text, TEXT * 2)[0] if type(text) is str else clip(str.__str__(text), TEXT * 2)[0]
    except Exception as error:  # noqa: BLE001  user's code may raise anything
        return f"<{type_name(value)}; its repr raised {type(error).__name__}>"


def _length(value: Any) -> str:
    kind: Any
    for kind in (str, bytes, bytearray, list, tuple, set, frozenset, dict):
        if isinstance(value, kind):
            size = kind.__len__(value)
            return f", {size:,} {'characters' if kind is str else 'bytes' if kind in _BYTES else 'items'}"
    return ""


_BYTES = (bytes, bytearray)


def _short(value: Any) -> str:
    """A few words for a listing: a small value, or the shape of a table. No code of the user's runs."""
    if library_type(value) is not None:
        return f", shape {tuple(value.shape)}"
    if type(value) in (int, float, bool, type(None), complex):
        return f" = {_number(value)}"
    if type(value) is str and len(value) <= 60:
        return f" = {value!r}"
    return ""


def _attributes(value: Any) -> str:
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return ""
    if type(own) is not dict or not own:
        return ""
    names = [name for name in list(own) if isinstance(name, str) and not name.startswith("__")]
    parts = [f"{name} ({type_name(own[name])})" for name in names[:ITEMS] if name in own]
    return ", ".join(parts) + (f", … {len(names) - ITEMS} more" if len(names) > ITEMS else "")


def _code(value: Any) -> str:
    kind = "class" if isinstance(value, type) else type(value).__name__
    lines = [f"{kind} {value.__name__}" if isinstance(value, types.ModuleType) else kind]
    if not isinstance(value, types.ModuleType):
        try:
            lines = [f"{kind} {value.__name__}{inspect.signature(value)}"]
        except (TypeError, ValueError):
            lines = [f"{kind} {value.__name__}"]
    doc = value.__doc__ if not isinstance(value, type) else vars(value).get("__doc__")
    if isinstance(doc, str):
        lines.append(clip(inspect.cleandoc(doc), TEXT)[0])
    return "\n".join(clip_line(line, TEXT) for line in lines)


def _pandas_frame(value: Any) -> str:
    columns = list(value.columns)
    kinds = [f"  {name!s}: {kind}" for name, kind in zip(columns[:COLUMNS], value.dtypes, strict=False)]
    if len(columns) > COLUMNS:
        kinds.append(f"  … {len(columns) - COLUMNS} more columns")
    head = value.iloc[:ROWS, : COLUMNS // 3].to_string(max_colwidth=60, max_cols=COLUMNS // 3)
    index = f"index: {type(value.index).__name__}"
    return "\n".join(
        [f"{value.shape[0]:,} rows x {value.shape[1]:,} columns; {index}", *kinds, "first rows:", head]
    )


def _pandas_series(value: Any) -> str:
    head = value.iloc[: ROWS * 2].to_string()
    return f"{len(value):,} values, dtype {value.dtype}, name {value.name!r}\nfirst values:\n{head}"


def _polars_frame(value: Any) -> str:
    schema = list(value.schema.items())
    kinds = [f"  {name}: {kind}" for name, kind in schema[:COLUMNS]]
    if len(schema) > COLUMNS:
        kinds.append(f"  … {len(schema) - COLUMNS} more columns")
    shape = f"{value.height:,} rows x {value.width:,} columns"
    return "\n".join([shape, *kinds, "first rows:", str(value.head(ROWS))])


def _polars_series(value: Any) -> str:
    return f"{len(value):,} values, dtype {value.dtype}\n{value.head(ROWS * 2)}"


def _array(value: Any) -> str:
    import numpy as np

    text = np.array2string(value, threshold=60, edgeitems=3, max_line_width=100)
    return f"shape {value.shape}, dtype {value.dtype}\n{text}"


_LIBRARIES: dict[str, Callable[[Any], str]] = {
    "pandas.DataFrame": _pandas_frame,
    "pandas.Series": _pandas_series,
    "polars.DataFrame": _polars_frame,
    "polars.Series": _polars_series,
    "numpy.ndarray": _array,
}
