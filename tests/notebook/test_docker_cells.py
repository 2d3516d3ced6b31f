"""``%%claude --on docker`` in a real shell and a real kernel, and the question about the image."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.errors import DockerImageError, DockerUnavailableError
from conjure_jupyter.executors.docker import IMAGE
from conjure_jupyter.notebook import image
from conjure_jupyter.testing import FakeClaude, tool_use

from .conftest import Shell
from .kernels import Run, kernel

pytestmark = pytest.mark.docker

Serve = Callable[..., FakeClaude]


@pytest.fixture
def absent(docker_engine: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Our image, on an engine that does not have it."""
    monkeypatch.setenv("DOCKER_HOST", docker_engine)
    monkeypatch.setattr(image, "_found", set())
    name = "conjure-test/absent:latest"
    monkeypatch.setattr("conjure_jupyter.executors.docker.IMAGE", name)
    return name


def answer(monkeypatch: pytest.MonkeyPatch, word: str) -> list[str]:
    asked: list[str] = []

    def reply(question: str) -> str:
        asked.append(question)
        return word

    monkeypatch.setattr("builtins.input", reply)
    return asked


def builder(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    built: list[dict[str, Any]] = []

    def build(*, on_progress: Callable[[str], None], **options: Any) -> str:
        built.append(options)
        on_progress("Step 1 of 2\n")
        return "sha256:0"

    monkeypatch.setattr("conjure_jupyter.executors.docker.build_image", build)
    return built


def test_the_image_is_built_when_the_user_agrees(
    absent: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, built = answer(monkeypatch, "y"), builder(monkeypatch)
    image.offer_image(absent, ask=True)
    assert len(asked) == 1
    assert built == [{"tag": absent}]
    assert "Step 1 of 2" in capsys.readouterr().out
    image.offer_image(absent, ask=True)
    assert len(asked) == 1


def test_it_is_not_when_she_does_not(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    built = builder(monkeypatch)
    answer(monkeypatch, "n")
    with pytest.raises(DockerImageError, match="conjure docker build"):
        image.offer_image(absent, ask=True)
    assert built == []


def test_nobody_is_asked_headless(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer(monkeypatch, "y")
    with pytest.raises(DockerImageError, match="conjure docker build"):
        image.offer_image(absent, ask=False)
    assert asked == []


def test_images_of_the_users_own_are_not_built(absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer(monkeypatch, "y")
    with pytest.raises(DockerImageError, match="docker pull"):
        image.offer_image("no/such:image", ask=True)
    assert asked == []


def test_one_that_is_there_needs_no_word(
    docker_engine: str,
    docker_image: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_engine)
    asked = answer(monkeypatch, "y")
    image.offer_image(docker_image, ask=True)
    assert asked == []


def test_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setattr(image, "_found", set())
    with pytest.raises(DockerUnavailableError, match="nowhere"):
        image.offer_image(IMAGE, ask=True)


def test_an_interrupt_ends_the_question_and_the_build(docker_engine: str, tmp_path: Path) -> None:
    with kernel(tmp_path, {"DOCKER_HOST": docker_engine, "CONJURE_CLIENT": "offline"}) as running:
        running.run(_ENDLESS_BUILD)

        asking, run = running.start("%%claude --on docker\nhi"), Run()
        running.until(asking, run, lambda run: "Building it" in run.text)
        running.client.get_stdin_msg(timeout=30)
        running.manager.interrupt_kernel()
        running.finish(asking, run)
        assert run.error is None
        assert "Stopped before anything was sent" in run.text
        assert running.value("_.stop_reason") == "'stopped'"

        building, run = running.start("%%claude --on docker\nhi"), Run()
        running.client.get_stdin_msg(timeout=30)
        running.client.input("y")
        running.until(building, run, lambda run: "Step 1 of 2" in run.text)
        running.manager.interrupt_kernel()
        running.finish(building, run)
        assert run.error is None
        assert "\nStopped before anything was sent" in run.text
        assert running.value("ended") == "['CancelledError']"
        assert running.run("%%claude\nhi").reply["status"] == "ok"


#: Ours is an image that is not there, and whose build ends by an interrupt only.
_ENDLESS_BUILD = """\
%load_ext conjure
import asyncio
from conjure_jupyter.engine import engine
from conjure_jupyter.executors import docker
docker.IMAGE = "conjure-test/absent:latest"
%config ConjureMagics.docker_image = docker.IMAGE
ended = []
async def build(on_progress):
    on_progress("Step 1 of 2")
    try:
        await asyncio.Event().wait()
    except BaseException as error:
        ended.append(type(error).__name__)
        raise
docker.build_image = lambda *, on_progress, **_: engine().run(build(on_progress))
"""


@pytest.fixture
def here(docker_engine: str, docker_image: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An image that can be used, on an engine that cells find."""
    monkeypatch.setenv("DOCKER_HOST", docker_engine)
    monkeypatch.setattr(image, "_found", set())
    return docker_image


def test_a_wrong_setting_can_be_put_right(shell: Shell, serve: Serve, here: str) -> None:
    serve([tool_use("bash_tool", {"command": "cat /etc/hostname"}), "done"])
    shell.value('%config ConjureMagics.docker_image = "no/such:image"')
    assert "docker pull no/such:image" in shell.complaint("%%claude --on docker\nhi")
    shell.value(f'%config ConjureMagics.docker_image = "{here}"\n%config ConjureMagics.network = "host"')
    assert "'host' would put" in shell.complaint("%%claude --on docker\nhi")
    shell.value("%config ConjureMagics.network = None")
    assert shell.value("%%claude --on docker\nhi").tool_calls[0].result.meta["exit_code"] == 0


def test_a_conversation_goes_on_in_an_image_named_later(shell: Shell, serve: Serve, here: str) -> None:
    claude = serve(["one", tool_use("bash_tool", {"command": "pwd"}), "two", "three"])
    first = shell.value("%%claude\nfirst")
    shell.value('%config ConjureMagics.docker_image = "no/such:image"')
    shell.complaint("%%claude --on docker\nsecond")
    shell.value(f'%config ConjureMagics.docker_image = "{here}"')
    second = shell.value("%%claude --on docker\nsecond")
    assert (second.session_id, second.turn) == (first.session_id, 2)
    assert "/workspace" in second.tool_calls[0].result.text
    assert claude.messages[-1].body["messages"][0]["content"]

    # The container has its settings now.
    shell.value('%config ConjureMagics.network = "limited"')
    _, captured = shell.run("%%claude --on docker\nthird")
    assert "Only a new session (--new) takes what was changed: network" in captured.stdout


def test_paths_are_told_from_the_workspace(
    shell: Shell, serve: Serve, here: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"path": "/workspace/outputs/a.txt", "file_text": "x"}
    looks = (tool_use("view", {"path": path}) for path in ("/workspace", "/workspaces", "/notebook"))
    serve(
        [tool_use("create_file", made), *looks, tool_use("bash_tool", {"command": "ls /workspace"}), "done"]
    )
    shell.value(f'%config ConjureMagics.docker_image = "{here}"')
    reply, captured = shell.run("%%claude --on docker\nhi")
    assert reply.result.files[0].local_path.read_text() == "x"
    shown = captured.outputs[0].data
    for form in ("text/plain", "text/html", "text/markdown"):
        assert "/workspace/outputs" not in shown[form]
        assert "ls /workspace" in shown[form]  # what ran is told as it ran
    calls = [call["summary"] for call in shown["application/vnd.conjure.reply+json"]["tool_calls"]]
    assert calls == ["outputs/a.txt", ".", "/workspaces", "/notebook", "ls /workspace"]

    serve([tool_use("view", {"path": "/workspace/outputs/a.txt"}), "done"])
    shell.ip.run_cell("%%claude --new --on docker\nhi")  # as in a terminal, where each call is a line
    assert "view: outputs/a.txt" in capsys.readouterr().out


def test_paths_of_this_machine_stay_what_they_are(shell: Shell, serve: Serve) -> None:
    serve([tool_use("view", {"path": "/workspace/outputs/a.txt"}), "done"])
    _, captured = shell.run("%%claude --approve auto\nhi")
    assert "view: /workspace/outputs/a.txt" in captured.outputs[0].data["text/plain"]


def test_where_tools_run_is_told(shell: Shell, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    serve(["never"])
    assert "Tools:    on this machine;" in shell.printed("%claude status")
    _, captured = shell.run("%%claude --on docker --dry-run\nhi")
    for form in ("text/plain", "text/html"):
        assert "in a container (conjure/sandbox:latest, network none)" in captured.outputs[0].data[form]
    shell.value('%config ConjureMagics.on = "docker"')
    assert "Tools:    in a container (conjure/sandbox:latest, network none)" in shell.printed(
        "%claude status"
    )
    shell.value('%config ConjureMagics.on = "local"\n%config ConjureMagics.sandbox = "auto"')
    assert "Tools:    on this machine, confined (sandbox auto)" in shell.printed("%claude status")
