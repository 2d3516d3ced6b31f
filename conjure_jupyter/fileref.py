"""A file of a session, as the user picks it up: a value that knows where its bytes are."""

from __future__ import annotations

import builtins
import contextlib
import datetime as dt
import hashlib
import os
import secrets
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from .errors import ArtifactError, ArtifactNotFoundError

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # it ships none

_CHUNK = 1 << 20

#: Bytes of a copy that are kept in memory; a larger one is a temporary file without a name.
_SPOOLED = 16 << 20


@dataclass(frozen=True, slots=True, repr=False)
class FileRef:
    """A file that a session has, in one version.

    ``bytes``, ``text``, ``open``, ``save`` and ``to_dataframe`` give this version, also when the file in the
    working directory has changed since, as long as its bytes were kept.

    Attributes:
        path: relative to the session's working directory, with ``/``.
        size: bytes.
        content_type: MIME type.
        sha256: hex digest of its bytes; empty when it was too large to be kept.
        storage_url: where else it is kept, if anywhere.
        created: when it was first seen, with time zone.
        local_path: where it lies on this machine, when it does. It may have changed since.
        blob: where this version's bytes lie on this machine, when they were kept.
        artifact_path: its logical path, such as ``fi:turn_0003.files/report.pdf``.
        version: from 0; None for what is no artifact.
        tool_call_ids: the calls that made it.
    """

    path: str
    size: int
    content_type: str
    sha256: str
    storage_url: str | None = None
    created: dt.datetime | None = None
    local_path: Path | None = None
    blob: Path | None = None
    artifact_path: str | None = None
    version: int | None = None
    tool_call_ids: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]

    def open(self) -> IO[builtins.bytes]:
        """This version's bytes as a stream to read from; the caller closes it.

        Raises:
            ArtifactNotFoundError: they are not on this machine; says what to do.
        """
        # The file may be written to at any time, so it is checked on a copy; nobody writes to a blob.
        stream = self._checked(self.blob, copied=False) or self._checked(self.local_path, copied=True)
        if stream is None:
            raise ArtifactNotFoundError(self.artifact_path or self.path, reason=self._why_not())
        return stream

    def bytes(self) -> builtins.bytes:
        """This version's bytes.

        Raises:
            ArtifactNotFoundError: they are not on this machine; says what to do.
        """
        with self.open() as stream:
            return stream.read()

    def text(self, encoding: str = "utf-8") -> str:
        """This version as text.

        Raises:
            ArtifactNotFoundError: its bytes are not on this machine.
            ArtifactError: it is no text in that encoding.
        """
        try:
            return self.bytes().decode(encoding)
        except UnicodeDecodeError as error:
            raise ArtifactError(
                f"{self.name!r} ({self.content_type}) is no {encoding} text; name another, or use .bytes()"
            ) from error

    def to_dataframe(self, **options: Any) -> pd.DataFrame:
        """This version as a pandas data frame: CSV, TSV, JSON, JSON lines, Parquet, Excel or Feather.

        Args:
            **options: handed to pandas' reader of the format, such as ``sep`` or ``sheet_name``.

        Raises:
            ArtifactNotFoundError: its bytes are not on this machine.
            ArtifactError: it is no table, or pandas is not installed.
        """
        from .formats import read_table

        return read_table(self.bytes(), self.name, self.content_type, options)

    def save(self, target: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Copy this version to a file of the user's, whole or not at all.

        Args:
            target: a file, or a folder that exists: then it gets the name it has here.
            overwrite: replace a file that lies there.

        Returns:
            The file's path.

        Raises:
            ArtifactNotFoundError: its bytes are not on this machine.
            ArtifactError: something lies there and ``overwrite`` was not given.
            OSError: it cannot be written.
        """
        path = Path(target).expanduser()
        if path.is_dir():
            path /= self.name
        if not overwrite and os.path.lexists(path):
            raise _taken(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        temporary = path.with_name(f".conjure-{secrets.token_hex(8)}.tmp")
        try:
            with self.open() as source, os.fdopen(os.open(temporary, flags, 0o666), "wb") as copy:
                while chunk := source.read(_CHUNK):
                    copy.write(chunk)
                copy.flush()
                os.fsync(copy.fileno())
            if overwrite:
                temporary.replace(path)
            else:
                _place(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        return path

    def __repr__(self) -> str:
        from .formats.preview import card_text
        from .wording import size_text

        version = [] if self.version is None else [f"v{self.version}"]
        return f"<FileRef {card_text(self.path, [self.content_type, size_text(self.size), *version])}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """How it looks in a notebook: see ``formats.preview``."""
        del include, exclude  # the caller picks from what there is
        from .formats.preview import preview, room

        head, note = None, ""
        try:
            head = self._head(room(self.content_type))
        except ArtifactError as error:
            note = str(error)
        return {"text/plain": repr(self), **preview(self.path, self.content_type, self.size, head, note)}

    def _head(self, limit: int) -> builtins.bytes:
        """The first bytes, at most ``limit``, of a blob without reading all of it."""
        with contextlib.suppress(OSError):
            if self.blob is not None and self.blob.stat().st_size == self.size:
                with self.blob.open("rb") as stream:
                    return stream.read(limit)
        with self.open() as stream:
            return stream.read(limit)

    def _checked(self, path: Path | None, *, copied: bool) -> IO[builtins.bytes] | None:
        """A file opened, when its bytes are this version's, else None.

        Args:
            copied: read from a copy that nobody else can write to.
        """
        if path is None or not self.sha256:
            return None
        found = hashlib.sha256()
        with contextlib.ExitStack() as stack:
            try:
                status = path.stat()
                if not stat.S_ISREG(status.st_mode) or status.st_size != self.size:
                    return None
                stream: IO[bytes] = stack.enter_context(path.open("rb"))
                kept = stream
                if copied:
                    kept = cast("IO[bytes]", stack.enter_context(tempfile.SpooledTemporaryFile(_SPOOLED)))
                while chunk := stream.read(_CHUNK):
                    found.update(chunk)
                    if copied:
                        kept.write(chunk)
            except OSError:
                return None
            if found.hexdigest() != self.sha256:
                return None
            if copied:
                stream.close()
            kept.seek(0)
            stack.pop_all()
            return kept

    def _why_not(self) -> str:
        if not self.sha256:
            return "it was too large to be kept (artifact_limit); .local_path has the file as it is now"
        if self.storage_url:
            return "its bytes are not on this machine; resume the session from its storage to fetch them"
        if self.local_path is not None:
            return (
                "its bytes were not kept, and the file has changed or is gone; .local_path says where it was"
            )
        return "its bytes were not kept on this machine"


def _taken(path: Path) -> ArtifactError:
    return ArtifactError(f"{path} exists already; overwrite=True replaces it")


def _place(temporary: Path, path: Path) -> None:
    """Give a file its name, unless something has it by now."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise _taken(path) from None
    except OSError:
        # A file system without hard links: a look and a rename, between which somebody could be faster.
        if os.path.lexists(path):
            raise _taken(path) from None
        temporary.rename(path)
