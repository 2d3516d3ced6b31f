"""From what a user says to a storage: a word, an address, a class, an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, cast

from ..errors import StorageError
from .bucket import Bucket
from .contract import Options, Storage
from .local import LocalStorage
from .memory import MemoryStorage
from .remote import RemoteStorage
from .s3 import CLIENT, RETRY, S3Storage, default_cache
from .tigris import TigrisStorage
from .translation import library, translated

#: What ``storage=`` takes: None, a text, a storage, its class, or its class with options.
StorageSpec: TypeAlias = Storage | type[Storage] | tuple[type[Storage], Options] | str | None

_CLASSES: Mapping[str, type[Storage]] = {
    kind.name: kind for kind in (LocalStorage, MemoryStorage, S3Storage, TigrisStorage)
}

#: Other services that obstore reaches by their address alone.
_SCHEMES = frozenset({"gs", "az", "azure", "abfs", "abfss", "adl", "file"})


class URLStorage(RemoteStorage):
    """The files of a session below an address of any service that obstore knows, such as ``gs://bucket/path``.

    Credentials come from the environment, as obstore documents for each service.
    """

    name: ClassVar[str] = "url"

    def __init__(self, url: str, *, client_options: Mapping[str, Any] | None = None, **options: Any) -> None:
        """Name the address.

        Args:
            url: the session's id is put behind it.
            client_options: further options of obstore's HTTP client.
            options: those of ``RemoteStorage``.
        """
        super().__init__(**options)
        self._url = url.rstrip("/")
        self._client_options = dict(client_options or {})

    def _make_bucket(self, session_id: str) -> Bucket:
        obstore = library()
        url = f"{self._url}/{session_id}"
        options: dict[str, Any] = {"mkdir": True}
        if not url.startswith("file:"):
            options = {"client_options": {**CLIENT, **self._client_options}, "retry_config": dict(RETRY)}
        with translated(url):
            return Bucket(obstore.store.from_url(url, **options), "", url)

    def _default_cache(self) -> Path:
        return default_cache(self._url)


def create_storage(spec: StorageSpec = None, **options: Any) -> Storage:
    """The storage that is meant.

    Args:
        spec: ``None`` or ``"local"``, ``"memory"``, ``"s3://bucket/prefix"``, ``"tigris"``,
            ``"tigris://bucket/prefix"``, another address that obstore knows, a storage, a class, or a class
            and its options.
        options: of the class; they go before those of the spec.

    Raises:
        StorageError: nothing can be made of it; the message says what is missing.
    """
    if isinstance(spec, Storage):
        if options:
            raise StorageError(spec.name, f"a storage that exists takes no options ({', '.join(options)})")
        return spec
    if isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[1], Mapping):
        return _made(spec[0], {**spec[1], **options})
    if isinstance(spec, type):
        return _made(spec, options)
    if spec is not None and not isinstance(spec, str):
        raise StorageError(repr(spec), "no storage; give a text, a Storage, its class, or (class, options)")
    return _from_text((spec or "local").strip(), options)


def _from_text(text: str, options: dict[str, Any]) -> Storage:
    scheme, separator, rest = text.partition("://")
    if not separator:
        if text not in _CLASSES:
            known = ", ".join(sorted(_CLASSES))
            raise StorageError(
                repr(text), f"no storage; there are {known}, and addresses such as s3://bucket/prefix"
            )
        return _made(_CLASSES[text], options)
    if scheme in ("s3", "s3a", "tigris"):
        bucket, _, prefix = rest.partition("/")
        named = {"bucket": bucket, **({"prefix": prefix} if prefix.strip("/") else {})}
        return _made(TigrisStorage if scheme == "tigris" else S3Storage, {**named, **options})
    if scheme in _SCHEMES:
        return _made(URLStorage, {"url": text, **options})
    raise StorageError(
        repr(text), "no storage with such addresses; s3://, tigris://, gs:// and az:// are known"
    )


def _made(kind: type[Storage], options: Mapping[str, Any]) -> Storage:
    if not (isinstance(kind, type) and issubclass(kind, Storage)):
        raise StorageError(repr(kind), "no storage; the class must be one of Storage")
    try:
        return cast("Callable[..., Storage]", kind)(**options)
    except TypeError as error:
        raise StorageError(kind.name, f"a wrong option: {error}") from error


def split_url(url: str) -> tuple[str, str]:
    """The storage and the session's id that a session's address names.

    ``s3://bucket/team/20260101-ab`` gives ``s3://bucket/team`` and ``20260101-ab``.

    Raises:
        StorageError: it names no session.
    """
    scheme, separator, rest = url.rstrip("/").partition("://")
    above, slash, session_id = rest.rpartition("/")
    if not (scheme and separator and above and slash and session_id):
        raise StorageError(repr(url), "no session's address; they look like s3://bucket/prefix/id")
    return f"{scheme}://{above}", session_id
