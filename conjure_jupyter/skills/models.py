"""What a loaded skill is, and what is told about one that has a problem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .resources import Resources, load_resources

Severity = Literal["error", "warning", "info"]


def one_line(text: str) -> str:
    """``text`` with whatever could break out of its line, or hide in it, made visible."""
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    )


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem with a skill; ``str()`` is one line that says where, what, and what to do.

    Attributes:
        path: the file or folder it is about.
        line: its line in that file, from 1, when there is one.
        severity: ``error``: the skill was not loaded; ``warning``: loaded, but its author should act;
            ``info``: good to know.
        code: a stable identifier of the kind of problem, such as ``name-mismatch``.
        message: what is wrong.
        advice: what to do about it.
    """

    path: Path
    line: int | None
    severity: Severity
    code: str
    message: str
    advice: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        advice = f" ({self.advice})" if self.advice else ""
        return one_line(f"{place}: {self.severity}: {self.message}{advice}")


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """The YAML at the top of a SKILL.md (source specification, section 4.2).

    Scalars are text as written: ``no``, ``1.10`` and dates are not turned into other types.

    Attributes:
        name: NFKC-normalised; empty when the file gives none.
        description: what the skill does and when to use it.
        license: name or file of the licence.
        compatibility: what the skill needs: a sentence, or a mapping.
        metadata: the author's own keys, nested as written.
        allowed_tools: tools it asks to use without a question; None when it does not say.
        extra: top-level keys that the public specification does not know.
    """

    name: str
    description: str
    license: str | None = None
    compatibility: dict[str, Any] | str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Skill:
    """A skill whose frontmatter was read; its body and resources are read when asked for.

    Attributes:
        name: safe as the name of a folder: no separator, no control or invisible character.
        description: what it does and when to use it.
        path: its folder, absolute, with symbolic links as they were found.
        license: name or file of the licence.
        compatibility: what it needs: a sentence, or a mapping.
        metadata: the author's own keys.
        allowed_tools: tools it asks to use without a question; None when it does not say.
        extra: other keys of its frontmatter.
        body: the instructions, once ``load_body`` has read them.
        body_loaded: whether it has.
        trusted: False when it was found in a project folder and nobody asked for it by its path; what it
            allows itself in ``allowed_tools`` must then not be honoured.
        diagnostics: what is odd about it.
        entry: the name of its file: ``SKILL.md``, or ``skill.md``.
        source: the ``.skill`` archive it came from, if it did.
    """

    name: str
    description: str
    path: Path
    license: str | None = None
    compatibility: dict[str, Any] | str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    body: str | None = field(default=None, repr=False)
    body_loaded: bool = False
    trusted: bool = True
    diagnostics: tuple[Diagnostic, ...] = ()
    entry: str = "SKILL.md"
    source: Path | None = None

    def __hash__(self) -> int:
        return hash((self.name, self.path))

    @property
    def skill_md(self) -> Path:
        """The file that holds its frontmatter and instructions."""
        return self.path / self.entry

    @property
    def resources(self) -> Resources:
        """Its other files, listed anew each time it is asked."""
        return load_resources(self.path)


class SkillList(list[Skill]):
    """Skills that were loaded together, and what was wrong with them and with those that were not.

    Attributes:
        diagnostics: all problems, those of the loaded skills included.
        paths: what was loaded, so that it can be loaded again.
        strict: whether the public validator's rules decided what is loaded.
    """

    def __init__(
        self,
        skills: Iterable[Skill] = (),
        diagnostics: Iterable[Diagnostic] = (),
        *,
        paths: Iterable[Path] = (),
        strict: bool = False,
    ) -> None:
        super().__init__(skills)
        self.diagnostics = list(diagnostics)
        self.paths = tuple(paths)
        self.strict = strict
