"""Gives up rights for good, then becomes another program: ``python -I -S confine.py RULES PROGRAM…``.

``RULES`` is a JSON file. What is given up here is kept up in every process that the program starts:
capabilities, Landlock's rules for files, ports, signals and abstract sockets, and system calls (``filters``).
Any failure ends it before the program starts, with one sentence on standard error.

Runs inside the sandbox: standard library only, nothing of this package but what lies beside it.
"""

from __future__ import annotations

import ctypes
import json
import os
import stat
import struct
import sys
from typing import Any

_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 22, 24, 38, 47
_SECCOMP_MODE_FILTER, _PR_CAP_AMBIENT_CLEAR_ALL = 2, 4
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every machine
_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
#: Rights over files that each version of Landlock knows, from the first.
_RIGHTS = ((1 << 13) - 1, (1 << 14) - 1, (1 << 15) - 1, (1 << 15) - 1, (1 << 16) - 1)
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_NET_VERSION, _NET_RIGHTS = 4, 0b11
_SCOPE_VERSION, _SCOPES = 6, 0b11

_libc = ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """Which version of Landlock the kernel has; 0 for none, or where it is switched off."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))))


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def drop_privileges() -> None:
    """No new rights by any program, and none of root's."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    for number in range(_LAST_CAPABILITY + 1):
        _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # it may have none to drop
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, bytes(24)), "capset")


def restrict(rules: dict[str, list[str]] | None, *, network: bool) -> None:
    """Enter a Landlock domain.

    Args:
        rules: paths to ``read``, to ``list`` only, to ``write`` and the ``devices`` to use; all else is
            refused. None leaves files alone, and only keeps signals and abstract sockets inside.
        network: whether TCP ports may be used.

    Raises:
        OSError: the kernel refuses.
    """
    version = landlock_version()
    rights = _RIGHTS[min(version, len(_RIGHTS)) - 1] if rules is not None and version else 0
    net = _NET_RIGHTS if version >= _NET_VERSION and not network and rules is not None else 0
    scopes = _SCOPES if version >= _SCOPE_VERSION else 0
    if not (rights or net or scopes):
        return
    size = 24 if version >= _SCOPE_VERSION else 16 if version >= _NET_VERSION else 8
    attributes = struct.pack("=QQQ", rights, net, scopes)[:size]
    ruleset = _check(
        _libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)), "Landlock"
    )
    read = _EXECUTE | _READ_FILE | _READ_DIR
    for kind, wanted in (
        ("read", read),
        ("list", _READ_DIR),
        ("write", rights & ~(_MAKE_CHAR | _MAKE_BLOCK)),
        ("devices", _READ_FILE | _WRITE_FILE | _IOCTL_DEV),
    ):
        for path in (rules or {}).get(kind, ()):
            _allow(ruleset, path, wanted & rights)
    _check(_libc.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)), "Landlock")
    os.close(ruleset)


def _allow(ruleset: int, path: str, wanted: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # gone since it was listed, or behind a folder that this user cannot enter
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            wanted &= _FILE_RIGHTS
        beneath = struct.pack("=Qi", wanted, fd)
        _check(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, beneath, ctypes.c_uint32(0)), path)
    finally:
        os.close(fd)


def filter_calls(code: bytes) -> None:
    """Install a seccomp filter.

    Raises:
        OSError: the kernel refuses.
    """
    buffer = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: a count, padding, a pointer.
    described = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    _check(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, described, 0, 0), "seccomp")


def main() -> None:
    """Confine this process as the file says, then run the program."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123  pathlib takes 15 ms to import
        rules: dict[str, Any] = json.load(file)
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    import filters  # type: ignore[import-not-found]  # this runs as a script, without its package

    os.closerange(3, 65_536)
    try:
        drop_privileges()
        restrict(rules["files"], network=rules["network"])
        machine = os.uname().machine
        if filters.known(machine):
            filter_calls(filters.program(machine, tuple(rules["families"])))
    except OSError as error:
        sys.exit(f"the sandbox cannot be entered: {error}")
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606  this is what it is for


if __name__ == "__main__":
    main()
