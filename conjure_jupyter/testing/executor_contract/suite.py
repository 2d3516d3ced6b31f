"""How the tests of the suite are run."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from ...engine import engine
from ...executors import ExecutionContext, Executor
from .place import Place

SUITE = TypeVar("SUITE", bound="Suite")
SKILL = "---\nname: sums\ndescription: Adds numbers.\n---\nUse scripts/add.sh.\n"


class Suite:
    """What a subclass says of its executor, and how it is started.

    One executor is started for all tests of a class, at the first, and closed by ``teardown_class``, which
    pytest calls. Everything runs on the package's own event loop.
    """

    #: Whether commands find ``python`` and ``python3``.
    has_python = True

    #: Whether the working directory is the very folder of this machine that the executor started with.
    shares_files = True

    #: The executor of this class once it runs, what ``start`` returned, and the folder of its files.
    running: ClassVar[tuple[Executor, ExecutionContext, Path] | None] = None

    def make_executor(self) -> Executor:
        """An executor before ``start``."""
        raise NotImplementedError

    def prepare(self, folder: Path) -> None:
        """Get the files ready that an executor starts with; all below ``folder``.

        Where tools run as another user, this is the place to give that user ``folder / "work"`` and
        ``folder / "writable"``.
        """

    @classmethod
    def teardown_class(cls) -> None:
        """Close the executor that the tests shared."""
        if cls.running is not None:
            executor, _, folder = cls.running
            cls.running = None
            engine().run(executor.close())
            shutil.rmtree(folder, ignore_errors=True)

    def run_in_place(self, steps: Callable[[Place], Awaitable[None]]) -> None:
        """Run a test with the shared executor, in a new folder."""
        engine().run(self._run(steps))

    async def _run(self, steps: Callable[[Place], Awaitable[None]]) -> None:
        kind = type(self)
        if kind.running is None:
            folder, context = self.new_context()
            executor = self.make_executor()
            try:
                kind.running = executor, await executor.start(context), folder
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
        executor, context, _ = kind.running
        await steps(await Place.new(executor, context))

    def new_context(self, **changes: Any) -> tuple[Path, ExecutionContext]:
        """New folders on this machine, below the first of the answer, and a context that names them."""
        folder = Path(tempfile.mkdtemp(prefix="conjure-contract-")).resolve()
        folder.chmod(0o755)
        work, readable, writable, skills = (
            folder / name for name in ("work", "readable", "writable", "skills")
        )
        for made in (work, readable, writable, skills / "sums"):
            made.mkdir(parents=True)
        (readable / "note.txt").write_text("note")
        (skills / "sums" / "SKILL.md").write_text(SKILL)
        self.prepare(folder)
        context = ExecutionContext(
            working_directory=work,
            skills_root=skills,
            allowed_paths=(readable,),
            writable_paths=(writable,),
            environment={"GIVEN": "yes"},
        )
        return folder, context.with_(**changes)

    @contextlib.asynccontextmanager
    async def fresh(self, **changes: Any) -> AsyncIterator[Place]:
        """Another executor of the same kind, for tests that end it or start it in another way."""
        folder, context = self.new_context(**changes)
        executor = self.make_executor()
        try:
            yield await Place.new(executor, await executor.start(context))
        finally:
            await executor.close()
            shutil.rmtree(folder, ignore_errors=True)


def check(steps: Callable[[SUITE, Place], Coroutine[Any, Any, None]]) -> Callable[[SUITE], None]:
    """Make a test of the suite from steps that need a place."""

    def test(self: SUITE) -> None:
        self.run_in_place(lambda place: steps(self, place))

    return _named(test, steps)


def alone(steps: Callable[[SUITE], Coroutine[Any, Any, None]]) -> Callable[[SUITE], None]:
    """Make a test of the suite from steps that start executors of their own."""

    def test(self: SUITE) -> None:
        engine().run(steps(self))

    return _named(test, steps)


def _named(test: Callable[[SUITE], None], steps: Callable[..., object]) -> Callable[[SUITE], None]:
    # By hand: functools.wraps would show test libraries the argument ``place`` too.
    test.__name__, test.__qualname__ = steps.__name__, steps.__qualname__
    test.__doc__, test.__module__ = steps.__doc__, steps.__module__
    return test


@contextlib.contextmanager
def variables(**values: str) -> Iterator[None]:
    """Environment variables of this process, for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
