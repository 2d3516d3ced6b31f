"""YAML for untrusted frontmatter: every scalar is text, and nothing in it can hurt.

The parser's events are folded into values on an explicit stack, so no depth of nesting can exhaust the
interpreter's own (the C composer crashes at 100,000 levels). Aliases, anchors, merge keys and tags are
refused at their first event, which is before anything could be expanded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from .fence import MAX_BYTES

#: Most levels of mappings and lists within each other.
MAX_DEPTH = 16

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YAMLProblemError(Exception):
    """A block cannot be used.

    Attributes:
        reason: what is wrong.
        line: its line in the block, from 0, when known.
        unsafe: it was refused for what it could do, so that no repair may be tried.
    """

    def __init__(self, reason: str, line: int | None = None, *, unsafe: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.unsafe = unsafe


@dataclass(slots=True)
class Document:
    """The mapping of a block.

    Attributes:
        values: top-level keys; values are text, lists and dicts.
        duplicates: keys given twice in one mapping, with their lines from 0; the last one counts.
    """

    values: dict[str, Any]
    duplicates: list[tuple[str, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    """A mapping or list that has not ended yet; ``column`` is where the first mapping within it began."""

    container: dict[str, Any] | list[Any]
    key: str | None = None
    column: int | None = None


def load_mapping(block: str, *, public: bool = False) -> Document:
    """Parse a block whose top level is a mapping (an empty block is an empty one).

    Args:
        block: the text between the fences, newlines plain.
        public: keep to the subset of YAML that the public validator takes: no flow style (``[a]``,
            ``{a: b}``), no key twice, mappings beside each other indented alike.

    Raises:
        YAMLProblemError: it is too large, unsafe, no YAML, or no mapping.
    """
    if len(block) > MAX_BYTES or len(block.encode("utf-8", "replace")) > MAX_BYTES:
        raise YAMLProblemError(f"it is larger than {MAX_BYTES // 1024} KiB", 0, unsafe=True)
    try:
        return _Builder(public=public).build(_events(block, public=public))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YAMLProblemError(error.problem or "it is not YAML", mark.line if mark else None) from error
    except yaml.reader.ReaderError as error:
        line = block.count("\n", 0, error.position)
        raise YAMLProblemError(f"a character is not allowed: {error.reason}", line) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise YAMLProblemError("it is not YAML") from error


def _events(block: str, *, public: bool) -> Iterator[Any]:
    """The parser's events; the public validator's parser is a relative of the pure Python one."""
    return iter(yaml.parse(block, Loader=yaml.SafeLoader if public else _LOADER))


class _Builder:
    """Folds events into values; one for each block."""

    def __init__(self, *, public: bool) -> None:
        self.public = public
        self.stack: list[_Open] = []
        self.root: Any = None
        self.documents = 0
        self.duplicates: list[tuple[str, int]] = []

    def build(self, events: Iterator[Any]) -> Document:
        for event in events:
            self._take(event)
        if self.root is None or self.root == "":
            self.root = {}
        if not isinstance(self.root, dict):
            raise YAMLProblemError("it is not a mapping of keys to values", 0)
        return Document(self.root, self.duplicates)

    def _take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._refuse_markup(event)
            self._scalar(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._refuse_markup(event)
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self.stack.pop()
        elif isinstance(event, yaml.AliasEvent):
            raise _unsafe(f"alias *{event.anchor}", event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise YAMLProblemError("it holds more than one document", _line(event))

    def _refuse_markup(self, event: Any) -> None:
        if event.anchor is not None:
            raise _unsafe(f"anchor &{event.anchor}", event)
        if event.tag is not None:
            raise _unsafe(f"tag {event.tag}", event)

    def _scalar(self, event: Any) -> None:
        top = self.stack[-1] if self.stack else None
        if top is None or isinstance(top.container, list) or top.key is not None:
            self._put(event.value)
            return
        if event.value == "<<" and not event.style:
            raise _unsafe("merge key <<", event)
        if event.value in top.container:
            if self.public:
                raise YAMLProblemError(f"key {event.value!r} is given twice", _line(event))
            self.duplicates.append((event.value, _line(event)))
        top.key = event.value

    def _open(self, event: Any) -> None:
        line = _line(event)
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.container, dict) and top.key is None:
            raise YAMLProblemError("a key is not text", line)
        if len(self.stack) >= MAX_DEPTH:
            raise YAMLProblemError(f"it is nested more than {MAX_DEPTH} levels deep", line, unsafe=True)
        mapping = isinstance(event, yaml.MappingStartEvent)
        if self.public:
            self._refuse_style(event, top if mapping else None)
        container: dict[str, Any] | list[Any] = {} if mapping else []
        self._put(container)
        self.stack.append(_Open(container))

    @staticmethod
    def _refuse_style(event: Any, parent: _Open | None) -> None:
        line, column = _line(event), event.start_mark.column
        if event.flow_style:
            raise YAMLProblemError("flow style ([…] or {…}) is not allowed; quote it if it is text", line)
        if parent is not None and isinstance(parent.container, dict):
            if parent.column not in {None, column}:
                raise YAMLProblemError("mappings beside each other are not indented alike", line)
            parent.column = column

    def _put(self, value: Any) -> None:
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        if isinstance(top.container, list):
            top.container.append(value)
        elif top.key is not None:
            top.container[top.key] = value
            top.key = None


def _line(event: Any) -> int:
    return int(event.start_mark.line)


def _unsafe(what: str, event: Any) -> YAMLProblemError:
    return YAMLProblemError(f"YAML {what} is not allowed here", _line(event), unsafe=True)
