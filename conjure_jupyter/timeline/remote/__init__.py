"""A session on a remote storage: its log and blobs sent there, brought from there, listed and erased."""

from .erasing import erase
from .finding import RemoteSession, list_remote, parse_session_url
from .lease import Lease
from .mirror import LogMirror
from .naming import blobs_of
from .restoring import RestoreReport, restore

__all__ = [
    "Lease",
    "LogMirror",
    "RemoteSession",
    "RestoreReport",
    "blobs_of",
    "erase",
    "list_remote",
    "parse_session_url",
    "restore",
]
