"""Ways out of a container, and to what it must not touch: one table of commands.

Each command exits with 0 only when it got what it tried for. None does harm where it succeeds: files are
opened for writing and not written, system calls get arguments that mean nothing.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass

#: Numbers of system calls on the two machines that people have.
_CALLS = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsopen": (430, 430),
    "init_module": (175, 105),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (170, 170),
    "swapon": (167, 224),
    "umount2": (166, 39),
    "userfaultfd": (323, 282),
}
#: Those that the container of ``TestWithFewerBounds`` may; the others are called in the same way.
_SHOWN = (
    "add_key",
    "fsopen",
    "keyctl",
    "mount",
    "move_mount",
    "open_tree",
    "pivot_root",
    "request_key",
    "setns",
)
_ARM = platform.machine() in ("aarch64", "arm64")

#: Bad pointers and numbers: where the call is allowed it fails with another error than "not permitted".
_CALL = """python3 -c '
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
result = libc.syscall({number}, -1, -1, -1, -1, -1)
raise SystemExit(result == -1 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS))
'"""

#: Any other error than "no route" means that a packet may have left.
_CONNECT = """python3 -c '
import errno, socket, sys
s = socket.socket({family}, {kind})
s.settimeout(3)
try:
    s.connect({address})
    s.send(b"x")
except OSError as error:
    sys.exit(error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, {refused}))
'"""

#: Tries something on the processes that keep and serve the container: those that the engine started, and the
#: guard. What serves commands below them is the commands' own, as it is without a container.
_OTHERS = """python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
reached = []
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    try:
        parent = int(open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[1])
        if parent in (0, 1) and pid not in (os.getpid(), int(sys.argv[1])):
            {step}
            reached.append(pid)
    except OSError:
        pass
print(reached)
sys.exit(not reached)
' $$"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try.

    Attributes:
        name: what is tried; it must not happen.
        command: exits with 0 when it happened.
        works: whether it happens in a container with fewer bounds, which shows that it is tried rightly.
    """

    name: str
    command: str
    works: bool = True


def _connect(address: tuple[object, ...], *, family: str = "socket.AF_INET", udp: bool = False) -> str:
    kind = "socket.SOCK_DGRAM" if udp else "socket.SOCK_STREAM"
    refused = "errno.ECONNREFUSED" if address[0] == "127.0.0.1" else "0"
    text = repr(address).replace("'", '"')
    return _CONNECT.format(family=family, kind=kind, address=text, refused=refused)


def _others(step: str) -> str:
    return _OTHERS.format(step=step)


def _any(paths: str, test: str) -> str:
    return f"for f in {paths}; do {test} 2>/dev/null && exit 0; done; exit 1"


MOUNTS = [
    Attempt("mount a file system", "mkdir -p /tmp/m && mount -t tmpfs none /tmp/m"),
    Attempt("bind a folder elsewhere", "mkdir -p /tmp/b && mount --bind /proc /tmp/b"),
    Attempt("make the root writable", "mount -o remount,rw / && touch /x", works=False),
    Attempt("write to the root", "touch /x || touch /etc/x || touch /usr/bin/x"),
    Attempt("make the skills writable", "mount -o remount,bind,rw /mnt/skills", works=False),
    Attempt(
        "take a mask off",
        "umount /proc/kcore || umount /proc/timer_list || umount /notebook/.env",
        works=False,
    ),
    Attempt("write below a mask", ": >> /notebook/.env && test -s /notebook/.env", works=False),
]
KERNEL = [
    Attempt("press the system's keys", ": >> /proc/sysrq-trigger", works=False),
    Attempt("name the program for crashes", ": >> /proc/sys/kernel/core_pattern"),
    Attempt("set any of the kernel's numbers", "find /proc/sys -type f -writable 2>/dev/null | grep -q ."),
    Attempt("write anywhere in /sys", "find /sys -type f -writable 2>/dev/null | grep -q .", works=False),
    Attempt("read the kernel's memory", "head -c 16 /proc/kcore | grep -q .", works=False),
    Attempt(
        "read what the kernel hides",
        "cat /proc/timer_list /proc/sched_debug 2>/dev/null | grep -q .",
        works=False,
    ),
    Attempt("read the firmware's tables", "ls -A /sys/firmware 2>/dev/null | grep -q .", works=False),
    Attempt("be spared when memory runs out", "echo -1000 > /proc/self/oom_score_adj", works=False),
    Attempt(
        "make a group of processes", _any("/sys/fs/cgroup /sys/fs/cgroup/*", 'mkdir "$f/x"'), works=False
    ),
    Attempt(
        "name the program for empty groups",
        "find /sys/fs/cgroup -name release_agent -writable 2>/dev/null | grep -q .",
        works=False,
    ),
    Attempt("hold a capability", "grep -qE '^Cap(Inh|Prm|Eff|Bnd|Amb):.*[1-9a-f]' /proc/self/status"),
    Attempt("gain privileges by a program", "! grep -qE '^NoNewPrivs:.*1' /proc/self/status"),
    Attempt("run without a filter of system calls", "! grep -qE '^Seccomp:.*2' /proc/self/status"),
]
DEVICES = [
    Attempt("make a disk's device", "mknod /tmp/disk b 8 0"),
    Attempt("make the memory's device", "mknod /tmp/memory c 1 1"),
    Attempt(
        "find a device of the machine",
        _any("mem kmem port sda vda nvme0n1 kmsg fuse net/tun loop-control kvm vfio", 'test -e "/dev/$f"'),
        works=False,
    ),
]
NETWORK = [
    Attempt("connect by TCP", _connect(("1.1.1.1", 80)), works=False),
    Attempt("send by UDP", _connect(("8.8.8.8", 53), udp=True), works=False),
    Attempt("connect by IPv6", _connect(("2606:4700:4700::1111", 80), family="socket.AF_INET6"), works=False),
    Attempt("ask the cloud for its keys", _connect(("169.254.169.254", 80)), works=False),
    Attempt("reach a private network", _connect(("10.0.0.1", 80)), works=False),
    Attempt("reach the engine's usual bridge", _connect(("172.17.0.1", 2375)), works=False),
    Attempt(
        "reach this machine's loopback",
        _connect(("127.0.0.1", 0)).replace('"127.0.0.1", 0', '"127.0.0.1", {port}'),
        works=False,
    ),
    Attempt(
        "look a name up", "python3 -c 'import socket; socket.getaddrinfo(\"example.com\", 80)'", works=False
    ),
    Attempt("have a way out", "tail -n +2 /proc/net/route | grep -q .", works=False),
    Attempt("see this machine's sockets", "grep -q @ /proc/net/unix", works=False),
    Attempt(
        "make a raw socket",
        "python3 -c 'import socket as s; s.socket(s.AF_INET, s.SOCK_RAW, s.IPPROTO_ICMP)'",
    ),
    Attempt("listen to packets", "python3 -c 'import socket as s; s.socket(s.AF_PACKET, s.SOCK_RAW)'"),
]
ENGINE = [
    Attempt(
        "find a socket in the file system",
        "find / -type s -not -path '/proc/*' 2>/dev/null | grep -q .",
        works=False,
    ),
    Attempt(
        "find the engine's socket",
        _any("/var/run/docker.sock /run/docker.sock /run/podman/podman.sock", 'test -e "$f"'),
        works=False,
    ),
]
NAMESPACES = [
    Attempt("become root in a namespace of users", "unshare --user --map-root-user true"),
    Attempt("leave the mounts", "unshare --mount true"),
    Attempt("leave the network", "unshare --net true"),
    Attempt("enter the first process", "nsenter --target 1 --mount true"),
    Attempt("change the root", "chroot / true"),
    Attempt("become the guard", "python3 -c 'import os; os.setuid(65534)'"),
    Attempt("take another group", "python3 -c 'import os; os.setgid(65534)'"),
    Attempt("give a file away", "touch /tmp/mine && chown 65534 /tmp/mine"),
]
CALLS = [
    Attempt(f"call {name}", _CALL.format(number=numbers[_ARM]), works=name in _SHOWN)
    for name, numbers in _CALLS.items()
]
PROCESSES = [
    Attempt("trace another process", _others("if libc.ptrace(16, pid, 0, 0): continue")),
    Attempt("open another's memory", _others('open(f"/proc/{pid}/mem", "r+b").close()')),
    Attempt("read another's variables", _others('open(f"/proc/{pid}/environ").read(1)')),
    Attempt("write where another writes", _others('os.close(os.open(f"/proc/{pid}/fd/1", os.O_WRONLY))')),
    Attempt("write where another reads", _others('os.close(os.open(f"/proc/{pid}/fd/0", os.O_WRONLY))')),
    Attempt("see what another has open", _others('os.readlink(f"/proc/{pid}/fd/0")')),
    Attempt("signal the first process", "kill -0 1"),
    Attempt(
        "signal what belongs to another user",
        _others('if os.stat(f"/proc/{pid}").st_uid == os.getuid(): continue\n            os.kill(pid, 0)'),
        works=False,
    ),
]
FOLDERS = [
    Attempt("write the skills", _any("/mnt/skills /workspace/skills", 'touch "$f/new"'), works=False),
    Attempt("change a skill", _any("/mnt/skills /workspace/skills", ': >> "$f/sums/SKILL.md"'), works=False),
    Attempt("change a skill's mode", "chmod 777 /mnt/skills/sums/SKILL.md", works=False),
    Attempt("move the skills away", "mv /workspace/skills /workspace/other", works=False),
    Attempt("link a skill into the workspace", "ln /mnt/skills/sums/SKILL.md /workspace/hard", works=False),
    Attempt("write the artifacts", "touch /artifacts/new || : >> /artifacts/report.txt", works=False),
    Attempt("write the notebook's folder", "touch /notebook/new || : >> /notebook/data.csv", works=False),
    Attempt("remove the notebook's file", "rm -f /notebook/data.csv", works=False),
    Attempt(
        "link the notebook's file into the workspace", "ln /notebook/data.csv /workspace/hard", works=False
    ),
    Attempt(
        "read the notebook's dot-files",
        "cat /notebook/.env /notebook/sub/.netrc 2>/dev/null | grep -q .",
        works=False,
    ),
    Attempt(
        "list the notebook's dot-folders",
        "find /notebook/.git /notebook/sub/.aws -mindepth 1 | grep -q .",
        works=False,
    ),
    Attempt(
        "find a secret in any file",
        "grep -rqaF -e {first}''{rest} / --exclude-dir=proc --exclude-dir=sys 2>/dev/null",
        works=False,
    ),
    Attempt(
        "find a secret in any process",
        "cat /proc/[0-9]*/environ 2>/dev/null | grep -qaF -e {first}''{rest}",
        works=False,
    ),
    Attempt("see the other session", "ls -d {beside} 2>/dev/null", works=False),
]
TABLE = [*MOUNTS, *KERNEL, *DEVICES, *NETWORK, *ENGINE, *NAMESPACES, *CALLS, *PROCESSES, *FOLDERS]
