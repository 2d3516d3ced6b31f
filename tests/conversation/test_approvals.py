"""Who says yes, and what happens where nobody can be asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from conjure_jupyter.conversation import ApprovalRequest, Session, Verdict
from conjure_jupyter.errors import ApprovalRequiredError, SessionError
from conjure_jupyter.settings import Settings
from conjure_jupyter.skills import load
from conjure_jupyter.testing import FakeClaude, message, tool_use
from tests.builders import bash, write_skill

from .conftest import MakeSession

Serve = Callable[..., FakeClaude]
ASK = {"approve": "ask"}


class Asked:
    """An approver that gives the same word each time and remembers what it was asked."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.requests: list[ApprovalRequest] = []

    async def __call__(self, request: ApprovalRequest) -> Verdict:
        self.requests.append(request)
        return self.verdict


def test_the_user_is_shown_what_would_run(serve: Serve, make_session: MakeSession) -> None:
    serve([bash("touch outputs/a"), "Done."])
    asked = Asked(Verdict(allow=True))
    reply = make_session(settings=ASK, approver=asked).chat("Make it")
    assert [request.detail for request in asked.requests] == ["touch outputs/a"]
    assert [file.path for file in reply.files] == ["outputs/a"]


def test_a_refusal_goes_back_to_claude_with_the_user_s_words(serve: Serve, make_session: MakeSession) -> None:
    claude = serve([bash("touch outputs/a"), "Then not."])
    reply = make_session(settings=ASK, approver=Asked(Verdict(allow=False, message="Use create_file."))).chat(
        "Make it"
    )
    assert reply.files == ()
    assert "Use create_file." in json.dumps(claude.messages[1].body)
    assert reply.ok


def test_reading_in_the_workspace_never_asks(serve: Serve, make_session: MakeSession, project: Path) -> None:
    serve(
        [
            message(tool_use("view", {"path": "."}), tool_use("view", {"path": str(project / "sales.csv")})),
            "Seen.",
        ]
    )
    asked = Asked(Verdict(allow=False))
    reply = make_session(settings=ASK, approver=asked).chat("Look")
    assert asked.requests == []
    assert not any(record.result.is_error for record in reply.tool_calls)


def test_always_lasts_for_the_session(serve: Serve, make_session: MakeSession) -> None:
    write = tool_use("create_file", {"path": "outputs/a.txt", "file_text": "1", "description": "x"})
    again = tool_use("create_file", {"path": "outputs/b.txt", "file_text": "2", "description": "x"})
    serve([write, "One.", again, "Two."])
    asked = Asked(Verdict(allow=True, always=True))
    session = make_session(settings=ASK, approver=asked)
    session.chat("1")
    session.chat("2")
    assert len(asked.requests) == 1


def test_without_anybody_to_ask_the_turn_pauses_and_goes_on(serve: Serve, make_session: MakeSession) -> None:
    serve([message(bash("touch outputs/a", "t1"), tool_use("view", {"path": "."}, "t2")), "Made."])
    session = make_session(settings=ASK)
    with pytest.raises(ApprovalRequiredError, match="%claude approve") as caught:
        session.chat("Make it")
    assert [call_id for call_id, _, _ in caught.value.calls] == ["t1"]
    assert caught.value.messages
    assert [request.call.id for request in session.pending_approval] == ["t1"]
    paused = session.last
    assert paused is not None
    reply = session.approve().wait()
    assert reply.text == "Made."
    assert reply.turn == paused.turn
    assert reply.usage["output_tokens"] > paused.usage["output_tokens"] > 0
    assert session.usage == reply.usage
    assert [file.path for file in reply.files] == ["outputs/a"]
    assert session.pending_approval == []
    with pytest.raises(SessionError, match="No call waits"):
        session.approve()


def test_a_pause_outlives_the_kernel(serve: Serve, make_session: MakeSession, project: Path) -> None:
    serve([bash("touch outputs/a"), "Made."])
    session = make_session(settings=ASK, id="paused")
    with pytest.raises(ApprovalRequiredError):
        session.chat("Make it")
    session.close()
    with Session.resume("paused", Settings(approve="ask"), project=project) as again:
        assert again.approve().wait().text == "Made."


def test_going_on_without_a_word_refuses_the_call(serve: Serve, make_session: MakeSession) -> None:
    claude = serve([bash("touch outputs/a"), "Never mind."])
    session = make_session(settings=ASK)
    with pytest.raises(ApprovalRequiredError):
        session.chat("Make it")
    assert session.chat("Forget it").files == ()
    assert "without approving" in json.dumps(claude.messages[-1].body)


def test_deny_lets_nothing_run(serve: Serve, make_session: MakeSession) -> None:
    serve([bash("touch outputs/a"), "Not allowed."])
    reply = make_session(settings={"approve": "deny"}).chat("Make it")
    assert reply.files == ()
    assert reply.tool_calls[0].result.is_error


def test_a_skill_the_user_loaded_pre_approves_once_it_is_read(
    serve: Serve, make_session: MakeSession, tmp_path: Path
) -> None:
    write_skill(
        tmp_path / "s",
        name="maker",
        description="Makes.",
        allowed_tools="Bash(touch:*) Read",
    )
    skills = load(tmp_path / "s")
    view = tool_use("view", {"path": "skills/maker/SKILL.md"})
    serve([bash("touch outputs/early"), view, bash("touch outputs/late"), "Done."])
    asked = Asked(Verdict(allow=False))
    reply = make_session(settings=ASK, approver=asked, skills=skills).chat("Make it")
    assert [request.detail for request in asked.requests] == ["touch outputs/early"]
    assert [file.path for file in reply.files] == ["outputs/late"]


def test_an_untrusted_skill_pre_approves_nothing(
    serve: Serve, make_session: MakeSession, tmp_path: Path
) -> None:
    from dataclasses import replace

    write_skill(tmp_path / "s", name="maker", description="Makes.", allowed_tools="Bash")
    skills = [replace(skill, trusted=False) for skill in load(tmp_path / "s")]
    serve([tool_use("view", {"path": "skills/maker/SKILL.md"}), bash("touch outputs/x"), "Done."])
    asked = Asked(Verdict(allow=False))
    make_session(settings=ASK, approver=asked, skills=skills).chat("Make it")
    assert len(asked.requests) == 1
