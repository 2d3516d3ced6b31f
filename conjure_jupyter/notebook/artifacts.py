"""``%artifacts``: what the user gave, what Claude made, and what has a name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ArtifactError, ArtifactNotFoundError, SettingsError
from ..wording import size_text
from .artifact_list import NOTHING, browse, named
from .interpolate import MISSING
from .options import choose, words
from .view import say, show
from .visible import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..fileref import FileRef
    from .desk import Desk

#: Each sub-command, what follows it, and what it does.
HELP = {
    "add": ("NAME SOURCE", "give a name to a variable, a file or a URL; Claude uses it as file://NAME"),
    "get": ("NAME [VERSION]", "the file as a value: .to_dataframe() .bytes() .text() .path .save(…)"),
    "save": ("NAME [PATH] [--overwrite]", "save a copy you can see, beside the notebook or at PATH"),
    "remove": ("NAME", "take a name away; the file it stands for stays"),
    "help": ("", "this list"),
}

_SCHEME = "file://"


class Artifacts:
    """Carries out lines of ``%artifacts``; each sub-command is a method of its name.

    Args:
        desk: what the kernel has open.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def run(self, line: str) -> Any:
        """Carry out a line: nothing for the list, or a sub-command and what follows it.

        Raises:
            ConjureError: the sub-command is unknown, or failed.
        """
        word, _, rest = line.strip().partition(" ")
        if not word:
            return self._browse()
        name = choose(word, list(HELP), "sub-command of %artifacts")
        command: Callable[[str], Any] = getattr(self, name)
        return command(rest.strip())

    def help(self, _: str) -> None:
        """The sub-commands."""
        rows = [(f"%artifacts {name} {more}".rstrip(), text) for name, (more, text) in HELP.items()]
        width = max(len(name) for name, _ in rows)
        rows.insert(0, ("%artifacts", "what was given, what was made, and what has a name"))
        say("\n".join(f"{name:{width}}  {text}" for name, text in rows))

    def add(self, rest: str) -> None:
        """A name for a variable, a file or a URL."""
        given = words(rest)
        if len(given) != 2:
            raise SettingsError(
                "%artifacts add",
                f"takes NAME SOURCE, two words, not {len(given)}; a source with blanks goes in quotes",
            )
        name, source = given[0].removeprefix(_SCHEME), given[1]
        desk = self._desk
        # The order in which the words of a cell are understood: a file that is there, then a variable.
        path = desk.beside(source)
        value = MISSING if "://" in source or path.is_file() else desk.value(source.removeprefix("@"))
        if value is MISSING and "://" not in source and not path.exists():
            raise ArtifactNotFoundError(source, reason="it is no variable, no file and no URL")
        artifacts = (desk.current() or desk.session(None)).session.artifacts
        if value is MISSING:
            kept = artifacts.register(name, source if "://" in source else path)
        elif isinstance(value, str):
            kept = artifacts.register(name, value=value)
        else:
            kept = artifacts.register(name, value)
        say(f"{_SCHEME}{one_line(kept.name)}: {named(kept, desk.style())}")

    def get(self, rest: str) -> FileRef:
        """A file as a value."""
        given = words(rest)
        if not 1 <= len(given) <= 2:
            raise SettingsError("%artifacts get", "takes NAME [VERSION]")
        return self._find(*given)

    def save(self, rest: str) -> Path:
        """A copy in a folder that front ends show."""
        given = words(rest)
        overwrite = "--overwrite" in given
        given = [word for word in given if word != "--overwrite"]
        if not 1 <= len(given) <= 2:
            raise SettingsError("%artifacts save", "takes NAME [PATH] [--overwrite]")
        ref = self._find(given[0])
        target = self._desk.project / Path(given[1] if len(given) == 2 else ref.name).expanduser()
        target = target / ref.name if target.is_dir() else target
        told = self._desk.style().told(str(target))
        if not overwrite and target.exists():
            raise ArtifactError(f"{told} exists already; --overwrite replaces it")
        try:
            saved = ref.save(target, overwrite=overwrite)
        except OSError as error:
            if isinstance(error, ArtifactError):
                raise
            raise ArtifactError(f"{told} cannot be written: {error.strerror or error}") from error
        say(f"Saved {told} ({size_text(ref.size)})")
        return saved

    def remove(self, rest: str) -> None:
        """Take a name away."""
        given = words(rest)
        if len(given) != 1:
            raise SettingsError("%artifacts remove", "takes the NAME to take away")
        name = given[0].removeprefix(_SCHEME)
        self._desk.existing().session.artifacts.unregister(name)
        say(f"{_SCHEME}{one_line(name)} is no longer offered")

    def _find(self, subject: str, version: str | None = None) -> FileRef:
        artifacts = self._desk.existing().session.artifacts
        found = artifacts.get(subject)
        if version is None:
            return found
        number = version.removeprefix("v")
        if not number.isdecimal():
            raise SettingsError("%artifacts get", f"{version!r} is no version; versions are v0, v1 …")
        versions = {ref.version: ref for ref in artifacts.versions(found.path)}
        if int(number) not in versions:
            known = ", ".join(f"v{known}" for known in versions)
            reason = f"there are: {known}" if known else "only files of uploads/ and outputs/ have versions"
            raise ArtifactNotFoundError(f"{found.path} v{number}", reason=reason)
        return versions[int(number)]

    def _browse(self) -> None:
        opened = self._desk.current()
        shown = browse(opened.session.artifacts, self._desk.style()) if opened is not None else None
        if shown is None:
            say(NOTHING)
        else:
            show(shown)
