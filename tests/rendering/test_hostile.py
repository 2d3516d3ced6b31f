"""Documents that want out: files, network, time, memory."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pypdf
import pytest
from pptx import Presentation

from conjure_jupyter.errors import ToolError
from conjure_jupyter.executors.contract import ExecutionContext
from conjure_jupyter.executors.local import LocalExecutor
from conjure_jupyter.rendering import Assets, Job, limits, process, render

from .conftest import Render, picture


def images_in(data: bytes, target: str) -> int:
    if target == "pdf":
        return sum(len(page.images) for page in pypdf.PdfReader(io.BytesIO(data)).pages)
    slides = Presentation(io.BytesIO(data)).slides
    return sum(shape.shape_type == 13 for slide in slides for shape in slide.shapes)


@pytest.fixture
def listener() -> Iterator[tuple[int, list[object]]]:
    """A port on loopback, and whoever connected to it."""
    seen: list[object] = []
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, address = server.accept()
            except OSError:
                return
            seen.append(address)
            connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield server.getsockname()[1], seen
    # Closing alone does not wake a thread that waits in accept().
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


@pytest.mark.usefixtures("pango")
@pytest.mark.parametrize("target", ["pdf", "pptx"])
async def test_nothing_is_fetched(
    rendered: Render, listener: tuple[int, list[object]], target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, seen = listener
    web = f"http://127.0.0.1:{port}"
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, web)
    html = f"""<base href="{web}/"><link rel="stylesheet" href="{web}/a.css">
    <link rel="attachment" href="{web}/b"><link rel="icon" href="{web}/icon">
    <meta http-equiv="refresh" content="0;{web}">
    <style>@import "{web}/c.css"; @import url({web}/d);
    @font-face {{ font-family: X; src: url({web}/f.woff) }}
    body {{ font-family: X; background: url({web}/g.png); list-style: url("{web}/h.png");
    content: url({web}/i) }}
    p::before {{ content: url({web}/j.png) }}</style>
    <p>text</p><img src="{web}/k.png" srcset="{web}/l.png 2x">
    <img src="//127.0.0.1:{port}/m.png"><img src="n.png">
    <img src="ftp://127.0.0.1:{port}/m"><img src="https://127.0.0.1:{port}/q.png">
    <iframe src="{web}/o"></iframe><object data="{web}/p.png"></object><embed src="{web}/q.svg">
    <video poster="{web}/r.png" src="{web}/s"></video><audio src="{web}/t"></audio>
    <script src="{web}/u"></script>
    <table background="{web}/v.png"><tr><td>x</table>
    <svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">
    <image href="{web}/w.png" width="9" height="9"/>
    <use href="{web}/x.svg#y"/><style>@import url({web}/z.css);</style></svg>
    <a rel="attachment" href="{web}/attached">link</a>"""
    made = await rendered(html, target)
    assert seen == []
    assert images_in(made.files[0], target) <= (target == "pptx")  # the drawing itself, on slides
    assert any("nothing is fetched from the network" in notice for notice in made.notices)
    if target == "pdf":
        with pytest.raises(ToolError, match="nothing is fetched from the network"):
            await rendered(f"<style>@color-profile --x {{ src: url({web}/icc) }}</style><p>x", target)
        assert seen == []


@pytest.mark.usefixtures("pango")
@pytest.mark.parametrize("target", ["pdf", "pptx"])
async def test_nothing_outside_is_read(rendered: Render, work: Path, target: str) -> None:
    outside = work.parent / "outside"
    outside.mkdir()
    (outside / "secret.png").write_bytes(picture())
    (outside / "secret.css").write_text("p { content: 'SECRET' }")
    (work / "link.png").symlink_to(outside / "secret.png")
    (work / "folder").symlink_to(outside)
    (work / "loop.png").symlink_to("loop.png")
    where = outside.as_posix()
    references = [
        f"file://{where}/secret.png",
        f"{where}/secret.png",
        "../outside/secret.png",
        "%2e%2e/outside/secret.png",
        "..%2foutside%2fsecret.png",
        "outputs/../../outside/secret.png",
        f"file://localhost{where}/secret.png",
        f"FILE:{where}/secret.png",
        f"workspace:///{where}/secret.png",
        "workspace:///../outside/secret.png",
        "link.png",
        "folder/secret.png",
        "loop.png",
        "/proc/self/environ",
        "/dev/zero",
        "source:1",
        "source:../../etc/passwd",
        "\x00.png",
        "http://[",
    ]
    images = "".join(f'<img src="{reference}" alt="{i}">' for i, reference in enumerate(references))
    sheets = "".join(
        f'<link rel="stylesheet" href="{reference}">'
        for reference in (f"{where}/secret.css", "folder/secret.css")
    )
    background = f'<div style="width:9px;height:9px;background:url(file://{where}/secret.png)"></div>'
    made = await rendered(f"{sheets}<p>text</p>{images}{background}", target)
    assert images_in(made.files[0], target) == 0
    assert b"SECRET" not in made.files[0]
    told = " ".join(made.notices)
    assert "lies outside the working directory" in told
    assert "more were left out" in told


@pytest.mark.usefixtures("pango")
async def test_no_file_is_embedded(rendered: Render, work: Path) -> None:
    (work / "data.csv").write_text("a,b\nSECRET,1")
    (work / "data.css").write_text("SECRET {}")
    made = await rendered(
        '<link rel="attachment" href="data.csv"><link rel="stylesheet attachment" href="data.css">'
        '<p>x<a rel="attachment" href="data.csv">y</a><object data="data.csv"></object>',
        "pdf",
    )
    reader = pypdf.PdfReader(io.BytesIO(made.files[0]))
    assert dict(reader.attachments) == {}
    assert "/Annots" not in reader.pages[0]


def png_of(width: int, height: int) -> bytes:
    """A black PNG image of any size in few bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    pixels = zlib.compress(bytes((width + 7) // 8 + 1) * min(height, 2000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@pytest.mark.usefixtures("pango")
@pytest.mark.parametrize("target", ["pdf", "pptx"])
async def test_images_with_billions_of_pixels_and_broken_ones(
    rendered: Render, work: Path, target: str
) -> None:
    (work / "bomb.png").write_bytes(png_of(60_000, 60_000))
    (work / "broken.png").write_bytes(picture()[:40] + b"\xff" * 100)
    (work / "text.png").write_text("no image")
    (work / "entities.svg").write_text(
        '<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
        '<svg xmlns="http://www.w3.org/2000/svg"><text>&b;</text></svg>'
    )
    (work / "self.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">'
        '<image href="self.svg" width="9" height="9"/></svg>'
    )
    (work / "big.css").write_bytes(b" " * (limits.RESOURCE + 1))
    data = base64.b64encode(png_of(50_000, 50_000)).decode()
    html = (
        '<link rel="stylesheet" href="big.css"><img src="bomb.png"><img src="broken.png"><img src="text.png">'
        f'<img src="entities.svg"><img src="self.svg"><img src="data:image/png;base64,{data}">'
        '<img src="data:,"><img src="data:image/png;base64,!!!!"><p>text</p>'
    )
    made = await rendered(html, target)
    told = "\n".join(made.notices)
    assert "bomb.png was left out: an image of 60,000 x 60,000 pixels is too large" in told
    assert "50,000 x 50,000" in told
    assert "entities" in told
    if target == "pdf":
        assert "big.css was left out: it has more than 20 MB" in told


@pytest.mark.usefixtures("pango")
async def test_too_many_pages_end_the_layout(rendered: Render) -> None:
    html = "".join(f'<p style="break-after: page">{index}</p>' for index in range(1000))
    with pytest.raises(ToolError, match=f"more than {limits.PAGES} pages"):
        await rendered(html, "pdf")


@pytest.mark.usefixtures("pango")
@pytest.mark.parametrize(
    "html",
    [
        "<style>" + "a{" * 50_000 + "</style><p>x",
        "<style>p{width:" + "calc(" * 20_000 + "</style><p>x",
        "<div>" * 20_000 + "x",
        "<table><tr><td>" * 3_000,
        '<svg xmlns="http://www.w3.org/2000/svg">' + "<g>" * 20_000 + "</svg>",
    ],
    ids=["css", "calc", "div", "table", "svg"],
)
async def test_endless_nesting_ends(rendered: Render, html: str) -> None:
    for target in ("pdf", "pptx"):
        try:
            made = await rendered(html, target, seconds=4)
        except ToolError as error:
            assert "failed inside" not in str(error)  # noqa: PT017  either a result or a reason
        else:
            assert made.files


@pytest.mark.usefixtures("pango")
@pytest.mark.parametrize(
    "html",
    [
        "<",
        "<html><p>a<b>c</p></i><table><tr>d<td>e",
        "<!doctype><frameset><frame src=x>",
        "</p></body></html>x",
        "<p>\ufffd\x00\x01",
    ],
)
async def test_broken_html_is_rendered(rendered: Render, html: str) -> None:
    made = await rendered(html, "pdf", format="html")
    assert made.pages == 1


@pytest.mark.usefixtures("pango")
async def test_time_is_bounded_and_nothing_is_left(rendered: Render, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = spy(monkeypatch)
    html = "<table>" + "<tr>" + "<td>some words</td>" * 40 * 200
    with pytest.raises(ToolError, match=r"took more than 1\.5 s and was ended"):
        await rendered(html, "pdf", seconds=1.5)
    assert not alive(pids[0][0])
    assert not os.path.exists(pids[0][1])  # noqa: ASYNC240, PTH110  a quick look


async def test_memory_is_bounded(rendered: Render, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform == "darwin":
        pytest.skip("macOS knows no limit of a process's memory")
    greedy = (
        "import conjure_jupyter.rendering.child as c; c._do = lambda job, connection: bytearray(3 << 30); "
    )
    monkeypatch.setattr(process, "_BOOT", process._BOOT.replace("from conjure", greedy + "from conjure", 1))
    with pytest.raises(ToolError, match="more than 2,048 MB of memory"):
        await rendered("x", "pptx")


def spy(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Process id and folder of every child."""
    started: list[tuple[int, str]] = []
    spawn = process._spawn

    def spied(folder: str) -> tuple[process._Child, socket.socket]:
        child, connection = spawn(folder)
        started.append((child.pid, folder))
        return child, connection

    monkeypatch.setattr(process, "_spawn", spied)
    return started


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_cancelling_ends_the_process(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = spy(monkeypatch)
    asked = asyncio.Event()

    async def fetch(url: str) -> bytes:
        asked.set()
        await asyncio.sleep(60)
        return b""

    job = Job('<img src="a.png">', "html", "pptx")
    task = asyncio.ensure_future(render(job, fetch))
    await asyncio.wait_for(asked.wait(), 30)
    assert alive(started[0][0])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(started[0][0])
    assert not os.path.exists(started[0][1])  # noqa: ASYNC240, PTH110  a quick look


async def test_a_killed_process_is_told(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = spy(monkeypatch)

    async def fetch(url: str) -> bytes:
        os.kill(started[0][0], signal.SIGKILL)
        return b""

    with pytest.raises(ToolError, match="was killed"):
        await render(Job('<img src="a.png">', "html", "pptx"), fetch)


def test_the_process_ends_with_its_parent(tmp_path: Path) -> None:
    code = """
import asyncio, os, signal, sys
from conjure_jupyter.rendering import Job, process, render
spawn = process._spawn
def spied(folder):
    child, connection = spawn(folder)
    print(child.pid, flush=True)
    return child, connection
process._spawn = spied
async def fetch(url):
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(render(Job('<img src="a.png">', "html", "pptx"), fetch))
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env=environment,
        timeout=60,
    )
    pid = int(done.stdout)
    deadline = time.monotonic() + 20
    while alive(pid) and not zombie(pid):
        assert time.monotonic() < deadline, "the process outlives its parent"
        time.sleep(0.05)


def zombie(pid: int) -> bool:
    """Whether a process has ended and waits for whoever inherits orphans."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return state.stdout.strip().startswith("Z")


def test_the_doors_are_closed(tmp_path: Path) -> None:
    """What a library may try once a document is being read."""
    code = """
import os, socket, subprocess, sys, tempfile
import conjure_jupyter.rendering.guard as guard
guard.set_limits(60)
guard.close_doors()
def refused(what):
    try:
        what()
    except PermissionError as error:
        assert "the renderer" in str(error), error
        return
    raise SystemExit(f"was let through: {what}")
target = sys.argv[1]
link = os.path.join(tempfile.gettempdir(), "link")
refused(lambda: open("/etc/passwd"))
refused(lambda: os.open("/etc/passwd", os.O_RDONLY))
refused(lambda: open(link))
refused(lambda: open(target, "w"))
refused(lambda: open(os.__file__, "a"))
refused(lambda: os.remove(target))
refused(lambda: os.rename(target, target + "2"))
refused(lambda: socket.create_connection(("127.0.0.1", 9)))
refused(lambda: subprocess.run(["true"]))
refused(lambda: os.system("true"))
refused(lambda: os.fork())
import wave  # a module that nobody has imported yet can be
with open(os.path.join(tempfile.gettempdir(), "own"), "w") as file:
    file.write("x")
"""
    target = tmp_path / "target"
    target.write_text("x")
    own = tmp_path / "own"
    own.mkdir()
    (own / "link").symlink_to("/etc/passwd")
    environment = {**os.environ, "TMPDIR": str(own), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(target)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
    assert (own / "own").read_text() == "x"


async def test_a_hostile_answer_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was taken over can say what it likes."""
    for sent in (
        "b'\\x00\\x00\\x00\\x02' + (1 << 40).to_bytes(8, 'big') + b'{}'",
        "b'\\xff' * 40",
        "b'\\x00\\x00\\x00\\x02' + bytes(8) + b'[]'",
        "b'\\x00\\x00\\x00\\x0d' + bytes(8) + b'{\"op\": \"done\"}'[:13]",
    ):
        boot = f"import socket, time; s = socket.socket(fileno=0); s.sendall({sent}); time.sleep(60)"
        monkeypatch.setattr(process, "_BOOT", boot)

        async def fetch(url: str) -> bytes:
            raise AssertionError

        with pytest.raises(ToolError, match="failed inside"):
            await render(Job("x", "html", "pptx"), fetch, seconds=20)


async def test_a_fault_of_ours_is_logged_and_not_shown(
    rendered: Render, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    worse = "import conjure_jupyter.rendering.child as c; c._do = lambda job, connection: 1 / 0; "
    monkeypatch.setattr(process, "_BOOT", process._BOOT.replace("from conjure", worse + "from conjure", 1))
    with pytest.raises(ToolError, match="failed inside") as caught:
        await rendered("x", "pptx")
    assert "ZeroDivisionError" not in str(caught.value)
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("module", "told"), [("pptx", 'pip install "conjure-jupyter[render]"'), ("weasyprint", "libpango")]
)
async def test_what_is_not_installed_is_told(
    rendered: Render, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: str, told: str
) -> None:
    fault = (
        "raise ModuleNotFoundError(name='pptx')"
        if module == "pptx"
        else "raise OSError('cannot load library')"
    )
    (tmp_path / f"{module}.py").write_text(fault)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ToolError) as caught:
        await rendered("x", "pptx" if module == "pptx" else "pdf")
    assert told in str(caught.value)


async def test_other_folders_that_tools_may_read_are_not_looked_into(work: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture())
    context = ExecutionContext(work, allowed_paths=(tmp_path,))
    executor = LocalExecutor()
    assert await executor.read(f"{tmp_path}/a.png", context)
    with pytest.raises(ToolError, match="outside"):
        await Assets(executor, context)(f"file://{tmp_path}/a.png")
