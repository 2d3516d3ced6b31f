"""Names that last: the grammar of logical paths, and what stands for them on disk.

=================================== =============================== ===================================
logical                             physical                        now, in the working directory
=================================== =============================== ===================================
fi:turn_0003.files/a/b.pdf          turn_0003/files/a/b.pdf         outputs/a/b.pdf
fi:turn_0003.user.attachments/s.csv turn_0003/attachments/s.csv     uploads/s.csv
fi:turn_0003.internal/tmp/x.txt     turn_0003/internal/tmp/x.txt    tmp/x.txt
ar:turn_0003.user.prompt            (text of the timeline)
ar:turn_0003.assistant.completion   (text of the timeline)
tc:turn_0003.toolu_1.call           (a call's name and input; ``.result`` is what it gave)
so:sources_pool[1,3:5]              (sources by number; a range holds both its ends)
su:turn_0003.conv.range.summary     (what stands for older turns)
=================================== =============================== ===================================

A text is one of these exactly or it is none: nothing is trimmed, joined or resolved, so what was checked is
what is used. Paths inside are relative, with ``/``, and hold no part that leads elsewhere.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ..errors import InvalidArtifactError

Kind: TypeAlias = Literal["fi", "ar", "tc", "so", "su"]

#: The working directory's folders of what Claude made and of what the user gave.
OUTPUTS: Final = "outputs"
UPLOADS: Final = "uploads"

#: The parts of ``fi:`` paths.
FILES: Final = "files"
ATTACHMENTS: Final = "user.attachments"
INTERNAL: Final = "internal"

#: Longest path and longest name in it, in bytes of UTF-8; the second is what file systems take.
PATH_LIMIT = 1024
NAME_LIMIT = 255

#: The widest range of sources that one path or citation names.
RANGE_LIMIT = 1000

#: A turn's number: four digits at least, and no leading zero beyond these.
TURN = r"turn_([0-9]{4}|[1-9][0-9]{4,8})"

_UNNAMEABLE = frozenset({"Cc", "Cs"})
_LEADING_ELSEWHERE = frozenset({"", ".", ".."})
_FOLDERS = {FILES: FILES, ATTACHMENTS: "attachments", INTERNAL: INTERNAL}
_PARTS = {folder: part for part, folder in _FOLDERS.items()}

_FILE = re.compile(rf"fi:{TURN}\.(files|user\.attachments|internal)/(.+)", re.DOTALL)
_TEXT = re.compile(rf"ar:{TURN}\.(user\.prompt|assistant\.completion)")
_CALL = re.compile(rf"tc:{TURN}\.([A-Za-z0-9_.:-]{{1,200}})\.(call|result)")
_SUMMARY = re.compile(rf"su:{TURN}\.(conv\.range\.summary)")
_SOURCES = re.compile(r"so:(sources_pool)\[([0-9:,]{1,400})\]")
_PHYSICAL = re.compile(rf"{TURN}/(files|attachments|internal)/(.+)", re.DOTALL)
_RANGE = re.compile(r"([1-9][0-9]{0,5})(?::([1-9][0-9]{0,5}))?")


@dataclass(frozen=True, slots=True)
class LogicalPath:
    """A logical path; ``str()`` gives its text. Made by ``parse`` and ``file_path``, which check it.

    Attributes:
        kind: ``fi`` (file), ``ar`` (what was said), ``tc`` (tool call), ``so`` (sources), ``su`` (summary).
        turn: the turn's number; None for sources.
        part: which part of the turn: ``files``, ``user.attachments``, ``internal``, ``user.prompt``,
            ``assistant.completion``, ``call``, ``result``, ``conv.range.summary`` or ``sources_pool``.
        rest: the file's path, the call's id, or the numbers of the sources; else empty.
    """

    kind: Kind
    turn: int | None
    part: str
    rest: str = ""

    def __str__(self) -> str:
        if self.turn is None:
            return f"{self.kind}:{self.part}[{self.rest}]"
        head = f"{self.kind}:{turn_id(self.turn)}."
        if self.kind == "fi":
            return f"{head}{self.part}/{self.rest}"
        return f"{head}{self.rest}.{self.part}" if self.kind == "tc" else head + self.part

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the sources it names, each once, in the order given; empty for other kinds."""
        return tuple(_numbers(self.rest) or ()) if self.kind == "so" else ()


def turn_id(turn: int) -> str:
    """``turn_0003``: how a turn is named in paths."""
    return f"turn_{turn:04d}"


def parse(text: str) -> LogicalPath:
    """The logical path that a text is.

    Raises:
        InvalidArtifactError: it is none.
    """
    if match := _FILE.fullmatch(text):
        return _file(text, int(match[1]), match[2], match[3])
    if match := _TEXT.fullmatch(text):
        return LogicalPath("ar", int(match[1]), match[2])
    if match := _CALL.fullmatch(text):
        return LogicalPath("tc", int(match[1]), match[3], match[2])
    if match := _SUMMARY.fullmatch(text):
        return LogicalPath("su", int(match[1]), match[2])
    if (match := _SOURCES.fullmatch(text)) and _numbers(match[2]) is not None:
        return LogicalPath("so", None, match[1], match[2])
    raise InvalidArtifactError(
        text,
        "no logical path; these are fi:turn_0003.files/…, fi:turn_0003.user.attachments/…, "
        "ar:turn_0003.user.prompt, ar:turn_0003.assistant.completion, tc:turn_0003.<call id>.result, "
        "so:sources_pool[1,2] and su:turn_0003.conv.range.summary",
    )


def parse_or_none(text: object) -> LogicalPath | None:
    """The logical path that a value of a block is; None when it is none."""
    try:
        return parse(text) if isinstance(text, str) else None
    except InvalidArtifactError:
        return None


def file_path(turn: int, part: str, relative: str) -> LogicalPath:
    """The logical path of a file.

    Args:
        turn: the turn's number.
        part: ``files``, ``user.attachments`` or ``internal``.
        relative: its path under ``outputs/``, ``uploads/`` or the working directory, in this order.

    Raises:
        InvalidArtifactError: there can be no such path.
    """
    text = f"fi:{turn_id(turn)}.{part}/{relative}"
    if part not in _FOLDERS or not 0 <= turn < 10**9:
        raise InvalidArtifactError(text, "no part or turn of that name")
    return _file(text, turn, part, relative)


def of_workspace(turn: int, path: str) -> LogicalPath:
    """The logical path of a file of the working directory, by the folder it is in; see ``in_workspace``.

    Raises:
        InvalidArtifactError: the path is not one inside the working directory, or has odd characters.
    """
    folder, _, below = path.partition("/")
    if below and folder == OUTPUTS:
        return file_path(turn, FILES, below)
    if below and folder == UPLOADS:
        return file_path(turn, ATTACHMENTS, below)
    return file_path(turn, INTERNAL, path)


def physical(logical: LogicalPath | str) -> str:
    """Where a version of a file is put on disk, relative to the working directory.

    Raises:
        InvalidArtifactError: it is no ``fi:`` path.
    """
    path = _must_be_file(logical)
    return f"{turn_id(path.turn or 0)}/{_FOLDERS[path.part]}/{path.rest}"


def from_physical(path: str) -> LogicalPath | None:
    """The logical path of ``turn_0003/files/x``; None when the text is no path of this form."""
    match = _PHYSICAL.fullmatch(path)
    if match is None:
        return None
    try:
        return _file(path, int(match[1]), _PARTS[match[2]], match[3])
    except InvalidArtifactError:
        return None


def in_workspace(logical: LogicalPath | str) -> str:
    """Where the file is, or was, while it is not an earlier version: relative to the working directory.

    Raises:
        InvalidArtifactError: it is no ``fi:`` path.
    """
    path = _must_be_file(logical)
    folder = {FILES: f"{OUTPUTS}/", ATTACHMENTS: f"{UPLOADS}/"}.get(path.part, "")
    return folder + path.rest


def fault(relative: str) -> str | None:
    """Why a text is no relative path of a file that this package gives a name to; None when it is one."""
    encoded = relative.encode("utf-8", "replace")
    if len(encoded) > PATH_LIMIT:
        return f"it is longer than {PATH_LIMIT} bytes"
    if not relative.isprintable() and any(unicodedata.category(char) in _UNNAMEABLE for char in relative):
        return "it has control characters or is not valid UTF-8"
    if "\\" in relative:
        return "it has a backslash; folders are parted by '/'"
    if not _LEADING_ELSEWHERE.isdisjoint(relative.split("/")):
        return "it is not a plain relative path (empty part, '.' or '..')"
    if len(encoded) > NAME_LIMIT and max(map(len, encoded.split(b"/"))) > NAME_LIMIT:
        return f"a name in it is longer than {NAME_LIMIT} bytes"
    return None


def spans(text: str) -> list[range] | None:
    """The ranges of source numbers in ``1,3:5``; None when it is no such list."""
    found = []
    for item in text.split(","):
        match = _RANGE.fullmatch(item)
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < first + RANGE_LIMIT:
            return None
        found.append(range(first, last + 1))
    return found


def _numbers(text: str) -> list[int] | None:
    found = spans(text)
    if found is None:
        return None
    return list(dict.fromkeys(number for span in found for number in span))


def _file(text: str, turn: int, part: str, relative: str) -> LogicalPath:
    why = fault(relative)
    if why is None and part == INTERNAL and relative.startswith(f"{OUTPUTS}/"):
        why = f"what is under {OUTPUTS}/ has the part '{FILES}'"  # one file, one name
    if why is not None:
        raise InvalidArtifactError(text, why)
    return LogicalPath("fi", turn, part, relative)


def _must_be_file(logical: LogicalPath | str) -> LogicalPath:
    path = parse(logical) if isinstance(logical, str) else logical
    if path.kind != "fi":
        raise InvalidArtifactError(str(path), "only fi: paths are files")
    return path
