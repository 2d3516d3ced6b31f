"""Finding a variable by a path such as ``df['price']`` or ``config.layers[0]``, without running its code.

The path is no expression: names, attributes and literal keys only. Attributes are looked up statically, so
no property, ``__getattr__`` or ``__getitem__`` of the user's runs; the exceptions are the columns of data
frames and the items of arrays of the real pandas, polars and NumPy.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import InvalidToolInputError, ToolError

TOOL = "inspect_variable"
#: Steps of a path.
DEEPEST = 16
#: Names that IPython puts among the user's variables.
_IPYTHON = frozenset({"In", "Out", "exit", "quit", "get_ipython", "open"})
_STEP = re.compile(
    r"\s*(?:(?P<dot>\.)\s*(?P<attribute>[^\W\d]\w*)"
    r"|\[\s*(?:(?P<index>-?\d{1,18})|(?P<key>[rbu]?'(?:[^'\\\n]|\\.){0,500}'|[rbu]?\"(?:[^\"\\\n]|\\.){0,500}\"))\s*\])"
)
_NAME = re.compile(r"\s*([^\W\d]\w*)")

Step = tuple[str, Any]


def parse_path(text: str) -> tuple[str, list[Step]]:
    """A variable's name and the steps from it: ``("attribute", name)`` or ``("item", key)``.

    Raises:
        InvalidToolInputError: it is no such path.
    """
    start = _NAME.match(text)
    steps: list[Step] = []
    if start and not start[1].isidentifier():
        start = None  # \w also takes digits such as ², which no name has
    position = start.end() if start else 0
    while start and position < len(text.rstrip()):
        match = _STEP.match(text, position)
        if not match or len(steps) == DEEPEST:
            start = None
            break
        if match["dot"]:
            steps.append(("attribute", match["attribute"]))
        else:
            steps.append(("item", ast.literal_eval(match["index"] or match["key"])))
        position = match.end()
    if not start:
        raise InvalidToolInputError(
            TOOL,
            f"{text[:80]!r} is no variable; send a name, or a path such as df['price'], config.model or "
            "rows[0]. Expressions are not evaluated; for those use bash_tool, or ask the user",
            field="name",
        )
    return start[1], steps


def user_variables(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The variables that a user made: no names with a leading underscore, nothing of IPython's own.

    The copy is made at once, because the user's code may change the namespace meanwhile.
    """
    copy = dict(namespace)
    return {
        name: value
        for name, value in copy.items()
        if isinstance(name, str) and not name.startswith("_") and name not in _IPYTHON
    }


def resolve(namespace: Mapping[str, Any], text: str) -> Any:
    """The object at a path.

    Raises:
        InvalidToolInputError: the path cannot be parsed.
        ToolError: there is no such object, or reaching it would run code.
    """
    name, steps = parse_path(text)
    copy = dict(namespace)
    if name not in copy:
        import difflib

        near = difflib.get_close_matches(name, [known for known in copy if isinstance(known, str)], n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ToolError(f"There is no variable {name!r}.{hint} Call without a name to list all")
    value, path = copy[name], name
    for kind, key in steps:
        value = _attribute(value, key, path) if kind == "attribute" else _item(value, key, path)
        path += f".{key}" if kind == "attribute" else f"[{key!r}]"
    return value


def library_type(value: object) -> str | None:
    """``pandas.DataFrame`` and the like for objects of the real libraries, never for a look-alike."""
    kind = type(value)
    for module, names in _KNOWN.items():
        library = sys.modules.get(module)
        if isinstance(library, types.ModuleType):
            for name in names:
                if vars(library).get(name) is kind:
                    return f"{module}.{name}"
    return None


_KNOWN = {
    "pandas": ("DataFrame", "Series"),
    "polars": ("DataFrame", "Series"),
    "numpy": ("ndarray",),
}


def _attribute(value: Any, name: str, path: str) -> Any:
    missing = object()
    found = inspect.getattr_static(value, name, missing)
    if found is missing:
        raise ToolError(f"{path} has no attribute {name!r}")
    if isinstance(found, types.MemberDescriptorType | types.GetSetDescriptorType):
        # A slot or a field of a C type: reading it runs no Python.
        return found.__get__(value)
    if library_type(value) is not None and isinstance(found, property):
        return found.__get__(value)
    if library_type(value) is not None and hasattr(type(found), "__get__") and name in _TABLE_PARTS:
        return getattr(value, name)
    if isinstance(found, property) or (
        hasattr(type(found), "__get__") and not isinstance(found, types.FunctionType | type)
    ):
        raise ToolError(f"{path}.{name} is computed; looking at it would run code. Ask the user to assign it")
    return found


_TABLE_PARTS = frozenset({"columns", "index", "dtypes", "shape", "dtype", "schema", "size", "T", "values"})


def _item(value: Any, key: Any, path: str) -> Any:
    try:
        if isinstance(value, dict):
            return dict.__getitem__(value, key)
        kind: Any
        for kind in (list, tuple, str, bytes):
            if isinstance(value, kind):
                return kind.__getitem__(value, key)
        if library_type(value) is not None:
            return value[key]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ToolError(f"{path} has no item {key!r}: {type(error).__name__}{_choices(value)}") from None
    raise ToolError(f"{path} is a {type(value).__name__}; taking an item of it would run code")


def _choices(value: Any) -> str:
    def texts() -> Iterator[str]:
        for count, key in enumerate(list(dict.keys(value))):
            if count == 20:
                yield "…"
                return
            yield repr(key) if type(key) in (str, int) else type(key).__name__

    if isinstance(value, dict):
        return f"; keys: {', '.join(texts())}"
    return f"; it has {len(value)} items" if type(value) in (list, tuple, str, bytes) else ""
