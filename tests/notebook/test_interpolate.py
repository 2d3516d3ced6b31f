from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.errors import PathNotFoundError
from conjure_jupyter.fileref import FileRef
from conjure_jupyter.notebook.interpolate import Prompt, interpolate
from conjure_jupyter.notebook.values import MOST_TEXT, preview

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 30


class Point:
    x = 3

    @property
    def broken(self) -> int:
        raise RuntimeError


class Figure:
    def _repr_png_(self) -> bytes:
        return PNG


@pytest.fixture
def fill(tmp_path: Path) -> Callable[..., Prompt]:
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    for name in ("sales.csv", "data/a b.csv", "README"):
        (folder / name).write_text("x")
    (folder / "chart.png").write_bytes(PNG)
    (folder / "fake.png").write_text("<svg>")
    count = iter(range(1_000))

    def scratch() -> Path:
        made = tmp_path / f"scratch{next(count)}"
        made.mkdir()
        return made

    def fill(
        text: str, files: tuple[str, ...] = (), registered: Collection[str] = (), **namespace: Any
    ) -> Prompt:
        return interpolate(text, namespace, folder, scratch, files=files, registered=registered)

    return fill


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{n} and {p.x}", "41 and 3"),
        ("{{n}} is literal", "{n} is literal"),
        ("{missing} {p.missing} {p.broken} {n.real}", "{missing} {p.missing} {p.broken} 41"),
        ('{"n": {"a": 1}} {} { n } {n!r} {n:>3} {0}', '{"n": {"a": 1}} {} { n } {n!r} {n:>3} {0}'),
        ("{{ n }} {% n %} ${n} {{{n}}}", "{{ n }} {% n %} $41 {{n}}"),
        ("{nested}", "{n}"),
    ],
)
def test_variables_are_filled_in_and_other_braces_stay(
    fill: Callable[..., Prompt], text: str, filled: str
) -> None:
    assert fill(text, n=41, p=Point(), nested="{n}").text == filled


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Look at @sales.csv.", ["sales.csv"]),
        ("(@sales.csv, @README)!", ["sales.csv", "README"]),
        ("file://sales.csv and file://data/a%20b.csv", ["sales.csv", "a b.csv"]),
        ('@"data/a b.csv"', ["a b.csv"]),
        ("@sales.csv twice @sales.csv", ["sales.csv"]),
        ("me@sales.csv a.b@README", []),
        ("@property\n@app.route('/')\n@functools.cache\ndef f(): ...", []),
        ("@missing.csv file://missing @data @/nope @~nobody/x @\0", []),
        ("@table and @notes", ["table.csv", "notes.json"]),
        ("@point.x", ["point.x.json"]),
        ("@words @raw @odd", ["words.txt", "raw.bin", "odd.txt"]),
    ],
)
def test_only_what_exists_is_attached(fill: Callable[..., Prompt], text: str, names: list[str]) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    found = fill(
        text,
        table=pandas.DataFrame({"a": [1]}),
        notes={"a": [1]},
        point=Point(),
        words="hello",
        raw=b"\0",
        odd=Point(),
        app=Point,
        functools=pytest,
        property=property,
    )
    assert [path.name for path in found.files] == names
    assert found.text == text


@pytest.mark.parametrize(
    ("text", "filled", "names"),
    [
        ("Sum file://table, then (file://sales.csv).", None, []),
        ("file://tables and file://README", None, ["README"]),
        ("file://a%20b.csv", None, []),
        ("Sum @table.", "Sum file://table.", []),
        ('(@"table") @sales.csv', "(file://table) @sales.csv", ["sales.csv"]),
        ("@notes and @table!", "@notes and file://table!", ["notes.json"]),
        ("me@table @tables", None, []),
        ("@ümlaut", "file://%C3%BCmlaut", []),
    ],
)
def test_registered_names_stay_for_claude(
    fill: Callable[..., Prompt], text: str, filled: str | None, names: list[str]
) -> None:
    registered = {"table", "sales.csv", "a b.csv", "notes", "ümlaut"}
    found = fill(text, notes={"a": 1}, registered=registered)
    assert found.text == (text if filled is None else filled)
    assert [path.name for path in found.files] == names


def test_a_file_of_the_session_keeps_its_name(fill: Callable[..., Prompt], tmp_path: Path) -> None:
    data = b"a\n1\n"
    (tmp_path / "blob").write_bytes(data)
    ref = FileRef(
        "outputs/report.csv", 4, "text/csv", hashlib.sha256(data).hexdigest(), blob=tmp_path / "blob"
    )
    found = fill("@ref and @gone", ref=ref, gone=FileRef("outputs/gone.csv", 1, "text/csv", "0" * 64))
    assert [(path.name, path.read_bytes()) for path in found.files] == [("report.csv", data)]


def test_images_become_blocks_by_their_bytes(fill: Callable[..., Prompt]) -> None:
    found = fill("@chart.png @figure @fake.png", figure=Figure())
    assert [block["source"]["media_type"] for block in found.images] == ["image/png", "image/png"]
    assert [path.name for path in found.files] == ["chart.png", "figure.png", "fake.png"]
    assert isinstance(found.content, list)
    assert found.content[-1] == {"type": "text", "text": "@chart.png @figure @fake.png"}
    assert fill("plain").content == "plain"


def test_a_file_given_as_an_option_must_exist(fill: Callable[..., Prompt]) -> None:
    assert [path.name for path in fill("x", files=("sales.csv",)).files] == ["sales.csv"]
    with pytest.raises(PathNotFoundError, match=r"nope\.csv"):
        fill("x", files=("nope.csv",))


@given(st.text(max_size=60))
def test_text_without_names_is_unchanged(text: str) -> None:
    found = interpolate(text, {}, Path("/nonexistent"), Path)
    assert found.files == ()
    if "{{" not in text:
        assert found.text == text


def test_previews_are_bounded() -> None:
    assert len(preview("x" * 1_000_000)) < MOST_TEXT + 100
    assert len(preview(list(range(1_000_000)))) < MOST_TEXT + 100

    class Broken:
        def __repr__(self) -> str:
            raise ValueError

    assert "ValueError" in preview(Broken())


def test_a_table_is_its_shape_types_and_first_rows() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    shown = preview(pandas.DataFrame({"region": ["n"] * 5_000, "amount": range(5_000)}))
    assert "5000 rows" in shown
    assert "amount: int64" in shown
    assert len(shown) < 3_000
