"""Make sales.csv: a year of a small shop's orders, with the faults that exports have.

Run ``python make_sales.py`` in this folder; the seed is fixed, so the file is always the same. The faults:
spellings of one region, missing cells, a price as text, currency signs and thousands separators, a copied row,
a repeated header, a blank line, a row that is cut short, a row with one cell too many.
"""

from __future__ import annotations

import csv
import datetime as dt
import random
from pathlib import Path

SEED = 20_250_101
ORDERS = 360
REGIONS = {"North": 1.0, "South": 0.8, "East": 1.3, "West": 0.6}
PRODUCTS = {"Desk lamp": 39.90, "Office chair": 189.00, "Standing desk": 449.00, "Monitor arm": 99.50, "Notebook": 4.20}
HEADER = ["order_id", "date", "region", "product", "units", "unit_price", "revenue"]


def orders() -> list[list[str]]:
    """The rows before anything goes wrong."""
    chance = random.Random(SEED)
    start = dt.date(2025, 1, 1)
    days = sorted(chance.randrange(365) for _ in range(ORDERS))
    rows = []
    for number, day in enumerate(days, start=1001):
        region = chance.choices(list(REGIONS), weights=list(REGIONS.values()))[0]
        product = chance.choices(list(PRODUCTS), weights=[3, 2, 1, 2, 4])[0]
        season = 1.6 if (start + dt.timedelta(days=day)).month in (11, 12) else 1.0
        units = max(1, round(chance.lognormvariate(0.9, 0.7) * season * (6 if product == "Notebook" else 1)))
        price = PRODUCTS[product]
        date = (start + dt.timedelta(days=day)).isoformat()
        rows.append([str(number), date, region, product, str(units), f"{price:.2f}", f"{units * price:.2f}"])
    return rows


def spoil(rows: list[list[str]]) -> list[list[str]]:
    """The rows as an export would have them."""
    rows = [list(row) for row in rows]
    rows[17][2], rows[64][2], rows[201][2] = "north", "  East ", "SOUTH"
    rows[40][6], rows[41][2], rows[150][4] = "", "n/a", "-"
    rows[88][5], rows[88][6] = "on request", "n/a"
    rows[120][6] = "$" + rows[120][6]
    large = next(row for row in rows[230:] if float(row[6]) >= 1000)
    large[6] = f"{float(large[6]):,.2f}"
    rows[260] = rows[260][:5]
    rows[300].append("late delivery")
    rows.insert(181, list(rows[180]))
    rows.insert(250, list(HEADER))
    rows.insert(310, [])
    return rows


def main() -> None:
    """Write sales.csv beside this file."""
    with Path(__file__).with_name("sales.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(spoil(orders()))


if __name__ == "__main__":
    main()
