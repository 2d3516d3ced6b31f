"""The view tool: files and folders as Claude can best use them."""

from __future__ import annotations

import codecs
import posixpath
from typing import Any

from ..errors import InvalidToolInputError, ToolError
from ..executors.contract import Stat
from ..wording import size_text
from . import media, schemas
from .bounds import clip_line
from .locations import check_path, printable, shown
from .text import SAMPLE, Encoding, detect, numbered
from .tool import Outcome, ToolEnv

#: Bytes read at a time from a text file.
CHUNK = 1 << 20
#: Bytes of a text file that are looked through at most.
SCAN_LIMIT = 256 << 20
#: Entries of a folder that are listed at most.
ENTRIES = 500
#: Folders that hold what tools made, not what people wrote.
SKIPPED = frozenset({"node_modules", "__pycache__"})


class ViewTool:
    """Text with line numbers, folders two levels deep, images, PDF documents; other files described."""

    name = "view"
    read_only = True
    path_fields = ("path",)
    read_fields = ()
    artifact_fields = ()

    @property
    def definition(self) -> dict[str, Any]:
        """The source document's schema."""
        return schemas.view_tool()

    async def run(self, arguments: dict[str, Any], env: ToolEnv) -> Outcome:
        """Show what lies at a path.

        Raises:
            ToolError: there is nothing, or it cannot be shown.
        """
        path = check_path(self.name, arguments["path"])
        lines = check_range(self.name, arguments.get("view_range"))
        stat = await env.executor.stat(path, env.context)
        if stat.kind == "dir":
            if lines:
                raise InvalidToolInputError(
                    self.name, f"{path} is a folder; leave view_range out", field="view_range"
                )
            return Outcome(await _folder(path, env))
        if stat.kind != "file":
            raise ToolError(
                f"{path} is no regular file or folder" + _LINK_ADVICE if stat.kind == "link" else path
            )
        head = await env.executor.read(path, env.context, limit=SAMPLE)
        if image := media.sniff_image(head):
            return await _image(path, image, stat, env)
        if media.is_pdf(head):
            return await _document(path, stat, env)
        encoding = detect(head, whole=stat.size <= len(head))
        if encoding is None:
            return Outcome(_describe(path, head, stat, env), meta={"binary": True})
        return Outcome(await _text(path, encoding, stat, lines, env))


_LINK_ADVICE = ", but a link that leads nowhere or out of the allowed folders"


def check_range(tool: str, value: list[int] | None) -> tuple[int, int] | None:
    """``[start, end]`` with lines counted from 1; ``-1`` as the end is the end of the file.

    Raises:
        InvalidToolInputError: it is no such range.
    """
    if value is None:
        return None
    start, end = value
    if start >= 1 and (end >= start or end == -1):
        return start, end
    reason = "lines are counted from 1" if start < 1 else "the end comes before the start"
    raise InvalidToolInputError(
        tool,
        f"view_range {value} cannot be used: {reason}. Send [first_line, last_line], such as [1, 40], or "
        f"[{max(start, 1)}, -1] to read to the end",
        field="view_range",
    )


async def _text(
    path: str, encoding: Encoding, stat: Stat, lines: tuple[int, int] | None, env: ToolEnv
) -> str:
    first, last = lines or (1, -1)
    window = Window(first, last, max(env.output_limit - 400, 200))
    decoder = codecs.getincrementaldecoder(encoding.codec)("replace")
    position = len(encoding.bom)
    while position < min(stat.size, SCAN_LIMIT):
        data = await env.executor.read(path, env.context, offset=position, limit=CHUNK)
        if not data:
            break
        position += len(data)
        window.feed(decoder.decode(data, final=position >= stat.size))
    window.finish()
    complete, count = position >= stat.size, window.count
    if not count:
        return f"({shown(path, env.context)} is empty)"
    if first > count:
        raise InvalidToolInputError(
            "view",
            f"view_range starts at line {first}, but {path} has {count} line{'s'[: count > 1]}",
            field="view_range",
        )
    notes = [encoding.note] if encoding.note else []
    if any("\ufffd" in line for line in window.lines):
        notes.append("bytes that are no UTF-8 are shown as \ufffd")
    if window.full:
        at = first + len(window.lines)
        notes.append(
            f"lines {first} to {at - 1} of {count:,}{'' if complete else ' or more'} shown; "
            f"use view_range [{at}, {at + max(len(window.lines), 1) - 1}] to go on, or grep for what you need"
        )
    elif not complete:
        notes.append(f"only the first {size_text(position)} of {size_text(stat.size)} were looked through")
    elif lines and (first > 1 or first + len(window.lines) - 1 < count):
        notes.append(f"the file has {count:,} lines")
    trailer = f"\n[{'; '.join(notes)}]" if notes else ""
    return numbered(window.lines, first) + trailer


class Window:
    """Picks lines ``first`` to ``last`` out of text that arrives in pieces; all others are only counted.

    Args:
        first: from 1.
        last: -1 for the end of the text.
        room: characters to keep at most, line numbers included.
    """

    def __init__(self, first: int, last: int, room: int) -> None:
        self.lines: list[str] = []
        self.count = 0
        self.full = False
        self._first, self._last, self._room = first, last, room
        self._rest = ""
        self._begun = False

    def feed(self, text: str) -> None:
        """Take the next piece."""
        if not text:
            return
        ends = text.count("\n")
        past = self.full or (self._last != -1 and self.count >= self._last)
        if past or self.count + ends + 1 < self._first:
            self.count += ends
            self._rest = text[text.rfind("\n") + 1 :][:CHUNK] if ends or past else self._rest
        else:
            *whole, rest = text.split("\n")
            for line in whole:
                self._add(self._rest + line)
                self._rest = ""
            # Of a line without end only what will be shown is kept.
            self._rest = (self._rest + rest)[:CHUNK]
        self._begun = not text.endswith("\n")

    def finish(self) -> None:
        """The text is over: what follows the last line end is a line too."""
        if self._begun:
            self._add(self._rest)

    def _add(self, line: str) -> None:
        self.count += 1
        if self.count < self._first or (self._last != -1 and self.count > self._last) or self.full:
            return
        line = clip_line(line.removesuffix("\r"))
        self._room -= len(line) + 8
        if self._room < 0:
            self.full = True
        else:
            self.lines.append(line)


async def _image(path: str, image: media.Image, stat: Stat, env: ToolEnv) -> Outcome:
    size = f"{image.width} x {image.height} pixels, {size_text(stat.size)}"
    facts = f"{shown(path, env.context)}: {image.media_type}, {size}"
    if stat.size > media.MAX_IMAGE_BYTES or max(image.width, image.height) > media.MAX_IMAGE_SIDE:
        raise ToolError(
            f"{facts}. Too large to be shown (at most 5 MB as base64 and {media.MAX_IMAGE_SIDE} pixels a "
            "side): make a smaller copy with bash_tool and view that"
        )
    data = await env.executor.read(path, env.context)
    if not image.width:
        # A JPEG's size may lie behind metadata longer than the sample.
        image = media.sniff_image(data) or image
        if max(image.width, image.height) > media.MAX_IMAGE_SIDE or not image.width:
            raise ToolError(
                f"{facts}. Its size cannot be read or is too large; make a PNG copy and view that"
            )
        facts = facts.replace("0 x 0", f"{image.width} x {image.height}")
    block = media.image_block(data, image.media_type)
    return Outcome([{"type": "text", "text": facts}, block], meta={"media_type": image.media_type})


async def _document(path: str, stat: Stat, env: ToolEnv) -> Outcome:
    facts = f"{shown(path, env.context)}: application/pdf, {size_text(stat.size)}"
    if stat.size > media.MAX_DOCUMENT_BYTES:
        raise ToolError(
            f"{facts}. Too large to be shown (at most {size_text(media.MAX_DOCUMENT_BYTES)}): take out the "
            "pages you need, or its text, with bash_tool"
        )
    data = await env.executor.read(path, env.context)
    block = media.document_block(data)
    return Outcome([{"type": "text", "text": facts}, block], meta={"media_type": "application/pdf"})


def _describe(path: str, head: bytes, stat: Stat, env: ToolEnv) -> str:
    """A file that is no text: what it is, how large, how it begins."""
    import puremagic

    try:
        matches = puremagic.magic_string(head, path)
        kind = next((match.name or match.mime_type for match in matches if match.confidence >= 0.4), "")
    except (puremagic.PureError, ValueError):
        kind = ""
    beginning = head[:64].hex(" ")
    text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in head[:64])
    return (
        f"{shown(path, env.context)}: binary file ({kind or 'type not known'}), {size_text(stat.size)}\n"
        f"first bytes: {beginning}\nas text: {text}\nRead it with a program, through bash_tool."
    )


async def _folder(path: str, env: ToolEnv) -> str:
    """Two levels of a folder. Each level is listed by itself, so that a hidden folder costs nothing."""
    rows: list[str] = []
    left_out, more = 0, False
    for entry in await env.executor.list(path, env.context, depth=1, limit=ENTRIES * 4):
        if _hidden(entry):
            left_out += 1
            continue
        rows.append(_row(entry, entry.path))
        if entry.kind == "dir" and len(rows) <= ENTRIES:
            inside, hidden, note = await _inside(posixpath.join(path, entry.path), env)
            rows += [_row(below, f"{entry.path}/{below.path}") for below in inside]
            rows += [f"{'':>9}  {entry.path}/ {note}"] if note else []
            left_out += hidden
        if len(rows) > ENTRIES:
            more = True
            break
    title = f"{shown(path, env.context)}/ (two levels, hidden files, node_modules and __pycache__ left out)"
    notes = []
    if more:
        notes.append(f"[more than {ENTRIES} entries; view a folder inside, or use find]")
    if left_out:
        notes.append(f"[{left_out} hidden]")
    return "\n".join([title, *(rows[:ENTRIES] or ["(empty)"]), *notes])


async def _inside(path: str, env: ToolEnv) -> tuple[list[Stat], int, str]:
    try:
        entries = await env.executor.list(path, env.context, depth=1, limit=ENTRIES)
    except ToolError:
        return [], 0, "(cannot be read)"
    visible = [entry for entry in entries if not _hidden(entry)]
    return visible, len(entries) - len(visible), ""


def _hidden(entry: Stat) -> bool:
    return entry.path.startswith(".") or entry.path in SKIPPED


def _row(entry: Stat, path: str) -> str:
    size = size_text(entry.size) if entry.kind == "file" else ""
    mark = {"dir": "/", "link": " (link that leads nowhere or outside)", "other": " (no regular file)"}
    return f"{size:>9}  {printable(path)}{mark.get(entry.kind, '')}"
