"""A session whose local commands are confined."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conjure_jupyter.errors import ApprovalRequiredError, UnsupportedSettingError
from conjure_jupyter.executors import LocalExecutor
from conjure_jupyter.testing import FakeClaude, tool_use
from tests.builders import bash

from .conftest import MakeSession

Serve = Callable[..., FakeClaude]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("a private key")
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.mark.usefixtures("confinable")
def test_confined_calls_need_no_asking_and_find_no_keys(
    serve: Serve, make_session: MakeSession, home: Path
) -> None:
    serve([bash(f"cat {home}/.ssh/id_rsa; echo x > {home}/new; echo made > outputs/a.txt"), "Done."])
    session = make_session(settings={"sandbox": "auto", "network": "none", "approve": None})
    reply = session.chat("Go")
    assert "a private key" not in reply.tool_calls[0].result.text
    assert not (home / "new").exists()
    assert (session.workspace / "outputs" / "a.txt").read_text() == "made\n"


@pytest.mark.usefixtures("confinable")
def test_with_a_network_calls_are_asked_about(serve: Serve, make_session: MakeSession, home: Path) -> None:
    serve([bash("echo made > outputs/a.txt"), "Done."])
    session = make_session(settings={"sandbox": "auto", "approve": None})
    with pytest.raises(ApprovalRequiredError):
        session.chat("Go")


@pytest.mark.usefixtures("confinable")
def test_the_file_tools_agree(serve: Serve, make_session: MakeSession, home: Path) -> None:
    serve([tool_use("view", {"path": str(home / ".ssh" / "id_rsa")}), "Done."])
    session = make_session(
        settings={"sandbox": "auto", "network": "none", "approve": None, "allowed_paths": (str(home),)}
    )
    reply = session.chat("Go")
    assert reply.tool_calls[0].result.is_error
    assert "a private key" not in reply.tool_calls[0].result.text


@pytest.mark.parametrize("settings", [{"network": "none"}, {"memory_limit": 1 << 30}])
def test_a_limit_that_cannot_be_kept_is_told_before_anything_is_asked(
    serve: Serve, make_session: MakeSession, settings: dict[str, object]
) -> None:
    claude = serve(["Never."])
    with pytest.raises(UnsupportedSettingError):
        make_session(settings=settings).chat("Go")
    assert claude.messages == []


def test_a_machine_without_any_says_so_once(
    serve: Serve, make_session: MakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalExecutor, "shortfall", lambda _: "There is no sandbox here.")
    serve(["One.", "Two."])
    session = make_session(settings={"sandbox": "auto"})
    first, second = session.chat("One"), session.chat("Two")
    assert any("no sandbox" in text for text in first.notices)
    assert not any("no sandbox" in text for text in second.notices)


@pytest.fixture
def confinable() -> None:
    """Skip where nothing confines."""
    from conjure_jupyter.engine import engine
    from conjure_jupyter.executors import ExecutionContext

    async def kind() -> str | None:
        executor = LocalExecutor(sandbox="auto")
        await executor.start(ExecutionContext(working_directory=Path.cwd()))
        await executor.close()
        return executor.confinement.kind

    if engine().run(kind()) is None:
        pytest.skip("nothing here confines local commands (apt-get install bubblewrap)")
