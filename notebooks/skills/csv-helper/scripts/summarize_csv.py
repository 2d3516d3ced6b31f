#!/usr/bin/env python3
"""Summarise a CSV file and chart a number by a category and by month.

Writes a Markdown summary and SVG charts, and prints the main figures. Needs nothing but Python 3.9 and
gives the same output for the same file. What it had to guess or repair is listed under "Notes".
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import io
import math
import re
import statistics
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

MISSING = {"", "-", "--", "?", "n/a", "na", "nan", "none", "null", "nil", "missing", "#n/a"}
DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d %b %Y", "%b %d, %Y", "%Y-%m", "%Y%m%d")
VALUE_NAMES = ("revenue", "sales", "amount", "total", "value", "income", "turnover", "cost", "price", "quantity", "units")
NO_VALUE = re.compile(r"(?:^|_)(?:id|no|nr|code|key|index|zip|postcode|phone|year|month|day)(?:_|$)|^#$")

#: A column is of a type when this share of its filled cells is.
SHARE = 0.8
#: A category has at most this many values.
MOST_GROUPS = 40


class InputError(Exception):
    """The file cannot be summarised; the message says why."""


@dataclass
class Column:
    """A column of the table: its cells as text, and what they were understood as."""

    name: str
    cells: list[str]
    kind: str = "text"
    numbers: list[float | None] = field(default_factory=list)
    dates: list[dt.date | None] = field(default_factory=list)

    @property
    def filled(self) -> list[str]:
        return [cell for cell in self.cells if not is_missing(cell)]

    @property
    def unreadable(self) -> int:
        """Filled cells that are not of the column's kind."""
        read = {"number": self.numbers, "date": self.dates}.get(self.kind)
        return 0 if read is None else len(self.filled) - sum(value is not None for value in read)


# Reading ---------------------------------------------------------------------------------------------


def read_text(path: Path, notes: list[str]) -> str:
    data = path.read_bytes()
    for bom, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(bom):
            return data.decode(name, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        notes.append("The file is not UTF-8; it was read as Windows-1252.")
        return data.decode("cp1252", "replace")


def find_delimiter(text: str) -> str:
    """The delimiter that gives the most columns in the most of the first lines."""
    sample = "\n".join(text.splitlines()[:50])

    def score(delimiter: str) -> tuple[int, int]:
        widths = Counter(len(row) for row in csv.reader(io.StringIO(sample), delimiter=delimiter) if any(row))
        wide = [(count, width) for width, count in widths.items() if width > 1]
        return max(wide, default=(0, 0))

    return max(",;\t|", key=score)  # the first wins where nothing speaks for another


def read_table(path: Path, notes: list[str]) -> list[Column]:
    csv.field_size_limit(10**9)
    text = read_text(path, notes).replace("\0", "")
    delimiter = find_delimiter(text)
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)]
    blank = sum(not any(row) for row in rows)
    rows = [row for row in rows if any(row)]
    if not rows:
        raise InputError(f"{path.name} holds no rows")
    if delimiter != ",":
        notes.append(f"Cells are separated by {'a tab' if delimiter == chr(9) else repr(delimiter)}.")
    header, body = rows[0], rows[1:]
    if all(parse_number(cell) is not None for cell in header if cell):
        notes.append("There is no header row; columns were numbered.")
        header, body = ["" for _ in header], rows
    if not body:
        raise InputError(f"{path.name} holds a header but no rows")

    repeated = sum(row == header for row in body)
    body = [row for row in body if row != header]
    width = len(header)
    short, long = sum(len(row) < width for row in body), sum(len(row) > width for row in body)
    twice = sum(count - 1 for count in Counter(map(tuple, body)).values())
    for count, what in (
        (blank, "blank and left out"),
        (repeated, "the header once more and left out"),
        (short, "shorter than the header; the missing cells count as empty"),
        (long, "longer than the header; the extra cells were dropped"),
        (twice, "an exact copy of an earlier row; it was kept"),
    ):
        if count:
            notes.append(f"{count} row{' is' if count == 1 else 's are'} {what}.")
    names = unique_names(header)
    body = [(row + [""] * width)[:width] for row in body]
    return [typed(Column(name, [row[at] for row in body])) for at, name in enumerate(names)]


def unique_names(header: list[str]) -> list[str]:
    names: list[str] = []
    for at, cell in enumerate(header, start=1):
        name = " ".join(cell.split()) or f"column_{at}"
        names.append(name if name not in names else f"{name}_{at}")
    return names


# Understanding ---------------------------------------------------------------------------------------


def is_missing(cell: str) -> bool:
    return cell.casefold() in MISSING


def parse_number(cell: str) -> float | None:
    """``1,234.50``, ``1.234,50``, ``$5``, ``12 %``, ``(3)`` and ``-3`` are numbers; None for anything else."""
    text = re.sub(r"[\s\u00a0\u202f$€£¥%]", "", cell)
    negative = text.startswith("(") and text.endswith(")")
    text = text.strip("()") if negative else text
    if re.fullmatch(r"[+-]?\d{1,3}(?:\.\d{3})*,\d{1,2}|[+-]?\d+,\d{1,2}|[+-]?\d{1,3}(?:\.\d{3}){2,}", text):
        text = text.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", text):
        text = text.replace(",", "")
    if not re.fullmatch(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", text):
        return None
    value = float(text)
    return (-value if negative else value) if math.isfinite(value) else None


def parse_date(cell: str, formats: tuple[str, ...]) -> dt.date | None:
    for form in formats:
        try:
            return dt.datetime.strptime(cell[:10] if form == "%Y-%m-%d" else cell, form).date()
        except ValueError:
            continue
    return None


def typed(column: Column) -> Column:
    filled = column.filled
    if not filled:
        column.kind = "empty"
        return column
    numbers = [None if is_missing(cell) else parse_number(cell) for cell in column.cells]
    if sum(value is not None for value in numbers) >= SHARE * len(filled):
        column.kind, column.numbers = "number", numbers
        return column
    # The form that reads the most cells is tried first, so that 03/04 means the same in every row.
    formats = tuple(
        sorted(DATE_FORMATS, key=lambda form: -sum(parse_date(cell, (form,)) is not None for cell in filled[:200]))
    )
    dates = [None if is_missing(cell) else parse_date(cell, formats) for cell in column.cells]
    if sum(value is not None for value in dates) >= SHARE * len(filled):
        column.kind, column.dates = "date", dates
    return column


def find_column(columns: list[Column], name: str) -> Column:
    for column in columns:
        if column.name.casefold() == name.casefold():
            return column
    raise InputError(f"there is no column {name!r}; there are: {', '.join(column.name for column in columns)}")


def choose_value(columns: list[Column]) -> Column | None:
    """The number worth adding up: by its name, else the last that is no identifier."""
    numeric = [column for column in columns if column.kind == "number" and not NO_VALUE.search(slug(column.name, "_"))]
    for name in VALUE_NAMES:
        for column in numeric:
            if name in column.name.casefold():
                return column
    return numeric[-1] if numeric else None


def choose_group(columns: list[Column]) -> Column | None:
    """The first column of text with few values that come more than once."""
    for column in columns:
        distinct = len({cell.casefold() for cell in column.filled})
        if column.kind == "text" and 2 <= distinct <= min(MOST_GROUPS, len(column.cells) / 2):
            return column
    return None


def group_keys(column: Column, notes: list[str]) -> list[str]:
    """A label for each row; spellings that differ in case or spaces are one."""
    spellings: dict[str, Counter[str]] = defaultdict(Counter)
    folded = [" ".join(cell.casefold().split()) for cell in column.cells]
    for key, cell in zip(folded, column.cells):
        spellings[key][" ".join(cell.split())] += 1
    merged = sum(len(found) - 1 for found in spellings.values())
    if merged:
        notes.append(f"{column.name}: {merged} other spelling{'s' * (merged > 1)} of a value counted with the usual one.")
    usual = {key: found.most_common(1)[0][0] for key, found in spellings.items()}
    return ["(missing)" if is_missing(cell) else usual[key] for key, cell in zip(folded, column.cells)]


def totals(keys: list[str], value: Column) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = defaultdict(list)
    for key, number in zip(keys, value.numbers):
        if number is not None:
            groups[key].append(number)
    return groups


# Writing ---------------------------------------------------------------------------------------------


def shown(number: float, decimals: int = 2) -> str:
    return f"{number:,.{decimals}f}"


def decimals(numbers: list[float]) -> int:
    """No decimals where all numbers are whole, so that counts look like counts; else two."""
    return 0 if all(abs(number - round(number)) < 1e-9 for number in numbers) else 2


def slug(text: str, joiner: str = "-") -> str:
    return re.sub(r"[\W_]+", joiner, text.casefold()).strip(joiner) or "column"


def line_text(text: str) -> str:
    """Text that cannot move the cursor or start a line of its own."""
    return "".join(char if char.isprintable() else " " for char in text)


def cell_text(text: str, limit: int = 60) -> str:
    """Text that stays inside a cell of a Markdown table."""
    text = " ".join(line_text(text).split())
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return re.sub(r"([\\|`*_<>\[\]])", r"\\\1", text)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def column_rows(columns: list[Column]) -> list[list[str]]:
    rows = []
    for column in columns:
        numbers = [number for number in column.numbers if number is not None]
        days = [day for day in column.dates if day is not None]
        low = middle = high = ""
        if numbers:
            low, middle, high = (
                shown(number, decimals(numbers)) for number in (min(numbers), statistics.median(numbers), max(numbers))
            )
        elif days:
            low, high = min(days).isoformat(), max(days).isoformat()
        missing = len(column.cells) - len(column.filled)
        distinct = len({cell.casefold() for cell in column.filled})
        rows.append([cell_text(column.name), column.kind, str(missing), str(distinct), low, middle, high])
    return rows


def bar_chart(title: str, bars: list[tuple[str, float]]) -> str:
    """A horizontal bar chart as SVG; no script, no link, nothing loaded from elsewhere."""
    left, right, row, top = 150, 610, 28, 44
    high, low = max(0.0, *(value for _, value in bars)), min(0.0, *(value for _, value in bars))
    places = decimals([value for _, value in bars])
    scale = (right - left) / ((high - low) or 1)
    zero = left - low * scale
    height = top + row * len(bars) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" width="720" height="{height}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{xml(title)}</title>",
        f'<rect width="720" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="16" font-weight="600" fill="#1f2328">{xml(title)}</text>',
    ]
    for at, (label, value) in enumerate(bars):
        y, width = top + row * at, abs(value) * scale
        x = zero if value >= 0 else zero - width
        short = label if len(label) <= 20 else label[:19] + "…"
        parts += [
            f'<text x="{left - 8}" y="{y + 17}" text-anchor="end" fill="#1f2328">{xml(short)}</text>',
            f'<rect x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="{row - 8}" rx="2" fill="#3b6fb6"/>',
            f'<text x="{max(x + width, zero) + 6:.1f}" y="{y + 17}" fill="#57606a">{xml(shown(value, places))}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def xml(text: str) -> str:
    return escape(re.sub(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text))


@dataclass
class Breakdown:
    """The value added up by something: for a table, a chart and the screen."""

    by: str
    groups: dict[str, list[float]]
    chart: Path

    def ranked(self, top: int | None, *, by_name: bool) -> list[tuple[str, list[float]]]:
        rank = sorted(self.groups.items(), key=lambda item: item[0] if by_name else (-math.fsum(item[1]), item[0]))
        if top is None or len(rank) <= top:
            return rank
        rest = [number for _, numbers in rank[top:] for number in numbers]
        return [*rank[:top], (f"{len(rank) - top} others", rest)]


def summarize(source: Path, out: Path, by: str | None, value_name: str | None, top: int) -> list[str]:
    """Write the files and return the lines to print."""
    notes: list[str] = []
    columns = read_table(source, notes)
    for column in columns:
        if column.unreadable:
            notes.append(f"{column.name}: {column.unreadable} filled cell(s) could not be read as a {column.kind}.")
    value = find_column(columns, value_name) if value_name else choose_value(columns)
    if value is not None and value.kind != "number":
        raise InputError(f"column {value.name!r} holds no numbers")
    group = find_column(columns, by) if by else choose_group(columns)
    date = next((column for column in columns if column.kind == "date"), None)

    out.mkdir(parents=True, exist_ok=True)
    rows = len(columns[0].cells)
    lines = [f"{source.name}: {rows} rows, {len(columns)} columns"]
    report = [f"# Summary of {cell_text(source.name)}", f"{rows} rows, {len(columns)} columns."]
    head = ["column", "type", "missing", "distinct", "min", "median", "max"]
    report += ["## Columns", table(head, column_rows(columns))]

    breakdowns: list[tuple[Breakdown, bool]] = []
    if value is not None and group is not None:
        chart = out / f"{source.stem}-by-{slug(group.name)}.svg"
        breakdowns.append((Breakdown(group.name, totals(group_keys(group, notes), value), chart), False))
    if value is not None and date is not None:
        months = [day.strftime("%Y-%m") if day else "(missing)" for day in date.dates]
        breakdowns.append((Breakdown("month", totals(months, value), out / f"{source.stem}-by-month.svg"), True))
    written = []
    for breakdown, by_name in breakdowns:
        ranked = breakdown.ranked(None if by_name else top, by_name=by_name)
        if not ranked or value is None:
            continue
        title = f"{value.name} by {breakdown.by}"
        everything = math.fsum(number for _, numbers in ranked for number in numbers)
        places = decimals([number for _, numbers in ranked for number in numbers])
        share = [f"{100 * math.fsum(numbers) / everything:.1f} %" if everything else "" for _, numbers in ranked]
        body = [
            [cell_text(label), shown(math.fsum(numbers), places), part, str(len(numbers)), shown(statistics.fmean(numbers))]
            for (label, numbers), part in zip(ranked, share)
        ]
        report += [f"## {cell_text(title)}", table([cell_text(breakdown.by), "total", "share", "rows", "mean"], body)]
        report.append(f"Total: {shown(everything, places)}. Chart: {cell_text(breakdown.chart.name)}")
        bars = [(label, math.fsum(numbers)) for label, numbers in ranked]
        breakdown.chart.write_text(bar_chart(title, bars), encoding="utf-8")
        written.append(breakdown.chart)
        if by_name and len(bars) > 6:
            best = max(bars, key=lambda bar: bar[1])
            lines += ["", f"{title}: {bars[0][0]} to {bars[-1][0]}, highest in {best[0]} ({shown(best[1], places)})"]
        else:
            wide = max(len(label) for label, _ in bars)
            lines += ["", f"{title} (total {shown(everything, places)}):"]
            lines += [f"  {label:<{wide}}  {shown(total, places):>14}  {part:>7}" for (label, total), part in zip(bars, share)]
    if not written:
        notes.append("No column of numbers and no category or date to add up by was found; there is no chart.")
    if notes:
        lines += ["", "Notes:", *(f"  - {note}" for note in notes)]
        report += ["## Notes", "\n".join(f"- {cell_text(note, 400)}" for note in notes)]
    summary = out / f"{source.stem}-summary.md"
    summary.write_text("\n\n".join(report) + "\n", encoding="utf-8")
    lines += ["", *(f"Wrote {path.as_posix()}" for path in (summary, *written))]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="Summarise a CSV file and chart a number by a category.")
    parser.add_argument("file", type=Path, help="CSV, TSV or semicolon-separated file")
    parser.add_argument("--by", metavar="COLUMN", help="category to group by (default: the first that looks like one)")
    parser.add_argument("--value", metavar="COLUMN", help="number to add up (default: chosen by name)")
    parser.add_argument("--top", type=int, default=12, metavar="N", help="groups shown; the rest is added up (default: 12)")
    parser.add_argument("--out", type=Path, default=Path("outputs"), metavar="DIR", help="folder for results (default: outputs)")
    options = parser.parse_args()
    try:
        lines = summarize(options.file, options.out, options.by, options.value, max(1, options.top))
    except InputError as error:
        print(f"summarize_csv: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"summarize_csv: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # whatever the locale of the shell
    print("\n".join(line_text(line) for line in lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
