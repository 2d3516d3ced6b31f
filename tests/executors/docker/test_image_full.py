"""The full image, built for real: minutes and gigabytes, so not in an ordinary run (pytest -m image)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from conjure_jupyter.errors import DockerImageError
from conjure_jupyter.executors.docker.image import build_image

from .builds import connected
from .hardened import run

pytestmark = [pytest.mark.docker, pytest.mark.image]

TAG = "conjure-test/full:latest"
SECRET = "hunter2hunter2"
#: PyPI asks for no password and minds none.
INDEX = f"https://me:{SECRET}@pypi.org/simple"

IMPORTS = """
    PIL bs4 docx img2pdf matplotlib numpy openpyxl pandas pdf2image pdfkit pdfplumber pptx pyarrow pypdf
    pypdfium2 reportlab requests tabula xlrd xlsxwriter yaml
"""
PROGRAMS = "python python3 pip node npm bash git curl wget jq pdftotext pdftoppm qpdf wkhtmltopdf java"

#: A real use of what needs a program, fonts or a folder to write to.
USE = r"""
import json, pathlib, subprocess, warnings
warnings.simplefilter("error")
import matplotlib.pyplot as plt, pdf2image, pdfkit, tabula
from reportlab.platypus import SimpleDocTemplate, Table

figure, axes = plt.subplots()
axes.plot([1, 3, 2])
axes.set_title("Umsatz \u6f22\u5b57")
figure.savefig("chart.png")
page = "<meta charset=utf-8><h1>R\u00e9sum\u00e9 \u6f22\u5b57</h1>"
pdfkit.from_string(page, "page.pdf", options={"quiet": ""})
text = subprocess.run(["pdftotext", "page.pdf", "-"], capture_output=True, text=True, check=True).stdout
table = Table([["name", "value"], ["a", "1"]], style=[("GRID", (0, 0), (-1, -1), 1, "black")])
SimpleDocTemplate("table.pdf").build([table])
(frame,) = tabula.read_pdf("table.pdf", pages="all", lattice=True, silent=True)
print(json.dumps({
    "chart": pathlib.Path("chart.png").read_bytes()[1:4].decode(),
    "text": text.split(),
    "table": frame.to_dict("records"),
    "pages": len(pdf2image.convert_from_path("table.pdf")),
}))
"""


@pytest.fixture(scope="module")
def full_image(docker_engine: str, docker_image: str) -> str:
    """Built on the tests' base, trusting what this machine trusts."""
    bundle = os.environ.get("SSL_CERT_FILE")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", docker_engine)
        try:
            build_image(
                tag=TAG,
                base=docker_image,
                ca_bundle=bundle if bundle and Path(bundle).exists() else None,
                build_args={"PIP_INDEX_URL": INDEX},
            )
        except DockerImageError as error:
            if "network was not reached" in str(error):
                pytest.skip("the engine reaches no packages of the distribution, or no PyPI")
            raise
    return TAG


@pytest.mark.parametrize("name", IMPORTS.split())
async def test_a_package_can_be_imported(docker_engine: str, full_image: str, name: str) -> None:
    assert await run(docker_engine, full_image, ["python", "-W", "error", "-c", f"import {name}"]) == ""


async def test_every_program_is_there(docker_engine: str, full_image: str) -> None:
    said = await run(docker_engine, full_image, ["bash", "-c", f"type -P {PROGRAMS} | wc -l"])
    assert int(said) == len(PROGRAMS.split())


async def test_charts_pages_tables_and_pictures_are_made(docker_engine: str, full_image: str) -> None:
    said = await run(docker_engine, full_image, ["python", "-c", USE])
    assert json.loads(said.splitlines()[-1]) == {
        "chart": "PNG",
        "text": ["Résumé", "漢字"],
        "table": [{"name": "a", "value": 1}],
        "pages": 1,
    }, said


async def test_node_runs(docker_engine: str, full_image: str) -> None:
    script = "npm config get prefix; node -e 'console.log(process.env.NODE_ENV)'"
    said = await run(docker_engine, full_image, ["bash", "-c", script])
    assert said == "/home/sandbox/.local\nproduction\n"


async def test_git_takes_a_repository_of_another_user(docker_engine: str, full_image: str) -> None:
    said = await run(docker_engine, full_image, ["bash", "-c", "git init -q x && git -C x status --short"])
    assert "fatal" not in said


async def test_java_trusts_what_the_system_does(docker_engine: str, full_image: str) -> None:
    script = (
        "keytool -list -cacerts -storepass changeit 2>/dev/null | grep -c trustedCertEntry;"
        "python -c 'import ssl; print(len(ssl.create_default_context().get_ca_certs()))'"
    )
    java, python = map(int, (await run(docker_engine, full_image, ["bash", "-c", script])).split())
    assert java >= python > 100


async def test_the_indexs_password_is_nowhere_in_the_image(docker_engine: str, full_image: str) -> None:
    async with connected(docker_engine) as engine:
        inspected = await engine.call(engine.api.inspect_image, full_image)
        history = await engine.call(engine.api.history, full_image)
    assert SECRET not in json.dumps([inspected, history])
    command = f"grep -rIl --exclude-dir=proc --exclude-dir=sys {SECRET[:7]}{SECRET[7:]} / 2>/dev/null | wc -l"
    assert int(await run(docker_engine, full_image, ["bash", "-c", command], user="0:0")) == 0
