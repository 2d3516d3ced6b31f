"""The network ``limited`` of a container against a direct connection on this machine: throughput and latency.

Run: ``python -m tests.benchmarks.bench_limited``. The server is a process of its own; the container has no
network, so that what is direct can only be measured beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from conjure_jupyter.engine import engine as background
from conjure_jupyter.executors.docker.connection import Engine
from conjure_jupyter.executors.docker.container import Container, Plan
from conjure_jupyter.executors.docker.limited import LimitedNetwork
from conjure_jupyter.executors.docker.options import DockerOptions
from tests.executors.docker import images
from tests.executors.docker.engine import NoEngineError
from tests.executors.docker.engine import engine as tests_engine

SIZE = 200 * 1024 * 1024
REPEATS = 200
NAME = "files.example.com"

_SERVER = f"""
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
block = bytes(1024 * 1024)
def serve(one):
    with one:
        head = one.recv(65536)
        size = {SIZE} if b"/large" in head else 10
        one.sendall(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n" % size)
        while size > 0: size -= one.send(block[:size])
while True: threading.Thread(target=serve, args=[listener.accept()[0]]).start()
"""

_CLIENT = f"""
import json, os, socket, sys, time
proxy = os.environ.get("HTTP_PROXY")
port = int((proxy or sys.argv[1]).rpartition(":")[2])
def get(path):
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as one:
        url = ("http://{NAME}" if proxy else "") + path
        one.sendall(f"GET {{url}} HTTP/1.1\\r\\nHost: {NAME}\\r\\n\\r\\n".encode())
        size = 0
        while data := one.recv(1 << 20): size += len(data)
    return time.perf_counter() - began, size
get("/small")
small = [get("/small")[0] for _ in range({REPEATS})]
large = [get("/large") for _ in range(3)]
assert all(size > {SIZE} for _, size in large)
print(json.dumps([small, [took for took, _ in large]]))
"""


def rows() -> list[dict[str, Any]]:
    """One row a measure and subject; none where there is no engine."""
    with contextlib.suppress(NoEngineError), tests_engine() as address, _server() as port:
        found = {
            "direct": json.loads(
                subprocess.run(
                    [sys.executable, "-c", _CLIENT, str(port)], capture_output=True, check=True
                ).stdout
            ),
            "limited": background().run(_limited(address, images.base(address), port)),
        }
        return list(_rows(found))
    return []


def _rows(found: dict[str, list[list[float]]]) -> Iterator[dict[str, Any]]:
    for subject, (small, large) in found.items():
        note = "peer" if subject == "direct" else "through the relay and the guarded proxy"
        yield {
            "bench": "network limited",
            "subject": subject,
            "metric": "one small request",
            "median_ms": statistics.median(small) * 1000,
            "note": note,
        }
        yield {
            "bench": "network limited",
            "subject": subject,
            "metric": "200 MB",
            "median_ms": statistics.median(large) * 1000,
            "note": f"{SIZE / 2**20 / statistics.median(large):.0f} MB/s; {note}",
        }


@contextlib.contextmanager
def _server() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


async def _limited(address: str, image: str, port: int) -> Any:
    async def resolve(name: str, _: int) -> list[str]:
        return ["93.184.216.34"]

    async def connect(address: str, _: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", port, limit=64 * 1024)

    docker = await Engine.connect(address)
    plan = Plan(
        options=DockerOptions(image=image, network="limited"),
        mounts=(),
        user="1000:1000",
        session="bench-limited",
    )
    container = await Container.create(docker, plan)
    network = LimitedNetwork([NAME], resolve=resolve, connect=connect)
    try:
        began = time.perf_counter()
        variables = await network.start(container)
        print(f"started in {(time.perf_counter() - began) * 1000:.0f} ms", file=sys.stderr)
        stream = await container.attach(["python3", "-c", _CLIENT], environment=variables)
        found = b""
        while (piece := await stream.read()) is not None:
            found += piece[1]
        stream.close()
        return json.loads(found)
    finally:
        await network.close()
        await container.remove()
        await docker.close()


def main() -> None:
    """Print the table."""
    for row in rows():
        print(f"{row['metric']:20} {row['subject']:8} {row['median_ms']:9.2f} ms  {row['note']}")


if __name__ == "__main__":
    main()
