"""What a local command sees of the kernel's environment: an allow-list, never keys or tokens."""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..errors import ConjureError, SettingsError
from ..paths import make_private_dir, write_atomic

#: The user, the terminal and the language.
_PERSONAL = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR")
#: Where certificates lie: without them a company's network refuses every download.
CERTIFICATES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
)
#: What makes ``python`` the kernel's own environment: modules and libraries that the notebook imports
#: through them must be there for a script too.
_PYTHON = ("PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "CONDA_PREFIX", "CONDA_DEFAULT_ENV")
#: Proxies pass unless they carry a user name and password.
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
#: Credentials of the conversation and of its storage; not even a setting hands them to a tool.
_NEVER = ("ANTHROPIC_", "AWS_")

_LOCALE = tuple(
    f"LC_{name}"
    for name in (
        *("ALL", "CTYPE", "COLLATE", "MESSAGES", "MONETARY", "NUMERIC", "TIME"),
        *("ADDRESS", "IDENTIFICATION", "MEASUREMENT", "NAME", "PAPER", "TELEPHONE"),
    )
)

ALLOWED = (*_PERSONAL, *_LOCALE, *CERTIFICATES, *_PYTHON)
#: Nothing may wait for an answer, page its output, or open a window.
QUIET = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "MPLBACKEND": "Agg"}
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


def command_environment(extra: Mapping[str, str], source: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command.

    Args:
        extra: variables of the context, which win over all others.
        source: the kernel's environment; ``os.environ`` when None.

    Raises:
        SettingsError: ``extra`` names a credential of Claude's service or of the storage, or no variable.
    """
    check_names(extra)
    source = os.environ if source is None else source
    # Asked by name: to read all of os.environ takes five times as long, and this is on every call's way.
    found = {name: value for name in ALLOWED if (value := source.get(name)) is not None}
    for name in (*_PROXIES, *map(str.upper, _PROXIES)):
        value = source.get(name)
        if value is not None and "@" not in value:
            found[name] = value
    if not any(name in found for name in ("LANG", "LC_ALL", "LC_CTYPE")):
        found["LANG"] = "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8"
    found.setdefault("TERM", "dumb")
    if sys.prefix != sys.base_prefix:
        found["VIRTUAL_ENV"] = sys.prefix
    found["PATH"] = os.pathsep.join([*python_folders(), source.get("PATH", _DEFAULT_PATH)])
    return {**found, **QUIET, **extra}


def check_names(extra: Mapping[str, str]) -> None:
    """Refuse variables that no command may get.

    Raises:
        SettingsError: a name is a credential's, or cannot be a variable's, or a value holds NUL.
    """
    for name, value in extra.items():
        if name.upper().startswith(_NEVER):
            raise SettingsError("environment", f"{name} is never handed to a tool")
        if not name or "=" in name or "\0" in name + value:
            raise SettingsError("environment", f"{name!r} is no name of a variable, or its value holds NUL")


@functools.lru_cache
def python_folders(executable: str | None = None) -> tuple[str, ...]:
    """Folders to search first, so that ``python`` and ``python3`` are the kernel's.

    The folder of the interpreter is enough in most environments. Where it lacks one of the names, or has
    another Python under it, a folder with a two-line script of that name comes before: a link would make
    Python forget the virtual environment.

    Args:
        executable: the interpreter; the kernel's own when None.
    """
    executable = sys.executable if executable is None else executable
    if not executable:
        return ()
    folder = Path(executable).parent
    missing = [name for name in ("python", "python3") if not _same(folder / name, executable)]
    if not missing:
        return (str(folder),)
    shims = _shims(executable, missing)
    return (str(folder),) if shims is None else (str(shims), str(folder))


def _same(path: Path, executable: str) -> bool:
    try:
        return path.samefile(executable)
    except OSError:
        return False


def _shims(executable: str, names: list[str]) -> Path | None:
    """A folder with a script for each name; None where none can be written, which is no reason to fail."""
    import platformdirs

    key = hashlib.sha256("\n".join([executable, *names]).encode()).hexdigest()[:16]
    script = f'#!/bin/sh\nexec {shlex.quote(executable)} "$@"\n'.encode()
    for parent in (
        platformdirs.user_cache_path("conjure"),
        Path(tempfile.gettempdir()) / f"conjure-{os.getuid()}",
    ):
        folder = parent / "python" / key
        try:
            make_private_dir(parent)
            make_private_dir(folder)
            for name in names:
                path = folder / name
                if not path.is_file() or path.read_bytes() != script:
                    write_atomic(path, script, mode=0o700)
        except (ConjureError, OSError):
            continue
        return folder
    return None
