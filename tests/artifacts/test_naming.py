"""Names of artifacts, of their files, and of their variables."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.artifacts.naming import check_free, check_name, env_name, with_extension
from conjure_jupyter.errors import InvalidArtifactError


@pytest.mark.parametrize(
    "name", ["a", "sales_data", "sales-2024.v1.csv", "..test", ".hidden", "-x", "für", "数据", "a" * 100]
)
def test_good_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "empty"),
        (".", "dots"),
        ("..", "dots"),
        ("...", "dots"),
        ("a/b", "path"),
        ("a\\b", "path"),
        ("/etc/passwd", "path"),
        ("file://a", "URI"),
        ("https://example.com/a", "URI"),
        ("skill://a/assets/b", "URI"),
        ("a b", "letters"),
        ("a\nb", r"U\+000A"),
        ("a\0", r"U\+0000"),
        ("fi:turn_0001.files", "letters"),
        ("a\u202eb", r"U\+202E"),
        ("a\u200bb", r"U\+200B"),
        ("\u3164", r"U\+3164"),
        ('a"b', "letters"),
        ("a<b>", "letters"),
        ("$HOME", "letters"),
        ("a" * 101, "100"),
    ],
)
def test_names_that_are_refused(name: str, why: str) -> None:
    with pytest.raises(InvalidArtifactError, match=why):
        check_name(name)


def test_a_name_has_one_spelling() -> None:
    assert check_name("fu\u0308r") == "für"


@given(st.text())
def test_an_accepted_name_is_the_name_of_a_file_and_of_a_variable(name: str) -> None:
    try:
        checked = check_name(name)
    except InvalidArtifactError:
        return
    assert "/" not in checked
    assert checked.strip(".")
    assert checked.isprintable()
    assert check_name(checked) == checked == unicodedata.normalize("NFC", checked)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", env_name(checked))


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("sales_data", "ARTIFACT_SALES_DATA"),
        ("sales-2024.csv", "ARTIFACT_SALES_2024_CSV"),
        ("für", "ARTIFACT_FUR"),
        ("数据", "ARTIFACT_U6570U636E"),
        ("1", "ARTIFACT_1"),
    ],
)
def test_variables(name: str, variable: str) -> None:
    assert env_name(name) == variable


def test_names_that_cannot_be_told_apart_are_refused() -> None:
    check_free("sales", ["sales", "prices"])
    with pytest.raises(InvalidArtifactError, match="differs only in case"):
        check_free("Sales", ["prices", "sales"])
    with pytest.raises(InvalidArtifactError, match="ARTIFACT_SALES_DATA"):
        check_free("sales-data", ["sales_data"])
    check_free("数据", ["文件"])


@pytest.mark.parametrize(
    ("name", "mime", "named"),
    [
        ("report", "application/pdf", "report.pdf"),
        ("outputs/report", "application/pdf", "outputs/report.pdf"),
        ("report.pdf", "application/pdf", "report.pdf"),
        ("REPORT.PDF", "application/pdf", "REPORT.PDF"),
        ("photo.jpeg", "image/jpeg", "photo.jpeg"),
        ("photo.png", "image/jpeg", "photo.png.jpg"),
        ("chart.png", "text/html", "chart.png.html"),
        ("table.csv", "image/png", "table.csv.png"),
        ("notes.md", "text/plain", "notes.md"),
        ("data.tsv", "text/csv", "data.tsv"),
        ("page.txt", "text/html", "page.txt"),
        ("report.docx", "application/zip", "report.docx"),
        (
            "report.zip",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "report.zip",
        ),
        ("chart.png", "application/zip", "chart.png.zip"),
        ("sales.v2", "text/csv", "sales.v2.csv"),
        ("script.awk", "text/plain", "script.awk"),
        ("notes", "text/plain", "notes.txt"),
        ("Makefile", "text/plain", "Makefile"),
        ("LICENSE", "text/plain", "LICENSE"),
        (".gitignore", "text/plain", ".gitignore"),
        ("blob", "application/octet-stream", "blob"),
        ("blob", "application/x-no-such-type", "blob"),
        ("model.bin", "application/gzip", "model.bin"),
        ("data", "TEXT/CSV; charset=utf-8", "data.csv"),
    ],
)
def test_extensions_are_added_where_there_is_none_or_a_wrong_one(name: str, mime: str, named: str) -> None:
    assert with_extension(name, mime) == named


@given(st.text(alphabet="abc./-", max_size=10), st.sampled_from(["text/csv", "image/png", "text/html"]))
def test_an_extension_is_only_ever_added(name: str, mime: str) -> None:
    named = with_extension(name, mime)
    assert named.startswith(name)
    assert with_extension(named, mime) == named
