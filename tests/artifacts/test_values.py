"""Python values as files."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from conjure_jupyter.artifacts.values import Serialised, serialise
from conjure_jupyter.errors import InvalidArtifactError, PathNotFoundError
from conjure_jupyter.fileref import FileRef

PNG = b"\x89PNG\r\n\x1a\n"
FRAME = pd.DataFrame({"region": ["north", "süd"], "amount": [1, 2]})


def figure() -> Any:
    mpl.use("Agg")
    from matplotlib.figure import Figure

    made = Figure()
    made.subplots().plot([1, 2])
    return made


def test_a_frame_is_csv_without_an_index_that_only_counts() -> None:
    made = serialise(FRAME)
    assert (made.suffix, made.content_type) == (".csv", "text/csv")
    assert made.data.decode() == "region,amount\nnorth,1\nsüd,2\n"
    assert serialise(FRAME.set_index("region")).data.decode() == "region,amount\nnorth,1\nsüd,2\n"
    assert serialise(FRAME.set_axis([5, 9])).data.decode().startswith(",region")


def test_a_series_is_a_table_of_one_column() -> None:
    assert serialise(FRAME.amount).data == b"amount\n1\n2\n"
    assert serialise(pl.Series("a", [1, 2])).data == b"a\n1\n2\n"


@pytest.mark.parametrize("form", ["csv", "parquet", "feather", "xlsx", "json"])
def test_a_frame_comes_back_in_every_form(form: str) -> None:
    made = serialise(FRAME, format=form)
    assert made.suffix == f".{form}"
    read = {"feather": pd.read_feather, "xlsx": pd.read_excel}.get(form) or getattr(pd, f"read_{form}")
    pd.testing.assert_frame_equal(read(io.BytesIO(made.data)), FRAME, check_dtype=False)


@pytest.mark.parametrize("form", ["csv", "parquet", "feather"])
def test_polars_frames(form: str) -> None:
    made = serialise(pl.DataFrame({"a": [1, 2]}), format=form)
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "feather": pd.read_feather}[form]
    assert list(read(io.BytesIO(made.data))["a"]) == [1, 2]


def test_what_a_table_cannot_be() -> None:
    with pytest.raises(InvalidArtifactError, match="csv, json, parquet"):
        serialise(FRAME, format="pickle")
    with pytest.raises(InvalidArtifactError, match="collect"):
        serialise(pl.LazyFrame({"a": [1]}))
    with pytest.raises(InvalidArtifactError, match="only a table"):
        serialise({"a": 1}, format="parquet")


def test_formulas_stay_text() -> None:
    assert serialise(pd.DataFrame({"a": ["=1+1"]})).data == b"a\n=1+1\n"


def test_an_array_is_npy_and_never_a_pickle() -> None:
    made = serialise(np.eye(2))
    assert (made.suffix, made.content_type) == (".npy", "application/x-npy")
    assert np.load(io.BytesIO(made.data), allow_pickle=False).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(InvalidArtifactError, match="tolist"):
        serialise(np.array([object()]))


@pytest.mark.parametrize(
    "value",
    [
        figure(),
        figure().axes[0],
        Image.new("RGB", (3, 3)),
        Image.new("CMYK", (3, 3)),
        Image.new("F", (3, 3)),
        Image.new("P", (3, 3)),
    ],
    ids=["figure", "axes", "rgb", "cmyk", "float", "palette"],
)
def test_pictures_are_png(value: Any) -> None:
    made = serialise(value)
    assert (made.suffix, made.content_type) == (".png", "image/png")
    Image.open(io.BytesIO(made.data)).load()


def test_a_plotly_figure_needs_kaleido() -> None:
    works = type("Figure", (), {"__module__": "plotly.graph_objs", "to_image": lambda _, **options: PNG})
    assert serialise(works()) == Serialised(".png", "image/png", PNG)

    def fails(_: object, **options: str) -> bytes:
        raise ValueError("no kaleido")

    broken = type("Figure", (), {"__module__": "plotly.graph_objs", "to_image": fails})
    with pytest.raises(InvalidArtifactError, match="install kaleido"):
        serialise(broken())


def test_what_shows_itself_as_a_picture_is_one() -> None:
    for shown in (PNG, (PNG, {"width": 1}), "iVBORw0KGgo="):
        made = type("Chart", (), {"_repr_png_": lambda _, shown=shown: shown})()
        assert serialise(made).data == PNG
    blank = type("Chart", (), {"_repr_png_": lambda _: None})()
    with pytest.raises(InvalidArtifactError, match="no picture"):
        serialise(blank)


@dataclass
class Point:
    x: int
    when: dt.date


@pytest.mark.parametrize(
    ("value", "back"),
    [
        ({"a": [1, "ü", None, True]}, None),
        ([], None),
        ((1, 2), [1, 2]),
        (3, None),
        (True, None),
        ({"n": float("nan"), "l": [float("inf")]}, {"n": None, "l": [None]}),
        (
            {"d": dt.date(2024, 1, 2), "t": dt.datetime(2024, 1, 2, 3)},
            {"d": "2024-01-02", "t": "2024-01-02T03:00:00"},
        ),
        ([decimal.Decimal("1.5"), Path("a/b"), uuid.UUID(int=1)], ["1.5", "a/b", str(uuid.UUID(int=1))]),
        ([{2, 1}, np.int64(3), np.array([1.5, np.nan]), np.float32(2)], [[1, 2], 3, [1.5, None], 2]),
        ([Point(1, dt.date(2024, 1, 2))], [{"x": 1, "when": "2024-01-02"}]),
        (np.int64(7), 7),
    ],
)
def test_data_is_json(value: Any, back: Any) -> None:
    made = serialise(value)
    assert (made.suffix, made.content_type) == (".json", "application/json")
    said = json.loads(made.data, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert said == (value if back is None else back)


@pytest.mark.parametrize("value", [{(1, 2): 3}, [object()], [lambda: 0]])
def test_data_that_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(InvalidArtifactError, match="writing it failed"):
        serialise(value)


def test_data_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InvalidArtifactError):
        serialise(loop)


def test_text_and_bytes() -> None:
    assert serialise("grüße") == Serialised(".txt", "text/plain", "grüße".encode())
    assert serialise("lone \ud800").data == b"lone ?"
    assert serialise(b"%PDF-1.7\n").suffix == ".pdf"
    assert serialise(bytearray(PNG + bytes(30))).content_type == "image/png"
    assert serialise(memoryview(b'{"a": 1}')).suffix == ".json"
    assert serialise(b"\0\1\2") == Serialised(".bin", "application/octet-stream", b"\0\1\2")


def test_paths_and_files_of_a_session(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,2\n")
    assert serialise(path) == Serialised(".csv", "text/csv", b"a,b\n1,2\n")
    with pytest.raises(PathNotFoundError):
        serialise(tmp_path / "gone")
    with pytest.raises(InvalidArtifactError, match="not a file"):
        serialise(tmp_path)
    import hashlib

    ref = FileRef("outputs/x.md", 2, "text/markdown", hashlib.sha256(b"# ").hexdigest(), blob=tmp_path / "b")
    (tmp_path / "b").write_bytes(b"# ")
    assert serialise(ref) == Serialised(".md", "text/markdown", b"# ")


@pytest.mark.parametrize("value", [object(), None, len, json, int, iter([])])
def test_what_has_no_form_is_told(value: Any) -> None:
    with pytest.raises(InvalidArtifactError, match="register a DataFrame"):
        serialise(value)


def test_a_value_that_raises_is_told() -> None:
    def fails(_: object) -> bytes:
        raise RuntimeError("boom")

    broken = type("Chart", (), {"_repr_png_": fails})()
    with pytest.raises(InvalidArtifactError, match="RuntimeError: boom"):
        serialise(broken)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_json_comes_back(value: dict[str, Any]) -> None:
    finite = not any(map(str(value).__contains__, ("inf", "\\ud")))
    said = json.loads(serialise(value).data)
    assert not finite or said == value


def test_nothing_heavy_is_loaded_for_a_text() -> None:
    code = """
import sys
from conjure_jupyter.artifacts.values import serialise
serialise("a")
serialise({"a": 1})
print(*({"numpy", "pandas", "polars", "PIL", "matplotlib", "puremagic"} & set(sys.modules)))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == []
