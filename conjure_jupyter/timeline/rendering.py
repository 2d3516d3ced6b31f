"""A history made readable within a number of characters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..types import ToolCall
from .artifact import Artifact
from .safe_json import safe_json, valid
from .transcript import Entry, Said, bounded, call_text, content_text

#: Most characters of a call's input, of a result and of a notice.
CALL_LIMIT = 2_000
RESULT_LIMIT = 2_000

#: How many artifacts a call's result names, and the line before them.
CAPTURED = 10
CAPTURED_HEAD = "Artifacts captured from this call:"

#: What is shown instead of a hidden artifact that has no replacement text.
HIDDEN = "[hidden]"

_LEAST = 1_000  # characters in all
_STATEMENT = 120  # for what says what was left out
_PIECE = 200  # an entry is not cut to less


def entries(said: Iterable[Said], hidden: Mapping[str, str], limit: int) -> list[Entry]:
    """Readable entries, oldest first, of ``limit`` characters together.

    Args:
        said: newest first; a summary, if any, is the last.
        hidden: replacement texts by logical path.
        limit: most characters; less than a thousand is taken as that.
    """
    rest = list(said)
    room = max(limit, _LEAST) - _STATEMENT
    first: list[Entry] = []
    if rest and rest[-1].role == "summary":
        summary = rest.pop()
        text = bounded(content_text(summary.value), room // 2)
        first = [Entry("summary", summary.covers, text)]
        room -= len(text)
    rest = _one_of_each(rest, hidden)
    kept: list[Entry] = []
    for at, each in enumerate(rest):
        text = _text(each, hidden)
        if len(text) <= room:
            kept.append(Entry(each.role, each.turn, text))
            room -= len(text)
            continue
        missing = rest[at:]
        if room >= _PIECE:
            kept.append(Entry(each.role, each.turn, bounded(text, room)))
            missing = missing[1:]
        if missing:
            kept.append(_left_out(missing))
        break
    return first + kept[::-1]


def _one_of_each(said: Sequence[Said], hidden: Mapping[str, str]) -> list[Said]:
    """Of the versions that one call made of a file the latest; a hidden file once, whoever changed it."""
    kept, seen = [], set()
    for each in said:
        if isinstance(each.value, Artifact):
            path = each.value.artifact_path
            key = path if path in hidden else (each.value.tool_call_id, path)
            if key in seen:
                continue
            seen.add(key)
        kept.append(each)
    return kept


def _text(said: Said, hidden: Mapping[str, str]) -> str:
    value = said.value
    if isinstance(value, Artifact):
        replacement = hidden.get(value.artifact_path)
        if replacement is None:
            return value.digest_text()
        return bounded(valid(replacement), RESULT_LIMIT) or HIDDEN
    if isinstance(value, ToolCall):
        return bounded(call_text(value), CALL_LIMIT)
    text = content_text(value)
    return bounded(text, RESULT_LIMIT) if said.role in ("result", "notice") else text


def _left_out(said: Sequence[Said]) -> Entry:
    turns = [each.turn for each in said]
    told = f"{len(said):,} earlier entries of turns {min(turns)} to {max(turns)} are left out here."
    return Entry("left_out", max(turns), told)


def artifact_lines(artifacts: Sequence[Artifact], hidden: Mapping[str, str], most: int, limit: int) -> str:
    """The digests of artifacts, one a line in the order given, and how many there is no room for."""
    ranked = sorted(artifacts, key=lambda artifact: (artifact.visibility == "internal", -artifact.seq))
    lines: dict[int, str] = {}
    for artifact in ranked[: max(most, 0)]:
        line = shown(artifact, hidden)
        limit -= len(line) + 1
        if limit < 0:
            break
        lines[artifact.seq] = line
    told = [lines[artifact.seq] for artifact in artifacts if artifact.seq in lines]
    if len(told) < len(artifacts):
        told.append(f"and {len(artifacts) - len(told):,} more")
    return "\n".join(told)


def captured_text(artifacts: Sequence[Artifact], hidden: Mapping[str, str]) -> str:
    """What a call's result says at its end of the artifacts that were captured from it."""
    lines = [shown(artifact, hidden) for artifact in artifacts[:CAPTURED]]
    if len(artifacts) > CAPTURED:
        lines.append(f"and {len(artifacts) - CAPTURED:,} more")
    return "\n".join([CAPTURED_HEAD, *lines])


def shown(artifact: Artifact, hidden: Mapping[str, str]) -> str:
    """The digest of an artifact, or what stands for it when it is hidden."""
    replacement = hidden.get(artifact.artifact_path)
    if replacement is None:
        return artifact.digest_text()
    return safe_json({"artifact_path": artifact.artifact_path, "replacement_text": replacement or HIDDEN})
