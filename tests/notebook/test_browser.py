"""Notebooks in a real JupyterLab and a real browser, as a user sees them and clicks in them.

Playwright's event loop does not leave its process again: these tests have one of their own
(``make browser``).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Dialog, Page, expect, sync_playwright

from conjure_jupyter.notebook import demo
from conjure_jupyter.testing import FakeClaude, message, tool_use
from scripts.setup_browser import MISSING, find_browser

from .files import write_notebook
from .lab import PATIENCE, Notebook, serve

BROWSER = find_browser()

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=MISSING)]

#: Every way to run script that a rendered answer might leave open; each would set ``window.pwned``.
HOSTILE = """\
<script>window.pwned = 1</script>
<img src=x onerror="window.pwned = 2">
<svg onload="window.pwned = 3"></svg>
<iframe srcdoc="<script>parent.pwned = 4</script>"></iframe>
<details open ontoggle="window.pwned = 5"><summary>more</summary></details>
<style>body { display: none }</style>
<form action="javascript:window.pwned = 6"><button autofocus onfocus="window.pwned = 7">ok</button></form>
<a href="javascript:window.pwned = 8">click here</a> and [click there](javascript:window.pwned=9)
<button data-commandlinker-command="notebook:delete-cell">tidy up</button>
![picture](https://tracker.example/pixel.png)
$\\href{javascript:window.pwned=10}{x}$
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebooks")


@pytest.fixture(scope="module")
def url(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(folder, tmp_path_factory.mktemp("lab")) as address:
        yield address


@pytest.fixture(scope="module")
def pages() -> Iterator[Callable[[], Page]]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield lambda: browser.new_page(viewport={"width": 1280, "height": 1400})
        browser.close()


@pytest.fixture
def claude() -> Iterator[Callable[..., str]]:
    """Script what Claude says; gives the cell that leads a kernel to it."""
    running: list[FakeClaude] = []

    def script(*answers: Any) -> str:
        running.append(FakeClaude(answers).__enter__())
        return f"import os\nos.environ.update({running[-1].env!r})\n%load_ext conjure"

    yield script
    for server in running:
        server.close()


def test_the_quickstart_runs_as_a_user_runs_it(folder: Path, url: str, pages: Callable[[], Page]) -> None:
    demo.prepare(folder, lambda line: None)
    notebook = Notebook(pages(), url, demo.NOTEBOOK)

    notebook.run_all()

    call = notebook.panel.locator("summary").filter(has_text="bash_tool")
    expect(call).to_contain_text("summarize_csv.py")
    expect(notebook.panel.get_by_role("listitem").filter(has_text="outputs/").first).to_be_visible()
    expect(notebook.errors).to_have_count(0)


def test_the_artifacts_tutorial_shows_versions_and_undoes(
    folder: Path, url: str, pages: Callable[[], Page]
) -> None:
    demo.prepare(folder, lambda line: None)
    page = pages()
    page.set_viewport_size({"width": 1280, "height": 8000})  # cells out of sight are not in the page
    notebook = Notebook(page, url, "02_artifacts.ipynb")

    notebook.run_all()

    # The data frame as pandas shows it, and the preview of the file it became.
    expect(notebook.panel.get_by_role("columnheader", name="revenue")).to_have_count(2)
    planned = notebook.panel.locator("pre").filter(has_text="Undo turn 1 (Summarise")
    expect(planned).to_contain_text("Removed: outputs/orders-by-month.svg")
    listed = notebook.panel.get_by_role("listitem")
    expect(listed.filter(has_text="file://orders").first).to_contain_text("DataFrame, text/csv")
    made = listed.filter(has_text="outputs/orders-summary.md").filter(has_text="v1")
    expect(made.last).to_be_visible()
    expect(notebook.errors).to_have_count(0)


def test_a_tool_call_opens_to_show_what_it_did(
    folder: Path, url: str, pages: Callable[[], Page], claude: Callable[..., str]
) -> None:
    load = claude(tool_use("bash_tool", {"command": "echo the $((40 + 2)) words"}), "Done, I **think**.")
    write_notebook(folder / "calls.ipynb", load, "%%claude --approve auto\nSay it.")
    notebook = Notebook(pages(), url, "calls.ipynb")

    notebook.run_all()

    call = notebook.output(1).get_by_role("group")
    expect(call.get_by_text("the 42 words")).to_be_hidden()
    call.locator("summary").click()
    expect(call.get_by_text("the 42 words")).to_be_visible()
    expect(notebook.output(1).get_by_text("think", exact=True)).to_have_css("font-weight", "700")


def test_nothing_that_was_said_runs(
    folder: Path, url: str, pages: Callable[[], Page], claude: Callable[..., str]
) -> None:
    name = "<img src=x onerror=window.pwned=11>.md"
    load = claude(
        tool_use("create_file", {"path": f"outputs/{name}", "file_text": HOSTILE, "description": HOSTILE}),
        tool_use("view", {"path": f"outputs/{name}"}),
        tool_use("bash_tool", {"command": f"cat 'outputs/{name}'; exit 3"}),
        message(HOSTILE),
    )
    write_notebook(folder / "hostile.ipynb", load, f"%%claude --approve auto\n{HOSTILE}")
    asked: list[str] = []
    notebook = Notebook(watched(pages(), asked), url, "hostile.ipynb")

    notebook.run_all()
    shown = notebook.output(1)
    expect(shown).to_contain_text("click here")
    closed = shown.locator("details:not([open]) > summary")
    while closed.count():
        closed.first.click()
    for link in shown.get_by_text("click").filter(visible=True).all():
        link.click()
    assert_tame(notebook, asked)

    notebook.save()
    wait_until(lambda: json.loads((folder / "hostile.ipynb").read_text())["cells"][1]["outputs"])
    notebook.page.close()
    notebook = Notebook(watched(pages(), asked), url, "hostile.ipynb")
    expect(notebook.output(1)).to_contain_text("click here")
    assert_tame(notebook, asked)


def watched(page: Page, asked: list[str]) -> Page:
    """Note every address the page asks for and every dialog it opens."""

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", answer)
    return page


def assert_tame(notebook: Notebook, asked: list[str]) -> None:
    assert notebook.page.evaluate("window.pwned") is None
    shown = notebook.output(1).locator(".jp-OutputArea-output")
    active = shown.locator("script, iframe, img, form, style, svg, button, [onerror], [onload]")
    assert active.evaluate_all("found => found.map(element => element.outerHTML)") == []
    assert [address for address in asked if "tracker.example" in address] == []
    assert [
        address for address in asked if not address.startswith(("http://127.0.0.1", "data:", "blob:"))
    ] == []
    expect(notebook.panel).to_be_visible()


def test_stop_ends_the_turn_and_its_processes(
    folder: Path, url: str, pages: Callable[[], Page], claude: Callable[..., str], tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    load = claude(
        message("I begin.", tool_use("bash_tool", {"command": f"echo $$ > {pid}; sleep 300"})), "Here again."
    )
    write_notebook(
        folder / "stop.ipynb", load, "%%claude --approve auto\nWait long.", "%%claude\nAre you there?"
    )
    notebook = Notebook(pages(), url, "stop.ipynb")

    notebook.run(0)
    notebook.start(1)
    wait_until(lambda: pid.exists() and pid.read_text().strip().isdigit())
    notebook.stop()

    expect(notebook.output(1)).to_contain_text("Stopped")
    expect(notebook.output(1)).to_contain_text("I begin.")
    wait_until(lambda: not alive(int(pid.read_text())))
    notebook.wait_for(1)  # as after any interrupt, what is asked for before the cell has ended does not run
    notebook.run(2)
    expect(notebook.output(2)).to_contain_text("Here again.")


def test_the_user_is_asked_and_answers(
    folder: Path, url: str, pages: Callable[[], Page], claude: Callable[..., str], tmp_path: Path
) -> None:
    made = tmp_path / "made"
    load = claude(tool_use("bash_tool", {"command": f"touch {made}"}), "Made.")
    write_notebook(folder / "ask.ipynb", load, "%%claude\nMake it.")
    notebook = Notebook(pages(), url, "ask.ipynb")

    notebook.start_all()
    expect(notebook.output(1)).to_contain_text(f"touch {made}")
    assert not made.exists()
    notebook.answer(1, "y")

    expect(notebook.output(1)).to_contain_text("Made.")
    assert made.exists()


@pytest.mark.docker
def test_tools_run_in_a_container(
    *,
    folder: Path,
    url: str,
    pages: Callable[[], Page],
    claude: Callable[..., str],
    docker_engine: str,
    docker_image: str,
) -> None:
    made = tool_use("bash_tool", {"command": "pwd; touch /etc/x; echo kept > outputs/kept.txt"})
    load = claude(
        made,
        "Made.",
        message("I begin.", tool_use("bash_tool", {"command": "echo $((40 + 2)) begun; sleep 300"})),
    )
    named = f"os.environ.update(DOCKER_HOST={docker_engine!r}, CONJURE_DOCKER_IMAGE={docker_image!r})"
    cells = ("%%claude --on docker\nMake it.", "reply = _; reply.files[0].local_path.read_text()")
    write_notebook(folder / "docker.ipynb", f"{load}\n{named}", *cells, "%%claude --on docker\nWait.")
    notebook = Notebook(pages(), url, "docker.ipynb")

    for cell in range(3):
        notebook.run(cell)

    notebook.output(1).locator("summary").click()
    expect(notebook.output(1)).to_contain_text("/workspace")
    expect(notebook.output(1)).to_contain_text("Read-only file system")
    expect(notebook.output(1).get_by_role("listitem")).to_contain_text("outputs/kept.txt")
    expect(notebook.output(2)).to_contain_text("kept")

    notebook.start(3)
    expect(notebook.output(3)).to_contain_text("42 begun")
    notebook.stop()
    expect(notebook.output(3)).to_contain_text("Stopped by the user")
    notebook.wait_for(3)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
