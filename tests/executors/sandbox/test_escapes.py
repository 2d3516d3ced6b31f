"""Ways out of the local sandbox, all in one place: each is tried for real from inside, and must fail."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.errors import PermissionDeniedError
from conjure_jupyter.executors.sandbox import Kind

from .jail import SECRET, Jail, jailed

SYSCALL = "import ctypes, errno; libc = ctypes.CDLL(None, use_errno=True)\n"

#: Commands that would print the secret.
READS = {
    "a private key": 'cat "$REAL_HOME/.ssh/id_rsa"',
    "credentials of a cloud": 'cat "$REAL_HOME/.aws/credentials"',
    "a browser's profile": 'cat "$REAL_HOME"/.config/*/*',
    "another browser's": 'cat "$REAL_HOME/snap/browser/logins.json"',
    "a dot-file": 'cat "$REAL_HOME/.netrc"',
    "a key in the home folder": 'cat "$REAL_HOME/server.pem"',
    "everything in the home folder": 'grep -rhs "" "$REAL_HOME"',
    "through the variable": "cat ~/.ssh/id_rsa",
    "the project's settings": 'cat "$REAL_HOME/projects/study/.env"',
    "the project's key": 'cat "$REAL_HOME/projects/study/deploy.key"',
    "the session's log": "cat ../timeline.jsonl",
    "the session's blobs": "cat ../blobs/aa",
    "another session's log": "cat ../../two/timeline.jsonl",
    "a folder outside": 'cat "$OUTSIDE/secret.txt"',
    "a link": 'ln -s "$REAL_HOME/.ssh" l; cat l/id_rsa',
    "a hard link": 'ln "$REAL_HOME/.netrc" h; cat h',
    "the root of its own process": 'cat "/proc/self/root$REAL_HOME/.netrc"',
    "the root of process 1": 'cat "/proc/1/root$REAL_HOME/.netrc"',
    "the root of the kernel's process": 'cat "/proc/$KERNEL/root$REAL_HOME/.netrc"',
    "the folder of the kernel's process": "cat /proc/$KERNEL/cwd/pyproject.toml && echo " + SECRET,
    "the environment of the kernel's process": "tr '\\0' '\\n' < /proc/$KERNEL/environ",
    "the environment of its ancestors": "cat /proc/[0-9]*/environ",
    "the memory of the kernel's process": "head -c 1 /proc/$KERNEL/mem && echo " + SECRET,
    "the descriptors of the kernel's process": "cat /proc/$KERNEL/fd/* && echo " + SECRET,
    "a nested user namespace": "unshare -Urm sh -c 'umount -l $REAL_HOME; cat $REAL_HOME/.netrc'",
    "unmounting": 'umount -l "$REAL_HOME"; umount "$REAL_HOME/.netrc"; cat "$REAL_HOME/.netrc"',
    "mounting": 'mkdir m; mount --bind "$REAL_HOME" m; cat m/.netrc',
    "moving the home folder": 'mv "$REAL_HOME" moved; cat moved/.netrc',
    "/etc/shadow": "cat /etc/shadow && echo " + SECRET,
    "the disk": "for d in /dev/[svx]d?; do head -c 1 $d && echo " + SECRET + "; done",
    "kernel memory": "head -c 1 /proc/kcore && echo " + SECRET,
}

#: Commands that would change something outside; each names the file, which must stay as it is.
WRITES = {
    "a file outside": 'echo x > "$OUTSIDE/secret.txt"',
    "a new file outside": 'echo x > "$OUTSIDE/new.txt"',
    "the home folder": 'echo x > "$REAL_HOME/notes.txt"; echo x > "$REAL_HOME/new.txt"',
    "a profile of the shell": 'echo x >> "$REAL_HOME/.bashrc"; echo x > "$REAL_HOME/.zshrc"',
    "a key": 'echo x >> "$REAL_HOME/.ssh/authorized_keys"; rm -rf "$REAL_HOME/.ssh"',
    "the project": "echo x > ../../../../data.csv; echo x > ../../../../new.csv; rm ../../../../data.csv",
    "the session's log": "echo x >> ../timeline.jsonl; rm -rf ../blobs",
    "through a link": 'ln -s "$OUTSIDE" l; echo x > l/secret.txt; echo x > l/new.txt',
    "truncating": 'truncate -s 0 "$OUTSIDE/secret.txt" "$REAL_HOME/notes.txt"',
    "renaming": 'mv "$OUTSIDE/secret.txt" "$OUTSIDE/moved"; mv "$REAL_HOME/notes.txt" .',
    "removing": 'rm -rf "$OUTSIDE" "$REAL_HOME/projects" 2>&1 | tail -1',
    "through the root of process 1": 'echo x > "/proc/1/root$OUTSIDE/secret.txt"',
    "through the kernel's process": 'echo x > "/proc/$KERNEL/root$OUTSIDE/secret.txt"',
    "remounting": 'mount -o remount,rw / ; echo x > "$OUTSIDE/secret.txt"',
    "a hard link": 'ln "$REAL_HOME/notes.txt" h && echo x > h',
}

#: Code that must fail with an ``OSError``, or print ``errno`` of a system call that must fail.
CALLS = {
    "ptrace of the kernel's process": "print(libc.ptrace(16, int(__import__('os').environ['KERNEL']), 0, 0))",
    "a signal to the kernel's process": "print(libc.kill(int(__import__('os').environ['KERNEL']), 0))",
    "keyrings": "print(libc.syscall(250 if M == 'x86_64' else 219, 0, -3, 0))",
    "adding a key": "print(libc.syscall(248 if M == 'x86_64' else 217, b'user', b'n', b'v', 1, -3))",
    "io_uring": "print(libc.syscall(425, 8, ctypes.create_string_buffer(200)))",
    "a new mount tree": "print(libc.syscall(428, -100, b'/', 1))",
    "a user namespace": "print(libc.unshare(0x10000000))",
    "typing into a terminal": (
        "import os, pty\n"
        "try:\n    fd = pty.openpty()[1]\nexcept OSError:\n    fd = 0\n"
        "print(libc.ioctl(fd, ctypes.c_ulong(0x5412), b'x'))"
    ),
    "bpf": "print(libc.syscall(321 if M == 'x86_64' else 280, 0, ctypes.create_string_buffer(128), 128))",
    "loading code into the kernel": "print(libc.syscall(313 if M == 'x86_64' else 273, 0, b'', 0))",
    "chroot": "print(libc.chroot(b'/'))",
    "a device file": "print(libc.mknod(b'disk', 0o060600, 0xfe00))",
    "the kernel's way with crashes": "open('/proc/sys/kernel/core_pattern', 'r+b').close()",
    "settings of the kernel": "open('/proc/sys/vm/swappiness', 'r+b').close()",
    "pressing the system's keys": "open('/proc/sysrq-trigger', 'r+b').close()",
    "settings of devices": "open('/sys/kernel/mm/ksm/run', 'r+b').close()",
    "a raw socket": "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "a packet socket": "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "the host of a virtual machine": "import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
}


@pytest.fixture
async def jail(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Jail]:
    monkeypatch.setenv("SOME_TOKEN", SECRET)
    async with jailed(kind, Path(os.environ["HOME"]), tmp_path / "outside") as made:
        yield made


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; the working directory and what holds caches is left out."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "work" not in path.parts and "cache" not in path.parts
    }


class TestReading:
    @pytest.mark.parametrize("name", READS)
    async def test_secrets(self, jail: Jail, name: str) -> None:
        result = await jail.run(READS[name])
        assert SECRET not in result.text

    async def test_a_dot_file_made_after_the_start(self, jail: Jail) -> None:
        assert (await jail.run("true")).exit_code == 0
        (jail.home / ".new").write_text(SECRET)
        (jail.home / "fresh.pem").write_text(SECRET)
        (jail.project / "late.key").write_text(SECRET)
        command = 'cat "$REAL_HOME/.new" "$REAL_HOME/fresh.pem" "$REAL_HOME/projects/study/late.key"'
        assert SECRET not in (await jail.run(command)).text

    async def test_file_tools_agree(self, jail: Jail) -> None:
        for path in (".env", "deploy.key", ".conjure/sessions/one/timeline.jsonl"):
            with pytest.raises(PermissionDeniedError):
                await jail.executor.read(str(jail.project / path), jail.context)
        await jail.run(f"ln -s {jail.project}/.env l")
        with pytest.raises(PermissionDeniedError):
            await jail.executor.read("l", jail.context)
        listed = await jail.executor.list(str(jail.project), jail.context, depth=4)
        assert not [entry.path for entry in listed if "timeline" in entry.path]

    async def test_what_is_to_be_read_is_there(self, jail: Jail) -> None:
        command = (
            'cat "$REAL_HOME/notes.txt" ~/notes.txt "$REAL_HOME/projects/study/data.csv"; ls ../../../..'
        )
        result = await jail.run(command)
        assert result.text.startswith("notes\nnotes\na,b\n1,2\n")
        assert "data.csv" in result.text.split("1,2\n")[1]
        assert await jail.executor.read(str(jail.project / "data.csv"), jail.context) == b"a,b\n1,2\n"


class TestWriting:
    @pytest.mark.parametrize("name", WRITES)
    async def test_outside(self, jail: Jail, name: str) -> None:
        before = content(jail.home), content(jail.outside)
        await jail.run(WRITES[name])
        assert (content(jail.home), content(jail.outside)) == before

    async def test_temporary_folders_are_its_own(self, jail: Jail, tmp_path: Path) -> None:
        result = await jail.run(f'mktemp; echo x > "$(dirname "$(mktemp)")/made"; echo x > {tmp_path}/made')
        assert not (tmp_path / "made").exists()
        assert not os.path.exists("/tmp/made")  # noqa: PTH110, ASYNC240  one look
        assert (await jail.run('cat "$TMPDIR/made"')).text == "x\n"
        assert result.text

    async def test_where_it_may_it_can(self, jail: Jail) -> None:
        result = await jail.run(
            "mkdir -p outputs/a; echo 1 > outputs/a/f; mv outputs/a b; chmod +x b/f; rm -r b; echo 2 > f"
        )
        assert (result.exit_code, result.text) == (0, "")
        assert (jail.work / "f").read_text() == "2\n"


class TestCalls:
    @pytest.mark.parametrize("name", CALLS)
    async def test_refused(self, jail: Jail, name: str) -> None:
        result = await jail.python(f"{SYSCALL}import os; M = os.uname().machine\n{CALLS[name]}")
        assert result.text == "-1\n" or "Error" in result.text, result.text

    async def test_no_rights_and_none_to_get(self, jail: Jail) -> None:
        status = (await jail.run("cat /proc/self/status")).text.split("\n")
        found = dict(line.split(":\t", 1) for line in status if ":\t" in line)
        # What may be had at most is root's alone to give up, and nobody's to use without new rights.
        most = ["Bnd"] if os.geteuid() == 0 else []
        assert {found[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Amb", *most)} == {"0" * 16}
        assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")

    async def test_calls_of_a_foreign_instruction_set(self, jail: Jail) -> None:
        if os.uname().machine != "x86_64":
            pytest.skip("only x86-64 has two sets of numbers")
        result = await jail.python(f"{SYSCALL}libc.syscall(0x40000000 + 39); print('lives')")
        assert "lives" not in result.text


class TestNetwork:
    @pytest.mark.parametrize("family", ["tcp", "udp", "abstract", "path"])
    async def test_servers_of_this_machine(self, jail: Jail, family: str) -> None:
        reached = threading.Event()
        kind = socket.SOCK_DGRAM if family == "udp" else socket.SOCK_STREAM
        server = socket.socket(socket.AF_INET if family in ("tcp", "udp") else socket.AF_UNIX, kind)
        address: Any = {
            "tcp": ("127.0.0.1", 0),
            "udp": ("127.0.0.1", 0),
            "abstract": f"\0conjure-{os.getpid()}",
            "path": str(jail.outside / "docker.sock"),
        }[family]
        server.bind(address)
        address = server.getsockname()
        if kind == socket.SOCK_STREAM:
            server.listen()
        server.settimeout(5)

        def wait() -> None:
            try:
                if kind == socket.SOCK_STREAM:
                    server.accept()[0].close()
                elif server.recv(10) != b"x":
                    return
            except OSError:
                return
            reached.set()

        thread = threading.Thread(target=wait)
        thread.start()
        code = (
            f"import socket\ns = socket.socket({int(server.family)}, {int(kind)})\n"
            f"s.connect({address!r}); s.send(b'x'); print('reached')"
        )
        result = await jail.python(code)
        if kind == socket.SOCK_STREAM:
            server.shutdown(socket.SHUT_RDWR)
            assert "reached" not in result.text
        else:
            server.sendto(b"", address)
        thread.join()
        server.close()
        assert not reached.is_set()

    async def test_pairs_of_connected_sockets_work(self, jail: Jail) -> None:
        code = "import asyncio; asyncio.run(asyncio.sleep(0)); print('fine')"
        assert (await jail.python(code)).text == "fine\n"
