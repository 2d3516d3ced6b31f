"""Recorded conversations: found again, compared, and fit to be committed."""

from __future__ import annotations

import asyncio
import json
import stat
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.clients import Client, Request, message_events
from conjure_jupyter.clients.base import StreamEvent
from conjure_jupyter.clients.cassette import Cassette, Entry
from conjure_jupyter.clients.replay import Mode, ReplayClient
from conjure_jupyter.conversation import Session
from conjure_jupyter.errors import (
    OverloadedError,
    ReplayError,
    ReplayMismatchError,
    ReplayMissError,
    SettingsError,
)
from conjure_jupyter.settings import Settings
from conjure_jupyter.testing import message, thinking, tool_use

from .contract import ClientContract, answer, ask

Script = Callable[[Request, int], dict[str, Any]]


class Scripted(Client):
    """Answers by a function of the request and the number of requests so far."""

    name: ClassVar[str] = "scripted"
    live: ClassVar[bool] = True

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or (lambda request, number: message(f"answer {number}"))
        self.asked = 0
        self.open = 0
        self.closed = 0

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        self.asked += 1
        self.open += 1
        try:
            for event in message_events(self.script(request, self.asked), chunk=7):
                yield event
        finally:
            self.open -= 1

    async def count_tokens(self, request: Request) -> int | None:
        return 17

    async def close(self) -> None:
        self.closed += 1


def say(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def history(*messages: Any) -> Request:
    return ask(messages=[say(part) if isinstance(part, str) else part for part in messages])


def said(reply: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": reply["content"]}


def result(call_id: str, content: Any = "42", *, is_error: bool = False) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return {"role": "user", "content": [{**block, "is_error": True} if is_error else block]}


def written(tape: Path) -> str:
    return tape.read_text(encoding="utf-8") if tape.exists() else ""


def tape_bytes(tape: Path) -> bytes:
    return tape.read_bytes()


def write(tape: Path, text: str) -> None:
    tape.write_text(text, encoding="latin-1")


def entries(tape: Path) -> list[Any]:
    found: list[Any] = json.loads(written(tape))["entries"]
    return found


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "demo.json"


class TestRecording(ClientContract):
    @pytest.fixture(params=["off", "record", "auto"])
    def client(self, request: pytest.FixtureRequest, tape: Path) -> Client:
        return ReplayClient(Scripted(), tape, request.param)


class TestReplaying(ClientContract):
    @pytest.fixture
    async def client(self, tape: Path) -> Client:
        rich = message("Let me see: ä\nö", tool_use("view", {"path": "a\nb"}, id="toolu_1"))
        await answer(ReplayClient(Scripted(lambda *_: rich), tape, "record"), self.request_())
        return ReplayClient(None, tape)


async def record(
    tape: Path, script: Script, *requests: Request, mode: Mode = "record", **options: Any
) -> ReplayClient:
    client = ReplayClient(Scripted(script), tape, mode, **options)
    for request in requests:
        await answer(client, request)
    return client


CALLING = message("I look.", tool_use("view", {"path": "a"}, id="toolu_1"))


def calls_then_answers(request: Request, number: int) -> dict[str, Any]:
    last = request.messages[-1]["content"][0]
    return message(f"It is {last['content']}.") if last["type"] == "tool_result" else CALLING


async def test_a_turn_with_a_call_comes_back(tape: Path) -> None:
    first, second = history("Look"), history("Look", said(CALLING), result("toolu_1"))
    await record(tape, calls_then_answers, first, second)
    client = ReplayClient(None, tape)
    assert (await answer(client, first))["content"] == CALLING["content"]
    assert (await answer(client, second))["content"][0]["text"] == "It is 42."
    assert client.notices == []


async def test_thinking_comes_back_verbatim(tape: Path) -> None:
    whole = message(thinking("a token=abcdefgh12345678 b"), "done")
    await record(tape, lambda *_: whole, history("Think"))
    replayed = await answer(ReplayClient(None, tape), history("Think"))
    assert replayed["content"][0]["signature"] == whole["content"][0]["signature"]


async def test_system_model_and_tools_do_not_matter(tape: Path) -> None:
    await record(tape, lambda *_: message("yes"), history("Hello"))
    other = ask("Hello", system="Other", model="other", tools=[{"name": "x", "input_schema": {}}])
    assert (await answer(ReplayClient(None, tape), other))["content"][0]["text"] == "yes"


async def test_conversations_that_differ_share_a_file(tape: Path) -> None:
    requests = [
        history("A"),
        history("B"),
        history("A", said(message("1")), "C"),
        history("B", said(message("2")), "C"),
    ]
    await record(tape, lambda _, number: message(str(number)), *requests)
    client = ReplayClient(None, tape)
    assert [(await answer(client, request))["content"][0]["text"] for request in requests] == [
        "1",
        "2",
        "3",
        "4",
    ]


async def test_an_image_in_the_prompt_counts(tape: Path) -> None:
    def picture(data: str) -> Request:
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return ask(
            messages=[
                {
                    "role": "user",
                    "content": [{"type": "image", "source": source}, {"type": "text", "text": "?"}],
                }
            ]
        )

    await record(tape, lambda *_: message("a cat"), picture("AAAA"))
    assert await answer(ReplayClient(None, tape), picture("AAAA"))
    with pytest.raises(ReplayMissError):
        await answer(ReplayClient(None, tape), picture("BBBB"))


# Misses and modes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (history("Other"), "no answer is recorded for the prompt 'Other'"),
        (history("Look", said(CALLING), "Go on"), "for the prompt 'Go on' after these earlier prompts"),
        (history("Look", said(CALLING), result("toolu_9")), "no answer is recorded after the calls toolu_9"),
    ],
)
async def test_a_miss_says_what_is_missing(tape: Path, request_: Request, reason: str) -> None:
    await record(tape, calls_then_answers, history("Look"))
    with pytest.raises(ReplayMissError, match=reason) as caught:
        await answer(ReplayClient(Scripted(), tape, "replay"), request_)
    assert caught.value.cassette == tape
    assert "CONJURE_REPLAY=record" in str(caught.value)


async def test_no_cassette_is_a_miss(tape: Path) -> None:
    with pytest.raises(ReplayMissError, match="no such cassette"):
        await answer(ReplayClient(None, tape), ask())


async def test_auto_records_what_is_missing_and_replays_the_rest(tape: Path) -> None:
    client = await record(
        tape, lambda _, number: message(str(number)), ask("A"), ask("A"), ask("B"), ask("A"), mode="auto"
    )
    assert isinstance(client.inner, Scripted)
    assert client.inner.asked == 2
    assert (await answer(ReplayClient(None, tape), ask("B")))["content"][0]["text"] == "2"


async def test_auto_never_goes_live_when_headless(tape: Path) -> None:
    await record(tape, lambda *_: message("yes"), ask("A"))
    inner = Scripted()
    client = ReplayClient(inner, tape, "auto", headless=True)
    assert not client.live
    assert await answer(client, ask("A"))
    with pytest.raises(ReplayMissError):
        await answer(client, ask("B"))
    assert await client.count_tokens(ask("B")) is None
    assert inner.asked == 0


async def test_off_leaves_no_file(tape: Path) -> None:
    client = ReplayClient(Scripted(), tape, "off")
    await answer(client, ask())
    assert not written(tape)
    assert client.live
    assert await client.count_tokens(ask()) == 17


async def test_record_asks_again_and_replaces(tape: Path) -> None:
    await record(tape, lambda _, number: message(str(number)), ask("A"), ask("A"))
    assert (await answer(ReplayClient(None, tape), ask("A")))["content"][0]["text"] == "2"
    assert len(entries(tape)) == 1


async def test_what_new_calls_make_unreachable_is_dropped(tape: Path) -> None:
    follow_up = history("Look", said(CALLING), result("toolu_1"))
    await record(tape, calls_then_answers, history("Look"), follow_up)
    other = message("I look.", tool_use("view", {"path": "a"}, id="toolu_2"))
    await record(tape, lambda *_: other, history("Look"))
    assert len(entries(tape)) == 1


@pytest.mark.parametrize("mode", ["off", "record"])
def test_modes_that_ask_need_someone_to_ask(tape: Path, mode: Mode) -> None:
    with pytest.raises(SettingsError, match="needs a client"):
        ReplayClient(None, tape, mode)


def test_an_unknown_mode_is_refused(tape: Path) -> None:
    with pytest.raises(SettingsError, match="not one of"):
        ReplayClient(None, tape, "sometimes")  # type: ignore[arg-type]  # what is tested


async def test_an_answer_that_breaks_off_is_not_recorded(tape: Path) -> None:
    def fail(request: Request, number: int) -> dict[str, Any]:
        raise OverloadedError("busy")

    with pytest.raises(OverloadedError):
        await record(tape, fail, ask())
    client = ReplayClient(Scripted(), tape, "record")
    events = client.stream(ask())
    await anext(events)
    await events.aclose()  # type: ignore[attr-defined]  # a generator
    assert isinstance(client.inner, Scripted)
    assert client.inner.open == 0
    assert not written(tape)


async def test_closing_closes_the_live_client(tape: Path) -> None:
    inner = Scripted()
    await ReplayClient(inner, tape, "auto").close()
    assert inner.closed == 1


# Tool outputs -----------------------------------------------------------------------------------------


async def recorded_output(tape: Path, *outputs: Any, is_error: bool = False) -> None:
    asked = [
        history("Look", said(CALLING), result("toolu_1", output, is_error=is_error)) for output in outputs
    ]
    await record(tape, calls_then_answers, history("Look"), *asked)


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        ("a\nb\nc", "a\nX\nc", "line 2 of the output was 'b' and is 'X'"),
        ("a", "a\nb", "had 1 lines when recorded and has 2"),
        ("x" * 9000 + "1", "x" * 9000 + "2", "differs further down"),
        ([{"type": "text", "text": "a"}], [{"type": "text", "text": "b"}], "was 'a' and is 'b'"),
    ],
)
async def test_a_differing_output_is_told_or_refused(tape: Path, before: Any, now: Any, reason: str) -> None:
    await recorded_output(tape, before)
    request = history("Look", said(CALLING), result("toolu_1", now))
    client = ReplayClient(None, tape)
    assert (await answer(client, request))["content"]
    (notice,) = client.notices
    assert reason in notice
    assert "demo.json: call toolu_1" in notice
    with pytest.raises(ReplayMismatchError, match="toolu_1") as caught:
        await answer(ReplayClient(None, tape, strict=True), request)
    assert reason in caught.value.reason


async def test_success_that_was_a_failure_differs(tape: Path) -> None:
    await recorded_output(tape, "42", is_error=True)
    client = ReplayClient(None, tape)
    await answer(client, history("Look", said(CALLING), result("toolu_1")))
    assert client.notices == ["demo.json: call toolu_1: it failed when recorded and succeeds now"]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("took 0.12 s", "took 13 ms"),
        ("ran for 0:01:02.5", "ran for 0:00:59"),
        ("<X at 0x7f3de266e740>", "<X at 0x7fffe266e7>"),
        ("/a/sessions/2026-1/work/x", "/a/sessions/2027-2/work/x"),
        ("{folder}/out.csv", "{folder}/out.csv"),
        ("{home}/out.csv", "{home}/out.csv"),
    ],
)
async def test_what_differs_in_every_run_does_not_count(
    tmp_path: Path, before: str, now: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at(place: str, text: str) -> Path:
        folder, home = tmp_path / place / "notebooks", tmp_path / place / "home"
        folder.mkdir(parents=True)
        monkeypatch.setattr(Path, "home", classmethod(lambda cls: cls(home)))
        texts.append(text.format(folder=folder, home=home))
        return folder / "demo.json"

    texts: list[str] = []
    one = at("one", before)
    await recorded_output(one, texts[0])
    two = at("two", now)
    two.write_bytes(one.read_bytes())
    client = ReplayClient(None, two, strict=True)
    assert await answer(client, history("Look", said(CALLING), result("toolu_1", texts[1])))


@pytest.mark.parametrize(
    ("before", "now"), [("5 items", "6 items"), ("v1.2", "v1.3"), ("10 smiles", "12 smiles")]
)
async def test_what_means_something_does(tape: Path, before: str, now: str) -> None:
    await recorded_output(tape, before)
    client = ReplayClient(None, tape)
    await answer(client, history("Look", said(CALLING), result("toolu_1", now)))
    assert len(client.notices) == 1


async def test_times_in_a_prompt_are_part_of_it(tape: Path) -> None:
    await record(tape, lambda *_: message("ok"), ask("Wait 5 s"))
    with pytest.raises(ReplayMissError):
        await answer(ReplayClient(None, tape), ask("Wait 6 s"))


# The file ---------------------------------------------------------------------------------------------


async def test_paths_become_those_of_the_machine_that_replays(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    calling = message(tool_use("view", {"path": f"{one}/data.csv"}, id="toolu_1"))
    await record(one / "demo.json", lambda *_: calling, ask(f"Read {one}/data.csv and {one}-old"))
    text = written(one / "demo.json")
    assert f"{one}/" not in text
    assert f"{one.name}-old" in text
    write(two / "demo.json", text)
    replayed = await answer(ReplayClient(None, two / "demo.json"), ask(f"Read {two}/data.csv and {one}-old"))
    assert replayed["content"][0]["input"] == {"path": f"{two}/data.csv"}


async def test_no_secret_is_written(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "correct-horse-battery")
    secret = "sk-ant-api03-" + "a1B2" * 12
    calling = message(
        f"Your key is {secret}",
        tool_use("bash_tool", {"command": f"echo {secret}", "data": secret}, id="toolu_1"),
    )
    follow_up = history(
        f"My key is {secret}", said(calling), result("toolu_1", f"{secret} correct-horse-battery")
    )
    await record(
        tape,
        lambda _, number: calling if number == 1 else message("ok"),
        history(f"My key is {secret}"),
        follow_up,
    )
    text = written(tape)
    assert secret not in text
    assert "correct-horse-battery" not in text
    assert "[redacted]" in text
    assert await answer(ReplayClient(None, tape, strict=True), follow_up)


async def test_recording_again_changes_nothing(tape: Path) -> None:
    await record(tape, lambda *_: message("Line one"), ask("Hello"))
    before = written(tape)
    await record(tape, lambda *_: message("Line one"), ask("Hello"))
    assert written(tape) == before


def test_the_file_reads_well_in_a_diff(tape: Path) -> None:
    asyncio.run(record(tape, lambda *_: message("Line one\nLine two é"), ask("Hello")))
    text = written(tape)
    assert json.loads(text)["version"] == 1
    assert text.endswith("}\n")
    lines = [line.strip().rstrip(",") for line in text.splitlines()]
    assert '"Line one"' in lines
    assert '"Line two é"' in lines
    assert '"user: Hello"' in lines
    assert stat.S_IMODE(tape.stat().st_mode) == 0o644
    assert list(tape.parent.iterdir()) == [tape]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text("ab$\n", max_size=3) | st.sampled_from(["$lines", "$$lines"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(JSON)
def test_any_value_comes_back(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    tape = tmp_path_factory.mktemp("tape") / "t.json"
    entry = Entry(("user: x",), message(tool_use("t", {"v": value}, id="toolu_1")))
    Cassette(tape).put(entry)
    found = Cassette(tape).find(("user: x",))
    assert found is not None
    assert found.message == entry.message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"version": 99, "entries": []}',
        '{"version": 1, "entries": [{}]}',
        "<<<<<<< HEAD",
        "\xff",
    ],
)
async def test_a_file_that_is_no_cassette_is_refused_and_kept(tape: Path, text: str) -> None:
    write(tape, text)
    for client in (ReplayClient(None, tape), ReplayClient(Scripted(), tape, "record")):
        with pytest.raises(ReplayError, match="no cassette that this version reads"):
            await answer(client, ask())
    assert tape_bytes(tape) == text.encode("latin-1")


async def test_a_folder_that_is_gone_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="cannot be written"):
        await answer(ReplayClient(Scripted(), tmp_path / "no" / "demo.json", "record"), ask())


def test_two_writers_lose_nothing(tape: Path) -> None:
    def put(name: str) -> None:
        cassette = Cassette(tape)
        for number in range(15):
            cassette.put(Entry((f"user: {name} {number}",), message("x")))

    threads = [threading.Thread(target=put, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(entries(tape)) == 30


def test_a_session_is_recorded_and_replayed(tmp_path: Path) -> None:
    def script(request: Request, number: int) -> dict[str, Any]:
        command = {"command": "echo made > outputs/a.txt; pwd", "description": "make"}
        return (
            message(tool_use("bash_tool", command, id=f"toolu_{number}"))
            if number == 1
            else message("Made it.")
        )

    texts = []
    for mode, name, inner in (("record", "one", Scripted(script)), ("replay", "two", None)):
        project = tmp_path / name
        project.mkdir()
        if mode == "replay":
            (project / "demo.json").write_bytes((tmp_path / "one" / "demo.json").read_bytes())
        client = ReplayClient(inner, project / "demo.json", mode, strict=True)  # type: ignore[arg-type]  # a literal
        with Session(Settings(approve="auto"), client=client, project=project) as session:
            reply = session.chat("Make a file")
        texts.append(reply.text)
        assert [file.path for file in reply.files] == ["outputs/a.txt"]
    assert texts == ["Made it.", "Made it."]
