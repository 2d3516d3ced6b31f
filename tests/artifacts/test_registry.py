"""Names for files, URLs, bytes and values: what is taken, what is refused, what the log says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from conjure_jupyter.artifacts.blobs import BlobStore
from conjure_jupyter.artifacts.registry import ArtifactRegistry, reason
from conjure_jupyter.artifacts.security import validate_file_path
from conjure_jupyter.errors import (
    ArtifactError,
    ArtifactNotFoundError,
    FetchBlockedError,
    InvalidArtifactError,
)
from conjure_jupyter.fileref import FileRef
from conjure_jupyter.settings import Settings
from conjure_jupyter.timeline import BaseTimeline, MemoryTimeline, Timeline, follow
from conjure_jupyter.timeline.discovery import Discovery


class World:
    """A registry whose log is made when something is first written to it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.project = folder / "project"
        self.project.mkdir(parents=True, exist_ok=True)
        self.discovery = Discovery()
        self.blobs = BlobStore(folder / "session" / "blobs")
        self.log: BaseTimeline | None = None
        self.registry = ArtifactRegistry(
            self.timeline, self.discovery, self.blobs, Settings(**settings), self.project
        )

    def timeline(self) -> BaseTimeline:
        if self.log is None:
            self.log = MemoryTimeline()
            follow(self.log, self.discovery)
        return self.log

    def write(self, name: str, data: bytes = b"a,b\n1,2\n") -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def said(self) -> list[tuple[str, dict[str, Any]]]:
        assert self.log is not None
        return [(block.kind, block.data) for block in self.log.blocks if "register" in block.kind]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_path(world: World) -> None:
    path = world.write("data/sales.csv")
    for source in ("data/sales.csv", Path("data/sales.csv"), str(path), path):
        found = world.registry.register("sales", source)
        assert found.source == {"type": "path", "path": str(path)}
        assert (found.name, found.mime, found.size, found.suffix) == ("sales", "text/csv", 8, ".csv")
    assert world.blobs.list() == [], "a file stays where it is"


def test_a_path_in_the_home_folder(world: World) -> None:
    (Path.home() / "x.csv").write_bytes(b"1")
    (Path(os.environ["HOME"]) / "x.csv").write_bytes(b"1")
    assert world.registry.register("x", "~/x.csv").size == 1


def test_a_url_is_not_fetched(world: World) -> None:
    found = world.registry.register("api", "https://example.com/v1/data.json?page=1#top")
    assert found.source == {"type": "url", "url": "https://example.com/v1/data.json?page=1"}
    assert (found.mime, found.size, found.suffix) == ("application/json", None, ".json")
    assert world.registry.register("page", "https://example.com/latest").suffix == ""


def test_bytes_and_values_are_kept(world: World) -> None:
    made = world.registry.register("config", b'{"a": 1}')
    assert (made.source["type"], made.mime, made.suffix) == ("content", "application/json", ".json")
    made = world.registry.register("frame", pd.DataFrame({"a": [1]}))
    assert (made.source["type"], made.source["of"], made.mime) == ("value", "DataFrame", "text/csv")
    assert world.blobs.read(made.sha256 or "") == b"a\n1\n"
    made = world.registry.register("frame", pd.DataFrame({"a": [1]}), format="parquet")
    assert made.suffix == ".parquet"
    made = world.registry.register("data", {"a": 1})
    assert made.mime == "application/json"


def test_text_is_a_path_unless_it_is_given_as_value(world: World) -> None:
    with pytest.raises(ArtifactNotFoundError, match="hello"):
        world.registry.register("note", "hello")
    made = world.registry.register("note", value="hello")
    assert (made.mime, world.blobs.read(made.sha256 or "")) == ("text/plain", b"hello")
    url = world.registry.register("url", value="https://example.com")
    assert url.source["type"] == "value"


def test_a_file_of_a_session(world: World, tmp_path: Path) -> None:
    digest = world.blobs.put(b"# Title")
    ref = FileRef("outputs/x.md", 7, "text/markdown", digest, blob=world.blobs.path(digest))
    made = world.registry.register("report", ref)
    assert (made.source["type"], made.mime, made.sha256, made.suffix) == (
        "content",
        "text/markdown",
        digest,
        ".md",
    )


def test_what_the_log_says(world: World) -> None:
    world.registry.register("note", value="hello", metadata={"from": "Ann"})
    world.registry.unregister("note")
    (first, data), second = world.said()
    assert first == "register"
    assert {key: data[key] for key in ("name", "source", "mime", "size", "suffix", "metadata")} == {
        "name": "note",
        "source": {"type": "value", "of": "str"},
        "mime": "text/plain",
        "size": 5,
        "suffix": ".txt",
        "metadata": {"from": "Ann"},
    }
    assert world.blobs.read(data["sha256"]) == b"hello"
    assert second == ("unregister", {"name": "note"})


def test_names_last_as_long_as_the_log(tmp_path: Path) -> None:
    discovery = Discovery()
    blobs = BlobStore(tmp_path / "s" / "blobs")
    log = Timeline.create(tmp_path / "s", {})
    follow(log, discovery)
    ArtifactRegistry(lambda: log, discovery, blobs, Settings(), tmp_path).register("note", value="hello")
    log.close()
    again = Discovery()
    follow(Timeline.open(tmp_path / "s", readonly=True), again)
    found = ArtifactRegistry(lambda: log, again, blobs, Settings(), tmp_path).info("note")
    assert blobs.read(found.sha256 or "") == b"hello"


def test_registering_makes_the_session_and_not_its_folder_alone(tmp_path: Path) -> None:
    discovery, folder = Discovery(), tmp_path / "s"

    def made() -> BaseTimeline:
        assert not folder.exists(), "nothing was written before there is a session"
        log = Timeline.create(folder, {})
        follow(log, discovery)
        return log

    registry = ArtifactRegistry(made, discovery, BlobStore(folder / "blobs"), Settings(), tmp_path)
    registry.register("note", value="hello")
    assert [folder.stat().st_mode & 0o777, (folder / "blobs").stat().st_mode & 0o777] == [0o700, 0o700]


def test_listing_and_taking_away(world: World) -> None:
    assert world.registry.list() == []
    for name in ("b", "a", "c"):
        world.registry.register(name, value=name)
    assert [found.name for found in world.registry.list()] == ["b", "a", "c"]
    world.registry.unregister("a")
    assert [found.name for found in world.registry.list()] == ["b", "c"]
    with pytest.raises(ArtifactNotFoundError, match="there are: b, c"):
        world.registry.info("a")
    with pytest.raises(ArtifactNotFoundError):
        world.registry.unregister("a")
    world.registry.cleanup()
    assert world.registry.list() == []
    assert len(world.blobs.list()) == 3, "what a conversation spoke of is not forgotten"


def test_looking_makes_no_log(world: World) -> None:
    world.registry.list()
    with pytest.raises(ArtifactNotFoundError, match="none yet"):
        world.registry.info("a")
    world.registry.cleanup()
    for name, source in (("a/b", b""), ("a", "gone.csv"), ("a", object()), ("a", "https://127.0.0.1/")):
        with pytest.raises(ArtifactError):
            world.registry.register(name, source)
    assert world.log is None


def test_the_same_name_again_replaces(world: World) -> None:
    world.registry.register("a", value="one")
    world.registry.register("a", value="two")
    assert world.blobs.read(world.registry.info("a").sha256 or "") == b"two"
    assert len(world.registry.list()) == 1


@pytest.mark.parametrize("name", ["Sales_Data", "sales-data", "file://x", "https://a/b", "..", "a b"])
def test_names_that_are_refused(world: World, name: str) -> None:
    world.registry.register("sales_data", value="x")
    with pytest.raises(InvalidArtifactError):
        world.registry.register(name, value="y")
    assert len(world.said()) == 1


@pytest.mark.parametrize("given", [{}, {"source": b"a", "value": b"b"}])
def test_one_of_source_and_value_is_needed(world: World, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidArtifactError, match="a source or a value"):
        world.registry.register("a", **given)


def test_the_user_may_know_the_type_better(world: World) -> None:
    made = world.registry.register("a", b"1;2\n", content_type="Text/CSV; header=absent")
    assert (made.mime, made.source["content_type"]) == ("text/csv", "text/csv")
    world.write("odd", b"1;2\n")
    assert world.registry.register("b", "odd", content_type="text/csv").suffix == ".csv"


@pytest.mark.parametrize("metadata", [{"a": object()}, {"a": float("nan")}, {1: {2}}])
def test_metadata_that_cannot_be_kept(world: World, metadata: dict[Any, Any]) -> None:
    with pytest.raises(InvalidArtifactError, match="metadata"):
        world.registry.register("a", value="x", metadata=metadata)


# Limits ---------------------------------------------------------------------------------------------------


def test_what_is_over_a_limit_is_registered_without_its_content(tmp_path: Path) -> None:
    world = World(tmp_path, artifact_limit=6, artifact_file_limit=5)
    world.write("five", b"12345")
    world.write("six", b"123456")
    assert reason(world.registry.register("five", "five")) is None
    big = world.registry.register("six", "six")
    assert (big.size, reason(big)) == (6, "6 bytes, and 5 are allowed (artifact_file_limit)")
    assert reason(world.registry.register("fits", b"123456")) is None
    big = world.registry.register("big", b"1234567")
    assert (big.size, big.sha256) == (7, None)
    assert "artifact_limit" in (reason(big) or "")
    assert len(world.blobs.list()) == 1


# Which files ----------------------------------------------------------------------------------------------


def test_only_files_of_the_allowed_folders(tmp_path: Path) -> None:
    world = World(tmp_path, artifact_paths=(str(tmp_path / "data"),))
    for folder in ("data", "data2", "data-old", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_bytes(b"1")
    (tmp_path / "data" / "..test").write_bytes(b"1")
    (tmp_path / "data" / "inner").symlink_to("x.csv")
    (tmp_path / "data" / "out").symlink_to(tmp_path / "other" / "x.csv")
    (tmp_path / "data" / "up").symlink_to("../other/x.csv")
    (tmp_path / "data" / "folder").symlink_to(tmp_path / "other")
    (tmp_path / "in").symlink_to(tmp_path / "data" / "x.csv")
    for good in ("x.csv", "..test", "inner", "../data/x.csv"):
        assert world.registry.register("a", tmp_path / "data" / good).size == 1
    for bad in (
        "data2/x.csv",
        "data-old/x.csv",
        "other/x.csv",
        "data/../other/x.csv",
        "data/out",
        "data/up",
        "data/folder/x.csv",
    ):
        with pytest.raises(ArtifactError, match="artifact_paths"):
            world.registry.register("a", tmp_path / bad)
        with pytest.raises(ArtifactError):
            validate_file_path(tmp_path / bad, allowed_dirs=[tmp_path / "data"])


def test_a_hard_link_may_be_read(world: World) -> None:
    path = world.write("a.csv")
    os.link(path, world.project / "b.csv")
    assert world.registry.register("b", "b.csv").size == 8


@pytest.mark.parametrize("kind", ["folder", "fifo", "device", "cycle", "broken", "gone", "empty", "slash"])
@pytest.mark.parametrize("allowed", [False, True])
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path, kind: str, allowed: bool) -> None:
    world = World(tmp_path, artifact_paths=(str(tmp_path), "/dev") if allowed else ())
    path = world.project / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "cycle":
        path.symlink_to(path)
    elif kind == "broken":
        path.symlink_to("nowhere")
    elif kind == "slash":
        path = world.write("y") / "z"
    with pytest.raises(ArtifactError):
        world.registry.register("a", "" if kind == "empty" else path)
    assert world.log is None


def test_what_cannot_be_a_path(world: World) -> None:
    for source in ("a\0b", "\ud800"):
        with pytest.raises(ArtifactError):
            world.registry.register("a", source)


def test_validate_file_path_gives_the_status(world: World) -> None:
    assert validate_file_path(world.write("x")).st_size == 8
    assert validate_file_path(str(world.write("x")), allowed_dirs=[world.project]).st_size == 8
    with pytest.raises(ArtifactNotFoundError):
        validate_file_path(world.project / "gone")


# Which URLs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/a",
        "https://localhost/a",
        "https://127.0.0.1/a",
        "https://169.254.169.254/latest/meta-data/",
        "https://user:password@example.com/a",
        "https://example.com:22/a",
        "https://[::1]/",
        "https://exa\tmple.com/",
    ],
)
def test_urls_that_will_never_be_fetched_are_told_at_once(world: World, url: str) -> None:
    with pytest.raises(FetchBlockedError) as caught:
        world.registry.register("a", url)
    assert "password" not in caught.value.url
    assert world.log is None


def test_urls_by_setting(tmp_path: Path) -> None:
    allowed = World(tmp_path, url_schemes=("https", "http"))
    assert allowed.registry.register("a", "http://example.com/a").source["url"] == "http://example.com/a"
    off = World(tmp_path, url_fetch_enabled=False)
    with pytest.raises(FetchBlockedError, match="url_fetch_enabled"):
        off.registry.register("a", "https://example.com/a")


@pytest.mark.parametrize("uri", ["file://a", "skill://a/assets/b"])
def test_an_artifacts_uri_is_no_source(world: World, uri: str) -> None:
    with pytest.raises(InvalidArtifactError, match="use its URI"):
        world.registry.register("b", uri)
