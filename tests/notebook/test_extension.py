from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from IPython.utils.capture import capture_output

from conjure_jupyter.notebook.extension import load_ipython_extension, unload_ipython_extension

from .conftest import Shell


@pytest.mark.parametrize("name", ["conjure", "conjure_jupyter"])
def test_both_names_load_and_print_nothing(bare: Shell, name: str) -> None:
    with capture_output() as captured:
        bare.ip.run_line_magic("load_ext", name)
    assert captured.stdout == captured.stderr == ""
    assert bare.ip.find_cell_magic("claude") is not None
    bare.ip.run_line_magic("unload_ext", name)


def test_unloading_leaves_the_shell_as_it_was(bare: Shell) -> None:
    def state() -> list[Any]:
        ip = bare.ip
        table = ip.magics_manager.magics
        return [
            sorted(table["line"]),
            sorted(table["cell"]),
            len(ip.configurables),
            len(ip.input_transformers_cleanup),
            len(ip.input_transformers_post),
            len(ip.Completer.custom_matchers),
            {name: len(found) for name, found in ip.events.callbacks.items()},
        ]

    before = state()
    load_ipython_extension(bare.ip)
    assert state() != before
    bare.value("%claude model")
    unload_ipython_extension(bare.ip)
    assert state() == before


def test_the_magic_of_another_package_is_kept_and_warned_about(bare: Shell) -> None:
    def claude(line: str, cell: str) -> str:
        return "theirs"

    bare.ip.register_magic_function(claude, "cell")
    with pytest.warns(UserWarning, match="Use %%conjure"):
        load_ipython_extension(bare.ip)
    assert bare.value("%%claude\nhello") == "theirs"
    assert "no language model" in bare.value("%%conjure\nhello").text
    unload_ipython_extension(bare.ip)
    assert bare.value("%%claude\nhello") == "theirs"


def test_loading_imports_nothing_heavy() -> None:
    code = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "conjure")
heavy = {"anthropic", "httpx", "yaml", "markdown_it", "genai_prices", "docker", "pydantic",
         "conjure_jupyter.conversation", "conjure_jupyter.skills", "conjure_jupyter.engine"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_settings_are_traits(shell: Shell) -> None:
    shell.value("%config ConjureMagics.model = 'claude-other'")
    shell.value("%config ConjureMagics.max_iterations = 3")
    shell.value("%config ConjureMagics.skill_paths = ['a', 'b']")
    settings = shell.ip.magics_manager.registry["ConjureMagics"].settings()
    assert (settings.model, settings.max_iterations, settings.skill_paths) == ("claude-other", 3, ("a", "b"))
    listed = shell.printed("%config ConjureMagics")
    assert "Most a turn may cost" in listed
    assert "'ask'" in listed


def test_given_settings_are_stronger_than_the_environment(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    magics = shell.ip.magics_manager.registry["ConjureMagics"]
    default = magics.settings().model
    monkeypatch.setenv("CONJURE_MODEL", "from-environment")
    assert magics.settings().model == "from-environment"
    shell.value(f"%config ConjureMagics.model = {default!r}")
    assert magics.settings().model == default


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("model = 5", "model"),
        ("max_iterations = 0", "max_iterations"),
        ("budget = 'lots'", "'lots' is neither dollars"),
        ("approve = 'maybe'", "'maybe'"),
        ("skill_paths = 'a'", "expected a list of texts"),
    ],
)
def test_a_wrong_setting_is_one_line_and_changes_nothing(
    shell: Shell, caplog: pytest.LogCaptureFixture, statement: str, said: str
) -> None:
    magics = shell.ip.magics_manager.registry["ConjureMagics"]
    before = magics.settings()
    shell.run(f"%config ConjureMagics.{statement}")
    assert said in caplog.messages[-1]
    assert "\n" not in caplog.messages[-1]
    assert magics.settings() == before
