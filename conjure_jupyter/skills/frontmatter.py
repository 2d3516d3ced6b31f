"""From the bytes of a SKILL.md to its Frontmatter: lenient with authors, strict with attackers.

The client guide of the public specification asks to warn and load: a skill is given up only when its YAML
cannot be used or it has no description.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

from ..errors import InvalidFrontmatterError
from .fence import MAX_BYTES, FenceError, Split, decode, split
from .models import Diagnostic, Frontmatter, Severity
from .naming import MAX_COMPATIBILITY, MAX_DESCRIPTION, MAX_NAME, name_problems, normalise
from .simple_yaml import load_simple

_KNOWN = ("name", "description", "license", "compatibility", "metadata", "allowed-tools", "allowed_tools")
_PLAIN_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
#: Tools apart by blanks or commas, except within brackets: ``Bash(git add *) Read``.
_TOOL = re.compile(r"[^\s,()]+(?:\([^()]*\))?|\([^()]*\)")


def parse_frontmatter(text: str) -> tuple[Frontmatter, str]:
    """The frontmatter of a SKILL.md's text, and the body after it.

    Args:
        text: the whole file. Line ends may be of any kind; the body gets plain newlines and no blanks
            around it.

    Raises:
        InvalidFrontmatterError: there is none, its YAML cannot be used, or it has no description.
    """
    data = text.encode("utf-8", "replace")
    try:
        cut = split(data)
    except FenceError as error:
        raise InvalidFrontmatterError(None, f"{error}; {error.advice}", line=1) from error
    assert cut is not None  # noqa: S101  split() gives None for the beginning of a file only
    reader = FrontmatterReader(Path("SKILL.md"))
    frontmatter = reader.read(cut)
    if frontmatter is None:
        raise InvalidFrontmatterError(None, reader.fatal.message, line=reader.fatal.line)
    return frontmatter, body_text(data, cut)


def body_text(data: bytes, cut: Split) -> str:
    """The instructions after the frontmatter; bytes that are no UTF-8 are replaced."""
    return decode(data[cut.body :])[0].strip()


class FrontmatterReader:
    """Reads one block and collects what is odd about it.

    Attributes:
        diagnostics: problems so far, in the order found.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = path
        self.diagnostics: list[Diagnostic] = []
        self._block = ""
        self._line = 1

    @property
    def fatal(self) -> Diagnostic:
        """The error because of which ``read`` gave None."""
        return next(problem for problem in self.diagnostics if problem.severity == "error")

    def read(self, cut: Split) -> Frontmatter | None:
        """The Frontmatter of a block, or None when it cannot be used."""
        self._block, bad = decode(cut.block)
        self._line = cut.line
        if bad is not None:
            self.tell(
                "warning", "bad-encoding", "bytes that are not UTF-8 were replaced", "save it as UTF-8", bad
            )
        values = load_simple(self._block) if len(cut.block) <= MAX_BYTES else None
        if values is None:
            values = self._parse()
        return None if values is None else self._interpret(values)

    def tell(
        self, severity: Severity, code: str, message: str, advice: str = "", line: int | str | None = None
    ) -> None:
        """Note a problem; ``line`` is a line of the block, from 0, or the key at fault."""
        if isinstance(line, str):
            match = re.search(rf"^[\"']?{re.escape(line)}[\"']?[ \t]*:", self._block, re.MULTILINE)
            line = self._block.count("\n", 0, match.start()) if match else None
        number = None if line is None else line + self._line
        self.diagnostics.append(Diagnostic(Path(self.path), number, severity, code, message, advice))

    def _parse(self) -> dict[str, Any] | None:
        from .safe_yaml import YAMLProblemError, load_mapping

        try:
            document = load_mapping(self._block)
        except YAMLProblemError as error:
            if error.unsafe:
                self.tell("error", "unsafe-yaml", error.reason, "write plain 'key: text' lines", error.line)
                return None
            return self._repair(error.reason, error.line)
        for key, line in document.duplicates:
            self.tell(
                "warning", "duplicate-key", f"key {key!r} is given twice; the last one counts", "", line
            )
        return document.values

    def _repair(self, reason: str, line: int | None) -> dict[str, Any] | None:
        """Another try with quotes put in, after YAML failed for ``reason``."""
        from .repair import quote_unquoted
        from .safe_yaml import YAMLProblemError, load_mapping

        repaired = quote_unquoted(self._block)
        if repaired is not None:
            with contextlib.suppress(YAMLProblemError):
                values = load_mapping(repaired).values
                self.tell("warning", "unquoted-text", f"{reason}; read as text", "put quotes around it", line)
                return values
        self.tell("error", "invalid-yaml", reason, "quote text that holds ': '", line)
        return None

    def _interpret(self, values: dict[str, Any]) -> Frontmatter | None:
        description = values.get("description", "")
        if not isinstance(description, str) or not description.strip():
            problem = (
                "description is missing"
                if "description" not in values
                else "description is not text or is empty"
            )
            self.tell(
                "error", "missing-description", problem, "say what the skill does and when to use it", 0
            )
            return None
        description = description.strip()
        if len(description) > MAX_DESCRIPTION:
            self.tell(
                "warning",
                "description-too-long",
                f"description is longer than {MAX_DESCRIPTION} characters ({len(description)})",
                "move the rest to the body",
                "description",
            )
        return Frontmatter(
            self._name(values),
            description,
            self._license(values),
            self._compatibility(values),
            self._metadata(values),
            self._allowed_tools(values),
            self._extra(values) if len(values) > 2 else {},
        )

    def _name(self, values: dict[str, Any]) -> str:
        raw = values.get("name")
        if not isinstance(raw, str) or not raw.strip():
            self.tell("warning", "missing-name", "name is missing", "the folder's name is used; add it", 0)
            return ""
        if len(raw) <= MAX_NAME and _PLAIN_NAME.fullmatch(raw):
            return raw
        name = normalise(raw)
        for problem in name_problems(name):
            self.tell(
                "warning", "bad-name", problem, "use lowercase letters, digits and single hyphens", "name"
            )
        return name

    def _license(self, values: dict[str, Any]) -> str | None:
        value = values.get("license")
        if value is None or isinstance(value, str):
            return value or None
        self.tell("warning", "bad-license", "license is not text", "name the licence or its file", "license")
        return None

    def _compatibility(self, values: dict[str, Any]) -> dict[str, Any] | str | None:
        value = values.get("compatibility")
        if isinstance(value, str) and len(value) > MAX_COMPATIBILITY:
            self.tell(
                "warning",
                "compatibility-too-long",
                f"compatibility is longer than {MAX_COMPATIBILITY} characters ({len(value)})",
                "move the rest to the body",
                "compatibility",
            )
        if isinstance(value, list):
            self.tell(
                "warning", "bad-compatibility", "compatibility is a list", "write a sentence", "compatibility"
            )
            return ", ".join(item for item in value if isinstance(item, str))
        return value or None

    def _metadata(self, values: dict[str, Any]) -> dict[str, Any]:
        value = values.get("metadata")
        if isinstance(value, dict):
            return value
        if value:
            self.tell(
                "warning", "bad-metadata", "metadata is not a mapping", "write 'key: text' lines", "metadata"
            )
        return {}

    def _allowed_tools(self, values: dict[str, Any]) -> tuple[str, ...] | None:
        given = [key for key in ("allowed-tools", "allowed_tools") if values.get(key, "") != ""]
        if not given:
            return None
        if len(given) > 1:
            self.tell(
                "warning",
                "duplicate-key",
                "allowed-tools is given in both spellings; allowed-tools counts",
                "",
                given[1],
            )
        value = values[given[0]]
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            self.tell(
                "warning",
                "bad-allowed-tools",
                "allowed-tools is neither text nor a list of texts; none is allowed",
                "write the tools' names with blanks between them",
                given[0],
            )
            return ()
        return tuple(tool for text in texts for tool in _TOOL.findall(text))

    def _extra(self, values: dict[str, Any]) -> dict[str, Any]:
        extra = {key: value for key, value in values.items() if key not in _KNOWN}
        if extra:
            names = ", ".join(extra)
            self.tell(
                "warning",
                "unknown-key",
                f"not in the specification: {names}",
                "put such keys under metadata",
                next(iter(extra)),
            )
        return extra
