"""The files of a session: its working directory, the copies of skills, what was given and what was made.

::

    <session>/work/            the tools' working directory
        skills/<name>/         copies, read-only, checked each turn
        uploads/               what the user gave
        outputs/               what Claude made for the user
"""

from __future__ import annotations

import datetime as dt
import mimetypes
import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..artifacts.layout import Layout
from ..errors import PathNotFoundError, SessionError
from ..paths import make_private_dir
from ..skills import Skill
from ..types import FileRef
from . import trees
from .trees import Copied, Signature

#: Bytes of a folder's name for a skill; file systems take 255.
_NAME_BYTES = 200

#: What no name in ``uploads/`` holds: Claude could not name the file.
_UNSPEAKABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\\]")


class Workspace:
    """The files of one session.

    Args:
        root: the session's ``work`` folder.
        cwd: the tools' working directory: ``root``, or the notebook's folder.
    """

    def __init__(self, root: Path, cwd: Path | None = None) -> None:
        self.layout = Layout(root, cwd or root)
        self._copies: dict[str, dict[str, Copied]] = {}
        self._folders: dict[str, str] = {}

    @property
    def root(self) -> Path:
        """The session's ``work`` folder."""
        return self.layout.root

    @property
    def cwd(self) -> Path:
        """The tools' working directory."""
        return self.layout.cwd

    @property
    def skills(self) -> Path:
        """Where the copies of skills lie."""
        return self.layout.skills

    @property
    def uploads(self) -> Path:
        """What the user gave."""
        return self.layout.uploads

    @property
    def outputs(self) -> Path:
        """What Claude made for the user."""
        return self.layout.outputs

    def make(self) -> list[str]:
        """Make the folders; what a command put in the place of one is removed.

        Returns:
            What Claude and the user should be told of that.

        Raises:
            ToolError: they cannot be made.
            OSError: what lies there cannot be removed.
        """
        folders = [self.root, self.skills, self.uploads]
        if self.cwd == self.root:
            folders.append(self.outputs)
        told = []
        for folder in folders:
            if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
                folder.unlink()
                told.append(f"{self.told(folder)}/ had been replaced and was made anew")
            make_private_dir(folder)
        return told

    def told(self, path: Path) -> str:
        """A path of this workspace as Claude is told it: relative to the working directory, with ``/``."""
        return self.layout.told(path)

    def skill_folder(self, name: str) -> Path:
        """Where the copy of a skill lies."""
        return self.skills / self._folder(name)

    def skill_location(self, skill: Skill) -> str:
        """Where Claude finds a skill's SKILL.md."""
        return self.told(self.skills / self._folder(skill.name) / skill.skill_md.name)

    def _folder(self, name: str) -> str:
        """A folder name for a skill, unlike that of any other; a skill's name may be anything."""
        if name not in self._folders:
            safe = (
                re.sub(r"[^\w-]+", "-", name)
                .encode("utf-8", "replace")[:_NAME_BYTES]
                .decode("utf-8", "ignore")
            )
            safe = safe.strip("-") or "skill"
            taken = {folder.casefold() for folder in self._folders.values()}
            self._folders[name] = next(
                candidate
                for candidate in (safe, *(f"{safe}-{n}" for n in range(2, len(taken) + 3)))
                if candidate.casefold() not in taken
            )
        return self._folders[name]

    def forget(self, name: str) -> None:
        """Copy a skill anew at the next ``copy_skills``: its source may have changed."""
        self._copies.pop(name, None)

    def copy_skills(self, skills: Iterable[Skill]) -> list[str]:
        """Put copies of skills in place, and put right those that were changed.

        Returns:
            What Claude and the user should be told: copies that had been changed and were restored, and
            what could not be copied.
        """
        told: list[str] = []
        avoid = self.root.parent.stat()
        for skill in skills:
            folder = self.skills / self._folder(skill.name)
            before = self._copies.pop(skill.name, None)
            if before is not None and trees.intact(folder, before):
                self._copies[skill.name] = before
                continue
            # Python leaves compiled files behind. They go, because they could hold anything, but are no news.
            if before is not None and not trees.intact(folder, before, without={"__pycache__"}):
                told.append(f"{self.told(folder)} had been changed and was restored")
            try:
                trees.clear(folder)
                copies, problems = trees.copy_tree(skill.path, folder, avoid=avoid)
            except OSError as error:
                problems = [f"it could not be copied: {error.strerror or error}"]
            else:
                self._copies[skill.name] = copies
            told += [f"{self.told(folder)}: {problem}" for problem in problems[:5]]
        return told

    def add_uploads(self, files: Sequence[Path]) -> list[FileRef]:
        """Copy the user's files to ``uploads/``; a name that is taken by other bytes gets a number.

        Raises:
            PathNotFoundError: a file does not exist.
            SessionError: it cannot be copied.
        """
        return [self._upload(file) for file in files]

    def _upload(self, file: Path) -> FileRef:
        try:
            missing = None if file.is_file() else "not a file" if file.exists() else "no such file"
            if missing is None:
                with file.open("rb") as stream:
                    return self._keep(stream.fileno(), file)
        except OSError as error:
            raise SessionError(f"{file} cannot be copied to the session: {error.strerror}") from error
        raise PathNotFoundError(str(file), missing)

    def _keep(self, source: int, file: Path) -> FileRef:
        digest: str | None = None
        name = Path(_UNSPEAKABLE.sub("_", file.name))
        for number in range(1, 1000):
            target = self.uploads / (name.name if number == 1 else f"{name.stem}-{number}{name.suffix}")
            try:
                digest = trees.write_new(target, source, 0o600)
            except FileExistsError:
                digest = digest or trees.digest(file)
                if target.is_symlink() or not target.is_file() or trees.digest(target) != digest:
                    continue
            return self.file_ref(target, digest)
        raise SessionError(f"{file}: too many files of that name in {self.uploads}")

    def snapshot(self) -> dict[str, Signature]:
        """What ``outputs/`` holds now, to be compared with later."""
        return {relative: trees.signature(status) for relative, status in trees.walk(self.outputs)}

    def changed_since(self, before: dict[str, Signature]) -> list[FileRef]:
        """Files under ``outputs/`` that are new or changed since ``before``, as far as they can be read."""
        changed = []
        for relative, status in trees.walk(self.outputs):
            if stat.S_ISREG(status.st_mode) and before.get(relative) != trees.signature(status):
                try:
                    changed.append(self.file_ref(self.outputs / relative))
                except OSError:
                    continue
        return changed

    def file_ref(self, path: Path, digest: str | None = None) -> FileRef:
        """What is to be known of a file."""
        status = path.stat()
        return FileRef(
            # A name may hold bytes that are no text; ``local_path`` has it as it is.
            path=os.fsencode(self.told(path)).decode("utf-8", "replace"),
            size=status.st_size,
            content_type=mimetypes.guess_type(path.name)[0] or "application/octet-stream",
            sha256=digest or trees.digest(path),
            created=dt.datetime.fromtimestamp(status.st_mtime, dt.UTC),
            local_path=path,
        )
