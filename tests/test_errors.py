"""The error tree: as drawn, typed, and in the field's words."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from conjure_jupyter import errors
from conjure_jupyter.errors import (
    APIError,
    BudgetExceededError,
    ConjureError,
    ExecutionTimeoutError,
    MaxIterationsError,
    PathNotFoundError,
    RateLimitError,
    SkillNotFoundError,
)

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, ConjureError)
}

#: The specification's identifiers (section 12.1).
SPECIFIED = {
    "skill_not_found",
    "invalid_frontmatter",
    "invalid_skill_structure",
    "file_not_found",
    "permission_denied",
    "execution_failed",
    "execution_timeout",
    "docker_unavailable",
    "container_error",
    "api_error",
    "max_iterations_reached",
}


def drawn() -> dict[str, str]:
    """Each class and its base, from the tree in the module's docstring."""
    bases: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"([ │├└─]*)(\w+Error)\b", line.removeprefix("    "))
        if match:
            depth = len(match[1]) // 4
            path = [*path[:depth], match[2]]
            bases[match[2]] = path[depth - 1] if depth else ""
    return bases


def test_the_drawing_is_the_tree() -> None:
    real = {
        name: next((base.__name__ for base in value.__bases__ if issubclass(base, ConjureError)), "")
        for name, value in CLASSES.items()
    }
    assert drawn() == real


def test_every_name_ends_in_error() -> None:
    assert all(name.endswith("Error") for name in CLASSES)


def test_the_specified_kinds_are_all_there() -> None:
    assert {value.type for value in CLASSES.values()} >= SPECIFIED


def test_kinds_are_told_apart() -> None:
    own = [vars(value)["type"] for value in CLASSES.values() if "type" in vars(value)]
    assert len(own) == len(set(own))


@pytest.mark.parametrize(
    ("error", "details"),
    [
        (SkillNotFoundError("pdf", ("csv",)), {"name": "pdf", "known": ("csv",)}),
        (PathNotFoundError("a.txt"), {"path": "a.txt", "reason": "no such file or folder"}),
        (
            ExecutionTimeoutError("sleep 9", 2.0, "out"),
            {"command": "sleep 9", "timeout": 2.0, "output": "out"},
        ),
        (MaxIterationsError(3, [{"role": "user", "content": "x"}]), None),
        (BudgetExceededError("$1", "$0.99"), None),
        (RateLimitError("slow", status=429, retry_after=3.0), None),
    ],
)
def test_attributes_are_in_the_details(error: ConjureError, details: dict[str, object] | None) -> None:
    assert str(error) == error.message
    assert error.message
    assert "message" not in error.details
    if details is not None:
        assert error.details == details


def test_the_standard_library_s_errors_catch_ours() -> None:
    assert isinstance(PathNotFoundError("x"), FileNotFoundError)
    assert isinstance(ExecutionTimeoutError("x", 1.0), TimeoutError)
    assert str(errors.PermissionDeniedError("/etc", "outside")) == "/etc: outside"


def test_only_passing_failures_are_tried_again() -> None:
    again = {name for name, value in CLASSES.items() if issubclass(value, APIError) and value.retryable}
    assert again == {
        "RateLimitError",
        "OverloadedError",
        "ServerError",
        "APITimeoutError",
        "APIConnectionError",
        "StreamInterruptedError",
    }


def test_a_path_is_kept_as_a_path() -> None:
    assert errors.InvalidFrontmatterError(Path("SKILL.md"), "no", line=3).path == Path("SKILL.md")
