"""See to it that the tests of containers have an engine and an image; say in one line what is left out.

    python -m scripts.setup_docker

An engine that answers already is used as it is. Where none does and packages can be installed, Debian's is;
the tests start and stop it (``tests/executors/docker/engine.py``). The image is pulled, or made with
debootstrap from the machine's own package mirror, which needs no registry, and kept for the next time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import platformdirs
from docker.errors import DockerException, ImageNotFound

from . import debian

#: The image of the tests: Python, bash and coreutils.
NAME, TAG = "conjure-test", "bookworm"
IMAGE = f"{NAME}:{TAG}"
#: Taken for it where there is a registry.
PULLED = "python:3.11-slim-bookworm"
#: Made for it where there is none: the smallest Debian, which has bash and coreutils, and these.
INCLUDED = "python3,python-is-python3,ca-certificates"
CACHE = platformdirs.user_cache_path("conjure-tests")
ARCHIVE = CACHE / f"debian-{TAG}-{platform.machine()}-{INCLUDED}.tar"
MISSING = "no Docker engine here, so the tests of containers are left out"
#: dockerd and debootstrap lie where a plain PATH may not lead.
SEARCH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def answering() -> str | None:
    """The address of an engine that answers: of ``DOCKER_HOST``, of docker's context, or the usual one."""
    named = os.environ.get("DOCKER_HOST")
    context = docker.ContextAPI.get_current_context()
    for address in [named] if named else [context and context.Host, "unix:///var/run/docker.sock"]:
        if address and answers(address):
            return str(address)
    return None


def answers(address: str) -> bool:
    """Whether an engine answers at an address."""
    if address.startswith("unix://"):
        # Tried by hand first: the SDK does not close a socket that did not connect.
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(address.removeprefix("unix://"))
        except OSError:
            return False
    with contextlib.suppress(DockerException, OSError), client(address) as api:
        return bool(api.ping())
    return False


@contextlib.contextmanager
def client(address: str) -> Iterator[docker.APIClient]:
    """The engine's API, for a while; certificates are those that the environment names.

    Raises:
        DockerException: it does not answer.
    """
    api = docker.from_env(environment={**os.environ, "DOCKER_HOST": address}, timeout=300).api
    with contextlib.closing(api):
        yield api


def has(api: docker.APIClient, image: str) -> bool:
    """Whether the engine has an image."""
    try:
        api.inspect_image(image)
    except ImageNotFound:
        return False
    return True


def main() -> int:
    """Install and make what is missing where that needs no question; a machine without it is no failure."""
    CACHE.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a run that comes second finds the work done
        address = answering()
        if address is None:
            found = shutil.which("dockerd", path=SEARCH)
            if os.geteuid() != 0 or not (found or debian.install(["docker.io"])):
                print(f"{MISSING} (apt-get install docker.io gets one).")
                return 0
            address = answering()  # where installing a service starts it
        if not ((address and _pulled(address)) or ARCHIVE.exists() or _made()):
            print("no image for the tests of containers, so they are left out (debootstrap makes one).")
    return 0


def _pulled(address: str) -> bool:
    with client(address) as api:
        if has(api, IMAGE):
            return True
        with contextlib.suppress(DockerException, OSError):
            api.pull(*PULLED.split(":"))
            return bool(api.tag(PULLED, NAME, TAG))
    return False


def _made() -> bool:
    """Make the archive of the image; whether it is there now."""
    found = shutil.which("debootstrap", path=SEARCH)
    if os.geteuid() != 0 or not (found or debian.install(["debootstrap"])):
        return False
    print("Making an image for the tests of containers, which takes a minute …", flush=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        root, unfinished = Path(folder, "root"), Path(folder, "image.tar")
        debootstrap = ["debootstrap", "--variant=minbase", f"--include={INCLUDED}", TAG, str(root)]
        if not any(_runs([*debootstrap, mirror]) for mirror in debian.mirrors(TAG)):
            return False
        # Packages that were downloaded and installed are not needed again.
        shutil.rmtree(root / "var/cache/apt/archives", ignore_errors=True)
        if not _runs(["tar", "-C", str(root), "--one-file-system", "-cf", str(unfinished), "."]):
            return False
        for old in CACHE.glob("debian-*.tar"):
            old.unlink()
        unfinished.rename(ARCHIVE)
    return True


def _runs(command: list[str]) -> bool:
    """Run a command; what it prints is shown only when it fails, its end then."""
    done = subprocess.run(
        command,
        env={**os.environ, "PATH": SEARCH},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        print(f"{command[0]} failed:", *done.stdout.splitlines()[-5:], sep="\n    ", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
