"""The image of the sandbox: what it is made of, and having it made.

``files/`` is all that the engine needs, by hand as well: ``docker build -t conjure/sandbox:latest files``.
"""

from __future__ import annotations

import io
import re
import ssl
import tarfile
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ..._version import __version__
from ...engine import engine as background
from ...errors import SettingsError
from .building import Build
from .connection import Engine
from .options import IMAGE

#: Proxies, which every engine passes to a build without keeping them in the image.
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY")
#: The file of a build's context that holds a CA bundle.
CERTIFICATES = "certificates.pem"

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?"
)


def build_image(
    *,
    tag: str = IMAGE,
    base: str | None = None,
    ca_bundle: str | Path | None = None,
    build_args: Mapping[str, str] | None = None,
    extras: bool = True,
    on_progress: Callable[[str], None] | None = None,
    no_cache: bool = False,
) -> str:
    """Build the image of the sandbox; several minutes, and seconds when nothing changed.

    Args:
        tag: the name it gets.
        base: a Debian or Ubuntu image to start from; Ubuntu 24.04 when None.
        ca_bundle: a file with certificates (PEM or DER) to be trusted during the build and in the image.
        build_args: ``PIP_INDEX_URL``, ``APT_MIRROR``, proxies and the others of ``build_arguments()``. Those
            of pip and npm and the proxies leave no trace in the image; ``APT_MIRROR`` stays in its history.
        extras: False leaves out Node, Java, wkhtmltopdf and the Python packages.
        on_progress: hears every line of the build, on the engine's thread.
        no_cache: do every step again, with the newest packages.

    Returns:
        The image's id.

    Raises:
        SettingsError: an argument cannot be used.
        DockerUnavailableError: no engine answers.
        DockerImageError: a step failed; the message holds its last lines and what helps.
    """
    return background().run(
        abuild_image(
            tag=tag,
            base=base,
            ca_bundle=ca_bundle,
            build_args=build_args,
            extras=extras,
            on_progress=on_progress,
            no_cache=no_cache,
        )
    )


async def abuild_image(
    *,
    tag: str = IMAGE,
    base: str | None = None,
    ca_bundle: str | Path | None = None,
    build_args: Mapping[str, str] | None = None,
    extras: bool = True,
    on_progress: Callable[[str], None] | None = None,
    engine: Engine | None = None,
    no_cache: bool = False,
) -> str:
    """``build_image``, to be awaited; cancelling it ends the build. Uses ``engine`` where one is given."""
    arguments = dict(build_args or {})
    _check(tag, base, arguments)
    context = build_context(ca_bundle)
    if base is not None:
        arguments["BASE"] = base
    tell = on_progress or _ignore
    there = await Engine.connect() if engine is None else engine
    build = Build(tag, tell, _secrets(arguments))
    options: dict[str, Any] = {
        "buildargs": arguments,
        "target": "full" if extras else "slim",
        "nocache": no_cache,
        "labels": {"conjure.version": __version__, "org.opencontainers.image.version": __version__},
    }
    try:
        if not await there.call(_has_bridge, there.api):
            options["network_mode"] = "host"
        image = await build.run(there, context, options)
    finally:
        if engine is None:
            await there.close()
    for notice in build.notices:
        tell(notice)
    return image


def build_arguments() -> tuple[str, ...]:
    """The names that a build takes: of the Dockerfile's arguments, and of proxies."""
    text = (resources.files(__package__) / "files" / "Dockerfile").read_text(encoding="utf-8")
    own = dict.fromkeys(re.findall(r"^ARG ([A-Z_]+)", text, re.MULTILINE))
    return (*own, *PROXIES, *map(str.lower, PROXIES))


def build_context(ca_bundle: str | Path | None = None) -> bytes:
    """The archive that the engine builds from; the same bytes for the same input, so that its cache holds.

    Raises:
        SettingsError: the bundle cannot be read, or holds no certificate.
    """
    files = {
        entry.name: entry.read_bytes()
        for entry in (resources.files(__package__) / "files").iterdir()
        if entry.is_file()
    }
    if ca_bundle is not None:
        files[CERTIFICATES] = certificates(Path(ca_bundle).expanduser()).encode("ascii")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(files[name]), 0o644
            archive.addfile(member, io.BytesIO(files[name]))
    return buffer.getvalue()


def certificates(path: Path) -> str:
    """The certificates of a file and nothing else of it: a key beside them must not get into an image.

    Raises:
        SettingsError: it cannot be read, or holds no certificate.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SettingsError("ca_bundle", f"{path}: {error.strerror or error}") from error
    text = data.decode("latin-1")
    if "-----BEGIN" not in text:
        text = ssl.DER_cert_to_PEM_cert(data)
    found = "\n".join(match.group() for match in _CERTIFICATE.finditer(text))
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=found)
    except (ssl.SSLError, ValueError) as error:
        raise SettingsError(
            "ca_bundle", f"{path} holds no certificate that can be read, in PEM or DER"
        ) from error
    return found + "\n"


def _ignore(_line: str) -> None:
    """Nobody listens."""


def _check(tag: str, base: str | None, arguments: Mapping[str, str]) -> None:
    if not _TAG.fullmatch(tag):
        raise SettingsError("tag", f"{tag!r} is no name for an image; one is {IMAGE}")
    if base is not None and (not base or re.search(r"\s", base) or base.startswith("-")):
        raise SettingsError("base", f"{base!r} is no name of an image; one is debian:bookworm")
    known = [name for name in build_arguments() if name != "BASE"]
    for name in arguments:
        if name == "BASE":
            raise SettingsError("build_args", "the base image is named by base (--base)")
        if name not in known:
            raise SettingsError("build_args", f"there is no {name}; there are: {', '.join(known)}")


def _secrets(arguments: Mapping[str, str]) -> tuple[str, ...]:
    """User and password of every address among the arguments; programs print the addresses they use."""
    found: list[str] = []
    for value in arguments.values():
        for match in re.finditer(r"://([^/\s@]+)@", value):
            user, _, password = match[1].partition(":")
            found += [match[1], password or user]
    return tuple(dict.fromkeys([*found, *map(unquote, found)]))


def _has_bridge(api: Any) -> bool:
    """Whether the engine has a network for builds; without one they use its machine's own."""
    return any(network.get("Driver") == "bridge" for network in api.networks())
