"""The demo's skill and data: right figures from clean, messy and hostile files."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conjure_jupyter.skills import load, load_body, validate

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
SKILL = NOTEBOOKS / "skills" / "csv-helper"
SCRIPT = SKILL / "scripts" / "summarize_csv.py"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def start(
        data: bytes | str | Path, *options: str, name: str = "t.csv"
    ) -> subprocess.CompletedProcess[str]:
        path = data if isinstance(data, Path) else tmp_path / name
        if not isinstance(data, Path):
            path.write_bytes(data.encode() if isinstance(data, str) else data)
        command = [sys.executable, "-I", str(SCRIPT), str(path), *options]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False
        )

    return start


def test_the_skill_is_valid() -> None:
    assert validate(SKILL) == []
    (skill,) = load(NOTEBOOKS / "skills")
    body = load_body(skill).body or ""
    assert len(body.splitlines()) < 500
    for path in re.findall(r"(?:scripts|references|assets)/[\w.-]+", body):
        assert (SKILL / path).is_file()


def test_the_data_is_what_its_seed_makes(tmp_path: Path) -> None:
    source = NOTEBOOKS / "data" / "make_sales.py"
    (tmp_path / source.name).write_bytes(source.read_bytes())
    subprocess.run([sys.executable, "-I", str(tmp_path / source.name)], check=True)
    assert (tmp_path / "sales.csv").read_bytes() == (NOTEBOOKS / "data" / "sales.csv").read_bytes()


def test_the_sample_has_its_known_totals(run: Run, tmp_path: Path) -> None:
    done = run(SKILL / "assets" / "sample_data.csv")
    assert done.returncode == 0
    assert re.findall(r"^  (\w+) +([\d,]+) +[\d.]+ %$", done.stdout, re.MULTILINE)[:3] == [
        ("East", "540"),
        ("North", "270"),
        ("South", "40"),
    ]
    assert sorted(path.name for path in (tmp_path / "outputs").iterdir()) == [
        "sample_data-by-month.svg",
        "sample_data-by-region.svg",
        "sample_data-summary.md",
    ]


def test_every_fault_of_the_demo_data_is_told(run: Run) -> None:
    told = run(NOTEBOOKS / "data" / "sales.csv").stdout
    for fault in (
        "blank",
        "header once more",
        "shorter",
        "longer",
        "exact copy",
        "unit_price: 1",
        "2 other spellings",
    ):
        assert fault in told


def test_it_says_the_same_each_time(run: Run, tmp_path: Path) -> None:
    outputs = []
    for folder in ("one", "two"):
        run(NOTEBOOKS / "data" / "sales.csv", "--out", folder)
        outputs.append({path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()})
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    "data",
    [
        "city;price\nKöln;1.234,50\nBonn;2,5\nKöln;3\nBonn;-1\n",
        "city\tprice\nKöln\t$1,234.50\nBonn\t2.5\nKöln\t3\nBonn\t(1)\n",
        "city|price\nKöln|1234.5\nBonn|2.50\nKöln|3\nBonn|-1\n",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_delimiters_encodings_and_forms_of_numbers(run: Run, data: str, encoding: str) -> None:
    told = run(data.encode(encoding)).stdout
    assert re.search(r"Köln +1,237\.50 ", told)
    assert re.search(r"Bonn +1\.50 ", told)
    assert ("Windows-1252" in told) == (encoding == "cp1252")


def test_a_file_without_header(run: Run) -> None:
    told = run("1,2\n3,4\n5,6\n").stdout
    assert "3 rows, 2 columns" in told
    assert "no header row" in told


def test_columns_can_be_chosen(run: Run) -> None:
    told = run(NOTEBOOKS / "data" / "sales.csv", "--by", "Product", "--value", "units", "--top", "2").stdout
    assert "units by product" in told
    assert "3 others" in told


def test_negative_totals_are_drawn(run: Run, tmp_path: Path) -> None:
    run("kind,amount\na,-5\nb,5\na,-1\nb,1\n")
    bars = ElementTree.parse(tmp_path / "outputs" / "t-by-kind.svg").getroot().findall("{*}rect")[1:]
    assert [float(bar.get("width", 0)) for bar in bars] == [230.0, 230.0]
    assert float(bars[0].get("x", 0)) == float(bars[1].get("x", 0)) + 230.0


def test_nothing_of_a_file_becomes_markup(run: Run, tmp_path: Path) -> None:
    evil = '</text><script>alert(1)</script>","\x1b[2J|`<img src=x onerror=alert(1)>'
    rows = f'"{evil}",amount\n' + f'"{evil}",1\n"=cmd()",2\n' * 3
    done = run(rows.replace('","', '""'), "--by", evil.replace('","', '"'))
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    charts = [path for path in (tmp_path / "outputs").iterdir() if path.suffix == ".svg"]
    assert charts
    for path in charts:
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter()}
        assert tags == {"svg", "title", "rect", "text"}
    report = (tmp_path / "outputs" / "t-summary.md").read_text(encoding="utf-8")
    assert "<script" not in report.replace("\\<", "")
    assert "\x1b" not in report


@pytest.mark.parametrize(
    ("data", "options", "reason"),
    [
        ("", (), "holds no rows"),
        ("a,b\n", (), "a header but no rows"),
        ("a,b\nx,1\n", ("--by", "c"), "there is no column 'c'; there are: a, b"),
        ("a,b\nx,1\n", ("--value", "a"), "'a' holds no numbers"),
    ],
)
def test_what_cannot_be_done_is_one_line(run: Run, data: str, options: tuple[str, ...], reason: str) -> None:
    done = run(data, *options)
    assert done.returncode == 1
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_file_is_one_line(run: Run, tmp_path: Path) -> None:
    done = run(tmp_path / "none.csv")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    "data", ["x\n" * 50, '"unclosed\nrow,1', "a,a,,\n1,x,3,4\n", "\0a,b\n\0,1\n", ",,,\n;;;\n\n,"]
)
def test_odd_files_end_in_a_summary_or_one_line(run: Run, data: str) -> None:
    done = run(data)
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)
