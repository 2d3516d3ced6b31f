"""Which part may import which, and what importing the package must not load."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "conjure_jupyter"

#: The parts from bottom to top; each imports only from those before it. An import inside a function
#: counts as well: it delays the loading, not the dependence.
ORDER = [
    "_version",
    "errors",
    "settings",
    "wording",
    "formats",
    "fileref",
    "types",
    "telemetry",
    "paths",
    "redaction",
    "engine",
    "skills",
    "storage",
    "timeline",
    "artifacts",
    "executors",
    "rendering",
    "tools",
    "prompt",
    "clients",
    "places",
    "conversation",
    "testing",
    "notebook",
    "cli",
]

#: Loaded at first use: together they take longer than everything else the package does.
HEAVY = [
    "IPython",
    "PIL",
    "anthropic",
    "anywidget",
    "docker",
    "genai_prices",
    "ipywidgets",
    "nbformat",
    "obstore",
    "pandas",
    "pptx",
    "puremagic",
    "pypdfium2",
    "tinyhtml5",
    "weasyprint",
]


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_parts(source: str, path: Path) -> Iterator[tuple[int, str]]:
    """Line and part of every import of the package's own modules; ``""`` is the package itself."""
    here = path.relative_to(PACKAGE.parent).with_suffix("").parts
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [*here[: -node.level]] if node.level else []
            base += node.module.split(".") if node.module else []
            targets = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for target in targets:
            if target[0] == PACKAGE.name:
                known = len(target) > 1 and target[1] in ORDER
                yield node.lineno, target[1] if known else ""


def violations(source: str, path: Path) -> list[str]:
    own = part_of(path)
    below = ORDER[: ORDER.index(own) + 1]
    return [
        f"{path.name}:{line}: {own} imports {part or 'the package itself'}"
        for line, part in imported_parts(source, path)
        if part not in below
    ]


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_imports_come_from_below(path: Path) -> None:
    assert part_of(path) in ORDER, "a new part needs its place in ORDER"
    assert violations(path.read_text(encoding="utf-8"), path) == []


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("from .contract import Executor", True),
        ("from ..errors import ToolError", True),
        ("from conjure_jupyter.paths import open_beneath", True),
        ("from .. import _version", True),
        ("import ast, conjure_jupyter.tools", False),
        ("from ..clients.base import Client", False),
        ("from .. import Session", False),
        ("def f():\n    from ..conversation import Session", False),
    ],
)
def test_the_rule_tells_good_from_bad(statement: str, allowed: bool) -> None:
    assert (violations(statement, PACKAGE / "executors" / "local.py") == []) is allowed


@pytest.mark.parametrize("name", ["conjure_jupyter", "conjure"])
def test_importing_the_package_loads_nothing_heavy(name: str) -> None:
    code = f"import sys, {name}; print(*{{m.partition('.')[0] for m in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(set(HEAVY) & set(loaded.stdout.split())) == []
