"""``conjure demo``: the quickstart notebook, run on the spot and told in the terminal.

The notebook, its skill and its data are copied to a visible folder first, because JupyterLab serves no
hidden ones and because the user should be able to change them and run them again.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine import engine
from ..errors import ConjureError, SettingsError
from ..paths import write_atomic
from ..wording import size_text
from . import render
from .visible import bounded, visible

if TYPE_CHECKING:
    from nbformat import NotebookNode

NOTEBOOK = "01_quickstart.ipynb"

#: The tutorials that follow it, where they are shipped, and what all of them need.
COMPANIONS = ("02_artifacts.ipynb", "03_docker.ipynb", "data", "skills")

#: Seconds one cell may take.
CELL_TIMEOUT = 600

#: Characters of one answer that are printed.
ANSWER = 8_000

_NEEDED = ("ipykernel", "nbclient", "nbformat")

#: Nobody sits before a notebook that runs by itself, so that nobody could be asked about a call.
_APPROVE = {"CONJURE_APPROVE": "auto"}

Say = Callable[[str], None]


def main(argv: Sequence[str] | None = None) -> int:
    """Prepare the demo's folder and, unless told not to, run the notebook and say what it did."""
    parser = argparse.ArgumentParser(prog="conjure demo", description=(main.__doc__ or "").strip())
    parser.add_argument("folder", nargs="?", default="demo", help="folder to make (default: ./demo)")
    parser.add_argument("--no-run", action="store_true", help="only prepare the folder")
    options = parser.parse_args(argv)
    folder = Path(options.folder)
    say = _say
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing and not options.no_run:
        say(f"The demo runs a notebook and lacks {', '.join(missing)}: pip install 'conjure-jupyter[demo]'")
        return 1
    try:
        prepare(folder, say)
    except OSError as error:
        say(f"The demo's folder cannot be made: {error}")
        return 1
    if options.no_run:
        return 0
    return run(folder / NOTEBOOK, say)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def shipped() -> Path:
    """The folder of the quickstart: in the package, or in the repository it is imported from."""
    package = Path(__file__).resolve().parent
    inside, repository = package / "quickstart", package.parents[1] / "notebooks"
    return repository if (repository / NOTEBOOK).is_file() else inside


def prepare(folder: Path, say: Say) -> None:
    """Copy the quickstart to ``folder``; a file there that differs from the shipped one stays as it is.

    Raises:
        OSError: the folder cannot be written.
    """
    source = shipped()
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(_files(source)):
        target = folder / path.relative_to(source)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        elif not _same(path, target):
            say(f"{target} differs from the shipped one and stays; delete it to get that again.")


def _files(source: Path) -> Iterator[Path]:
    yield source / NOTEBOOK
    for name in COMPANIONS:
        for path in (source / name, *(source / name).rglob("*")):
            parts = path.relative_to(source).parts
            if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in parts):
                yield path


def _same(one: Path, other: Path) -> bool:
    """Whether two files are equal; of notebooks only the cells' sources count, which running keeps."""
    if one.suffix != ".ipynb":
        return one.read_bytes() == other.read_bytes()
    try:
        return _sources(one) == _sources(other)
    except (ValueError, KeyError, TypeError):
        return False


def _sources(path: Path) -> list[tuple[str, str]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in cells]


def run(path: Path, say: Say) -> int:
    """Run the notebook at ``path``, save it with its outputs, and say what it did.

    Returns:
        0, or 1 when a cell failed.
    """
    import nbformat

    try:
        say(f"Running {path} with {_who_answers()} …")
    except ConjureError as error:
        say(str(error))
        return 1
    notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    failure = _execute(notebook, path.parent)
    write_atomic(path, nbformat.writes(notebook).encode(), mode=0o644)
    for data in _replies(notebook):
        _tell(data, path.parent, say)
    say("")
    if failure:
        say(f"It did not run to its end: {visible(failure)}")
    say(f"The notebook with its outputs: {path}")
    say(f"Open it: {_jupyter()} lab {path}")
    return 1 if failure else 0


def _jupyter() -> str:
    """The command to type: this environment's, by its path unless it is active."""
    own = Path(sys.executable).with_name("jupyter")
    found = shutil.which("jupyter")
    if (found and Path(found) == own) or not own.exists():
        return "jupyter"
    return str(own.relative_to(Path.cwd())) if own.is_relative_to(Path.cwd()) else str(own)


def _who_answers() -> str:
    from ..clients.credentials import find_credential, own_base_url
    from ..settings import Settings

    settings = Settings.from_env()
    found = find_credential() or ("ANTHROPIC_BASE_URL" if own_base_url() else None)
    if settings.client == "offline":
        return "the offline client, as CONJURE_CLIENT asks"
    if found:
        told = "" if os.environ.keys() & _APPROVE.keys() else "; its tool calls run without asking"
        return f"Claude ({settings.model}, credential from {found}{told})"
    if settings.client == "anthropic":
        raise SettingsError(
            "client", "CONJURE_CLIENT=anthropic, and Anthropic's SDK would find no credential"
        )
    return "the offline client (no credential for Claude was found)"


def _execute(notebook: NotebookNode, folder: Path) -> str | None:
    """Run all cells on a kernel of this very environment; one line on the first failure, if any."""
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        km=AsyncKernelManager(kernel_spec_manager=_own_kernel()),
        extra_arguments=["--log-level=40"],  # no warnings of the kernel's own between our lines
        resources={"metadata": {"path": str(folder.resolve())}},
    )
    try:
        # On the engine's thread nbclient leaves Ctrl-C alone: it comes as KeyboardInterrupt, here.
        engine().run(client.async_execute(cleanup_kc=True))
    except CellExecutionError as error:
        return f"{error.ename}: {error.evalue}".strip(": ")
    except CellTimeoutError:
        return f"it took longer than {CELL_TIMEOUT} s"
    except DeadKernelError:
        return "the kernel died"
    except KeyboardInterrupt:
        return "interrupted"
    return None


def _own_kernel() -> Any:
    """A kernel spec manager that always gives this interpreter.

    A ``python3`` kernel installed for the user may belong to another environment, without this package.
    """
    from ipykernel.kernelspec import RESOURCES, get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

    class OwnKernel(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:  # noqa: ARG002  every name means this one
            spec = {**get_kernel_dict(), "env": _APPROVE if _APPROVE.keys() - os.environ else {}}
            return KernelSpec(resource_dir=RESOURCES, **spec)

    return OwnKernel()


def _replies(notebook: NotebookNode) -> Iterator[dict[str, Any]]:
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {}).get(render.MIME)
            if data:
                yield dict(data)


def _tell(data: dict[str, Any], folder: Path, say: Say) -> None:
    """Print one turn from its JSON record."""
    say("")
    for call in data["tool_calls"]:
        say(f"  {'✗' if call['is_error'] else '✓'} {call['name']}: {call['summary']}")
    say("")
    say(bounded(data["text"], ANSWER).strip())
    for file in data["files"]:
        say(f"  made {_place(folder, file['path'])} ({size_text(file['size'])})")
    if data["error"]:
        say(f"  {visible(data['error'])}")


def _place(folder: Path, path: str) -> str:
    """Where the file lies: in the newest session of the demo's folder that has it."""
    found = [place for place in folder.glob(f".conjure/sessions/*/work/{path}") if place.is_file()]
    return str(max(found, key=lambda place: place.stat().st_mtime)) if found else path
