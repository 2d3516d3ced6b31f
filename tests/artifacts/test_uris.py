"""URIs: what each says, what is none, and where a bash command names one."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.artifacts.uris import (
    ArtifactURI,
    file_uri,
    is_uri,
    parse_uri,
    skill_uri,
    uris_in_words,
)
from conjure_jupyter.errors import InvalidArtifactError


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        (
            "skill://csv-helper/assets/sample_data.csv",
            ArtifactURI("skill", skill="csv-helper", path="sample_data.csv"),
        ),
        (
            "skill://pdf-generator/assets/templates/invoice.docx",
            ArtifactURI("skill", skill="pdf-generator", path="templates/invoice.docx"),
        ),
        ("SKILL://a/assets/b", ArtifactURI("skill", skill="a", path="b")),
        ("skill://a/assets/..test", ArtifactURI("skill", skill="a", path="..test")),
        ("skill://a/assets/x/assets/y", ArtifactURI("skill", skill="a", path="x/assets/y")),
        ("skill://my%20skill/assets/a%20b.csv", ArtifactURI("skill", skill="my skill", path="a b.csv")),
        ("skill://a/assets/100%25.csv", ArtifactURI("skill", skill="a", path="100%.csv")),
        ("skill://a/assets/%252e%252e/b", ArtifactURI("skill", skill="a", path="%2e%2e/b")),
        ("skill://a/assets/b?c#d", ArtifactURI("skill", skill="a", path="b?c#d")),
        ("file://sales_report", ArtifactURI("file", name="sales_report")),
        ("file://data/sales.csv", ArtifactURI("file", name="data/sales.csv")),
        ("file://f%C3%BCr.csv", ArtifactURI("file", name="für.csv")),
        ("file:///abs/olute", ArtifactURI("file", name="/abs/olute")),
        (
            "https://example.com/api/data.json?a=%20",
            ArtifactURI("https", url="https://example.com/api/data.json?a=%20"),
        ),
        ("HTTP://example.com", ArtifactURI("http", url="HTTP://example.com")),
    ],
)
def test_what_a_uri_says(text: str, parsed: ArtifactURI) -> None:
    assert is_uri(text)
    assert parse_uri(text) == parsed


@pytest.mark.parametrize(
    "text",
    [
        "skill://",
        "skill://a",
        "skill://a/assets",
        "skill://a/assets/",
        "skill:///assets/b",
        "skill://a/scripts/run.py",
        "skill://a/SKILL.md",
        "skill://a/assets/../SKILL.md",
        "skill://a/assets/b/../../SKILL.md",
        "skill://a/assets/%2e%2e/SKILL.md",
        "skill://a/assets/..%2fSKILL.md",
        "skill://a/assets//etc/passwd",
        "skill://a/assets/%2fetc/passwd",
        "skill://a/assets/.",
        "skill://a/assets/b%00.csv",
        "skill://a%2f../assets/b",
        "skill://a/assets/%ff",
        "skill://a/assets/b\n",
        "file://",
        "file:///",
        "file://a%0ab",
        "file://a\x00b",
        "https://",
        "https:///",
        "https://a/b\r\nHost: evil",
        "ftp://a/b",
        "data.csv",
        "",
        "file:/a",
        "://a",
        "file://\ud800",
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(InvalidArtifactError) as caught:
        parse_uri(text)
    assert caught.value.subject == text


@given(st.text(min_size=1).filter(lambda text: "/" not in text), st.text(min_size=1))
def test_a_skills_uri_is_read_back_or_refused(skill: str, path: str) -> None:
    try:
        uri = skill_uri(skill, path)
    except UnicodeEncodeError:
        return
    assert uri.isascii()
    try:
        parsed = parse_uri(uri)
    except InvalidArtifactError:
        return
    assert (parsed.skill, parsed.path, str(parsed)) == (skill, path, uri)
    assert ".." not in path.split("/")
    assert not path.startswith("/")


@given(st.text(min_size=1))
def test_a_files_uri_is_read_back_or_refused(name: str) -> None:
    try:
        uri = file_uri(name)
        parsed = parse_uri(uri)
    except (InvalidArtifactError, UnicodeEncodeError):
        return
    assert (parsed.name, str(parsed)) == (name, uri)


@given(st.text())
def test_no_text_does_more_than_be_refused(text: str) -> None:
    for prefix in ("", "skill://", "skill://a/assets/", "file://", "https://"):
        try:
            parsed = parse_uri(prefix + text)
        except InvalidArtifactError:
            continue
        assert "\0" not in (parsed.path or parsed.name or parsed.url or "")


# In commands ----------------------------------------------------------------------------------------------


def found(command: str) -> list[str]:
    hits = uris_in_words(command)
    assert all(command[start:end] == uri for start, end, uri in hits)
    return [uri for _, _, uri in hits]


@pytest.mark.parametrize(
    ("command", "uris"),
    [
        ("wc -l file://sales", ["file://sales"]),
        ("cat file://a skill://s/assets/b.csv", ["file://a", "skill://s/assets/b.csv"]),
        ("cat file://a|sort>outputs/x;wc<file://b&", ["file://a", "file://b"]),
        ("(cat file://a)", ["file://a"]),
        ("x=$(cat file://a)", ["file://a"]),
        ("diff <(sort file://a) <(sort file://b)", ["file://a", "file://b"]),
        ("cat \\\n  file://a", ["file://a"]),
        ("cat \\\nfile://a", ["file://a"]),
        ("echo 'it''s' file://a", ["file://a"]),
        ('echo "q" file://a # file://b', ["file://a"]),
        ("cat <<EOF\nfile://a\nEOF\ncat file://b", ["file://b"]),
        ("cat <<-'E F' >x file://c\n\tfile://a\n\tE F\ncat file://b", ["file://c", "file://b"]),
        ("cat <<A <<B\nfile://a\nA\nfile://b\nB\ncat file://c", ["file://c"]),
        ("FILE://Sales", ["FILE://Sales"]),
        ("file://für_2024", ["file://für_2024"]),
        ("a=(file://x)", ["file://x"]),
        ("$(true) file://a", ["file://a"]),
        ("echo a#b file://a", ["file://a"]),
    ],
)
def test_whole_unquoted_words_are_found(command: str, uris: list[str]) -> None:
    assert found(command) == uris


@pytest.mark.parametrize(
    "command",
    [
        "curl https://example.com/file://a",
        "curl https://example.com",
        "echo 'file://a'",
        'echo "file://a"',
        'echo "$(cat file://a)"',
        "echo $'it\\'s file://a '",
        "echo 'open \n file://a",
        "x=file://a",
        "--input=file://a",
        "cat file://a*",
        "cat file://$name",
        "cat file://a'b'",
        "cat 'b'file://a",
        'cat "b"file://a',
        "cat file://{a,b}",
        "cat $(echo x)file://a",
        "cat file://a$(echo x)",
        "cat `echo x`file://a",
        "cat file://a`echo x`",
        "cat <<< file://a",
        "cat <<EOF\nfile://a\n",
        "cat << 'EOF'\n$(cat file://a)\nEOF",
        "# file://a",
        "true; # it's file://a",
        "echo ${x:- file://a }",
        "echo \\file://a",
        "echo file://a\\ b",
        "cat file://",
        "myfile://a",
        "",
    ],
)
def test_everything_else_is_left_alone(command: str) -> None:
    assert found(command) == []


@given(st.text(alphabet="file://a \n\t'\"`$(){}<>|&;#\\E!*=", max_size=60))
def test_no_command_breaks_the_search(command: str) -> None:
    for _, end, uri in uris_in_words(command):
        assert uri.isprintable()
        assert not set(uri) & set(" '\"`$(){}<>|&;#\\!*")
        assert end <= len(command)


@given(st.lists(st.text(max_size=20).filter(lambda text: "\0" not in text), min_size=1, max_size=5))
def test_quoted_words_are_never_found(words: list[str]) -> None:
    command = " ".join(shlex.quote(f"file://{word} ") for word in words)
    assert found(command) == []
