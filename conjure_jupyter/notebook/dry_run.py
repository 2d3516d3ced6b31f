"""What a turn would send, to be read before it is sent."""

from __future__ import annotations

import json
from html import escape

from ..conversation import DryRun
from ..wording import size_text
from .render import Style
from .visible import bounded, one_line, visible
from .words import money

#: Characters of the system prompt and of one message that are shown.
SHOWN = 20_000


def facts(plan: DryRun, where: str) -> list[tuple[str, str]]:
    """Size and price, and where tools run unless ``where`` is empty, as names and values."""
    about = "" if plan.exact else "about "
    first = "price not known" if plan.first_request is None else money(plan.first_request)
    return [
        ("Asked", f"{one_line(plan.model, 60)} ({plan.client})"),
        ("Input", f"{about}{plan.input_tokens:,} tokens in the first request"),
        ("Answer", f"at most {plan.max_tokens:,} tokens, at most {plan.max_iterations} requests"),
        ("First request", first if plan.first_request in (None, 0) else f"at most {first}"),
        ("Budget", one_line(plan.ceiling) if plan.ceiling else "none; give one with --budget"),
        ("Tools", ", ".join(plan.tools)),
        *([("Tools run", where)] if where else []),
    ]


def plain(plan: DryRun, where: str) -> str:
    """The plan as text."""
    lines = ["Nothing was sent."]
    lines += [f"{name + ':':15} {value}" for name, value in facts(plan, where)]
    lines += [f"{'File:':15} {one_line(file.path, 200)} ({size_text(file.size)})" for file in plan.files]
    lines += ["", "System prompt:", bounded(plan.system, SHOWN), "", "Message:", _last(plan)]
    return "\n".join(lines)


def as_html(plan: DryRun, style: Style, where: str) -> str:
    """The plan as HTML; the long parts are folded."""
    rows = [
        *facts(plan, where),
        *(("File", f"{visible(file.path)} ({size_text(file.size)})") for file in plan.files),
    ]
    listed = "".join(f"<li>{escape(name)}: {escape(style.told(value))}</li>" for name, value in rows)
    parts = [
        ("System prompt", bounded(plan.system, SHOWN)),
        (f"Conversation before ({len(plan.messages) - 1} messages)", _before(plan)),
        ("Message", _last(plan)),
    ]
    folded = "".join(
        f"<details><summary>{escape(name)}</summary><pre><code>{escape(style.told(text))}</code></pre></details>"
        for name, text in parts
        if text
    )
    return f"<div><p><strong>Nothing was sent.</strong></p><ul>{listed}</ul>{folded}</div>"


def _last(plan: DryRun) -> str:
    return _content(plan.messages[-1]["content"])


def _before(plan: DryRun) -> str:
    said = (f"{message['role']}: {_content(message['content'])}" for message in plan.messages[:-1])
    return bounded("\n\n".join(said), SHOWN)


def _content(content: object) -> str:
    if isinstance(content, str):
        return bounded(content, SHOWN)
    parts = []
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "text":
            parts.append(bounded(block["text"], SHOWN))
        elif "source" in block:
            kind = block["source"].get("media_type", block["type"])
            parts.append(f"[{kind}, {len(block['source'].get('data', '')) * 3 // 4:,} bytes]")
        else:
            parts.append(bounded(json.dumps(block, ensure_ascii=False), 2_000))
    return "\n".join(parts)
