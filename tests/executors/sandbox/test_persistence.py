"""Files that run code later: a command cannot make or change them, and we leave nothing beside them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conjure_jupyter.errors import PermissionDeniedError
from conjure_jupyter.executors import ExecutionContext, LocalExecutor
from conjure_jupyter.executors.sandbox import Kind
from conjure_jupyter.executors.sandbox.scratch import Scratch, sweep

from ..processes import until
from .jail import Jail

THERE = {
    ".git/config": "[core]\n",
    ".git/HEAD": "ref: refs/heads/main\n",
    ".git/hooks/pre-commit.sample": "# sample\n",
    ".vscode/settings.json": "{}\n",
    ".claude/settings.json": "{}\n",
    ".envrc": "export A=1\n",
    "CLAUDE.md": "# notes\n",
}
#: Commands by name, and what of the listed files they would change.
ATTEMPTS = {
    "appending": "echo evil >> .git/config; echo evil >> CLAUDE.md; echo evil >> .vscode/settings.json",
    "a new hook": "echo evil > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "through git": "git config core.fsmonitor evil; git config --file .git/config alias.st '!evil'",
    "removing": "rm -rf .git/hooks .git/config .vscode .claude CLAUDE.md .envrc",
    "replacing": "echo evil > n; mv -f n CLAUDE.md; echo evil > tasks.json; mv tasks.json .vscode/",
    "renaming the folder above": "mv .git old; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
    "renaming it": "mv .vscode old; mkdir .vscode; echo evil > .vscode/tasks.json",
    "a link": "ln -s .git/hooks h; echo evil > h/pre-push",
    "a hard link": "ln .git/config c; echo evil >> c",
    "a link in its place": "rm -rf .git; mkdir evil; echo evil > evil/config; ln -s evil .git",
    "missing ones": "for f in .bashrc .zshrc .mcp.json AGENTS.md .gitmodules; do echo evil > $f; done",
    "missing folders": "mkdir -p .idea .cursor .jupyter; echo evil | tee .idea/a .cursor/b .jupyter/c",
    "another place for settings": "echo ../evil > .git/commondir; echo evil > .git/config.worktree",
}


@pytest.fixture
async def jail(kind: Kind, tmp_path: Path) -> AsyncIterator[Jail]:
    """The tools work in the notebook's folder itself."""
    project = tmp_path / "project"
    for name, text in THERE.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    executor = LocalExecutor(sandbox=kind)
    context = ExecutionContext(working_directory=project, timeout=20)
    try:
        yield Jail(executor, await executor.start(context), Path("/"), project, project, tmp_path)
    finally:
        await executor.close()
        assert journals() == []


def journals() -> list[Path]:
    return list(Path(os.environ["XDG_CACHE_HOME"], "conjure", "sandbox").glob("*"))


def harmful(project: Path) -> list[tuple[str, str]]:
    """Files that a shell, git, an editor or an agent would read, where they are not as they were."""
    from conjure_jupyter.executors.sandbox.sensitive import GIT_PERSISTENT, PERSISTENT

    names = [*PERSISTENT, *(f".git/{name}" for name in GIT_PERSISTENT)]
    found: dict[str, str] = {}
    for name in names:
        path = project / name
        if name == ".git":
            continue
        files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
        found |= {str(each.relative_to(project)): each.read_text() for each in files}
    wanted = {name: text for name, text in THERE.items() if name != ".git/HEAD"}
    return sorted(set(found.items()) ^ set(wanted.items()))


class TestCommands:
    @pytest.mark.parametrize("name", ATTEMPTS)
    async def test_it_stays_as_it_was(self, jail: Jail, name: str) -> None:
        await jail.run(ATTEMPTS[name])
        assert harmful(jail.project) == []
        assert not (jail.project / ".git").is_symlink()
        assert (await jail.run("echo still fine")).text == "still fine\n"
        assert harmful(jail.project) == []

    async def test_commits_are_possible(self, jail: Jail) -> None:
        await jail.run("git init -q . 2>/dev/null")
        setup = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b"
        for name in ("objects", "refs/heads"):
            (jail.project / ".git" / name).mkdir(parents=True, exist_ok=True)
        result = await jail.run(
            f"{setup}; echo 1 > f; git add f && git commit -qm one && git log --oneline | wc -l"
        )
        assert (result.exit_code, result.text) == (0, "1\n"), result.text

    async def test_file_tools_agree(self, jail: Jail) -> None:
        for name in (".git/config", ".git/hooks/new", ".bashrc", "CLAUDE.md", "AGENTS.md", ".idea/x"):
            with pytest.raises(PermissionDeniedError):
                await jail.executor.write(name, b"evil", jail.context)
        assert harmful(jail.project) == []
        await jail.executor.write("sub/CLAUDE.md", b"fine", jail.context)

    async def test_a_user_may_change_them_meanwhile(self, jail: Jail) -> None:
        await jail.run("true")
        (jail.project / ".git" / "new").write_text("[core]\nuser = 1\n")
        (jail.project / ".git" / "new").rename(jail.project / ".git" / "config")
        assert "user = 1" in (await jail.run("cat .git/config; echo evil >> .git/config")).text
        assert (jail.project / ".git" / "config").read_text() == "[core]\nuser = 1\n"

    async def test_what_was_put_back_is_told(self, jail: Jail, kind: Kind) -> None:
        result = await jail.run("echo evil > AGENTS.md")
        assert "AGENTS.md may not be changed here" in result.notes[0]
        assert not (jail.project / "AGENTS.md").exists()
        assert (await jail.run("true")).notes == ()


OWNER = """
import asyncio, sys
from pathlib import Path
from conjure_jupyter.executors import ExecutionContext, LocalExecutor
async def main():
    executor = LocalExecutor(sandbox="bubblewrap")
    context = await executor.start(ExecutionContext(working_directory=Path(sys.argv[1])))
    print("started", flush=True)
    await executor.run("sleep 300", context, timeout=300)
asyncio.run(main())
"""


class TestLitter:
    async def test_none_after_closing(self, jail: Jail) -> None:
        await jail.run("true")
        await jail.executor.close()
        found = {str(path.relative_to(jail.project)) for path in jail.project.rglob("*") if path.is_file()}
        assert found == set(THERE)
        assert {path.name for path in jail.project.iterdir()} == {name.split("/")[0] for name in THERE}

    def test_none_at_the_next_start_after_kill_9(self, tmp_path: Path) -> None:
        from .conftest import need

        need("bubblewrap")
        folder = tmp_path / "project"
        folder.mkdir()
        owner = subprocess.Popen(
            [sys.executable, "-c", OWNER, str(folder)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path[1:]])},
            stdout=subprocess.PIPE,
        )
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"started\n"
        (journal,) = journals()
        scratch = Path(json.loads(journal.read_text())["scratch"])
        assert (folder / ".git").is_dir()
        sweep()  # its owner lives
        assert (folder / ".git").is_dir()
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        owner.stdout.close()
        (folder / ".idea" / "mine.xml").write_text("the user's own")
        sweep()
        assert [path.name for path in folder.iterdir()] == [".idea"]
        assert (folder / ".idea" / "mine.xml").read_text() == "the user's own"
        assert not scratch.exists()
        assert not journal.exists()

    def test_two_at_once(self, tmp_path: Path) -> None:
        one, two = Scratch(), Scratch()
        name = tmp_path / ".git"
        assert one.take([name]) == (name,) == two.take([name])
        one.release([name])
        one.close()
        assert name.is_dir()
        two.close()
        assert not name.exists()

    def test_what_was_there_is_not_taken(self, tmp_path: Path) -> None:
        scratch = Scratch()
        (tmp_path / ".git").mkdir()
        assert scratch.take([tmp_path / ".git"]) == ()
        scratch.close()
        assert (tmp_path / ".git").is_dir()

    def test_folders_that_a_command_locked(self) -> None:
        scratch = Scratch()
        (scratch.tmp / "a" / "b").mkdir(parents=True)
        (scratch.tmp / "a" / "b").chmod(0)
        (scratch.tmp / "a").chmod(0)
        scratch.close()
        assert not scratch.path.exists()


async def test_closing_while_a_command_runs(kind: Kind, tmp_path: Path) -> None:
    executor = LocalExecutor(sandbox=kind)
    context = await executor.start(ExecutionContext(working_directory=tmp_path))
    running = asyncio.create_task(executor.run("touch begun; sleep 300", context, timeout=300))
    await until(tmp_path / "begun")
    await executor.close()
    with pytest.raises(Exception, match="closed"):
        await running
    assert os.listdir(tmp_path) == ["begun"]  # noqa: PTH208  names are enough
