"""Where the engine is looked for, and in which order."""

from __future__ import annotations

import hashlib
import json
import socket
from pathlib import Path

import pytest

from conjure_jupyter.errors import DockerUnavailableError
from conjure_jupyter.executors.docker import addresses
from conjure_jupyter.executors.docker.addresses import Address, find


def write_context(
    folder: Path, name: str, host: str, *, certificates: bool = False, **endpoint: object
) -> None:
    key = hashlib.sha256(name.encode()).hexdigest()
    meta = folder / "contexts/meta" / key
    meta.mkdir(parents=True)
    described = {"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host, **endpoint}}}
    (meta / "meta.json").write_text(json.dumps(described))
    if certificates:
        tls = folder / "contexts/tls" / key / "docker"
        tls.mkdir(parents=True)
        for file in ("ca.pem", "cert.pem", "key.pem"):
            (tls / file).write_text("")


def write_config(folder: Path, **config: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))


def listen(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    return path


def test_the_order_of_what_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    write_config(folder, currentContext="current")
    for name in ("current", "chosen"):
        write_context(folder, name, f"tcp://{name}:1")
    environment = {
        "DOCKER_HOST": "unix:///host.sock",
        "DOCKER_CONTEXT": "chosen",
        "DOCKER_CONFIG": str(folder),
    }
    assert find("unix:///asked.sock", environment, tmp_path)[0].url == "unix:///asked.sock"
    assert find(None, environment, tmp_path)[0].url == "unix:///host.sock"
    del environment["DOCKER_HOST"]
    assert find(None, environment, tmp_path)[0].url == "tcp://chosen:1"
    del environment["DOCKER_CONTEXT"]
    found = find(None, environment, tmp_path)
    assert [(each.url, each.origin) for each in found] == [
        ("tcp://current:1", "the Docker context 'current'")
    ]


def test_sockets_that_are_there_are_found_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, runtime = tmp_path / "h", tmp_path / "r"
    usual = addresses.usual_sockets({"XDG_RUNTIME_DIR": str(runtime)}, home)
    ours = [path for path in usual if path.is_relative_to(tmp_path)]
    assert len(ours) >= 9
    rootless, podman, orbstack = (
        listen(path)
        for path in (
            runtime / "docker.sock",
            runtime / "podman/podman.sock",
            home / ".orbstack/run/docker.sock",
        )
    )
    (runtime / "podman/other").write_text("")
    found = [each.path for each in find(None, {"XDG_RUNTIME_DIR": str(runtime)}, home)]
    assert [path for path in found if path.is_relative_to(tmp_path)] == [rootless, orbstack, podman]


def test_nothing_there_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "usual_sockets", lambda *_: [tmp_path / "none.sock"])
    with pytest.raises(DockerUnavailableError, match=r"install Docker or Podman.*DOCKER_HOST"):
        find(None, {}, tmp_path)


def test_an_unknown_context_lists_the_known(tmp_path: Path) -> None:
    write_context(tmp_path / ".docker", "laptop", "unix:///x.sock")
    with pytest.raises(DockerUnavailableError, match=r"'gone' \(DOCKER_CONTEXT\).*default, laptop"):
        find(None, {"DOCKER_CONTEXT": "gone"}, tmp_path)


def test_contexts_of_the_current_folder_are_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_context(tmp_path, "planted", "tcp://elsewhere:1")
    with pytest.raises(DockerUnavailableError, match="'planted'"):
        find(None, {"DOCKER_CONTEXT": "planted"}, tmp_path / "home")


def test_a_broken_configuration_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(DockerUnavailableError, match=r"config\.json is no JSON"):
        find(None, {"DOCKER_CONFIG": str(tmp_path)}, tmp_path)


def test_the_certificates_of_a_context(tmp_path: Path) -> None:
    write_context(tmp_path, "safe", "tcp://far:2376", certificates=True)
    write_context(tmp_path, "lax", "tcp://far:2376", certificates=True, SkipTLSVerify=True)
    safe, lax = (
        find(None, {"DOCKER_CONFIG": str(tmp_path), "DOCKER_CONTEXT": name}, tmp_path)[0].tls
        for name in ("safe", "lax")
    )
    assert safe is not None
    assert lax is not None
    assert safe.ca is not None
    assert safe.cert is not None
    assert safe.verify
    assert not lax.verify


@pytest.mark.parametrize(
    ("variables", "verified", "port"),
    [
        ({}, None, 2375),
        ({"DOCKER_TLS_VERIFY": ""}, None, 2375),
        ({"DOCKER_TLS_VERIFY": "1"}, True, 2376),
        ({"DOCKER_TLS": "1"}, False, 2376),
        ({"DOCKER_CERT_PATH": "/nowhere"}, False, 2376),
    ],
)
def test_tls_of_the_environment(
    variables: dict[str, str], verified: bool | None, port: int, tmp_path: Path
) -> None:
    found = find(None, {"DOCKER_HOST": "tcp://far", **variables}, tmp_path)[0]
    assert (None if found.tls is None else found.tls.verify, found.port) == (verified, port)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("/run/x.sock", "unix:///run/x.sock"),
        ("http+unix:///run/x.sock", "unix:///run/x.sock"),
        ("tcp://[::1]:2375", "tcp://[::1]:2375"),
        ("box:99", "tcp://box:99"),
        ("http://box", "tcp://box:2375"),
        ("https://box", "tcp://box:2376"),
        ("ssh://me@box:22/", "ssh://me@box:22"),
    ],
)
def test_ways_to_write_an_address(text: str, url: str, tmp_path: Path) -> None:
    assert find(text, {}, tmp_path)[0].url == url


@pytest.mark.parametrize(
    "text", ["ftp://box", "unix://x.sock", "tcp://", "ssh://", "tcp://box:port", "npipe://x"]
)
def test_what_is_no_address(text: str, tmp_path: Path) -> None:
    with pytest.raises(DockerUnavailableError, match=r"DOCKER_HOST is .* no address"):
        find(None, {"DOCKER_HOST": text}, tmp_path)


@pytest.mark.parametrize(
    ("url", "remote"),
    [
        ("unix:///x", False),
        ("tcp://127.0.0.9:1", False),
        ("tcp://[::1]:1", False),
        ("tcp://localhost:1", False),
        ("tcp://10.0.0.1:1", True),
        ("tcp://localhost.example:1", True),
        ("ssh://localhost", True),
    ],
)
def test_which_engines_have_other_files(url: str, remote: bool) -> None:
    assert Address(url).remote is remote
