"""The process that renders: one job, then it ends. Nothing here runs in the kernel.

It is started with a socket as standard input, in a session and a temporary folder of its own, without the
kernel's secrets in its environment.
"""

from __future__ import annotations

import contextlib
import importlib
import mimetypes
import os
import select
import socket
import sys
import tempfile
import threading
import traceback
from typing import Any

from . import guard, limits
from .contract import CitedSource, Job, Rendering
from .document import to_html
from .pages import Page
from .problems import RenderProblem, ResourceProblem
from .resources import Resources
from .wire import Connection

INSTALL = 'rendering needs more packages: pip install "conjure-jupyter[render]"'
PANGO = (
    "PDF and PNG need the Pango library, which is not on this machine. Debian and Ubuntu: apt-get install "
    "libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0; macOS: brew install pango. PPTX works without it"
)

#: What each target imports before the doors are closed; some of them look for libraries on the way.
_MODULES = {
    "pdf": ("weasyprint", "PIL.Image"),
    "png": ("weasyprint", "PIL.Image", "pypdfium2"),
    "pptx": ("pptx", "tinyhtml5", "PIL.Image"),
}


def main() -> None:
    """Take the job from standard input, do it, and answer."""
    connection = Connection(socket.socket(fileno=0))
    header, body = connection.receive()
    guard.set_limits(float(header["seconds"]))
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    os.chdir(tempfile.gettempdir())
    try:
        made = _do(_job(header, body), connection)
    except RenderProblem as problem:
        connection.send({"op": "failed", "reason": str(problem)})
    except MemoryError:
        reason = f"it takes more than {limits.MEMORY // limits.MB:,} MB of memory; make it smaller"
        connection.send({"op": "failed", "reason": reason})
    except (RecursionError, SyntaxError):
        # Selectors are compiled as Python, whose own parser has a limit.
        connection.send({"op": "failed", "reason": "its elements or styles are nested too deeply"})
    except Exception:  # noqa: BLE001  told to the parent, which logs it
        connection.send({"op": "broken", "trace": traceback.format_exc()[-4000:]})
    else:
        _answer(made, connection)
    # Without the interpreter's own end, which takes its time over large trees.
    os._exit(0)


def _end_with(connection: Connection) -> None:
    """End as soon as the parent is gone, whatever is being rendered."""
    poll = select.poll()
    poll.register(connection.fileno(), 0)
    poll.poll()
    os._exit(1)


def _answer(made: Rendering, connection: Connection) -> None:
    size = sum(map(len, made.files))
    if size > limits.OUTPUT:
        reason = f"the result has {size / limits.MB:.0f} MB, and {limits.OUTPUT // limits.MB} MB are allowed"
        connection.send({"op": "failed", "reason": f"{reason}; use smaller images"})
        return
    for data in made.files:
        connection.send({"op": "file"}, data)
    connection.send({"op": "done", "pages": made.pages, "notices": made.notices})


def _job(header: dict[str, Any], body: bytes) -> Job:
    page = header["page"]
    return Job(
        text=body.decode("utf-8", "replace"),
        format=header["format"],
        target=header["target"],
        folder=header["folder"],
        title=header["title"],
        page=None if page is None else Page(*page),
        sources={int(number): CitedSource(*facts) for number, facts in header["sources"].items()},
    )


def _do(job: Job, connection: Connection) -> Rendering:
    _import(_MODULES[job.target])
    if job.target == "pptx" and ("svg" in job.text.lower() or job.sources):
        # Drawings are made images by the same libraries; slides without them do not need those.
        with contextlib.suppress(ImportError, OSError):
            importlib.import_module("weasyprint")
            importlib.import_module("pypdfium2")
    mimetypes.init()  # it reads the system's list, which is not for later
    guard.close_doors()
    resources = Resources(lambda url: _ask(connection, url))
    html = to_html(job.text) if job.format == "markdown" else job.text
    if job.target == "pptx":
        from .slides import render as render_slides

        deck, count, notices = render_slides(html, job, resources)
        return Rendering([deck], count, [*resources.problems(), *notices])
    from . import pdf, png

    data, count = pdf.render(html, job, resources)
    if job.target == "pdf":
        return Rendering([data], count, resources.problems())
    more = [f"{count - limits.PNG_PAGES} more pages got no image"] if count > limits.PNG_PAGES else []
    return Rendering(png.images(data), count, [*resources.problems(), *more])


def _ask(connection: Connection, url: str) -> bytes:
    connection.send({"op": "fetch", "url": url[:8192]})
    header, body = connection.receive()
    if not header["found"]:
        raise ResourceProblem(header["reason"])
    return body


def _import(names: tuple[str, ...]) -> None:
    try:
        for name in names:
            importlib.import_module(name)
    except ImportError as error:
        raise RenderProblem(f"{INSTALL} ({error.name or error} is missing)") from error
    except OSError as error:
        # WeasyPrint loads Pango when it is imported.
        raise RenderProblem(PANGO) from error


if __name__ == "__main__":
    sys.exit("started by conjure_jupyter.rendering.process")
