from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.wording import size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1023, "1023 B"),
        (1024, "1.0 KB"),
        (15_565, "15.2 KB"),
        (1_258_291, "1.2 MB"),
        (1024**2 - 1, "1.0 MB"),
        (100 * 1024**2, "100.0 MB"),
        (5 * 1024**3, "5.0 GB"),
        (3 * 1024**5, "3072.0 TB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


@given(st.integers(0, 1024**4 - 1))
def test_a_number_never_reaches_its_next_unit(size: int) -> None:
    number, unit = size_text(size).split(" ")
    assert float(number) < 1024
    assert float(number) * 1024 ** ("B", "KB", "MB", "GB", "TB").index(unit) == pytest.approx(size, rel=0.05)
