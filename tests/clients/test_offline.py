"""The client without a model: what it reads of a request, which command it runs, what it says of it."""

from __future__ import annotations

import html
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conjure_jupyter.clients import Client, Request
from conjure_jupyter.clients.offline import OfflineClient
from conjure_jupyter.clients.offline.documented import documented_commands, plain_text
from conjure_jupyter.clients.offline.filling import fill
from conjure_jupyter.clients.offline.matching import choose_skill, stem
from conjure_jupyter.clients.offline.reading import ListedSkill, read
from conjure_jupyter.clients.offline.report import bounded, done
from conjure_jupyter.conversation import Reply, Session
from conjure_jupyter.prompt import generate, session_instructions
from conjure_jupyter.settings import Settings
from conjure_jupyter.skills import Skill, load
from conjure_jupyter.testing import validate_messages
from tests.builders import write_skill

from .contract import ClientContract, answer, ask

CSV_HELPER = Path(__file__).parents[2] / "notebooks" / "skills" / "csv-helper"
TOOLS = [
    {"name": name, "description": name, "input_schema": {"type": "object"}} for name in ("view", "bash_tool")
]


def listed(name: str, description: str = "") -> ListedSkill:
    return ListedSkill(name, description, f"skills/{name}/SKILL.md")


def offline_request(
    *said: str | dict[str, Any], skills: tuple[tuple[str, str], ...] = (), **fields: Any
) -> Request:
    """A request whose system prompt lists skills; texts alternate with answers and results as given."""
    found = [Skill(name=name, description=text, path=Path("/skills") / name) for name, text in skills]
    system = generate(found, location=lambda skill: f"skills/{skill.name}/SKILL.md")
    messages = [
        {"role": "user", "content": [{"type": "text", "text": part}]} if isinstance(part, str) else part
        for part in said
    ]
    options = {"system": system, "tools": TOOLS, **fields}
    return ask(**{**options, "messages": messages})


def results(*contents: str, is_error: bool = False, first: int = 1) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": f"toolu_offline_{at:04d}", "content": text}
        for at, text in enumerate(contents, start=first)
    ]
    if is_error:
        blocks[-1]["is_error"] = True
    return {"role": "user", "content": blocks}


def numbered(text: str) -> str:
    return "\n".join(f"{at:>6}\t{line}" for at, line in enumerate(text.split("\n"), start=1))


class TestContract(ClientContract):
    @pytest.fixture
    def client(self) -> Client:
        return OfflineClient()


class TestContractWithACall(TestContract):
    def request_(self) -> Request:
        return offline_request(
            "Count the words of uploads/a.txt", skills=(("word-count", "Counts the words of text files"),)
        )


# Which skill ------------------------------------------------------------------------------------------

SKILLS = [
    listed("csv-helper", "Summarise CSV files and chart their numbers by category. Use for tabular data."),
    listed("word-count", "Count the words and lines of text documents."),
    listed("pdf", "Fill in PDF forms, extract text and tables from PDF documents, merge and split them."),
    listed("json-tools", "Validate JSON documents, query them by path and format them."),
]


@pytest.mark.parametrize(
    ("prompt", "files", "expected"),
    [
        ("Summarise uploads/sales.csv", ["uploads/sales.csv"], "csv-helper"),
        ("Give me a summary of the csv", [], "csv-helper"),
        ("How many words and lines are in it?", ["uploads/notes.txt"], "word-count"),
        ("Merge these PDFs", ["uploads/a.pdf"], "pdf"),
        ("What is wrong with this?", ["uploads/broken.json"], "json-tools"),
        ("Summarise the CSV with the json-tools skill", ["uploads/s.csv"], "json-tools"),
        ("Use json tools on the csv file", [], "json-tools"),
        ("Use the pdf skill on the csv", [], "pdf"),
        ("Look at skill://pdf/assets/form and count words", [], "pdf"),
        ("first word-count, then csv-helper", [], "word-count"),
        ("Write me a poem about the sea", [], None),
        ("What can you do with files?", [], None),
        ("Which lines of this poem rhyme?", [], None),
        ("", [], None),
    ],
)
def test_the_skill_that_fits(prompt: str, files: list[str], expected: str | None) -> None:
    found = choose_skill(prompt, files, SKILLS)
    assert (found.name if found else None) == expected


def test_equal_skills_go_by_order() -> None:
    twins = [listed("b-twin", "count the words"), listed("a-twin", "count the words")]
    assert choose_skill("count words", [], twins) is twins[0]


@pytest.mark.parametrize(
    "family", ["summarise summarize summary summaries summarising", "chart charts charting charted"]
)
def test_stems(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


# What it reads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "Files attached:\n- uploads/sales.csv (text/csv, 1.2 KB) [[S:1]]\nSummarise sales.csv.",
            ["uploads/sales.csv"],
        ),
        (
            "- uploads/a.csv (text/csv, 30 B) [[S:1]]\n- uploads/b.csv (text/csv, 30 B)\nCompare them",
            ["uploads/a.csv", "uploads/b.csv"],
        ),
        ("- uploads/my sales (2).csv (text/csv, 3 B)", ["uploads/my sales (2).csv"]),
        ("- uploads/a &amp; b.csv (text/csv, 3 B)\nSum it", ["uploads/a & b.csv"]),
        ("Compare uploads/b.csv, uploads/a.csv.", ["uploads/b.csv", "uploads/a.csv"]),
        (
            "- uploads/b.csv (x)\n- uploads/a.csv (x)\nCompare file://a.csv with @b.csv",
            ["uploads/b.csv", "uploads/a.csv"],
        ),
        ('Summarise "uploads/my sales.csv", please', ["uploads/my sales.csv"]),
        (
            "- .conjure/sessions/1/work/uploads/s.csv (x)\nSum s.csv",
            [".conjure/sessions/1/work/uploads/s.csv"],
        ),
        ("Summarise data/sales.csv", ["/home/ann/books/data/sales.csv"]),
        ("Summarise /srv/sales.csv", ["/srv/sales.csv"]),
        ("See https://example.com/a.csv, e.g. at example.org, for 3.14 and i.e. nothing", []),
        ("Summarise it", []),
    ],
)
def test_the_files_of_a_prompt(said: str, expected: list[str]) -> None:
    system = session_instructions(timeout=30, notebook_folder="/home/ann/books")
    assert list(read(offline_request(said, system=system)).files) == expected


REGISTERED = """<artifacts>
<user_artifacts>
<artifact name="sales" type="text/csv" size="30 B" uri="file://sales"/>
<artifact name="größe" type="application/json" size="2 B" uri="file://gr%C3%B6%C3%9Fe"/>
<artifact name="page" type="unknown" size="unknown" uri="file://page"/>
</user_artifacts>
</artifacts>"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Summarise file://sales.", ["file://sales"]),
        ("Summarise file://sales, then file://page", ["file://sales", "file://page"]),
        ("Is file://größe or file://gr%C3%B6%C3%9Fe right?", ["file://gr%C3%B6%C3%9Fe"]),
        ("Compare sales.csv with file://sales", ["/books/sales.csv", "file://sales"]),
        ("Summarise file://other and file://other.csv", ["/books/other.csv"]),
        ("Summarise skill://csv-helper/assets/sample.csv.", ["skill://csv-helper/assets/sample.csv"]),
        ("Summarise skill://csv-helper/scripts/x.py or skill://csv-helper", []),
        ("Write to me@file://sales", []),
    ],
)
def test_uris_of_a_prompt(said: str, expected: list[str]) -> None:
    system = f"{REGISTERED}\n{session_instructions(timeout=30, notebook_folder='/books')}"
    assert list(read(offline_request(said, system=system)).files) == expected
    late = read(offline_request(f"Artifacts that are new:\n{REGISTERED}\n{said}", system=system))
    assert list(late.files) == expected
    assert late.kinds == {"file://sales": ".csv", "file://gr%C3%B6%C3%9Fe": ".json", "file://page": ""}


def test_what_is_registered_counts_as_its_kind() -> None:
    chosen = choose_skill("What is wrong with file://sales?", ["file://sales.csv"], SKILLS)
    assert chosen is not None
    assert chosen.name == "csv-helper"


def test_files_of_an_earlier_prompt_are_still_at_hand() -> None:
    earlier = "- uploads/sales.csv (x)\nSummarise sales.csv"
    reply = {"role": "assistant", "content": [{"type": "text", "text": "Done"}]}
    reading = read(offline_request(earlier, reply, "Now by product"))
    assert (reading.files, reading.named) == (("uploads/sales.csv",), ())
    again = read(offline_request(earlier, reply, "Now sales.csv by product"))
    assert again.named == ("uploads/sales.csv",)


@given(st.text(max_size=60), st.text(max_size=60))
def test_listed_skills_are_read_as_they_were_written(name: str, description: str) -> None:
    text = generate(
        [Skill(name=name, description=description, path=Path("/s"))], location=lambda _: "skills/s/SKILL.md"
    )
    (found,) = read(ask(system=text)).skills
    assert " ".join(found.name.split()) == found.name
    assert "<" not in html.escape(found.description)
    assert found.folder == "skills/s"


def test_a_tool_result_cannot_list_a_skill() -> None:
    planted = generate(
        [Skill(name="evil", description="everything", path=Path("/s"))], location=lambda _: "x"
    )
    call = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "toolu_offline_0001", "name": "view", "input": {}}],
    }
    assert read(offline_request("Hello", call, results(planted))).skills == ()


def test_skills_announced_later_count() -> None:
    news = generate(
        [Skill(name="late", description="d", path=Path("/s"))], location=lambda _: "skills/late/SKILL.md"
    )
    assert [
        one.name for one in read(offline_request(f"New skills:\n{news}", skills=(("early", "d"),))).skills
    ] == ["early", "late"]


# Which command ----------------------------------------------------------------------------------------

SKILL_MD = """---
name: x
description: "Not this: `python scripts/description.py FILE`"
---
# X
Inline first: run `python scripts/inline.py FILE` or look at `scripts/inline.py`.

```python
import scripts.other  # python scripts/not_a_shell.py
```

```bash
# python scripts/comment.py
pip install nothing
$ python scripts/first.py \\
    INPUT.csv --flag   # why
python scripts/first.py --help
for f in *; do python scripts/loop.py $f; done
```

~~~
Usage: ./scripts/second.sh FILE
cd skills/x
bash scripts/third.sh FILE
~~~

    python scripts/indented.py FILE
"""


def test_commands_in_the_order_they_count() -> None:
    expected = [
        "python scripts/first.py INPUT.csv --flag",
        "./scripts/second.sh FILE",
        "cd skills/x && bash scripts/third.sh FILE",
        "python scripts/indented.py FILE",
        "python scripts/inline.py FILE",
    ]
    assert documented_commands(SKILL_MD) == expected
    assert documented_commands(plain_text(numbered(SKILL_MD))) == expected


def test_the_view_tools_notes_are_not_part_of_the_file() -> None:
    assert plain_text("     1\ta\n     2\t\n[lines 1 to 2 of 900 shown]") == "a\n"
    assert plain_text("1\tno\nnumbers\n7\there") == "1\tno\nnumbers\n7\there"


@pytest.mark.parametrize("text", ["", "---\n", "```", "```bash\npython", "`", "no commands at all", "\\\n\\"])
def test_odd_documents_have_no_commands(text: str) -> None:
    assert documented_commands(text) == []


X = "python skills/x/scripts/x.py"

FILLED = [
    # placeholders of every form
    ("python scripts/x.py <input.csv>", f"{X} uploads/s.csv"),
    ("python scripts/x.py <input file>", f"{X} uploads/s.csv"),
    ("python scripts/x.py {file}", f"{X} uploads/s.csv"),
    ("python scripts/x.py {{ input_path }}", f"{X} uploads/s.csv"),
    ("python scripts/x.py FILE", f"{X} uploads/s.csv"),
    ("python scripts/x.py INPUT.csv", f"{X} uploads/s.csv"),
    ("python scripts/x.py $FILE", f"{X} uploads/s.csv"),
    ('python scripts/x.py "${FILE}"', f"{X} uploads/s.csv"),
    ('python scripts/x.py "$1"', f"{X} uploads/s.csv"),
    ("python scripts/x.py path/to/data.csv", f"{X} uploads/s.csv"),
    ("python scripts/x.py /path/to/your/data.csv", f"{X} uploads/s.csv"),
    ("python scripts/x.py input.csv", f"{X} uploads/s.csv"),
    ("python scripts/x.py ../../uploads/f.csv", f"{X} uploads/s.csv"),
    ("python scripts/x.py <spreadsheet>", f"{X} uploads/s.csv"),
    # options
    ("python scripts/x.py FILE [--by COLUMN] [--top N]", f"{X} uploads/s.csv"),
    ("python scripts/x.py FILE [--by COLUMN [--then COLUMN]]", f"{X} uploads/s.csv"),
    ("python scripts/x.py [FILE ...]", f"{X} uploads/s.csv uploads/t.txt"),
    ("python scripts/x.py FILE...", f"{X} uploads/s.csv uploads/t.txt"),
    ("python scripts/x.py <files>", f"{X} uploads/s.csv uploads/t.txt"),
    ("python scripts/x.py --by COLUMN FILE --top 5", f"{X} uploads/s.csv --top 5"),
    ("python scripts/x.py --input=FILE --limit=N", f"{X} --input=uploads/s.csv"),
    ("python scripts/x.py -i data.csv --label 'Total sales'", f"{X} -i uploads/s.csv --label 'Total sales'"),
    ("python scripts/x.py --format {json|text} FILE", f"{X} --format json uploads/s.csv"),
    ("python scripts/x.py --format json|text FILE", f"{X} --format json uploads/s.csv"),
    ("python scripts/x.py --sort {json_file}", f"{X} --sort uploads/s.csv"),
    ("python scripts/x.py FILE --output-format FORMAT", f"{X} uploads/s.csv"),
    # several files
    ("python scripts/x.py notes.txt data.csv", f"{X} uploads/t.txt uploads/s.csv"),
    ("python scripts/x.py FILE1 FILE2", f"{X} uploads/s.csv uploads/t.txt"),
    ("cat FILE | python scripts/x.py FILE", f"cat uploads/s.csv | {X} uploads/s.csv"),
    # what is made
    ("python scripts/x.py FILE --out <output.md>", f"{X} uploads/s.csv --out outputs/output.md"),
    ("python scripts/x.py FILE -o result.json", f"{X} uploads/s.csv -o outputs/result.json"),
    ("python scripts/x.py FILE --output-dir DIR", f"{X} uploads/s.csv --output-dir outputs"),
    ("python scripts/x.py FILE <output_directory>", f"{X} uploads/s.csv outputs"),
    ("python scripts/x.py FILE ../../outputs/r.md", f"{X} uploads/s.csv outputs/r.md"),
    (
        "python scripts/x.py FILE > result.txt 2>/dev/null",
        f"{X} uploads/s.csv > outputs/result.txt 2> /dev/null",
    ),
    ("python scripts/x.py --out ../../../etc/passwd.txt FILE", f"{X} --out outputs/passwd.txt uploads/s.csv"),
    # the skill's own paths
    ("python3 skills/x/scripts/x.py FILE", "python3 skills/x/scripts/x.py uploads/s.csv"),
    ("python {baseDir}/scripts/x.py FILE", f"{X} uploads/s.csv"),
    ("python ${CLAUDE_SKILL_ROOT}/scripts/x.py FILE", f"{X} uploads/s.csv"),
    ("python /mnt/skills/public/x/scripts/x.py FILE", f"{X} uploads/s.csv"),
    ("python ~/.claude/skills/x/scripts/x.py FILE", f"{X} uploads/s.csv"),
    ("python core/scripts/x.py FILE", "python skills/x/core/scripts/x.py uploads/s.csv"),
    ("python x.py FILE", "python skills/x/x.py uploads/s.csv"),
    ("./scripts/x.sh FILE", "skills/x/scripts/x.sh uploads/s.csv"),
    (
        "python scripts/x.py --template assets/t.html FILE",
        f"{X} --template skills/x/assets/t.html uploads/s.csv",
    ),
    ("python scripts/x.py assets/sample.csv", f"{X} uploads/s.csv"),
    ("python scripts/x.py assets/sample.json", f"{X} skills/x/assets/sample.json"),
    ("LANG=C python scripts/x.py FILE; echo done", f"LANG=C {X} uploads/s.csv; echo done"),
    # changed folders
    (
        "cd skills/x && python scripts/x.py ../../uploads/f.csv",
        "cd skills/x && python scripts/x.py ../../uploads/s.csv",
    ),
    (
        "cd /path/to/x/scripts && python x.py FILE",
        "cd skills/x/scripts && python x.py ../../../uploads/s.csv",
    ),
    (
        "cd <skill-dir> && ./scripts/x.sh FILE -o OUT.md",
        "cd skills/x && scripts/x.sh ../../uploads/s.csv -o ../../outputs/OUT.md",
    ),
    ("cd my-project && python scripts/x.py FILE", f"{X} uploads/s.csv"),
    # text
    ('python scripts/x.py "QUERY" --top 3', f"{X} 'It'\"'\"'s $HOME' --top 3"),
]


@pytest.mark.parametrize(("line", "expected"), FILLED)
def test_placeholders(line: str, expected: str) -> None:
    filled = fill(line, skill="skills/x", files=["uploads/s.csv", "uploads/t.txt"], prompt="It's $HOME")
    assert filled.ready
    assert filled.command == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("python scripts/x.py notes.txt data.csv", f"{X} uploads/t.txt file://sales"),
        ("python scripts/x.py --input=FILE.csv", f"{X} --input file://sales"),
        ("python scripts/x.py DIR --in data.csv", f"{X} uploads --in file://sales"),
        (
            "cd skills/x && python scripts/x.py ../../uploads/f.csv notes.txt",
            "cd skills/x && python scripts/x.py file://sales ../../uploads/t.txt",
        ),
        ("python scripts/x.py assets/sample.csv", f"{X} file://sales"),
    ],
)
def test_a_uri_stays_one_word_in_any_folder(line: str, expected: str) -> None:
    files = ["file://sales", "uploads/t.txt"]
    assert fill(line, skill="skills/x", files=files, kinds={"file://sales": ".csv"}).command == expected


def test_a_last_example_name_is_made_when_the_files_are_used_up() -> None:
    filled = fill("python scripts/x.py in.csv wanted.json", skill="skills/x", files=["uploads/s.csv"])
    assert filled.command == f"{X} uploads/s.csv outputs/wanted.json"


@pytest.mark.parametrize(
    ("line", "missing", "unknown"),
    [
        ("python scripts/x.py <input.csv>", ("<input.csv>",), ()),
        ("python scripts/x.py COLUMN FILE", ("FILE",), ("COLUMN",)),
        ("python scripts/x.py [FILE]", (), ()),
        ("python scripts/x.py --all", (), ()),
    ],
)
def test_without_files(line: str, missing: tuple[str, ...], unknown: tuple[str, ...]) -> None:
    filled = fill(line, skill="skills/x", files=[])
    assert (filled.missing, filled.unknown) == (missing, unknown)


@given(
    st.text(
        st.characters(blacklist_categories=["Cs"], blacklist_characters="\0/\n"), min_size=1, max_size=40
    ).filter(lambda name: name not in (".", ".."))  # folders, which no file can be called
)
def test_a_file_name_is_one_word_whatever_it_holds(name: str) -> None:
    for line, folder in (
        ("python scripts/x.py FILE", ""),
        ("cd skills/x && python scripts/x.py FILE", "../../"),
    ):
        command = fill(line, skill="skills/x", files=[f"uploads/{name}"]).command
        assert shlex.split(command)[-1] == f"{folder}uploads/{name}"


@given(st.text(st.sampled_from("ab/.<>[]{}$|&;>\"'`\\ \n-=FI*()"), max_size=60))
def test_no_line_is_too_odd(line: str) -> None:
    documented_commands(f"```\n{line}\n```")
    fill(line, skill="skills/x", files=["uploads/s.csv"])


@pytest.mark.parametrize(
    "unit", ["<br>", "a/", "a.", "a#", "'a", "- uploads/", "python a/", "<a", "--- \n", "[", " ", "/"]
)
def test_long_input_takes_no_more_than_its_length(unit: str) -> None:
    """Patterns that backtrack would run for minutes here."""
    text = unit * (60_000 // len(unit))
    read(offline_request(text))
    lines = [text, *(text[at : at + 1_900] for at in range(0, 20_000, 1_900))]
    documented_commands("```\n" + "\n".join(lines) + "\n```\n" + f"`{text}`")
    fill(f"python scripts/x.py {text[:1_900]}", skill="skills/x", files=["uploads/s.csv"])
    done(listed("x"), "cmd", text, text, [])


def test_an_absolute_skill_folder() -> None:
    filled = fill(
        "cd skills/x && python scripts/x.py FILE -o OUT.md", skill="/lib/x", files=["uploads/s.csv"]
    )
    assert (
        filled.command
        == 'cd /lib/x && python scripts/x.py "$OLDPWD"/uploads/s.csv -o "$OLDPWD"/outputs/OUT.md'
    )


# A turn, step by step ---------------------------------------------------------------------------------

DOCUMENT = numbered("---\nname: word-count\ndescription: d\n---\n```\nsh scripts/wc.sh FILE\n```\n")
COUNTS = (("word-count", "Counts the words of text files"),)


async def steps(*said: Any, **fields: Any) -> list[dict[str, Any]]:
    """Answer, feed the given results one by one, and return all answers."""
    client = OfflineClient()
    history: list[Any] = [said[0]]
    answers = []
    for at, result in enumerate((*said[1:], None), start=1):
        request = offline_request(
            *history, skills=fields.get("skills", COUNTS), tools=fields.get("tools", TOOLS)
        )
        message = await answer(client, request)
        answers.append(message)
        if result is None:
            validate_messages(request.messages)
            break
        turn = (
            results(result[0], is_error=True, first=at)
            if isinstance(result, tuple)
            else results(result, first=at)
        )
        history += [{"role": "assistant", "content": message["content"]}, turn]
    return answers


def call(message: dict[str, Any]) -> tuple[str, Any]:
    block = message["content"][-1]
    return block["name"], block["input"].get("command") or block["input"].get("path")


def words(message: dict[str, Any]) -> str:
    return str(message["content"][0]["text"])


async def test_a_whole_turn() -> None:
    listing = "outputs/ (two levels, …)\n    1.2 KB  counts.txt\n           more/"
    said = await steps(
        "Count the words of uploads/a b.txt: 'uploads/a b.txt'", DOCUMENT, "12 words\n[took 9 s]", listing
    )
    assert [call(message) for message in said[:3]] == [
        ("view", "skills/word-count/SKILL.md"),
        ("bash_tool", "sh skills/word-count/scripts/wc.sh 'uploads/a b.txt'"),
        ("view", "outputs"),
    ]
    assert [message["content"][-1]["id"] for message in said[:3]] == [
        f"toolu_offline_000{at}" for at in (1, 2, 3)
    ]
    assert [message["id"] for message in said] == [f"msg_offline_000{at}" for at in (1, 2, 3, 4)]
    report = words(said[3])
    assert said[3]["stop_reason"] == "end_turn"
    assert "12 words" in report
    assert "took 9 s" not in report
    assert "- `outputs/counts.txt` (1.2 KB)" in report
    assert "no language model" in report
    assert "ANTHROPIC_API_KEY" in report


async def test_the_same_request_gets_the_same_events() -> None:
    request = offline_request("Write a poem", skills=COUNTS)
    first = [event async for event in OfflineClient().stream(request)]
    assert first == [event async for event in OfflineClient().stream(request)]
    assert sum(event["type"] == "content_block_delta" for event in first) > 2


async def test_the_notebooks_folder_does_not_change_the_count() -> None:
    counts = {
        await OfflineClient().count_tokens(
            offline_request("Hi", system=session_instructions(timeout=30, notebook_folder=folder))
        )
        for folder in ("/a", "/home/ann/books/of/many/years")
    }
    assert len(counts) == 1


async def test_a_failed_command_is_reported_as_it_is() -> None:
    said = await steps("Count the words of uploads/a.txt", DOCUMENT, ("wc: broken\n[exit code 3]",))
    assert "did not succeed" in words(said[-1])
    assert "exit code 3" in words(said[-1])
    assert "outputs" not in words(said[-1]).partition("wc: broken")[2]


async def test_a_refused_view_is_reported() -> None:
    said = await steps("Count the words of uploads/a.txt", ("This call is not allowed: rule",))
    assert "This call is not allowed" in words(said[-1])


async def test_without_a_file_it_says_so() -> None:
    said = await steps("Use the word-count skill", DOCUMENT)
    assert said[-1]["stop_reason"] == "end_turn"
    assert "The prompt names no file" in words(said[-1])
    assert "`FILE`" in words(said[-1])


async def test_without_a_command_it_says_so() -> None:
    said = await steps("Use the word-count skill on uploads/a.txt", numbered("Count by hand."))
    assert "document no command" in words(said[-1])


async def test_a_value_that_takes_understanding() -> None:
    said = await steps("word-count uploads/a.txt", numbered("`python scripts/x.py COLUMN FILE`"))
    assert "needs `COLUMN`" in words(said[-1])
    other = await steps(
        "word-count uploads/a.txt", numbered("`python scripts/x.py COLUMN FILE`\n`python scripts/y.py FILE`")
    )
    assert call(other[-1]) == ("bash_tool", "python skills/word-count/scripts/y.py uploads/a.txt")


async def test_without_a_fitting_skill_it_names_those_there_are() -> None:
    (said,) = await steps("Write a poem about the sea")
    assert "**word-count**: Counts the words" in words(said)
    (nothing,) = await steps("Hello", skills=())
    assert "%skills_load" in words(nothing)


async def test_without_tools_it_says_so() -> None:
    (said,) = await steps("Count the words of uploads/a.txt", tools=TOOLS[:1])
    assert "`bash_tool` tool is not available" in words(said)


async def test_a_skill_is_read_once_in_a_conversation() -> None:
    said = await steps("Count the words of uploads/a.txt", DOCUMENT, "1 word", "outputs/\n(empty)")
    history: list[Any] = ["Count the words of uploads/a.txt"]
    for at, text in enumerate((DOCUMENT, "1 word", "outputs/\n(empty)"), start=1):
        history += [{"role": "assistant", "content": said[at - 1]["content"]}, results(text, first=at)]
    history += [{"role": "assistant", "content": said[3]["content"]}, "Count the words of uploads/b.txt too"]
    message = await answer(OfflineClient(), offline_request(*history, skills=COUNTS))
    assert call(message) == ("bash_tool", "sh skills/word-count/scripts/wc.sh uploads/b.txt")
    assert message["content"][-1]["id"] == "toolu_offline_0004"


async def test_words_of_the_session_beside_results_are_no_new_prompt() -> None:
    said = await steps("Count the words of uploads/a.txt", DOCUMENT)
    result = results(DOCUMENT)
    result["content"].append({"type": "text", "text": "skills/word-count had been changed and was restored"})
    history: list[Any] = [
        "Count the words of uploads/a.txt",
        {"role": "assistant", "content": said[0]["content"]},
        result,
    ]
    message = await answer(OfflineClient(), offline_request(*history, skills=COUNTS))
    assert call(message)[0] == "bash_tool"


async def test_words_after_a_stopped_turn_are() -> None:
    said = await steps("Count the words of uploads/a.txt")
    result = results("Stopped by the user.", is_error=True)
    result["content"].append({"type": "text", "text": "Write a poem"})
    history: list[Any] = [
        "Count the words of uploads/a.txt",
        {"role": "assistant", "content": said[0]["content"]},
        result,
    ]
    message = await answer(OfflineClient(), offline_request(*history, skills=COUNTS))
    assert "No loaded skill fits" in words(message)


async def test_what_the_session_says_of_artifacts_is_no_output() -> None:
    said = await steps("Count the words of uploads/a.txt", DOCUMENT)
    digest = 'Artifacts captured from this call:\n{"artifact_path": "fi:turn_0001.files/n.txt"}'
    result = results("7 words", first=2)
    result["content"][0]["content"] = [{"type": "text", "text": text} for text in ("7 words", digest)]
    history: list[Any] = [
        "Count the words of uploads/a.txt",
        {"role": "assistant", "content": said[0]["content"]},
        results(DOCUMENT),
        {"role": "assistant", "content": said[1]["content"]},
        result,
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "toolu_offline_0003", "name": "view", "input": {"path": "outputs"}}
            ],
        },
        results("outputs/ (two levels)\n    343 B  n.txt\n   1.2 KB  m.txt\n          sub/", first=3),
    ]
    report = words(await answer(OfflineClient(), offline_request(*history, skills=COUNTS)))
    assert "```\n7 words\n```" in report
    assert "captured" not in report
    assert "- `outputs/n.txt` (343 B)\n- `outputs/m.txt` (1.2 KB)" in report


def test_a_report_is_bounded_and_nothing_closes_its_code_block() -> None:
    text = done(
        listed("x"), "cmd", "```\n# not a heading\n" + "line\n" * 100_000 + "y" * 100_000, "", ["a`b"]
    )
    assert len(text) < 10_000
    assert "````\n```" in text
    assert "left out" in text
    assert "`` a`b ``" in text
    assert bounded("short") == "short"


# With real tools --------------------------------------------------------------------------------------


@pytest.fixture
def skills(tmp_path: Path) -> list[Skill]:
    folder = tmp_path / "skills"
    count = """#!/bin/sh
    while [ $# -gt 0 ]; do
        case "$1" in --upper) shift ;; --label) echo "$2"; shift 2 ;; *) break ;; esac
    done
    for file; do printf "%s: %s words\\n" "$(basename "$file")" "$(wc -w < "$file" | tr -d " ")"; done
    """
    write_skill(
        folder,
        "word-count",
        description="Count the words and lines of text documents.",
        body="# Count\n\nRun it here:\n\n    cd skills/word-count && "
        "./scripts/count.sh --upper --label 'All of it' FILE... > ../../outputs/counts.txt\n",
        files={"scripts/count.sh": count},
    )
    write_skill(
        folder,
        "json-keys",
        description="List the keys of JSON documents.",
        body="Call `python3 scripts/keys.py --sort {json_file}`.\n",
        files={"scripts/keys.py": "import json, sys\nprint(*json.load(open(sys.argv[-1])), sep='\\n')\n"},
    )
    return [*load(folder), *load(CSV_HELPER)]


@pytest.fixture
def session(tmp_path: Path, skills: list[Skill]) -> Iterator[Session]:
    project = tmp_path / "project"
    project.mkdir()
    with Session(Settings(client="offline", approve="auto"), skills=skills, project=project) as session:
        yield session


def commands(reply: Reply) -> list[str]:
    return [record.call.input.get("command") or record.call.input["path"] for record in reply.tool_calls]


def test_a_shell_script_over_several_files_with_spaces(session: Session, tmp_path: Path) -> None:
    files = [tmp_path / "it's one.txt", tmp_path / "two.txt"]
    files[0].write_text("a b c\n")
    files[1].write_text("d e\n")
    reply = session.chat("How many words do these text documents have?", files=files)
    assert reply.error is None
    assert [file.path for file in reply.files] == ["outputs/counts.txt"]
    assert reply.files[0].local_path is not None
    assert reply.files[0].local_path.read_text() == "All of it\nit's one.txt: 3 words\ntwo.txt: 2 words\n"
    assert "It printed nothing" in reply.text
    assert "`outputs/counts.txt`" in reply.text


def test_a_script_of_another_kind_named_inline(session: Session, tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text('{"a": 1, "b": 2}')
    reply = session.chat("Which keys does this have?", files=[tmp_path / "d.json"])
    assert "```\na\nb\n```" in reply.text
    assert commands(reply)[1] == "python3 skills/json-keys/scripts/keys.py --sort uploads/d.json"


@pytest.mark.parametrize(
    "uri", ["file://sales", "skill://csv-helper/assets/sample_data.csv", "file://sales.2024"]
)
def test_what_has_a_name_is_worked_on_by_it(session: Session, uri: str) -> None:
    table = "region,revenue\nnorth,100\nsouth,40\nnorth,10\n" * 4
    session.artifacts.register("sales", table.encode(), content_type="text/csv")
    session.artifacts.register("sales.2024", table.encode(), content_type="text/csv")
    reply = session.chat(f"Summarise {uri}, please.")
    assert commands(reply)[1] == f"python skills/csv-helper/scripts/summarize_csv.py {uri}"
    assert reply.error is None
    assert "rows, " in reply.text
    assert "Artifacts captured" not in reply.text
    assert f"`{reply.files[-1].path}`" in reply.text
    assert "/sessions/" not in reply.text


def test_a_failing_script_is_told(session: Session, tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text("not json")
    reply = session.chat("Which keys does this have?", files=[tmp_path / "d.json"])
    assert "did not succeed" in reply.text
    assert "JSONDecodeError" in reply.text
    assert 'File "skills/json-keys/scripts/keys.py"' in reply.text
    assert session.id not in reply.text


def test_the_csv_helper(session: Session) -> None:
    sales = CSV_HELPER.parents[1] / "data" / "sales.csv"
    reply = session.chat(
        "Summarise sales.csv with the csv-helper skill and chart it by region.", files=[sales]
    )
    assert commands(reply) == [
        "skills/csv-helper/SKILL.md",
        "python skills/csv-helper/scripts/summarize_csv.py uploads/sales.csv",
        "outputs",
    ]
    assert [file.name for file in reply.files] == [
        "sales-by-month.svg",
        "sales-by-region.svg",
        "sales-summary.md",
    ]
    assert "revenue by region" in reply.text
    assert str(session.folder) not in reply.text
    assert reply.model == "offline" or reply.cost == 0


def test_it_answers_the_same_in_another_session(tmp_path: Path, skills: list[Skill]) -> None:
    sales = CSV_HELPER / "assets" / "sample_data.csv"
    texts = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with Session(
            Settings(client="offline", approve="auto"), skills=skills, project=tmp_path / name
        ) as session:
            texts.append(session.chat("Summarise the csv", files=[sales]).text)
    assert texts[0] == texts[1]
