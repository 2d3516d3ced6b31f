"""``conjure docker build``, ``check`` and ``prune``: the engine and the image that tools run in."""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine import engine
from ..errors import SettingsError
from ..settings import Settings
from ..wording import size_text
from .output import say

if TYPE_CHECKING:
    from ..executors.docker.check import Environment
    from ..executors.docker.sweep import Swept

_BUILD = """
Build the image of the sandbox: Python with the packages of Claude's own containers, Node, Java, wkhtmltopdf,
poppler, qpdf and git, on Ubuntu 24.04. It takes several minutes the first time, and about 2 GB of the
engine's disk.
"""
_BUILD_MORE = """
build arguments:
  PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, PIP_TRUSTED_HOST
                 where Python packages come from; not kept in the image
  NPM_CONFIG_REGISTRY
                 where Node packages come from; not kept in the image
  APT_MIRROR     URL that replaces http://archive.ubuntu.com and http://deb.debian.org; stays in the
                 image's history, so give one without a password
  APT_PACKAGES, PIP_PACKAGES, NPM_PACKAGES
                 names of more packages to install, with spaces between
  HTTP_PROXY, HTTPS_PROXY, NO_PROXY
                 proxies during the build; those of ~/.docker/config.json are passed anyway

examples:
  conjure docker build
  conjure docker build --base debian:bookworm --ca-bundle company.pem
  conjure docker build --build-arg PIP_INDEX_URL=https://pypi.example.com/simple
  conjure docker build --no-extras --tag conjure/sandbox:slim
"""


def add_commands(commands: Any) -> None:
    """Add ``docker`` and its own commands to the parser's."""
    summary = "build, check and clean up what containers need"
    group = commands.add_parser("docker", help=summary, description=f"{summary.capitalize()}.")
    below = group.add_subparsers(title="commands", required=True, metavar="COMMAND")
    image = Settings().docker_image

    command = below.add_parser(
        "build",
        help="build the image that tools run in",
        description=_BUILD,
        epilog=_BUILD_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "--base", metavar="IMAGE", help="Debian or Ubuntu to start from (default: ubuntu:24.04)"
    )
    command.add_argument(
        "--ca-bundle",
        type=Path,
        metavar="FILE",
        help="certificates to trust while building and in the image, as behind a company's proxy",
    )
    command.add_argument(
        "--build-arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        dest="build_args",
        help="see below; may be given several times; NAME alone takes the variable of the environment",
    )
    command.add_argument(
        "--no-extras",
        dest="extras",
        action="store_false",
        help="Python and bash only: no Node, Java, wkhtmltopdf or Python packages",
    )
    command.add_argument("--tag", default=image, metavar="NAME", help=f"name of the image (default: {image})")
    command.add_argument(
        "--no-cache", action="store_true", help="do every step again, with the newest packages"
    )
    command.set_defaults(command=_build)

    summary = "say whether the engine and the image are ready"
    command = below.add_parser(
        "check", help=summary, description=f"{summary.capitalize()}; exit code 1 if not."
    )
    command.add_argument(
        "--image", default=image, metavar="NAME", help=f"image to look for (default: {image})"
    )
    command.set_defaults(command=_check)

    summary = "remove containers and volumes that ended kernels left behind"
    command = below.add_parser("prune", help=summary, description=f"{summary.capitalize()}.")
    command.add_argument(
        "--all",
        action="store_true",
        dest="everything",
        help="also those that sessions are using at this moment",
    )
    command.set_defaults(command=_prune)


def _build(arguments: argparse.Namespace) -> int:
    from ..executors.docker.image import build_image

    started = time.monotonic()
    image = build_image(
        tag=arguments.tag,
        base=arguments.base,
        ca_bundle=arguments.ca_bundle,
        build_args=build_args(arguments.build_args),
        extras=arguments.extras,
        on_progress=say,
        no_cache=arguments.no_cache,
    )
    took = f"{time.monotonic() - started:.0f} s"
    say(f"{arguments.tag} is ready ({image.removeprefix('sha256:')[:12]}, {took}).")
    return 0


def build_args(words: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE``, or ``NAME`` for a variable of the environment, as a dictionary.

    Raises:
        SettingsError: a word is neither.
    """
    found = {}
    for word in words:
        name, given, value = word.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise SettingsError("--build-arg", f"{word!r} is not NAME=VALUE")
        if not given and name not in os.environ:
            raise SettingsError(
                "--build-arg", f"{name} has no value, and the environment has no such variable"
            )
        found[name] = value if given else os.environ[name]
    return found


def _check(arguments: argparse.Namespace) -> int:
    from ..executors.docker.check import check_environment

    found = check_environment(image=arguments.image)
    for line in report(found):
        say(line)
    return 0 if found.ok else 1


def report(found: Environment) -> list[str]:
    """What was found, in lines for people."""
    lines = []
    if found.version:
        kind = [name for name, holds in (("rootless", found.rootless), ("remote", found.remote)) if holds]
        said = (
            f"{found.engine} {found.version}, API {found.api_version}, {found.system} on {found.architecture}"
        )
        lines += [_row("Engine", ", ".join([said, *kind])), _row("Address", found.address)]
        limits = f"memory {_yes(found.memory_limit)}, swap {_yes(found.swap_limit)}"
        lines.append(_row("Limits", f"{limits} (cgroup {found.cgroup_version or 'unknown'})"))
        lines.append(_row("System calls", "filtered" if found.seccomp else "not filtered"))
        lines.append(_row("Storage", found.storage_driver or "unknown"))
    if found.image_id:
        short = found.image_id.removeprefix("sha256:")[:12]
        made = (found.image_created or "")[:10]
        lines.append(
            _row("Image", f"{found.image} ({short}, {size_text(found.image_size or 0)}, built {made})")
        )
    elif found.version:
        lines.append(_row("Image", f"{found.image}: missing"))
    lines += [f"Warning: {text}" for text in found.warnings]
    lines += [f"Problem: {text}" for text in found.problems]
    return [*lines, "Containers can start."] if found.ok else lines


def _row(name: str, value: str) -> str:
    return f"{name + ':':<14}{value}"


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _prune(arguments: argparse.Namespace) -> int:
    swept = engine().run(_swept(everything=arguments.everything))
    for kind, names in (("container", swept.containers), ("volume", swept.volumes)):
        for name in names:
            say(f"removed {kind} {name}")
    say(_removed(swept))
    return 0


async def _swept(*, everything: bool) -> Swept:
    from ..executors.docker.connection import Engine
    from ..executors.docker.sweep import prune

    there = await Engine.connect()
    try:
        return await prune(there, everything=everything)
    finally:
        await there.close()


def _removed(swept: Swept) -> str:
    counts = [("container", len(swept.containers)), ("volume", len(swept.volumes))]
    parts = [f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts if count]
    return f"Removed {' and '.join(parts)}." if parts else "Nothing was left behind."
