"""Engines that answer, and what is said of those that do not."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import socket
import ssl
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import docker.errors
import pytest
import requests
import trustme
import urllib3

from conjure_jupyter.errors import ConjureError, ContainerError, DockerImageError, DockerUnavailableError
from conjure_jupyter.executors.docker import connection, translation, wire
from conjure_jupyter.executors.docker.addresses import Address
from conjure_jupyter.executors.docker.connection import Engine
from conjure_jupyter.executors.docker.container import Container, Plan
from conjure_jupyter.executors.docker.options import DockerOptions
from conjure_jupyter.executors.docker.translation import table, translated

from .forwarder import forwarded

HERE = Address("unix:///x/docker.sock", "DOCKER_HOST")


async def echo(engine: Engine, image: str) -> bytes:
    """Make a container behind an engine, and send a word through it."""
    plan = Plan(options=DockerOptions(image=image), mounts=(), user="1000:1000", session="test")
    container = await Container.create(engine, plan)
    try:
        stream = await container.attach(["head", "-c", "5"])
        await stream.write(b"hello")
        piece = await stream.read()
        assert await stream.read() is None
        return b"" if piece is None else piece[1]
    finally:
        await container.remove()


@contextlib.asynccontextmanager
async def server(answer: bytes, path: Path) -> AsyncIterator[str]:
    """Something at a socket that gives one answer to everything."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(serve, path):
        yield f"unix://{path}"


def http(body: object, status: str = "200 OK") -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def test_every_exception_of_the_sdk_is_mapped() -> None:
    theirs = {
        each
        for _, each in inspect.getmembers(docker.errors, inspect.isclass)
        if issubclass(each, Exception) and each.__module__ == "docker.errors"
    }
    assert len(theirs) >= 15
    assert theirs <= {kind for kind, _ in table()}


def test_the_most_specific_is_looked_up_first() -> None:
    kinds = [kind for kind, _ in table()]
    for index, kind in enumerate(kinds):
        assert not any(issubclass(later, kind) for later in kinds[index + 1 :]), kind


def answered(
    status: int, message: str, kind: type[docker.errors.APIError] = docker.errors.APIError
) -> Exception:
    response = requests.Response()
    response.status_code = status
    return kind("said", response=response, explanation=message)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (
            FileNotFoundError(2, "no"),
            DockerUnavailableError,
            r"no engine at unix:///x.*DOCKER_HOST.*start it",
        ),
        (PermissionError(13, "no"), DockerUnavailableError, r"/x/docker\.sock: join its group.*rootless"),
        (
            ConnectionRefusedError(111, "no"),
            DockerUnavailableError,
            r"Nothing answers.*systemctl start docker",
        ),
        (socket.gaierror(-2, "no"), DockerUnavailableError, "host of .* is not known"),
        (TimeoutError(), DockerUnavailableError, "does not answer"),
        (requests.ReadTimeout("slow"), DockerUnavailableError, "does not answer"),
        (ssl.SSLCertVerificationError(1, "self-signed"), DockerUnavailableError, r"TLS.*DOCKER_CERT_PATH"),
        (
            requests.ConnectionError(
                urllib3.exceptions.ProtocolError("Connection aborted.", PermissionError(13, "no"))
            ),
            DockerUnavailableError,
            "join its group",
        ),
        (
            docker.errors.DockerException("Error while fetching server API version: [Errno 13]"),
            DockerUnavailableError,
            "cannot be used",
        ),
        (docker.errors.InvalidVersion("1.12"), DockerUnavailableError, "too old"),
        (docker.errors.TLSParameterError("no key"), DockerUnavailableError, "no key"),
        (
            answered(404, "No such image: a/b:c", docker.errors.ImageNotFound),
            DockerImageError,
            "a/b:c .*build",
        ),
        (answered(404, "No such image: a/b:c"), DockerImageError, "a/b:c .*build"),
        (answered(403, "authorization denied by plugin"), DockerUnavailableError, "does not allow"),
        (
            answered(400, "Client sent an HTTP request to an HTTPS server."),
            DockerUnavailableError,
            "TLS_VERIFY",
        ),
        (answered(400, "client version 1.40 is too old"), DockerUnavailableError, "update"),
        (answered(500, "cannot do this\nat all"), ContainerError, "refused: cannot do this at all"),
        (docker.errors.NullResource("no id"), ContainerError, "no id"),
    ],
)
def test_errors_say_the_next_step(error: Exception, kind: type[ConjureError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught, translated(HERE):
        raise error
    assert "\n" not in caught.value.message
    assert caught.value.__cause__ is error


def test_errors_of_the_program_stay_what_they_are() -> None:
    with pytest.raises(KeyError), translated(HERE):
        raise KeyError("bug")


async def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(DockerUnavailableError, match="no engine at"):
        await Engine.connect(f"unix://{tmp_path}/none.sock")


async def test_a_socket_that_nobody_listens_on(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left.sock"))
    with pytest.raises(DockerUnavailableError, match="Nothing answers"):
        await Engine.connect(f"unix://{tmp_path}/left.sock")


async def test_the_first_that_answers_is_taken(
    docker_engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left.sock"))
    places = [Address(f"unix://{tmp_path}/left.sock"), Address(docker_engine)]
    monkeypatch.setattr(connection, "find", lambda _: places)
    engine = await Engine.connect()
    assert engine.address == docker_engine
    await engine.close()


async def test_something_else_answers(tmp_path: Path) -> None:
    async with server(b"220 mail.example ESMTP\r\n", tmp_path / "s") as address:
        with pytest.raises(DockerUnavailableError, match="broke"):
            await Engine.connect(address)
    async with server(http({"hello": "world"}), tmp_path / "t") as address:
        with pytest.raises(DockerUnavailableError, match="is no Docker engine"):
            await Engine.connect(address)


async def test_an_engine_that_is_too_old(tmp_path: Path) -> None:
    async with server(http({"ApiVersion": "1.38"}), tmp_path / "s") as address:
        with pytest.raises(DockerUnavailableError, match=r"too old: it speaks version 1\.38.*update"):
            await Engine.connect(address)


async def test_an_engine_that_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ANSWER_LIMIT", 0.2)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        with pytest.raises(DockerUnavailableError, match="does not answer"):
            await Engine.connect(f"unix://{tmp_path}/s")
        monkeypatch.setattr(wire, "ANSWER_LIMIT", 0.2)
        with pytest.raises(DockerUnavailableError, match="does not answer"):
            await wire.upgrade(Address(f"unix://{tmp_path}/s"), "/exec/x/start")


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (http({"message": "No such exec instance: x"}, "404 Not Found"), ContainerError, "No such exec"),
        (b"HTTP/1.1 500 Oops\r\n\r\nbare words", ContainerError, "bare words"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", ContainerError, "502 Bad Gateway"),
        (b"", DockerUnavailableError, "closed the connection"),
        (b"SSH-2.0-x\r\n\r\n", DockerUnavailableError, "no HTTP"),
        (b"x" * 2**20, DockerUnavailableError, "no HTTP|closed"),
    ],
)
async def test_a_stream_that_is_refused(
    answer: bytes, kind: type[ConjureError], words: str, tmp_path: Path
) -> None:
    async with server(answer, tmp_path / "s") as address:
        with pytest.raises(kind, match=words):
            await wire.upgrade(Address(address), "/exec/x/start")


async def test_without_the_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    translation.table.cache_clear()
    with pytest.raises(DockerUnavailableError, match=r"pip install 'conjure-jupyter\[docker\]'"):
        await Engine.connect(f"unix://{tmp_path}/none.sock")


@pytest.mark.docker
async def test_a_local_engine(docker_engine: str, docker_image: str) -> None:
    first, second = await Engine.connect(docker_engine), await Engine.connect(docker_engine)
    assert first.id == second.id
    assert not first.remote
    assert first.version >= (1, 40)
    assert await echo(first, docker_image) == b"hello"
    with pytest.raises(DockerImageError, match="no-such-thing:9"):
        await first.call(first.api.inspect_image, "no-such-thing:9")
    await first.close()
    await first.close()
    await second.close()


@pytest.mark.docker
async def test_by_tcp(docker_engine: str, docker_image: str) -> None:
    async with forwarded(docker_engine) as port:
        engine = await Engine.connect(f"tcp://127.0.0.1:{port}")
        assert await echo(engine, docker_image) == b"hello"
        await engine.close()


@pytest.mark.docker
async def test_by_tls(
    docker_engine: str, docker_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, other = trustme.CA(), trustme.CA()
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    theirs.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(theirs)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(theirs)
    ours = authority.issue_cert("user@example.org")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    ours.private_key_pem.write_to_path(tmp_path / "key.pem")
    ours.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    async with forwarded(docker_engine, theirs) as port:
        engine = await Engine.connect(f"tcp://127.0.0.1:{port}")
        assert await echo(engine, docker_image) == b"hello"
        await engine.close()
        other.cert_pem.write_to_path(tmp_path / "ca.pem")
        with pytest.raises(DockerUnavailableError, match="TLS with the engine"):
            await Engine.connect(f"tcp://127.0.0.1:{port}")


#: Stands in for ssh: what comes after the options is run here, with an engine of this machine.
SSH = """#!{python}
import os, socket, sys, threading
command = sys.argv[-1]
open({log!r}, "a").write(" ".join(sys.argv[1:]) + "\\n")
if "stranger" in sys.argv:
    sys.exit("stranger: Permission denied (publickey).")
assert command.endswith("docker system dial-stdio"), command
there = socket.socket(socket.AF_UNIX)
there.connect({socket!r})
def copy():
    while data := os.read(0, 65536):
        there.sendall(data)
    there.shutdown(socket.SHUT_WR)
threading.Thread(target=copy, daemon=True).start()
while data := there.recv(65536):
    os.write(1, data)
"""


@pytest.mark.docker
async def test_by_ssh(
    docker_engine: str, docker_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ssh"
    log = tmp_path / "log"
    program.write_text(
        SSH.format(python=sys.executable, log=str(log), socket=docker_engine.removeprefix("unix://"))
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    engine = await Engine.connect("ssh://me@box.example:2222")
    assert engine.remote
    assert engine.address == "ssh://me@box.example:2222"
    assert await echo(engine, docker_image) == b"hello"
    await engine.close()
    assert "BatchMode=yes" in log.read_text()
    assert "-l me -p 2222 -- box.example docker system dial-stdio" in log.read_text()
    with pytest.raises(DockerUnavailableError, match=r"by ssh \(stranger: Permission denied"):
        await Engine.connect("ssh://stranger")


async def test_an_ssh_socket_is_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ssh").write_text("#!/bin/sh\nexit 255\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    tunnel = connection.Tunnel(Address("ssh://box"))
    folder = tunnel.path.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    tunnel.close()
    assert not folder.exists()
