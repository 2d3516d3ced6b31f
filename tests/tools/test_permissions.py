from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.errors import SettingsError
from conjure_jupyter.executors.contract import ExecutionContext
from conjure_jupyter.tools import Policy, summary
from conjure_jupyter.tools.rules import TOOL_NAMES, parse_rule
from conjure_jupyter.types import ToolCall

from .conftest import call

WORK = Path("/home/me/project/.conjure/sessions/s1/work")
CONTEXT = ExecutionContext(WORK, skills_root=WORK / "skills", allowed_paths=(Path("/home/me/project"),))


def policy(*rules: str, mode: Any = "ask", **options: Any) -> Policy:
    return Policy(mode, rules=rules, context=CONTEXT, **options)


def bash(command: Any) -> ToolCall:
    return call("bash_tool", command=command, description="")


@pytest.mark.parametrize("mode", ["ask", "auto", "deny"])
@pytest.mark.parametrize(
    "allowed",
    [
        call("view", path="a.txt"),
        call("view", path="."),
        call("view", path=str(WORK / "a")),
        call("view", path="skills/x/SKILL.md"),
        call("view", path="/home/me/project/data.csv"),
        call("inspect_variable", name="df"),
        call("inspect_variable"),
    ],
)
def test_reading_never_asks(mode: str, allowed: ToolCall) -> None:
    assert policy(mode=mode).decide(allowed).verdict == "allow"


@pytest.mark.parametrize(("mode", "verdict"), [("ask", "ask"), ("auto", "allow"), ("deny", "deny")])
@pytest.mark.parametrize(
    "other",
    [
        call("view", path="/etc/passwd"),
        call("view", path="/home/me/project2/x"),
        call("view", path="../../../../../secret"),
        call("view", path="/home/me/project/../other"),
        call("view", path=3),
        call("create_file", path="a", file_text=""),
        call("str_replace", path="a", old_str="b"),
        bash("ls"),
        bash(None),
        call("unknown"),
        ToolCall("t", "bash_tool", None),  # type: ignore[arg-type]
    ],
)
def test_other_calls_follow_the_mode(mode: str, verdict: str, other: ToolCall) -> None:
    assert policy(mode=mode).decide(other).verdict == verdict


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("bash_tool", "rm -rf $x > y"),
        ("Bash", "anything; at all"),
        ("Bash(*)", "anything; at all"),
        ("bash_tool(:*)", "anything"),
        ("bash(git status)", "git status"),
        ("bash_tool(git status:*)", "git status"),
        ("bash_tool(git status:*)", "git   status -s  'a b'"),
        ("bash_tool(git status:*)", "git status; git status -s"),
        ("bash_tool(git status:*)", "git status && git status\ngit status"),
        ("bash_tool(git status *)", "git status -s"),
        ("bash_tool(git:*)", "git log"),
        ("bash_tool(python scripts/*.py:*)", "python scripts/a.py --x 1"),
        ("bash_tool(npm run test-*)", "npm run test-unit"),
        (
            "bash_tool(cd skills/x && python scripts/*.py:*)",
            "cd skills/x && python scripts/a.py ../../uploads/f",
        ),
        ("bash_tool(cd skills/x && python a.py)", "cd ./skills/y/../x/ && python a.py"),
        ("bash_tool(git status)", f"cd {WORK} && git status"),
        ("bash_tool(git status)", "cd . && git status"),
    ],
)
def test_a_bash_rule_allows(rule: str, command: str) -> None:
    assert policy(rule).decide(bash(command)).verdict == "allow"


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("bash_tool(git status)", "git status -s"),
        ("bash_tool(git status:*)", "git"),
        ("bash_tool(git status:*)", "git statusx"),
        ("bash_tool(git status:*)", "gitx status"),
        ("bash_tool(git status:*)", "./git status"),
        ("bash_tool(git status:*)", "git 'status x'"),
        ("bash_tool(git status:*)", "git status; rm x"),
        ("bash_tool(git status:*)", "git status && rm x"),
        ("bash_tool(git status:*)", "git status || rm x"),
        ("bash_tool(git status:*)", "git status | sh"),
        ("bash_tool(git status:*)", "git status\nrm x"),
        ("bash_tool(git status:*)", "git status & rm x"),
        ("bash_tool(git status:*)", "git status $(rm x)"),
        ("bash_tool(git status:*)", "git status `rm x`"),
        ("bash_tool(git status:*)", "git status > ~/.bashrc"),
        ("bash_tool(git status:*)", "git status <(rm x)"),
        ("bash_tool(git status:*)", "PATH=/evil git status"),
        ("bash_tool(git status:*)", "git() { rm x; }; git status"),
        ("bash_tool(git status:*)", "eval git status"),
        ("bash_tool(eval:*)", "eval rm x"),
        ("bash_tool(git status:*)", "{ git status; }"),
        ("bash_tool(git status:*)", "git st$'\\x61'tus"),
        ("bash_tool(git status:*)", "git\u00a0status"),
        ("bash_tool(git status:*)", "cd /tmp && git status"),
        ("bash_tool(git status:*)", "cd uploads && git status"),
        ("bash_tool(cd:*)", "cd uploads && git status"),
        ("bash_tool(cd x && git status)", "cd y && git status"),
        ("bash_tool(cd x && git status)", "git status"),
        ("bash_tool(cd x && git status)", "cd x; git status"),
        ("bash_tool(cd x && git status)", "cd x && git status && rm y"),
        ("bash_tool(cd /tmp && git status)", "cd /tmp && git status"),
        ("bash_tool(cd .. && git status)", "cd .. && git status"),
        ("bash_tool(python scripts/*.py:*)", "python scripts/../../evil.py"),
        ("bash_tool(python scripts/*.py:*)", "python scripts/sub/evil.py"),
        ("bash_tool(python scripts/*.py:*)", "python -c scripts/a.py"),
        ("bash_tool(python scripts/*.py:*)", "python /scripts/a.py"),
        ("bash_tool(python scripts/*.py:*)", "python scripts/*.py"),
        ("view", "git status"),
        ("create_file", "git status"),
    ],
)
def test_a_bash_rule_does_not_allow(rule: str, command: str) -> None:
    assert policy(rule).decide(bash(command)).verdict == "ask"


def test_every_command_of_a_line_needs_a_rule() -> None:
    both = policy("bash_tool(git status:*)", "bash_tool(wc:*)")
    assert both.decide(bash("git status | wc -l")).verdict == "allow"
    assert both.decide(bash("git status | wc -l | sh")).verdict == "ask"


@pytest.mark.parametrize(
    ("rule", "tool", "path", "allowed"),
    [
        ("create_file(outputs/**)", "create_file", "outputs/a", True),
        ("create_file(outputs/**)", "create_file", "outputs/a/b.md", True),
        ("create_file(outputs/**)", "create_file", "./outputs/x/../b", True),
        ("create_file(outputs/**)", "create_file", str(WORK / "outputs/a"), True),
        ("create_file(outputs/**)", "create_file", "outputs", False),
        ("create_file(outputs/**)", "create_file", "outputs/../a", False),
        ("create_file(outputs/**)", "create_file", "outputs/../../../a", False),
        ("create_file(outputs/**)", "create_file", "outputs2/a", False),
        ("create_file(outputs/**)", "create_file", "/outputs/a", False),
        ("create_file(outputs/**)", "create_file", "x/outputs/a", False),
        ("create_file(outputs/**)", "str_replace", "outputs/a", False),
        ("create_file(outputs/*.md)", "create_file", "outputs/a.md", True),
        ("create_file(outputs/*.md)", "create_file", "outputs/b/a.md", False),
        ("create_file(./outputs/?.md)", "create_file", "outputs/a.md", True),
        ("create_file(**/*.md)", "create_file", "a.md", True),
        ("create_file(**/*.md)", "create_file", "a/b/c.md", True),
        ("create_file(**/*.md)", "create_file", "../a.md", False),
        ("create_file(a.b)", "create_file", "aXb", False),
        ("Write(outputs/**)", "create_file", "outputs/a", True),
        ("Edit(src/**)", "str_replace", "src/a", True),
        ("MultiEdit(src/**)", "str_replace", "src/a", True),
        ("Write", "create_file", "anything", True),
        ("Read(/data/**)", "view", "/data/x/y", True),
        ("Read(//data/**)", "view", "/data/x/y", True),
        ("Read(/data/**)", "view", "/data/../etc/passwd", False),
        ("Read(/data/**)", "view", "/database", False),
        ("LS", "view", "/etc", True),
    ],
)
def test_a_file_rule_speaks_of_paths(rule: str, tool: str, path: str, allowed: bool) -> None:
    decision = policy(rule).decide(call(tool, path=path, file_text="", old_str="x"))
    assert decision.verdict == ("allow" if allowed else "ask")


@pytest.mark.parametrize(
    "rule", ["", "(x)", "bash_tool(", "bash_tool()", "bash tool", "bash_tool(x) y", "a\nb"]
)
def test_what_is_no_rule_is_refused(rule: str) -> None:
    with pytest.raises(SettingsError):
        policy(rule)


def test_a_rule_for_no_tool_is_refused() -> None:
    with pytest.raises(SettingsError, match="names no tool"):
        policy().add_rule("WebFetch(domain:x)")
    with pytest.raises(SettingsError, match="not one of"):
        policy(mode="maybe")


def test_a_skills_odd_rules_are_passed_over() -> None:
    decided = policy(preapproved=["WebFetch", "mcp__x__y", "(", "Bash(python scripts/*:*)"])
    assert decided.decide(bash("python scripts/a.py")).verdict == "allow"
    assert decided.decide(bash("python other.py")).verdict == "ask"


def test_an_added_rule_counts_from_then_on() -> None:
    decided = policy()
    decision = decided.decide(bash("git status -s"))
    assert decision.rule == "bash_tool(git status:*)"
    decided.add_rule(decision.rule)
    decided.add_rule(decision.rule)
    assert decided.decide(bash("git status -s")).verdict == "allow"
    assert decided.rules == ("bash_tool(git status:*)",)


def test_a_session_restricted_to_a_skill_denies_the_rest() -> None:
    only = policy("bash_tool", mode="auto", only=["Read", "Bash(python scripts/*:*)", "WebFetch"])
    assert only.decide(bash("python scripts/a.py x")).verdict == "allow"
    assert only.decide(call("view", path="a")).verdict == "allow"
    for denied in (
        bash("rm x"),
        bash("python scripts/a.py > x"),
        call("create_file", path="a", file_text=""),
    ):
        decision = only.decide(denied)
        assert decision.verdict == "deny"
        assert "python scripts/*:*" in decision.reason


def test_a_restricted_session_still_asks_and_reads_its_skills() -> None:
    only = policy(only=["Bash(git:*)"])
    assert only.decide(bash("git push")).verdict == "ask"
    assert only.decide(call("view", path="skills/x/SKILL.md")).verdict == "allow"
    assert only.decide(call("view", path="skills/../uploads/a")).verdict == "deny"
    assert only.decide(call("inspect_variable")).verdict == "deny"
    assert policy(only=[], mode="auto").decide(bash("ls")).verdict == "deny"


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        (bash("git status -s"), "bash_tool(git status:*)"),
        (bash("git push origin main"), "bash_tool(git push origin main)"),
        (bash("rm -rf build"), "bash_tool(rm -rf build)"),
        (bash("python scripts/a.py x.csv"), "bash_tool(python scripts/a.py:*)"),
        (bash("cd skills/x && python scripts/a.py y"), "bash_tool(cd skills/x && python scripts/a.py:*)"),
        (bash("python -c 'print(1)'"), None),
        (bash("python -m pytest"), "bash_tool(python -m pytest)"),
        (bash("ls | sh"), None),
        (bash("ls > x"), None),
        (bash("cd /tmp && ls"), None),
        (bash("grep '*' a"), None),
        (bash("echo a:*"), None),
        (call("create_file", path="outputs/a.md", file_text=""), "create_file(outputs/**)"),
        (call("create_file", path="a.md", file_text=""), "create_file(a.md)"),
        (call("str_replace", path="/home/x/y.py", old_str="a"), "str_replace(/home/x/y.py)"),
        (call("create_file", path="out(1)/a", file_text=""), None),
        (call("create_file", path="*/a", file_text=""), None),
        (call("unknown"), None),
    ],
)
def test_the_suggested_rule_is_narrow(asked: ToolCall, rule: str | None) -> None:
    assert policy().decide(asked).rule == rule


def test_a_suggestion_covers_what_other_rules_do_not() -> None:
    decided = policy("bash_tool(sort:*)")
    assert decided.decide(bash("cat a.txt | sort")).rule == "bash_tool(cat a.txt)"


texts = st.text(
    st.characters() | st.sampled_from("ab /.*?():;&|$'\"\\\n\x1b\u202e"), max_size=25
) | st.builds(
    str.__add__,
    st.sampled_from(["https://", "https://a.example/", "file://", "fi:turn_0001.files/", "turn_0001/files/"]),
    st.text(st.characters() | st.sampled_from("ab/.?#@:*%\\"), max_size=10),
)
calls = st.builds(
    lambda name, field, text: ToolCall("t", name, {field: text}),
    st.sampled_from([*sorted(set(TOOL_NAMES.values())), "other"]),
    st.sampled_from(
        ["command", "path", "name", "file_text", "artifact_names", "destination_path", "file_paths"]
    ),
    texts | st.none() | st.integers() | st.lists(texts | st.none(), max_size=3),
)


KNOWN = "https://known.example/data.json"


def artifacts(*rules: str, mode: Any = "ask", **options: Any) -> Policy:
    return policy(*rules, mode=mode, registered=lambda url: url == KNOWN, **options)


@pytest.mark.parametrize("mode", ["ask", "auto", "deny"])
@pytest.mark.parametrize(
    "allowed",
    [
        call("view", path="file://sales"),
        call("view", path="skill://csv/assets/a.csv"),
        call("view", path="fi:turn_0003.files/a.csv"),
        call("view", path="turn_0003/files/a.csv"),
        call("view", path=KNOWN),
        call("stage_artifacts", artifact_names=["sales", "file://sales", KNOWN]),
        call("stage_artifacts", artifact_names=["fi:turn_0003.files/a"], destination_path="uploads/in/"),
        call("stage_artifacts", artifact_names=["sales"], destination_path=str(WORK / "uploads")),
        call("return_artifacts", file_paths=["outputs/a"]),
        call("read_artifact", path="tc:turn_0001.toolu_1.result"),
    ],
)
def test_artifacts_are_read_staged_and_returned_without_asking(mode: str, allowed: ToolCall) -> None:
    assert artifacts(mode=mode).decide(allowed).verdict == "allow"


@pytest.mark.parametrize(("mode", "verdict"), [("ask", "ask"), ("auto", "allow"), ("deny", "deny")])
@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (call("view", path="https://example.com/a.csv"), "it fetches a URL"),
        (call("view", path="HTTP://known.example/data.json"), "it fetches a URL"),
        (call("stage_artifacts", artifact_names=["sales", "https://example.com/a"]), "it fetches a URL"),
        (call("stage_artifacts", artifact_names=["sales"], destination_path="data"), "it writes a file"),
        (
            call("stage_artifacts", artifact_names=["sales"], destination_path="uploads/.."),
            "it writes a file",
        ),
        (call("stage_artifacts", artifact_names=["sales"], destination_path=["uploads"]), "it writes a file"),
        (call("create_file", path="turn_0003/files/a", file_text=""), "it writes a file"),
        (call("create_file", path="file://sales", file_text=""), "it writes a file"),
    ],
)
def test_fetches_and_writes_follow_the_mode(mode: str, verdict: str, other: ToolCall, reason: str) -> None:
    decision = artifacts(mode=mode).decide(other)
    assert decision.verdict == verdict
    if verdict == "ask":
        assert decision.reason == reason


@pytest.mark.parametrize(
    ("rule", "path", "allowed"),
    [
        ("create_file(outputs/**)", "turn_0003/files/a.md", True),
        ("create_file(outputs/**)", "fi:turn_0003.files/a.md", True),
        ("create_file(outputs/a/**)", "fi:turn_0003.files/b.md", False),
        ("create_file(turn_0003/**)", "turn_0003/files/a.md", False),
        ("create_file(outputs/**)", "fi:turn_0003.files/../../a.md", False),
        ("create_file(**/sales)", "file://sales", False),
        ("create_file", "turn_0003/files/a.md", True),
    ],
)
def test_a_write_to_an_earlier_file_is_one_under_outputs(rule: str, path: str, allowed: bool) -> None:
    decision = artifacts(rule).decide(call("create_file", path=path, file_text=""))
    assert decision.verdict == ("allow" if allowed else "ask")


def test_without_artifacts_a_path_is_a_path() -> None:
    written = call("create_file", path="turn_0003/files/a.md", file_text="")
    assert policy("create_file(outputs/**)").decide(written).verdict == "ask"
    assert policy("create_file(turn_0003/**)").decide(written).verdict == "allow"
    staged = call("stage_artifacts", artifact_names=["a"])
    assert policy().decide(staged).verdict == "ask"


@pytest.mark.parametrize(
    ("rule", "url", "allowed"),
    [
        ("view(https://good.example/**)", "https://good.example/a/b?c=d", True),
        ("view(https://*.good.example/**)", "https://api.good.example/a", True),
        ("view(https://good.example/a.csv)", "https://good.example/a.csv", True),
        ("Read", "https://anything.example", True),
        ("view(https://good.example/**)", "http://good.example/a", False),
        ("view(https://good.example/**)", "https://good.example.evil.example/a", False),
        ("view(https://good.example/**)", "https://good.example@evil.example/a", False),
        ("view(https://good.example/pub/**)", "https://good.example/pub/../secret", False),
        ("view(https://good.example/pub/**)", "https://good.example/pub/%2E%2e/secret", False),
        ("view(https://*.good.example/**)", "https://evil.example?.good.example/a", False),
        ("view(https://*.good.example/**)", "https://evil.example#.good.example/a", False),
        ("view(https://*.good.example/**)", "https://evil.example\\.good.example/a", False),
        ("view(https://*.good.example/**)", "https://evil.example:80.good.example/a", False),
        ("view(https://good.example/**)", "https://good.example/a b", False),
        ("view(**/a.csv)", "https://good.example/a.csv", False),
        ("view(**.csv)", "https://good.example/a.csv", False),
        ("view(/**)", "https://good.example/a.csv", False),
    ],
)
def test_a_rule_for_urls_names_their_scheme_and_host(rule: str, url: str, allowed: bool) -> None:
    verdict = "allow" if allowed else "ask"
    assert artifacts(rule).decide(call("view", path=url)).verdict == verdict


def test_every_url_that_is_staged_needs_a_rule() -> None:
    decided = artifacts("stage_artifacts(https://a.example/**)")
    one = call("stage_artifacts", artifact_names=["https://a.example/1", "sales", "https://a.example/2"])
    assert decided.decide(one).verdict == "allow"
    two = call("stage_artifacts", artifact_names=["https://a.example/1", "https://b.example/2"])
    assert decided.decide(two).verdict == "ask"
    elsewhere = call("stage_artifacts", artifact_names=["https://a.example/1"], destination_path="data")
    assert decided.decide(elsewhere).verdict == "ask"
    assert artifacts("stage_artifacts").decide(elsewhere).verdict == "allow"


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        (call("view", path="https://a.example/x.csv"), "view(https://a.example/**)"),
        (
            call("stage_artifacts", artifact_names=["https://a.example/x"]),
            "stage_artifacts(https://a.example/**)",
        ),
        (call("view", path="https://u:p@a.example/x.csv"), None),
        (call("view", path="https://a.example"), None),
        (call("stage_artifacts", artifact_names=["https://a.example/x", "https://b.example/x"]), None),
        (call("stage_artifacts", artifact_names=["x"], destination_path="data"), None),
        (call("create_file", path="turn_0003/files/a/b", file_text=""), "create_file(outputs/a/**)"),
        (call("create_file", path="file://sales", file_text=""), None),
    ],
)
def test_the_suggested_rule_for_artifacts(asked: ToolCall, rule: str | None) -> None:
    decided = artifacts()
    assert decided.decide(asked).rule == rule
    if rule is not None:
        decided.add_rule(rule)
        assert decided.decide(asked).verdict == "allow"


def test_a_restricted_session_reads_assets_of_skills_and_no_other_artifact() -> None:
    only = artifacts(only=["Bash(git:*)"])
    assert only.decide(call("view", path="skill://csv/assets/a.csv")).verdict == "allow"
    for denied in (
        call("view", path="file://sales"),
        call("view", path="turn_0003/files/a"),
        call("read_artifact", path="fi:turn_0003.files/a"),
        call("stage_artifacts", artifact_names=["sales"]),
    ):
        assert only.decide(denied).verdict == "deny"
    assert artifacts(only=["read_artifact"]).decide(call("read_artifact", path="x")).verdict == "allow"


@given(calls)
def test_where_there_are_artifacts_nothing_raises_and_suggestions_fit(asked: ToolCall) -> None:
    decided = artifacts()
    rule = decided.decide(asked).rule
    if rule is not None:
        decided.add_rule(rule)
        assert decided.decide(asked).verdict == "allow"


@given(calls)
def test_a_suggestion_allows_the_call_it_was_made_for(asked: ToolCall) -> None:
    decided = policy()
    rule = decided.decide(asked).rule
    if rule is not None:
        parse_rule(rule)
        decided.add_rule(rule)
        assert decided.decide(asked).verdict == "allow"


@given(calls)
def test_a_summary_is_one_bounded_line_that_hides_nothing(asked: ToolCall) -> None:
    line = summary(asked)
    assert "\n" not in line
    assert "\x1b" not in line
    assert "\u202e" not in line
    assert len(line) < 320
    line.encode()


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (bash("git status"), "git status"),
        (bash("a\n\n  b"), "a ⏎ b"),
        (bash("ls" + " " * 500 + "; rm x"), "ls ; rm x"),
        (bash("ls\x1b[2K\x1b[1Grm"), "ls\\u001b[2K\\u001b[1Grm"),
        (bash("echo \u202egpj.exe\u200b"), "echo \\u202egpj.exe\\u200b"),
        (call("create_file", path="a.md", file_text="x\ny\n"), "a.md (2 lines, 4 B)"),
        (call("view", path="a.md", view_range=[1, 20]), "a.md lines 1-20"),
        (call("inspect_variable"), "all variables"),
        (call("stage_artifacts", artifact_names=["a.csv", "b\n"]), "a.csv, b ⏎ → uploads/"),
        (call("stage_artifacts", artifact_names="a", destination_path="x/"), "a → x/"),
        (call("return_artifacts", file_paths=["outputs/a"], artifact_names=["b"]), "outputs/a as b"),
        (call("read_artifact", path="so:sources_pool[1]"), "so:sources_pool[1]"),
        (call("read_artifact", path="fi:x", view_range=[1, 2]), "fi:x lines 1-2"),
        (bash("cafe\u0301 naïve"), "cafe\u0301 naïve"),
    ],
)
def test_summaries(asked: ToolCall, line: str) -> None:
    assert summary(asked) == line


def test_a_long_command_shows_its_beginning_and_end() -> None:
    line = summary(bash("begin " + "x" * 100_000 + " rm -rf end"))
    assert line.startswith("begin xxx")
    assert line.endswith("rm -rf end")
    assert "more…]" in line
