"""An executor of somebody else's: installed as a package, found by its name, and held to the public suite."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conjure_jupyter.conversation import Session
from conjure_jupyter.errors import SettingsError
from conjure_jupyter.executors import ExecutionContext, Executor, create_executor
from conjure_jupyter.settings import Settings
from conjure_jupyter.testing import FakeClaude
from conjure_jupyter.testing.executor_contract import ExecutorContract
from tests.builders import bash

PACKAGE = Path(__file__).parent / "package"
MODULE = "conjure_copy_example"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the package, installed by pip, that this process imports from."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    shutil.copytree(PACKAGE, source)
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    target = folder / "packages"
    command = [sys.executable, "-m", "pip", "install", "--quiet", *offline, "--target", target, source]
    subprocess.run(command, check=True)
    sys.path.insert(0, str(target))
    yield target
    sys.path.remove(str(target))
    sys.modules.pop(MODULE, None)


def test_it_is_not_there_without_its_package() -> None:
    with pytest.raises(SettingsError, match="there is no 'copy'"):
        create_executor("copy")


class TestCopy(ExecutorContract):
    shares_files = False

    @pytest.fixture(autouse=True)
    def _installed(self, installed: Path) -> None:
        pass

    def make_executor(self) -> Executor:
        return create_executor("copy")


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_the_folder_stays_as_it_was_until_the_end(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "old").write_text("old")
    executor = create_executor("copy", folder=str(tmp_path))
    context = await executor.start(ExecutionContext(working_directory=tmp_path / "work"))
    try:
        result = await executor.run("cat old; echo new > old; echo made > made", context)
        assert result.output == b"old"
        assert (tmp_path / "work" / "old").read_text() == "old"
    finally:
        await executor.close()
    assert (tmp_path / "work" / "old").read_text() == "new\n"
    assert (tmp_path / "work" / "made").read_text() == "made\n"
    assert names(tmp_path) == ["work"]


def test_a_session_runs_its_tools_there(
    installed: Path, serve: Callable[..., FakeClaude], tmp_path: Path
) -> None:
    serve([bash("echo made > outputs/made.txt; pwd"), "Done."])
    with Session(Settings(on="copy", approve="auto"), project=tmp_path) as session:
        reply = session.chat("Go")
        said = reply.tool_calls[0].result.text
    assert str(session.workspace) not in said
    assert (session.workspace / "outputs" / "made.txt").read_text() == "made\n"


def test_it_is_named_among_those_there_are(installed: Path) -> None:
    with pytest.raises(SettingsError, match="copy"):
        create_executor("none")
    with pytest.raises(SettingsError, match="copy"):
        create_executor("copy", no_such_option=1)
