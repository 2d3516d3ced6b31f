"""A session whose tools run in a real container, with the real SDK over HTTP and real files."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.artifacts.resolver import ArtifactResolver
from conjure_jupyter.conversation import ApprovalRequest, Session, Verdict
from conjure_jupyter.errors import (
    ApprovalRequiredError,
    DockerImageError,
    DockerUnavailableError,
    SettingsError,
)
from conjure_jupyter.settings import Settings
from conjure_jupyter.skills import Skill
from conjure_jupyter.testing import FakeClaude, tool_use
from tests.builders import bash

from .conftest import MakeSession

Serve = Callable[..., FakeClaude]
pytestmark = pytest.mark.docker


@pytest.fixture
def make_docker(
    make_session: MakeSession,
    docker_engine: str,
    docker_image: str,
    monkeypatch: pytest.MonkeyPatch,
) -> MakeSession:
    """Make sessions whose tools run in a container, without a word on approvals."""
    monkeypatch.setenv("DOCKER_HOST", docker_engine)

    def make(*, settings: dict[str, Any] | None = None, **options: Any) -> Session:
        chosen = {"on": "docker", "docker_image": docker_image, "approve": None, **(settings or {})}
        return make_session(settings=chosen, **options)

    return make


def test_the_main_path(serve: Serve, make_docker: MakeSession, csv_skill: Skill, project: Path) -> None:
    claude = serve(
        [
            tool_use("view", {"path": "skills/csv-helper/SKILL.md"}),
            bash(
                "cd skills/csv-helper && "
                "python3 scripts/count.py ../../uploads/sales.csv | tee ../../outputs/n.txt; cat /proc/1/comm"
            ),
            "There are two rows.",
        ]
    )
    session = make_docker(skills=[csv_skill])
    reply = session.chat("How many rows has it?", files=[project / "sales.csv"])

    assert reply.ok
    assert reply.text == "There are two rows."
    assert reply.tool_calls[1].result.text.splitlines() == ["2 rows", "docker-init"]
    assert [file.path for file in reply.files] == ["outputs/n.txt"]
    assert reply.files[0].local_path == session.workspace / "outputs" / "n.txt"
    assert reply.files[0].local_path.read_text() == "2 rows\n"
    said = claude.messages[0].body["system"]
    assert "container" in said
    assert "/notebook" in said
    assert str(project) not in said


def test_nothing_is_asked_about_by_default(serve: Serve, make_docker: MakeSession) -> None:
    serve([bash("echo $((6*7))"), "Done."])
    assert make_docker().chat("Go").tool_calls[0].result.text == "42"


def test_the_container_has_the_users_own_id_and_no_network(serve: Serve, make_docker: MakeSession) -> None:
    serve([bash("id -u; ls /sys/class/net; env | grep -c ANTHROPIC"), "Done."])
    lines = make_docker().chat("Go").tool_calls[0].result.text.splitlines()
    assert lines[:3] == [str(os.getuid()), "lo", "0"]


def test_the_notebooks_folder_is_read_only_without_its_dot_files(
    serve: Serve, make_docker: MakeSession, project: Path
) -> None:
    (project / ".env").write_text("KEY=secret")
    (project / "sub").mkdir()
    (project / "sub" / ".netrc").write_text("secret")
    serve(
        [
            bash(
                "cat /notebook/sales.csv; cat /notebook/.env /notebook/sub/.netrc; ls -A /notebook/.conjure;"
                "touch /notebook/new"
            ),
            tool_use("view", {"path": "/notebook/sales.csv"}),
            "Done.",
        ]
    )
    first, second = make_docker().chat("Go").tool_calls
    assert "north,1" in first.result.text
    assert "secret" not in first.result.text
    assert "Read-only file system" in first.result.text
    assert "timeline" not in first.result.text
    assert "north,1" in second.result.text


def test_skills_and_artifacts_that_come_late_are_there(
    serve: Serve, make_docker: MakeSession, csv_skill: Skill, project: Path
) -> None:
    look = 'hostname > /tmp/x; ls /mnt/skills skills; cat "$ARTIFACT_SALES"; echo $ARTIFACT_SALES; ls /tmp'
    serve([bash("touch /tmp/first"), "One.", bash(look), "Two."])
    session = make_docker()
    session.chat("One")
    session.add_skills([csv_skill])
    session.artifacts.register("sales", project / "sales.csv")
    text = session.chat("Two").tool_calls[0].result.text
    assert text.count("csv-helper") == 2
    assert "south,2" in text
    assert "/artifacts/sales" in text
    assert "first" in text  # still the same container


def test_names_are_taken_away_while_others_are_put_on_the_shelf(
    serve: Serve, make_docker: MakeSession, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve([bash("ls /artifacts"), "Done."])
    session = make_docker()
    for name in ("first", "second", "third"):
        session.artifacts.register(name, project / "sales.csv")
    resolve = ArtifactResolver.resolve

    async def meanwhile(self: ArtifactResolver, uri: str) -> Any:
        if uri == "file://first":
            await asyncio.to_thread(session.artifacts.unregister, "second")
        return await resolve(self, uri)

    monkeypatch.setattr(ArtifactResolver, "resolve", meanwhile)
    assert session.chat("Go").tool_calls[0].result.text.split() == ["first", "third"]


def test_absolute_paths_of_the_container(serve: Serve, make_docker: MakeSession) -> None:
    serve(
        [
            tool_use(
                "create_file", {"path": "/workspace/outputs/a.txt", "file_text": "one\n", "description": "x"}
            ),
            tool_use("str_replace", {"path": "/workspace/outputs/a.txt", "old_str": "one", "new_str": "two"}),
            tool_use("return_artifacts", {"file_paths": ["/workspace/outputs/a.txt"]}),
            bash("cat /workspace/outputs/a.txt"),
            "Done.",
        ]
    )
    reply = make_docker().chat("Go")
    assert [record.result.is_error for record in reply.tool_calls] == [False] * 4, reply.tool_calls
    assert [file.path for file in reply.files] == ["outputs/a.txt"]
    assert "two" in reply.tool_calls[3].result.text


def test_one_conversation_moves_between_places(serve: Serve, make_docker: MakeSession) -> None:
    where = (
        "test -d /notebook && echo container || echo machine; cat outputs/n 2>/dev/null; echo 1 >> outputs/n"
    )
    claude = serve([bash(where), "One.", bash(where), "Two.", bash(where), "Three."])
    session = make_docker(settings={"on": "local", "approve": "auto"})
    first = session.chat("One")
    second = session.chat("Two", on="docker")
    third = session.chat("Three", on="local")
    texts = [reply.tool_calls[0].result.text.splitlines() for reply in (first, second, third)]
    assert texts == [["machine"], ["container", "1"], ["machine", "1", "1"]]
    systems = [request.body["system"] for request in claude.messages]
    assert "container" not in str(systems[0])
    assert "container" in str(systems[2])
    assert systems[4] == systems[0]


def test_a_place_that_is_another_after_a_resume_is_described_anew(
    serve: Serve, make_docker: MakeSession
) -> None:
    claude = serve(["One.", "Two.", "Three."])
    session = make_docker()
    session.chat("One")
    session.chat("Two")
    session.close()
    settings = session.settings.with_(network="limited", network_hosts=("example.org",))
    with Session.resume(session.id, settings, project=session.project) as resumed:
        resumed.chat("Three")
    systems = [str(request.body["system"]) for request in claude.messages]
    assert systems[0] == systems[1]
    assert "example.org" in systems[2]


def test_a_move_that_is_undone_did_not_happen(serve: Serve, make_docker: MakeSession) -> None:
    claude = serve(["One.", bash("true"), "Two.", "Again."])
    session = make_docker(settings={"on": "local", "approve": "auto"})
    session.chat("One")
    session.chat("Two", on="docker")
    session.chat("Again", retry=True)
    assert claude.messages[-1].body["system"] == claude.messages[0].body["system"]


def test_the_user_hears_of_a_new_container(serve: Serve, make_docker: MakeSession) -> None:
    serve([bash("true"), "One.", bash("true"), "Two."])
    session = make_docker(settings={"docker_idle": 0.3})
    session.chat("One")
    time.sleep(2.0)
    said = session.chat("Two").tool_calls[0].result.meta["notices"]
    assert "without a call" in said[0]["text"]


def test_undo_puts_back_what_a_container_changed(serve: Serve, make_docker: MakeSession) -> None:
    serve([bash("echo one > outputs/a.txt"), "One.", bash("echo two > outputs/a.txt; rm -f x"), "Two."])
    session = make_docker()
    session.chat("One")
    session.chat("Two")
    session.undo()
    assert (session.workspace / "outputs" / "a.txt").read_text() == "one\n"


def test_the_notebooks_folder_as_the_working_directory(
    serve: Serve, make_docker: MakeSession, csv_skill: Skill, project: Path
) -> None:
    claude = serve(
        [
            bash("ls; cat sales.csv; echo new > made.csv; ls -a .conjure/sessions; ls .conjure/sessions/*/"),
            "Done.",
        ]
    )
    session = make_docker(settings={"workspace": "."}, skills=[csv_skill])
    text = session.chat("Go").tool_calls[0].result.text
    assert "north,1" in text
    assert "timeline.jsonl" not in text
    assert (project / "made.csv").read_text() == "new\n"
    location = f".conjure/sessions/{session.id}/work/skills/csv-helper/SKILL.md"
    assert location in claude.messages[0].body["system"]


def test_what_others_obey_is_not_written_in_the_notebooks_folder(
    serve: Serve, make_docker: MakeSession, project: Path
) -> None:
    (project / ".git" / "hooks").mkdir(parents=True)
    (project / ".env").write_text("secret")
    serve(
        [
            bash(
                "touch .git/hooks/pre-commit; mv .git elsewhere; mkdir -p .git/hooks; touch .git/hooks/push;"
                "cat .env; touch .git/index"
            ),
            "Done.",
        ]
    )
    text = make_docker(settings={"workspace": "."}).chat("Go").tool_calls[0].result.text
    assert "secret" not in text
    assert not list((project / ".git" / "hooks").iterdir())
    assert (project / ".git" / "index").exists()


def test_a_paused_turn_goes_on_where_it_was(serve: Serve, make_docker: MakeSession, project: Path) -> None:
    serve([bash("test -d /notebook && echo container || echo machine"), "Done."])
    session = make_docker(settings={"approve": "ask"})
    with pytest.raises(ApprovalRequiredError):
        session.chat("Go")
    session.close()
    again = Session.resume(
        session.id, Settings.from_env(on="local", docker_image=session.settings.docker_image), project=project
    )
    try:
        assert [asked.call.name for asked in again.pending_approval] == ["bash_tool"]
        with pytest.raises(SettingsError, match="paused"):
            again.approve(on="local")
        reply = again.approve().wait()
    finally:
        again.close()
    assert reply.tool_calls[0].result.text == "container"


def test_what_was_allowed_in_a_container_is_asked_about_on_this_machine(
    serve: Serve, make_docker: MakeSession
) -> None:
    asked: list[str] = []

    async def approver(request: ApprovalRequest) -> Verdict:
        asked.append(request.summary)
        return Verdict(allow=True, always=True)

    serve(
        [bash("touch outputs/x"), "One.", bash("touch outputs/x"), "Two.", bash("touch outputs/x"), "Three."]
    )
    session = make_docker(approver=approver)
    session.chat("One", approve="ask")
    session.chat("Two", approve="ask")
    assert len(asked) == 1
    session.chat("Three", on="local")
    assert len(asked) == 2


def test_a_wrong_setting_can_be_put_right(
    serve: Serve,
    make_docker: MakeSession,
    docker_image: str,
) -> None:
    serve(["Done."])
    session = make_docker(settings={"docker_image": "no/such:image"})
    with pytest.raises(DockerImageError):
        session.chat("Go")
    session.settings = session.settings.with_(docker_image=docker_image)
    assert session.chat("Go").ok


def test_undo_needs_no_engine(
    serve: Serve, make_docker: MakeSession, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    serve([bash("echo one > outputs/a.txt"), "Done."])
    session = make_docker()
    session.chat("Go")
    session.close()
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    again = Session.resume(session.id, session.settings, project=project)
    try:
        again.undo()
    finally:
        again.close()
    assert not (session.workspace / "outputs" / "a.txt").exists()


def test_links_planted_for_the_host_are_not_followed(
    serve: Serve, make_docker: MakeSession, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret of this machine")
    serve(
        [
            bash(f"ln -s {secret} outputs/a.txt; ln -s {tmp_path} outputs/dir; ln {secret} outputs/hard.txt"),
            tool_use("view", {"path": "outputs/a.txt"}),
            tool_use("return_artifacts", {"file_paths": ["outputs/a.txt", "outputs/dir/secret.txt"]}),
            tool_use("create_file", {"path": "outputs/dir/new.txt", "file_text": "x", "description": "x"}),
            "Done.",
        ]
    )
    session = make_docker()
    reply = session.chat("Go")
    assert all("a secret of" not in record.result.text for record in reply.tool_calls)
    assert not (tmp_path / "new.txt").exists()
    for entry in session.created_files:
        assert b"a secret of" not in entry.read_bytes()


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"docker_image": "no/such:image"}, DockerImageError, "docker pull|not on"),
        ({"network": "host"}, SettingsError, "limited"),
        ({"docker_volumes": ("/:/host",)}, SettingsError, "machine"),
        ({"memory_limit": 1000}, SettingsError, "32 MB"),
    ],
)
def test_wrong_settings_are_told_before_anything_is_asked(
    serve: Serve, make_docker: MakeSession, settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    claude = serve(["Never."])
    with pytest.raises(error, match=words):
        make_docker(settings=settings).chat("Go")
    assert claude.messages == []


def test_a_missing_engine_is_told(
    serve: Serve, make_docker: MakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = serve(["Never."])
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(DockerUnavailableError):
        make_docker().chat("Go")
    assert claude.messages == []
