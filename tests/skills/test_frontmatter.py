from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.errors import InvalidFrontmatterError
from conjure_jupyter.skills import parse_frontmatter
from conjure_jupyter.skills.repair import quote_unquoted
from conjure_jupyter.skills.safe_yaml import MAX_DEPTH, YAMLProblemError, load_mapping
from conjure_jupyter.skills.simple_yaml import load_simple


def skill_md(*lines: str, body: str = "Body.") -> str:
    return "\n".join(["---", "name: odd", "description: text", *lines, "---", body])


def test_all_fields() -> None:
    frontmatter, body = parse_frontmatter(
        skill_md(
            "license: MIT",
            "compatibility:",
            "  products: [claude.ai, api]",
            "metadata:",
            "  author: me",
            "allowed-tools: Read Bash(git add:*)",
            "model: opus",
            body="\n# Title\n\nText\n",
        )
    )
    assert (frontmatter.name, frontmatter.description, frontmatter.license) == ("odd", "text", "MIT")
    assert frontmatter.compatibility == {"products": ["claude.ai", "api"]}
    assert frontmatter.metadata == {"author": "me"}
    assert frontmatter.allowed_tools == ("Read", "Bash(git add:*)")
    assert frontmatter.extra == {"model": "opus"}
    assert body == "# Title\n\nText"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("allowed-tools: Read, Grep, Bash(git add *)", ("Read", "Grep", "Bash(git add *)")),
        ("allowed_tools: [bash, view]", ("bash", "view")),
        ("allowed-tools:\n  - Read\n  - Bash(ls *)", ("Read", "Bash(ls *)")),
        ("allowed-tools:\n- Read", ("Read",)),
        ("allowed-tools: []", ()),
        ("allowed-tools:", None),
        ("allowed-tools: {a: b}", ()),
        ("license: MIT", None),
    ],
)
def test_allowed_tools_in_every_spelling(line: str, expected: tuple[str, ...] | None) -> None:
    assert parse_frontmatter(skill_md(line))[0].allowed_tools == expected


@pytest.mark.parametrize("value", ["no", "1.10", "2024-01-02", "0x10", "~", "null", "1e3", "123", "12:30:45"])
def test_scalars_stay_text(value: str) -> None:
    text = f"---\nname: {value}\ndescription: {value}\nmetadata:\n  version: {value}\n---\n"
    frontmatter, _ = parse_frontmatter(text)
    assert frontmatter.description == frontmatter.metadata["version"] == frontmatter.name == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Use when: asked", "Use when: asked"),
        ("it's for: you", "it's for: you"),
        ("Use when:\n  the user: asks", "Use when: the user: asks"),
        ('"Quoted" text: more', '"Quoted" text: more'),
        ("[WIP] does things", "[WIP] does things"),
        ("@someone does things", "@someone does things"),
        ("|-\n  a: b\n  - c: d", "a: b\n- c: d"),
        (">-\n  one\n  two", "one two"),
        ("'a: b'", "a: b"),
        ("a --- b", "a --- b"),
        ("one\n  two", "one two"),
    ],
)
def test_descriptions_as_people_write_them(value: str, expected: str) -> None:
    assert parse_frontmatter(f"---\nname: odd\ndescription: {value}\n---\n")[0].description == expected


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff---\nname: odd\ndescription: text\n---\nBody.",
        "\n  \n---\nname: odd\ndescription: text\n---\nBody.",
        "---  \nname: odd\ndescription: text\n--- \t\nBody.",
        "---\r\nname: odd\r\ndescription: text\r\n---\r\nBody.\r\n",
        "---\rname: odd\rdescription: text\r---\rBody.",
        "---\nname: odd\ndescription: text\n---\n---\nBody.".replace("---\nBody", "Body"),
    ],
)
def test_fences_of_every_kind(text: str) -> None:
    frontmatter, body = parse_frontmatter(text)
    assert (frontmatter.name, frontmatter.description, body) == ("odd", "text", "Body.")


def test_a_fence_may_end_the_file() -> None:
    assert parse_frontmatter("---\nname: odd\ndescription: text\n---")[1] == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("# Title\n", "does not begin"),
        ("---\nname: odd\ndescription: text\n", "not closed"),
        ("---\nname: odd\n---\n", "description"),
        ("---\nname: odd\ndescription: ''\n---\n", "description"),
        ("---\nname: odd\ndescription: [a, b]\n---\n", "description"),
        ("---\n- a\n- b\n---\n", "mapping"),
        ("---\nname: odd\ndescription: text\nfoo: }\n---\n", "line 4"),
        ("---\n---\n", "description"),
    ],
)
def test_what_cannot_be_used(text: str, reason: str) -> None:
    with pytest.raises(InvalidFrontmatterError, match=reason):
        parse_frontmatter(text)


HOSTILE = {
    "flow nesting": "a: " + "[" * 30_000,
    "flow mappings": "a: " + "{b: " * 15_000,
    "block nesting": "- " * 30_000,
    "mapping nesting": "\n".join(" " * n + "a:" for n in range(350)),
    "anchor": "a: &x text\nb: text",
    "alias": "a: &x [1]\nb: *x",
    "alias bomb": "a: &a [x]\n"
    + "\n".join(f"{c}: &{c} [*{p},*{p}]" for p, c in zip("abcdefgh", "bcdefghi", strict=True)),
    "merge bomb": "x0: &x0 {a: b}\n"
    + "\n".join(f"x{n + 1}: &x{n + 1} {{<<: [*x{n}, *x{n}]}}" for n in range(24)),
    "merge key": "a:\n  <<: {b: c}",
    "tag": "a: !!python/object/apply:os.system [id]",
    "local tag": "a: !x text",
    "size": "a: " + "x" * 70_000,
    "size in bytes": "a: " + "ü" * 40_000,
}


@pytest.mark.parametrize("block", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_yaml_is_refused_with_a_line(block: str) -> None:
    with pytest.raises(InvalidFrontmatterError) as caught:
        parse_frontmatter(f"---\nname: odd\ndescription: text\n{block}\n---\n")
    assert caught.value.line is not None


def test_the_interpreter_survives_a_hundred_thousand_levels() -> None:
    for opening in ("[", "{a: ", "- "):
        with pytest.raises(InvalidFrontmatterError, match=r"KiB|deep"):
            parse_frontmatter("---\na: " + opening * 100_000 + "\n---\n")
        with pytest.raises(YAMLProblemError) as caught:
            load_mapping(opening * (60_000 // len(opening)))
        assert caught.value.unsafe


def test_depth_that_is_allowed() -> None:
    nested = load_mapping("a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))
    assert nested.values["a"] is not None


MARKS = [*":#-?|>*&!%@`,[]{}'~\t\xa0\u2028\x85\x07\ufeff\"\\", "::", "<<", "---", "...", "''"]
TEXTS = [
    "Use when",
    "b: c",
    " # d",
    "#e",
    "'f'",
    '"g"',
    "- h",
    "k:",
    "[i",
    "{j",
    "*l",
    "&m",
    "!n",
    "é",
    "😀",
    "٣",
    "ª",
]
TEXTS += ["name", "1.10", "no", "/r", "(s)", "$t", "._", "…", "x" * 70, "", " "]
WORDS = st.sampled_from(MARKS + TEXTS)
LINES = st.one_of(
    st.builds(
        "{}: {}".format,
        st.sampled_from(["name", "description", "a-b", "a.b", "a_b", "metadata", "1a"]),
        st.lists(WORDS, max_size=3).map(" ".join),
    ),
    st.builds("{}{}:".format, st.sampled_from(["", " ", "  "]), st.sampled_from(["metadata", "tools", "x"])),
    st.builds(
        "{}{}: {}".format,
        st.sampled_from([" ", "  ", "    "]),
        st.sampled_from(["a", "b", "c"]),
        st.lists(WORDS, max_size=2).map(" ".join),
    ),
    st.builds("{}- {}".format, st.sampled_from(["", "  "]), st.lists(WORDS, max_size=2).map(" ".join)),
    st.lists(WORDS, max_size=4).map("".join),
)
BLOCKS = st.one_of(
    st.lists(LINES, max_size=6).map("\n".join), st.text(alphabet=" -:#'\"ab\n[]{}\\\té|>&*!?,", max_size=40)
)


@given(BLOCKS)
def test_the_fast_path_says_what_yaml_says(block: str) -> None:
    simple = load_simple(block)
    if simple is not None:
        assert simple == load_mapping(block).values
        assert not load_mapping(block).duplicates


@given(BLOCKS)
def test_no_block_breaks_the_parser(block: str) -> None:
    values: dict[str, Any] | None = None
    with contextlib.suppress(YAMLProblemError):
        values = load_mapping(block).values
    with contextlib.suppress(YAMLProblemError):
        load_mapping(quote_unquoted(block) or "")
    assert values is None or isinstance(values, dict)


@given(st.text(max_size=200))
def test_no_text_breaks_parse_frontmatter(text: str) -> None:
    frontmatter = None
    with contextlib.suppress(InvalidFrontmatterError):
        frontmatter, _ = parse_frontmatter(text)
    assert frontmatter is None or frontmatter.description


def test_the_fast_path_is_taken() -> None:
    block = "name: odd\ndescription: Use (it) for a/b.\nmetadata:\n  a: b\ntools:\n  - c\nlicense: 'MIT'"
    assert load_simple(block) == load_mapping(block).values
    assert load_simple(block) is not None
