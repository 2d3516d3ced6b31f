"""What a tool loop costs besides the model: milliseconds a round against a server that answers at once.

The server runs in a process of its own, does not look at requests, and does not wait for acknowledgements
(``TCP_NODELAY``). Every loop gets the same answers (a sentence and one call), runs the same trivial tool and
sends its whole history, as the API wants it. Figures are medians over runs; a round is a request, its
answer, the call and its result.

Run it: ``python -m tests.benchmarks.bench_loop``.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROUNDS = (10, 50, 200)
RUNS = 5
MODEL = "claude-sonnet-5-5"
SYSTEM = "You read files one after the other. " * 20
PROMPT = "Read every file."
OUTPUT = "line of the file\n" * 40
TOOL = {
    "name": "view",
    "description": "View a file",
    "input_schema": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
}

#: Runs so many rounds against a base URL and gives the time at which each ended, in seconds.
Loop = Callable[[str, int], Awaitable[list[float]]]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; times in milliseconds a round."""

    name: str
    rounds: int
    ms: float
    first: float
    last: float


def measure(rounds: tuple[int, ...] = ROUNDS, runs: int = RUNS) -> list[Row]:
    """Measure every loop; runs of the loops take turns, so that the machine's moods hit all alike."""
    times: dict[tuple[str, int], list[list[float]]] = {}
    with no_op_server() as url:
        for number in rounds:
            for run in range(runs):
                for name, loop in LOOPS.items():
                    ended = _timed(loop, f"{url}/{number}-{name.replace(' ', '-')}-{run}", number)
                    times.setdefault((name, number), []).append(ended)
    return [_row(name, number, ended) for (name, number), ended in times.items()]


def rows() -> list[dict[str, Any]]:
    """The lines of the common table."""
    return [
        {
            "bench": "tool loop",
            "subject": row.name,
            "metric": f"a round, {row.rounds} rounds",
            "median_ms": row.ms,
            "note": f"first 10 {row.first:.1f}, last 10 {row.last:.1f} ms",
        }
        for row in sorted(measure(), key=lambda row: (row.rounds, row.ms))
    ]


def _timed(loop: Loop, url: str, rounds: int) -> list[float]:
    gc.collect()
    started = time.perf_counter()
    ended = asyncio.run(_measured(loop, url, rounds))
    return [started, *ended] if ended else []


async def _measured(loop: Loop, url: str, rounds: int) -> list[float]:
    return await loop(url, rounds)


def _row(name: str, rounds: int, runs: list[list[float]]) -> Row:
    # The first round pays for the connection and for making the client: it is the start of the clock.
    spans = [[b - a for a, b in itertools.pairwise(ended[1:])] for ended in runs]
    per_round = statistics.median(statistics.fmean(span) for span in spans)
    first = statistics.median(statistics.fmean(span[:10]) for span in spans)
    last = statistics.median(statistics.fmean(span[-10:]) for span in spans)
    return Row(name, rounds, per_round * 1000, first * 1000, last * 1000)


def _result(call_id: str) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call_id, "content": OUTPUT}],
    }


async def raw_httpx2(url: str, rounds: int) -> list[float]:
    """The floor: JSON out, events in, nothing else."""
    import httpx2

    messages: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
    ended: list[float] = []
    headers = {
        "authorization": "Bearer x",
        "anthropic-version": "2026-10-21",
        "content-type": "application/json",
    }
    async with httpx2.AsyncClient(headers=headers) as client:
        while len(ended) <= rounds:
            body = {
                "model": MODEL,
                "max_tokens": 1000,
                "system": SYSTEM,
                "tools": [TOOL],
                "messages": messages,
                "stream": True,
            }
            content: list[dict[str, Any]] = []
            parts: list[str] = []
            stop_reason = None
            async with client.stream("POST", f"{url}/v1/messages", content=json.dumps(body)) as response:
                async for line in response.aiter_lines():
                    if not line.startswith("data:"):
                        continue
                    event = json.loads(line[5:])
                    kind = event["type"]
                    if kind == "content_block_start":
                        content.append(event["content_block"])
                        parts = []
                    elif kind == "content_block_delta":
                        delta = event["delta"]
                        parts.append(delta.get("text") or delta.get("partial_json") or "")
                    elif kind == "content_block_stop":
                        block = content[-1]
                        if block["type"] == "text":
                            block["text"] = "".join(parts)
                        else:
                            block["input"] = json.loads("".join(parts))
                    elif kind == "message_delta":
                        stop_reason = event["delta"]["stop_reason"]
            ended.append(time.perf_counter())
            if stop_reason != "tool_use":
                break
            messages += [{"role": "assistant", "content": content}, _result(content[-1]["id"])]
    return ended


def _sdk(url: str) -> Any:
    import anthropic

    return anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0)


def _arguments(messages: list[Any]) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 1000, "system": SYSTEM, "tools": [TOOL], "messages": messages}


async def sdk_create(url: str, rounds: int) -> list[float]:
    """The SDK's raw events, the history as dicts."""
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    ended: list[float] = []
    async with _sdk(url) as client:
        while len(ended) <= rounds:
            content: list[dict[str, Any]] = []
            parts: list[str] = []
            stop_reason = None
            stream = await client.messages.create(**_arguments(messages), stream=True)
            async for event in stream:
                if event.type == "content_block_start":
                    content.append(event.content_block.to_dict())
                    parts = []
                elif event.type == "content_block_delta":
                    parts.append(getattr(event.delta, "text", None) or event.delta.partial_json)
                elif event.type == "content_block_stop":
                    block = content[-1]
                    if block["type"] == "text":
                        block["text"] = "".join(parts)
                    else:
                        block["input"] = json.loads("".join(parts))
                elif event.type == "message_delta":
                    stop_reason = event.delta.stop_reason
            ended.append(time.perf_counter())
            if stop_reason != "tool_use":
                break
            messages += [{"role": "assistant", "content": content}, _result(content[-1]["id"])]
    return ended


async def sdk_stream(url: str, rounds: int) -> list[float]:
    """The SDK's ``.stream()`` helper, the history as dicts."""
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    ended: list[float] = []
    async with _sdk(url) as client:
        while len(ended) <= rounds:
            async with client.messages.stream(**_arguments(messages)) as stream:
                async for _ in stream:
                    pass
                said = await stream.get_final_message()
            ended.append(time.perf_counter())
            if said.stop_reason != "tool_use":
                break
            content = said.to_dict()["content"]
            messages += [{"role": "assistant", "content": content}, _result(content[-1]["id"])]
    return ended


async def sdk_by_hand(url: str, rounds: int) -> list[float]:
    """The loop most people write: ``.stream()``, and the SDK's own objects as history."""
    messages: list[Any] = [{"role": "user", "content": PROMPT}]
    ended: list[float] = []
    async with _sdk(url) as client:
        while len(ended) <= rounds:
            async with client.messages.stream(**_arguments(messages)) as stream:
                async for _ in stream.text_stream:
                    pass
                said = await stream.get_final_message()
            ended.append(time.perf_counter())
            if said.stop_reason != "tool_use":
                break
            messages.append({"role": "assistant", "content": said.content})
            call = next(block for block in said.content if block.type == "tool_use")
            messages.append(_result(call.id))
    return ended


async def sdk_tool_runner(url: str, rounds: int) -> list[float]:
    """The SDK's ``tool_runner``, streaming, with its history kept here."""
    import anthropic

    @anthropic.beta_async_tool
    async def view(path: str) -> str:
        """View a file.

        Args:
            path: the file
        """
        return OUTPUT

    ended: list[float] = []
    async with _sdk(url) as client:
        arguments: dict[str, Any] = {**_arguments([{"role": "user", "content": PROMPT}]), "tools": [view]}
        runner = client.beta.messages.tool_runner(**arguments, thread=False, stream=True)
        async for stream in runner:
            async for _ in stream:
                pass
            ended.append(time.perf_counter())
    return ended


async def conjure_client(url: str, rounds: int) -> list[float]:
    """Our client's share: requests and answers, no tools, no log."""
    from conjure_jupyter.clients import MessageAccumulator, Request
    from conjure_jupyter.clients.anthropic import AnthropicClient
    from conjure_jupyter.settings import Settings

    messages: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
    ended: list[float] = []
    sdk = _sdk(url)
    client = AnthropicClient(sdk, settings=Settings())
    while len(ended) <= rounds:
        accumulator = MessageAccumulator()
        async for event in client.stream(Request(MODEL, 1000, SYSTEM, messages, [TOOL])):
            accumulator.add(event)
        ended.append(time.perf_counter())
        said = accumulator.message
        if said["stop_reason"] != "tool_use":
            break
        messages += [{"role": "assistant", "content": said["content"]}, _result(said["content"][-1]["id"])]
    await client.close()
    await sdk.close()
    return ended


async def conjure_loop(url: str, rounds: int) -> list[float]:
    """Ours, whole: session, log on disk with its syncs, permissions, the real ``view`` on real files."""
    from conjure_jupyter.conversation import Session
    from conjure_jupyter.settings import Settings
    from conjure_jupyter.types import AssistantMessage, Event

    ended: list[float] = []

    def listen(event: Event) -> None:
        if isinstance(event, AssistantMessage):
            ended.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(model=MODEL, system=SYSTEM, approve="auto", max_iterations=rounds + 1)
        sdk = _sdk(url)
        session = Session(settings, client=sdk, project=folder, listener=listen)
        _write_files(session.workspace / "folder", rounds)
        try:
            reply = await session.achat(PROMPT)
            if reply.stop_reason != "end_turn" or len(reply.tool_calls) != rounds:
                raise RuntimeError(f"the loop ended early: {reply.stop_reason} {reply.error}")
            bad = next((record.result.text for record in reply.tool_calls if record.result.is_error), None)
            if bad is not None:
                raise RuntimeError(f"the tool failed: {bad}")
        finally:
            await asyncio.to_thread(session.close)
            await sdk.close()
    return ended


def _write_files(folder: Path, count: int) -> None:
    folder.mkdir(parents=True)
    for number in range(1, count + 1):
        (folder / f"file_{number:04d}.txt").write_text(OUTPUT)


LOOPS: dict[str, Loop] = {
    "raw httpx2, SSE": raw_httpx2,
    "SDK create, dict history": sdk_create,
    "SDK .stream(), dict history": sdk_stream,
    "SDK loop by hand": sdk_by_hand,
    "SDK tool_runner, streaming": sdk_tool_runner,
    "conjure: client only": conjure_client,
    "conjure: session, log, files": conjure_loop,
}


@contextmanager
def no_op_server() -> Iterator[str]:
    """A server in a process of its own; yields its base URL.

    The first part of the path is ``ROUNDS-NAME``: so many calls are asked for, then the answer ends.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(sender,), daemon=True)
    before = {name: os.environ.get(name) for name in ("NO_PROXY", "no_proxy")}
    os.environ.update(dict.fromkeys(before, "127.0.0.1"))
    process.start()
    try:
        yield f"http://127.0.0.1:{receiver.recv()}"
    finally:
        process.terminate()
        process.join()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(sender: Any) -> None:
    asyncio.run(_listen(sender))


async def _listen(sender: Any) -> None:
    counts: dict[bytes, int] = {}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].split(b"/")[1]
                length = next(
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                )
                await reader.readexactly(length)
                counts[path] = counts.get(path, 0) + 1
                writer.write(_answer(counts[path], int(path.split(b"-")[0])))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=1 << 20)
    sender.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _answer(count: int, rounds: int) -> bytes:
    from conjure_jupyter.clients import message_events
    from conjure_jupyter.testing import Wire, message, tool_use
    from conjure_jupyter.testing.wire import frame

    words = "I will look at the next file and see what it says about the thing in question."
    call = tool_use("view", {"path": f"folder/file_{count:04d}.txt"}, id=f"toolu_{count:08d}")
    said = message(words, call) if count <= rounds else message(words)
    said |= {"id": f"msg_{count}", "model": MODEL, "usage": {"input_tokens": 9, "output_tokens": 9}}
    body = b"".join(
        frame(json.dumps(event), event["type"], Wire()) for event in message_events(said, chunk=12)
    )
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def main() -> int:
    """Print the table."""
    measured = measure()
    print(f"{'ms a round':32}{'rounds':>8}{'median':>9}{'first 10':>10}{'last 10':>9}")
    for row in sorted(measured, key=lambda row: (row.rounds, row.ms)):
        print(f"{row.name:32}{row.rounds:8}{row.ms:9.2f}{row.first:10.2f}{row.last:9.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
