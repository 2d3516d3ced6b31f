"""A file as the user picks it up: this version's bytes, as text, table, file, and in a notebook."""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

import html5lib
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from conjure_jupyter.errors import ArtifactError, ArtifactNotFoundError
from conjure_jupyter.fileref import FileRef
from conjure_jupyter.formats import preview

FRAME = pd.DataFrame({"region": ["north", "süd"], "amount": [1, 2]})
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'></pre></td>"


def ref(folder: Path, name: str, data: bytes, kind: str, *, blob: bool = True, **more: Any) -> FileRef:
    digest = hashlib.sha256(data).hexdigest()
    local = folder / "work" / name
    local.parent.mkdir(parents=True, exist_ok=True)
    local.write_bytes(data)
    kept = folder / digest
    if blob:
        kept.write_bytes(data)
    return FileRef(
        f"outputs/{name}",
        len(data),
        kind,
        digest,
        local_path=local,
        blob=kept if blob else None,
        artifact_path=f"fi:turn_0003.files/{name}",
        version=2,
        **more,
    )


# Bytes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blob", [True, False])
def test_the_bytes_of_this_version(tmp_path: Path, blob: bool) -> None:
    file = ref(tmp_path, "a.txt", "grüße".encode(), "text/plain", blob=blob)
    assert file.bytes() == "grüße".encode()
    assert file.text() == "grüße"
    with file.open() as stream:
        assert (stream.read(2), stream.read()) == (b"gr", "üße".encode())


def test_a_file_that_changed_since_does_not_matter_when_the_bytes_were_kept(tmp_path: Path) -> None:
    file = ref(tmp_path, "a.txt", b"one", "text/plain")
    assert file.local_path is not None
    file.local_path.write_bytes(b"two")
    assert file.bytes() == b"one"
    file.local_path.unlink()
    assert file.bytes() == b"one"


def test_a_damaged_blob_is_passed_over_for_the_file_itself(tmp_path: Path) -> None:
    file = ref(tmp_path, "a.txt", b"one", "text/plain")
    assert file.blob is not None
    file.blob.write_bytes(b"0ne")
    assert file.bytes() == b"one"


@pytest.mark.parametrize("now", [b"two", b"three", None, "folder", "fifo"])
def test_a_changed_file_is_not_this_version(tmp_path: Path, now: bytes | str | None) -> None:
    file = ref(tmp_path, "a.txt", b"one", "text/plain", blob=False)
    path = file.local_path
    assert path is not None
    path.unlink()
    if now == "folder":
        path.mkdir()
    elif now == "fifo":
        os.mkfifo(path)
    elif isinstance(now, bytes):
        path.write_bytes(now)
    with pytest.raises(ArtifactNotFoundError, match="changed or is gone") as caught:
        file.bytes()
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize(
    ("facts", "advice"),
    [
        ({"sha256": ""}, "too large to be kept"),
        ({"sha256": "0" * 64, "storage_url": "s3://b/x"}, "resume the session"),
        ({"sha256": "0" * 64}, "not kept on this machine"),
    ],
)
def test_bytes_that_are_not_here_say_what_to_do(facts: dict[str, Any], advice: str) -> None:
    file = FileRef("outputs/a", 1, "text/plain", **facts)
    for use in (file.bytes, file.text, file.open, lambda: file.save("x")):
        with pytest.raises(ArtifactNotFoundError, match=advice):
            use()


def test_what_is_opened_does_not_change_under_the_reader(tmp_path: Path) -> None:
    file = ref(tmp_path, "a.txt", b"one", "text/plain", blob=False)
    assert file.local_path is not None
    with file.open() as stream:
        with file.local_path.open("r+b") as other:
            other.write(b"TWO")
        assert stream.read() == b"one"


def test_text_in_other_encodings(tmp_path: Path) -> None:
    file = ref(tmp_path, "a.txt", "größe".encode("latin-1"), "text/plain")
    assert file.text("latin-1") == "größe"
    with pytest.raises(ArtifactError, match="is no utf-8 text"):
        file.text()


# Saving ---------------------------------------------------------------------------------------------------


def test_saving_to_a_file_and_into_a_folder(tmp_path: Path) -> None:
    file = ref(tmp_path, "sub/a.txt", b"one", "text/plain")
    target = tmp_path / "saved"
    target.mkdir()
    assert file.save(target) == target / "a.txt"
    assert file.save(str(target / "b.txt")) == target / "b.txt"
    assert sorted(path.name for path in target.iterdir()) == ["a.txt", "b.txt"]
    assert (target / "b.txt").read_bytes() == b"one"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((target / "b.txt").stat().st_mode) == 0o666 & ~umask
    assert file.save("~/c.txt").read_bytes() == b"one"


@pytest.mark.parametrize("links", [True, False])
def test_nothing_is_overwritten_unasked(tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:

        def none(*_: object) -> None:
            raise OSError("no hard links here")

        monkeypatch.setattr(os, "link", none)
    file = ref(tmp_path, "a.txt", b"one", "text/plain")
    target = tmp_path / "mine.txt"
    assert file.save(target).read_bytes() == b"one"
    target.write_bytes(b"mine")
    with pytest.raises(ArtifactError, match="overwrite=True"):
        file.save(target)
    assert target.read_bytes() == b"mine"
    assert file.save(target, overwrite=True).read_bytes() == b"one"
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    with pytest.raises(ArtifactError, match="exists already"):
        file.save(link)
    assert not (tmp_path / "nowhere").exists()
    assert not list(tmp_path.glob(".*"))


def test_what_comes_while_saving_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ref(tmp_path, "a.txt", b"one", "text/plain")
    target = tmp_path / "mine.txt"
    opened = FileRef.open

    def slow(self: FileRef) -> Any:
        target.write_bytes(b"mine")
        return opened(self)

    monkeypatch.setattr(FileRef, "open", slow)
    with pytest.raises(ArtifactError, match="exists already"):
        file.save(target)
    assert target.read_bytes() == b"mine"
    assert not list(tmp_path.glob(".*"))


def test_saving_where_it_cannot_be(tmp_path: Path) -> None:
    file = ref(tmp_path, "a.txt", b"one", "text/plain")
    with pytest.raises(FileNotFoundError):
        file.save(tmp_path / "no" / "folder")


# Tables ---------------------------------------------------------------------------------------------------


def written(form: str) -> bytes:
    stream = io.BytesIO()
    match form:
        case "csv":
            FRAME.to_csv(stream, index=False)
        case "tsv":
            FRAME.to_csv(stream, index=False, sep="\t")
        case "json":
            FRAME.to_json(stream, orient="records")
        case "jsonl":
            FRAME.to_json(stream, orient="records", lines=True)
        case "xlsx":
            FRAME.to_excel(stream, index=False)
        case _:
            getattr(FRAME, f"to_{form}")(stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "kind", "form"),
    [
        ("a.csv", "text/csv", "csv"),
        ("a", "text/csv; charset=utf-8", "csv"),
        ("a.csv", "text/plain", "csv"),
        ("a.tsv", "text/tab-separated-values", "tsv"),
        ("a.json", "application/json", "json"),
        ("a.jsonl", "application/jsonl", "jsonl"),
        ("a", "application/x-ndjson", "jsonl"),
        ("a.parquet", "application/vnd.apache.parquet", "parquet"),
        ("a.pq", "application/octet-stream", "parquet"),
        ("a.xlsx", XLSX, "xlsx"),
        ("a.XLSX", "application/zip", "xlsx"),
        ("a.feather", "application/vnd.apache.arrow.file", "feather"),
    ],
)
def test_tables_become_data_frames(tmp_path: Path, name: str, kind: str, form: str) -> None:
    frame = ref(tmp_path, name, written(form), kind).to_dataframe()
    pd.testing.assert_frame_equal(frame, FRAME, check_dtype=False)


def test_options_go_to_pandas(tmp_path: Path) -> None:
    file = ref(tmp_path, "a.csv", b"a;b\n1;2\n", "text/csv")
    assert list(file.to_dataframe(sep=";").columns) == ["a", "b"]
    assert list(file.to_dataframe(sep=";", usecols=["b"]).columns) == ["b"]
    with pytest.raises(TypeError):
        file.to_dataframe(no_such_option=1)


@pytest.mark.parametrize(
    ("name", "kind"), [("a.png", "image/png"), ("a.txt", "text/plain"), ("a.csv", "text/html")]
)
def test_what_is_no_table_is_told(tmp_path: Path, name: str, kind: str) -> None:
    with pytest.raises(ArtifactError, match="no table"):
        ref(tmp_path, name, b"x", kind).to_dataframe()


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("text/csv", b""),
        ("text/csv", b'a,b\n"'),
        ("application/json", b"{"),
        (XLSX, b"PK"),
        ("text/csv", b"\xff\xfe"),
    ],
)
def test_a_table_that_cannot_be_read_is_told(tmp_path: Path, kind: str, data: bytes) -> None:
    with pytest.raises(ArtifactError, match="cannot be read as"):
        ref(tmp_path, "a", data, kind).to_dataframe()


def test_without_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ref(tmp_path, "a.csv", b"a\n1\n", "text/csv")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ArtifactError, match="pip install pandas"):
        file.to_dataframe()


def test_without_what_pandas_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ref(tmp_path, "a.xlsx", written("xlsx"), XLSX)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ArtifactError, match="openpyxl"):
        file.to_dataframe()


# In a notebook --------------------------------------------------------------------------------------------


def test_the_repr_is_the_same_on_every_machine(tmp_path: Path) -> None:
    file = ref(tmp_path, "a.pdf", b"%PDF-" + bytes(1579), "application/pdf")
    assert repr(file) == "<FileRef outputs/a.pdf (application/pdf, 1.5 KB, v2)>"
    assert repr(FileRef("a\u202e\x1b[31m.txt", 0, "text/plain", "")) == (
        "<FileRef a\\u202e\\x1b[31m.txt (text/plain, 0 B)>"
    )
    assert str(tmp_path) not in f"{file!r}{file._repr_mimebundle_()}"


def bundle(file: FileRef) -> dict[str, str]:
    made = file._repr_mimebundle_(include=None, exclude=None)
    assert made.pop("text/plain") == repr(file)
    return made


def picture(form: str) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (3, 3)).save(stream, form)
    return stream.getvalue()


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
def test_pictures_are_shown(tmp_path: Path, form: str) -> None:
    made = bundle(ref(tmp_path, "a.png", picture(form), "image/png"))
    assert list(made) == [f"image/{form.lower()}"]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"<svg onload=alert(1)>", "image/png"),
        (b"\x89PNG\r\n\x1a\n" + bytes(5 * 1024 * 1024), "image/png"),
        (b"%PDF-1.7", "application/pdf"),
        (b"\0\1", "application/octet-stream"),
    ],
)
def test_everything_else_is_a_card(tmp_path: Path, data: bytes, kind: str) -> None:
    made = bundle(ref(tmp_path, "a.png", data, kind))
    assert list(made) == ["text/html"]
    assert "outputs/a.png" in made["text/html"]
    assert kind in made["text/html"]
    assert "svg" not in made["text/html"]


def test_a_card_says_why_there_is_nothing_to_see(tmp_path: Path) -> None:
    text = bundle(FileRef("outputs/a.png", 9, "image/png", ""))["text/html"]
    assert "too large to be kept" in text


def test_binary_tables_say_how_they_are_read(tmp_path: Path) -> None:
    text = bundle(ref(tmp_path, "a.parquet", written("parquet"), "application/vnd.apache.parquet"))[
        "text/html"
    ]
    assert ".to_dataframe()" in text


def test_a_table_is_shown_in_part(tmp_path: Path) -> None:
    rows = [",".join(f"r{row}c{column}" for column in range(25)) for row in range(50)]
    text = bundle(ref(tmp_path, "a.csv", "\n".join(rows).encode(), "text/csv"))["text/html"]
    assert "r0c0" in text
    assert "r20c19" in text
    assert "r21c0" not in text
    assert "c20" not in text
    assert "the first 20 rows, 20 of 25 columns" in text


def test_a_small_table_is_shown_whole(tmp_path: Path) -> None:
    text = bundle(ref(tmp_path, "a.tsv", b'a\tb\n=1+1\t"x\ty"\n1\n', "text/tab-separated-values"))[
        "text/html"
    ]
    assert "<th>a</th><th>b</th>" in text
    assert "<td>=1+1</td><td>x y</td>" in text
    assert "<td>1</td><td></td>" in text
    assert "to_dataframe" not in text


def test_a_long_cell_and_a_large_table_stay_bounded(tmp_path: Path) -> None:
    data = b"a,b\n" + b"x" * 2_000_000 + b",1\n" + b"1,2\n" * 1_000_000
    assert len(bundle(ref(tmp_path, "a.csv", data, "text/csv"))["text/html"]) < 20_000


def test_text_is_shown_in_part(tmp_path: Path) -> None:
    text = bundle(ref(tmp_path, "a.md", b"# Title\n" + b"x" * 50_000, "text/markdown"))["text/html"]
    assert "<pre># Title" in text
    assert text.count("x") < 10_100
    assert "…" in text
    short = bundle(ref(tmp_path, "b.md", "\ufeffhello\u202e\r\n\x1b[31m".encode(), "text/markdown"))[
        "text/html"
    ]
    assert "<pre>hello\\u202e\n\\x1b[31m</pre>" in short


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.html", "text/html"),
        ("a.svg", "image/svg+xml"),
        ("a.md", "text/markdown"),
        ("a.csv", "text/csv"),
        ("a.json", "application/json"),
        ("a.xml", "application/xml"),
        ("a.bin", "application/octet-stream"),
        ("a.png", "image/png"),
        (HOSTILE.replace("/", ":"), HOSTILE),
    ],
)
def test_nothing_a_file_says_runs(tmp_path: Path, name: str, kind: str) -> None:
    file = FileRef(
        f"outputs/{name}",
        len(HOSTILE),
        kind,
        hashlib.sha256(HOSTILE.encode()).hexdigest(),
        blob=tmp_path / "blob",
    )
    (tmp_path / "blob").write_text(HOSTILE)
    check(bundle(file)["text/html"])


@given(st.text(), st.text(), st.sampled_from(["text/csv", "text/html", "text/plain", "image/svg+xml"]))
def test_no_text_runs(name: str, text: str, kind: str) -> None:
    data = (HOSTILE + text).encode("utf-8", "replace")
    for head in (data, data[:20], None):
        check(preview(name, kind, len(data), head, text)["text/html"])


@given(
    st.binary(max_size=400),
    st.sampled_from(["text/csv", "text/tab-separated-values", "text/plain", "image/png"]),
)
def test_no_bytes_break_the_preview(data: bytes, kind: str) -> None:
    for made in preview("a", kind, len(data), data).values():
        assert len(made) < 10_000


def check(text: str) -> None:
    """Only elements that show, without a single attribute."""
    parser = html5lib.HTMLParser(tree=html5lib.getTreeBuilder("etree"), namespaceHTMLElements=False)
    for element in parser.parse(text).iter():
        assert element.tag in {
            *("html", "head", "body", "div", "p", "strong", "br", "em", "small", "pre"),
            *("table", "thead", "tbody", "tr", "th", "td"),
        }, (element.tag, text)
        assert not element.attrib
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u200b]", text)


def test_a_text_is_shown_without_reading_all_of_a_large_file(tmp_path: Path) -> None:
    file = ref(tmp_path, "a.txt", b"hello", "text/plain")
    huge = tmp_path / "huge"
    with huge.open("wb") as stream:
        stream.write(b"hello ")
        stream.truncate(1 << 40)
    made = bundle(FileRef("outputs/a.txt", 1 << 40, "text/plain", file.sha256, blob=huge))
    assert "<pre>hello " in made["text/html"]
