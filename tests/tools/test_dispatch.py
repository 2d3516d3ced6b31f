from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.errors import ContainerError, ToolError
from conjure_jupyter.executors.contract import ExecutionContext, Executor
from conjure_jupyter.tools import Outcome, Toolbox, ToolEnv
from conjure_jupyter.types import ToolCall, ToolResult

from .conftest import call


class Probe:
    """A tool that does what its test says."""

    name = "probe"
    read_only = True
    path_fields = ("key",)
    read_fields = ()
    artifact_fields = ()
    definition = {  # noqa: RUF012  shared on purpose
        "name": "probe",
        "description": "",
        "input_schema": {"type": "object", "properties": {"key": {"type": "string"}}, "required": []},
    }

    def __init__(self, body: Any) -> None:
        self.body = body

    async def run(self, arguments: dict[str, Any], env: ToolEnv) -> Outcome:
        outcome: Outcome = await self.body(arguments)
        return outcome


def probes(executor: Executor, work: Path, body: Any, **options: Any) -> Toolbox:
    return Toolbox(executor, ExecutionContext(work), tools=[Probe(body)], **options)


async def test_the_definitions_are_the_tools(executor: Executor, context: ExecutionContext) -> None:
    names = [tool["name"] for tool in Toolbox(executor, context, namespace=dict).definitions]
    assert names == ["view", "bash_tool", "create_file", "str_replace", "inspect_variable"]
    assert "inspect_variable" not in Toolbox(executor, context).tools


async def test_an_unknown_tool_is_answered_with_those_that_are(toolbox: Toolbox) -> None:
    result = await toolbox.execute(call("rm_rf"))
    assert result.is_error
    assert "view, bash_tool, create_file, str_replace" in result.text


async def test_a_wrong_input_is_an_error_result(toolbox: Toolbox) -> None:
    result = await toolbox.execute(ToolCall("t", "view", {}))
    assert (result.is_error, result.tool_use_id) == (True, "t")
    for wrong in (None, "path", [1]):
        assert (await toolbox.execute(ToolCall("t", "view", wrong))).is_error  # type: ignore[arg-type]


async def test_a_tool_error_goes_back_to_claude(executor: Executor, work: Path) -> None:
    async def body(_: Any) -> Outcome:
        raise ToolError("say this")

    result = await probes(executor, work, body).execute(call("probe"))
    assert (result.content, result.is_error) == ("say this", True)


async def test_a_fault_of_ours_is_logged_and_told_without_its_inside(
    executor: Executor, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(_: Any) -> Outcome:
        raise KeyError("/home/me/secret")

    with caplog.at_level(logging.ERROR, "conjure_jupyter"):
        result = await probes(executor, work, body).execute(call("probe"))
    assert result.is_error
    assert "secret" not in result.text
    assert "KeyError" in result.text
    assert "/home/me/secret" in str(caplog.records[0].exc_info)


async def test_a_fault_of_the_place_is_raised_and_ends_the_others(executor: Executor, work: Path) -> None:
    ended: list[str] = []

    async def body(arguments: Any) -> Outcome:
        if arguments["key"] == "bad":
            raise ContainerError("gone")
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(arguments["key"])
        return Outcome("")

    calls = [call("probe", key="a"), call("probe", key="bad"), call("probe", key="b")]
    with pytest.raises(ContainerError):
        await probes(executor, work, body).execute_all(calls)
    assert sorted(ended) == ["a", "b"]


async def test_results_stand_in_the_order_of_the_calls(executor: Executor, work: Path) -> None:
    gate = asyncio.Event()
    order: list[str] = []

    async def body(arguments: Any) -> Outcome:
        if arguments["key"] == "0":
            await gate.wait()
        if arguments["key"] == "4":
            gate.set()
        return Outcome(arguments["key"])

    calls = [call("probe", str(number), key=str(number)) for number in range(5)]
    results = await probes(executor, work, body).execute_all(
        calls, on_finish=lambda call, result: order.append(call.id)
    )
    assert [result.text for result in results] == ["0", "1", "2", "3", "4"]
    assert [result.tool_use_id for result in results] == ["0", "1", "2", "3", "4"]
    assert order.index("0") > order.index("4")  # they ran at the same time


async def test_calls_on_one_path_keep_their_order(toolbox: Toolbox, work: Path) -> None:
    steps = "".join(f"step {number}\n" for number in range(20))
    (work / "x").mkdir()
    calls = [call("create_file", "c", path="a.txt", file_text=steps)]
    for number in range(20):
        path = ("a.txt", "./a.txt", str(work / "x/../a.txt"))[number % 3]
        calls.append(
            call(
                "str_replace", f"r{number}", path=path, old_str=f"step {number}\n", new_str=f"done {number}\n"
            )
        )
    calls.append(call("view", "v", path="a.txt"))
    results = await toolbox.execute_all(calls)
    assert [result.text for result in results if result.is_error] == []
    assert "step" not in (work / "a.txt").read_text()
    assert results[-1].text.count("done") == 20


async def test_commands_run_at_the_same_time(toolbox: Toolbox, work: Path) -> None:
    # Each waits for the file that the other makes.
    wait = "for i in $(seq 100); do test -e {} && exit 0; sleep 0.05; done; exit 1"
    results = await toolbox.execute_all(
        [
            call("bash_tool", "a", command="touch a; " + wait.format("b")),
            call("bash_tool", "b", command="touch b; " + wait.format("a")),
        ]
    )
    assert [result.is_error for result in results] == [False, False]


async def test_cancelling_ends_every_call_and_keeps_what_was_done(toolbox: Toolbox, work: Path) -> None:
    finished: list[str] = []
    started = asyncio.Event()

    def on_finish(call: ToolCall, result: ToolResult) -> None:
        finished.append(call.id)
        started.set()

    calls = [
        call("bash_tool", "slow", command="sleep 30; touch late"),
        call("bash_tool", "quick", command="true"),
    ]
    task = asyncio.ensure_future(toolbox.execute_all(calls, on_finish=on_finish))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert finished == ["quick"]


async def test_what_is_heard_names_its_call(toolbox: Toolbox) -> None:
    heard: dict[str, str] = {}
    begun: list[str] = []

    def on_output(call: ToolCall, text: str) -> None:
        heard[call.id] = heard.get(call.id, "") + text

    calls = [call("bash_tool", name, command=f"echo {name}") for name in ("a", "b")]
    await toolbox.execute_all(calls, on_start=lambda call: begun.append(call.id), on_output=on_output)
    assert heard == {"a": "a\n", "b": "b\n"}
    assert sorted(begun) == ["a", "b"]


async def test_secrets_do_not_reach_claude(
    toolbox: Toolbox, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", "an-odd-value-of-mine")
    (work / "a").write_text("x = an-odd-value-of-mine\nkey sk-ant-api03-" + "Ab1" * 20 + "\n")
    for result in (
        await toolbox.execute(call("view", path="a")),
        await toolbox.execute(call("bash_tool", command="cat a")),
        await toolbox.execute(call("str_replace", path="a", old_str="x =", new_str="y =")),
    ):
        told = result.text + str(result.meta)
        assert "an-odd-value" not in told
        assert "Ab1Ab1" not in told
        assert "[redacted]" in told


async def test_every_text_block_is_bounded_and_images_stay(executor: Executor, work: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 5_000}}

    async def body(_: Any) -> Outcome:
        return Outcome([{"type": "text", "text": "x\n" * 2_000}, image])

    result = await probes(executor, work, body, output_limit=1_000).execute(call("probe"))
    assert isinstance(result.content, list)
    assert len(result.content[0]["text"]) < 1_100
    assert "characters left out" in result.content[0]["text"]
    assert result.content[1] == image
    assert result.meta["truncated"] == pytest.approx(3_000, abs=10)


async def test_a_result_can_always_be_sent(toolbox: Toolbox, work: Path) -> None:
    (work / "a").write_bytes(b"a" * 9_000 + b"\xff end")
    result = await toolbox.execute(call("str_replace", path="a", old_str="end", new_str="new"))
    (result.text + result.meta["diff"]).encode()


async def test_locks_are_let_go(toolbox: Toolbox) -> None:
    await toolbox.execute_all([call("view", path=f"f{number}") for number in range(50)])
    assert len(toolbox._locks) == 0


class Hooks:
    """Notes what its owner is told of calls."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.results: dict[str, ToolResult] = {}
        self.gate: asyncio.Event | None = None
        self.reached = asyncio.Event()

    async def before(self, call: ToolCall) -> None:
        self.told.append(f"before {call.id}")

    async def after(self, call: ToolCall, result: ToolResult) -> None:
        self.reached.set()
        if self.gate is not None:
            await self.gate.wait()
        self.results[call.id] = result
        self.told.append(f"after {call.id}")


def hooked(executor: Executor, work: Path, body: Any, hooks: Any) -> Toolbox:
    return probes(executor, work, body, before=hooks.before, after=hooks.after)


async def test_hooks_stand_around_a_call(executor: Executor, work: Path) -> None:
    hooks = Hooks()

    async def body(_: Any) -> Outcome:
        hooks.told.append("run")
        return Outcome("fine")

    await hooked(executor, work, body, hooks).execute_all(
        [call("probe", "a")],
        on_start=lambda call: hooks.told.append("start"),
        on_finish=lambda call, result: hooks.told.append("finish"),
    )
    assert hooks.told == ["start", "before a", "run", "after a", "finish"]
    assert hooks.results["a"].text == "fine"
    await hooked(executor, work, body, hooks).execute(call("probe", "b"))
    assert hooks.told[-3:] == ["before b", "run", "after b"]


@pytest.mark.parametrize("wrong", [call("probe", unknown=1), call("no_such_tool")])
async def test_hooks_hear_of_calls_that_are_refused(executor: Executor, work: Path, wrong: ToolCall) -> None:
    hooks = Hooks()
    result = await hooked(executor, work, None, hooks).execute(wrong)
    assert hooks.results == {wrong.id: result}


async def test_what_a_hook_adds_is_told(executor: Executor, work: Path) -> None:
    async def body(_: Any) -> Outcome:
        return Outcome("")

    async def after(_: ToolCall, result: ToolResult) -> None:
        result.meta["captured"] = ["outputs/a"]

    result = await probes(executor, work, body, after=after).execute(call("probe"))
    assert result.meta["captured"] == ["outputs/a"]


async def test_a_failing_hook_is_logged_and_loses_nothing(
    executor: Executor, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(_: Any) -> Outcome:
        return Outcome("fine")

    async def fail(*_: Any) -> None:
        raise OSError("disk full")

    box = probes(executor, work, body, before=fail, after=fail)
    with caplog.at_level(logging.ERROR, "conjure_jupyter"):
        results = await box.execute_all([call("probe", "a"), call("probe", "b")])
    assert [result.text for result in results] == ["fine", "fine"]
    assert len(caplog.records) == 4


async def test_what_a_stopped_call_made_is_heard_of(toolbox: Toolbox, executor: Executor, work: Path) -> None:
    made: list[bool] = []

    async def after(_: ToolCall, result: ToolResult) -> None:
        await asyncio.sleep(0)
        made.append((work / "early").exists())
        assert result.meta["error"] == "cut_short"

    started = asyncio.Event()
    box = Toolbox(executor, ExecutionContext(work, timeout=30), after=after)
    running = asyncio.ensure_future(
        box.execute_all(
            [call("bash_tool", command="touch early; echo go; sleep 30")],
            on_output=lambda call, text: started.set(),
        )
    )
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert made == [True]


async def test_a_fault_of_the_place_is_heard_of_and_raised(executor: Executor, work: Path) -> None:
    hooks = Hooks()

    async def body(_: Any) -> Outcome:
        raise ContainerError("gone")

    with pytest.raises(ContainerError):
        await hooked(executor, work, body, hooks).execute(call("probe", "a"))
    assert hooks.told == ["before a", "after a"]
    assert hooks.results["a"].is_error


async def test_a_call_that_is_done_is_told_though_it_is_stopped_during_the_hook(
    executor: Executor, work: Path
) -> None:
    hooks = Hooks()
    hooks.gate = asyncio.Event()
    finished: list[str] = []

    async def body(_: Any) -> Outcome:
        return Outcome("fine")

    running = asyncio.ensure_future(
        hooked(executor, work, body, hooks).execute_all(
            [call("probe", "a")], on_finish=lambda call, result: finished.append(result.text)
        )
    )
    await hooks.reached.wait()
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.sleep(0)
    assert not running.done()
    hooks.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert hooks.told == ["before a", "after a"]
    assert finished == ["fine"]


async def test_the_next_call_on_a_file_waits_for_the_hook(executor: Executor, work: Path) -> None:
    seen: list[str] = []

    async def after(call: ToolCall, _: ToolResult) -> None:
        await asyncio.sleep(0.01)
        seen.append((work / "a").read_text())

    box = Toolbox(executor, ExecutionContext(work), after=after)
    await box.execute_all([call("create_file", text, path="a", file_text=text) for text in ("one", "two")])
    assert seen == ["one", "two"]


async def test_calls_with_several_files_do_not_wait_for_each_other(executor: Executor, work: Path) -> None:
    class Several(Probe):
        path_fields = ("key", "other")
        definition = {  # noqa: RUF012  shared on purpose
            "name": "probe",
            "input_schema": {
                "type": "object",
                "properties": {"key": {"type": "string"}, "other": {"type": "string"}},
            },
        }

    running = 0

    async def body(_: Any) -> Outcome:
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0)
        running -= 1
        return Outcome("")

    box = Toolbox(executor, ExecutionContext(work), tools=[Several(body)])
    calls = [call("probe", str(n), key="ab"[n % 2], other="ba"[n % 2]) for n in range(10)]
    results = await asyncio.wait_for(box.execute_all(calls), 10)
    assert not any(result.is_error for result in results)
