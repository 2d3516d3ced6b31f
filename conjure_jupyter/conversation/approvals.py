"""Who may say yes to a tool call, and how the answer comes back.

The policy (``tools.permissions``) decides what it can. What it leaves open is put to an approver: a
coroutine of the front end's. Where there is none, the turn pauses with ``ApprovalRequiredError``.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import ApprovalRequiredError
from ..tools.permissions import Decision, Policy, summary
from ..types import ToolCall


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that waits for the user's word.

    Attributes:
        call: the call.
        summary: one safe line.
        reason: why it is asked.
        rule: a rule that would allow calls like this one, if there is a narrow one.
        detail: the command, the file's text or the edit, as Claude wrote it; not escaped.
    """

    call: ToolCall
    summary: str
    reason: str
    rule: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The user's word.

    Attributes:
        allow: whether the call may run.
        always: whether calls that fit the request's rule may run without asking from here on.
        message: what Claude is told with a refusal.
    """

    allow: bool
    always: bool = False
    message: str = ""


Approver: TypeAlias = Callable[[ApprovalRequest], Awaitable[Verdict]]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What was decided of a call, and by whom: ``policy``, ``user`` or ``nobody``."""

    call: ToolCall
    allow: bool
    by: str
    reason: str


class Gate:
    """Decides calls: the policy first, then the approver.

    Attributes:
        always: rules the user gave with her answers.
    """

    def __init__(self, policy: Policy | None, approver: Approver | None = None) -> None:
        self.policy = policy
        self.approver = approver
        self.always: list[str] = []
        self._given: dict[str, Verdict] = {}

    def give(self, verdicts: Mapping[str, Verdict]) -> None:
        """Words given beforehand, by call id: how a paused turn goes on."""
        self._given.update(verdicts)

    async def rule(self, calls: Sequence[ToolCall]) -> list[Ruling]:
        """A ruling for each call, in order.

        Raises:
            ApprovalRequiredError: some need the user's word and there is nobody to ask.
        """
        rulings: list[Ruling] = []
        waiting: list[ToolCall] = []
        for call in calls:
            decision = self.policy.decide(call) if self.policy else Decision("allow", "no policy", None)
            if decision.verdict != "ask":
                rulings.append(Ruling(call, decision.verdict == "allow", "policy", decision.reason))
                continue
            verdict = self._given.pop(call.id, None)
            if verdict is None and self.approver is not None:
                verdict = await self.approver(request(call, decision))
            if verdict is None:
                waiting.append(call)
                continue
            if verdict.always and verdict.allow and decision.rule and self.policy:
                self.policy.add_rule(decision.rule)
                self.always.append(decision.rule)
            rulings.append(Ruling(call, verdict.allow, "user", verdict.message))
        if waiting:
            raise ApprovalRequiredError([(call.id, call.name, summary(call)) for call in waiting])
        return rulings


def request(call: ToolCall, decision: Decision) -> ApprovalRequest:
    """What an approver is asked about ``call``."""
    return ApprovalRequest(call, summary(call), decision.reason, decision.rule, _detail(call))


def _detail(call: ToolCall) -> str:
    given = call.input
    match call.name:
        case "bash_tool":
            return str(given.get("command", ""))
        case "create_file":
            return str(given.get("file_text", ""))
        case "str_replace":
            removed = "".join(f"- {line}\n" for line in str(given.get("old_str", "")).splitlines())
            return removed + "".join(f"+ {line}\n" for line in str(given.get("new_str") or "").splitlines())
        case _:
            return json.dumps(given, ensure_ascii=False, indent=1)
