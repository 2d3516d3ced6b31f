"""An engine that does not see this machine's files: dockerd, with nothing where the tests have theirs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import docker

from scripts.setup_docker import SEARCH, answers

from ..engine import NoEngineError

#: Seconds it may take to answer.
PATIENCE = 60.0
_HIDE = 'mount -t tmpfs none "$1" && shift && exec "$@"'


class Apart:
    """The engine; all of its processes are in a process namespace, and end with the first.

    Args:
        hidden: the folder that is empty for it.

    Raises:
        NoEngineError: it cannot be started here.
    """

    def __init__(self, hidden: Path) -> None:
        missing = [name for name in ("dockerd", "unshare") if shutil.which(name, path=SEARCH) is None]
        if missing or os.geteuid() != 0:
            raise NoEngineError(
                f"an engine of its own files needs root, dockerd and unshare: no {missing or 'root'}"
            )
        self._hidden = hidden
        self._folder = Path(tempfile.mkdtemp(prefix="conjure-apart-", dir="/var/tmp"))
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"unix://{self._folder}/docker.sock"

    def start(self) -> None:
        """Start it, with what it had before."""
        options = ["--bridge=none", "--iptables=false", "--ip6tables=false", "-H", self.address]
        options += ["--data-root", f"{self._folder}/data", "--exec-root", f"{self._folder}/run"]
        options += ["-p", f"{self._folder}/pid"]
        for stale in ("pid", "docker.sock"):
            (self._folder / stale).unlink(missing_ok=True)
        shutil.rmtree(self._folder / "run", ignore_errors=True)
        own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        command = [*own, "sh", "-c", _HIDE, "sh", str(self._hidden), "dockerd", *options]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, "PATH": SEARCH},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE
        while not answers(self.address):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                last = (self._folder / "log").read_text(errors="replace").splitlines()[-1:]
                raise NoEngineError(f"an engine of its own files does not start here: {' '.join(last)}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End it with all its containers, at once."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def close(self) -> None:
        """End it and remove all it had."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def load(self, address: str, image: str) -> None:
        """Take an image over from another engine."""
        with (
            contextlib.closing(docker.APIClient(address, timeout=300)) as there,
            contextlib.closing(docker.APIClient(self.address, timeout=300)) as here,
        ):
            saved = there.get_image(image)
            for said in here.load_image(saved):
                if "error" in said:
                    raise NoEngineError(f"the image cannot be taken over: {said['error']}")
