"""gzip and deflate, a bounded piece at a time: a small bomb never becomes a large block of memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

#: Most bytes of one piece.
PIECE = 1024 * 1024

# zlib's "gzip or zlib, as the data says".
_EITHER = 32 + zlib.MAX_WBITS


class Unpacker:
    """Unpacks compressed content as it comes; streams may follow each other, as gzip allows."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_EITHER)
        self._begun = False

    @property
    def complete(self) -> bool:
        """Whether the content may end here; no content at all may."""
        return self._stream.eof or not self._begun

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """What the next bytes unpack to, in pieces of at most :data:`PIECE` bytes.

        Raises:
            zlib.error: the bytes are not compressed in a known way.
        """
        self._begun = self._begun or bool(data)
        # What a full piece leaves inside comes with the next bytes: the checksum at least is still to come.
        while data:
            if self._stream.eof:
                self._stream = zlib.decompressobj(_EITHER)
            yield self._stream.decompress(data, PIECE)
            data = self._stream.unconsumed_tail or self._stream.unused_data
