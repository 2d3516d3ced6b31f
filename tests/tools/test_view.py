from __future__ import annotations

import base64
import os
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.tools.text import detect, split_lines
from conjure_jupyter.tools.view import CHUNK, Window

from .conftest import Run


def png(width: int, height: int, padding: int = 0) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"tEXt", b"x" * padding) + chunk(b"IEND", b"")
    )


def jpeg(width: int, height: int, metadata: int = 0) -> bytes:
    segments = b""
    while metadata > 0:
        size = min(metadata, 65_000)
        segments += b"\xff\xe1" + struct.pack(">H", size + 2) + b"\0" * size
        metadata -= size
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\0" * 9
    return b"\xff\xd8" + segments + frame + b"\xff\xd9"


GIF = b"GIF89a" + struct.pack("<HH", 7, 9) + b"\0" * 10
WEBP = b"RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + (11).to_bytes(3, "little") + (12).to_bytes(3, "little")
WEBP_LOSSLESS = b"RIFF\x1a\0\0\0WEBPVP8L\x0a\0\0\0\x2f" + (11 | 12 << 14).to_bytes(4, "little")
WEBP_LOSSY = b"RIFF\x1a\0\0\0WEBPVP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 12, 13)


async def test_text_has_line_numbers(run: Run, work: Path) -> None:
    (work / "a.txt").write_text("one\ntwo\n")
    result = await run("view", path="a.txt")
    assert not result.is_error
    assert result.content == "     1\tone\n     2\ttwo"


async def test_an_absolute_path_is_the_same(run: Run, work: Path) -> None:
    (work / "a.txt").write_text("one")
    assert (await run("view", path=str(work / "a.txt"))).content == "     1\tone"


@pytest.mark.parametrize(
    ("view_range", "lines"), [([2, 3], "23"), ([4, -1], "45"), ([1, 1], "1"), ([4, 99], "45"), ([5, 5], "5")]
)
async def test_a_range_shows_those_lines(run: Run, work: Path, view_range: list[int], lines: str) -> None:
    (work / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 6)))
    text = (await run("view", path="a.txt", view_range=view_range)).text
    assert [row.split("\t")[1] for row in text.split("\n") if "\t" in row] == [f"line {n}" for n in lines]
    assert ("[the file has 5 lines]" in text) is (len(lines) < 5)


@pytest.mark.parametrize(
    ("view_range", "says"),
    [
        ([0, 3], "lines are counted from 1"),
        ([-1, 3], "lines are counted from 1"),
        ([3, 2], "the end comes before the start"),
        ([3, 0], "the end comes before the start"),
        ([3, -2], "the end comes before the start"),
        ([9, 12], "starts at line 9, but a.txt has 2 lines"),
        ([9, -1], "has 2 lines"),
    ],
)
async def test_a_wrong_range_says_what_to_send(
    run: Run, work: Path, view_range: list[int], says: str
) -> None:
    (work / "a.txt").write_text("one\ntwo\n")
    result = await run("view", path="a.txt", view_range=view_range)
    assert result.is_error
    assert says in result.text


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "path is empty"),
        ("  ", "path is empty"),
        ("a\0b", "NUL"),
        ("x" * 5_000, "longer"),
        ("no.txt", "no.txt"),
    ],
)
async def test_a_path_that_cannot_be_is_told(run: Run, path: str, says: str) -> None:
    result = await run("view", path=path)
    assert result.is_error
    assert says in result.text


async def test_outside_the_allowed_folders_nothing_is_shown(run: Run, work: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    (work / "link").symlink_to(tmp_path / "secret.txt")
    for path in ("../secret.txt", str(tmp_path / "secret.txt"), "link"):
        result = await run("view", path=path)
        assert result.is_error
        assert "the secret" not in result.text


async def test_an_empty_file_is_said_to_be_empty(run: Run, work: Path) -> None:
    (work / "a.txt").touch()
    assert (await run("view", path="a.txt")).content == "(a.txt is empty)"


@pytest.mark.parametrize(
    ("data", "line", "note"),
    [
        ("höhe\n".encode(), "höhe", None),
        ("\ufeffhöhe\n".encode(), "höhe", "byte order mark"),
        ("\ufeffhöhe\n".encode("utf-16-le"), "höhe", "UTF-16"),
        ("\ufeffhöhe\n".encode("utf-16-be"), "höhe", "UTF-16"),
        ("höhe\n".encode("latin-1"), "höhe", "Latin-1"),
        (b"a\r\nb\r\n", "a", None),
    ],
)
async def test_encodings_are_recognised(
    run: Run, work: Path, data: bytes, line: str, note: str | None
) -> None:
    (work / "a.txt").write_bytes(data)
    text = (await run("view", path="a.txt")).text
    assert text.split("\n")[0] == f"     1\t{line}"
    assert (note in text) if note else ("[" not in text)


async def test_a_character_cut_by_the_sample_makes_no_binary(run: Run, work: Path) -> None:
    (work / "a.txt").write_bytes(b"a" * 8_191 + "é".encode() + b"\n" + b"b" * CHUNK + "é".encode())
    text = (await run("view", path="a.txt")).text
    assert "\ufffd" not in text
    assert "Latin-1" not in text


async def test_bytes_that_are_no_text_further_down_are_told(run: Run, work: Path) -> None:
    (work / "a.txt").write_bytes(b"good line\n" * 2_000 + b"bad \xff\n")
    text = (await run("view", path="a.txt", view_range=[2_000, 2_001])).text
    assert "bad \ufffd" in text
    assert "no UTF-8" in text


async def test_a_large_file_shows_its_head_and_how_to_go_on(run: Run, work: Path) -> None:
    count = 200_000
    (work / "big.txt").write_text("".join(f"line {number}\n" for number in range(1, count + 1)))
    text = (await run("view", path="big.txt")).text
    assert len(text) <= 30_000
    assert f"of {count:,} shown; use view_range [" in text
    far = (await run("view", path="big.txt", view_range=[count - 1, -1])).text
    assert f"{count}\tline {count}" in far


async def test_a_very_long_line_is_cut(run: Run, work: Path) -> None:
    (work / "a.json").write_text("x" * (CHUNK * 3) + "\nshort\n")
    text = (await run("view", path="a.json")).text
    assert "characters]" in text
    assert text.endswith("\n     2\tshort")
    assert len(text) < 3_000


@pytest.mark.parametrize(
    ("data", "media_type", "size"),
    [
        (png(30, 20), "image/png", "30 x 20"),
        (jpeg(40, 30), "image/jpeg", "40 x 30"),
        (jpeg(40, 30, metadata=200_000), "image/jpeg", "40 x 30"),
        (GIF, "image/gif", "7 x 9"),
        (WEBP, "image/webp", "12 x 13"),
        (WEBP_LOSSLESS, "image/webp", "12 x 13"),
        (WEBP_LOSSY, "image/webp", "12 x 13"),
    ],
)
async def test_images_are_told_by_content(
    run: Run, work: Path, data: bytes, media_type: str, size: str
) -> None:
    (work / "picture.txt").write_bytes(data)
    result = await run("view", path="picture.txt")
    assert isinstance(result.content, list)
    text, image = result.content
    assert size in text["text"]
    assert image["source"]["media_type"] == media_type
    assert base64.b64decode(image["source"]["data"]) == data


@pytest.mark.parametrize(
    "data",
    [png(10, 10, padding=3_950_000), png(8_001, 10), jpeg(10, 8_001), jpeg(10, 8_001, 100_000), jpeg(0, 0)],
)
async def test_an_image_the_service_would_refuse_is_not_sent(run: Run, work: Path, data: bytes) -> None:
    (work / "a.png").write_bytes(data)
    result = await run("view", path="a.png")
    assert result.is_error
    assert "view that" in result.text


async def test_a_pdf_is_a_document(run: Run, work: Path) -> None:
    (work / "a.pdf").write_bytes(b"%PDF-1.7\n%\xe2\xe3\n...")
    result = await run("view", path="a.pdf")
    assert isinstance(result.content, list)
    assert result.content[1]["type"] == "document"
    assert result.content[1]["source"]["media_type"] == "application/pdf"


async def test_a_pdf_that_fills_a_request_is_refused(run: Run, work: Path) -> None:
    with (work / "a.pdf").open("wb") as file:
        file.write(b"%PDF-1.7\n")
        file.truncate(20 * 1024 * 1024 + 1)
    result = await run("view", path="a.pdf")
    assert result.is_error
    assert "20.0 MB" in result.text


async def test_a_binary_file_is_described(run: Run, work: Path) -> None:
    (work / "a.zip").write_bytes(b"PK\x03\x04\x14\x00\x00\x00\x08\x00" + bytes(range(200)))
    text = (await run("view", path="a.zip")).text
    assert "binary file" in text
    assert "ZIP" in text.upper()
    assert "50 4b 03 04" in text
    assert len(text) < 1_000


async def test_a_folder_is_listed_two_levels_deep(run: Run, work: Path) -> None:
    for name in (
        "a/b/c/deep.txt",
        "a/one.csv",
        "node_modules/x/y.js",
        "__pycache__/z.pyc",
        ".git/HEAD",
        "top.md",
    ):
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("12345")
    text = (await run("view", path=".")).text
    rows = [row.strip() for row in text.split("\n")[1:]]
    assert rows == ["a/", "a/b/", "5 B  a/one.csv", "5 B  top.md", "[3 hidden]"]


async def test_a_folder_takes_no_range(run: Run, work: Path) -> None:
    result = await run("view", path=".", view_range=[1, 2])
    assert result.is_error
    assert "leave view_range out" in result.text


async def test_an_empty_folder_is_said_to_be_empty(run: Run) -> None:
    assert "(empty)" in (await run("view", path=".")).text


async def test_a_large_folder_is_bounded_and_said_so(run: Run, work: Path) -> None:
    for number in range(700):
        (work / f"f{number:03}").touch()
    text = (await run("view", path=".")).text
    assert text.count("\n") < 510
    assert "more than 500 entries" in text


async def test_a_name_cannot_pass_for_another_line(run: Run, work: Path) -> None:
    (work / "a\n  5 B  fake").touch()
    (work / "b\u202efdp").touch()
    (work / os.fsdecode(b"c\xff")).touch()
    text = (await run("view", path=".")).text
    assert "\n  5 B  fake" not in text
    assert "\u202e" not in text
    text.encode()


async def test_a_link_that_leads_nowhere_is_named(run: Run, work: Path) -> None:
    (work / "gone").symlink_to("nothing")
    assert "gone (link that leads nowhere" in (await run("view", path=".")).text
    result = await run("view", path="gone")
    assert result.is_error


def test_only_line_feeds_end_lines() -> None:
    assert split_lines("a\x0cb\u2028c\r\nd\re\n") == ["a\x0cb\u2028c", "d\re"]
    assert split_lines("") == []
    assert split_lines("\n\n") == ["", ""]


def test_a_text_with_a_nul_is_binary() -> None:
    assert detect(b"a\0b", whole=True) is None
    assert detect(b"\x01\x02\x03\x04", whole=True) is None
    assert detect(b"\x1b[31mred\x1b[0m text of a log", whole=True) is not None


@given(
    st.lists(st.text(st.sampled_from("ab\n"), max_size=6), max_size=8),
    st.integers(1, 6),
    st.integers(1, 6) | st.just(-1),
)
def test_the_window_is_right_however_the_text_arrives(pieces: list[str], first: int, last: int) -> None:
    window = Window(first, last, 1_000)
    for piece in pieces:
        window.feed(piece)
    window.finish()
    whole = split_lines("".join(pieces))
    assert window.count == len(whole)
    assert window.lines == whole[first - 1 : None if last == -1 else last]
