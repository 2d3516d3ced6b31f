"""A documented command line made ready to run: placeholders filled, paths right for the working directory."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...artifacts.uris import is_uri
from . import vocabulary, words
from .words import Placeholder, Token

_BUNDLED = ("scripts", "references", "assets", "templates")
_SAMPLES = ("assets/", "examples/", "samples/")


@dataclass(frozen=True, slots=True)
class Filled:
    """A command that can run, or why it cannot.

    Attributes:
        command: to be run in the working directory.
        used: the files it is given.
        missing: what it needs a file for and gets none.
        unknown: what it needs that is neither a file nor the prompt's text.
    """

    command: str
    used: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether nothing is left to fill in."""
        return not self.missing and not self.unknown


def fill(
    line: str,
    *,
    skill: str,
    files: Sequence[str],
    prompt: str = "",
    outputs: str = "outputs",
    kinds: Mapping[str, str] | None = None,
) -> Filled:
    """Make a documented command line ready to run.

    Optional parts are dropped, unless an optional argument is the only place for the user's files. A bundled
    sample gives way to the user's file of the same kind when there is no other place for it.

    Args:
        line: as SKILL.md has it: written for the skill's folder, or for the working directory.
        skill: the skill's folder, from the working directory or absolute.
        files: what the prompt is about, from the working directory or absolute, or URIs that tools resolve.
        prompt: the user's words, for a placeholder that asks for text.
        outputs: the folder for what is made, from the working directory.
        kinds: extensions, with their dot, of files whose names do not tell.
    """
    bare = words.without_optional(line)
    kinds = kinds or {}
    filled = _Filler(skill, files, prompt, outputs, kinds).fill(bare)
    if files and not filled.used and filled.ready:
        for attempt, samples in ((words.with_optional_arguments(line), False), (bare, True)):
            other = _Filler(skill, files, prompt, outputs, kinds, replace_samples=samples).fill(attempt)
            if other.used and other.ready:
                return other
    return filled


@dataclass
class _Filler:
    skill: str
    files: Sequence[str]
    prompt: str
    outputs: str
    kinds: Mapping[str, str]
    replace_samples: bool = False
    cwd: str = ""
    used: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    given: dict[str, list[str]] = field(default_factory=dict)

    def fill(self, line: str) -> Filled:
        out: list[str] = []
        target = False
        for part in words.commands(line):
            if part[0].operator:
                target = ">" in part[0].raw and "&" not in part[0].raw[1:]
                out.append(part[0].raw)
            elif target:
                out.append(self._redirected(part[0]))
                out += self._command(part[1:]) if len(part) > 1 else []
                target = False
            else:
                out += self._command(part)
        command = re.sub(r"\s+([;])", r"\1", " ".join(piece for piece in out if piece))
        command = re.sub(r"^(?:&&|;)\s*", "", command)
        return Filled(command, tuple(self.used), tuple(self.missing), tuple(self.unknown))

    def _redirected(self, token: Token) -> str:
        text = words.unquoted(token.raw)
        if text is None or text.startswith("/dev/"):
            return token.raw
        return self._shown(self._made(words.placeholder(text), text))

    def _command(self, tokens: list[Token]) -> list[str]:
        if tokens and tokens[0].raw == "cd" and len(tokens) > 1:
            return self._change_folder(tokens[1])
        out: list[str] = []
        flag = ""
        last = max((at for at, token in enumerate(tokens) if not token.raw.startswith("-")), default=-1)
        for at, token in enumerate(tokens):
            name, equals, value = token.raw.partition("=")
            if token.raw.startswith("-") and len(token.raw) > 1 and not re.fullmatch(r"-\d.*", token.raw):
                flag = ""
                if equals:
                    shown = self._word(Token(value, many=token.many), name, final=False)
                    if shown is not None:  # tools resolve a URI only where it is a whole word
                        out += [name, shown] if is_uri(shown) else [f"{name}={shown}"]
                else:
                    out.append(token.raw)
                    flag = token.raw
            elif equals and re.fullmatch(r"[A-Z_][A-Z0-9_]*", name) and not out:
                out.append(token.raw)
            else:
                shown = self._word(token, flag, final=at == last) if out or "/" in token.raw else token.raw
                if shown is None:
                    out.pop()  # the flag goes with a value that nothing here can give
                else:
                    out.append(shown)
                flag = ""
        return out

    def _change_folder(self, token: Token) -> list[str]:
        text = words.unquoted(token.raw) or ""
        known = self._inside_skill(text)
        name = posixpath.basename(posixpath.normpath(self.skill))
        if known is None and (words.placeholder(text) or name in text.split("/") or "skill" in text.lower()):
            rest = text.rstrip("/").rpartition(f"{name}/")[2] if f"{name}/" in text else ""
            known = posixpath.normpath(posixpath.join(self.skill, rest)) if rest != text else self.skill
        if known is None:
            return []  # an example's folder: commands run in the working directory
        self.cwd = known
        return ["cd", shlex.quote(known)]

    def _word(self, token: Token, flag: str, *, final: bool) -> str | None:
        """A word as the command should have it; None when a flag's value cannot be given."""
        text = words.unquoted(token.raw)
        if not text:
            return token.raw
        if chosen := words.choice(text):
            return chosen
        inside = self._inside_skill(text)
        if inside is not None and not self._gives_way(inside):
            return self._shown(inside)
        if re.search(r"(?:^|/)outputs(?:/|$)", text):
            return self._shown(self._made(None, re.sub(r"^.*?\boutputs/?", "", text)))
        hole = words.placeholder(text)
        if hole is None and re.search(r"(?:^|/)uploads/.", text):
            hole = Placeholder(frozenset({"file"}))
        if hole is None:
            return token.raw
        return self._filled(hole, token, text, flag, final=final)

    def _filled(self, hole: Placeholder, token: Token, text: str, flag: str, *, final: bool) -> str | None:
        kind = _kind(hole, flag)
        given_out = len(self.used) >= len(self.files) > 0 and text not in self.given
        if kind == "file" and final and hole.example and given_out:
            kind = "made"  # convert.py given.csv wanted.json
        match kind:
            case "made":
                return self._shown(self._made(hole, text))
            case "folder made":
                return self._shown(self.outputs)
            case "folder":
                file = next((file for file in self.files if not is_uri(file)), None)
                return self._shown(posixpath.dirname(file) if file else "uploads")
            case "text":
                return shlex.quote(self.prompt)
            case "file":
                return self._input(hole, text, several=token.many)
        if not flag:
            self.unknown.append(text)
        return None if flag else text

    def _gives_way(self, inside: str) -> bool:
        """Whether a bundled sample stands where the user's file of its kind should."""
        kind = inside.rpartition(".")[2].lower()
        sample = self.replace_samples and inside.removeprefix(f"{self.skill}/").startswith(_SAMPLES)
        return sample and any(self._is_kind(file, kind) for file in self.files)

    def _is_kind(self, file: str, extension: str) -> bool:
        return bool(extension) and (file + self.kinds.get(file, "")).lower().endswith(f".{extension}")

    def _input(self, hole: Placeholder, text: str, *, several: bool) -> str:
        if text not in self.given:
            left = [file for file in self.files if file not in self.used]
            fitting = [file for file in left if self._is_kind(file, hole.extension)]
            several = several or bool(hole.words & vocabulary.SEVERAL)
            chosen = (fitting or left) if several else (fitting or left)[:1]
            if not chosen:
                self.missing.append(text)
                return text
            self.used += chosen
            self.given[text] = chosen
        return " ".join(self._shown(file) for file in self.given[text])

    def _made(self, hole: Placeholder | None, text: str) -> str:
        """Where a file that the command makes should lie."""
        if hole is not None and not hole.example and not hole.basename:
            text = "output"
        name = posixpath.normpath("/" + (hole.basename if hole and hole.basename else text)).lstrip("/")
        name = re.sub(r"[^\w./-]+", "_", name).strip("_")
        return (
            posixpath.join(self.outputs, name.lower() if name.isupper() else name) if name else self.outputs
        )

    def _inside_skill(self, text: str) -> str | None:
        """Where a path of the skill's own lies, or None when it is not one."""
        parts = text.split("/")
        name = posixpath.basename(posixpath.normpath(self.skill))
        rest: list[str] | None = None
        if name in parts[:-1]:
            rest = parts[len(parts) - parts[::-1].index(name) :]
        else:
            at = next((at for at, part in enumerate(parts) if part in _BUNDLED), None)
            if at is not None:
                # A folder above scripts/ may be the skill's own (core/scripts/x.py) or a mark for its root.
                own = [part for part in parts[:at] if re.fullmatch(r"[a-z][\w.-]*", part)]
                whole = len(own) == len([part for part in parts[:at] if part != "."])
                rest = parts if whole else parts[at:]
            elif re.fullmatch(r"(?:\./)?[\w.-]+\.(?:py|sh|bash|js|mjs|ts|rb|pl|R)", text):
                if self.cwd.startswith(self.skill):
                    return posixpath.normpath(posixpath.join(self.cwd, text))
                rest = parts
        if rest is None or ".." in rest:
            return None
        return posixpath.normpath(
            posixpath.join(self.skill, *(part for part in rest if part not in ("", ".")))
        )

    def _shown(self, path: str) -> str:
        """A path from the working directory, as a word of a command that runs in ``cwd``."""
        if is_uri(path):
            return shlex.quote(path)
        if path.startswith("/") and self.cwd.startswith("/"):
            return shlex.quote(
                posixpath.relpath(path, self.cwd) if path.startswith(self.skill + "/") else path
            )
        if not self.cwd or path.startswith("/"):
            return shlex.quote(f"./{path}" if path.startswith("-") else path)
        if self.cwd.startswith("/"):
            return f'"$OLDPWD"/{shlex.quote(path)}'
        return shlex.quote(posixpath.relpath(path, self.cwd))


def _kind(hole: Placeholder, flag: str) -> str:
    """What a placeholder asks for: ``made``, ``folder made``, ``folder``, ``text``, ``file`` or ``value``."""
    flag_words = words.name_words(flag)
    values = vocabulary.OTHER - {"name"}  # a file name is a file
    own_value = bool(hole.words & values) and not hole.extension
    own_file = bool(hole.extension) or (not own_value and bool(hole.words & vocabulary.FILE))
    # The placeholder's own words come first: after a switch (--sort FILE) the flag says nothing of it.
    value = own_value or (bool(flag_words & values) and not own_file)
    file = own_file or (not value and bool(flag_words & vocabulary.FILE))
    both = hole.words | flag_words
    if not value and (both & vocabulary.OUT or flag == "-o"):
        return "folder made" if both & vocabulary.FOLDER and not hole.extension else "made"
    if not file and both & vocabulary.TEXT:
        return "text"
    if not value and hole.words & vocabulary.FOLDER:
        return "folder"
    return "file" if file or not (value or flag or hole.words & vocabulary.OTHER) else "value"
