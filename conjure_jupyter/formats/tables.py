"""Files as pandas data frames."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from ..errors import ArtifactError

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # it ships none

#: The formats that are tables: MIME types that are told of them, and their extensions.
_TYPES = {
    "text/csv": "csv",
    "application/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/json": "json",
    "application/jsonl": "jsonl",
    "application/x-ndjson": "jsonl",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.apache.arrow.file": "feather",
}
_SUFFIXES = {
    "csv": "csv",
    "tsv": "tsv",
    "tab": "tsv",
    "json": "json",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "parquet": "parquet",
    "pq": "parquet",
    "xlsx": "xlsx",
    "feather": "feather",
    "arrow": "feather",
}

#: Types that say nothing of a table, so that the name decides.
_VAGUE = frozenset({"", "text/plain", "application/octet-stream", "application/zip"})

#: The reader of each format, and the options that make it read that format.
_READERS: dict[str, tuple[str, dict[str, Any]]] = {
    "csv": ("read_csv", {}),
    "tsv": ("read_csv", {"sep": "\t"}),
    "json": ("read_json", {}),
    "jsonl": ("read_json", {"lines": True}),
    "parquet": ("read_parquet", {}),
    "xlsx": ("read_excel", {}),
    "feather": ("read_feather", {}),
}


def table_format(name: str, content_type: str) -> str | None:
    """The format that a file is read as a table in, such as ``csv``; None when it is no table.

    The type decides; the extension does where the type is one that any file can have.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind in _VAGUE:
        return _SUFFIXES.get(name.rpartition(".")[2].lower())
    return _TYPES.get(kind)


def read_table(data: bytes, name: str, content_type: str, options: dict[str, Any]) -> pd.DataFrame:
    """A file as a data frame.

    Args:
        data: the whole file.
        name: its name, for messages and for its extension.
        content_type: its MIME type.
        options: handed to pandas' reader of the format, such as ``sep`` or ``sheet_name``.

    Raises:
        ArtifactError: it is no table, pandas or what it needs is not installed, or the bytes cannot be read.
        TypeError: pandas does not know an option.
    """
    form = table_format(name, content_type)
    if form is None:
        known = ", ".join(_READERS)
        raise ArtifactError(
            f"{name!r} is {content_type}, which is no table ({known} are); use .text() or .bytes()"
        )
    try:
        import pandas as pd
    except ImportError as error:
        raise ArtifactError(
            f"{name!r} becomes a data frame with pandas, which is not installed: pip install pandas"
        ) from error
    reader, needed = _READERS[form]
    try:
        frame: pd.DataFrame = getattr(pd, reader)(BytesIO(data), **{**needed, **options})
    except ImportError as error:
        raise ArtifactError(f"pandas needs another package to read {form} ({name!r}): {error}") from error
    except TypeError:
        raise
    except Exception as error:
        # Each reader has errors of its own, and those of the library below it.
        raise ArtifactError(
            f"{name!r} cannot be read as {form}: {error}. Options of pandas.{reader} can be given; "
            ".text() and .bytes() have the content as it is"
        ) from error
    return frame
