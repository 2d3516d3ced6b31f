"""A seccomp filter as bytes: what no confined process may ask of the Linux kernel, whatever confines it.

Refused everywhere: new user namespaces and mounts (the way to undo the sandbox's own), keyrings, io_uring
(which opens sockets past this filter), typing into a terminal, loading code into the kernel, and system
calls of a foreign instruction set, whose numbers mean something else. Families of sockets are an allow-list,
so that none that a network namespace does not hold (``AF_VSOCK``) is forgotten.

Runs inside the sandbox: standard library only. Numbers are those of the kernel's headers
(``asm/unistd_64.h``, ``asm-generic/unistd.h``, ``linux/audit.h``).
"""

from __future__ import annotations

import errno
import struct

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16

#: Machine, as ``os.uname`` names it: its number in ``linux/audit.h``.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
#: Refused whatever their arguments; the same number on every machine from ``open_tree`` on.
_EVERYWHERE = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "open_tree_attr": 467,
}
_REFUSED = {
    "x86_64": {
        "syslog": 103,
        "pivot_root": 155,
        "acct": 163,
        "mount": 165,
        "umount2": 166,
        "swapon": 167,
        "swapoff": 168,
        "reboot": 169,
        "iopl": 172,
        "ioperm": 173,
        "init_module": 175,
        "delete_module": 176,
        "quotactl": 179,
        "kexec_load": 246,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "perf_event_open": 298,
        "open_by_handle_at": 304,
        "setns": 308,
        "finit_module": 313,
        "kexec_file_load": 320,
        "bpf": 321,
        "userfaultfd": 323,
    },
    "aarch64": {
        "umount2": 39,
        "mount": 40,
        "pivot_root": 41,
        "quotactl": 60,
        "acct": 89,
        "kexec_load": 104,
        "init_module": 105,
        "delete_module": 106,
        "syslog": 116,
        "reboot": 142,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "swapon": 224,
        "swapoff": 225,
        "perf_event_open": 241,
        "open_by_handle_at": 265,
        "setns": 268,
        "finit_module": 273,
        "bpf": 280,
        "userfaultfd": 282,
        "kexec_file_load": 294,
    },
}
#: Looked at by argument: ioctl, socket, socketpair, clone, unshare.
_BY_ARGUMENT = {"x86_64": (16, 41, 53, 56, 272), "aarch64": (29, 198, 199, 220, 97)}
#: A C library that is told there is none takes ``clone``, whose flags can be looked at.
_CLONE3 = 435

_CLONE_NEWUSER = 0x10000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPE_MASK = 1, 5, 0xF
#: Numbers from here on are x32 ones, on x86_64.
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4

Instruction = tuple[int, int, int, int]


def known(machine: str) -> bool:
    """Whether there is a filter for a machine."""
    return machine in _ARCHITECTURES


def program(machine: str, families: tuple[int, ...]) -> bytes:
    """The filter: an array of ``struct sock_filter``.

    Args:
        machine: as ``os.uname`` names it.
        families: of sockets that may be made. Without ``AF_UNIX``, connected pairs are still allowed:
            they lead nowhere else.

    Raises:
        KeyError: the machine is not ``known``.
    """
    ioctl, socket, socketpair, clone, unshare = _BY_ARGUMENT[machine]
    code: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    for number in (*_EVERYWHERE.values(), *_REFUSED[machine].values()):
        code += [(_EQUAL, 0, 1, number), _error(errno.EPERM)]
    code += [(_EQUAL, 0, 1, _CLONE3), _error(errno.ENOSYS)]
    for number in (clone, unshare):
        code += _when(number, 0, [(_ANY_BIT, 0, 1, _CLONE_NEWUSER), _error(errno.EPERM)])
    refused = [(_EQUAL, 1, 0, _TIOCSTI), (_EQUAL, 0, 1, _TIOCLINUX), _error(errno.EPERM)]
    code += _when(ioctl, 1, refused)
    code += _when(socket, 0, _unless(families))
    if AF_UNIX not in families:
        masked: list[Instruction] = [(_AND, 0, 0, _SOCK_TYPE_MASK)]
        code += _when(socketpair, 1, masked + _unless((_SOCK_STREAM, _SOCK_SEQPACKET)))
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _error(number: int) -> Instruction:
    return (_RETURN, 0, 0, _ERROR | number)


def _when(number: int, argument: int, then: list[Instruction]) -> list[Instruction]:
    """For one system call: ``then`` with the lower half of an argument loaded; it comes first."""
    body = [(_LOAD, 0, 0, 16 + 8 * argument), *then, (_LOAD, 0, 0, _NUMBER)]
    return [(_EQUAL, 0, len(body), number), *body]


def _unless(values: tuple[int, ...]) -> list[Instruction]:
    """Refuse when what is loaded is none of ``values``."""
    left = len(values)
    tests = [(_EQUAL, left - index, 0, value) for index, value in enumerate(values)]
    return [*tests, _error(errno.EPERM)]
