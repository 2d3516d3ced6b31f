"""Sending and bringing through a storage, beside bare obstore and boto3's transfer manager, at a real server.

Run: ``python -m tests.benchmarks.bench_storage``. The goals: 100 MB within 10 % of bare obstore, and 1,000
small files at least five times as fast as one after the other. "Published" is a file that lies in the
session's folder and whose digest is known, as blobs are; "written" is one that a storage keeps first, and
keeps again for the queue. Both end when the service has confirmed. "Read" leaves a file in the local copy and
returns its bytes; "synced" leaves it there and computes its digest. Our downloads last when they are done, so
they are measured against a peer's that do. A server on the same machine is no distance away; further rows
put 10 ms in between.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from conjure_jupyter.engine import engine
from conjure_jupyter.storage import Bucket, S3Storage
from tests.s3 import Server, rclone

from .distance import distant

SIZE, FILES, SMALL = 100_000_000, 1_000, 2_000
REPEATS, REPEATS_FAR = 7, 3
GOAL, GOAL_SMALL = 1.1, 5.0
DISTANCE = 0.01

PEER = "obstore"


def rows(repeats: int = REPEATS) -> list[dict[str, Any]]:
    """One row a direction and subject: medians in milliseconds, the subjects taking turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with rclone(folder / "server") as server:
            found = engine().run(_large(server, folder, repeats))
            found += engine().run(_small(server, folder, repeats, server.port, "no distance"))
            with distant(server.port, DISTANCE / 2) as port:
                label = f"{DISTANCE * 1000:.0f} ms away"
                found += engine().run(_small(server, folder, min(repeats, REPEATS_FAR), port, label))
    return found


async def _large(server: Server, folder: Path, repeats: int) -> list[dict[str, Any]]:
    source = folder / "source"
    source.write_bytes(os.urandom(SIZE))
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    up: dict[str, list[float]] = {}
    down: dict[str, list[float]] = {}
    for round_ in range(repeats + 1):  # the first warms up
        storage = await _opened(server, folder, f"large-{round_}")
        bare = _bare(server)
        client = await asyncio.to_thread(_boto3, server)
        away = await _opened(server, folder, f"large-{round_}", "away")
        blob = storage.local_path() / "published"
        blob.write_bytes(source.read_bytes())

        async def published(storage: S3Storage = storage) -> None:
            await storage.publish("published", immutable=True, sha256=digest)
            await storage.sync_to_remote()

        async def written(storage: S3Storage = storage) -> None:
            await storage.write("written", source)
            await storage.sync_to_remote()

        async def boto3_up(client: Any = client) -> None:
            await asyncio.to_thread(client.upload_file, str(source), "test", "boto3")

        async def boto3_down(client: Any = client) -> None:
            await asyncio.to_thread(client.download_file, "test", "boto3", str(folder / "boto3"))

        timed = {
            PEER: lambda bare=bare: _put(bare, source),
            "boto3 transfer manager": boto3_up,
            "conjure, published": published,
            "conjure, written": written,
        }
        await _take_turns(timed, up, round_)

        await storage.delete("written")
        await storage.sync_to_remote()
        farther = await _opened(server, folder, f"large-{round_}", "farther")

        async def synced(farther: S3Storage = farther) -> None:
            await farther.sync_from_remote()

        timed = {
            f"{PEER}, to memory": lambda bare=bare: _get(bare),
            f"{PEER}, to a file": lambda bare=bare: _get_to(bare, folder / "bare"),
            f"{PEER}, to a file, fsync": lambda bare=bare: _get_to(bare, folder / "bare", sync=True),
            "boto3 transfer manager": boto3_down,
            "conjure, to a file": lambda bare=bare: Bucket(bare, "", "").get_to_file("k", folder / "ours"),
            "conjure, read": lambda away=away: away.read("published"),
            "conjure, synced": synced,
        }
        await _take_turns(timed, down, round_)
        for each in (away, farther):
            await each.close()
        await storage.cleanup()
    size = f"{SIZE // 1_000_000} MB"
    return [
        *_as_rows(f"{size} up", up, PEER, lambda ratio: f"{ratio:.2f}x, goal {GOAL}x"),
        *_as_rows(
            f"{size} down", down, f"{PEER}, to a file, fsync", lambda ratio: f"{ratio:.2f}x, goal {GOAL}x"
        ),
    ]


async def _small(server: Server, folder: Path, repeats: int, port: int, label: str) -> list[dict[str, Any]]:
    times: dict[str, list[float]] = {}
    content = {f"f{number:04}": os.urandom(SMALL) for number in range(FILES)}
    for round_ in range(repeats):
        storage = await _opened(server, folder, f"small-{port}-{round_}", port=port)
        bare = _bare(server, port)

        async def one_at_a_time(bare: Any = bare) -> None:
            for key, data in content.items():
                await bare.put_async(key, data)

        async def written(storage: S3Storage = storage) -> None:
            await asyncio.gather(*(storage.write(key, data) for key, data in content.items()))
            await storage.sync_to_remote()

        await _take_turns(
            {f"{PEER}, one at a time": one_at_a_time, "conjure, written": written}, times, round_ + 1
        )
        for key, data in content.items():
            (storage.local_path() / f"p{key}").write_bytes(data)

        async def published(storage: S3Storage = storage) -> None:
            await asyncio.gather(*(storage.publish(f"p{key}", immutable=True) for key in content))
            await storage.sync_to_remote()

        await _take_turns({"conjure, published": published}, times, round_ + 1)
        await storage.cleanup()

    def note(ratio: float) -> str:
        return f"{1 / ratio:.1f}x as fast, goal {GOAL_SMALL:.0f}x"

    return _as_rows(f"{FILES:,} files, {label}", times, f"{PEER}, one at a time", note)


async def _opened(
    server: Server, folder: Path, session: str, cache: str = "copies", *, port: int | None = None
) -> S3Storage:
    storage = S3Storage(**server.options(port=port), cache_path=folder / cache)
    await storage.init(session)
    return storage


def _bare(server: Server, port: int | None = None) -> Any:
    """A store of obstore's own at the same address, with its own defaults."""
    from obstore.store import S3Store

    options = server.options(port=port)
    return S3Store(
        options["bucket"],
        prefix="bare",
        endpoint=options["endpoint"],
        access_key_id=options["access_key"],
        secret_access_key=options["secret_key"],
        region=options["region"],
        client_options={"allow_http": True},
    )


async def _put(store: Any, source: Path) -> None:
    await store.put_async("k", source)


async def _get(store: Any) -> None:
    await (await store.get_async("k")).buffer_async()


async def _get_to(store: Any, path: Path, *, sync: bool = False) -> None:
    with path.open("wb") as file:
        async for chunk in (await store.get_async("k")).stream():
            file.write(chunk)
        if sync:
            file.flush()
            os.fsync(file.fileno())


def _boto3(server: Server) -> Any:
    import boto3

    options = server.options()
    return boto3.client(
        "s3",
        endpoint_url=options["endpoint"],
        aws_access_key_id=options["access_key"],
        aws_secret_access_key=options["secret_key"],
        region_name=options["region"],
    )


async def _take_turns(
    subjects: dict[str, Callable[[], Awaitable[Any]]], times: dict[str, list[float]], round_: int
) -> None:
    names = [*subjects]
    for name in names if round_ % 2 else names[::-1]:
        started = time.perf_counter()
        await subjects[name]()
        took = time.perf_counter() - started
        if round_:
            times.setdefault(name, []).append(took)


def _as_rows(
    metric: str, times: dict[str, list[float]], peer: str, note: Callable[[float], str]
) -> list[dict[str, Any]]:
    medians = {name: statistics.median(each) * 1000 for name, each in times.items()}
    return [
        {
            "bench": "object storage",
            "subject": name,
            "metric": metric,
            "median_ms": took,
            "note": note(took / medians[peer]) if name.startswith("conjure") else "peer",
        }
        for name, took in sorted(medians.items(), key=lambda each: each[0].startswith("conjure"))
    ]


def main() -> None:
    """Print the table."""
    for row in rows():
        print(f"{row['metric']:28} {row['subject']:28} {row['median_ms']:10.1f} ms  {row['note']}")


if __name__ == "__main__":
    main()
