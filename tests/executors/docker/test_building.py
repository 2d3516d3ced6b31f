from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import docker
import pytest

from conjure_jupyter.errors import DockerImageError
from conjure_jupyter.executors.docker.advice import advice
from conjure_jupyter.executors.docker.building import Build

from .builds import OFFLINE, archive, built, connected

ADVICE = {
    "E: Unable to fetch: Could not handshake: certificate verification failed": "--ca-bundle",
    "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]'))": "--ca-bundle",
    "curl: (60) SSL certificate problem: self-signed certificate in chain": "--ca-bundle",
    "x509: certificate signed by unknown authority": "docker load",
    "Cannot connect to proxy. 407 Proxy Authentication Required": "HTTP_PROXY",
    "Temporary failure resolving 'deb.debian.org'": "APT_MIRROR",
    "Failed to establish a new connection: [Errno 101] Network is unreachable": "HTTPS_PROXY",
    'Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io: no such host': "--base",
    "dial tcp 10.0.0.1:443: i/o timeout": "network",
    "pull access denied for nothing, repository does not exist": "--base",
    "manifest for ubuntu:99 not found: manifest unknown": "--base",
    "write /usr/lib/x: no space left on device": "docker system prune",
    "the base image has no apt-get: it must be a Debian or an Ubuntu": "--base",
    "E: Unable to locate package nodejs": "--base",
    "ERROR: No matching distribution found for pyarrow": "PIP_INDEX_URL",
    "something nobody thought of": "last lines",
}


@pytest.mark.parametrize(("output", "hint"), ADVICE.items())
def test_a_failure_says_what_to_do(output: str, hint: str) -> None:
    assert hint in advice(f"before\n{output}\nafter")


@pytest.fixture
async def tag(docker_engine: str) -> AsyncIterator[str]:
    """A name for an image, which is removed after the test."""
    name = f"conjure-test-build:{uuid.uuid4().hex}"
    yield name
    async with connected(docker_engine) as engine:
        try:
            await engine.call(engine.api.remove_image, name)
        except DockerImageError:
            return


@pytest.mark.docker
async def test_lines_come_without_control_characters(docker_engine: str, docker_image: str, tag: str) -> None:
    script = (
        r"printf 'one\ntw'; printf 'o\r50%%\rdone\n'; printf '\033[1;31mred\033[0m\a\n'; echo notice: lacks x"
    )
    lines: list[str] = []
    build = Build(tag, lines.append)
    async with connected(docker_engine) as engine:
        context = archive({"Dockerfile": f"FROM {docker_image}\nRUN {script}\n"})
        image = await build.run(engine, context, dict(OFFLINE))
        assert image == (await engine.call(engine.api.inspect_image, tag))["Id"]
    found = [line for line in lines if line in ("one", "two", "50%", "done", "red")]
    assert found == ["one", "two", "50%", "done", "red"]
    assert lines[0].startswith("Step 1/2 : FROM")
    assert build.notices == ["lacks x"]


@pytest.mark.docker
async def test_a_failed_step_is_named_with_its_last_lines(
    docker_engine: str, docker_image: str, tag: str
) -> None:
    dockerfile = f"FROM {docker_image}\nRUN echo earlier\nRUN seq 100; echo the reason; exit 7\nRUN true\n"
    with pytest.raises(DockerImageError) as caught:
        await built(docker_engine, tag, dockerfile)
    assert caught.value.image == tag
    first, *rest = str(caught.value).splitlines()
    assert "step 3 of 4 (RUN seq 100;" in first
    assert "    the reason" in rest
    assert "    100" in rest
    assert "    1" not in rest
    assert "earlier" not in "".join(rest)
    assert "7" in rest[-1]


@pytest.mark.docker
@pytest.mark.parametrize(
    "dockerfile", ["FROM conjure-test/no-such-image:never\n", "FROM NoSuch:\n", "NONSENSE\n", ""]
)
async def test_what_cannot_be_built_is_an_error_of_the_image(
    docker_engine: str, tag: str, dockerfile: str
) -> None:
    with pytest.raises(DockerImageError, match="could not be built"):
        await built(docker_engine, tag, dockerfile)


@pytest.mark.docker
async def test_no_line_and_no_error_shows_a_secret(docker_engine: str, docker_image: str, tag: str) -> None:
    lines: list[str] = []
    build = Build(tag, lines.append, ("hunter22",))
    dockerfile = f"FROM {docker_image}\nARG URL\nRUN echo to $URL; exit 1\n"
    async with connected(docker_engine) as engine:
        options = {**OFFLINE, "buildargs": {"URL": "https://me:hunter22@index.example"}}
        with pytest.raises(DockerImageError) as caught:
            await build.run(engine, archive({"Dockerfile": dockerfile}), options)
    assert "to https://me:***@index.example" in lines
    assert "hunter22" not in str(caught.value) + "".join(lines)


@pytest.mark.docker
async def test_cancelling_ends_the_build_on_the_engine(
    docker_engine: str, docker_image: str, tag: str
) -> None:
    started = asyncio.Event()

    def on_line(line: str) -> None:
        if line == "it runs":
            started.set()

    mark = uuid.uuid4().hex
    context = archive({"Dockerfile": f"FROM {docker_image}\nRUN echo it runs; sleep 600; echo {mark}\n"})
    async with connected(docker_engine) as engine:
        task = asyncio.ensure_future(Build(tag, on_line).run(engine, context, dict(OFFLINE)))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(60):
            # The engine ends it after the connection, in its own time.
            while any(  # noqa: ASYNC110
                mark in each["Command"] for each in await engine.call(engine.api.containers, all=True)
            ):
                await asyncio.sleep(0.1)
        with pytest.raises(DockerImageError):
            await engine.call(engine.api.inspect_image, tag)
        assert engine.api.hooks["response"] == []


@pytest.mark.docker
async def test_an_engine_that_stops_in_the_middle_does_not_pass_an_old_image_off(
    docker_engine: str, docker_image: str, tag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await built(docker_engine, tag, f"FROM {docker_image}\nRUN true\n")
    monkeypatch.setattr(
        docker.APIClient, "build", lambda self, **options: iter([{"stream": "Step 1/2 : FROM x\n"}])
    )
    with pytest.raises(DockerImageError, match=r"(?s)step 1 of 2 .* without an image"):
        await built(docker_engine, tag, "FROM x\n")
