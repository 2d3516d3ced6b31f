"""The tools stage_artifacts, return_artifacts and read_artifact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conjure_jupyter.executors.contract import ExecutionContext, Executor
from conjure_jupyter.tools import Toolbox, definitions

from .conftest import Run, call
from .sessions import Session

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


def texts(content: Any) -> list[str]:
    return [block["text"] for block in content if block["type"] == "text"]


def test_they_come_after_the_standard_tools_in_a_fixed_order(
    session: Session, executor: Executor, context: ExecutionContext
) -> None:
    box = Toolbox(executor, context, artifacts=session.service, namespace=dict)
    standard = ["view", "bash_tool", "create_file", "str_replace"]
    ours = ["stage_artifacts", "return_artifacts", "read_artifact", "render_file"]
    assert [tool["name"] for tool in box.definitions] == [*standard, *ours, "inspect_variable"]
    assert box.definitions == definitions(artifacts=True, rendering=True, inspect_variables=True)
    assert list(Toolbox(executor, context).tools) == standard


def test_the_fields_are_those_of_the_document() -> None:
    fields = {tool["name"]: tool["input_schema"] for tool in definitions(artifacts=True)}
    assert list(fields["stage_artifacts"]["properties"]) == ["artifact_names", "destination_path"]
    assert fields["stage_artifacts"]["properties"]["destination_path"]["default"] == "uploads/"
    assert list(fields["return_artifacts"]["properties"]) == ["file_paths", "artifact_names"]
    assert fields["return_artifacts"]["required"] == ["file_paths"]


class TestStaging:
    async def test_the_answer_has_the_documents_shape(self, session: Session, use: Run) -> None:
        session.give("data.csv", b"x" * 1_258_291, registered="data.csv")
        result = await use("stage_artifacts", artifact_names=["data.csv"])
        assert result.text == "Successfully staged 1 file(s):\n  • uploads/data.csv (1.2 MB)"
        assert not result.is_error
        assert (session.work / "uploads/data.csv").stat().st_size == 1_258_291

    async def test_what_cannot_be_had_is_listed_after_what_can(self, session: Session, use: Run) -> None:
        session.give("a.csv", "abc", registered="a.csv")
        result = await use("stage_artifacts", artifact_names=["nothing", "a.csv"])
        lines = result.text.split("\n")
        assert lines[:2] == ["Successfully staged 1 file(s):", "  • uploads/a.csv (3 B)"]
        assert lines[2].startswith("Could not stage nothing: ")
        assert not result.is_error

    async def test_it_fails_when_nothing_can_be_had(self, use: Run) -> None:
        result = await use("stage_artifacts", artifact_names=["a", "b"])
        assert result.is_error
        assert [line[:17] for line in result.text.split("\n")] == ["Could not stage a", "Could not stage b"]

    async def test_urls_assets_versions_and_uploads_can_be_staged(self, session: Session, use: Run) -> None:
        session.web.pages["https://example.com/api.json"] = b"{}"
        session.add_skill("csv", sample_csv="s,t\n")
        old = await session.make("outputs/old.txt", "old")
        session.next_turn()
        await session.make("outputs/old.txt", "newer")
        result = await use(
            "stage_artifacts",
            artifact_names=["https://example.com/api.json", "skill://csv/assets/sample.csv", old],
            destination_path="uploads/in",
        )
        assert not result.is_error
        staged = session.work / "uploads/in"
        assert (staged / "api.json").read_bytes() == b"{}"
        assert (staged / "sample.csv").read_text() == "s,t\n"
        assert (staged / "old.txt").read_text() == "old"

    @pytest.mark.parametrize("destination", ["../", "/etc", "skills/csv", "turn_0001/files", "a/../../.."])
    async def test_files_go_into_the_working_directory_only(
        self, session: Session, use: Run, destination: str
    ) -> None:
        session.give("a.csv", registered="a.csv")
        result = await use("stage_artifacts", artifact_names=["a.csv"], destination_path=destination)
        assert result.is_error
        assert not list(session.work.parent.glob("**/[!p]*/a.csv"))

    async def test_what_is_over_the_limit_says_so(
        self, tmp_path: Path, work: Path, executor: Executor, context: ExecutionContext
    ) -> None:
        small = Session(tmp_path, work, limit=10)
        small.give("a.csv", "x" * 11, registered="a.csv")
        toolbox = Toolbox(executor, context, artifacts=small.service)
        result = await toolbox.execute(call("stage_artifacts", artifact_names=["a.csv"]))
        assert result.is_error
        assert "too large" in result.text
        assert not (work / "uploads/a.csv").exists()

    @pytest.mark.parametrize(
        "name", ["a\n  • uploads/b (1 B)", 'a"; rm x', "\x1b[2J", "file://../../etc/passwd"]
    )
    async def test_an_odd_name_is_one_line_of_failure(self, use: Run, name: str) -> None:
        result = await use("stage_artifacts", artifact_names=[name])
        assert result.is_error
        assert "\n" not in result.text
        assert "\x1b" not in result.text

    @pytest.mark.parametrize("wrong", [[], "a.csv", [1], None])
    async def test_names_are_a_list_of_texts(self, use: Run, wrong: Any) -> None:
        assert (await use("stage_artifacts", artifact_names=wrong)).is_error


class TestReturning:
    async def test_the_answer_has_the_documents_shape(self, session: Session, use: Run) -> None:
        outputs = session.work / "outputs"
        outputs.mkdir()
        (outputs / "report.pdf").write_bytes(b"%PDF-1.7\n" + b"x" * 15_556)
        first = await use("return_artifacts", file_paths=["outputs/report.pdf"])
        assert first.text == "Saved 1 file(s) for download:\n  • report.pdf (v0, 15.2 KB)"
        again = await use("return_artifacts", file_paths=[str(outputs / "report.pdf")])
        assert "(v0, " in again.text
        (outputs / "report.pdf").write_bytes(b"%PDF-1.7\n")
        assert "(v1, 9 B)" in (await use("return_artifacts", file_paths=["outputs/report.pdf"])).text

    async def test_another_name(self, session: Session, use: Run) -> None:
        (session.work / "tmp").mkdir()
        (session.work / "tmp/x.csv").write_text("a")
        result = await use("return_artifacts", file_paths=["tmp/x.csv"], artifact_names=["sums.csv"])
        assert "  • sums.csv (v0, 1 B)" in result.text
        assert (session.work / "outputs/sums.csv").read_text() == "a"

    async def test_names_fit_files(self, session: Session, use: Run) -> None:
        result = await use("return_artifacts", file_paths=["a", "b"], artifact_names=["x"])
        assert result.is_error
        assert "1 names for 2 files" in result.text

    async def test_an_earlier_version_can_be_returned(self, session: Session, use: Run) -> None:
        await session.make("outputs/a.txt", "first")
        session.next_turn()
        await session.make("outputs/a.txt", "second")
        result = await use(
            "return_artifacts", file_paths=["turn_0001/files/a.txt"], artifact_names=["before.txt"]
        )
        assert "before.txt (v0, 5 B)" in result.text
        assert (session.work / "outputs/before.txt").read_text() == "first"

    @pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "outputs", ".", "", "a\0b", "missing"])
    async def test_only_files_of_the_working_directory(self, session: Session, use: Run, path: str) -> None:
        (session.work / "outputs").mkdir()
        (session.work.parent / "secret").write_text("s3cret")
        result = await use("return_artifacts", file_paths=[path])
        assert result.is_error
        assert result.text.startswith("Could not save ")
        assert not session.discovery.all

    async def test_a_link_out_is_not_followed(self, session: Session, use: Run) -> None:
        (session.work / "outputs").mkdir()
        (session.work / "outputs/a").symlink_to("/etc/passwd")
        assert (await use("return_artifacts", file_paths=["outputs/a"])).is_error
        assert not session.discovery.all

    async def test_a_return_waits_for_the_writes_asked_for_before_it(
        self, session: Session, executor: Executor, context: ExecutionContext
    ) -> None:
        toolbox = Toolbox(executor, context, artifacts=session.service)
        results = await toolbox.execute_all(
            [
                call("create_file", "a", path="outputs/a", file_text="a"),
                call("create_file", "b", path="outputs/b", file_text="b"),
                call("return_artifacts", "r", file_paths=["outputs/b", "outputs/./a"]),
            ]
        )
        assert results[-1].text.startswith("Saved 2 file(s)")


class TestReading:
    async def test_a_file_is_described_and_then_shown(self, session: Session, use: Run) -> None:
        path = await session.make("outputs/a.csv", "x,y\n1,2\n", call_id="toolu_9")
        result = await use("read_artifact", path=path)
        digest, content = texts(result.content)
        said = json.loads(digest)
        assert said["artifact_path"] == "fi:turn_0001.files/a.csv"
        assert (said["tool_call_id"], said["version"]) == ("toolu_9", 0)
        assert content == "     1\tx,y\n     2\t1,2"

    @pytest.mark.parametrize(
        "path", ["fi:turn_0001.files/a.csv", "turn_0001/files/a.csv", "./turn_0001/files/a.csv"]
    )
    async def test_an_old_version_is_put_on_disk_again(self, session: Session, use: Run, path: str) -> None:
        await session.make("outputs/a.csv", "old\n")
        session.next_turn()
        await session.make("outputs/a.csv", "new\n")
        result = await use("read_artifact", path=path)
        assert texts(result.content)[1] == "     1\told"
        there = session.work / "turn_0001/files/a.csv"
        assert there.read_text() == "old\n"
        assert there.stat().st_mode & 0o222 == 0

    async def test_some_lines(self, session: Session, use: Run) -> None:
        path = await session.make("outputs/a", "".join(f"{number}\n" for number in range(1, 100)))
        result = await use("read_artifact", path=path, view_range=[5, 6])
        assert texts(result.content)[1].startswith("     5\t5\n     6\t6\n[")
        wrong = await use("read_artifact", path=path, view_range=[0, 6])
        assert wrong.is_error
        assert wrong.text.startswith("read_artifact: view_range")

    async def test_long_text_is_bounded(self, session: Session, executor: Executor, work: Path) -> None:
        path = await session.make("outputs/a", "word\n" * 100_000)
        toolbox = Toolbox(executor, ExecutionContext(work), artifacts=session.service, output_limit=2_000)
        result = await toolbox.execute(call("read_artifact", path=path))
        assert len(result.text) < 3_000
        assert "use view_range" in result.text

    async def test_an_image_is_an_image(self, session: Session, use: Run) -> None:
        result = await use("read_artifact", path=await session.make("outputs/a.png", PNG))
        assert [block["type"] for block in result.content] == ["text", "text", "image"]

    async def test_of_other_binaries_only_the_metadata(self, session: Session, use: Run) -> None:
        result = await use("read_artifact", path=await session.make("outputs/a.bin", b"\0\1\2secret"))
        assert not result.is_error
        assert "secret" not in result.text
        assert json.loads(texts(result.content)[0])["size"] == 9

    async def test_what_was_not_kept_is_described_with_the_reason(
        self, tmp_path: Path, work: Path, executor: Executor, context: ExecutionContext
    ) -> None:
        small = Session(tmp_path, work, limit=10)
        path = await small.make("outputs/a", "x" * 11)
        (work / "outputs/a").unlink()
        toolbox = Toolbox(executor, context, artifacts=small.service)
        result = await toolbox.execute(call("read_artifact", path=path))
        assert not result.is_error
        assert "cannot be shown" in result.text

    async def test_what_was_said(self, session: Session, use: Run) -> None:
        session.timeline.append("user", {"content": [{"type": "text", "text": "one\ntwo\nthree"}]})
        session.timeline.append(
            "assistant",
            {
                "message": {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": "Done."},
                        {"type": "tool_use", "id": "toolu_7", "name": "view", "input": {"path": "a"}},
                    ],
                    "stop_reason": "tool_use",
                }
            },
        )
        session.timeline.append("tool_result", {"tool_use_id": "toolu_7", "content": "what it gave"})
        assert (await use("read_artifact", path="ar:turn_0001.user.prompt")).text == "one\ntwo\nthree"
        assert (await use("read_artifact", path="ar:turn_0001.assistant.completion")).text == "Done."
        assert '"name"' in (await use("read_artifact", path="tc:turn_0001.toolu_7.call")).text
        assert (await use("read_artifact", path="tc:turn_0001.toolu_7.result")).text == "what it gave"
        some = await use("read_artifact", path="ar:turn_0001.user.prompt", view_range=[2, 2])
        assert some.text == "     2\ttwo\n[3 lines in all]"

    async def test_sources(self, session: Session, use: Run) -> None:
        await session.make("outputs/a.csv", "a")
        await session.make("outputs/b.csv", "b")
        one, two, note = (await use("read_artifact", path="so:sources_pool[2,1,7]")).text.split("\n")
        assert json.loads(one)["source"] == 2
        assert json.loads(two)["artifact_path"] == "fi:turn_0001.files/a.csv"
        assert "no source 7" in note
        assert (await use("read_artifact", path="so:sources_pool[9]")).is_error

    @pytest.mark.parametrize(
        "path",
        [
            "",
            "outputs/a.csv",
            "fi:turn_0001.files/../../x",
            "fi:turn_0001.files//etc/passwd",
            "fi:turn_9999.files/none",
            "FI:turn_0001.files/a",
            "ｆｉ:turn_0001.files/a",  # noqa: RUF001  full width on purpose
            "tc:turn_0001.toolu_1\n.result",
            "file://a",
            "su:turn_0001.conv.range.summary",
        ],
    )
    async def test_what_names_nothing_is_told(self, use: Run, path: str) -> None:
        result = await use("read_artifact", path=path)
        assert result.is_error
        assert "failed inside" not in result.text
