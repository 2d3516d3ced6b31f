"""The conversation as functions, with a callback in place of the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.conversation import (
    Continue,
    Done,
    arun_loop,
    create_context,
    execute,
    process_response,
    run_loop,
)
from conjure_jupyter.errors import (
    APIError,
    ApprovalRequiredError,
    MaxIterationsError,
    UnsupportedSettingError,
)
from conjure_jupyter.skills import Skill
from conjure_jupyter.testing import message
from conjure_jupyter.tools.permissions import Policy
from conjure_jupyter.types import ToolCall
from tests.builders import bash

Messages = list[dict[str, Any]]


HELLO: Messages = [{"role": "user", "content": "Hello"}]


def test_one_call(csv_skill: Skill, tmp_path: Path) -> None:
    call = ToolCall("t1", "bash_tool", {"command": "echo hi", "description": "x"})
    result = execute(call, [csv_skill], working_dir=tmp_path)
    assert result.tool_use_id == "t1"
    assert result.text.startswith("hi")


def test_a_skill_can_be_read_where_it_lies(csv_skill: Skill, tmp_path: Path) -> None:
    call = ToolCall("t1", "view", {"path": str(csv_skill.skill_md)})
    assert "count.py" in execute(call, [csv_skill], working_dir=tmp_path).text


def test_paths_outside_are_refused(csv_skill: Skill, tmp_path: Path) -> None:
    result = execute(ToolCall("t1", "view", {"path": "/etc/passwd"}), [csv_skill], working_dir=tmp_path)
    assert result.is_error


def test_process_response(tmp_path: Path) -> None:
    outcome = process_response(message(bash("echo hi")), [], working_dir=tmp_path)
    assert isinstance(outcome, Continue)
    assert outcome.results[0].text.startswith("hi")
    assert process_response(message("All done.")) == Done("All done.")


def test_run_loop_gives_all_messages(tmp_path: Path) -> None:
    seen: list[int] = []

    def api(messages: Messages) -> dict[str, Any]:
        seen.append(len(messages))
        return message(bash("echo hi")) if len(messages) == 1 else message("Done.")

    messages = run_loop(HELLO, [], api, working_dir=tmp_path)
    assert seen == [1, 3]
    assert [entry["role"] for entry in messages] == ["user", "assistant", "user", "assistant"]
    assert messages[0] is HELLO[0]
    assert messages[-1]["content"][0]["text"] == "Done."


async def test_the_callback_may_be_a_coroutine(tmp_path: Path) -> None:
    async def api(messages: Messages) -> dict[str, Any]:
        return message("Done.")

    assert (await arun_loop(HELLO, [], api, working_dir=tmp_path))[-1]["role"] == "assistant"


def test_the_limit_raises_with_the_messages(tmp_path: Path) -> None:
    with pytest.raises(MaxIterationsError) as caught:
        run_loop(HELLO, [], lambda messages: message(bash("true")), max_iterations=2, working_dir=tmp_path)
    assert caught.value.limit == 2
    assert len(caught.value.messages) == 5


def test_a_callback_that_fails_is_an_api_error(tmp_path: Path) -> None:
    def api(messages: Messages) -> dict[str, Any]:
        raise ValueError("no luck")

    with pytest.raises(APIError, match="no luck"):
        run_loop(HELLO, [], api, working_dir=tmp_path)


def test_a_policy_is_asked(tmp_path: Path) -> None:
    policy = Policy("ask", context=create_context(working_dir=tmp_path))
    with pytest.raises(ApprovalRequiredError) as caught:
        run_loop(HELLO, [], lambda messages: message(bash("true")), policy=policy, working_dir=tmp_path)
    assert caught.value.messages == HELLO


def test_what_cannot_be_enforced_is_an_error(tmp_path: Path) -> None:
    call = ToolCall("t1", "bash_tool", {"command": "true", "description": "x"})
    with pytest.raises(UnsupportedSettingError, match="network"):
        execute(call, working_dir=tmp_path, network="none")
