"""Inputs that name artifacts: path fields, mentions in texts, words of commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.executors.contract import ExecutionContext, Executor
from conjure_jupyter.tools import Toolbox
from conjure_jupyter.tools.references import lock_keys, reference

from .conftest import Run, call
from .sessions import Session

WORK = Path("/s/work")
CONTEXT = ExecutionContext(WORK, skills_root=WORK / "skills")
BESIDE = ExecutionContext(
    Path("/home/me/nb"), skills_root=Path("/home/me/nb/.conjure/sessions/s1/work/skills")
)


@pytest.mark.parametrize(
    ("value", "write", "kind", "path"),
    [
        ("fi:turn_0003.files/a/b.csv", False, "version", "turn_0003/files/a/b.csv"),
        ("fi:turn_0003.files/a/b.csv", True, "version", "outputs/a/b.csv"),
        ("fi:turn_0003.user.attachments/s.csv", False, "version", "turn_0003/attachments/s.csv"),
        ("fi:turn_0003.user.attachments/s.csv", True, "version", "outputs/s.csv"),
        ("fi:turn_0003.internal/tmp/x", True, "version", "outputs/x"),
        ("turn_0003/files/a.csv", False, "version", "turn_0003/files/a.csv"),
        ("turn_0003/files/a.csv", True, "version", "outputs/a.csv"),
        ("./x/../turn_0003//files/a.csv", True, "version", "outputs/a.csv"),
        ("/s/work/turn_0003/files/a.csv", True, "version", "outputs/a.csv"),
        ("fi:turn_0003.files/../../etc/passwd", True, "version", None),
        ("fi:whatever", False, "version", None),
        ("file://sales", False, "asset", None),
        ("skill://csv/assets/a.csv", True, "asset", None),
        ("https://example.com/x", False, "url", None),
        ("http://example.com/x", True, "url", None),
        ("ar:turn_0003.user.prompt", False, "record", None),
        ("tc:turn_0003.x.result", False, "record", None),
        ("so:sources_pool[1]", False, "record", None),
    ],
)
def test_what_a_value_stands_for(value: str, write: bool, kind: str, path: str | None) -> None:
    meant = reference(value, CONTEXT, write=write)
    assert meant is not None
    assert (meant.kind, meant.path) == (kind, path)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "outputs/a.csv",
        "/etc/passwd",
        "turn_0003",
        "turn_0003/files",
        "turn_0003/files/",
        "turn_0003/other/a.csv",
        "x/turn_0003/files/a.csv",
        "turn_3/files/a.csv",
        "turn_0003/files/../../a.csv",
        "../turn_0003/files/a.csv",
        "turn_0003/files/a\0b",
        "ｆｉｌｅ://sales",  # noqa: RUF001  full width on purpose
        "file:/etc/passwd",
        "ftp://example.com/x",
        "a file://sales",
    ],
)
def test_ordinary_paths_are_left_alone(value: str) -> None:
    assert reference(value, CONTEXT, write=True) is None


def test_in_the_notebooks_folder_earlier_files_lie_in_the_sessions() -> None:
    for value in ("turn_0003/files/a", ".conjure/sessions/s1/work/turn_0003/files/a"):
        meant = reference(value, BESIDE)
        assert meant is not None
        assert meant.path == ".conjure/sessions/s1/work/turn_0003/files/a"
        written = reference(value, BESIDE, write=True)
        assert written is not None
        assert written.path == "outputs/a"


@given(st.text(st.characters() | st.sampled_from("fi:turn_0003./\0~sk[]"), max_size=40), st.booleans())
def test_no_text_makes_it_fail_and_nothing_leads_out(value: str, write: bool) -> None:
    meant = reference(value, CONTEXT, write=write)
    if meant is not None and meant.path is not None:
        assert ".." not in meant.path.split("/")
        assert meant.path.startswith("outputs/" if write else "turn_")


def test_a_write_of_an_earlier_file_waits_for_writes_of_the_file_it_becomes() -> None:
    def keys(path: str) -> list[str]:
        return lock_keys({"path": path}, ("path",), CONTEXT, write=True, known=True)

    assert keys("turn_0003/files/a") == keys("fi:turn_0003.files/a") == keys("outputs/./a")
    assert lock_keys({"path": [3, "a", "b", "a"]}, ("path",), CONTEXT, write=True, known=False) == [
        "/s/work/a",
        "/s/work/b",
    ]
    for odd in (None, [], "path", {"path": None}, {"path": {}}):
        assert lock_keys(odd, ("path",), CONTEXT, write=True, known=True) == []


class TestPathFields:
    async def test_a_registered_file_can_be_viewed(self, session: Session, use: Run) -> None:
        session.give("sales.csv", "r,s\n", registered="sales")
        result = await use("view", path="file://sales")
        assert result.text == "     1\tr,s"
        assert "notices" not in result.meta

    async def test_an_asset_can_be_viewed(self, session: Session, use: Run) -> None:
        session.add_skill("csv", sample_csv="s,t\n")
        assert (await use("view", path="skill://csv/assets/sample.csv")).text == "     1\ts,t"

    async def test_a_url_is_fetched(self, session: Session, use: Run) -> None:
        session.web.pages["https://example.com/a.json"] = b"[1]"
        assert (await use("view", path="https://example.com/a.json")).text == "     1\t[1]"
        missing = await use("view", path="https://example.com/b.json")
        assert missing.is_error
        assert "https://example.com/b.json" in missing.text
        assert "404" in missing.text

    @pytest.mark.parametrize(
        "uri",
        [
            "file://nothing",
            "file://../../etc/passwd",
            "file:///etc/passwd",
            "skill://csv/assets/../../SKILL.md",
            "skill://csv/assets/%2e%2e/SKILL.md",
            "skill://csv/SKILL.md",
            "skill://other/assets/sample.csv",
            "file://a\nb",
            "FILE://../../etc/passwd",
        ],
    )
    async def test_what_names_nothing_is_told_with_its_uri(
        self, session: Session, use: Run, uri: str
    ) -> None:
        session.add_skill("csv", sample_csv="s,t\n")
        result = await use("view", path=uri)
        assert result.is_error
        assert "failed inside" not in result.text
        assert "root:" not in result.text
        assert "Instructions" not in result.text

    async def test_an_earlier_version_is_put_on_disk_for_a_view(self, session: Session, use: Run) -> None:
        logical = await session.make("outputs/a.csv", "old\n")
        session.next_turn()
        await session.make("outputs/a.csv", "new\n")
        for path in (logical, "turn_0001/files/a.csv", str(session.work / "turn_0001/files/a.csv")):
            assert (await use("view", path=path)).text == "     1\told"
        assert session.notices == []

    async def test_an_edit_of_an_earlier_version_goes_to_a_copy(self, session: Session, use: Run) -> None:
        await session.make("outputs/a.csv", "old line\n")
        session.next_turn()
        (session.work / "outputs/a.csv").unlink()
        result = await use(
            "str_replace", path="./turn_0001/files/a.csv", old_str="old", new_str="edited", description="x"
        )
        assert not result.is_error
        assert (session.work / "outputs/a.csv").read_text() == "edited line\n"
        assert not (session.work / "turn_0001/files/a.csv").exists()
        assert result.meta["files"] == ["outputs/a.csv"]
        assert result.meta["notices"][0]["code"] == "path_rewritten"
        ((code, text),) = session.notices
        assert code == "path_rewritten"
        assert "outputs/a.csv" in text

    async def test_a_new_file_at_an_earlier_path_goes_to_outputs(self, session: Session, use: Run) -> None:
        session.next_turn()
        result = await use("create_file", path="fi:turn_0001.files/n.md", file_text="x")
        assert not result.is_error
        assert (session.work / "outputs/n.md").read_text() == "x"
        assert [code for code, _ in session.notices] == ["path_rewritten"]

    @pytest.mark.parametrize(
        "uri", ["file://sales", "https://example.com/a", "skill://csv/assets/sample.csv"]
    )
    async def test_artifacts_are_not_written_to(self, session: Session, use: Run, uri: str) -> None:
        path = session.give("sales.csv", "r,s\n", registered="sales")
        session.add_skill("csv", sample_csv="s,t\n")
        result = await use("create_file", path=uri, file_text="changed")
        assert result.is_error
        assert uri in result.text
        assert path.read_text() == "r,s\n"
        assert session.web.asked == []

    async def test_a_part_of_the_conversation_is_no_file(self, use: Run) -> None:
        result = await use("view", path="ar:turn_0001.user.prompt")
        assert result.is_error
        assert "read_artifact" in result.text

    async def test_folders_of_earlier_turns_are_folders(self, session: Session, use: Run) -> None:
        folder = session.work / "turn_0001/files/sub"
        folder.mkdir(parents=True)
        (folder / "a").write_text("x")
        assert "sub/a" in (await use("view", path="turn_0001/files")).text
        assert (await use("view", path="turn_0001/files/sub")).text.startswith("turn_0001/files/sub/")

    async def test_texts_of_files_are_left_alone(self, session: Session, use: Run) -> None:
        session.give("sales.csv", registered="sales")
        text = "file://sales https://example.com fi:turn_0001.files/a"
        await use("create_file", path="outputs/a.md", file_text=text)
        assert (session.work / "outputs/a.md").read_text() == text
        await use("str_replace", path="outputs/a.md", old_str="file://sales", new_str="skill://x/assets/y")
        assert (session.work / "outputs/a.md").read_text().startswith("skill://x/assets/y https")

    async def test_without_artifacts_nothing_is_resolved(self, run: Run, work: Path) -> None:
        await run("create_file", path="turn_0001/files/a", file_text="x")
        assert (work / "turn_0001/files/a").read_text() == "x"
        assert (await run("view", path="file://a")).is_error


class TestMentions:
    async def test_what_a_text_mentions_is_put_on_disk(self, session: Session, use: Run) -> None:
        await session.make("outputs/a.png", "image")
        session.next_turn()
        await session.make("outputs/a.png", "newer")
        result = await use(
            "create_file", path="outputs/p.html", file_text='<img src="turn_0001/files/a.png"> [[S:1]]'
        )
        assert not result.is_error
        assert (session.work / "turn_0001/files/a.png").read_text() == "image"
        assert session.notices == []

    async def test_a_command_finds_what_it_names(self, session: Session, use: Run) -> None:
        await session.make("outputs/a.txt", "old")
        session.next_turn()
        await session.make("outputs/a.txt", "newer")
        result = await use("bash_tool", command="cat turn_0001/files/a.txt", description="x")
        assert result.text == "old"

    async def test_what_is_missing_is_told_and_the_call_runs(self, session: Session, use: Run) -> None:
        result = await use(
            "create_file", path="outputs/p.md", file_text="![](turn_0001/files/no.png) [[S:9]] [[S:10-11]]"
        )
        assert not result.is_error
        assert (session.work / "outputs/p.md").exists()
        assert [code for code, _ in session.notices] == [
            "tool_call_error.missing_assets",
            "tool_call_warning.missing_sources",
        ]
        assert [notice["code"] for notice in result.meta["notices"]] == [code for code, _ in session.notices]
        assert "turn_0001/files/no.png" in result.text
        assert "[[S:9]], [[S:10]], [[S:11]]" in result.text

    async def test_a_failing_call_tells_it_too(self, use: Run) -> None:
        result = await use("bash_tool", command="cat turn_0001/files/no.txt")
        assert result.is_error
        assert "no artifact has the path turn_0001/files/no.txt" in result.text
        refused = await use("create_file", path="", file_text="[[S:4]]")
        assert "[[S:4]]" in refused.text

    async def test_an_explanation_names_nothing(self, session: Session, use: Run) -> None:
        await use("bash_tool", command="true", description="like turn_0001/files/no.txt")
        assert session.notices == []


class TestCommands:
    @pytest.fixture(autouse=True)
    def given(self, session: Session) -> None:
        session.give("sales data.csv", "r,s\n", registered="sales")
        session.add_skill("csv", sample_csv="s,t\n")

    @pytest.mark.parametrize(
        ("command", "output"),
        [
            ("cat file://sales", "r,s"),
            ("cat FILE://sales", "r,s"),
            ("cat skill://csv/assets/sample.csv", "s,t"),
            ("cat < file://sales | tr a-z A-Z", "R,S"),
            ("cd skills/csv && cat file://sales skill://csv/assets/sample.csv", "r,s\ns,t"),
            ("mkdir -p a/b; cd a/b; cat file://sales", "r,s"),
            ("(cd skills && cat file://sales)", "r,s"),
            ("wc -l file://sales > n; cut -c1 n", "1"),
        ],
    )
    async def test_words_are_replaced_wherever_they_stand(self, use: Run, command: str, output: str) -> None:
        result = await use("bash_tool", command=command)
        assert (result.text, result.is_error) == (output, False)

    @pytest.mark.parametrize(
        "command",
        [
            "echo 'file://sales'",
            'echo "file://sales"',
            'echo "a file://sales b"',
            "cat <<E\nfile://sales\nE",
            "cat <<'E'\ncat file://sales\nE",
            "true # file://sales",
            "X=file://sales; echo $X",
            "echo xfile://sales",
            "echo file://sales-of-2024",
            "echo file://other",
            "echo file://../../etc/passwd",
            "echo file:///etc/passwd",
            "echo https://example.com/a",
            "echo skill://csv/assets/../../SKILL.md",
            "echo ｆｉｌｅ://sales",  # noqa: RUF001  full width on purpose
            "echo --data=file://sales",
            r"echo file://sal\es",
            "echo file://$USER",
            "for x in 1; do echo '<file://sales>'; done",
        ],
    )
    async def test_all_else_is_left_alone(self, use: Run, run: Run, session: Session, command: str) -> None:
        with_artifacts, without = (
            await use("bash_tool", command=command),
            await run("bash_tool", command=command),
        )
        assert with_artifacts.text == without.text
        assert session.web.asked == []

    @pytest.mark.parametrize("uri", ["skill://other/assets/sample.csv", "skill://csv/assets/none.csv"])
    async def test_an_asset_that_is_not_there_is_left_and_told(self, use: Run, uri: str) -> None:
        result = await use("bash_tool", command=f"echo {uri}")
        assert not result.is_error
        said, note = result.text.split("\n", 1)
        assert said == uri
        assert uri in note

    async def test_a_file_that_is_gone_is_told_before_anything_runs(self, session: Session, use: Run) -> None:
        (session.project / "sales data.csv").unlink()
        result = await use("bash_tool", command="touch ran; cat file://sales")
        assert result.is_error
        assert "file://sales" in result.text
        assert not (session.work / "ran").exists()

    async def test_a_name_cannot_become_a_command(self, session: Session, use: Run) -> None:
        session.give("a'; touch pwned; '.csv", "odd\n", registered="odd")
        result = await use("bash_tool", command="cat file://odd")
        assert result.text == "odd"
        assert not (session.work / "pwned").exists()

    async def test_variables_name_the_files(self, use: Run) -> None:
        result = await use("bash_tool", command='cd skills; cat "$ARTIFACT_SALES"; echo ${CONJURE_X-unset}')
        assert result.text == "r,s\nunset"

    async def test_the_documents_workflow(self, session: Session, use: Run) -> None:
        """As the artifact document writes it, from the upload to the report."""
        session.give("sales_data.csv", "region,amount\nN,3\nS,4\n", registered="sales_data.csv")
        scripts = session.work / "skills/data-analysis/scripts"
        scripts.mkdir(parents=True)
        (scripts / "analyze.py").write_text(
            "import pathlib, sys\n"
            "rows = pathlib.Path(sys.argv[1]).read_text().split()[1:]\n"
            "report = pathlib.Path('../../outputs/analysis_report.pdf')\n"
            "report.parent.mkdir(exist_ok=True)\n"
            "report.write_text('%PDF-1.7 total ' + str(sum(int(row[2:]) for row in rows)))\n"
        )
        staged = await use("stage_artifacts", artifact_names=["sales_data.csv"])
        assert "  • uploads/sales_data.csv (" in staged.text
        ran = await use(
            "bash_tool",
            command="cd skills/data-analysis && python scripts/analyze.py ../../uploads/sales_data.csv",
        )
        assert not ran.is_error
        returned = await use("return_artifacts", file_paths=["outputs/analysis_report.pdf"])
        assert returned.text == "Saved 1 file(s) for download:\n  • analysis_report.pdf (v0, 16 B)"
        kept = session.discovery.find("fi:turn_0001.files/analysis_report.pdf")
        assert kept is not None
        assert session.service.blobs.read(kept.sha256) == b"%PDF-1.7 total 7"


async def test_the_call_that_made_an_artifact_is_known(
    session: Session, executor: Executor, context: ExecutionContext
) -> None:
    session.give("a.csv", registered="a.csv")
    toolbox = Toolbox(executor, context, artifacts=session.service)
    await toolbox.execute(call("stage_artifacts", "toolu_42", artifact_names=["a.csv"]))
    assert [artifact.path for artifact in session.discovery.of_call("toolu_42")] == ["uploads/a.csv"]
