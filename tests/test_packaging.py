"""What a user installs: built from the source archive, in an environment of its own, without a network."""

from __future__ import annotations

import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent

LOAD = """
import sys
from pathlib import Path
from IPython.core.interactiveshell import InteractiveShell
import conjure, conjure_jupyter

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", sys.argv[1])
assert "claude" in shell.magics_manager.magics["cell"], "no %%claude"
assert conjure.__version__ == conjure_jupyter.__version__
print(Path(conjure_jupyter.__file__).parent)
"""


def run(*command: object, cwd: Path = PROJECT) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.args}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", folder)
    (archive,) = folder.glob("*.tar.gz")
    return archive


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the unpacked source archive, as ``pip`` does where there is no wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    run("tar", "-xzf", sdist, "-C", folder)
    (source,) = folder.iterdir()
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=source)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def make_environment(tmp_path_factory: pytest.TempPathFactory):
    """Make an environment that sees this one's packages, but not this one's editable install."""

    def make(*install: object) -> Path:
        folder = tmp_path_factory.mktemp("env")
        venv.create(folder, symlinks=True)
        python = folder / "bin" / "python"
        own = Path(run(python, "-c", "import site; print(site.getsitepackages()[0])").strip())
        # Paths named in a .pth file are searched after the folder it lies in, and their own .pth
        # files are not read: that is what hides the editable install.
        (own / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--quiet",
            "--no-index",
            "--no-deps",
        ]
        run(*pip, "--no-build-isolation", *install)
        return python

    return make


@pytest.fixture(scope="session")
def installed(make_environment, wheel: Path) -> Path:
    return make_environment(wheel)


@pytest.fixture(scope="session")
def editable(make_environment) -> Path:
    return make_environment("--editable", PROJECT)


@pytest.mark.parametrize("extension", ["conjure", "conjure_jupyter"])
def test_the_extension_loads_from_an_ordinary_install(
    installed: Path, extension: str, tmp_path: Path
) -> None:
    place = Path(run(installed, "-c", LOAD, extension, cwd=tmp_path).strip())
    assert installed.parent.parent in place.parents


@pytest.mark.parametrize("extension", ["conjure", "conjure_jupyter"])
def test_the_extension_loads_from_an_editable_install(editable: Path, extension: str, tmp_path: Path) -> None:
    place = Path(run(editable, "-c", LOAD, extension, cwd=tmp_path).strip())
    assert place == PROJECT / "conjure_jupyter"


def test_the_command_line_is_installed(installed: Path, tmp_path: Path) -> None:
    assert "demo" in run(installed.parent / "conjure", "--help", cwd=tmp_path)


def test_the_demo_needs_no_repository(installed: Path, tmp_path: Path) -> None:
    run(installed.parent / "conjure", "demo", "--no-run", cwd=tmp_path)
    assert (tmp_path / "demo" / "01_quickstart.ipynb").is_file()
    assert (tmp_path / "demo" / "skills" / "csv-helper" / "SKILL.md").is_file()


def test_the_wheel_holds_the_two_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"conjure", "conjure_jupyter"}
    assert "conjure_jupyter/py.typed" in names
    assert not [name for name in names if "__pycache__" in name or ".ipynb_checkpoints" in name]
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]


def test_the_source_archive_can_set_itself_up(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"Makefile", "pyproject.toml", "requirements-dev.txt", "requirements-bench.txt", "LICENSE"}
    assert needed | {"README.md", "scripts/setup_env.py", "tests/conftest.py"} <= names
    assert not [name for name in names if "/.conjure/" in name or name.startswith((".venv", "demo/"))]


@pytest.mark.parametrize("lock", sorted(PROJECT.glob("requirements-*.txt")), ids=lambda lock: lock.name)
def test_a_lock_file_names_no_host_and_no_path(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert "file:" not in text
    assert not [line for line in text.splitlines() if line.startswith(("-", "/", "."))]
