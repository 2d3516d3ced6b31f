"""Tigris, the object storage of Fly.io: S3's protocol, with options that Fly puts in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from .s3 import S3Storage, default_cache


class TigrisStorage(S3Storage):
    """The files of a session in a Tigris bucket. On a Fly machine it needs no option at all.

    ``BUCKET_NAME``, ``AWS_ENDPOINT_URL_S3``, ``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``, ``FLY_REGION``
    and, for the local copies, ``FLY_VOLUME_PATH`` are read; an option goes before each (ADR-0022).
    """

    name: ClassVar[str] = "tigris"

    environment: ClassVar[Mapping[str, tuple[tuple[str, ...], str | None]]] = {
        **S3Storage.environment,
        "bucket": (("BUCKET_NAME",), None),
        "region": (("FLY_REGION",), "auto"),
        "endpoint": (("AWS_ENDPOINT_URL_S3",), "https://fly.storage.tigris.dev"),
    }

    def _default_cache(self) -> Path:
        volume = os.environ.get("FLY_VOLUME_PATH")
        if volume:
            return Path(volume) / "conjure_sessions"
        return default_cache(self.name, self._bucket_name, self._prefix)
