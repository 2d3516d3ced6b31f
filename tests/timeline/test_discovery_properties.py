"""Whatever is logged, in whatever order: discovery answers as a plain reading of the log would."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conjure_jupyter.timeline import Artifact, Discovery, MemoryTimeline, follow
from conjure_jupyter.timeline.logical import from_physical, parse
from conjure_jupyter.types import Block

from .artifact_builders import artifact, made
from .builders import answer, prompt, result, tool_use

NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), st.just("")),
        st.tuples(st.sampled_from(["made", "internal", "attachment", "hide"]), NAMES),
        st.tuples(st.just("undo"), st.integers(0, 4)),
        st.tuples(st.just("compact"), st.integers(-1, 4)),
        st.tuples(st.sampled_from(["call", "result", "say"]), NAMES),
    ),
    max_size=40,
)
PARTS = {"internal": "internal", "attachment": "user.attachments"}


def play(steps: list[tuple[str, Any]]) -> tuple[MemoryTimeline, Discovery]:
    timeline, discovery = MemoryTimeline(), Discovery()
    follow(timeline, discovery)
    for step, value in steps:
        before = discovery.sources
        turn = f"turn_{timeline.turn:04d}"
        if step == "turn":
            timeline.begin_turn()
        elif step == "made":
            made(timeline, value, version=None, edited=None, call=value)
        elif step in PARTS:
            timeline.append("artifact", artifact(f"fi:{turn}.{PARTS[step]}/{value}", version=None))
        elif step == "hide":
            timeline.append("hide", {"artifact_path": f"fi:{turn}.files/{value}", "replacement_text": value})
        elif step == "undo":
            timeline.append("undo", {"before_turn": max(0, timeline.turn - value), "reason": "user"})
        elif step == "compact":
            timeline.append("compaction", {"summary": "before", "upto_turn": timeline.turn - value})
        elif step == "call":
            timeline.append("assistant", answer(tool_use(value)))
        elif step == "result":
            timeline.append("tool_result", result(value))
        else:
            timeline.append("user", prompt(value))
        assert discovery.sources[: len(before)] == before
    return timeline, discovery


def live(blocks: list[Block]) -> list[Block]:
    """The artifact blocks that are left once every undo had its say."""
    kept: list[Block] = []
    for block in blocks:
        if block.kind == "undo":
            kept = [each for each in kept if each.turn < block.data["before_turn"]]
        elif block.kind == "artifact":
            kept.append(block)
    return kept


def newest(blocks: list[Block]) -> list[int]:
    return sorted({block.data["path"]: block.seq for block in blocks}.values())


def seqs(artifacts: list[Artifact]) -> list[int]:
    return [each.seq for each in artifacts]


@given(STEPS)
@settings(max_examples=150, deadline=None)
def test_it_answers_as_a_plain_reading_would(steps: list[tuple[str, Any]]) -> None:
    timeline, discovery = play(steps)
    blocks = list(timeline.blocks)
    logged = [block for block in blocks if block.kind == "artifact"]

    assert seqs(discovery.current()) == newest(live(blocks))
    for turn in range(timeline.turn + 2):
        starts = (at for at, block in enumerate(blocks) if block.turn >= turn and block.kind != "undo")
        assert seqs(discovery.at(turn)) == newest(live(blocks[: next(starts, len(blocks))]))
        assert seqs(discovery.upto(turn)) == newest([b for b in live(blocks) if b.turn <= turn])
    for path in {block.data["path"] for block in logged}:
        of_path = [block for block in logged if block.data["path"] == path]
        assert seqs(discovery.versions(path)) == [block.seq for block in of_path]
        assert [each.version for each in discovery.versions(path)] == list(range(len(of_path)))
    for logical in {block.data["artifact_path"] for block in logged}:
        of_logical = [block for block in logged if block.data["artifact_path"] == logical]
        found = discovery.find(logical)
        assert found is not None
        assert found.seq == of_logical[-1].seq
        assert found.edited == (len(of_logical) > 1)
    assert sum(map(len, discovery.groups().values())) == len(logged)
    external = dict.fromkeys(
        block.data["artifact_path"] for block in logged if block.data["visibility"] == "external"
    )
    assert [source.artifact_path for source in discovery.sources] == list(external)
    assert [source.n for source in discovery.sources] == list(range(1, len(external) + 1))


@given(STEPS, st.integers(-1, 6), st.integers(0, 3000))
@settings(max_examples=100, deadline=None)
def test_what_is_read_stays_within_its_limits(steps: list[tuple[str, Any]], upto: int, limit: int) -> None:
    _, discovery = play(steps)
    entries = discovery.render(upto, limit=limit)

    assert sum(len(entry.text) for entry in entries) <= max(limit, 1000)
    assert all(entry.turn <= upto and entry.text for entry in entries)
    assert [entry.role for entry in entries].count("summary") <= 1
    section = discovery.artifacts_section(upto, most=2, limit=limit)
    lines = section.splitlines()
    assert len(lines) <= 3
    for line in lines:
        assert line.startswith("and ") or json.loads(line)["artifact_path"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PATHS = st.sampled_from(
    ["fi:turn_0001.files/a", "fi:turn_0001.files/../a", "fi:turn_0002.internal/x", "../../etc/passwd", "/x"]
) | st.text(st.characters(), max_size=8).map("fi:turn_0001.files/".__add__)
VALUES = JSON | PATHS | st.just(answer(tool_use("a"))["message"])
KEYS = st.sampled_from(
    [
        "artifact_path", "path", "name", "version", "mime", "size", "sha256", "kind", "visibility", "channel",
        "source_type", "tool_call_id", "tool_call_ids", "edited", "sources_used", "kept", "reason", "url",
        "source", "metadata", "suffix", "replacement_text", "before_turn", "summary", "summary_path",
        "upto_turn", "content", "message", "tool_use_id", "text", "prompt",
    ]
)  # fmt: skip
KINDS = st.sampled_from(
    [
        "artifact", "hide", "register", "unregister", "undo", "compaction", "user", "assistant", "notice",
        "tool_result", "snapshot", "of a later version",
    ]
)  # fmt: skip


@given(
    st.lists(
        st.tuples(
            KINDS,
            st.integers(0, 3),
            st.dictionaries(KEYS, VALUES, max_size=6),
            PATHS,
        ),
        max_size=12,
    )
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_data_that_nobody_would_write_breaks_nothing(
    blocks: list[tuple[str, int, dict[str, Any], str]],
) -> None:
    discovery = Discovery()
    for seq, (kind, turn, data, path) in enumerate(blocks):
        discovery.feed(Block(seq, turn, kind, {"artifact_path": path, **data}, ""))

    for artifact_ in discovery.all:
        assert discovery.find(artifact_.logical) is not None
        assert from_physical(artifact_.physical_path) == parse(artifact_.artifact_path)
        assert not {"", ".", ".."} & set(artifact_.path.split("/"))
        assert artifact_ in discovery.versions(artifact_.path)
        told = artifact_.digest_text()
        assert json.loads(told) == artifact_.digest()
        assert told.isprintable()
        assert not set(told) & set("<>&")
    for turn in range(5):
        for entry in discovery.render(turn):
            entry.text.encode()
        discovery.artifacts_section(turn).encode()
        discovery.at(turn)
    for source in discovery.sources:
        assert discovery.text_blocks(f"so:sources_pool[{source.n}]")
    assert set(map(id, discovery.current())) <= set(map(id, discovery.all))
