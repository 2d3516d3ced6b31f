"""One settings object: defaults, environment, changes."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import pytest

from conjure_jupyter.errors import SettingsError
from conjure_jupyter.settings import Budget, Settings, parse_budget


def test_every_setting_says_what_it_is() -> None:
    assert all(spec.metadata["help"].endswith(".") for spec in dataclasses.fields(Settings))


def test_the_environment_is_read() -> None:
    environ = {
        "CONJURE_MODEL": "claude-opus-5-5",
        "CONJURE_TIMEOUT": "2.5",
        "CONJURE_MAX_ITERATIONS": "3",
        "CONJURE_INSPECT_VARIABLES": "off",
        "CONJURE_SKILL_PATHS": f"a{os.pathsep}b c",
        "CONJURE_APPROVAL_RULES": "view, bash_tool(git status)",
        "CONJURE_SYSTEM": "",
    }
    settings = Settings.from_env(environ)
    assert settings.model == "claude-opus-5-5"
    assert settings.timeout == 2.5
    assert settings.max_iterations == 3
    assert settings.inspect_variables is False
    assert settings.skill_paths == ("a", "b c")
    assert settings.approval_rules == ("view", "bash_tool(git status)")
    assert settings.system is None


def test_changes_are_stronger_than_the_environment() -> None:
    assert Settings.from_env({"CONJURE_MODEL": "a"}, model="b").model == "b"


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"CONJURE_TIMEOUT": "soon"}, "timeout: 'soon' is not a number"),
        ({"CONJURE_MAX_ITERATIONS": "2.5"}, "not a whole number"),
        ({"CONJURE_INSPECT_VARIABLES": "maybe"}, "true or false"),
        ({"CONJURE_SANDBOX": "mars"}, "not one of off, auto"),
        ({"CONJURE_BUDGET": "much"}, "neither dollars"),
    ],
)
def test_a_wrong_variable_is_told(environ: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Settings.from_env(environ)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"modle": "x"}, "did you mean 'model'"),
        ({"model": 3}, "expected text"),
        ({"max_iterations": 0}, "less than 1"),
        ({"max_iterations": True}, "whole number"),
        ({"timeout": float("nan")}, "less than"),
        ({"timeout": float("inf")}, "less than"),
        ({"skill_paths": "one"}, "list of texts"),
        ({"approve": "always"}, "not one of ask, auto, deny"),
    ],
)
def test_a_wrong_change_is_told(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Settings().with_(**changes)


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("0.50", Budget(usd=0.5)),
        ("$2", Budget(usd=2.0)),
        ("1.5 USD", Budget(usd=1.5)),
        ("20000 tokens", Budget(tokens=20_000)),
        ("20k tokens", Budget(tokens=20_000)),
        ("1.5M tok", Budget(tokens=1_500_000)),
        (None, None),
    ],
)
def test_budgets(text: str | None, budget: Budget | None) -> None:
    assert parse_budget(text) == budget


@pytest.mark.parametrize("text", ["", "-1", "0", "0 tokens", "1e3", "5k", "five"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(SettingsError):
        parse_budget(text)
