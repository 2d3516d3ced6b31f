"""Artifacts: what the user gave, what Claude made, and what can be fetched, each by a name that lasts.

========================== =========================================================
``registry``               names for files, URLs, bytes and values
``resolver``, ``uris``     from ``skill://``, ``file://`` and ``https://`` to bytes
``fetch``                  URLs, without reaching what is not theirs to reach
``blobs``                  bytes by digest; the working directory is a checkout of them
``detect``, ``values``     what a file is, and a Python value as a file
``section``                what the prompt says of it all
``service``                what tools and notebook do with it
========================== =========================================================
"""

from __future__ import annotations

from .blobs import BlobStore
from .detect import content_type
from .naming import check_name, env_name, with_extension
from .registry import ArtifactRegistry
from .resolver import ArtifactResolver, Resolved, URLFetcher
from .section import Asset, artifacts_section, skill_assets
from .security import validate_file_path
from .uris import ArtifactURI, is_uri, parse_uri, uris_in_words
from .values import Serialised, serialise

__all__ = [
    "ArtifactRegistry",
    "ArtifactResolver",
    "ArtifactURI",
    "Asset",
    "BlobStore",
    "Resolved",
    "Serialised",
    "URLFetcher",
    "artifacts_section",
    "check_name",
    "content_type",
    "env_name",
    "is_uri",
    "parse_uri",
    "serialise",
    "skill_assets",
    "uris_in_words",
    "validate_file_path",
    "with_extension",
]
