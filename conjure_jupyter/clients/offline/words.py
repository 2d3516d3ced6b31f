"""A documented command line as words: what is a shell's, what is a placeholder, what is optional."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

#: Characters of a file name on the file systems in use; a longer word is no placeholder.
LONGEST_NAME = 255

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<operator>&&|\|\||\d?>&\d|&?\d?>>?(?!=)|[;|&]|<(?=\s))
    | (?P<word>(?:
          <[A-Za-z](?:[^<>\n]*[^<>\s])?>      # <input file>
        | \$?\{\{?[^{}\n]*\}\}?               # {file} {{file}} ${FILE}
        | \$\([^()\n]*\) | `[^`\n]*`          # substitutions stay whole
        | "(?:[^"\\]|\\.)*" | '[^']*' | \\.
        | [^\s"'`<>;|&\\]
      )+)
    | (?P<other>\S)
    )""",
    re.VERBOSE,
)
_ELLIPSIS = ("...", "…")
#: ``--format json|text``: alternatives of a flag's value, not a pipe.
_FLAG_CHOICE = re.compile(r"(\s--?[\w-]+[= ])([\w.-]+)(?:\|[\w.-]+)+(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Token:
    """A word or an operator of a command line.

    Attributes:
        raw: as it is written.
        operator: whether it is the shell's: ``&&``, ``|``, ``>``.
        many: whether an ellipsis follows, so that it stands for one or more.
    """

    raw: str
    operator: bool = False
    many: bool = False


@dataclass(frozen=True, slots=True)
class Placeholder:
    """What a word stands for.

    Attributes:
        words: the lower-case words of its name, such as ``{"input", "file"}``.
        extension: the kind of file it asks for, without the dot; empty when it does not say.
        basename: a file name it suggests, or empty.
        example: it is an example's file name, not a mark that is plainly to be replaced.
    """

    words: frozenset[str]
    extension: str = ""
    basename: str = ""
    example: bool = False


def without_optional(line: str) -> str:
    """``line`` without its ``[optional]`` parts."""
    return _OPTIONAL_TAIL.sub(" ", _drop_groups(line, keep_arguments=False)).strip()


def with_optional_arguments(line: str) -> str:
    """``line`` with optional arguments taken as given and optional flags dropped."""
    return _OPTIONAL_TAIL.sub(" ", _drop_groups(line, keep_arguments=True)).strip()


_OPTIONAL_TAIL = re.compile(r"[ \t]{2,}")


def _drop_groups(line: str, *, keep_arguments: bool) -> str:
    out: list[str] = []
    at = 0
    while at < len(line):
        end = _group_end(line, at) if line[at] == "[" and (at == 0 or line[at - 1].isspace()) else None
        if end is None:
            out.append(line[at])
            at += 1
            continue
        inner = line[at + 1 : end].strip()
        if keep_arguments and not inner.startswith("-"):
            out.append(_drop_groups(inner, keep_arguments=True))
        at = end + 1
        if not keep_arguments:
            at += next((len(mark) for mark in _ELLIPSIS if line.startswith(mark, at)), 0)
    return "".join(out)


def _group_end(line: str, start: int) -> int | None:
    depth = 0
    for at in range(start, len(line)):
        depth += {"[": 1, "]": -1}.get(line[at], 0)
        if depth == 0:
            return at if at > start + 1 else None
    return None


def tokens(line: str) -> list[Token]:
    """The words and operators of a line; ellipses mark the word before them."""
    found: list[Token] = []
    for match in _TOKEN.finditer(_FLAG_CHOICE.sub(r"\1\2", line.strip())):
        raw = (match["operator"] or match["word"] or match["other"] or "").strip()
        if raw in _ELLIPSIS and found:
            found[-1] = Token(found[-1].raw, found[-1].operator, many=True)
            continue
        many = False
        for mark in _ELLIPSIS:
            if not match["operator"] and raw.endswith(mark):
                raw, many = raw.removesuffix(mark), True
        if raw:
            found.append(Token(raw, operator=match["operator"] is not None, many=many))
    return found


def commands(line: str) -> Iterator[list[Token]]:
    """Runs of words, and the operators between them, as lists of tokens."""
    held: list[Token] = []
    for token in tokens(line):
        if token.operator:
            if held:
                yield held
            yield [token]
            held = []
        else:
            held.append(token)
    if held:
        yield held


def unquoted(raw: str) -> str | None:
    """The text a word stands for, or None when a shell would put something else in its place."""
    if re.search(r"\$\(|`", raw):
        return None
    if len(raw) > 1 and raw[0] == raw[-1] and raw[0] in "\"'" and raw[0] not in raw[1:-1]:
        return raw[1:-1]
    if re.search(r"[\"'\\]", raw):
        try:
            parts = shlex.split(raw)
        except ValueError:
            return None
        return parts[0] if len(parts) == 1 else None
    return raw


_MARKED = re.compile(
    r"""
      <(?P<angle>[^<>]+)>(?P<angle_ext>\.\w+)?
    | \$?\{\{?\s*(?P<brace>[A-Za-z_][^{}]*?)\s*\}?\}(?P<brace_ext>\.\w+)?
    | \$(?P<variable>[A-Za-z_]\w*|\d|@)
    """,
    re.VERBOSE,
)
_CAPITALS = re.compile(r"[A-Z][A-Z0-9]*(?:[_-][A-Z0-9]+)*(\.[a-z0-9]+)?")
_EXAMPLE_FOLDER = re.compile(r"(?:\.{0,2}/)*(?:path|some|your|full)/.*")
_FILE_NAME = re.compile(r"[^=\s]*?[^./=\s][^/=\s]*\.([A-Za-z]\w{0,7})")


def placeholder(text: str) -> Placeholder | None:
    """What an unquoted word stands for; None when it stands for itself."""
    if len(text) > LONGEST_NAME:
        return None
    marked = _MARKED.fullmatch(text)
    if marked:
        name = marked["angle"] or marked["brace"] or marked["variable"]
        ext = marked["angle_ext"] or marked["brace_ext"] or ""
        return _described(name + ext)
    if _CAPITALS.fullmatch(text):
        return _described(text)
    if _EXAMPLE_FOLDER.fullmatch(text):
        return _described(text.rpartition("/")[2] or "folder")
    if _FILE_NAME.fullmatch(text) and not re.match(r"https?:", text):
        return _described(text.rpartition("/")[2], example=True)
    return None


def name_words(name: str) -> frozenset[str]:
    """The lower-case words of a name, whatever joins them."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return frozenset(part.rstrip("0123456789") or part for part in re.findall(r"[a-z0-9]+", spaced.lower()))


def choice(text: str) -> str | None:
    """The first of ``{a|b}``, ``<a|b>`` or ``a|b`` alternatives, or None when it is no choice."""
    inner = re.fullmatch(r"[{<(]([\w.-]+)(?:\|[\w.-]+)+[})>]", text)
    return inner[1] if inner else None


def _described(name: str, *, example: bool = False) -> Placeholder:
    file = _FILE_NAME.fullmatch(name.rpartition("/")[2])
    basename = name.rpartition("/")[2] if file and " " not in name else ""
    return Placeholder(name_words(name), file[1].lower() if file else "", basename, example)
