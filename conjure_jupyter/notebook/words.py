"""What is said about a turn and its calls, in words: the same in every view."""

from __future__ import annotations

import json

from ..executors import DOCKER, LocalExecutor
from ..settings import Settings
from ..types import FileRef
from ..wording import size_text
from .record import Call, Record
from .visible import bounded, one_line, visible

#: Characters of a call's input, and notices of one call, that are shown.
INPUT, NOTICES = 4_000, 20

_ENDS = {
    "max_tokens": "The answer was cut off at its token limit (max_tokens). Say 'continue' in the next cell.",
    "refusal": "Claude declined to answer.",
    "stopped": "Stopped. What was done so far is kept; the next cell goes on from here.",
    "max_iterations": "Stopped at the limit of requests (--max-iterations). Say 'continue' in the next cell.",
    "budget": "Stopped at the budget (--budget).",
    "approval": "Waits for your word: run %claude approve.",
    "model_context_window_exceeded": "The conversation is longer than the model can read; start a new one.",
}


def summary(call: Call) -> str:
    """One line on what a call does."""
    given = call.input
    if call.state == "writing":
        return f"writing the call ({call.size:,} characters)" if call.size else "writing the call"
    for key in ("command", "path", "name", "expression"):
        if isinstance(given.get(key), str):
            return one_line(given[key])
    return one_line(json.dumps(given, ensure_ascii=False, default=str)) if given else ""


def detail(call: Call) -> str:
    """The input in full, where the one line does not say it all."""
    given = {key: value for key, value in call.input.items() if value not in (None, "")}
    command = given.get("command") or given.get("path")
    if set(given) <= {"command", "path", "description"} and isinstance(command, str):
        return "" if command == summary(call) else bounded(command, INPUT)
    parts = [f"{key}:\n{value}" if "\n" in str(value) else f"{key}: {value}" for key, value in given.items()]
    return bounded("\n".join(parts), INPUT)


def mark(call: Call) -> str:
    """A tick, a cross, or dots for a call that is not over."""
    return ("✗" if call.failed else "✓") if call.state == "done" else "…"


def notices(call: Call) -> list[str]:
    """What the session changed about a call, such as a path it wrote to: one line each."""
    said = (call.result.meta if call.result else {}).get("notices")
    texts = (
        [notice.get("text") for notice in said if isinstance(notice, dict)] if isinstance(said, list) else []
    )
    return [one_line(text, 500) for text in texts[:NOTICES] if isinstance(text, str)]


def facts(ref: FileRef) -> str:
    """Type, size and version of a file, and that its bytes were not kept."""
    version = [] if ref.version is None else [f"v{ref.version}"]
    lost = [] if ref.sha256 else ["too large to be kept"]
    return ", ".join([one_line(ref.content_type), size_text(ref.size), *version, *lost])


def fact(call: Call) -> str:
    """Why a call counts as failed, in a few words."""
    meta = call.result.meta if call.result else {}
    if meta.get("timed_out"):
        return "time limit"
    code = meta.get("exit_code")
    return f"exit code {code}" if isinstance(code, int) and code else "failed" if call.failed else ""


def ending(record: Record) -> str:
    """How the turn ended, where that needs saying."""
    reason = record.stop_reason
    if reason in (None, "end_turn", "stop_sequence"):
        return ""
    said = _ENDS.get(str(reason), "" if record.error else f"Ended: {one_line(str(reason))}")
    return " ".join(part for part in (visible(record.error or ""), said) if part)


def footer(record: Record) -> str:
    """Model, tokens and money."""
    usage = record.usage
    fresh = usage.get("input_tokens") or 0
    read = usage.get("cache_read_input_tokens") or 0
    whole = fresh + read + (usage.get("cache_creation_input_tokens") or 0)
    parts = [one_line(record.model, 60)] if record.model else []
    if whole or usage.get("output_tokens"):
        cached = f" ({read * 100 // whole}% from cache)" if read else ""
        parts.append(f"{whole:,} tokens in{cached}, {usage.get('output_tokens') or 0:,} out")
        parts.append("price not known" if record.cost is None else money(record.cost))
    return " · ".join(parts)


def place(on: str, settings: Settings) -> str:
    """Where tools run, and what confines them there."""
    if on == LocalExecutor.name:
        confined = "" if settings.sandbox == "off" else f", confined (sandbox {settings.sandbox})"
        return f"on this machine{confined}"
    if on == DOCKER:
        network = settings.network or "none"
        return f"in a container ({one_line(settings.docker_image)}, network {network})"
    return f"by the executor {one_line(on)}"


def counted(count: int, what: str) -> str:
    """A number of things: ``1 turn``, ``2 turns``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def money(usd: float) -> str:
    """An amount in words; no dollar sign, which front ends take for the start of a formula."""
    return "no cost" if usd == 0 else f"{usd:.4f} USD"


def call_line(call: Call) -> str:
    """A call on one line of text; a failed one with the end of its output."""
    why = f" ({fact(call)})" if fact(call) else ""
    line = f"{mark(call)} {one_line(call.name, 60)}: {summary(call)}{why}"
    if call.failed and call.result:
        line += "".join(f"\n    {row}" for row in bounded(call.result.text, 600).strip().splitlines()[-8:])
    return line + "".join(f"\n    [{notice}]" for notice in notices(call))
