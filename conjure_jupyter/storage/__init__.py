"""Where the keys and bytes of sessions are kept."""

from .bucket import Bucket, Item
from .callbacks import FileCallbacks
from .contract import FileCallback, FileEvent, Options, Storage
from .create import StorageSpec, URLStorage, create_storage, split_url
from .keys import check_key
from .local import LocalStorage
from .memory import MemoryStorage
from .queue import Backoff, UploadQueue
from .remote import RemoteStorage
from .s3 import S3Storage
from .tigris import TigrisStorage

__all__ = [
    "Backoff",
    "Bucket",
    "FileCallback",
    "FileCallbacks",
    "FileEvent",
    "Item",
    "LocalStorage",
    "MemoryStorage",
    "Options",
    "RemoteStorage",
    "S3Storage",
    "Storage",
    "StorageSpec",
    "TigrisStorage",
    "URLStorage",
    "UploadQueue",
    "check_key",
    "create_storage",
    "split_url",
]
