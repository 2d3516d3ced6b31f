"""Install Debian packages, where that is possible."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path


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


def mirrors(suite: str, folder: Path = Path("/etc/apt")) -> list[str]:
    """Where this machine takes ``suite`` of Debian from, by its own apt sources; Debian's mirror is last.

    Sources of other parties are left out: only entries of just this suite with the component ``main`` count.

    Args:
        suite: a code name, such as ``bookworm``.
        folder: apt's settings.
    """
    found = [mirror for path in _sources(folder) for mirror in _entries(path, suite)]
    return list(dict.fromkeys([*found, "http://deb.debian.org/debian"]))


def _sources(folder: Path) -> list[Path]:
    parts = sorted([*folder.glob("sources.list.d/*.list"), *folder.glob("sources.list.d/*.sources")])
    return [path for path in [folder / "sources.list", *parts] if path.is_file()]


def _entries(path: Path, suite: str) -> Iterator[str]:
    """The addresses that a file names for a suite: one line each, or in paragraphs (deb822)."""
    lines = [line for line in path.read_text(errors="replace").splitlines() if not line.startswith("#")]
    if path.suffix != ".sources":
        for line in lines:
            kind, *words = re.sub(r"\[[^]]*\]", "", line).split("#")[0].split() or [""]
            if kind == "deb" and len(words) > 2 and words[1] == suite and "main" in words[2:]:
                yield words[0]
        return
    for paragraph in "\n".join(lines).split("\n\n"):
        unfolded = re.sub(r"\n[ \t]+", " ", paragraph)
        fields = dict(re.findall(r"(?m)^([\w-]+):[ \t]*(.*)$", unfolded))
        fields = {name.lower(): value.split() for name, value in fields.items()}
        if fields.get("enabled", ["yes"])[0].lower() in ("no", "false", "off", "0"):
            continue
        wanted = (("types", "deb"), ("suites", suite), ("components", "main"))
        if all(value in fields.get(name, ()) for name, value in wanted):
            yield from fields.get("uris", ())


def _install(packages: list[str]) -> bool:
    return _apt("install", "--no-install-recommends", "--yes", *packages)


def _apt(*arguments: str) -> bool:
    """Run apt-get; what it prints is shown only when it fails, its end then."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        # Two steps of ``make test`` may install at the same time: one waits for the other.
        ["apt-get", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300", *arguments],
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
