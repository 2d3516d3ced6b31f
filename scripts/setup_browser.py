"""See to it that the browser tests have a Chromium; say in one line when there is none to be had.

python -m scripts.setup_browser
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

from . import debian

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
MISSING = "no Chromium or Chrome here, so the browser tests are left out"


def find_browser() -> str | None:
    """The path of an installed Chromium or Chrome: the system's, or the one playwright keeps."""
    found = [path for name in NAMES if (path := shutil.which(name)) and _starts(path)]
    found += [path for path in MAC if Path(path).exists()]
    cache = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "ms-playwright"
    found += [str(path) for path in sorted(cache.glob("chromium-*/chrome-linux*/chrome"))]
    return found[0] if found else None


def main() -> int:
    """Install a browser where that needs no question; a machine without one is no failure."""
    if find_browser() or (_install() and find_browser()):
        return 0
    print(f"{MISSING} (.venv/bin/playwright install chromium gets one).")
    return 0


def _install() -> bool:
    if not debian.available():
        return False
    if platform.freedesktop_os_release().get("ID") == "ubuntu":
        # Ubuntu's own package is a snap, which needs a running snapd.
        command = [sys.executable, "-m", "playwright", "install", "--with-deps", "chromium"]
        return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode == 0
    return debian.install(["chromium", "fonts-dejavu-core"])


def _starts(path: str) -> bool:
    """Whether it runs: on Ubuntu the name may belong to a stand-in that asks for a snap."""
    return subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
