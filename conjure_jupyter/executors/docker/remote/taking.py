"""Takes over what the container has, without undoing what changed here.

When both sides changed a file, the one of this machine stays and the container's is put beside it, as
``NAME.container``. A folder or link of the container that meets something else here stays in the container.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

from ....errors import ExecutorError
from .agreement import Agreed, Agreement
from .entries import Entry, above, leads_inside
from .tree import Tree, looked, removed_on_failure, unfinished, write_new

#: Copies of one file that are put beside it.
MOST_BESIDE = 100
_CHUNK = 1 << 20
#: What is no fault of one file.
_OURS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.EIO))
#: No agreement: differs from all there is.
_NOTHING = Entry("file", -1)


class Taking:
    """Writes into a folder of this machine.

    Args:
        tree: the folder.
        agreement: what is agreed; kept up to date.

    Attributes:
        taken: paths that were written or removed.
        left_out: what was not taken over, by reason.
        conflicts: what changed on both sides, and where the container's is now; None when it stayed there.
    """

    def __init__(self, tree: Tree, agreement: Agreement) -> None:
        self.tree = tree
        self.agreement = agreement
        self.taken: list[str] = []
        self.left_out: Counter[str] = Counter()
        self.conflicts: list[tuple[str, str | None]] = []

    def drop(self, path: str) -> None:
        """Remove here what was removed there, unless it changed here.

        Raises:
            ExecutorError: this machine is at fault.
        """
        with self._tolerant(path):
            now = self.tree.look(path)
            if now is not None and self._is_as_agreed(path, now):
                with _still_in_use():
                    self.tree.remove(path)
                    self.taken.append(path)
        del self.agreement.paths[path]

    def plain(self, path: str, shown: Entry) -> None:
        """Take over a folder or a link.

        Raises:
            ExecutorError: this machine is at fault.
        """
        if shown.kind == "link" and not leads_inside(path, shown.target):
            self.left_out["links that lead outside"] += 1
            return
        with self._tolerant(path):
            if self._way(path, shown) != "clear":
                self.conflicts.append((path, None))
                return
            if shown.kind == "dir":
                self.tree.make_folder(path, shown.mode)
            elif self.tree.look(path) != shown:
                self.tree.make_link(path, shown.target)
            self.taken.append(path)
            self._agree(path, self.tree.look(path), shown)

    def file(self, path: str, shown: Entry, pieces: Iterable[bytes | memoryview], *, sure: bool) -> bool:
        """Take over a file; whether it was, be it beside the one that is here.

        Args:
            shown: its size, mode and time.
            pieces: its bytes.
            sure: whether ``shown`` tells it from any later state of it.

        Raises:
            ExecutorError: this machine is at fault, such as by a full disk.
        """
        with self._tolerant(path):
            way = self._way(path, shown)
            if way == "blocked":
                self.conflicts.append((path, None))
                return False
            with self.tree.holder(path, create=True) as (fd, name):
                new = unfinished()
                write_new(fd, new, pieces, shown)
                with removed_on_failure(fd, new):
                    here = self._named(fd, name, new, path, shown, sure=sure)
            self._agree(path, here, shown if sure else None)
            return True
        return False

    def _named(self, fd: int, name: str, new: str, path: str, shown: Entry, *, sure: bool) -> Entry:
        """Give a written file its name, or one beside what has it; what is agreed to be here."""
        now = looked(fd, name)
        as_agreed = now is None or self._is_as_agreed(path, now)
        same_mode = now is not None and now.mode | 0o600 == shown.mode | 0o600
        unsure = not sure and same_mode
        if (
            now is not None
            and now.kind == "file"
            and (unsure or not as_agreed)
            and _same_bytes(fd, name, new)
        ):
            os.unlink(new, dir_fd=fd)
            return now
        if as_agreed and (now is None or now.kind != "dir"):
            os.rename(new, name, src_dir_fd=fd, dst_dir_fd=fd)
            self.taken.append(path)
            return looked(fd, name) or _NOTHING
        beside = _put_beside(fd, name, new)
        folder = path[: len(path) - len(name)]
        self.conflicts.append((path, folder + beside if beside else None))
        agreed = self.agreement.paths.get(path)
        return agreed.here if agreed is not None else _NOTHING

    def _is_as_agreed(self, path: str, now: Entry) -> bool:
        agreed = self.agreement.paths.get(path)
        return agreed is not None and (now == agreed.here or now.kind == agreed.here.kind == "dir")

    def _agree(self, path: str, here: Entry | None, there: Entry | None) -> None:
        if here is not None:
            self.agreement.paths[path] = Agreed(here, there)

    def _way(self, path: str, shown: Entry) -> Literal["clear", "beside", "blocked"]:
        """Whether an entry may be put at a path; what is of another kind and as agreed is removed."""
        for up in above(path):
            holder = self.tree.look(up)
            if holder is not None and holder.kind != "dir":
                return "blocked"
        now = self.tree.look(path)
        if now is None or now.kind == shown.kind == "dir" or now == shown:
            return "clear"
        other: Literal["beside", "blocked"] = "beside" if shown.kind == "file" else "blocked"
        if not self._is_as_agreed(path, now):
            return other
        if now.kind == "dir":
            self._empty(path)
        if "dir" in (now.kind, shown.kind):
            with _still_in_use():
                self.tree.remove(path)
                return "clear"
            return other
        return "clear"

    def _empty(self, folder: str) -> None:
        """Remove of a folder what is as agreed."""
        inside = [path for path in self.agreement.paths if path.startswith(folder + "/")]
        for path in sorted(inside, key=lambda path: path.count("/"), reverse=True):
            now = self.tree.look(path)
            if now is not None and self._is_as_agreed(path, now):
                with _still_in_use():
                    self.tree.remove(path)
                    del self.agreement.paths[path]

    @contextlib.contextmanager
    def _tolerant(self, path: str) -> Iterator[None]:
        """What cannot be written is left out; what is wrong with this machine ends it all."""
        try:
            yield
        except OSError as error:
            if error.errno in _OURS:
                reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
                raise ExecutorError(
                    f"{self.tree.root}: {reason}; {path} and what else changed is still in the container"
                ) from error
            self.left_out[(error.strerror or "cannot be written").lower()] += 1


@contextlib.contextmanager
def _still_in_use() -> Iterator[None]:
    """A folder that holds something else stays."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
            raise


def _same_bytes(fd: int, one: str, other: str) -> bool:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with (
            os.fdopen(os.open(one, flags, dir_fd=fd), "rb", buffering=0) as first,
            os.fdopen(os.open(other, flags, dir_fd=fd), "rb", buffering=0) as second,
        ):
            if os.fstat(first.fileno()).st_size != os.fstat(second.fileno()).st_size:
                return False
            while piece := first.read(_CHUNK):
                if piece != second.read(_CHUNK):
                    return False
            return True
    except OSError:
        return False


def _put_beside(fd: int, name: str, new: str) -> str | None:
    """Give a written file a free name beside another; the name, None when none is free."""
    for number in range(1, MOST_BESIDE + 1):
        beside = f"{name}.container" if number == 1 else f"{name}.container-{number}"
        if _same_bytes(fd, beside, new):
            os.unlink(new, dir_fd=fd)
            return beside
        with contextlib.suppress(FileExistsError):
            os.link(new, beside, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
            os.unlink(new, dir_fd=fd)
            return beside
    os.unlink(new, dir_fd=fd)
    return None
