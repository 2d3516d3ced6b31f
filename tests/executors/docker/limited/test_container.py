"""The network of a real container: its programs reach what is listed through the proxy, and nothing else."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.executors.docker.connection import Engine
from conjure_jupyter.executors.docker.container import Container, Plan
from conjure_jupyter.executors.docker.options import DockerOptions
from tests.artifacts.sites import reply

from .world import FORBIDDEN, NAME, World, world

pytestmark = pytest.mark.docker

MB = 1024 * 1024

#: What programs in the container have at hand. ``said(...)`` is what they tell.
PRELUDE = """
import json, os, socket, ssl, sys, threading, urllib.error, urllib.request
def said(value): print(json.dumps(value))
def opened(url, data=None, name=None):
    context = ssl.create_default_context(cadata=os.environ["TRUST"])
    handlers = [urllib.request.ProxyHandler(), urllib.request.HTTPSHandler(context=context)]
    return urllib.request.build_opener(*handlers).open(url, data, timeout=60)
def text(url, data=None):
    try:
        with opened(url, data) as answer: return answer.read().decode()
    except urllib.error.HTTPError as error: return "%d %s" % (error.code, error.read().decode())
    except OSError as error: return str(error)
"""


@dataclass
class Place:
    """A container with the network."""

    world: World
    container: Container
    variables: dict[str, str]

    async def run(self, program: str, *, proxies: bool = True) -> Any:
        """What a Python program in the container tells last."""
        environment = {**(self.variables if proxies else {}), "TRUST": self.world.trust.decode()}
        stream = await self.container.attach(["python3", "-c", PRELUDE + program], environment=environment)
        found, failed = b"", b""
        while (piece := await stream.read()) is not None:
            if piece[0] == "stdout":
                found += piece[1]
            else:
                failed += piece[1]
        stream.close()
        assert found, failed.decode()
        return json.loads(found)


@pytest.fixture
async def place(docker_engine: str, docker_image: str) -> AsyncIterator[Place]:
    engine = await Engine.connect(docker_engine)
    options = DockerOptions(image=docker_image, network="limited")
    plan = Plan(options=options, mounts=(), user="1000:1000", session="limited-network")
    container = await Container.create(engine, plan)
    try:
        async with world() as found:
            network = found.network()
            try:
                yield Place(found, container, await network.start(container))
            finally:
                await network.close()
    finally:
        await container.remove()
        await engine.close()


async def test_urllib_reaches_what_is_listed_and_is_told_of_what_is_not(place: Place) -> None:
    assert await place.run(f"said(text('http://{NAME}/'))") == "public"
    assert await place.run(f"said(text('https://{NAME}/'))") == "public"
    for scheme in ("http", "https"):
        told = await place.run(f"said(text('{scheme}://{FORBIDDEN}/'))")
        assert "403" in told
        assert f"host {FORBIDDEN} is not on network_hosts; the user can add it" in told
    assert len(place.world.told) == 1
    for url in ("http://169.254.169.254/", "http://127.0.0.2/", "http://[::1]:80/", "http://2130706433/"):
        assert (await place.run(f"said(text({url!r}))")).startswith("40")
    assert {address for address, _ in place.world.connected} == {"93.184.216.34"}


async def test_a_program_that_ignores_proxies_has_no_network_at_all(place: Place) -> None:
    program = """
failed = []
for family, address in [(2, "93.184.216.34"), (2, "172.17.0.1"), (2, "10.0.0.1"), (10, "2606:4700::1111")]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            with socket.socket(family, kind) as one:
                one.settimeout(5); one.connect((address, 53))
        except OSError as error: failed.append(str(error))
try: socket.getaddrinfo("%s", 80)
except OSError as error: failed.append(str(error))
said([failed, os.listdir("/sys/class/net")])
"""
    failed, interfaces = await place.run(program % NAME)
    assert len(failed) == 9
    assert set(interfaces) <= {
        "lo",
        "tunl0",
        "sit0",
        "ip6tnl0",
        "gre0",
        "gretap0",
        "erspan0",
        "ip_vti0",
        "ip6_vti0",
    }
    assert await place.run(f"said(text('http://{NAME}/'))", proxies=False) != "public"
    assert place.world.connected == []


async def test_a_tunnel_is_for_the_host_it_was_asked_for(place: Place) -> None:
    program = """
def through(target, name):
    one = socket.create_connection(("127.0.0.1", int(os.environ["HTTP_PROXY"].rpartition(":")[2])))
    one.sendall(b"CONNECT %%s HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" %% target.encode())
    head = one.recv(1000)
    if b" 200 " not in head: return head.split(b"\\r\\n")[0].decode()
    context = ssl.create_default_context(cadata=os.environ["TRUST"])
    try:
        with context.wrap_socket(one, server_hostname=name) as secure:
            secure.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            return secure.recv(1000)[:12].decode()
    except OSError as error: return str(error)
said([through("%s:443", "%s"), through("%s:443", "%s"), through("%s:22", "%s")])
"""
    good, fronted, other_port = await place.run(program % (NAME, NAME, NAME, FORBIDDEN, NAME, NAME))
    assert good == "HTTP/1.1 200"
    assert "unrecognized" in fronted.lower()
    assert other_port.startswith("HTTP/1.1 403 port 22")
    assert len(place.world.secure.requests) == 1


def highest_memory(pid: str = "self") -> int:
    """The most memory that a process ever had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


#: The most memory that the relay ever had, in kB.
RELAY = """
def relay():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try: words = open("/proc/%s/cmdline" % pid).read().split("\\0")
        except OSError: continue
        if "-I" in words and pid != str(os.getpid()): return pid
def highest():
    lines = open("/proc/%s/status" % relay()).read().splitlines()
    return int([line for line in lines if line.startswith("VmHWM")][0].split()[1])
"""


async def test_two_hundred_megabytes_come_down_and_fifty_go_up_in_bounded_memory(place: Place) -> None:
    block = bytes(MB)

    async def much(writer: Any) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {200 * MB}\r\n\r\n".encode())
        for _ in range(200):
            writer.write(block)
            await writer.drain()

    place.world.plain.answer = lambda request: much
    place.world.secure.answer = lambda request: much
    before = highest_memory()
    for scheme in ("http", "https"):
        program = f"""{RELAY}
total = 0
with opened("{scheme}://{NAME}/") as answer:
    while True:
        data = answer.read({MB})
        total += len(data)
        if not data: break
said([total, highest()])
"""
        total, relay = await place.run(program)
        assert total == 200 * MB
        assert relay < 64 * 1024
    received = 0

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        await reader.readuntil(b"\r\n\r\n")
        while received < 50 * MB:
            received += len(await reader.read(MB))
        writer.write(reply(b"thanks"))
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    place.world.ports[80] = server.sockets[0].getsockname()[1]
    async with server:
        assert await place.run(f"said(text('http://{NAME}/', bytes({50 * MB})))") == "thanks"
    assert received == 50 * MB
    assert highest_memory() - before < 64 * MB


async def test_fifty_at_once(place: Place) -> None:
    program = f"""
found = {{}}
def one(number): found[number] = text("https://{NAME}/")
threads = [threading.Thread(target=one, args=[number]) for number in range(50)]
for each in threads: each.start()
for each in threads: each.join()
said(sorted(found.values()))
"""
    assert await place.run(program) == ["public"] * 50


async def test_a_relay_that_a_tool_kills_comes_back(place: Place) -> None:
    program = f"""{RELAY}
import signal, time
found = []
for _ in range(3):
    first = relay()
    os.kill(int(first), signal.SIGKILL)
    deadline = time.monotonic() + 30
    while relay() in (None, first) and time.monotonic() < deadline: time.sleep(0.05)
    while (got := text("http://{NAME}/")) != "public" and time.monotonic() < deadline: time.sleep(0.05)
    found.append(got)
said(found)
"""
    assert await place.run(program) == ["public"] * 3
    assert place.world.told == []


async def test_a_tool_that_puts_frames_into_the_relays_output_ends_the_network_only(place: Place) -> None:
    """It runs as the same user, so it can; the host takes it for what it is."""
    program = f"""{RELAY}
try:
    with open("/proc/%s/fd/1" % relay(), "wb", buffering=0) as out: out.write(b"\\xff" * 1000)
    said("written")
except OSError as error: said(str(error))
"""
    if await place.run(program) == "written":
        while not place.world.told:  # noqa: ASYNC110  the network has no other way to say so
            await asyncio.sleep(0.01)
        assert "something else than its relay answered" in place.world.told[0]
    assert await place.run("said(1 + 1)") == 2
