"""Logical paths: each form, what is none, and that nothing of it leads out of its folder."""

from __future__ import annotations

import posixpath
import string

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from conjure_jupyter.errors import InvalidArtifactError
from conjure_jupyter.timeline.logical import (
    LogicalPath,
    fault,
    file_path,
    from_physical,
    in_workspace,
    mentions,
    of_workspace,
    parse,
    physical,
    source_mentions,
    turn_id,
)

TURNS = st.integers(0, 10**9 - 1)
PARTS = st.sampled_from(["files", "user.attachments", "internal"])
NAMES = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/\\"), min_size=1, max_size=60
).filter(lambda name: name not in (".", ".."))
RELATIVE = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
CALLS = st.text(string.ascii_letters + string.digits + "_-.:", min_size=1, max_size=40)
ITEMS = st.tuples(st.integers(1, 900_000), st.integers(0, 999), st.booleans())
SOURCES = st.lists(ITEMS, min_size=1, max_size=8).map(
    lambda items: ",".join(f"{n}:{n + wide}" if ranged else str(n) for n, wide, ranged in items)
)
PATHS = st.one_of(
    st.builds(lambda turn, part, rest: f"fi:{turn_id(turn)}.{part}/{rest}", TURNS, PARTS, RELATIVE),
    st.builds(lambda turn: f"ar:{turn_id(turn)}.user.prompt", TURNS),
    st.builds(lambda turn: f"ar:{turn_id(turn)}.assistant.completion", TURNS),
    st.builds(lambda turn, id_: f"tc:{turn_id(turn)}.{id_}.call", TURNS, CALLS),
    st.builds(lambda turn, id_: f"tc:{turn_id(turn)}.{id_}.result", TURNS, CALLS),
    st.builds(lambda turn: f"su:{turn_id(turn)}.conv.range.summary", TURNS),
    st.builds("so:sources_pool[{}]".format, SOURCES),
)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("fi:turn_0003.files/a/b.pdf", LogicalPath("fi", 3, "files", "a/b.pdf")),
        ("fi:turn_0003.files/..test", LogicalPath("fi", 3, "files", "..test")),
        ("fi:turn_0003.files/ a: b.txt ", LogicalPath("fi", 3, "files", " a: b.txt ")),
        ("fi:turn_0003.user.attachments/s.csv", LogicalPath("fi", 3, "user.attachments", "s.csv")),
        ("fi:turn_0003.internal/tmp/x", LogicalPath("fi", 3, "internal", "tmp/x")),
        ("ar:turn_0003.user.prompt", LogicalPath("ar", 3, "user.prompt")),
        ("ar:turn_12345.assistant.completion", LogicalPath("ar", 12345, "assistant.completion")),
        ("tc:turn_0003.toolu_1.call", LogicalPath("tc", 3, "call", "toolu_1")),
        ("tc:turn_0003.a.call.result", LogicalPath("tc", 3, "result", "a.call")),
        ("so:sources_pool[1,3:5]", LogicalPath("so", None, "sources_pool", "1,3:5")),
        ("su:turn_0003.conv.range.summary", LogicalPath("su", 3, "conv.range.summary")),
    ],
)
def test_each_form(text: str, path: LogicalPath) -> None:
    assert parse(text) == path
    assert str(path) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "report.pdf",
        "xx:turn_0003.files/a",
        "fi:turn_0003.files",
        "fi:turn_0003.files/",
        "fi:turn_0003.outputs/a",
        "fi:turn_0003.files//etc/passwd",
        "fi:turn_0003.files/a//b",
        "fi:turn_0003.files/a/",
        "fi:turn_0003.files/../a",
        "fi:turn_0003.files/a/..",
        "fi:turn_0003.files/./a",
        "fi:turn_0003.files/a\\b",
        "fi:turn_0003.files/..\\a",
        "fi:turn_0003.files/a\0",
        "fi:turn_0003.files/a\n",
        "fi:turn_0003.files/a\x7f",
        "fi:turn_0003.files/a\x85",
        "fi:turn_0003.files/\udcff",
        f"fi:turn_0003.files/{'a' * 256}",
        f"fi:turn_0003.files/{'ü' * 128}",
        f"fi:turn_0003.files/{'a/' * 512}a",
        "fi:turn_0003.internal/outputs/a",
        "fi:turn_3.files/a",
        "fi:turn_00003.files/a",
        "fi:turn_-003.files/a",
        "fi:turn_ 003.files/a",
        "fi:turn_0x03.files/a",
        "fi:turn_\u0660\u0660\u0660\u0663.files/a",
        "fi:turn_00\uff133.files/a",
        "fi:turn_1234567890.files/a",
        " fi:turn_0003.files/a",
        "FI:turn_0003.files/a",
        "ar:turn_0003.user.prompt ",
        "ar:turn_0003.user.prompt\n",
        "ar:turn_0003.system.prompt",
        "tc:turn_0003..call",
        "tc:turn_0003.a/b.call",
        "tc:turn_0003.a b.result",
        f"tc:turn_0003.{'a' * 201}.result",
        "tc:turn_0003.a.output",
        "su:turn_0003.summary",
        "so:sources_pool[]",
        "so:sources_pool[0]",
        "so:sources_pool[01]",
        "so:sources_pool[1,]",
        "so:sources_pool[2:1]",
        "so:sources_pool[1:1001]",
        "so:sources_pool[1:]",
        "so:sources_pool[-1]",
        "so:sources_pool[1234567]",
        "so:sources_pool[\uff11]",
        f"so:sources_pool[{'1,' * 200}1]",
        "so:pool[1]",
    ],
)
def test_what_is_no_logical_path(text: str) -> None:
    with pytest.raises(InvalidArtifactError) as raised:
        parse(text)
    assert raised.value.subject == text


@given(PATHS)
def test_a_path_and_its_text_are_the_same(text: str) -> None:
    assume(not text.startswith("fi:") or fault(text.partition("/")[2]) is None)
    assume(".internal/outputs/" not in text)
    path = parse(text)

    assert str(path) == text
    assert parse(str(path)) == path


@given(TURNS, PARTS, RELATIVE)
@example(turn=3, part="files", relative="..test")
@example(turn=3, part="internal", relative="turn_0001/files/x")
def test_physical_and_back_beneath_the_working_directory(turn: int, part: str, relative: str) -> None:
    assume(fault(relative) is None and not (part == "internal" and relative.startswith("outputs/")))
    path = file_path(turn, part, relative)

    assert from_physical(physical(path)) == path
    assert parse(str(path)) == path
    for place in (physical(path), in_workspace(path)):
        assert posixpath.normpath(place) == place
        assert not place.startswith(("/", "../"))
        assert place != ".."
    assert physical(path).startswith(f"{turn_id(turn)}/")
    assert physical(str(path)) == physical(path)
    if part != "internal":
        assert of_workspace(turn, in_workspace(path)) == path


HOSTILE = st.lists(
    st.sampled_from(
        [
            "fi:",
            "turn_0001",
            ".files",
            "/",
            "..",
            ".",
            "\\",
            "\0",
            "\n",
            "a",
            "internal",
            "outputs",
            "//",
            "ü",
        ]
    )
    | st.text(max_size=3),
    max_size=10,
).map("".join)


@given(HOSTILE, HOSTILE)
def test_no_text_leads_out(head: str, rest: str) -> None:
    for text in (
        head,
        f"fi:turn_0001.files/{rest}",
        f"fi:turn_0001.internal/{rest}",
        f"turn_0001/files/{rest}",
    ):
        found = from_physical(text)
        try:
            path = parse(text) if found is None else found
        except InvalidArtifactError:
            continue
        if path.kind == "fi":
            for place in (physical(path), in_workspace(path)):
                assert posixpath.normpath(place) == place
                assert place.isprintable() or not set(place) & set("\0\n\r\t")
                assert not place.startswith(("/", "..")) or path.rest.startswith("..")
                assert ".." not in place.split("/")
                assert "\\" not in place


@given(st.text())
def test_a_relative_path_is_told_right_or_refused(text: str) -> None:
    if fault(text) is None:
        assert str(file_path(1, "files", text)) == f"fi:turn_0001.files/{text}"
    else:
        with pytest.raises(InvalidArtifactError):
            file_path(1, "files", text)
        assert from_physical(f"turn_0001/files/{text}") is None


@pytest.mark.parametrize(("turn", "part"), [(-1, "files"), (10**9, "files"), (1, "attachments"), (1, "")])
def test_a_turn_or_part_that_cannot_be(turn: int, part: str) -> None:
    with pytest.raises(InvalidArtifactError):
        file_path(turn, part, "a")


@pytest.mark.parametrize("path", ["ar:turn_0001.user.prompt", "so:sources_pool[1]", "outputs/a"])
def test_only_files_are_on_disk(path: str) -> None:
    for function in (physical, in_workspace):
        with pytest.raises(InvalidArtifactError):
            function(path)


@pytest.mark.parametrize(
    ("path", "logical"),
    [
        ("outputs/a/b.pdf", "fi:turn_0007.files/a/b.pdf"),
        ("uploads/s.csv", "fi:turn_0007.user.attachments/s.csv"),
        ("tmp/x", "fi:turn_0007.internal/tmp/x"),
        ("outputs", "fi:turn_0007.internal/outputs"),
        ("outputsx/a", "fi:turn_0007.internal/outputsx/a"),
    ],
)
def test_a_file_of_the_working_directory(path: str, logical: str) -> None:
    assert str(of_workspace(7, path)) == logical
    assert in_workspace(logical) == path


@pytest.mark.parametrize(
    "path",
    ["turn_0003/files", "turn_0003/files/", "turn_0003/user.attachments/x", "./turn_0003/files/x", "a", "",
     "turn_3/files/x", "turn_0003/files/../x", "/turn_0003/files/x"],
)  # fmt: skip
def test_what_is_no_physical_path(path: str) -> None:
    assert from_physical(path) is None


def test_numbers_of_sources() -> None:
    assert parse("so:sources_pool[3,1:3,7]").numbers == (3, 1, 2, 7)
    assert parse("ar:turn_0001.user.prompt").numbers == ()


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('<img src="turn_0003/files/a b.png">', ["turn_0003/files/a b.png"]),
        ("<img src='turn_0003/files/a%20b.png?x=1#top'>", ["turn_0003/files/a b.png"]),
        ("![c](turn_0003/attachments/a(1).png 'title')", ["turn_0003/attachments/a(1).png"]),
        ("![c](<turn_0003/files/a b.png>)", ["turn_0003/files/a b.png"]),
        ("url(turn_0003/internal/x/y.svg)", ["turn_0003/internal/x/y.svg"]),
        ("See turn_0003/files/a.txt. And (turn_0001/files/b.txt, turn_0002/files/c.txt)!",
         ["turn_0003/files/a.txt", "turn_0001/files/b.txt", "turn_0002/files/c.txt"]),
        ("python x.py ../../turn_0003/files/s.csv >turn_0002/files/o.csv;",
         ["turn_0003/files/s.csv", "turn_0002/files/o.csv"]),
        ("cat /workspace/turn_0003/files/a.txt", ["turn_0003/files/a.txt"]),
        ("cat .conjure/sessions/s1/work/turn_0003/files/a.txt", ["turn_0003/files/a.txt"]),
        ("--in=turn_0003/files/a.txt `turn_0003/files/a.txt`", ["turn_0003/files/a.txt"]),
        ("données turn_0003/files/été.csv", ["turn_0003/files/été.csv"]),
        ("turn_123456/files/a", ["turn_123456/files/a"]),
        ("https://example.com/turn_0003/files/a.png", []),
        ("other/turn_0003/files/a.png", []),
        ("return_0003/files/a turn_3/files/a turn_0003/filesx/a turn_0003/files/", []),
        ("turn_0003/files/../../etc/passwd", []),
        ('"turn_0003/files/%2e%2e/%2e%2e/etc/passwd"', ["turn_0003/files/%2e%2e/%2e%2e/etc/passwd"]),
        ("fi:turn_0003.files/a.png", []),
        ("", []),
    ],
)  # fmt: skip
def test_paths_that_a_text_names(text: str, paths: list[str]) -> None:
    assert mentions(text) == paths


def test_what_there_is_decides_how_a_mention_is_read() -> None:
    text = "![c](turn_0001/files/50%25 #1.png) and turn_0001/files/C#.txt"
    known = {"turn_0001/files/50%25 #1.png", "turn_0001/files/C#.txt"}

    assert mentions(text, known.__contains__) == ["turn_0001/files/50%25 #1.png", "turn_0001/files/C#.txt"]
    assert mentions(text, {"turn_0001/files/C"}.__contains__)[-1] == "turn_0001/files/C"


@given(HOSTILE.map(lambda text: f"turn_0001/files/{text}") | st.text())
def test_whatever_a_text_names_is_a_path_below(text: str) -> None:
    for path in mentions(f"x {text} y"):
        assert from_physical(path) is not None


@given(RELATIVE.filter(lambda text: fault(text) is None and not set(text) & set('"%#?\u2028\u2029')))
def test_a_quoted_name_is_found_whatever_it_is(relative: str) -> None:
    assert mentions(f'<img alt="x" src="turn_0001/files/{relative}">') == [f"turn_0001/files/{relative}"]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("as [[S:3]] says", [3]),
        ("[[S:1,2]] [[S:2, 5]]", [1, 2, 5]),
        ("[[S:1-3]] [[S:7:8]] [[S:9\u201310]]", [1, 2, 3, 7, 8, 9, 10]),
        ("[[S:]] [[S:0]] [[S:x]] [[S:3-1]] [S:4] [[s:4]] [[S:1,]] [[S:\u0661]]", []),
        ("[[S:1-999999]] [[S:1-1001]]", []),
        ("[[S:999999]]", [999999]),
    ],
)
def test_sources_that_a_text_cites(text: str, numbers: list[int]) -> None:
    assert source_mentions(text) == numbers
