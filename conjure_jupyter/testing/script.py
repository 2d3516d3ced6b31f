"""What a scripted Claude answers, request by request."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from conjure_jupyter.types import Message

from .builders import message, text
from .faults import Fault

#: One answer: a message, a block, text, a fault, or a list of faults and at most one of the others.
Reply: TypeAlias = "Message | str | Fault | Sequence[Message | str | Fault]"

#: All answers: one after the other, made by a function of the request's body, or chosen by the prompt (the
#: first key found in it as a regular expression).
Script: TypeAlias = "Sequence[Reply] | Callable[[dict[str, Any]], Reply] | Mapping[str, Reply]"


class ScriptError(Exception):
    """The script has no answer for a request."""


@dataclass(frozen=True, slots=True)
class Step:
    """One answer: what Claude says, and what goes wrong meanwhile."""

    message: Message
    faults: tuple[Fault, ...] = ()

    def first(self, kind: type[Any]) -> Any:
        """The first fault of a kind, or None."""
        return next((fault for fault in self.faults if isinstance(fault, kind)), None)


class ScriptReader:
    """Gives the answers of a script; safe to use from several threads."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._position = 0
        self._lock = threading.Lock()

    def next(self, body: dict[str, Any]) -> Step:
        """The answer to a request.

        Raises:
            ScriptError: the script is at its end, or no key of it is in the prompt.
        """
        return to_step(self._choose(body))

    @property
    def left(self) -> int | None:
        """Answers of a list that were not asked for; None for other scripts."""
        if callable(self._script) or isinstance(self._script, Mapping):
            return None
        return len(self._script) - self._position

    def _choose(self, body: dict[str, Any]) -> Reply:
        script = self._script
        if callable(script):
            return script(body)
        if isinstance(script, Mapping):
            prompt = last_prompt(body)
            for pattern, reply in script.items():
                if re.search(pattern, prompt):
                    return reply
            raise ScriptError(f"no key of the script is in the prompt {prompt[:80]!r}")
        with self._lock:
            if self._position >= len(script):
                raise ScriptError(f"all {len(script)} answers of the script are used up")
            self._position += 1
            return script[self._position - 1]


def to_step(reply: Reply) -> Step:
    """An answer in its full form.

    Raises:
        ScriptError: it holds more than one message, or something that is no answer.
    """
    parts = [reply] if isinstance(reply, str | Mapping | Fault) else list(reply)
    faults = tuple(part for part in parts if isinstance(part, Fault))
    said = [part for part in parts if not isinstance(part, Fault)]
    if len(said) > 1:
        raise ScriptError("an answer holds more than one message; put the blocks into message(...)")
    words = said[0] if said else "All done."
    if isinstance(words, str):
        return Step(message(words), faults)
    if not isinstance(words, dict):
        raise ScriptError(f"{type(words).__name__} is no answer")
    return Step(words if "content" in words and "stop_reason" in words else message(words), faults)


def last_prompt(body: Mapping[str, Any]) -> str:
    """What the user said last, without tool results."""
    for said in reversed(body["messages"]):
        if said["role"] != "user":
            continue
        content = said["content"]
        blocks = [text(content)] if isinstance(content, str) else content
        words = "\n".join(block["text"] for block in blocks if block["type"] == "text")
        if words:
            return words
    return ""
