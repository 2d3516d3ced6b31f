"""``%artifacts`` as a user types it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conjure_jupyter.errors import ArtifactError
from conjure_jupyter.fileref import FileRef
from conjure_jupyter.notebook.artifact_list import MOST
from conjure_jupyter.testing import Delay, FakeClaude
from tests.builders import bash

from .conftest import Shell
from .test_render import check_html

Serve = Callable[..., FakeClaude]

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)


def listed(shell: Shell, line: str = "%artifacts") -> dict[str, str]:
    """What the list shows."""
    result, captured = shell.run(line)
    assert result.success, captured.stderr
    data: dict[str, str] = captured.outputs[0].data
    return data


@pytest.fixture
def values(shell: Shell) -> Shell:
    """A shell with one variable of each kind."""
    shell.value(
        "import pandas, io\n"
        "from pathlib import Path\n"
        "df = pandas.DataFrame({'region': ['north', 'south'], 'amount': [1, 2]})\n"
        "facts = {'a': [1, 2]}\n"
        "words = 'sales.csv'\n"
        f"raw = {PNG!r}\n"
        "where = Path('sales.csv')\n"
        "class Figure:\n    def _repr_png_(self): return raw\n"
        "figure = Figure()\n"
        "class Odd: pass\n"
        "odd = Odd()\n"
        "None"
    )
    return shell


@pytest.mark.parametrize(
    ("source", "said", "name", "text"),
    [
        ("df", "DataFrame, text/csv, 30 B", "x.csv", "region,amount\nnorth,1\nsouth,2\n"),
        ("@df", "DataFrame, text/csv, 30 B", "x.csv", "region,amount\nnorth,1\nsouth,2\n"),
        ("facts", "dict, application/json, 23 B", "x.json", '{\n "a": [\n  1,\n  2\n ]\n}'),
        ("words", "str, text/plain, 9 B", "x.txt", "sales.csv"),
        ("raw", "bytes, image/png, 69 B", "x.png", None),
        ("figure", "Figure, image/png, 69 B", "x.png", None),
        ("where", "sales.csv, text/csv, 30 B", "x.csv", "region,amount\nnorth,1\nsouth,2\n"),
        ("sales.csv", "sales.csv, text/csv, 30 B", "x.csv", "region,amount\nnorth,1\nsouth,2\n"),
        ('"with blank.csv"', "with blank.csv, text/csv, 4 B", "x.csv", "a\n1\n"),
    ],
)
def test_what_is_added_can_be_picked_up(
    values: Shell, project: Path, *, source: str, said: str, name: str, text: str | None
) -> None:
    (project / "with blank.csv").write_text("a\n1\n")
    printed = values.printed(f"%artifacts add x {source}")
    assert printed.startswith("file://x: ")
    assert printed.strip().endswith(said)
    file = values.value("file = %artifacts get x\nfile")
    assert isinstance(file, FileRef)
    assert file.name == name
    assert file.bytes() == (PNG if text is None else text.encode())
    shown = listed(values)
    assert f"file://x ({printed.strip().removeprefix('file://x: ')})" in shown["text/plain"]
    assert "<code>file://x</code>" in shown["text/html"]


def test_a_file_goes_before_a_variable_of_its_name(values: Shell, project: Path) -> None:
    (project / "df").write_text("a file")
    values.printed("%artifacts add x df")
    assert values.value("%artifacts get x").text() == "a file"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%artifacts fly", "no such sub-command of %artifacts"),
        ("%artifacts ad x df", "did you mean 'add'?"),
        ("%artifacts add", "takes NAME SOURCE, two words, not 0"),
        ("%artifacts add my sales df", "two words, not 3; a source with blanks goes in quotes"),
        ('%artifacts add "my sales" df', "a name has letters, digits, '.', '_' and '-', not ' '"),
        ("%artifacts add ../x df", "a name cannot be a path"),
        ("%artifacts add ... df", "a name cannot be dots alone"),
        ("%artifacts add x nothing_here", "'nothing_here' (it is no variable, no file and no URL)"),
        ("%artifacts add x odd", "Odd"),
        ("%artifacts add x .", "a folder; name a file"),
        ("%artifacts add x http://example.org/a.csv", "FetchBlockedError"),
        ("%artifacts add x https://127.0.0.1/a.csv", "FetchBlockedError"),
        ("%artifacts add x https://me:secret@169.254.169.254/latest", "FetchBlockedError"),
        ("%artifacts add x ftp://example.org/a.csv", "ftp"),
        ("%artifacts add x 'a b", "the quote ' does not end"),
        ("%artifacts get", "takes NAME [VERSION]"),
        ("%artifacts get kept one", "'one' is no version; versions are v0, v1"),
        ("%artifacts get kept v1", "only files of uploads/ and outputs/ have versions"),
        ("%artifacts get nope", "No artifact 'nope' (there are: kept)"),
        ("%artifacts get file://nope", "nope"),
        ("%artifacts save", "takes NAME [PATH] [--overwrite]"),
        ("%artifacts save kept sales.csv", "sales.csv exists already; --overwrite replaces it"),
        ("%artifacts save kept nowhere/x.csv", "cannot be written: No such file or directory"),
        ("%artifacts remove", "takes the NAME to take away"),
        ("%artifacts remove nope", "No artifact 'nope'"),
    ],
)
def test_what_is_wrong_is_one_line(values: Shell, line: str, said: str) -> None:
    values.printed("%artifacts add kept df")
    complaint = values.complaint(line)
    assert said in complaint
    assert "secret" not in complaint


@pytest.mark.parametrize("line", ["get x", "save x", "remove x"])
def test_without_a_session(shell: Shell, project: Path, line: str) -> None:
    assert "no session yet" in shell.complaint(f"%artifacts {line}")
    assert "No artifacts yet" in shell.printed("%artifacts")
    assert "%artifacts add NAME SOURCE" in shell.printed("%artifacts help")
    assert not list((project / ".conjure").glob("sessions/*"))


def test_versions_copies_and_names(shell: Shell, serve: Serve, project: Path) -> None:
    serve(
        [
            bash("printf 'a\\n1\\n' > outputs/report.csv"),
            "One.",
            bash("printf 'a\\n2\\n' > outputs/report.csv"),
            "Two.",
        ]
    )
    shell.value("%%claude --approve auto\nReport on @sales.csv")
    shell.value("%%claude --approve auto\nAgain")
    assert shell.value("%artifacts get report.csv").text() == "a\n2\n"
    assert shell.value("%artifacts get outputs/report.csv v0").text() == "a\n1\n"
    assert shell.value("%artifacts get report.csv 1").text() == "a\n2\n"
    assert "there are: v0, v1" in shell.complaint("%artifacts get report.csv v7")
    assert list(shell.value("%artifacts get report.csv 0").to_dataframe()["a"]) == [1]
    assert listed(shell)["text/plain"].splitlines() == [
        "Given:",
        "  uploads/sales.csv (text/csv, 30 B, v0)",
        "Made:",
        "  outputs/report.csv (text/csv, 4 B, v1)",
    ]

    saved = shell.value("%artifacts save report.csv")
    assert saved == project / "report.csv"
    assert saved.read_text() == "a\n2\n"
    assert "--overwrite" in shell.complaint("%artifacts save report.csv")
    shell.value("%artifacts save report.csv report.csv --overwrite")
    (project / "folder").mkdir()
    assert shell.value("%artifacts save report.csv folder") == project / "folder" / "report.csv"

    shell.printed("%artifacts add facts report.csv")
    assert "no longer offered" in shell.printed("%artifacts remove file://facts")
    assert "Names" not in listed(shell)["text/plain"]


def test_claude_is_told_of_names_in_whichever_order(values: Shell, serve: Serve) -> None:
    claude = serve(["one", "two", "three"])
    values.printed("%artifacts add early df")
    values.value("%%claude\nLook at file://early and @early.")
    assert 'uri="file://early"' in str(claude.messages[0].body["system"])
    first = claude.messages[0].body["messages"][0]["content"]
    assert [block["text"] for block in first] == ["Look at file://early and file://early."]
    values.printed("%artifacts add late facts")
    values.value("%%claude\nAnd now?")
    assert 'uri="file://late"' in str(claude.messages[1].body["messages"][-1])
    values.printed("%artifacts remove late")
    values.value("%%claude\nAnd now?")
    assert "no longer offered: late" in str(claude.messages[2].body["messages"][-1])


def test_a_name_belongs_to_its_session(values: Shell, serve: Serve, project: Path) -> None:
    claude = serve(["one", "two", "three"])
    values.printed("%artifacts add sales.csv df")
    values.value("%%claude\nfile://sales.csv")
    values.value("%%claude --session other\nfile://sales.csv")
    values.value("%%claude --new\nfile://sales.csv")
    attached = ["uploads/sales.csv" in str(request.body["messages"]) for request in claude.messages]
    assert attached == [False, True, True]


def test_a_wrong_prompt_does_not_end_the_session(values: Shell, serve: Serve) -> None:
    serve(["one"])
    values.printed("%artifacts add kept df")
    assert "no such file" in values.complaint("%%claude --new --file nope.csv\nhi")
    assert "file://kept" in listed(values)["text/plain"]


def test_while_a_turn_runs(values: Shell, serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    claude = serve([[Delay(per_event=0.1), "slowly " * 30], "next"])
    assert values.ip.run_cell("%%claude --background\nslow").success
    deadline = time.monotonic() + 30
    while not claude.messages:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    turn = values.ip.user_ns["_"]
    assert values.ip.run_cell("%artifacts add meanwhile facts").success
    assert values.ip.run_cell("%artifacts").success
    assert "under way" in values.complaint("%claude undo")
    assert values.ip.run_cell("%claude stop").success
    while not turn.done():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    said = capsys.readouterr().out
    assert said.count("file://meanwhile") == 2
    assert "Stopped 1 turn" in said
    values.value("%%claude\nnext")
    assert "file://meanwhile" in str(claude.messages[1].body["messages"][-1])


HOSTILE = [
    "<script>alert(1)</script>.csv",
    "<img src=x onerror=alert(1)>.png",
    '" onmouseover="alert(1).csv',
    "</code></li><script>1</script>.md",
    "safe\u202egpj.exe",
    "zero\u200bwidth.txt",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_only_a_name(shell: Shell, serve: Serve, name: str) -> None:
    path = f"outputs/{name.replace('/', '_')}"
    serve([bash(f"printf x > {shlex.quote(path)}"), "made"])
    shell.value("%%claude --approve auto\nMake it.")
    shown = listed(shell)
    check_html(shown["text/html"])
    assert len(shown["text/plain"].splitlines()) == 2
    assert all(char.isprintable() or char == "\n" for char in shown["text/plain"])


def test_pictures_are_shown_by_their_bytes(values: Shell, serve: Serve, project: Path) -> None:
    for name, data in (("chart.png", PNG), ("fake.png", b"<svg onload=alert(1)>"), ("x.svg", b"<svg/>")):
        (project / name).write_bytes(data)
    serve([bash(f"cp {project}/*.png {project}/*.svg outputs"), "made"])
    values.value("%%claude --approve auto\nMake it.")
    shown = listed(values)["text/html"]
    assert shown.count("<img ") == 1
    assert '<img alt="chart.png" src="data:image/png;base64,' in shown


def test_thousands_are_bounded(shell: Shell, serve: Serve) -> None:
    serve(["hi"])
    shell.value("%%claude\nhi")
    session = shell.ip.magics_manager.registry["ConjureMagics"].desk.existing().session
    for number in range(MOST + 50):
        artifact = f"fi:turn_0001.files/{number}.csv"
        facts = {"artifact_path": artifact, "path": f"outputs/{number}.csv", "name": f"{number}.csv"}
        session.timeline.append(
            "artifact", {**facts, "mime": "text/csv", "size": 1, "visibility": "external"}
        )
    shown = listed(shell)
    lines = shown["text/plain"].splitlines()
    assert lines[:2] == ["Made:", "  … 50 earlier ones"]
    assert lines[-1].startswith(f"  outputs/{MOST + 49}.csv (text/csv, 1 B, v0")
    assert len(lines) == MOST + 2
    assert shown["text/html"].count("<li>") == MOST + 1


def test_a_file_that_was_too_large_is_told(
    shell: Shell, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONJURE_ARTIFACT_LIMIT", "10")
    serve([bash("seq 100 > outputs/long.txt"), "made"])
    _, captured = shell.run("%%claude --approve auto\nMake it.")
    record = captured.outputs[0].data
    for form in ("text/plain", "text/html", "text/markdown"):
        assert "too large to be kept" in record[form]
    assert "not kept: " in listed(shell)["text/plain"]
    file = shell.value("%artifacts get long.txt")
    with pytest.raises(ArtifactError, match="artifact_limit"):
        file.bytes()
