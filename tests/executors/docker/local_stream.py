"""The input and output of a process that was started here, as an engine gives those of one in a container."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

from conjure_jupyter.executors.docker.link import LinkLostError, Source, Stream


class LocalStream(Stream):
    """A process of this machine; made by ``start``."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._pieces: asyncio.Queue[tuple[Source, bytes] | None] = asyncio.Queue(8)
        self._pump = asyncio.ensure_future(self._run())

    @classmethod
    async def start(
        cls, arguments: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> LocalStream:
        pipe = asyncio.subprocess.PIPE
        return cls(
            await asyncio.create_subprocess_exec(
                *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
            )
        )

    async def _run(self) -> None:
        await asyncio.gather(self._copy("stdout"), self._copy("stderr"))
        await self._pieces.put(None)

    async def _copy(self, source: Source) -> None:
        reader = self.process.stdout if source == "stdout" else self.process.stderr
        assert reader is not None
        while data := await reader.read(1 << 18):
            await self._pieces.put((source, data))

    async def read(self) -> tuple[Source, bytes] | None:
        return await self._pieces.get()

    async def write(self, data: bytes) -> None:
        writer = self.process.stdin
        assert writer is not None
        try:
            writer.write(data)
            await writer.drain()
        except OSError as error:
            raise LinkLostError("the process is gone") from error

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def end(self) -> None:
        """Wait until the process has ended, by itself or not."""
        self.close()
        try:
            await asyncio.wait_for(self.process.wait(), 10)
        finally:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
