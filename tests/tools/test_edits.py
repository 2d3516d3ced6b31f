from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conjure_jupyter.tools.diffs import edit_diff, whole_diff
from conjure_jupyter.tools.text import split_lines

from .conftest import Run


async def test_a_new_file_is_made_with_its_folders(run: Run, work: Path) -> None:
    result = await run("create_file", path="outputs/new/a.md", file_text="# A\ntext\n", description="x")
    assert (result.content, result.is_error) == ("Created outputs/new/a.md (2 lines, 9 B)", False)
    assert (work / "outputs/new/a.md").read_bytes() == b"# A\ntext\n"
    assert result.meta["files"] == ["outputs/new/a.md"]
    assert result.meta["diff"].startswith("--- /dev/null\n+++ b/outputs/new/a.md\n@@ -0,0 +1,2 @@\n+# A")


async def test_an_old_file_is_replaced_and_that_is_said(run: Run, work: Path) -> None:
    (work / "a.md").write_text("old\nsame\n")
    result = await run("create_file", path=str(work / "a.md"), file_text="new\nsame\n")
    assert result.text.startswith("Replaced a.md (2 lines")
    assert "-old\n+new\n same" in result.meta["diff"]


async def test_writing_the_same_again_is_told(run: Run, work: Path) -> None:
    (work / "a.md").write_text("same")
    result = await run("create_file", path="a.md", file_text="same")
    assert "its content was the same" in result.text
    assert result.meta["diff"] == ""


@pytest.mark.parametrize("path", ["folder", "folder/", ".", "../out.txt", "/proc/x", "a\0", ""])
async def test_what_cannot_be_a_file_is_refused(run: Run, work: Path, tmp_path: Path, path: str) -> None:
    (work / "folder").mkdir()
    result = await run("create_file", path=path, file_text="x")
    assert result.is_error
    assert not (tmp_path / "out.txt").exists()


async def test_a_file_is_written_byte_for_byte(run: Run, work: Path) -> None:
    text = "a\r\nb\u2028\x0c\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16") + "\nno end"
    await run("create_file", path="a", file_text=text)
    assert (work / "a").read_bytes() == text.encode()


async def test_half_a_character_is_refused(run: Run, work: Path) -> None:
    result = await run("create_file", path="a", file_text="x\ud83d")
    assert result.is_error
    assert "surrogate" in result.text
    assert not (work / "a").exists()


async def test_secrets_that_were_not_shown_are_not_overwritten(run: Run, work: Path) -> None:
    (work / ".env").write_text("API_KEY=abcdefgh12345678\nDEBUG=0\n")
    assert "[redacted]" in (await run("view", path=".env")).text
    result = await run("create_file", path=".env", file_text="API_KEY=[redacted]\nDEBUG=1\n")
    assert result.is_error
    assert "abcdefgh12345678" in (work / ".env").read_text()
    edited = await run("str_replace", path=".env", old_str="DEBUG=0", new_str="DEBUG=1")
    assert (work / ".env").read_text() == "API_KEY=abcdefgh12345678\nDEBUG=1\n"
    assert "abcdefgh12345678" not in edited.text + edited.meta["diff"]


async def test_one_place_is_edited(run: Run, work: Path) -> None:
    (work / "a.py").write_text("".join(f"line {number}\n" for number in range(1, 21)))
    result = await run("str_replace", path="a.py", old_str="line 10\n", new_str="ten\n", description="x")
    assert not result.is_error
    assert (work / "a.py").read_text().split("\n")[9] == "ten"
    assert "    10\tten\n    11\tline 11" in result.text
    assert "line 3" not in result.text
    assert "@@ -7,7 +7,7 @@" in result.meta["diff"]
    assert "-line 10\n+ten" in result.meta["diff"]
    assert result.meta["files"] == ["a.py"]


async def test_without_a_replacement_the_text_goes(run: Run, work: Path) -> None:
    (work / "a").write_text("keep drop keep")
    await run("str_replace", path="a", old_str=" drop")
    assert (work / "a").read_text() == "keep keep"


@pytest.mark.parametrize(
    ("content", "old", "says"),
    [
        ("a\nb\na\n", "a", "occurs 2 times in f, at lines 1, 3"),
        ("aaa", "aa", "occurs 2 times"),
        ("x\n" * 2_000, "x", "1,000 or more times"),
        ("text", "missing", "does not occur in f; view the file"),
        (
            "def f():\n    return  1\n",
            "def f():\n\treturn 1",
            "lines 1 to 2 of it differ only in white space",
        ),
        ("  indented\n", "indented ", "line 1 of it differ"),
        ("one\ntwo\n", "     1\tone\n     2\ttwo", "line numbers that view puts"),
        ("first line\nother\n", "first line\nnot this", "its first line is line 1"),
        ("API_KEY=abcdefgh12345678", "API_KEY=[redacted]", "stands for a secret"),
        ("text", "", "old_str is empty"),
    ],
)
async def test_a_text_that_is_not_there_once_changes_nothing(
    run: Run, work: Path, content: str, old: str, says: str
) -> None:
    (work / "f").write_text(content)
    result = await run("str_replace", path="f", old_str=old, new_str="new")
    assert result.is_error
    assert says in result.text
    assert (work / "f").read_text() == content


async def test_an_edit_that_changes_nothing_is_refused(run: Run, work: Path) -> None:
    (work / "f").write_text("a")
    assert (await run("str_replace", path="f", old_str="a", new_str="a")).is_error


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        (b"a\r\nb\r\nc\r\n", ("a\nb", "x\ny\nz"), b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", ("b", "x\ny"), b"a\r\nx\r\ny\r\n"),
        (b"a\r\nb\r\n", ("a\r\nb", "c\r\nd"), b"c\r\nd\r\n"),
        (b"a\nb\n", ("a\r\nb", "c\r\nd"), b"c\nd\n"),
        (b"a\r\nb\nc\n", ("b", "x\ny"), b"a\r\nx\ny\nc\n"),
        (b"\xef\xbb\xbfa b", ("a", "c"), b"\xef\xbb\xbfc b"),
        ("\ufeffä b".encode("utf-16-le"), ("ä", "ü"), "\ufeffü b".encode("utf-16-le")),
        ("ä b".encode("latin-1"), ("ä", "ü"), "ü b".encode("latin-1")),
        (b"a" * 9_000 + b"\xff mark", ("mark", "é"), b"a" * 9_000 + b"\xff \xc3\xa9"),
    ],
)
async def test_line_ends_and_encoding_stay(
    run: Run, work: Path, before: bytes, edit: tuple[str, str], after: bytes
) -> None:
    (work / "f").write_bytes(before)
    result = await run("str_replace", path="f", old_str=edit[0], new_str=edit[1])
    assert not result.is_error, result.text
    assert (work / "f").read_bytes() == after


async def test_a_character_the_encoding_lacks_is_told(run: Run, work: Path) -> None:
    (work / "f").write_bytes("ä".encode("latin-1") + b" end")
    result = await run("str_replace", path="f", old_str="end", new_str="→")
    assert result.is_error
    assert "latin-1" in result.text


async def test_a_binary_file_is_not_edited(run: Run, work: Path) -> None:
    (work / "f").write_bytes(b"\0\1\2 text")
    assert "no text file" in (await run("str_replace", path="f", old_str="text", new_str="x")).text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(
    st.text(st.sampled_from("ab\n\r"), max_size=30),
    st.text(st.sampled_from("ab\n\r"), min_size=1, max_size=4),
    st.text(st.sampled_from("xy\n"), max_size=4),
)
async def test_an_edit_is_right_or_changes_nothing(
    run: Run, work: Path, content: str, old: str, new: str
) -> None:
    (work / "f").write_bytes(content.encode())
    result = await run("str_replace", path="f", old_str=old, new_str=new)
    after = (work / "f").read_bytes().decode()
    if result.is_error:
        assert after == content
    else:
        same = after.replace("\r\n", "\n") == content.replace("\r\n", "\n").replace(
            old.replace("\r\n", "\n"), new, 1
        )
        assert same or after == content.replace(old, new, 1)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=12), st.data())
def test_the_diff_of_an_edit_is_the_diff_of_the_files(lines: list[str], data: st.DataObject) -> None:
    before = "\n".join(lines)
    start = data.draw(st.integers(0, len(before)))
    end = data.draw(st.integers(start, len(before)))
    new = data.draw(st.sampled_from(["", "x", "x\ny", "\n"]))
    after = before[:start] + new + before[end:]
    for diff in (whole_diff(before, after, "f"), edit_diff(before, start, end, new, "f")):
        lines_now = Counter(split_lines(before))
        for line in diff.split("\n")[2:]:
            if line[:1] in ("+", "-"):
                lines_now[line[1:]] += 1 if line[0] == "+" else -1
        assert {line: count for line, count in lines_now.items() if count} == Counter(split_lines(after))


def test_a_long_diff_is_bounded() -> None:
    diff = whole_diff(None, "x" * 10_000 + "\n" + "y\n" * 1_000, "f")
    assert len(diff) < 2_000
    assert diff.endswith("more lines]")
