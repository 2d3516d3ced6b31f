"""A JupyterLab of our own for the browser: its server, and the few things a user does in a notebook."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

#: Seconds to wait for what should happen soon, on a busy machine.
PATIENCE = 60

expect.set_options(timeout=PATIENCE * 1000)


@contextmanager
def serve(folder: Path, state: Path, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Serve ``folder`` until the block ends; yields the address of a notebook's page up to its path.

    The server's settings, workspaces and runtime files are kept under ``state``, so that nothing of the
    user's JupyterLab is seen or changed.
    """
    settings = state / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True, exist_ok=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    port, token = _free_port(), secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser"]
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": folder,
        "IdentityProvider.token": token,
        "LabApp.user_settings_dir": state / "settings",
        "LabApp.workspaces_dir": state / "workspaces",
    }
    ours = {name: value for name, value in os.environ.items() if not name.startswith(_HIDDEN)}
    places = {name: str(state / name.lower()) for name in _STATE}
    environ = {**ours, **places, **(environment or {})}
    with (state / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, *(f"--{name}={value}" for name, value in options.items())],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        address = f"http://127.0.0.1:{port}"
        try:
            _wait_until_ready(server, address, state / "server.log")
            yield f"{address}/lab/tree/{{path}}?token={token}&reset"
        finally:
            server.terminate()
            try:
                server.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


#: Of the machine's or the user's, and no part of the tests.
_HIDDEN = ("ANTHROPIC_", "CONJURE_", "JPY_", "JUPYTER")
_STATE = (
    "HOME",
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
    "IPYTHONDIR",
    "XDG_CACHE_HOME",
)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_ready(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{address}/api"):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError(log.read_text())


class Notebook:
    """A notebook that is open in JupyterLab, used as a user uses it."""

    def __init__(self, page: Page, url: str, path: str) -> None:
        self.page = page
        page.goto(url.format(path=path))
        self.panel = page.get_by_role("main").get_by_role("tabpanel", name=path)
        self.cells = self.panel.locator(".jp-CodeCell")
        # Before the kernel is connected, running a cell asks which one to take.
        expect(page.get_by_role("button", name=re.compile(r"\| Idle$"))).to_be_visible()

    def output(self, index: int) -> Locator:
        """What the code cell with this index shows."""
        return self.cells.nth(index).locator(".jp-Cell-outputArea")

    @property
    def errors(self) -> Locator:
        """Tracebacks and what was written to stderr."""
        return self.panel.locator("[data-mime-type$='.error'], [data-mime-type$='.stderr']")

    def start_all(self) -> None:
        """Run all cells, by the menu."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()

    def run_all(self) -> None:
        """Run all cells and wait until the last one has run."""
        self.start_all()
        self.wait_for(self.cells.count() - 1)

    def run(self, index: int) -> None:
        """Run the code cell with this index and wait until it has run."""
        self.start(index)
        self.wait_for(index)

    def start(self, index: int) -> None:
        """Run the code cell with this index, by the keyboard."""
        self.cells.nth(index).get_by_role("textbox").first.click()
        self.page.keyboard.press("Control+Enter")

    def answer(self, index: int, text: str) -> None:
        """Answer the question that the code cell with this index asks."""
        field = self.output(index).get_by_role("textbox")
        field.fill(text)
        field.press("Enter")

    def save(self) -> None:
        """Press the toolbar's save button."""
        self.panel.get_by_role("button", name="Save and create checkpoint").click()

    def stop(self) -> None:
        """Press the toolbar's stop button."""
        self.panel.get_by_role("button", name="Interrupt the kernel").click()

    def wait_for(self, index: int) -> None:
        """Wait until the code cell with this index has run."""
        expect(self.cells.nth(index).locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]:"))
