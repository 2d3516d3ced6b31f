"""See to it that PDF and PNG can be rendered; say in one line when they cannot.

    python -m scripts.setup_render

WeasyPrint needs the library Pango, which is no Python package, and a font to write with.
"""

from __future__ import annotations

import subprocess
import sys

from . import debian

#: Older systems have what the last one holds inside libharfbuzz0b.
PACKAGES = ["libpango-1.0-0", "libpangoft2-1.0-0", "fonts-dejavu-core"]
SUBSET = "libharfbuzz-subset0"
ADVICE = "brew install pango" if sys.platform == "darwin" else f"apt-get install {' '.join(PACKAGES)}"


def works() -> bool:
    """Whether WeasyPrint finds its libraries. A new process: this one remembers that they were missing."""
    return (
        subprocess.run(
            [sys.executable, "-c", "import weasyprint"], capture_output=True, check=False
        ).returncode
        == 0
    )


def main() -> int:
    """Install Pango where that needs no question; a machine without it is no failure."""
    if works():
        return 0
    if (debian.install([*PACKAGES, SUBSET]) or debian.install(PACKAGES)) and works():
        return 0
    print(f"no Pango here, so the tests of PDF and PNG are left out ({ADVICE} gets it).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
