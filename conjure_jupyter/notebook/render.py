"""A turn as a static record: HTML, Markdown, plain text and JSON, with no kernel and no script behind it.

Everything that Claude, a tool or a file says is escaped and bounded. The HTML uses no class, style, id or
script, so that JupyterLab, VS Code, GitHub and nbconvert show the same. Headless, nothing in it depends on
the clock, the machine or chance, so that a notebook's outputs can be compared from run to run.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from ..conversation.reply import Reply
from . import markdown
from .record import Call, Note, Record, Text, from_reply
from .visible import bounded, one_line, visible
from .words import call_line, detail, ending, fact, facts, footer, mark, notices, summary

MIME = "application/vnd.conjure.reply+json"

#: Characters of a call's output, and most calls and files that are shown.
OUTPUT, MOST_CALLS, MOST_FILES = 6_000, 200, 100

#: Characters of the answer that a running turn shows; the whole of it is there when the turn ends.
LIVE_TEXT = 12_000

#: Bytes of an image that is shown below the record, and how many are.
IMAGE, MOST_IMAGES = 2_000_000, 6

_RASTER = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
}


@dataclass(frozen=True, slots=True)
class Style:
    """How a record is written.

    Attributes:
        headless: leave out what differs from run to run: identifiers, paths of this machine.
        raw: the answer as Claude wrote it, not as Markdown.
        places: text to replace when headless, such as folders by their short names.
        root: as for ``Record``.
    """

    headless: bool = False
    raw: bool = False
    places: Mapping[str, str] | None = None
    root: str | None = None

    def told(self, text: str) -> str:
        """``text`` without this machine's folders, when headless."""
        if self.headless and self.places:
            for folder in sorted(self.places, key=len, reverse=True):
                text = text.replace(folder, self.places[folder])
        return text


def bundle(reply: Reply, style: Style | None = None) -> dict[str, Any]:
    """The MIME bundle of a turn that is over."""
    style = style or Style()
    record = _told(from_reply(reply, style.root), style)
    return {
        "text/plain": plain(record),
        "text/markdown": as_markdown(record, style),
        "text/html": as_html(record, style),
        MIME: as_json(reply, record, style),
    }


def live(record: Record, style: Style | None = None) -> dict[str, Any]:
    """The MIME bundle of a turn that runs; long answers show their end."""
    style = style or Style()
    items: list[Any] = []
    room = LIVE_TEXT
    for item in reversed(record.items):
        if isinstance(item, Text):
            if room <= 0:
                continue
            if len(item.text) > room:
                item = Text("…\n\n" + _paragraph_tail(item.text[-room:]))  # noqa: PLW2901  a shorter copy
            room -= len(item.text)
        items.append(item)
    shown = replace(record, items=items[::-1])
    return {"text/plain": plain(shown), "text/html": as_html(shown, style)}


def _paragraph_tail(text: str) -> str:
    _, gap, tail = text.partition("\n\n")
    return tail if gap and tail else text


def _told(record: Record, style: Style) -> Record:
    if not style.headless:
        return record
    items: list[Any] = []
    for item in record.items:
        if isinstance(item, Call) and item.result is not None:
            meta = json.loads(style.told(json.dumps(item.result.meta, ensure_ascii=False, default=str)))
            result = replace(item.result, content=style.told(item.result.text), meta=meta)
            told = json.loads(style.told(json.dumps(item.input, ensure_ascii=False)))
            items.append(replace(item, input=told, result=result))
        elif isinstance(item, Text | Note):
            items.append(replace(item, text=style.told(item.text)))
        else:
            items.append(item)
    # Without a model tokens are estimated from the prompt, in which the notebook's folder stands.
    usage = {} if record.cost == 0 else record.usage
    error = style.told(record.error) if record.error else None
    return replace(record, items=items, usage=usage, error=error)


def as_html(record: Record, style: Style) -> str:
    """The record as HTML."""
    parts = ["<div>", *_html_items(record, style)]
    if record.status:
        parts.append(f"<p><em>{escape(one_line(record.status, 300))}</em></p>")
    if record.files:
        rows = "".join(
            f"<li><code>{escape(one_line(style.told(ref.path), 200))}</code> ({escape(facts(ref))})</li>"
            for ref in record.files[:MOST_FILES]
        )
        parts.append(f"<p>Files:</p><ul>{rows}</ul>")
        if len(record.files) > MOST_FILES:
            parts.append(f"<p>… and {len(record.files) - MOST_FILES:,} more files</p>")
    if told := ending(record):
        parts.append(f"<p><strong>{escape(told)}</strong></p>")
    if told := footer(record):
        parts.append(f"<p><small>{escape(told)}</small></p>")
    return "\n".join([*parts, "</div>"])


def _html_items(record: Record, style: Style) -> Iterator[str]:
    calls = sum(1 for _ in record.calls())
    skipped = max(0, calls - MOST_CALLS)
    seen = 0
    for item in record.items:
        match item:
            case Text(text=text):
                cleaned = escape(bounded(text, markdown.LIMIT)) if style.raw else ""
                yield f"<pre>{cleaned}</pre>" if style.raw else markdown.html(text)
            case Note(text=text, level=level):
                kind = "Warning: " if level == "warning" else ""
                yield f"<p><em>{kind}{escape(bounded(text, 2_000))}</em></p>"
            case Call():
                seen += 1
                if seen > skipped:
                    yield _html_call(item)
                elif seen == skipped:
                    yield f"<p><em>… {skipped:,} tool calls before are left out …</em></p>"


def _html_call(call: Call) -> str:
    why = fact(call)
    line = f"{mark(call)} {escape(one_line(call.name, 60))} <code>{escape(summary(call))}</code>"
    line += f" ({escape(why)})" if why else ""
    output = bounded(call.result.text if call.result else call.output, OUTPUT)
    body = "".join(f"<pre><code>{escape(part)}</code></pre>" for part in (detail(call), output) if part)
    told = "".join(f"<p><em>{escape(notice)}</em></p>" for notice in notices(call))
    return f"<details{' open' if call.failed else ''}><summary>{line}</summary>{body}</details>{told}"


def as_markdown(record: Record, style: Style) -> str:
    """The record as Markdown: the answer, and a line for each call and file."""
    parts: list[str] = []
    for item in record.items:
        match item:
            case Text(text=text):
                parts.append(markdown.markdown(text))
            case Note(text=text):
                parts.append(f"*{markdown.literal(one_line(text, 500))}*")
            case Call():
                why = f" ({fact(item)})" if fact(item) else ""
                said = markdown.code(summary(item))
                told = "".join(f"\n  - *{markdown.literal(notice)}*" for notice in notices(item))
                parts.append(f"- {mark(item)} {markdown.literal(one_line(item.name, 60))} {said}{why}{told}")
    parts += [
        f"- {markdown.code(one_line(style.told(ref.path), 200))} ({markdown.literal(facts(ref))})"
        for ref in record.files[:MOST_FILES]
    ]
    if told := ending(record):
        parts.append(f"**{markdown.literal(told)}**")
    if told := footer(record):
        parts.append(markdown.literal(told))
    return "\n\n".join(parts)


def plain(record: Record) -> str:
    """The record as text."""
    parts: list[str] = []
    for item in record.items:
        match item:
            case Text(text=text):
                parts.append(bounded(text, markdown.LIMIT).strip())
            case Note(text=text):
                parts.append(f"[{one_line(text, 500)}]")
            case Call():
                parts.append(call_line(item))
    parts += [f"{one_line(ref.path, 200)} ({facts(ref)})" for ref in record.files[:MOST_FILES]]
    parts += [told for told in (ending(record), footer(record)) if told]
    return "\n".join(parts)


def as_json(reply: Reply, record: Record, style: Style) -> dict[str, Any]:
    """The record for programs and renderers; ``format`` is the version of this layout."""
    data: dict[str, Any] = {
        "format": 1,
        "text": bounded(style.told(reply.text), markdown.LIMIT),
        "tool_calls": [
            {"name": one_line(call.name, 60), "summary": summary(call), "is_error": call.failed}
            for call in record.calls()
        ],
        "files": [
            {
                "path": visible(style.told(ref.path)),
                "size": ref.size,
                "content_type": ref.content_type,
                "version": ref.version,
                "kept": bool(ref.sha256),
            }
            for ref in record.files[:MOST_FILES]
        ],
        "model": reply.model,
        "usage": record.usage,
        "cost": reply.cost,
        "stop_reason": reply.stop_reason,
        "error": record.error,
    }
    if not style.headless:
        data |= {"session": reply.session_id, "turn": reply.turn, "duration": round(reply.duration, 3)}
    return data


def images(reply: Reply) -> Iterator[dict[str, Any]]:
    """Bundles of the raster images that the turn made, to be shown below the record.

    The type is read from the bytes, never from the name. SVG is left out: it can carry script.
    """
    shown = 0
    for ref in reply.files:
        if shown == MOST_IMAGES:
            return
        if ref.local_path is None or not ref.content_type.startswith("image/") or ref.size > IMAGE:
            continue
        try:
            data = ref.local_path.read_bytes()[: IMAGE + 1]
        except OSError:
            continue
        for magic, kind in _RASTER.items():
            if data.startswith(magic) and len(data) <= IMAGE:
                shown += 1
                yield {kind: base64.b64encode(data).decode(), "text/plain": one_line(ref.path, 200)}
