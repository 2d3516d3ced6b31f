"""Where the engine is: what the user says, else what the ``docker`` command would take, else what is there.

The contexts of the ``docker`` command are read here and not by the SDK, which without a ``config.json``
looks for them in the current folder, and without DOCKER_CONTEXT hides a broken one.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import ssl
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...errors import DockerUnavailableError

_SCHEMES = {"unix": "unix", "http+unix": "unix", "tcp": "tcp", "http": "tcp", "https": "tcp", "ssh": "ssh"}


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates for an engine reached by TLS.

    Attributes:
        ca: who vouches for the engine; the system's authorities when None.
        cert: the user's own certificate, with its ``key``.
        verify: whether the engine's certificate is checked.
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """For a connection of our own.

        Raises:
            OSError: a file cannot be read, or is no certificate.
        """
        context = ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.cert is not None:
            context.load_cert_chain(self.cert, self.key)
        return context


@dataclass(frozen=True, slots=True)
class Address:
    """Where an engine is.

    Attributes:
        url: ``unix:///path``, ``tcp://host:port`` or ``ssh://[user@]host[:port]``.
        origin: what named it, in words: ``DOCKER_HOST``; empty when it was only found.
        tls: for ``tcp``; None is in the clear.
        tunnelled: whether it is a socket of ours that leads to another machine.
    """

    url: str
    origin: str = ""
    tls: Tls | None = None
    tunnelled: bool = False

    @property
    def scheme(self) -> str:
        """``unix``, ``tcp`` or ``ssh``."""
        return self.url.partition(":")[0]

    @property
    def path(self) -> Path:
        """The socket of a ``unix`` address."""
        return Path(self.url.removeprefix("unix://"))

    @property
    def host(self) -> str:
        """The machine of a ``tcp`` address."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The port of a ``tcp`` address."""
        return urlsplit(self.url).port or (2375 if self.tls is None else 2376)

    @property
    def remote(self) -> bool:
        """Whether the engine is on another machine: always so with ``ssh``."""
        if self.scheme != "tcp":
            return self.scheme == "ssh"
        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host != "localhost"

    def __str__(self) -> str:
        return f"{self.url} ({self.origin})" if self.origin else self.url


def find(
    asked: str | None = None, environment: Mapping[str, str] | None = None, home: Path | None = None
) -> list[Address]:
    """Where an engine may be, the most likely first; several only where the user named none.

    Args:
        asked: an address; wins over everything.
        environment: of the process, when None.
        home: the user's folder, when None.

    Raises:
        DockerUnavailableError: what was named cannot be used, or there is nothing that could be tried.
    """
    environment = os.environ if environment is None else environment
    home = home or Path.home()
    if asked is not None:
        return [_address(asked, "the address given", environment, home)]
    if named := environment.get("DOCKER_HOST"):
        return [_address(named, "DOCKER_HOST", environment, home)]
    folder = Path(environment.get("DOCKER_CONFIG") or home / ".docker")
    context, origin = environment.get("DOCKER_CONTEXT"), "DOCKER_CONTEXT"
    if not context:
        context, origin = _current_context(folder), f"the current context in {folder / 'config.json'}"
    if context and context != "default":
        return [_of_context(context, origin, folder)]
    found = [Address(f"unix://{path}") for path in usual_sockets(environment, home) if path.is_socket()]
    if not found:
        raise DockerUnavailableError(
            "No Docker engine was found: install Docker or Podman, or start it (sudo systemctl start docker, "
            "Docker Desktop, or podman system service --time 0), or name one in DOCKER_HOST"
        )
    return found


def usual_sockets(environment: Mapping[str, str], home: Path) -> list[Path]:
    """Where engines usually listen on this machine, whether or not one does."""
    runtime = Path(environment.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    data = home / ".local/share/containers/podman/machine"
    paths = [
        Path("/var/run/docker.sock"),
        runtime / "docker.sock",
        home / ".docker/run/docker.sock",
        home / ".docker/desktop/docker.sock",
        home / ".orbstack/run/docker.sock",
        home / ".colima/default/docker.sock",
        home / ".config/colima/default/docker.sock",
        home / ".rd/docker.sock",
        home / ".lima/docker/sock/docker.sock",
        runtime / "podman/podman.sock",
        Path("/run/podman/podman.sock"),
    ]
    if sys.platform == "darwin":
        paths += [
            Path(tempfile.gettempdir()) / "podman/podman-machine-default-api.sock",
            data / "podman.sock",
            data / "qemu/podman.sock",
            data / "applehv/podman.sock",
        ]
    return paths


def _address(text: str, origin: str, environment: Mapping[str, str], home: Path) -> Address:
    """One that was given as text, with the certificates that the environment names."""
    wanted = environment.get("DOCKER_TLS_VERIFY"), environment.get("DOCKER_TLS"), text.startswith("https://")
    folder = environment.get("DOCKER_CERT_PATH")
    tls = None
    if any(wanted) or folder:
        tls = _certificates(Path(folder or home / ".docker"), verify=bool(wanted[0] or wanted[2]))
    return _parsed(text, origin, tls)


def _parsed(text: str, origin: str, tls: Tls | None) -> Address:
    text = text.strip()
    if text.startswith("/"):
        text = f"unix://{text}"
    elif "://" not in text:
        text = f"tcp://{text}"
    written, _, rest = text.partition("://")
    scheme = _SCHEMES.get(written)
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if scheme is None or (scheme == "unix" and not rest.startswith("/")) or (scheme != "unix" and not host):
        raise DockerUnavailableError(
            f"{origin} is {text!r}, which is no address of an engine: "
            "write unix:///path/to/docker.sock, tcp://host:port or ssh://user@host"
        )
    if scheme == "unix":
        return Address(f"unix://{rest}", origin)
    if scheme == "ssh":
        return Address(f"ssh://{rest.rstrip('/')}", origin)
    shown = f"[{host}]" if ":" in str(host) else host
    return Address(f"tcp://{shown}:{port or (2375 if tls is None else 2376)}", origin, tls)


def _certificates(folder: Path, *, verify: bool) -> Tls:
    def there(name: str) -> Path | None:
        return folder / name if (folder / name).is_file() else None

    cert, key = there("cert.pem"), there("key.pem")
    return Tls(there("ca.pem"), cert if key else None, key if cert else None, verify)


def _current_context(folder: Path) -> str | None:
    path = folder / "config.json"
    try:
        text = path.read_text()
    except OSError:
        return None
    try:
        config = json.loads(text)
    except ValueError as error:
        raise DockerUnavailableError(
            f"{path} is no JSON ({error}): correct it, or set DOCKER_HOST"
        ) from error
    name = config.get("currentContext") if isinstance(config, dict) else None
    return name if isinstance(name, str) else None


def _of_context(name: str, origin: str, folder: Path) -> Address:
    """The engine of a context of the ``docker`` command."""
    key = hashlib.sha256(name.encode()).hexdigest()
    path = folder / "contexts/meta" / key / "meta.json"
    meta = _meta(path)
    endpoint = meta.get("Endpoints", {}).get("docker", {}) if meta else {}
    host = endpoint.get("Host") if isinstance(endpoint, dict) else None
    if not isinstance(host, str):
        known = sorted({"default", *_known_contexts(folder)})
        raise DockerUnavailableError(
            f"The Docker context {name!r} ({origin}) does not exist: choose one of {', '.join(known)} "
            "with `docker context use`, or set DOCKER_HOST"
        )
    certificates = folder / "contexts/tls" / key / "docker"
    tls = None
    if certificates.is_dir() or host.startswith("https://"):
        tls = _certificates(certificates, verify=not endpoint.get("SkipTLSVerify", False))
    return _parsed(host, f"the Docker context {name!r}", tls)


def _known_contexts(folder: Path) -> list[str]:
    found = [_meta(path) for path in (folder / "contexts/meta").glob("*/meta.json")]
    return [str(meta["Name"]) for meta in found if meta and "Name" in meta]


def _meta(path: Path) -> dict[str, Any] | None:
    try:
        meta = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return meta if isinstance(meta, dict) else None
