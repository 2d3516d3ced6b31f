"""Run in a process of its own: fills the disk under a storage, makes room, and prints what it saw."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path

from conjure_jupyter.errors import StorageError
from conjure_jupyter.storage import LocalStorage, S3Storage, Storage


def make(kind: str, base: Path) -> Storage:
    if kind == "local":
        return LocalStorage(base_path=base)
    nobody = {"endpoint": "http://127.0.0.1:9", "access_key": "a", "secret_key": "b"}
    return S3Storage(bucket="test", cache_path=base, **nobody)  # type: ignore[arg-type]


async def main(base: Path, limit: str, kind: str) -> None:
    storage = make(kind, base)
    await storage.init("s1")
    await storage.write("a", b"old" * 5000)
    ballast = base / "ballast"
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    else:
        try:
            with ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 1000)
        except OSError:
            pass
    error = ""
    pending = storage.pending
    for content in (b"new" * 20_000, b"new" * 300_000):
        try:
            await storage.write("a", content)
        except StorageError as caught:
            error = str(caught)
    old = (await storage.read("a")).decode()
    assert storage.pending == pending
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    else:
        ballast.unlink()
    await storage.write("a", b"new" * 5000)
    after = (await storage.read("a")).decode()
    left = [str(path) for path in storage.local_path().rglob("*") if path.suffix in (".tmp", ".data")]
    await storage.close()
    print(json.dumps({"old": old, "error": error, "after": after, "left": left}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
