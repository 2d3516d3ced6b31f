"""One attached bash that serves one call.

It gets its script and the request through its standard input. What a command prints or a file holds comes on
its standard output and ends with a mark; how the call ended comes on its standard error, in lines that start
with a secret. Both are random, new for each call, and named to no command, so nothing a command prints can
pass for them. A command that reads the memory of other processes of its own user can still lie about itself:
that is no more than its own exit code and output.
"""

from __future__ import annotations

import asyncio
import functools
import os
import secrets
from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files

from ..link import LinkLostError, Stream

Attach = Callable[[Sequence[str]], Awaitable[Stream]]

#: Bytes on standard error that are kept while no line is whole, and that are taken in all.
MAX_LINE = 1 << 16
MAX_NOISE = 1 << 20
NO_ANSWER = "A shell in the container gave an answer that is none"
#: Seconds that a new shell gets to read its script.
START = 20.0
_PARTS = ("main.sh", "processes.sh", "run.sh", "walk.sh", "files.sh")
#: Reads the script, whose length and first secret follow; lengths are bytes only in this locale.
_BOOT = (
    '_locale=${LC_ALL+LC_ALL=$LC_ALL}; LC_ALL=C; IFS= read -r -N $1 _text && eval "$_text" && '
    "_secret=$2 && tell ready $$ && serve"
)


@functools.cache
def script() -> bytes:
    """What a shell runs; plain ASCII."""
    folder = files(__package__) / "scripts"
    return "\n".join((folder / name).read_text("ascii") for name in _PARTS).encode("ascii")


class Shell:
    """One attached bash.

    Attributes:
        pid: its process id in the container; 0 until it is ready.
        begun: what it said when it started the command; empty before.
    """

    def __init__(self, stream: Stream, secret: str) -> None:
        self._stream = stream
        self._lines = _Lines(secret)
        self.pid = 0
        self.begun: list[str] = []
        self.closed = False

    @classmethod
    async def start(cls, attach: Attach) -> Shell:
        """Start one and wait until it is ready.

        Raises:
            LinkLostError: it ended at once, does not answer, or says something else.
            ContainerError: the engine refuses.
        """
        text = script()
        secret = secrets.token_hex(16)
        argv = ["bash", "--noprofile", "--norc", "-c", _BOOT, "bash", str(len(text)), secret]
        shell: Shell | None = None
        try:
            async with asyncio.timeout(START):
                shell = cls(await attach(argv), secret)
                await shell._stream.write(text)
                await shell._ready()
        except BaseException as error:
            if shell is not None:
                shell.close()
            if isinstance(error, TimeoutError):
                raise LinkLostError("A shell in the container does not answer") from None
            raise
        return shell

    async def _ready(self) -> None:
        said = b""
        while (piece := await self._stream.read()) is not None:
            if piece[0] == "stdout":
                said = (said + piece[1])[:500]
                continue
            for words in self._lines.add(piece[1]):
                if len(words) == 2 and words[0] == "ready":
                    self.pid = number(words[1])
                    return
                raise LinkLostError(NO_ANSWER)
        said += self._lines.rest
        told = " ".join(said.decode("utf-8", "replace").split())[:300]
        raise LinkLostError("bash cannot be started in the container" + (f": {told}" if told else ""))

    async def call(
        self,
        fields: Sequence[str | bytes],
        *,
        data: bytes = b"",
        sink: Callable[[bytes], None] | None = None,
    ) -> list[str]:
        """Make the call; what the shell says at its end, in words.

        Args:
            fields: the call's name and arguments.
            data: what follows them, such as a file's new content.
            sink: hears the output in pieces; without it there must be none.

        Raises:
            LinkLostError: the shell ended before its call did, or says what it cannot.
        """
        secret, end = secrets.token_hex(16), secrets.token_hex(16)
        self._lines = _Lines(secret)
        body = [os.fsencode(field) for field in fields]
        head = " ".join([secret, end, *(str(len(field)) for field in body)]) + "\n"
        writer = asyncio.ensure_future(self._stream.write(b"".join([head.encode(), *body, data])))
        try:
            return await self._listen(_Until(b"\x1e" + end.encode()), sink)
        finally:
            # A call that is refused leaves data unread; what went wrong in writing is seen in reading.
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _listen(self, output: _Until, sink: Callable[[bytes], None] | None) -> list[str]:
        answer: list[str] | None = None
        while answer is None or not output.ended:
            piece = await self._stream.read()
            if piece is None:
                raise LinkLostError("A shell in the container ended before its call did")
            if piece[0] == "stdout":
                data = output.add(piece[1])
                if data:
                    if sink is None:
                        raise LinkLostError("A shell in the container says more than it was asked for")
                    sink(data)
                continue
            for words in self._lines.add(piece[1]):
                if words[0] == "begun" and not self.begun:
                    self.begun = words
                elif answer is None:
                    answer = words
        return answer

    async def say(self, word: str) -> None:
        """Hand the running call a word: that it is to end."""
        await self._stream.write(word.encode() + b"\n")

    def close(self) -> None:
        """Let go of it; it ends what it runs. Never raises."""
        self.closed = True
        self._stream.close()


class Collected:
    """Output that is kept whole, and is not longer than was asked for.

    Args:
        most: bytes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.data = bytearray()

    def add(self, piece: bytes) -> None:
        """More of it.

        Raises:
            LinkLostError: it is too much.
        """
        if len(self.data) + len(piece) > self._most:
            raise LinkLostError("A shell in the container says more than it was asked for")
        self.data += piece


class _Lines:
    """The lines of standard error that start with a secret; all else is noise, bounded."""

    def __init__(self, secret: str) -> None:
        self._start = secret.encode() + b" "
        self._seen = 0
        self.rest = b""

    def add(self, data: bytes) -> list[list[str]]:
        """More of it; the words of each whole line that counts.

        Raises:
            LinkLostError: it is too much.
        """
        self._seen += len(data)
        *lines, rest = (self.rest + data).split(b"\n")
        self.rest = rest[-MAX_LINE:]
        if self._seen > MAX_NOISE:
            raise LinkLostError("A shell in the container floods its standard error")
        found = (line[len(self._start) :] for line in lines if line.startswith(self._start))
        return [line.decode("utf-8", "replace").split(" ") for line in found]


class _Until:
    """Output up to a mark, which may come in pieces."""

    def __init__(self, mark: bytes) -> None:
        self._mark = mark
        self._held = b""
        self.ended = False

    def add(self, data: bytes) -> bytes:
        """More of it; what of it is surely output. What comes after the mark is nobody's."""
        if self.ended:
            return b""
        data = self._held + data
        place = data.find(self._mark)
        if place >= 0:
            self.ended, self._held = True, b""
            return data[:place]
        start = max(0, len(data) - len(self._mark) + 1)
        while (start := data.find(self._mark[:1], start)) >= 0:
            if self._mark.startswith(data[start:]):
                self._held = data[start:]
                return data[:start]
            start += 1
        self._held = b""
        return data


def number(word: str) -> int:
    """A number that a shell says.

    Raises:
        LinkLostError: it is none, or larger than any that makes sense.
    """
    if not (word.isascii() and word.isdigit() and len(word) <= 20):
        raise LinkLostError(NO_ANSWER)
    return int(word)
