"""What a request says: the skills on offer, what the user asked, the files at hand, the calls made so far."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from ...artifacts.kinds import extension_for
from ...artifacts.uris import is_uri
from ...timeline.rendering import CAPTURED_HEAD
from ...types import Message
from ..base import Request

_SKILL = re.compile(
    r"<skill>\s*<name>([^<]*)</name>\s*<description>([^<]*)</description>\s*<location>([^<]*)</location>\s*</skill>"
)
#: How ``artifacts.section`` lists a name that the user gave.
_REGISTERED = re.compile(r'<artifact name="[^"]*" type="([^"]*)"[^<>]*uri="(file://[^"]+)"')
_URI = re.compile(r"(?<![\w@/])((?:file://[\w.%-]+|skill://[\w.%-]+/assets/[\w./%-]+))")
#: How ``prompt.session_instructions`` names the folder that lies beside the notebook.
NOTEBOOK_FOLDER = re.compile(r"<notebook_folder>([^<]*)</notebook_folder>")
#: Elements that the session puts into a message; what they hold is not the user's.
_ASIDES = ("available_skills", "skills", "skills_not_listed", "artifacts", "environment", "system-reminder")

#: How the result of a call begins whose turn was stopped or interrupted.
_CUT_SHORT = ("Interrupted", "Stopped", "Not run")

_LISTED_UPLOAD = re.compile(
    r"^[ \t]*[-*•][ \t]+`?((?:[^\s`]*/)?uploads/[^`\n]+?)`?"
    r"(?:[ \t]+\([^()\n]*\))?(?:[ \t]+\[\[S:\d+\]\])?[ \t]*$",
    re.MULTILINE,
)
_QUOTED = re.compile(r"""(["'`])([^"'`\n]*\.[A-Za-z]\w{0,7})\1""")
_NAMED = re.compile(r"(?<![\w@/.~-])(?:file://|@)?((?:[\w.~-]*/)*[\w-][\w.-]*\.[A-Za-z]\w{0,7})\b(?![\w/])")
_ADDRESS = re.compile(r"\b(?!file:)[A-Za-z][\w+.-]{0,20}://\S+|\b[\w-]+\.(?:com|org|net|io|ai)\b")


@dataclass(frozen=True, slots=True)
class ListedSkill:
    """A skill as the prompt lists it."""

    name: str
    description: str
    location: str

    @property
    def folder(self) -> str:
        """Where its files lie."""
        return self.location.rpartition("/")[0] or "."


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of an earlier answer, and what it gave."""

    name: str
    input: dict[str, Any]
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """One request, understood.

    Attributes:
        skills: those that the prompt lists.
        prompts: what was said last, then that with what was said just before it without an answer.
        words: the user's own part of what was said last.
        files: paths of the files they are about, as tools can read them, in the order named.
        named: those of them that were named just now, not earlier in the conversation.
        kinds: extensions of registered artifacts, whose names need not have one, by URI.
        calls: those made since the prompt.
        earlier: those made before it.
        tools: names of the tools on offer.
        call_count: tool calls in the whole conversation.
        answer_count: answers in the whole conversation.
    """

    skills: tuple[ListedSkill, ...]
    prompts: tuple[str, ...]
    words: str
    files: tuple[str, ...]
    named: tuple[str, ...]
    kinds: Mapping[str, str]
    calls: tuple[Call, ...]
    earlier: tuple[Call, ...]
    tools: frozenset[str]
    call_count: int
    answer_count: int


def read(request: Request) -> Reading:
    """Understand a request; it is the only thing that is looked at."""
    messages = request.messages
    start = max((at for at, message in enumerate(messages) if _asks(message)), default=0)
    asked = [message for message in messages[: start + 1] if message["role"] == "user"]
    said = [_said(message) for message in asked]
    run = start
    while run and _asks(messages[run - 1]):
        run -= 1
    together = "\n".join(_said(message) for message in messages[run : start + 1])
    answers = [message for message in messages if message["role"] == "assistant"]
    kinds = _registered([request.system, *said])
    return Reading(
        skills=_skills([request.system, *said]),
        prompts=tuple(" ".join(_own(text).split()) for text in (*said[-1:], together)),
        words=_own_words(asked[-1]) if asked else "",
        files=_files(said, 0, request.system, kinds),
        named=_files(said, len(asked) - 1 - (start - run), request.system, kinds),
        kinds=kinds,
        calls=tuple(_calls(messages[start:])),
        earlier=tuple(_calls(messages[: start + 1])),
        tools=frozenset(tool.get("name", "") for tool in request.tools),
        call_count=sum(block["type"] == "tool_use" for answer in answers for block in _blocks(answer)),
        answer_count=len(answers),
    )


def _blocks(message: Message) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _own(text: str) -> str:
    """A text without the session's elements."""
    for name in _ASIDES:
        start = text.find(f"<{name}>")
        while start >= 0 and (end := text.find(f"</{name}>", start)) >= 0:
            text = f"{text[:start]} {text[end + len(name) + 3 :]}"
            start = text.find(f"<{name}>", start)
    return text


def _said(message: Message) -> str:
    return "\n".join(block["text"] for block in _blocks(message) if block["type"] == "text")


def _own_words(message: Message) -> str:
    """The last text of a message: what the session has to say comes before it."""
    texts = [block["text"].strip() for block in _blocks(message) if block["type"] == "text"]
    return texts[-1] if texts else ""


def _asks(message: Message) -> bool:
    """Whether a message holds words to act on.

    Words beside results are the session's, unless the turn of those results was cut short: then they are
    what the user said next.
    """
    if message["role"] != "user" or not _own(_said(message)).strip():
        return False
    results = [block for block in _blocks(message) if block["type"] == "tool_result"]
    return not results or any(result_text(block).startswith(_CUT_SHORT) for block in results)


def _skills(texts: Iterable[str]) -> tuple[ListedSkill, ...]:
    found: dict[str, ListedSkill] = {}
    for text in texts:
        for groups in _SKILL.findall(text):
            skill = ListedSkill(*(html.unescape(group) for group in groups))
            found[skill.name] = skill
    return tuple(found.values())


def _registered(texts: Iterable[str]) -> dict[str, str]:
    """The names that the user gave, as URIs that a shell takes for one word, with their extensions."""
    found = (groups for text in texts for groups in _REGISTERED.findall(text))
    return {html.unescape(uri): extension_for(html.unescape(kind)) for kind, uri in found}


def _calls(messages: list[Message]) -> Iterator[Call]:
    asked: dict[str, dict[str, Any]] = {}
    for message in messages:
        for block in _blocks(message):
            if block["type"] == "tool_use":
                asked[block["id"]] = block
            elif block["type"] == "tool_result" and block["tool_use_id"] in asked:
                call = asked.pop(block["tool_use_id"])
                yield Call(call["name"], call["input"], result_text(block), bool(block.get("is_error")))


def result_text(block: dict[str, Any]) -> str:
    """The text of a ``tool_result`` block; other content is named in brackets.

    What the session adds of artifacts that the call made is no output of the call.
    """
    content = block.get("content") or ""
    if isinstance(content, str):
        return content
    texts = (part["text"] if part["type"] == "text" else f"[{part['type']}]" for part in content)
    return "\n".join(text for text in texts if not text.startswith(CAPTURED_HEAD))


def _files(said: list[str], since: int, system: str, registered: Iterable[str]) -> tuple[str, ...]:
    """Files of the last text that names any, from text number ``since`` on."""
    uploads: dict[str, str] = {}
    found: list[str] = []
    folder = NOTEBOOK_FOLDER.search(system)
    names = {unquote(uri): uri for uri in registered}
    for at, text in enumerate(said):
        named = list(_named(_own(text), names))
        uploads.update((path.rpartition("/")[2], path) for path in named if "uploads/" in path)
        paths = [_placed(path, uploads, html.unescape(folder[1]) if folder else None) for path in named]
        if paths and at >= since:
            found = list(dict.fromkeys(paths))
    return tuple(found)


def _named(text: str, registered: Mapping[str, str]) -> Iterator[str]:
    """The files that a text names, in order; ``registered`` has the URI of each registered one.

    Its keys are the URIs as the user may write them, with nothing percent-encoded.
    """
    spans: list[tuple[int, str]] = []

    def take_uri(match: re.Match[str]) -> str:
        uri: str | None = match[1].rstrip(".")
        if match[1].startswith("file://"):
            uri = registered.get(unquote(match[1])) or registered.get(unquote(match[1].rstrip(".")))
        if uri is None:
            return match[0]  # a file of the user's, not a name she gave
        spans.append((match.start(), uri))
        return " " * len(match[0])

    text = _URI.sub(take_uri, text)
    text = _ADDRESS.sub(lambda match: " " * len(match[0]), text)

    def take(match: re.Match[str]) -> str:
        path = match[match.lastindex or 0].strip()
        listed = match.re is _LISTED_UPLOAD  # the session's own line, in which a name is escaped
        spans.append(
            (match.start(), html.unescape(path) if listed else path.removeprefix("file://").removeprefix("@"))
        )
        return " " * len(match[0])

    for pattern in (_LISTED_UPLOAD, _QUOTED, _NAMED):
        text = pattern.sub(take, text)
    for _, path in sorted(spans):
        if "/" in path or len(path.rpartition(".")[0]) > 1:  # 'e.g' is no file
            yield path


def _placed(path: str, uploads: dict[str, str], folder: str | None) -> str:
    """Where tools can read a file that the user names; URIs are resolved by the tools."""
    if is_uri(path):
        return path
    upload = uploads.get(path.rpartition("/")[2])
    if upload:
        return upload
    return f"{folder.rstrip('/')}/{path}" if folder and not path.startswith(("/", "~")) else path
