"""Run in a process of its own: writes until it is killed, and prints what was acknowledged."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from typing import Any

from conjure_jupyter.storage import Backoff, S3Storage


async def main(options: dict[str, Any], start: int) -> None:
    storage = S3Storage(**options, backoff=Backoff(first=0.01, most=0.05))
    await storage.init("s1")
    print("ready", flush=True)

    async def write(key: str, content: str) -> None:
        await storage.write(key, content.encode())
        print(json.dumps([key, content]), flush=True)

    async def publish(key: str, content: str) -> None:
        path = storage.local_path() / key
        path.write_bytes(content.encode())
        await storage.publish(key, ordered=True, new=True, immutable=True)
        print(json.dumps([key, content]), flush=True)

    for number in itertools.count(start):
        await asyncio.gather(
            write(f"blobs/{number}", f"{number} " * 200),
            write("large", f"{number:08}" * 40_000),
            write("state", str(number)),
            write(f"gone/{number}", "1"),
        )
        await publish(f"segment-{number:06}", f"after {number}")
        await storage.delete(f"gone/{number}")
        print(json.dumps([f"gone/{number}", None]), flush=True)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1]), int(sys.argv[2])))
