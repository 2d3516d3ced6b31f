from __future__ import annotations

import asyncio
import sys
import threading
import time
import types
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.errors import ToolError
from conjure_jupyter.executors.contract import ExecutionContext, Executor
from conjure_jupyter.tools import Toolbox
from conjure_jupyter.tools.describe import describe
from conjure_jupyter.tools.inspection import InspectVariableTool, within
from conjure_jupyter.tools.variables import parse_path, resolve

from .conftest import call


async def look(namespace: Any, name: str | None = None, time_limit: float = 2.0) -> str:
    arguments = {} if name is None else {"name": name}
    result = await tools(namespace, time_limit).execute(call("inspect_variable", **arguments))
    return result.text


def tools(namespace: Any, time_limit: float = 2.0) -> Toolbox:
    executor: Any = None  # a look at variables needs none
    return Toolbox(
        executor,
        ExecutionContext(Path("/nowhere")),
        tools=[InspectVariableTool(time_limit)],
        namespace=lambda: namespace,
    )


@dataclass
class Config:
    model: str
    rate: float = 0.5


class Point(NamedTuple):
    x: int
    y: int


async def test_without_a_name_the_variables_are_listed() -> None:
    namespace = {
        "x": 3,
        "name": "short",
        "rows": [1, 2, 3],
        "df": pd.DataFrame({"a": [1, 2]}),
        "pd": pd,
        "helper": lambda: None,
        "Config": Config,
        "_hidden": 1,
        "In": [],
        "get_ipython": None,
    }
    text = await look(namespace)
    assert text.split("\n") == [
        "x: int = 3",
        "name: str, 5 characters = 'short'",
        "rows: list, 3 items",
        "df: pandas.DataFrame, shape (2, 1)",
        "functions and classes: helper, Config",
        "modules: pd",
    ]


async def test_an_empty_notebook_says_so() -> None:
    assert "no variables yet" in await look({"_": 1})


async def test_a_data_frame_shows_shape_types_and_head() -> None:
    frame = pd.DataFrame({"price": np.arange(1_000) / 2, "name": ["n"] * 1_000})
    text = await look({"df": frame}, "df")
    assert "1,000 rows x 2 columns" in text
    assert "  price: float64" in text
    assert len(text) < 1_500
    assert "1,000 values, dtype float64" in await look({"df": frame}, "df['price']")
    assert "price" in await look({"df": frame}, "df.columns")


async def test_wide_and_odd_frames_are_bounded() -> None:
    wide = pd.DataFrame(np.zeros((3, 5_000)))
    assert len(await look({"df": wide}, "df")) < 12_000
    odd = pd.DataFrame([["x" * 100_000]], columns=["c" * 50])
    assert len(await look({"df": odd}, "df")) < 2_000
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    assert "a: int64" in await look({"df": twice}, "df")


async def test_an_array_shows_shape_and_a_part() -> None:
    text = await look({"a": np.zeros((1_000, 1_000))}, "a")
    assert "shape (1000, 1000), dtype float64" in text
    assert len(text) < 1_500


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"a": 1, "b": [1, 2]}, "{'a': 1, 'b': [1, 2]}"),
        ((1,), "(1,)"),
        (set(), "set()"),
        (None, "None"),
        (b"bytes", "b'bytes'"),
        (Config("m"), "Config(model='m', rate=0.5)"),
        (Point(1, 2), "Point(x=1, y=2)"),
        pytest.param(10**5_000, "a whole number of 16,610 bits", id="large"),
        ([[[[[1]]]]], "[[[[… 1 items]]]]"),
        (OrderedDict(a=1), "OrderedDict"),
    ],
)
async def test_values_are_previewed(value: Any, shown: str) -> None:
    assert shown in await look({"v": value}, "v")


async def test_large_values_cost_no_more_than_small_ones() -> None:
    for value in (list(range(10**6)), "x" * 10**7, {n: n for n in range(10**5)}, [["x" * 10**5] * 100] * 100):
        text = await look({"v": value}, "v")
        assert len(text) < 10_000
        assert "more" in text or "in all" in text or "…" in text


async def test_a_list_that_holds_itself_ends() -> None:
    endless: list[Any] = [1]
    endless.append(endless)
    assert "…" in await look({"v": endless}, "v")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("config.model", "m"),
        ("rows[0]", "first"),
        ("rows[-1]['a']", "deep"),
        (" table [ 'k' ] ", "v"),
        ('table["k"]', "v"),
        ("point[1]", 2),
        ("slotted.x", 7),
        ("Config.rate", 0.5),
        ("module.value", 5),
    ],
)
def test_paths_lead_to_attributes_and_items(path: str, value: Any) -> None:
    class Slotted:
        __slots__ = ("x",)
        x: int

    slotted = Slotted()
    slotted.x = 7
    module = types.ModuleType("m")
    module.value = 5  # type: ignore[attr-defined]
    namespace = {
        "config": Config("m"),
        "Config": Config,
        "rows": ["first", {"a": "deep"}],
        "table": {"k": "v"},
        "point": Point(1, 2),
        "slotted": slotted,
        "module": module,
    }
    assert resolve(namespace, path) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "a+b",
        "f()",
        "a.b()",
        "a[b]",
        "a[0:1]",
        "a[f'{x}']",
        "a['x'",
        "a..b",
        "a.",
        "a b",
        "a; import os",
        "__import__('os')",
        "a[1.5]",
        "a['x\ny']",
        "a" + ".b" * 40,
        "a[" + "9" * 30 + "]",
    ],
)
def test_expressions_are_not_evaluated(text: str) -> None:
    with pytest.raises(ToolError, match="is no variable"):
        parse_path(text)


@given(st.text(max_size=30) | st.text(st.sampled_from("ab.['\"]0\\ x-"), max_size=20))
def test_any_text_is_a_path_or_told(text: str) -> None:
    try:
        name, _ = parse_path(text)
    except ToolError:
        return
    assert name.isidentifier()


class Trap:
    """Runs code wherever Python lets an object run it."""

    touched: list[str] = []  # noqa: RUF012  what was run

    @property
    def computed(self) -> int:
        self.touched.append("property")
        return 1

    def __getattr__(self, name: str) -> Any:
        self.touched.append(f"getattr {name}")
        raise AttributeError(name)

    def __getitem__(self, key: object) -> Any:
        self.touched.append("getitem")

    def __len__(self) -> int:
        self.touched.append("len")
        return 1

    def __iter__(self) -> Any:
        self.touched.append("iter")
        return iter([])

    def __eq__(self, other: object) -> bool:
        self.touched.append("eq")
        return True

    def __hash__(self) -> int:
        self.touched.append("hash")
        return 1


async def test_no_code_of_the_users_runs_on_the_way() -> None:
    Trap.touched.clear()
    namespace = {"t": Trap()}
    assert "is computed" in await look(namespace, "t.computed")
    assert "has no attribute" in await look(namespace, "t.missing")
    assert "would run code" in await look(namespace, "t['a']")
    await look(namespace, "t")
    await look(namespace)
    assert Trap.touched == []


async def test_subclasses_of_builtins_do_not_run_their_own_access() -> None:
    class Mine(dict[str, int]):
        def __getitem__(self, key: str) -> int:
            raise AssertionError("was run")

    assert "int\n1" in await look({"d": Mine(a=1)}, "d['a']")


async def test_a_look_alike_of_pandas_is_not_trusted() -> None:
    class DataFrame:
        __module__ = "pandas"

        @property
        def shape(self) -> Any:
            raise AssertionError("was run")

    assert "is computed" in await look({"df": DataFrame()}, "df.shape")


class Raises:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Exits:
    def __repr__(self) -> str:
        sys.exit(3)


class Huge:
    def __repr__(self) -> str:
        return "x" * 10**7


class NotText:
    def __repr__(self) -> str:
        return 3  # type: ignore[return-value]


class Loops:
    started = threading.Event()

    def __repr__(self) -> str:
        self.started.set()
        while True:
            time.sleep(0.01)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (Raises(), "its repr raised RuntimeError"),
        ([Raises()], "its repr raised RuntimeError"),
        (Exits(), "cannot be described: SystemExit"),
        (Huge(), "characters left out"),
        (NotText(), "its repr raised TypeError"),
    ],
)
async def test_a_hostile_repr_is_survived(value: Any, says: str) -> None:
    text = await look({"v": value}, "v")
    assert says in text
    assert len(text) < 5_000


async def test_a_repr_that_never_ends_is_given_up_and_stopped() -> None:
    text = await look({"v": Loops()}, "v", time_limit=0.2)
    assert Loops.started.is_set()
    assert "given up" in text
    deadline = time.monotonic() + 5
    while any(thread.name == "conjure-inspect" for thread in threading.enumerate()):
        assert time.monotonic() < deadline, "the thread still runs"
        await asyncio.sleep(0.02)


async def test_a_repr_that_prints_does_no_harm(capsys: pytest.CaptureFixture[str]) -> None:
    class Prints:
        def __repr__(self) -> str:
            print("noise")
            return "<quiet>"

    assert "<quiet>" in await look({"v": Prints()}, "v")


async def test_an_unknown_variable_suggests_near_ones() -> None:
    assert "Did you mean frame" in await look({"frame": 1}, "farme")


@pytest.mark.parametrize(
    ("path", "says"), [("d['x']", "keys: 'a', 1"), ("r[9]", "it has 2 items"), ("r['a']", "TypeError")]
)
async def test_a_missing_item_tells_what_there_is(path: str, says: str) -> None:
    assert says in await look({"d": {"a": 1, 1: 2}, "r": [1, 2]}, path)


async def test_functions_and_classes_show_how_they_are_called() -> None:
    def area(width: float, height: float = 1.0) -> float:
        """Surface of a rectangle."""
        return width * height

    text = await look({"area": area}, "area")
    assert "function area(width: 'float', height: 'float' = 1.0)" in text
    assert "Surface of a rectangle." in text
    assert "class Config(model" in await look({"Config": Config}, "Config")
    assert describe(types, "types").startswith("types: module types")


async def test_secrets_in_variables_are_redacted() -> None:
    assert "Ab1Ab1" not in await look({"key": "sk-ant-api03-" + "Ab1" * 20}, "key")
    assert "Ab1Ab1" not in await look({"key": "sk-ant-api03-" + "Ab1" * 10})


async def test_a_namespace_that_changes_meanwhile_is_survived() -> None:
    namespace: dict[str, Any] = {f"v{n}": n for n in range(500)}
    stop = threading.Event()

    def change() -> None:
        number = 0
        while not stop.is_set():
            namespace[f"new{number % 50}"] = number
            namespace.pop(f"new{(number + 25) % 50}", None)
            number += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(20):
            assert "v0: int = 0" in await look(namespace)
    finally:
        stop.set()
        thread.join()


async def test_without_a_kernel_it_says_so(executor: Executor, context: ExecutionContext) -> None:
    toolbox = Toolbox(executor, context, tools=[InspectVariableTool()])
    result = await toolbox.execute(call("inspect_variable"))
    assert result.is_error
    assert "no notebook kernel" in result.text


async def test_work_within_its_time_gives_its_text() -> None:
    assert await within(2, lambda: "done") == "done"
