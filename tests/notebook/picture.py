"""Draw ``docs/images/notebook.png``, the README's picture: the quickstart's question in JupyterLab.

Run as ``python -m tests.notebook.picture``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from conjure_jupyter.notebook import demo
from scripts.setup_browser import MISSING, find_browser

from .files import write_notebook
from .lab import Notebook, serve

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "notebook.png"

#: Pixels: the picture's width, what JupyterLab's own bars take beside it, room for every cell below each
#: other, and the margin below the last one.
WIDTH, BARS, HEIGHT, MARGIN = 1280, 66, 2600, 16

CELLS = (
    "%load_ext conjure\n%skills_load skills",
    "%%claude --out reply\nSummarise file://data/sales.csv with the csv-helper skill and chart it by region.",
    """from IPython.display import SVG

chart = next(file for file in reply.files if "region" in file.name)
SVG(chart.local_path)""",
)


def main() -> int:
    browser = find_browser()
    if browser is None:
        print(MISSING)
        return 1
    with tempfile.TemporaryDirectory() as state:
        folder = Path(state, "sales")
        demo.prepare(folder, print)
        write_notebook(folder / "sales.ipynb", *CELLS)
        with serve(folder, Path(state)) as url, sync_playwright() as playwright:
            chromium = playwright.chromium.launch(
                executable_path=browser, args=["--no-sandbox", "--disable-dev-shm-usage"]
            )
            size = {"width": WIDTH + BARS, "height": HEIGHT}
            page = chromium.new_page(viewport=size, color_scheme="light")
            # The address of one document, without the file browser.
            notebook = Notebook(page, url.replace("/lab/", "/doc/"), "sales.ipynb")
            notebook.run_all()
            expect(notebook.output(2).locator("svg").last).to_be_visible()
            top, last = notebook.panel.bounding_box(), notebook.cells.last.bounding_box()
            assert top is not None
            assert last is not None
            crop = {**top, "height": last["y"] + last["height"] + MARGIN - top["y"]}
            PICTURE.parent.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=PICTURE, clip=crop)
            chromium.close()
    print(f"{PICTURE}: {PICTURE.stat().st_size // 1000} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
