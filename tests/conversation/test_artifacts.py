"""Artifacts of a session: captured, staged, returned, read, rewritten and resolved, with real tools."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from conjure_jupyter.conversation import Session
from conjure_jupyter.errors import ArtifactNotFoundError, InvalidArtifactError
from conjure_jupyter.fileref import FileRef
from conjure_jupyter.skills import load
from conjure_jupyter.testing import FakeClaude, message, tool_use
from tests.builders import bash, write_skill

from .conftest import MakeSession

Serve = Callable[..., FakeClaude]

#: A PDF as small as it gets.
PDF = (
    "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    "3 0 obj<</Type/Page/MediaBox[0 0 9 9]/Parent 2 0 R>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)


def texts(request_body: dict[str, Any]) -> str:
    """All that the last message of a request says."""
    return json.dumps(request_body["messages"][-1], ensure_ascii=False)


def said(claude: FakeClaude, number: int) -> str:
    return texts(claude.messages[number].body)


@pytest.fixture
def analysis_skill(tmp_path: Path) -> Any:
    write_skill(
        tmp_path / "skills",
        name="data-analysis",
        description="Analyses data.",
        files={
            "scripts/analyze.py": (
                "import pathlib, sys\n"
                "rows = pathlib.Path(sys.argv[1]).read_text().count(chr(10)) - 1\n"
                f"pathlib.Path('../../outputs/analysis_report.pdf').write_text({PDF!r})\n"
                "print(rows, 'rows')\n"
            ),
            "assets/template.csv": "region,amount\n",
        },
    )
    return load(tmp_path / "skills")[0]


def test_the_source_documents_own_workflow(
    serve: Serve, make_session: MakeSession, analysis_skill: Any, project: Path
) -> None:
    claude = serve(
        [
            tool_use("stage_artifacts", {"artifact_names": ["sales_data.csv"]}),
            bash("cd skills/data-analysis && python scripts/analyze.py ../../uploads/sales_data.csv"),
            tool_use("return_artifacts", {"file_paths": ["outputs/analysis_report.pdf"]}),
            "Done.",
        ]
    )
    session = make_session(skills=[analysis_skill])
    session.artifacts.register("sales_data.csv", project / "sales.csv")
    reply = session.chat("Analyse it")

    staged, ran, returned = (record.result for record in reply.tool_calls)
    assert staged.text == "Successfully staged 1 file(s):\n  • uploads/sales_data.csv (30 B)"
    assert "2 rows" in ran.text
    size = len(PDF)
    assert returned.text == f"Saved 1 file(s) for download:\n  • analysis_report.pdf (v0, {size} B)"
    [report] = reply.files
    assert (report.path, report.version, report.content_type) == (
        "outputs/analysis_report.pdf",
        0,
        "application/pdf",
    )
    assert report.bytes() == PDF.encode()
    assert report.sha256 == hashlib.sha256(PDF.encode()).hexdigest()
    assert report.tool_call_ids[0] == reply.tool_calls[1].call.id
    # Claude was told of the name in the first prompt, and of the capture with the result of the call.
    assert 'uri="file://sales_data.csv"' in claude.messages[0].body["system"]
    assert "fi:turn_0001.files/analysis_report.pdf" in said(claude, 2)


def test_what_a_command_makes_is_an_artifact_by_itself(serve: Serve, make_session: MakeSession) -> None:
    claude = serve(
        [
            bash("mkdir outputs/a; echo one > outputs/a/x.txt; echo no > notes.txt"),
            bash("echo two > outputs/a/x.txt"),
            bash("true"),
            "ok",
        ]
    )
    session = make_session()
    reply = session.chat("go")
    versions = session.artifacts.versions("outputs/a/x.txt")
    assert [ref.bytes() for ref in versions] == [b"one\n", b"two\n"]
    assert [ref.version for ref in versions] == [0, 1]
    assert [ref.tool_call_ids for ref in versions] == [(record.call.id,) for record in reply.tool_calls[:2]]
    assert [ref.artifact_path for ref in versions] == ["fi:turn_0001.files/a/x.txt"] * 2
    assert [ref.path for ref in session.artifacts.list()] == ["outputs/a/x.txt"]
    assert [ref.path for ref in session.created_files] == ["outputs/a/x.txt"]
    assert reply.files[0].text() == "two\n"
    assert '\\"edited\\":true' in said(claude, 2).replace(" ", "")
    assert "artifact_path" not in said(claude, 3), "nothing changed, nothing is told"


def test_a_file_tool_outside_outputs_makes_an_internal_artifact(
    serve: Serve, make_session: MakeSession
) -> None:
    serve([tool_use("create_file", {"path": "notes/a.md", "file_text": "x", "description": "d"}), "ok"])
    session = make_session()
    reply = session.chat("go")
    assert reply.files == ()
    found = session.artifacts.discovery.find("fi:turn_0001.internal/notes/a.md")
    assert found is not None
    assert found.visibility == "internal"
    assert len(session.artifacts.list()) == 0


def test_overlapping_commands_share_what_they_made(serve: Serve, make_session: MakeSession) -> None:
    wait = "while [ ! -e {} ]; do sleep 0.01; done"
    serve(
        [
            message(
                bash(f"{wait.format('second')}; echo a > outputs/a.txt; touch first"),
                bash(f"touch second; {wait.format('first')}"),
            ),
            "ok",
        ]
    )
    session = make_session()
    reply = session.chat("go")
    [made] = reply.files
    assert set(made.tool_call_ids) == {record.call.id for record in reply.tool_calls}


def test_an_old_version_is_read_and_put_back(serve: Serve, make_session: MakeSession) -> None:
    serve(
        [
            bash("echo first > outputs/r.md"),
            "ok",
            bash("echo second > outputs/r.md"),
            tool_use("read_artifact", {"path": "fi:turn_0001.files/r.md"}),
            bash("cat turn_0001/files/r.md outputs/r.md"),
            tool_use("view", {"path": "turn_0001/files/r.md"}),
            "ok",
        ]
    )
    session = make_session()
    session.chat("one")
    reply = session.chat("two")
    read, shown, viewed = (record.result for record in reply.tool_calls[1:])
    assert "first" in read.text
    assert json.loads(read.content[0]["text"])["artifact_path"] == "fi:turn_0001.files/r.md"  # type: ignore[index]
    assert shown.text.split()[:2] == ["first", "second"]
    assert "first" in viewed.text
    old = session.workspace / "turn_0001/files/r.md"
    assert old.stat().st_mode & 0o777 == 0o444
    assert session.artifacts.get("fi:turn_0001.files/r.md").text() == "first\n"
    assert session.artifacts.get("r.md").text() == "second\n"


def test_a_write_to_an_earlier_turn_goes_to_a_copy_and_claude_is_told(
    serve: Serve, make_session: MakeSession
) -> None:
    edit = {"path": "turn_0001/files/r.md", "old_str": "first", "new_str": "FIRST", "description": "d"}
    first, second = bash("echo first > outputs/r.md"), bash("echo second > outputs/r.md")
    claude = serve([first, "ok", second, "ok", tool_use("str_replace", edit), "ok"])
    session = make_session()
    session.chat("one")
    session.chat("two")
    reply = session.chat("three")
    assert not reply.tool_calls[0].result.is_error, reply.tool_calls[0].result.text
    assert (session.workspace / "outputs/r.md").read_text() == "FIRST\n"
    assert session.artifacts.get("fi:turn_0001.files/r.md").text() == "first\n"
    assert session.artifacts.get("fi:turn_0003.files/r.md").text() == "FIRST\n"
    assert [ref.text() for ref in session.artifacts.versions("outputs/r.md")][:2] == ["first\n", "second\n"]
    assert "belongs to an earlier turn" in said(claude, 5)
    timeline = session.timeline
    assert timeline is not None
    assert [b.data["code"] for b in timeline.blocks if b.kind == "notice"] == ["path_rewritten"]


def test_uris_are_resolved_where_they_are_paths(
    serve: Serve, make_session: MakeSession, analysis_skill: Any
) -> None:
    serve(
        [
            tool_use("view", {"path": "file://sales"}),
            bash("wc -l < file://sales; cat skill://data-analysis/assets/template.csv; echo 'file://sales'"),
            bash("cd outputs && cat file://sales | head -1 && echo $ARTIFACT_SALES"),
            tool_use("view", {"path": "skill://data-analysis/assets/../SKILL.md"}),
            tool_use("view", {"path": "file://nothing"}),
            "ok",
        ]
    )
    session = make_session(skills=[analysis_skill])
    session.artifacts.register("sales", pd.DataFrame({"region": ["n", "s"], "amount": [1, 2]}))
    reply = session.chat("go")
    viewed, counted, inside, escaped, missing = (record.result for record in reply.tool_calls)
    assert "region,amount" in viewed.text
    assert counted.text.split() == ["3", "region,amount", "file://sales"]
    assert inside.text.split() == ["region,amount", str(session.workspace / "uploads/sales.csv")]
    assert escaped.is_error
    assert "skill://data-analysis/assets/../SKILL.md" in escaped.text
    assert missing.is_error
    assert "file://nothing" in missing.text


def test_a_name_given_later_is_announced_and_one_taken_away_too(
    serve: Serve, make_session: MakeSession
) -> None:
    claude = serve(["a", "b", "c", "d"])
    session = make_session()
    session.chat("one")
    session.artifacts.register("late", b"%PDF-1.4 x", content_type="application/pdf")
    session.chat("two")
    session.chat("three")
    session.artifacts.unregister("late")
    session.chat("four")
    assert "file://late" in said(claude, 1)
    assert "file://late" not in said(claude, 2)
    assert "no longer offered: late" in said(claude, 3)
    assert claude.messages[0].body["system"] == claude.messages[3].body["system"]


def test_attached_files_are_numbered_sources(serve: Serve, make_session: MakeSession, project: Path) -> None:
    claude = serve([bash("cat '[[S:1]]' || true"), "ok", bash("echo [[S:9]] turn_0001/files/none.png"), "ok"])
    session = make_session()
    session.chat("look", files=[project / "sales.csv"])
    assert "uploads/sales.csv (text/csv, 30 B) [[S:1]]" in said(claude, 0)
    [source] = session.artifacts.sources()
    assert (source.n, source.source_type, source.artifact_path) == (
        1,
        "attachment",
        "fi:turn_0001.user.attachments/sales.csv",
    )
    reply = session.chat("again")
    codes = [notice["code"] for notice in reply.tool_calls[0].result.meta["notices"]]
    assert codes == ["tool_call_error.missing_assets", "tool_call_warning.missing_sources"]
    assert "turn_0001/files/none.png" in said(claude, 3)


def test_the_assets_of_a_skill_are_listed_once_it_was_read(
    serve: Serve, make_session: MakeSession, analysis_skill: Any
) -> None:
    view = tool_use("view", {"path": "skills/data-analysis/SKILL.md"})
    claude = serve([view, "ok", {**view, "id": "toolu_again"}, "ok"])
    session = make_session(skills=[analysis_skill])
    session.chat("one")
    session.chat("two")
    assert "skill://data-analysis/assets/template.csv" not in claude.messages[0].body["system"]
    assert "skill://data-analysis/assets/template.csv" in said(claude, 1)
    assert "skill://data-analysis/assets/template.csv" not in said(claude, 3)


def test_a_file_over_the_limit_is_told_and_not_kept(serve: Serve, make_session: MakeSession) -> None:
    claude = serve([bash("head -c 5000 /dev/zero > outputs/big.bin"), "ok"])
    session = make_session(settings={"artifact_limit": 1000})
    reply = session.chat("go")
    [big] = reply.files
    assert (big.size, big.sha256) == (5000, "")
    with pytest.raises(ArtifactNotFoundError, match="too large to be kept"):
        big.bytes()
    assert big.local_path is not None
    assert big.local_path.stat().st_size == 5000
    assert "too large" in " ".join(reply.notices)
    assert '\\"kept\\":false' in said(claude, 1).replace(" ", "")


def test_callbacks_hear_of_files_and_never_break_a_turn(serve: Serve, make_session: MakeSession) -> None:
    heard: list[tuple[str, str]] = []

    def on(event: str) -> Callable[[FileRef, str], None]:
        return lambda ref, session_id: heard.append((event, ref.path))

    def broken(ref: FileRef, session_id: str) -> None:
        raise RuntimeError(ref.path)

    serve(
        [
            bash("echo a > outputs/a.txt; echo b > outputs/b.txt"),
            bash("echo c >> outputs/a.txt; rm outputs/b.txt"),
            "ok",
        ]
    )
    session = make_session(
        on_file_created=on("created"), on_file_modified=broken, on_file_deleted=on("deleted")
    )
    reply = session.chat("go")
    assert reply.ok
    assert heard == [
        ("created", "outputs/a.txt"),
        ("created", "outputs/b.txt"),
        ("deleted", "outputs/b.txt"),
    ]
    assert [ref.path for ref in reply.files] == ["outputs/a.txt"]


def test_what_a_stopped_call_made_is_kept(serve: Serve, make_session: MakeSession) -> None:
    serve([bash("echo part > outputs/part.txt; sleep 60"), "ok"])
    session = make_session()
    turn = session.start("go")
    made = session.workspace / "outputs/part.txt"
    while not made.exists():
        pass
    turn.stop()
    reply = turn.wait()
    assert reply.stop_reason == "stopped"
    assert [ref.text() for ref in reply.files] == ["part\n"]


def test_artifacts_of_a_resumed_session(serve: Serve, make_session: MakeSession, project: Path) -> None:
    serve([bash("echo a > outputs/a.txt"), "ok"])
    session = make_session()
    session.artifacts.register("df", pd.DataFrame({"x": [1]}))
    session.chat("go")
    session.close()
    again = Session.resume(session.id, project=project)
    try:
        assert again.artifacts.get("a.txt").text() == "a\n"
        assert again.artifacts.get("df").to_dataframe()["x"].tolist() == [1]
        assert again.artifacts.get("outputs/a.txt").version == 0
    finally:
        again.close()


def test_hidden_artifacts_stay_readable(serve: Serve, make_session: MakeSession) -> None:
    serve([bash("echo secret > outputs/a.txt"), "ok"])
    session = make_session()
    session.chat("go")
    session.artifacts.hide("fi:turn_0001.files/a.txt", "[left out]")
    rendered = [entry.text for entry in session.artifacts.discovery.render(1)]
    assert "[left out]" in rendered
    assert session.artifacts.get("fi:turn_0001.files/a.txt").text() == "secret\n"
    with pytest.raises(ArtifactNotFoundError):
        session.artifacts.hide("fi:turn_0009.files/a.txt", "")


@pytest.mark.parametrize("name", ["", "..", "a/b", "file://x", "x" * 200, "a\nb"])
def test_names_that_can_be_none(make_session: MakeSession, name: str) -> None:
    with pytest.raises(InvalidArtifactError):
        make_session().artifacts.register(name, b"x")


def test_a_name_that_was_given_again_stands_for_the_new_value(
    serve: Serve, make_session: MakeSession
) -> None:
    serve([bash("cat $ARTIFACT_X file://x"), "ok", bash("cat $ARTIFACT_X file://x"), "ok"])
    session = make_session()
    session.artifacts.register("x", value="one\n")
    first = session.chat("go").tool_calls[0].result.text
    session.artifacts.register("x", value="two\n")
    second = session.chat("go").tool_calls[0].result.text
    assert (first.split(), second.split()) == (["one", "one"], ["two", "two"])
    assert [ref.text() for ref in session.artifacts.versions("uploads/x.txt")] == ["one\n", "two\n"]


def test_a_staged_copy_never_replaces_what_the_user_gave(
    serve: Serve, make_session: MakeSession, project: Path
) -> None:
    serve([bash("cat file://sales.csv"), "ok"])
    session = make_session()
    session.artifacts.register("sales.csv", b"other\n")
    reply = session.chat("go", files=[project / "sales.csv"])
    assert "other" in reply.tool_calls[0].result.text
    assert (session.workspace / "uploads/sales.csv").read_bytes() == (project / "sales.csv").read_bytes()


def test_a_list_of_artifacts_is_a_sequence(serve: Serve, make_session: MakeSession) -> None:
    serve([bash("for i in $(seq 30); do echo $i > outputs/$i.txt; done"), "ok"])
    session = make_session()
    session.chat("go")
    files = session.artifacts.list()
    assert len(files) == 30
    assert [ref.path for ref in files] == sorted(ref.path for ref in files)
    assert files[-1].text() == "9\n"
    assert [ref.path for ref in files[:2]] == ["outputs/1.txt", "outputs/10.txt"]
    assert "outputs/1.txt" in repr(files)
