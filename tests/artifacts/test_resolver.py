"""From a URI to bytes, never from anywhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conjure_jupyter.artifacts.fetch import Fetcher, FetchPolicy
from conjure_jupyter.artifacts.resolver import ArtifactResolver, Resolved
from conjure_jupyter.errors import (
    ArtifactError,
    ArtifactNotFoundError,
    ArtifactTooLargeError,
    FetchBlockedError,
    FetchError,
    InvalidArtifactError,
)
from conjure_jupyter.settings import Settings
from conjure_jupyter.skills import Skill

from .test_registry import World


@dataclass
class FakeFetcher:
    """Answers from a dict and remembers what it was asked."""

    folder: Path
    pages: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def fetch(self, url: str) -> Any:
        self.asked.append(url)
        if url not in self.pages:
            raise FetchError(url, "the server said 404", status=404)
        path = self.folder / f"fetched-{len(self.asked)}"
        path.write_bytes(self.pages[url])
        size = len(self.pages[url])
        return SimpleNamespace(path=path, content_type="application/json", size=size, name="data.json")


class Place(World):
    """A resolver with a skill, a notebook's folder, and a fetcher that is asked for nothing."""

    def __init__(self, folder: Path, **chosen: Any) -> None:
        super().__init__(folder, **chosen)
        self.skill = folder / "skills" / "csv-helper"
        (self.skill / "assets" / "templates").mkdir(parents=True)
        (self.skill / "SKILL.md").write_text("secret instructions")
        (self.skill / "assets" / "sample.csv").write_bytes(b"a,b\n1,2\n")
        (self.skill / "assets" / "templates" / "x.html").write_bytes(b"<html>")
        self.skills = [Skill("csv-helper", "Helps.", self.skill)]
        self.fetcher = FakeFetcher(folder)
        self.resolver = ArtifactResolver(
            self.registry, lambda: self.skills, self.fetcher, self.project, Settings(**chosen)
        )

    async def bytes_of(self, uri: str) -> bytes:
        return self.blobs.read((await self.resolver.resolve(uri)).keep(self.blobs, limit=1000))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def facts(resolved: Resolved) -> tuple[str, str, int]:
    return resolved.name, resolved.content_type, resolved.size


# skill:// -------------------------------------------------------------------------------------------------


async def test_an_asset(place: Place) -> None:
    found = await place.resolver.resolve("skill://csv-helper/assets/sample.csv")
    assert facts(found) == ("sample.csv", "text/csv", 8)
    assert found.path == place.skill / "assets" / "sample.csv"
    assert found.url is None
    assert await place.bytes_of("skill://csv-helper/assets/templates/x.html") == b"<html>"
    assert place.resolver.skill_names() == ["csv-helper"]


@pytest.mark.parametrize(
    "uri",
    [
        "skill://csv-helper/assets/../SKILL.md",
        "skill://csv-helper/assets/%2e%2e/SKILL.md",
        "skill://csv-helper/assets/templates/../../SKILL.md",
        "skill://csv-helper/assets//etc/passwd",
        "skill://csv-helper/SKILL.md",
        "skill://../csv-helper/assets/sample.csv",
        "skill://other/assets/sample.csv",
        "skill://csv-helper/assets/gone.csv",
        "skill://csv-helper/assets/templates",
        "skill://csv-helper/assets/sample.csv/x",
        "skill://csv-helper/assets/link-up",
        "skill://csv-helper/assets/link-out",
        "skill://csv-helper/assets/folder-out/passwd",
        "skill://csv-helper/assets/cycle",
        "skill://csv-helper/assets/fifo",
        "skill://csv-helper/assets/magic/etc/passwd",
        "skill://csv-helper/assets/" + "a" * 300,
        "skill://csv-helper-2/assets/x",
    ],
)
async def test_nothing_but_assets(place: Place, uri: str) -> None:
    assets = place.skill / "assets"
    (assets / "link-up").symlink_to("../SKILL.md")
    (assets / "link-out").symlink_to("/etc/passwd")
    (assets / "folder-out").symlink_to("/etc")
    (assets / "cycle").symlink_to("cycle")
    (assets / "magic").symlink_to("/proc/self/root")
    os.mkfifo(assets / "fifo")
    (place.skill.parent / "csv-helper-2" / "assets").mkdir(parents=True)
    (place.skill.parent / "csv-helper-2" / "assets" / "x").write_bytes(b"not loaded")
    with pytest.raises(ArtifactError) as caught:
        await place.resolver.resolve(uri)
    assert uri[:60] in str(caught.value), "the message names the URI"
    assert str(place.skill) not in str(caught.value), "and not where the folder lies"


async def test_assets_that_lead_elsewhere_are_none(place: Place, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_bytes(b"secret")
    (place.skill / "assets").rename(place.skill / "old")
    (place.skill / "assets").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArtifactError, match="outside"):
        await place.resolver.resolve("skill://csv-helper/assets/x")


async def test_a_link_between_assets_is_fine(place: Place) -> None:
    (place.skill / "assets" / "alias.csv").symlink_to("templates/../sample.csv")
    assert await place.bytes_of("skill://csv-helper/assets/alias.csv") == b"a,b\n1,2\n"


async def test_an_unknown_skill_is_told_with_those_that_are_loaded(place: Place) -> None:
    with pytest.raises(ArtifactNotFoundError, match="loaded: csv-helper"):
        await place.resolver.resolve("skill://other/assets/x")
    place.skills.clear()
    with pytest.raises(ArtifactNotFoundError, match="loaded: none"):
        await place.resolver.resolve("skill://csv-helper/assets/sample.csv")


async def test_what_was_swapped_for_a_link_since_is_not_kept(place: Place) -> None:
    found = await place.resolver.resolve("skill://csv-helper/assets/sample.csv")
    (place.skill / "assets" / "sample.csv").unlink()
    (place.skill / "assets" / "sample.csv").symlink_to("/etc/passwd")
    with pytest.raises(ArtifactError, match="outside"):
        found.keep(place.blobs, limit=10_000)
    assert place.blobs.list() == []


@given(path=st.text(alphabet="ab./%2eEfF\\~\0 ", min_size=1, max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
async def test_no_path_leaves_the_assets(place: Place, path: str) -> None:
    try:
        found = await place.resolver.resolve(f"skill://csv-helper/assets/{path}")
    except ArtifactError:
        return
    assert found.path is not None
    assert found.path.resolve().is_relative_to(place.skill / "assets")


# file:// --------------------------------------------------------------------------------------------------


async def test_a_registered_file_as_it_is_now(place: Place) -> None:
    path = place.write("abc123.csv")
    place.registry.register("sales", path)
    assert facts(await place.resolver.resolve("file://sales")) == ("sales.csv", "text/csv", 8)
    path.write_bytes(b"a,b\n1,2\n3,4\n")
    assert (await place.resolver.resolve("file://sales")).size == 12
    assert await place.bytes_of("file://sales") == b"a,b\n1,2\n3,4\n"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    assert facts(await place.resolver.resolve("file://sales"))[:2] == ("sales.csv.png", "image/png")
    path.unlink()
    with pytest.raises(ArtifactNotFoundError) as caught:
        await place.resolver.resolve("file://sales")
    assert "file://sales" in str(caught.value)
    assert str(place.project) not in str(caught.value)


async def test_a_registered_file_is_checked_again(tmp_path: Path) -> None:
    place = Place(tmp_path, artifact_paths=(str(tmp_path / "project"),), artifact_file_limit=10)
    path = place.write("x.csv")
    (tmp_path / "secret").write_bytes(b"secret")
    place.registry.register("x", path)
    path.write_bytes(b"12345678901")
    with pytest.raises(ArtifactTooLargeError, match="artifact_file_limit"):
        await place.resolver.resolve("file://x")
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(ArtifactError, match="artifact_paths"):
        await place.resolver.resolve("file://x")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ArtifactError, match="regular"):
        await place.resolver.resolve("file://x")


@pytest.mark.parametrize(
    ("name", "given", "file"),
    [
        ("config", b'{"a": 1}', "config.json"),
        ("config.json", b'{"a": 1}', "config.json"),
        ("sales.v2", b"a,b,c\n1,2,3\n", "sales.v2.csv"),
        ("chart.png", b"<!doctype html>", "chart.png.html"),
        ("raw", b"\0\1\2", "raw.bin"),
    ],
)
async def test_contents_and_their_file_names(place: Place, name: str, given: bytes, file: str) -> None:
    place.registry.register(name, given)
    found = await place.resolver.resolve(f"file://{name}")
    assert (found.name, found.size, found.path) == (file, len(given), None)
    assert found.blob is not None
    assert await place.bytes_of(f"file://{name}") == given


async def test_a_type_that_the_user_gave_stays(place: Place) -> None:
    place.registry.register("odd", place.write("odd", b"1;2\n"), content_type="text/csv")
    assert facts(await place.resolver.resolve("file://odd"))[:2] == ("odd.csv", "text/csv")


async def test_contents_that_were_not_kept(tmp_path: Path) -> None:
    place = Place(tmp_path, artifact_limit=3)
    place.registry.register("big", b"1234")
    with pytest.raises(ArtifactTooLargeError, match="artifact_limit"):
        await place.resolver.resolve("file://big")
    small = place.registry.register("small", b"123")
    place.blobs.path(small.sha256 or "").unlink()
    with pytest.raises(ArtifactNotFoundError, match="register it again"):
        await place.resolver.resolve("file://small")


async def test_a_file_beside_the_notebook(place: Place) -> None:
    place.write("data/größe 1.csv")
    for uri in (
        "file://data/größe 1.csv",
        "file://data/gr%C3%B6%C3%9Fe%201.csv",
        "file://data/../data/größe 1.csv",
    ):
        assert facts(await place.resolver.resolve(uri)) == ("größe 1.csv", "text/csv", 8)
    inside = f"file://{place.project}/data/größe 1.csv"
    assert await place.bytes_of(inside) == b"a,b\n1,2\n"


async def test_a_registered_name_comes_first(place: Place) -> None:
    place.write("sales.csv", b"beside")
    place.registry.register("sales.csv", b"registered")
    assert await place.bytes_of("file://sales.csv") == b"registered"
    place.registry.unregister("sales.csv")
    assert await place.bytes_of("file://sales.csv") == b"beside"


@pytest.mark.parametrize(
    "uri",
    [
        "file://../secret",
        "file://%2e%2e/secret",
        "file://data/../../secret",
        "file:///etc/passwd",
        "file://link",
        "file://folder/passwd",
        "file://gone",
        "file://data",
        "file://.",
        "file://~/secret",
        "file://project2/x",
    ],
)
async def test_nothing_but_the_notebooks_folder(place: Place, tmp_path: Path, uri: str) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "project2").mkdir()
    (place.project / "data").mkdir()
    (place.project / "link").symlink_to("../secret")
    (place.project / "folder").symlink_to("/etc")
    with pytest.raises(ArtifactError) as caught:
        await place.resolver.resolve(uri)
    assert uri in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


async def test_what_is_not_there_is_told_with_the_registered_names(place: Place) -> None:
    place.registry.register("sales", value="x")
    with pytest.raises(ArtifactNotFoundError, match="registered names: sales"):
        await place.resolver.resolve("file://sale")


# https:// -------------------------------------------------------------------------------------------------


async def test_a_url(place: Place) -> None:
    url = "https://example.com/api"
    place.fetcher.pages[url] = b'{"a": 1}'
    found = await place.resolver.resolve(url)
    assert facts(found) == ("data.json", "application/json", 8)
    assert found.url == url
    assert await place.bytes_of(url) == b'{"a": 1}'


async def test_a_registered_url_is_fetched_when_it_is_used(place: Place) -> None:
    url = "https://example.com/api"
    place.fetcher.pages[url] = b'{"a": 1}'
    place.registry.register("api", url)
    assert place.fetcher.asked == []
    found = await place.resolver.resolve("file://api")
    assert (found.name, found.url, place.fetcher.asked) == ("api.json", url, [url])


async def test_a_url_that_gives_nothing(place: Place) -> None:
    with pytest.raises(FetchError, match="404"):
        await place.resolver.resolve("https://example.com/gone")


async def test_http_and_all_fetching_are_by_setting(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with pytest.raises(FetchBlockedError, match="url_schemes"):
        await place.resolver.resolve("http://example.com/a")
    off = Place(tmp_path / "off", url_fetch_enabled=False)
    with pytest.raises(FetchBlockedError, match="url_fetch_enabled"):
        await off.resolver.resolve("https://example.com/a")
    both = Place(tmp_path / "both", url_schemes=("https", "http"))
    both.fetcher.pages["http://example.com/a"] = b"{}"
    assert await both.bytes_of("http://example.com/a") == b"{}"
    assert place.fetcher.asked == off.fetcher.asked == []


async def test_the_guarded_fetcher_fits(place: Place) -> None:
    chosen = Settings()
    guarded = Fetcher(FetchPolicy.of(chosen), place.project / "cache")
    resolver = ArtifactResolver(place.registry, list, guarded, place.project, chosen)
    try:
        with pytest.raises(FetchBlockedError, match="127"):
            await resolver.resolve("https://127.0.0.1/x")
    finally:
        await guarded.close()


@pytest.mark.parametrize("uri", ["", "data.csv", "ftp://a/b", "file://", "fi:turn_0001.files/x"])
async def test_what_is_no_uri(place: Place, uri: str) -> None:
    with pytest.raises(InvalidArtifactError):
        await place.resolver.resolve(uri)


async def test_keeping_what_has_no_content(place: Place) -> None:
    with pytest.raises(ArtifactNotFoundError, match="no content"):
        Resolved("file://a", "a", "text/plain", 0).keep(place.blobs, limit=1)
    path = place.write("x", b"12")
    place.registry.register("x", path)
    with pytest.raises(ArtifactTooLargeError):
        (await place.resolver.resolve("file://x")).keep(place.blobs, limit=1)
