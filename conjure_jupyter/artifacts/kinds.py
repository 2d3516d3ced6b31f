"""MIME types and the extensions that go with them, the same on every machine."""

from __future__ import annotations

import mimetypes
import posixpath

BINARY = "application/octet-stream"
PLAIN = "text/plain"

#: Types that Python's table lacks or gives by an older name (RFC 9512 for YAML, RFC 4180 for CSV).
#: The first extension of a type is the one that is added to names.
_EXTENSIONS = {
    "application/gzip": (".gz",),
    "application/javascript": (".js", ".mjs", ".cjs"),
    "application/json": (".json",),
    "application/jsonl": (".jsonl", ".ndjson"),
    "application/geo+json": (".geojson",),
    "application/msword": (".doc",),
    "application/pdf": (".pdf",),
    "application/rtf": (".rtf",),
    "application/sql": (".sql",),
    "application/toml": (".toml",),
    "application/vnd.apache.arrow.file": (".feather", ".arrow"),
    "application/vnd.apache.parquet": (".parquet", ".pq"),
    "application/vnd.ms-excel": (".xls",),
    "application/vnd.ms-powerpoint": (".ppt",),
    "application/vnd.oasis.opendocument.presentation": (".odp",),
    "application/vnd.oasis.opendocument.spreadsheet": (".ods",),
    "application/vnd.oasis.opendocument.text": (".odt",),
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": (".pptx",),
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": (".xlsx",),
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": (".docx",),
    "application/vnd.sqlite3": (".sqlite", ".sqlite3", ".db"),
    "application/wasm": (".wasm",),
    "application/x-bzip2": (".bz2",),
    "application/x-ipynb+json": (".ipynb",),
    "application/x-npy": (".npy",),
    "application/x-sh": (".sh", ".bash"),
    "application/x-tar": (".tar",),
    "application/x-xz": (".xz",),
    "application/xml": (".xml", ".xsd", ".xsl"),
    "application/yaml": (".yaml", ".yml"),
    "application/zip": (".zip",),
    "audio/mpeg": (".mp3",),
    "audio/wav": (".wav",),
    "image/bmp": (".bmp",),
    "image/gif": (".gif",),
    "image/jpeg": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "image/png": (".png",),
    "image/svg+xml": (".svg",),
    "image/tiff": (".tiff", ".tif"),
    "image/vnd.microsoft.icon": (".ico",),
    "image/webp": (".webp",),
    "text/css": (".css",),
    "text/csv": (".csv",),
    "text/html": (".html", ".htm", ".xhtml"),
    "text/markdown": (".md", ".markdown"),
    "text/plain": (".txt", ".text", ".log", ".ini", ".cfg", ".conf", ".rst", ".env", ".diff", ".patch"),
    "text/tab-separated-values": (".tsv", ".tab"),
    "text/x-c": (".c", ".h", ".cpp", ".hpp", ".cc"),
    "text/x-java": (".java",),
    "text/x-python": (".py",),
    "text/x-r": (".r",),
    "text/x-rust": (".rs",),
    "text/x-tex": (".tex", ".sty"),
    "text/x-typescript": (".ts", ".tsx", ".jsx"),
    "video/mp4": (".mp4", ".m4v"),
}
_TYPES = {suffix: kind for kind, suffixes in _EXTENSIONS.items() for suffix in suffixes}

# Python's own table, without what the machine adds to it.
_PYTHON = mimetypes.MimeTypes()

#: Types with a name of their own that are text all the same.
_TEXTS = frozenset(
    kind
    for kind in _EXTENSIONS
    if kind.endswith(("json", "xml", "yaml", "toml", "sql", "javascript", "jsonl", "/x-sh"))
)

#: Types, and first parts of types, whose files begin with bytes that are known.
_MARKED = frozenset(
    {"audio", "font", "image", "video"}
    | {"application/gzip", "application/msword", "application/pdf", "application/vnd.apache.arrow.file"}
    | {"application/vnd.apache.parquet", "application/vnd.ms-excel", "application/vnd.ms-powerpoint"}
    | {"application/vnd.sqlite3", "application/wasm", "application/x-bzip2", "application/x-npy"}
    | {"application/x-xz"}
)

#: Older and other names of a type.
_ALIASES = {
    "application/csv": "text/csv",
    "application/x-gzip": "application/gzip",
    "application/x-javascript": "application/javascript",
    "application/x-ndjson": "application/jsonl",
    "application/x-sqlite3": "application/vnd.sqlite3",
    "application/x-yaml": "application/yaml",
    "application/x-zip-compressed": "application/zip",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "image/jpg": "image/jpeg",
    "image/x-icon": "image/vnd.microsoft.icon",
    "image/x-ms-bmp": "image/bmp",
    "text/javascript": "application/javascript",
    "text/json": "application/json",
    "text/xml": "application/xml",
    "text/x-markdown": "text/markdown",
}


def canonical(kind: str) -> str:
    """A MIME type without parameters, in lower case, by the name that is used here."""
    kind = kind.partition(";")[0].strip().lower()
    return _ALIASES.get(kind, kind)


def suffix_of(name: str) -> str:
    """The extension of a file's name with its dot, in lower case; empty for none and for ``.hidden``."""
    return posixpath.splitext(posixpath.basename(name))[1].lower()


def type_by_name(name: str) -> str | None:
    """The MIME type that a file's name claims; None when its extension is not known."""
    suffix = suffix_of(name)
    kind = _TYPES.get(suffix) or _PYTHON.types_map[True].get(suffix)
    return canonical(kind) if kind else BINARY if suffix == ".bin" else None


def extension_for(kind: str) -> str:
    """The extension that goes with a MIME type; empty when none does."""
    kind = canonical(kind)
    if kind == BINARY:
        return ""
    known = _EXTENSIONS.get(kind)
    return known[0] if known else _PYTHON.guess_extension(kind) or ""


def is_text(kind: str) -> bool:
    """Whether files of a type are text."""
    return kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+xml", "+json"))


def is_zip(kind: str) -> bool:
    """Whether files of a type are zip archives, whatever else they are."""
    return kind in ("application/zip", "application/epub+zip", "application/java-archive") or kind.startswith(
        ("application/vnd.openxmlformats-", "application/vnd.oasis.opendocument.")
    )


def has_mark(kind: str) -> bool:
    """Whether every file of a type begins with known bytes, so that without them the name is wrong."""
    return not is_text(kind) and (
        is_zip(kind) or kind in _MARKED or kind.partition("/")[0] in _MARKED
    )  # SVG is an image and text
