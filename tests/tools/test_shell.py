"""What may be claimed of a command line. The judge is bash itself."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conjure_jupyter.tools.shell import read_line


def words(line: str) -> list[list[str]] | None:
    commands = read_line(line)
    return None if commands is None else [list(command.words) for command in commands]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("git status", [["git", "status"]]),
        ("  git\tstatus  ", [["git", "status"]]),
        ("git status;", [["git", "status"]]),
        ("a && b || c; d | e", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("a\nb\n\nc\n", [["a"], ["b"], ["c"]]),
        ("a &&\n b", [["a"], ["b"]]),
        ("grep 'a b' \"c d\" e\\ f", [["grep", "a b", "c d", "e f"]]),
        ("grep '$(x) `y` > ; |' f", [["grep", "$(x) `y` > ; |", "f"]]),
        (r'echo "a\"b\\c\$d\n"', [["echo", r'a"b\c$d\n']]),
        ("g''it 'st'at\"us\"", [["git", "status"]]),
        ("git show HEAD~1:a.py", [["git", "show", "HEAD~1:a.py"]]),
        ("python -c 'print(1)\nprint(2)'", [["python", "-c", "print(1)\nprint(2)"]]),
        ("ls ''", [["ls", ""]]),
        ("ls dätä", [["ls", "dätä"]]),
        ("tool --x=1 a=b", [["tool", "--x=1", "a=b"]]),
    ],
)
def test_plain_lines_are_read(line: str, expected: list[list[str]]) -> None:
    assert words(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "",
        " \n ",
        "git status $(rm x)",
        "git status `rm x`",
        "git status <(rm x)",
        "git status >(rm x)",
        "git status > f",
        "git status 2>&1",
        "git status >| f",
        "git status < f",
        "git status << E\nE",
        "git status <<< x",
        "git status & rm x",
        "git status &",
        "git status |& rm",
        "git status ;; rm",
        "git status;;",
        "git status &&",
        "; git status",
        "&& git status",
        "git status | | rm",
        "git $x",
        "git ${x}",
        'git "$x"',
        'git "`x`"',
        "git $'st\\x61tus'",
        'git $"status"',
        "git $((1))",
        "git st{atus,ash}",
        "git {a..b}",
        "git *",
        "git st?tus",
        "git [s]tatus",
        "git ~/x",
        "git a=~/x",
        "git :~",
        "git @(a)",
        "git !(a)",
        "git #x",
        "git status # comment",
        "! git status",
        "PAGER=x git log",
        "a+=x git log",
        "a[0]=x git log",
        '"A"=b git',
        "(git status)",
        "{ git status; }",
        "[[ -f x ]]",
        "if git status; then rm x; fi",
        "while true; do x; done",
        "for x in a; do b; done",
        "case x in a) b;; esac",
        "function git { rm x; }",
        "git() { rm x; }; git status",
        "git () { rm x; }",
        "coproc git status",
        "time git status",
        "select x in a; do b; done",
        "eval git status",
        "exec git status",
        "source git",
        ". git",
        "command git status",
        "builtin git",
        "alias git=rm",
        "export PATH=/evil",
        "declare x=1",
        "set -k",
        "shopt -s expand_aliases",
        "trap 'rm x' EXIT",
        "enable -f x git",
        "hash -p /evil git",
        "printf -v PATH x",
        "read 'a[$(x)]'",
        "test -v 'a[$(x)]'",
        "[ -v 'a[$(x)]' ]",
        "let x",
        "unset x",
        "mapfile x",
        "''",
        "'' git",
        "%1",
        "git 'status",
        'git "status',
        "git status\\",
        "git sta\\\ntus",
        'git "sta\\\ntus"',
        "git\rstatus",
        "git\x0bstatus",
        "git\u00a0status",
        "git\u2003status",
        "git\u2028rm",
        "git\u200bstatus",
        "git\x00status",
        "git\x1b[2K",
        "git 'a\x1bb'",
        "git \ud800",
        "git " + "x" * 10_000,
        # A folder that is not sure, or not the only thing that what follows depends on.
        "cd a; git status",
        "cd a || git status",
        "cd a && x; git status",
        "cd a && x || git status",
        "cd && git status",
        "cd - && git status",
        "cd -P a && git status",
        "cd '' && git status",
        "cd a && cd b && git status",
        "git status && cd a",
        "cd a | git status",
    ],
)
def test_what_is_not_plain_cannot_be_told(line: str) -> None:
    assert read_line(line) is None


def test_cd_names_the_place_of_what_follows() -> None:
    commands = read_line("cd 'skills/x' && python a.py | sort")
    assert commands is not None
    assert [(command.words[0], command.place) for command in commands] == [
        ("python", "skills/x"),
        ("sort", "skills/x"),
    ]
    alone = read_line("cd a")
    assert alone is not None
    assert alone[0].words == ("cd", "a")


# Commands are not found on purpose: bash then hands their words to this function, which tells them to a
# file descriptor that no redirection of the line touches.
HARNESS = """
exec 3>&1 1>/dev/null 2>&1
command_not_found_handle() { builtin printf '%s\\0' "$#" "$@" >&3; return STATUS; }
PATH=/nonexistent
"""


def heard(line: str, status: int, folder: Path) -> Iterator[list[str]]:
    """The words of each command that bash really tries to run."""
    script = HARNESS.replace("STATUS", str(status)) + line
    output = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        cwd=folder,
        env={"LC_ALL": "C.UTF-8", "HOME": "/home/someone"},
        check=False,
    ).stdout
    parts = output.decode().split("\0")[:-1]
    while parts:
        size = int(parts[0])
        yield parts[1 : 1 + size]
        del parts[: 1 + size]


ATOMS = [
    *("g", "st", "x", "y=1", "a=b", " ", "  ", "\t", "\n", ";", "&&", "&", "|", "||", " && ", " | ", " \n"),
    *(
        "'",
        '"',
        "\\",
        "$",
        "`",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        "*",
        "?",
        "[",
        "]",
        "!",
        "#",
        "~",
        "-",
        "=",
        "+",
    ),
    *(
        ",",
        ".",
        "/",
        ":",
        "%",
        "@",
        "^",
        "\u00e9",
        "\u00a0",
        "\u3000",
        "$'",
        "$(",
        "<(",
        "if ",
        "then ",
        "fi",
        "{ ",
    ),
    *(
        "[[ ",
        "function ",
        "1",
        "2>",
        "\\\n",
        "\r",
        "eval ",
        "time ",
        "! ",
        "f()",
        "HEAD~1",
        ":~",
        "=~",
        "cd ",
        "..",
    ),
    *("a\\ b", '"a b"', "'c d'", "''"),
]
lines = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=10).map("".join)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.booleans(), lines | st.text(st.sampled_from("g s'\"\\;&|\n$é"), max_size=14))
def test_bash_never_runs_more_than_was_claimed(
    tmp_path_factory: pytest.TempPathFactory, named: bool, line: str
) -> None:
    if named:
        line = "g " + line
    commands = words(line)
    if commands is None:
        return
    folder = tmp_path_factory.mktemp("shell")
    for status in (0, 1):
        claimed = list(commands)
        for command in heard(line, status, folder):
            if command in claimed:
                claimed.remove(command)
            else:
                pytest.fail(f"{line!r} runs {command}, claimed were {commands}")
    assert list(folder.iterdir()) == []


plain_word = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(plain_word, max_size=4))
def test_quoted_words_are_read_as_bash_reads_them(
    tmp_path_factory: pytest.TempPathFactory, arguments: list[str]
) -> None:
    import shlex

    line = "g " + shlex.join(arguments)
    if words(line) is None:  # a byte order mark, say
        assert any("\ufeff" in argument for argument in arguments)
        return
    assert words(line) == list(heard(line, 0, tmp_path_factory.mktemp("shell"))) == [["g", *arguments]]
