"""Amazon S3, and every service that speaks its protocol."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import StorageError
from .bucket import Bucket
from .remote import PATIENCE, RemoteStorage
from .translation import library, translated

if TYPE_CHECKING:
    from .queue import Backoff

#: What a client does by itself. A request ends after ``timeout``, which bounds how slowly a part of a large
#: file may travel; a stumble is tried again for a few seconds, and all else is the queue's to wait for.
CLIENT: Mapping[str, Any] = {"timeout": "120s", "connect_timeout": "5s"}
RETRY: Mapping[str, Any] = {
    "max_retries": 2,
    "retry_timeout": dt.timedelta(seconds=10),
    "backoff": {
        "init_backoff": dt.timedelta(milliseconds=100),
        "max_backoff": dt.timedelta(seconds=1),
        "base": 2,
    },
}


class S3Storage(RemoteStorage):
    """The files of a session in an S3 bucket, under ``prefix`` and the session's id."""

    name: ClassVar[str] = "s3"

    def __init__(
        self,
        *,
        bucket: str | None = None,
        prefix: str = "sessions/",
        region: str | None = None,
        endpoint: str | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        session_token: str | None = None,
        cache_path: str | Path | None = None,
        client_options: Mapping[str, Any] | None = None,
        patience: float = PATIENCE,
        backoff: Backoff | None = None,
    ) -> None:
        """Name the bucket; nothing is asked of it yet.

        What is not given comes from the environment: ``S3_BUCKET``, ``AWS_REGION``, ``AWS_ENDPOINT_URL_S3``,
        ``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``, ``AWS_SESSION_TOKEN``, or a cloud machine's role.

        Args:
            bucket: its name.
            prefix: what all keys begin with; the session's id follows.
            region: of the bucket; ``us-east-1`` when nothing says otherwise.
            endpoint: address of a service other than Amazon's; ``http://`` is taken as it is.
            access_key: identifier of the credentials.
            secret_key: their secret.
            session_token: for credentials that end.
            cache_path: as ``RemoteStorage`` says; the user's data folder when not given.
            client_options: further options of obstore's HTTP client, such as ``proxy_url``.
            patience: seconds without success after which ``sync_to_remote`` gives up.
            backoff: how long the queue waits after failures.

        Raises:
            StorageError: no bucket is named, or what is named can be none.
        """
        super().__init__(cache_path=cache_path, patience=patience, backoff=backoff)
        self._bucket_name = self._checked_bucket(bucket or self._from_environment("bucket"))
        self._prefix = prefix.strip("/")
        self._region = region or self._from_environment("region")
        self._endpoint = endpoint or self._from_environment("endpoint")
        self._config = {
            "access_key_id": access_key or self._from_environment("access_key"),
            "secret_access_key": secret_key or self._from_environment("secret_key"),
            "session_token": session_token or (None if access_key else os.environ.get("AWS_SESSION_TOKEN")),
        }
        self._client_options = dict(client_options or {})

    #: Option, the variables it is taken from, and what it is else.
    environment: ClassVar[Mapping[str, tuple[tuple[str, ...], str | None]]] = {
        "bucket": (("S3_BUCKET",), None),
        "region": (("AWS_REGION", "AWS_DEFAULT_REGION"), "us-east-1"),
        "endpoint": (("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), None),
        "access_key": (("AWS_ACCESS_KEY_ID",), None),
        "secret_key": (("AWS_SECRET_ACCESS_KEY",), None),
    }

    def _from_environment(self, option: str) -> str | None:
        names, default = self.environment[option]
        return next((os.environ[name] for name in names if os.environ.get(name)), default)

    def _checked_bucket(self, bucket: str | None) -> str:
        if not bucket:
            variable = self.environment["bucket"][0][0]
            reason = f"no bucket is named; set {variable}, or give bucket= or storage='{self.name}://bucket'"
            raise StorageError(self.name, reason)
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}", bucket):
            raise StorageError(self.name, f"{bucket!r} cannot be a bucket's name")
        return bucket

    def _make_bucket(self, session_id: str) -> Bucket:
        library()
        from obstore.store import S3Store

        client: Any = {**CLIENT, **self._client_options}
        if self._endpoint and self._endpoint.startswith("http://"):
            client.setdefault("allow_http", True)
        config: Any = {name: value for name, value in self._config.items() if value}
        if self._endpoint:
            config["aws_endpoint_url_s3"] = self._endpoint  # the variable of that name beats "endpoint"
        retry: Any = dict(RETRY)
        with translated(f"s3://{self._bucket_name}"):
            store = S3Store(
                self._bucket_name,
                region=self._region or "us-east-1",
                config=config,
                client_options=client,
                retry_config=retry,
            )
        path = "/".join(part for part in (self._prefix, session_id) if part)
        return Bucket(store, path, f"s3://{self._bucket_name}/{path}")

    def _default_cache(self) -> Path:
        return default_cache("s3", self._bucket_name, self._prefix)


def default_cache(*parts: str) -> Path:
    """The folder of local copies of one bucket and prefix.

    It holds what waits to be sent, so it is none that a restart of the machine empties.
    """
    from platformdirs import user_data_path

    name = re.sub(r"[^A-Za-z0-9._-]+", "_", "-".join(part for part in parts if part))
    return user_data_path("conjure", appauthor=False) / "copies" / name.lstrip(".")[:200]
