"""Make a virtual environment with locked packages and this project, editable.

    python3 -m scripts.setup_env ENV LOCKFILE

Needs Python 3.11 and nothing else. uv, taken from the lock file as well, does the installing because it
is several times faster; where it cannot run or cannot reach the index, pip does the same work.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from . import debian

PROJECT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)


def main(argv: list[str]) -> int:
    """Make environment ``argv[0]`` from lock file ``argv[1]``, both relative to the project."""
    env, lock = PROJECT / argv[0], PROJECT / argv[1]
    if sys.version_info < OLDEST:
        print(f"Python 3.11 or newer is needed; {sys.executable} is {sys.version.split()[0]}.")
        print("Install one and name it: make PYTHON=/path/to/python3.11 …")
        return 1
    if not _can_make_environments():
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        print(f"{sys.executable} cannot make environments (no ensurepip). On Debian and Ubuntu:")
        print(f"    apt-get install {package}")
        return 1
    print(f"Setting up {env.name} with Python {sys.version.split()[0]} …", flush=True)
    if not _usable(env):
        venv.create(env, with_pip=True, clear=True, symlinks=True)
    try:
        _install(env, lock)
    except subprocess.CalledProcessError as error:
        print(f"Setting up {env.name} failed: {' '.join(map(str, error.cmd))}")
        return 1
    return 0


def _can_make_environments() -> bool:
    """Debian ships ``venv`` without ``ensurepip``, in a package of its own."""
    if importlib.util.find_spec("ensurepip"):
        return True
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    return debian.install([package]) and _finds_ensurepip()


def _finds_ensurepip() -> bool:
    # A new process: this one has cached that the module is missing.
    return subprocess.run([sys.executable, "-c", "import ensurepip"], check=False).returncode == 0


def _usable(env: Path) -> bool:
    """Whether ``env`` is an environment whose interpreter still runs and has this one's version."""
    python = env / "bin" / "python"
    check = f"import sys, pip; sys.exit(sys.version_info[:2] != {tuple(sys.version_info[:2])!r})"
    return python.exists() and subprocess.run([python, "-c", check], check=False).returncode == 0


def _install(env: Path, lock: Path) -> None:
    python = str(env / "bin" / "python")
    settings = _environment(python)
    # The build backend is locked too, so that nothing outside the lock file is ever fetched.
    project = ["--no-deps", "--no-build-isolation", "--editable", str(PROJECT)]
    locked = ["--require-hashes", "--requirement", str(lock)]
    uv = [str(env / "bin" / "uv"), "pip", "install", "--quiet", "--compile-bytecode", "--python", python]
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if _bootstrap_uv(python, lock, settings) and _runs([*uv, *locked], settings):
        subprocess.run([*uv, *project], env=settings, cwd=PROJECT, check=True)
        return
    print("uv could not install the packages; pip goes on, which takes a few minutes …", flush=True)
    subprocess.run([*pip, *locked], env=settings, check=True)
    subprocess.run([*pip, *project], env=settings, cwd=PROJECT, check=True)


def _bootstrap_uv(python: str, lock: Path, settings: dict[str, str]) -> bool:
    entry = _lock_entry(lock.read_text(encoding="utf-8"), "uv")
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "uv.txt")
        wanted.write_text(entry, encoding="utf-8")
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        return _runs([*command, "--require-hashes", "--requirement", str(wanted)], settings)


def _lock_entry(lock: str, name: str) -> str:
    """The lines of one package in a lock file: the pin and its hashes."""
    lines = iter(lock.splitlines())
    entry = [next(line for line in lines if line.startswith(f"{name}=="))]
    while entry[-1].endswith("\\"):
        entry.append(next(lines))
    return "\n".join(entry) + "\n"


def _runs(command: list[str], settings: dict[str, str]) -> bool:
    return subprocess.run(command, env=settings, check=False).returncode == 0


def _environment(python: str) -> dict[str, str]:
    """The process's environment, with pip's index and certificates told to uv, which reads neither."""
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    listed = subprocess.run(
        [python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    pip = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        pip[name.rpartition(".")[2]] = value.strip("'\"")
    for option, variable in (("index-url", "UV_DEFAULT_INDEX"), ("cert", "SSL_CERT_FILE")):
        if option in pip:
            settings.setdefault(variable, pip[option])
    # Behind many a company's proxy only the system's own store knows who signs.
    settings.setdefault("UV_SYSTEM_CERTS", "true")
    return settings


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
