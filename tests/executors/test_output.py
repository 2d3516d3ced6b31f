"""Head and tail are kept, the cut is counted exactly."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.executors.output import Output


@given(pieces=st.lists(st.binary(max_size=60), max_size=30), limit=st.integers(0, 100))
def test_any_output(pieces: list[bytes], limit: int) -> None:
    output = Output(limit)
    for piece in pieces:
        output.add(piece)
    whole = b"".join(pieces)
    kept, cut = output.finish()
    assert output.total == len(whole)
    if len(whole) <= limit:
        assert (kept, cut) == (whole, 0)
        return
    assert cut >= len(whole) - limit
    marker = b"[... %d bytes cut ...]\n" % cut
    head, found, tail = kept.partition(marker)
    assert found
    assert whole.endswith(tail)
    head = head if whole.startswith(head) else head.removesuffix(b"\n")
    assert whole.startswith(head)
    assert len(kept) <= limit + len(marker) + 1


@given(text=st.text(min_size=50, max_size=300), limit=st.integers(10, 60))
def test_text_stays_text(text: str, limit: int) -> None:
    output = Output(limit)
    for n in range(0, len(data := text.encode()), 7):
        output.add(data[n : n + 7])
    kept, _ = output.finish()
    assert re.sub(r"\[\.\.\. \d+ bytes cut \.\.\.\]", "", kept.decode()) is not None


def test_memory_is_bounded() -> None:
    output = Output(1000)
    for _ in range(10_000):
        output.add(b"x" * 10_000)
    assert output.total == 100_000_000
    assert sum(map(len, output._tail)) <= 2000
