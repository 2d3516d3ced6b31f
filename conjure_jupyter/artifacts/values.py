"""Python values as files: what is registered by value, and what a prompt attaches."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import json
import math
import os
import stat
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePath
from typing import Any

from ..errors import InvalidArtifactError
from ..fileref import FileRef
from ..paths import read_fd, translated
from .detect import HEAD, content_type
from .kinds import BINARY, PLAIN, extension_for, suffix_of, type_by_name


@dataclass(frozen=True, slots=True)
class Serialised:
    """A value as the content of a file.

    Attributes:
        suffix: the file's extension with its dot.
        content_type: MIME type.
        data: the content.
    """

    suffix: str
    content_type: str
    data: bytes = dataclasses.field(repr=False)


#: Formats that a table may be asked for in, with the methods of pandas and polars that write them.
_TABLES = {
    "csv": ("to_csv", "write_csv"),
    "json": ("to_json", "write_json"),
    "parquet": ("to_parquet", "write_parquet"),
    "feather": ("to_feather", "write_ipc"),
    "xlsx": ("to_excel", "write_excel"),
}

_ADVICE = "register a DataFrame, array, figure, image, dict, list, text or bytes, or a file with it"


def serialise(value: Any, *, format: str | None = None) -> Serialised:  # noqa: A002  as pandas calls it
    """A value as the content of a file.

    ============================================ =====================================
    pandas or polars DataFrame, Series           ``.csv``, or ``format``
    numpy array                                  ``.npy``
    matplotlib or plotly figure, PIL image       ``.png``
    dict, list, tuple, number, truth value       ``.json``
    str                                          ``.txt``
    bytes                                        what they look like
    a path, a ``FileRef``                        the file as it is
    ============================================ =====================================

    Args:
        value: the value.
        format: of a table: ``csv``, ``json``, ``parquet``, ``feather`` or ``xlsx``.

    Raises:
        InvalidArtifactError: there is no such format, the value has none, or writing it failed.
        ToolError: a path's file cannot be read.
    """
    kind = type(value).__name__
    for is_it, write in _WRITERS:
        if not is_it(value):
            continue
        if format is not None and write is not _table:
            raise InvalidArtifactError(kind, f"only a table can be written as {format}")
        try:
            return _table(value, format) if write is _table else write(value)
        except InvalidArtifactError:
            raise
        except ImportError as error:
            raise InvalidArtifactError(kind, f"writing it needs another package: {error}") from error
        except OSError:
            raise
        except Exception as error:
            # A user's value, and the library it comes from, may raise anything.
            raise InvalidArtifactError(kind, f"writing it failed: {type(error).__name__}: {error}") from error
    raise InvalidArtifactError(kind, f"it has no form as a file; {_ADVICE}")


def _made(suffix: str, data: bytes) -> Serialised:
    return Serialised(suffix, type_by_name("x" + suffix) or BINARY, data)


def _is_a(value: Any, module: str, *names: str) -> bool:
    """Whether a value is of a class of a library, without loading the library."""
    return any(
        base.__module__.partition(".")[0] == module and base.__name__ in names for base in type(value).__mro__
    )


# Tables ---------------------------------------------------------------------------------------------------


def _is_table(value: Any) -> bool:
    return _is_a(value, "pandas", "DataFrame", "Series") or _is_a(
        value, "polars", "DataFrame", "Series", "LazyFrame"
    )


def _table(value: Any, form: str | None = None) -> Serialised:
    form = (form or "csv").lower().removeprefix(".")
    if form not in _TABLES:
        raise InvalidArtifactError(form, f"a table is written as {', '.join(_TABLES)}")
    if _is_a(value, "polars", "LazyFrame"):
        raise InvalidArtifactError("LazyFrame", "it has no rows yet; register .collect() of it")
    if hasattr(value, "to_frame"):
        value = value.to_frame()  # a series is a table of one column
    pandas = _is_a(value, "pandas", "DataFrame")
    method = getattr(value, _TABLES[form][0 if pandas else 1])
    if pandas:
        return _made(f".{form}", _pandas(value, form, method))
    stream = BytesIO()
    method(stream)
    return _made(f".{form}", stream.getvalue())


def _pandas(frame: Any, form: str, write: Callable[..., Any]) -> bytes:
    # An index that only counts says nothing, and would come back as a column without a name.
    counted = type(frame.index).__name__ == "RangeIndex" and frame.index.name is None
    if form == "csv":
        return str(write(index=not counted, lineterminator="\n")).encode("utf-8", "replace")
    if form == "json":
        return str(write(orient="records" if counted else "columns", force_ascii=False)).encode()
    stream = BytesIO()
    if form == "xlsx":
        write(stream, index=not counted)
    elif form == "feather" and not counted:
        frame.reset_index().to_feather(stream)
    else:
        write(stream)
    return stream.getvalue()


# Arrays and pictures --------------------------------------------------------------------------------------


def _array(value: Any) -> Serialised:
    import numpy as np

    if value.dtype.hasobject:
        raise InvalidArtifactError("ndarray", "it holds Python objects; register .tolist() of it")
    stream = BytesIO()
    np.save(stream, value, allow_pickle=False)
    return _made(".npy", stream.getvalue())


def _figure(value: Any) -> Serialised:
    figure = value if hasattr(value, "savefig") else value.figure  # axes know theirs
    stream = BytesIO()
    figure.savefig(stream, format="png", bbox_inches="tight")
    return _made(".png", stream.getvalue())


def _plotly(value: Any) -> Serialised:
    try:
        return _made(".png", bytes(value.to_image(format="png")))
    except Exception as error:
        raise InvalidArtifactError(
            type(value).__name__,
            f"plotly makes pictures with kaleido, which failed ({type(error).__name__}); "
            "install kaleido, or register .to_html() of it as text",
        ) from error


def _image(value: Any) -> Serialised:
    if value.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16"):
        value = value.convert("RGB")  # PNG has no other modes
    stream = BytesIO()
    value.save(stream, "PNG")
    return _made(".png", stream.getvalue())


def _repr_png(value: Any) -> Serialised:
    made = value._repr_png_()
    made = made[0] if isinstance(made, tuple) else made
    if isinstance(made, str):
        made = base64.b64decode(made)
    if not isinstance(made, bytes):
        raise InvalidArtifactError(type(value).__name__, f"it has no picture; {_ADVICE}")
    return _made(".png", made)


# Data and text --------------------------------------------------------------------------------------------


def _json(value: Any) -> Serialised:
    try:
        text = json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False, default=_plain)
    except ValueError:
        # JSON knows no NaN and no infinity; what reads it expects null in their place.
        text = json.dumps(_finite(value), ensure_ascii=False, indent=1, allow_nan=False, default=_plain)
    return _made(".json", text.encode("utf-8", "replace"))


def _plain(value: Any) -> Any:
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, uuid.UUID | decimal.Decimal | PurePath | dt.timedelta):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if _is_a(value, "numpy", "ndarray", "generic"):
        return _finite(value.tolist())
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value


def _text(value: str) -> Serialised:
    return Serialised(".txt", PLAIN, value.encode("utf-8", "replace"))


def _bytes(value: Any) -> Serialised:
    data = bytes(value)
    kind = content_type("", data[:HEAD])
    return Serialised(extension_for(kind) or ".bin", kind, data)


def _path(value: Path) -> Serialised:
    with translated(value.name):
        if not stat.S_ISREG(value.stat().st_mode):
            raise InvalidArtifactError(value.name, "not a file")
        fd = os.open(value, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    data = read_fd(fd, value.name)
    return Serialised(suffix_of(value.name), content_type(value.name, data[:HEAD]), data)


def _ref(value: FileRef) -> Serialised:
    return Serialised(suffix_of(value.name), value.content_type, value.bytes())


_WRITERS: Iterable[tuple[Callable[[Any], bool], Callable[[Any], Serialised]]] = (
    (_is_table, _table),
    (lambda value: _is_a(value, "numpy", "ndarray"), _array),
    (lambda value: _is_a(value, "PIL", "Image"), _image),
    (lambda value: _is_a(value, "plotly", "Figure", "BaseFigure", "FigureWidget"), _plotly),
    (lambda value: _is_a(value, "matplotlib", "Figure", "Axes") or hasattr(value, "savefig"), _figure),
    (lambda value: isinstance(value, FileRef), _ref),
    (lambda value: isinstance(value, Path), _path),
    (lambda value: isinstance(value, bytes | bytearray | memoryview), _bytes),
    (lambda value: isinstance(value, str), _text),
    (lambda value: isinstance(value, dict | list | tuple | bool | int | float), _json),
    (lambda value: _is_a(value, "numpy", "generic"), lambda value: _json(value.item())),
    (lambda value: hasattr(value, "_repr_png_") and not isinstance(value, type), _repr_png),
)
