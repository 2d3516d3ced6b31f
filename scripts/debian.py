"""Install Debian packages, where that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess


def available() -> bool:
    """Whether this process may install Debian packages."""
    return shutil.which("apt-get") is not None and os.geteuid() == 0


def install(packages: list[str]) -> bool:
    """Install ``packages`` and say whether that worked; False where this process may not.

    A fresh machine has no package lists or old ones: when the first attempt fails they are fetched.
    """
    if not available():
        return False
    print(f"Installing {' '.join(packages)} with apt-get …", flush=True)
    return _install(packages) or (_apt("update") and _install(packages))


def _install(packages: list[str]) -> bool:
    return _apt("install", "--no-install-recommends", "--yes", *packages)


def _apt(*arguments: str) -> bool:
    """Run apt-get; what it prints is shown only when it fails, its end then."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        ["apt-get", "-o", "Dpkg::Use-Pty=0", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"apt-get {arguments[0]} failed:", *done.stdout.splitlines()[-5:], sep="\n    ", flush=True)
    return done.returncode == 0
