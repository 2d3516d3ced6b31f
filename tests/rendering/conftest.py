"""A working directory, and documents rendered from it by the real process."""

from __future__ import annotations

import functools
import io
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from conjure_jupyter.executors.contract import ExecutionContext
from conjure_jupyter.executors.local import LocalExecutor
from conjure_jupyter.rendering import Assets, Job, Rendering, render

Render = Callable[..., Awaitable[Rendering]]

RED, BLUE = (200, 30, 40), (20, 60, 200)


@functools.cache
def pango_problem() -> str | None:
    done = subprocess.run(
        [sys.executable, "-c", "import weasyprint"], capture_output=True, text=True, check=False
    )
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[-1]


@pytest.fixture
def pango() -> None:
    """PDF and PNG need the library Pango."""
    if pango_problem() is not None:
        pytest.skip(f"WeasyPrint cannot be loaded: {pango_problem()}")


def picture(color: tuple[int, int, int] = RED, size: tuple[int, int] = (80, 40), kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, color).save(out, kind)
    return out.getvalue()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "outputs").mkdir(parents=True)
    return folder


@pytest.fixture
def rendered(work: Path) -> Render:
    """Render a text: ``await rendered("# Title", "pdf")``; Markdown unless it begins with ``<``."""

    async def run(text: str, target: str = "pdf", *, seconds: float = 60, **options: Any) -> Rendering:
        files = options.pop("files", {})
        urls = options.pop("urls", {})
        options.setdefault("format", "html" if text.lstrip().startswith("<") else "markdown")
        job = Job(text, target=target, **options)
        base = options.get("folder", "")
        assets = Assets(LocalExecutor(), ExecutionContext(work), base=base, files=files, urls=urls)
        return await render(job, assets, seconds=seconds)

    return run
