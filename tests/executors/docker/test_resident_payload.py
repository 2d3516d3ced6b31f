"""What is sent into a container: it needs nothing that is not sent along, and an old Python is enough."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from conjure_jupyter.executors.docker.resident.boot import BOOT, OLDEST
from conjure_jupyter.executors.docker.resident.payload import files, payload

SOURCES = files()
#: What came with 3.11 and later.
NEWER = {
    *("asyncio.timeout", "asyncio.timeout_at", "asyncio.Barrier", "asyncio.Runner", "asyncio.TaskGroup"),
    *("TaskGroup", "Runner", "BrokenBarrierError", "uncancel", "cancelling", "eager_task_factory"),
    *(
        "ExceptionGroup",
        "BaseExceptionGroup",
        "add_note",
        "tomllib",
        "file_digest",
        "contextlib.chdir",
        "StrEnum",
    ),
    *("ReprEnum", "EnumType", "global_enum", "UTC", "Self", "Never", "LiteralString", "assert_never"),
    *("assert_type", "reveal_type", "NotRequired", "Required", "Unpack", "TypeVarTuple", "override"),
    *("dataclass_transform", "get_protocol_members", "batched", "cbrt", "exp2", "sumprod", "is_junction"),
    *("unshare", "setns", "process_cpu_count", "getLevelNamesMapping", "getHandlerByName"),
}


def uses(tree: ast.AST) -> Iterator[str]:
    """Every name that is read, those of modules with the module's as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
            if isinstance(node.value, ast.Name):
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_an_old_python_is_enough(name: str) -> None:
    tree = ast.parse(SOURCES[name], feature_version=OLDEST)
    assert NEWER & set(uses(tree)) == set()


def test_what_is_newer_is_seen() -> None:
    tree = ast.parse("async def f():\n    async with asyncio.timeout(1): pass\nfrom typing import Self")
    assert NEWER & set(uses(tree)) == {"asyncio.timeout", "Self"}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_nothing_is_imported_that_is_not_there(name: str) -> None:
    here = PurePosixPath(name).parts[:-1]
    for node in ast.walk(ast.parse(SOURCES[name])):
        if isinstance(node, ast.Import):
            assert {alias.name.partition(".")[0] for alias in node.names} <= sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            assert (node.module or "").partition(".")[0] in sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom):
            base = "/".join(here[: len(here) - node.level + 1])
            targets = [node.module] if node.module else [alias.name for alias in node.names]
            for target in targets:
                path = f"{base}/{target.replace('.', '/')}"
                assert {f"{path}.py", f"{path}/__init__.py"} & set(SOURCES), f"{name} imports {path}"


def test_the_first_lines_speak_any_python_3() -> None:
    ast.parse(BOOT, feature_version=(3, 4))
    assert "f'" not in BOOT
    assert 'f"' not in BOOT


def test_it_is_built_once_and_small() -> None:
    assert payload() is payload()
    assert int.from_bytes(payload()[:4], "big") == len(payload()) - 4 < 100_000
