"""A name server of the tests' own, that counts what it is asked and may answer otherwise each time."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
import threading
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

A, AAAA = 1, 28


class NameServer:
    """Answers over UDP from ``records``: for each name the addresses of its first look-up, of the second …

    The last addresses stay. An empty list is a name without addresses; an unknown name is NXDOMAIN.
    """

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self.records: dict[str, Sequence[Sequence[str]]] = {}
        self.queries: Counter[tuple[str, int]] = Counter()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, port))
        self.address: tuple[str, int] = self._socket.getsockname()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stop:
            stop.sendto(b"", self.address)
        self._thread.join()
        self._socket.close()

    def look_ups(self, name: str) -> int:
        """How often a name was looked up, IPv4 and IPv6 counted as one."""
        return max(self.queries[name, A], self.queries[name, AAAA])

    async def resolve(self, name: str, port: int) -> list[str]:
        """Ask this server, as the ``resolve`` of a fetcher."""
        found = await asyncio.to_thread(lambda: [*self._ask(name, A), *self._ask(name, AAAA)])
        if not found and name not in self.records:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found

    def _ask(self, name: str, kind: int) -> list[str]:
        question = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(5)
            client.sendto(
                struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + question + struct.pack("!2H", kind, 1),
                self.address,
            )
            reply = client.recv(4096)
        found, at = [], 12 + len(question) + 4
        for _ in range(struct.unpack("!H", reply[6:8])[0]):
            length = struct.unpack("!H", reply[at + 10 : at + 12])[0]
            found.append(str(ipaddress.ip_address(reply[at + 12 : at + 12 + length])))
            at += 12 + length
        return found

    def _serve(self) -> None:
        while True:
            query, client = self._socket.recvfrom(4096)
            if not query:
                return
            self._socket.sendto(self._reply(query), client)

    def _reply(self, query: bytes) -> bytes:
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode().lower())
            at += 1 + query[at]
        kind = struct.unpack("!H", query[at + 1 : at + 3])[0]
        name = ".".join(labels)
        asked = self.queries[name, kind]
        self.queries[name, kind] += 1
        turns = self.records.get(name)
        addresses = [] if not turns else turns[min(asked, len(turns) - 1)]
        data = [ipaddress.ip_address(each).packed for each in addresses]
        data = [each for each in data if len(each) == (4 if kind == A else 16 if kind == AAAA else -1)]
        flags = 0x8180 if turns is not None else 0x8183
        answers = b"".join(b"\xc0\x0c" + struct.pack("!2HIH", kind, 1, 0, len(each)) + each for each in data)
        return query[:2] + struct.pack("!5H", flags, 1, len(data), 0, 0) + query[12 : at + 5] + answers
