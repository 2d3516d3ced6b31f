"""A session, with the real SDK over HTTP, a real executor and real files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.conversation import Session
from conjure_jupyter.errors import (
    AuthenticationError,
    InvalidRequestError,
    PathNotFoundError,
    SessionClosedError,
    SessionError,
    SessionLockedError,
    SessionNotFoundError,
    SettingsError,
    SkillNotFoundError,
)
from conjure_jupyter.settings import Settings
from conjure_jupyter.skills import Skill
from conjure_jupyter.testing import (
    CutConnection,
    FakeClaude,
    HTTPError,
    StreamError,
    message,
    thinking,
    tool_use,
)
from conjure_jupyter.types import (
    AnswerDiscarded,
    Event,
    Notice,
    Retrying,
    TextDelta,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from tests.builders import bash

from .conftest import MakeSession

Serve = Callable[..., FakeClaude]


def test_the_main_path(serve: Serve, make_session: MakeSession, csv_skill: Skill, project: Path) -> None:
    claude = serve(
        [
            tool_use("view", {"path": "skills/csv-helper/SKILL.md"}),
            bash(
                "cd skills/csv-helper && "
                "python scripts/count.py ../../uploads/sales.csv | tee ../../outputs/n.txt"
            ),
            "There are two rows.",
        ]
    )
    session = make_session(skills=[csv_skill])
    reply = session.chat("How many rows has it?", files=[project / "sales.csv"])

    assert reply.text == "There are two rows."
    assert reply.stop_reason == "end_turn"
    assert reply.ok
    assert [record.call.name for record in reply.tool_calls] == ["view", "bash_tool"]
    assert "2 rows" in reply.tool_calls[1].result.text
    assert [file.path for file in reply.files] == ["outputs/n.txt"]
    assert reply.files[0].local_path is not None
    assert reply.files[0].local_path.read_text() == "2 rows\n"
    assert reply.cost is not None
    assert reply.cost > 0
    assert reply.usage["output_tokens"] > 0

    first = claude.messages[0].body
    assert "csv-helper" in first["system"]
    assert {tool["name"] for tool in first["tools"]} >= {"view", "bash_tool", "create_file", "str_replace"}
    said = [block["text"] for block in first["messages"][0]["content"]]
    assert "uploads/sales.csv" in said[0]
    assert said[-1] == "How many rows has it?"


def test_events_come_in_order(serve: Serve, make_session: MakeSession) -> None:
    serve([[message("Let me see. ", bash("echo hi"))], "Done."])
    heard: list[Event] = []
    make_session(listener=heard.append).chat("Say hi")
    kinds = [type(event).__name__ for event in heard]
    assert kinds[0] == "TurnStarted"
    assert kinds[-1] == "TurnFinished"
    assert kinds.index("ToolStarted") < kinds.index("ToolFinished")
    assert "".join(event.text for event in heard if isinstance(event, TextDelta)) == "Let me see. Done."


def test_a_listener_that_raises_breaks_nothing(serve: Serve, make_session: MakeSession) -> None:
    serve(["Hello."])

    def listener(event: Event) -> None:
        raise RuntimeError("bad listener")

    assert make_session(listener=listener).chat("Hi").text == "Hello."


def test_stream_gives_the_events(serve: Serve, make_session: MakeSession) -> None:
    serve(["Hello there."])
    session = make_session()
    events = list(session.stream("Hi"))
    assert isinstance(events[0], TurnStarted)
    assert isinstance(events[-1], TurnFinished)
    assert session.last is not None
    assert session.last.text == "Hello there."


async def test_async_twins(serve: Serve, make_session: MakeSession) -> None:
    serve(["One.", "Two."])
    session = make_session()
    assert (await session.achat("1")).text == "One."
    events = [event async for event in session.astream("2")]
    assert isinstance(events[-1], TurnFinished)


def test_thinking_goes_back_verbatim(serve: Serve, make_session: MakeSession) -> None:
    claude = serve([message(thinking("Hm."), bash("true")), "Done."])
    make_session().chat("Think")
    block = claude.messages[1].body["messages"][1]["content"][0]
    assert block == thinking("Hm.")


def test_new_skills_are_announced_and_the_prefix_stays(
    serve: Serve, make_session: MakeSession, csv_skill: Skill
) -> None:
    claude = serve(["One.", "Two."])
    session = make_session()
    session.chat("1")
    session.add_skills([csv_skill])
    session.chat("2")
    first, second = (request.body for request in claude.messages)
    assert first["system"] == second["system"]
    assert first["tools"] == second["tools"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert "csv-helper" in second["messages"][-1]["content"][0]["text"]


def test_a_skill_that_was_changed_is_restored_and_told(
    serve: Serve, make_session: MakeSession, csv_skill: Skill
) -> None:
    copy = "skills/csv-helper/scripts/count.py"
    claude = serve([bash(f"chmod u+w {copy} && echo evil > {copy}"), "Done.", bash(f"cat {copy}"), "Seen."])
    session = make_session(skills=[csv_skill])
    session.chat("1")
    reply = session.chat("2")
    assert "evil" not in reply.tool_calls[0].result.text
    assert any("restored" in notice for notice in reply.notices)
    assert "restored" in json.dumps(claude.messages[-1].body["messages"])


def test_links_out_of_a_skill_are_not_copied(
    serve: Serve, make_session: MakeSession, csv_skill: Skill, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden")
    (csv_skill.path / "leak.txt").symlink_to(secret)
    serve([bash("ls skills/csv-helper; cat skills/csv-helper/leak.txt"), "Done."])
    reply = make_session(skills=[csv_skill]).chat("1")
    assert "hidden" not in reply.tool_calls[0].result.text


def test_uploads_of_one_name_are_kept_apart(serve: Serve, make_session: MakeSession, tmp_path: Path) -> None:
    serve(["One."])
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text(folder)
    session = make_session()
    session.chat("1", files=[tmp_path / "a" / "x.txt", tmp_path / "b" / "x.txt", tmp_path / "a" / "x.txt"])
    uploads = session.workspace / "uploads"
    assert {path.name: path.read_text() for path in uploads.iterdir()} == {"x.txt": "a", "x-2.txt": "b"}


def test_a_missing_file_is_told_before_anything_is_sent(serve: Serve, make_session: MakeSession) -> None:
    claude = serve(["never"])
    with pytest.raises(PathNotFoundError, match="no such file"):
        make_session().chat("Look", files=["nowhere.csv"])
    assert claude.messages == []


def test_failures_are_tried_again_and_shown(
    serve: Serve, make_session: MakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conjure_jupyter.conversation.retry.FIRST", 0.01)
    serve(
        [
            HTTPError(529),
            HTTPError(429, retry_after=0.01),
            [StreamError(after_events=4), message("Half an ans")],
            [CutConnection(after_events=4), message("Half an ans")],
            "Whole.",
        ]
    )
    heard: list[Event] = []
    reply = make_session(listener=heard.append).chat("Hi")
    assert reply.text == "Whole."
    assert reply.retries == 4
    assert [event.attempt for event in heard if isinstance(event, Retrying)] == [1, 2, 3, 4]
    assert any(isinstance(event, AnswerDiscarded) for event in heard)


def test_a_failure_for_good_keeps_what_was_said(
    serve: Serve, make_session: MakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(
        [
            bash("echo one"),
            [StreamError("api_error", after_events=4), message("Partial words here")],
            "Later.",
        ]
    )
    session = make_session(settings={"retries": 0})
    with pytest.raises(Exception, match=r".") as caught:
        session.chat("Hi")
    assert caught.type.__name__ == "ServerError"
    assert session.last is not None
    assert session.last.stop_reason == "error"
    assert len(session.last.tool_calls) == 1
    assert session.chat("Go on").text == "Later."


def test_a_wrong_key_is_one_clear_error(
    serve: Serve, make_session: MakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(["never"], api_key="right")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "wrong")
    with pytest.raises(AuthenticationError) as caught:
        make_session().chat("Hi")
    assert "wrong" not in str(caught.value)


def test_the_iteration_limit_ends_the_turn_not_the_session(serve: Serve, make_session: MakeSession) -> None:
    serve([bash("true"), bash("true"), "Now I am done."])
    session = make_session()
    reply = session.chat("Loop", max_iterations=2)
    assert reply.stop_reason == "max_iterations"
    assert "max_iterations" in (reply.error or "")
    assert session.chat("continue").text == "Now I am done."


def test_a_budget_clamps_and_ends(serve: Serve, make_session: MakeSession) -> None:
    claude = serve(lambda body: message(bash("true"), usage={"input_tokens": 1500, "output_tokens": 500}))
    reply = make_session().chat("Spend", budget="8000 tokens")
    assert reply.stop_reason == "budget"
    limits = [request.body["max_tokens"] for request in claude.messages]
    assert limits == sorted(limits, reverse=True)
    assert limits[-1] < 8000


def test_max_tokens_and_refusal_are_reported_as_they_are(serve: Serve, make_session: MakeSession) -> None:
    cut = message("I will", tool_use("create_file", {"path": "outputs/x"}), stop_reason="max_tokens")
    serve([cut, message("No.", stop_reason="refusal"), "Fine."])
    session = make_session()
    reply = session.chat("1")
    assert (reply.stop_reason, reply.tool_calls) == ("max_tokens", ())
    assert session.chat("2").stop_reason == "refusal"
    assert session.chat("3").text == "Fine."


def test_a_paused_turn_is_resumed(serve: Serve, make_session: MakeSession) -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    serve([message("Working", search, stop_reason="pause_turn"), "Finished."])
    assert make_session().chat("Go").text == "Finished."


def test_calls_of_one_turn_run_at_the_same_time_and_answer_in_order(
    serve: Serve, make_session: MakeSession
) -> None:
    wait = "for i in $(seq 100); do [ -e outputs/{1} ] && break; sleep 0.05; done"
    meet = f"touch outputs/{{0}}; {wait}; [ -e outputs/{{1}} ] && echo met"
    calls = [bash(meet.format("a", "b"), "t1"), bash(meet.format("b", "a"), "t2")]
    claude = serve([message(*calls), "Done."])
    reply = make_session().chat("Meet")
    results = claude.messages[1].body["messages"][-1]["content"]
    assert [block["tool_use_id"] for block in results] == ["t1", "t2"]
    assert all("met" in record.result.text for record in reply.tool_calls)


def test_resume_goes_on_where_it_was(
    serve: Serve, make_session: MakeSession, csv_skill: Skill, project: Path
) -> None:
    claude = serve([bash("echo one > outputs/a.txt"), "One.", bash("cat outputs/a.txt"), "Two."])
    session = make_session(skills=[csv_skill], id="mine")
    session.chat("1")
    with pytest.raises(SessionLockedError):
        Session.resume("mine", Settings(approve="auto"), project=project)
    session.close()
    with pytest.raises(SessionClosedError):
        session.chat("no more")

    again = Session.resume("mine", Settings(approve="auto"), project=project)
    with again:
        assert [skill.name for skill in again.registry.list()] == ["csv-helper"]
        reply = again.chat("2")
        assert reply.turn == 2
        assert "one" in reply.tool_calls[0].result.text
        assert again.cost == pytest.approx((session.last.cost or 0) + (reply.cost or 0))  # type: ignore[union-attr]
    bodies = [request.body for request in claude.messages]
    assert bodies[2]["system"] == bodies[0]["system"]
    assert bodies[2]["messages"][:2] == bodies[1]["messages"][:2]


def test_retry_branches_from_before_the_turn(serve: Serve, make_session: MakeSession) -> None:
    claude = serve(["One.", "Wrong.", "Right."])
    session = make_session()
    session.chat("1")
    session.chat("2")
    reply = session.chat("2, better", retry=True)
    assert reply.turn == 3
    said = json.dumps(claude.messages[-1].body["messages"])
    assert "One." in said
    assert "Wrong." not in said
    assert session.timeline is not None
    assert "Wrong." in json.dumps([block.data for block in session.timeline.blocks])


def test_a_skill_is_announced_again_when_its_turn_is_undone(
    serve: Serve, make_session: MakeSession, csv_skill: Skill
) -> None:
    claude = serve(["One.", "Two.", "Two again."])
    session = make_session()
    session.chat("1")
    session.add_skills([csv_skill])
    session.chat("2")
    session.chat("2, better", retry=2)
    assert "csv-helper" in json.dumps(claude.messages[-1].body["messages"][-1])


def test_nothing_is_written_before_the_first_turn(make_session: MakeSession) -> None:
    assert not make_session().folder.exists()


def test_session_folders_are_private_and_ignored(
    serve: Serve, make_session: MakeSession, project: Path
) -> None:
    serve(["Hi."])
    session = make_session()
    session.chat("Hi")
    assert session.folder.stat().st_mode & 0o777 == 0o700
    assert (session.folder / "timeline.jsonl").stat().st_mode & 0o777 == 0o600
    assert (project / ".conjure" / ".gitignore").read_text() == "sessions/\ncache/\n"


def test_dry_run_changes_nothing(
    serve: Serve, make_session: MakeSession, csv_skill: Skill, project: Path
) -> None:
    claude = serve(["never"])
    session = make_session(skills=[csv_skill])
    preview = session.dry_run("Count", files=[project / "sales.csv"], budget="0.50")
    assert preview.exact
    assert preview.input_tokens > 100
    assert preview.first_request is not None
    assert preview.first_request <= 0.50
    assert "csv-helper" in preview.system
    assert [file.path for file in preview.files] == ["uploads/sales.csv"]
    assert claude.messages == []
    assert not session.folder.exists()


def test_the_kernel_s_variables_can_be_seen_and_the_setting_turns_it_off(
    serve: Serve, make_session: MakeSession
) -> None:
    claude = serve([tool_use("inspect_variable", {"name": "answer"}), "It is 42.", "No look."])
    reply = make_session(namespace=lambda: {"answer": 42}).chat("What is it?")
    assert "42" in reply.tool_calls[0].result.text
    make_session(namespace=lambda: {"answer": 42}, settings={"inspect_variables": False}).chat("What?")
    assert "inspect_variable" not in {tool["name"] for tool in claude.messages[-1].body["tools"]}


def test_the_service_s_no_is_told_as_it_is(serve: Serve, make_session: MakeSession) -> None:
    serve([HTTPError(400, message="max_tokens: too many")])
    with pytest.raises(InvalidRequestError, match="too many"):
        make_session().chat("Hi")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"modle": "x"}, SettingsError, "no such option"),
        ({"skill": "nope"}, SkillNotFoundError, "nope"),
        ({"on": "hosted"}, SettingsError, "later version"),
        ({"budget": "lots"}, SettingsError, "neither"),
        ({"retry": 4}, SessionError, "no turn 4"),
    ],
)
def test_wrong_options_are_told(
    serve: Serve, make_session: MakeSession, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    serve(["never"])
    with pytest.raises(error, match=words):
        make_session().chat("Hi", **options)


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".hidden", "x" * 65, "a\0b", "con."])
def test_session_names_stay_in_their_folder(project: Path, name: str) -> None:
    with pytest.raises((SessionError, SessionNotFoundError)):
        Session.resume(name, Settings(), project=project)


def test_an_empty_prompt_is_refused(serve: Serve, make_session: MakeSession) -> None:
    serve(["never"])
    with pytest.raises(SessionError, match="empty"):
        make_session().chat("  \n")


def test_a_skill_alone_keeps_to_its_tools(serve: Serve, make_session: MakeSession, tmp_path: Path) -> None:
    from conjure_jupyter.skills import load
    from tests.builders import write_skill

    write_skill(tmp_path / "s", name="reader", description="Reads.", allowed_tools="Read")
    serve([bash("echo no"), "Then not."])
    reply = make_session(skills=load(tmp_path / "s")).chat("Try", skill="reader")
    assert reply.tool_calls[0].result.is_error
    assert "not allowed" in reply.tool_calls[0].result.text


def test_a_secret_in_tool_output_reaches_neither_model_nor_log(
    serve: Serve, make_session: MakeSession, project: Path
) -> None:
    secret = "sk-ant-api03-" + "A1b2C3d4" * 11
    (project / "key.txt").write_text(secret)
    claude = serve([bash(f"cat {project}/key.txt"), "Done."])
    session = make_session()
    session.chat("Show")
    assert secret not in json.dumps(claude.messages[1].body)
    assert secret not in (session.folder / "timeline.jsonl").read_text()


def test_most_input_is_read_from_the_cache(serve: Serve, make_session: MakeSession, csv_skill: Skill) -> None:
    rounds = [message(f"Round {n}. " + "word " * 200, bash(f"echo {n}; seq 200")) for n in range(20)]
    claude = serve([*rounds, "Done."])
    make_session(skills=[csv_skill]).chat("Twenty rounds. " + "Some context. " * 500)
    usage = claude.usage
    whole = usage["input_tokens"] + usage["cache_creation_input_tokens"] + usage["cache_read_input_tokens"]
    assert usage["cache_read_input_tokens"] / whole >= 0.9


def test_a_notice_is_heard_of_a_skill_without_room(
    serve: Serve, make_session: MakeSession, tmp_path: Path
) -> None:
    from conjure_jupyter.skills import load
    from tests.builders import write_skill

    for n in range(30):
        write_skill(tmp_path / "many", name=f"skill-{n:02}", description="Does things. " * 20)
    heard: list[Event] = []
    serve(["Hi."])
    make_session(
        skills=load(tmp_path / "many"), settings={"catalogue_tokens": 600}, listener=heard.append
    ).chat("Hi")
    assert any("catalogue_tokens" in event.text for event in heard if isinstance(event, Notice))


def test_tool_results_are_in_the_log_before_the_next_request(serve: Serve, make_session: MakeSession) -> None:
    kinds: list[list[str]] = []
    session = make_session()

    def answer(body: dict[str, Any]) -> Any:
        log = (session.folder / "timeline.jsonl").read_text().splitlines()
        kinds.append([json.loads(line)["kind"] for line in log])
        return bash("true") if len(kinds) == 1 else "Done."

    serve(answer)
    # The client reads the environment when it is first used.
    session.chat("Go")
    assert kinds[0][-1] == "user"
    assert kinds[1][-3:] == ["assistant", "tool_call", "tool_result"]


def test_a_result_is_heard_with_its_call(serve: Serve, make_session: MakeSession) -> None:
    serve([bash("exit 3"), "Failed."])
    heard: list[Event] = []
    make_session(listener=heard.append).chat("Fail")
    finished = [event for event in heard if isinstance(event, ToolFinished)]
    assert finished[0].result.is_error
    assert finished[0].result.meta["exit_code"] == 3
