"""Asking the user about a tool call, through the front end's own input.

The engine waits for the word; the thread that runs the cell asks. A turn in the background waits until
``%claude approve`` asks for it.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..conversation.approvals import ApprovalRequest, Verdict
from .visible import bounded, visible

#: Characters of a command or edit that are shown with the question.
DETAIL = 6_000


@dataclass(slots=True)
class _Question:
    request: ApprovalRequest
    answer: asyncio.Future[Verdict]


class Stop(Exception):  # noqa: N818  an answer, not an error
    """The user wants the whole turn to stop."""


class Asker:
    """An approver whose questions are put by the thread that runs the cell."""

    def __init__(self) -> None:
        self._waiting: deque[_Question] = deque()

    async def __call__(self, request: ApprovalRequest) -> Verdict:
        """Wait for the user's word; runs on the engine."""
        question = _Question(request, asyncio.get_running_loop().create_future())
        self._waiting.append(question)
        try:
            return await question.answer
        finally:
            if question in self._waiting:
                self._waiting.remove(question)

    @property
    def waiting(self) -> list[ApprovalRequest]:
        """The calls that wait for a word."""
        return [question.request for question in self._waiting]

    def serve(self) -> None:
        """Ask about everything that waits; called on the thread that runs the cell.

        Raises:
            Stop: the user wants the turn to stop.
        """
        while self._waiting:
            question = self._waiting[0]
            verdict = ask(question.request)
            if question in self._waiting:
                self._waiting.remove(question)
            question.answer.get_loop().call_soon_threadsafe(_set, question.answer, verdict)


def _set(future: asyncio.Future[Verdict], verdict: Verdict) -> None:
    if not future.done():
        future.set_result(verdict)


def ask(request: ApprovalRequest) -> Verdict:
    """Put the question and read the answer.

    Raises:
        Stop: the answer is to stop, or an interrupt, or there is no more input.
    """
    print(question(request))  # noqa: T201  the question belongs to the cell's output
    choices = "y(es), n(o), s(top)" if request.rule is None else "y(es), a(lways), n(o), s(top)"
    while True:
        try:
            with interruptible():
                answer = input(f"Allow? {choices}: ").strip()
        except (KeyboardInterrupt, EOFError):
            raise Stop from None
        word, _, message = answer.partition(" ")
        match word.lower():
            case "y" | "yes":
                return Verdict(allow=True)
            case "a" | "always" if request.rule is not None:
                return Verdict(allow=True, always=True)
            case "n" | "no":
                return Verdict(allow=False, message=message.strip())
            case "s" | "stop":
                raise Stop


def question(request: ApprovalRequest) -> str:
    """What the user is shown: the call in one line, why it is asked, and what it would do, in full."""
    lines = [f"Claude wants to run {request.call.name}: {visible(request.summary)}"]
    if request.reason:
        lines.append(f"  asked because {visible(request.reason)}")
    if request.detail.strip() and request.detail.strip() != request.summary.strip():
        lines += [f"  | {line}" for line in bounded(request.detail, DETAIL).rstrip().split("\n")]
    if request.rule is not None:
        lines.append(f"  'always' allows {visible(request.rule)} from here on")
    return "\n".join(lines)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let an interrupt end ``input()`` and other work that blocks, by ``KeyboardInterrupt``.

    While a cell waits for a turn an interrupt is only noted, and a cell that the kernel awaits would not
    hear of one before its next ``await``.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
