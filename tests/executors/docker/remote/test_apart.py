"""The whole of it against an engine that does not see this machine's files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from conjure_jupyter.errors import ContainerError, DockerUnavailableError
from conjure_jupyter.executors.docker.connection import Engine
from conjure_jupyter.executors.docker.owner import labels
from conjure_jupyter.executors.docker.remote import Probe, no_such_source
from conjure_jupyter.executors.docker.remote import probe as probe_module

from .apart import Apart
from .names import names
from .session import Session

pytestmark = pytest.mark.docker


async def test_what_is_here_is_there_and_what_is_made_there_comes_here(session: Session) -> None:
    (session.work / "in").mkdir()
    (session.work / "in" / "data.csv").write_text("a,b\n")
    (session.work / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (session.work / "run.sh").chmod(0o755)
    await session.start()
    said = await session.call(
        "cat in/data.csv && ./run.sh && mkdir -p out/deep && echo made > out/deep/x.txt"
    )
    assert said == "a,b\nran\n"
    assert (session.work / "out/deep/x.txt").read_text() == "made\n"


async def test_changes_and_removals_go_both_ways(session: Session) -> None:
    for name in ("kept", "changed here", "changed there", "removed here", "removed there"):
        (session.work / name).write_text("old")
    (session.work / "folder here/x").mkdir(parents=True)
    (session.work / "folder there/x").mkdir(parents=True)
    await session.start()
    (session.work / "changed here").write_text("new here")
    (session.work / "removed here").unlink()
    (session.work / "folder here/x").rmdir()
    (session.work / "folder here").rmdir()
    said = await session.call(
        "cat 'changed here'; ls; echo new there > 'changed there'; rm -r 'removed there' 'folder there'"
    )
    assert said.splitlines() == [
        "new herechanged here", "changed there", "folder there", "kept", "removed there", "skills",
    ]  # fmt: skip
    assert names(session.work) == ["changed here", "changed there", "kept"]
    assert (session.work / "changed there").read_text() == "new there\n"


async def test_times_and_modes_stay(session: Session) -> None:
    path = session.work / "a"
    path.write_text("a")
    path.chmod(0o640)
    os.utime(path, ns=(1, 1_700_000_000_123_456_789))
    await session.start()
    said = await session.call(
        "stat -c %a a; stat -c %y a; umask 0; echo b > b; chmod 711 b; touch -d @1600000000.5 b"
    )
    assert said.splitlines()[0] == "640"
    assert ".123456789 " in said
    info = (session.work / "b").stat()
    assert (info.st_mode & 0o7777, info.st_mtime_ns) == (0o711, 1_600_000_000_500_000_000)


async def test_setuid_is_dropped(session: Session) -> None:
    await session.start()
    await session.call("cp /bin/true t; chmod 6755 t; mkdir s; chmod 1777 s; mkdir g; chmod 2755 g")
    assert [(session.work / name).stat().st_mode & 0o7000 for name in ("t", "s", "g")] == [0, 0, 0]


async def test_skills_that_arrive_late_and_that_leave(session: Session) -> None:
    (session.skills / "one").mkdir()
    (session.skills / "one/SKILL.md").write_text("one")
    (session.skills / "one/SKILL.md").chmod(0o444)
    await session.start()
    assert (
        await session.call("ls /mnt/skills /workspace/skills | xargs")
        == "/mnt/skills: one /workspace/skills: one\n"
    )
    (session.skills / "two").mkdir()
    (session.skills / "two/SKILL.md").write_text("two")
    assert await session.call("cat skills/two/SKILL.md") == "two"
    (session.skills / "one/SKILL.md").unlink()
    (session.skills / "one").rmdir()
    assert await session.call("ls skills") == "two\n"
    assert "Read-only" in await session.run(
        "echo x > skills/two/SKILL.md || true; rm -r skills/two 2>&1 || true"
    )
    assert not (session.work / "skills").exists()


async def test_dot_files_of_the_notebooks_folder_are_not_sent(session: Session) -> None:
    (session.notebook / ".env").write_text("secret")
    (session.notebook / "sub/.git").mkdir(parents=True)
    (session.notebook / "sub/.git/config").write_text("secret")
    (session.notebook / "data.csv").write_text("a")
    (session.work / ".kept").write_text("the workspace's own are")
    await session.start()
    assert (await session.call("cd /notebook && find . | sort | xargs")) == ". ./data.csv ./sub\n"
    (session.notebook / ".later").write_text("secret")
    assert "later" not in await session.call("find /notebook")
    assert await session.call("cat .kept") == "the workspace's own are"


async def test_links_stay_links_and_those_that_lead_outside_stay_where_they_are(
    session: Session, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    (session.work / "out").symlink_to(tmp_path / "secret")
    (session.work / "up").symlink_to("../secret")
    (session.work / "a.txt").write_text("a")
    (session.work / "in").symlink_to("a.txt")
    await session.start()
    said = await session.push()
    assert await session.run("ls | xargs; cat in") == "a.txt in skills\na"
    await session.run(
        "mkdir d; ln -s ../a.txt d/in; ln -s /etc/passwd d/abs; ln -s ../../x d/up; rm in; ln -s d in"
    )
    said = await session.pull()
    assert any("lead outside" in note for note in said.notes)
    assert names(session.work / "d") == ["in"]
    assert str((session.work / "d/in").readlink()) == "../a.txt"
    assert str((session.work / "in").readlink()) == "d"
    assert str((session.work / "up").readlink()) == "../secret"


async def test_a_file_that_changed_on_both_sides_is_kept_twice(session: Session) -> None:
    (session.work / "report.txt").write_text("old")
    await session.start()
    await session.push()
    await session.run("echo theirs > report.txt")
    (session.work / "report.txt").write_text("mine")
    moved = await session.pull()
    assert (session.work / "report.txt").read_text() == "mine"
    assert (session.work / "report.txt.container").read_text() == "theirs\n"
    assert len(moved.notes) == 1
    assert "report.txt.container" in moved.notes[0]
    assert await session.call("cat report.txt report.txt.container") == "minetheirs\n"
    assert not (await session.pull()).notes


async def test_a_push_does_not_undo_what_the_container_changed(session: Session) -> None:
    (session.work / "report.txt").write_text("old")
    await session.start()
    await session.push()
    await session.run("echo theirs > report.txt; rm -f gone")
    (session.work / "report.txt").write_text("mine")
    await session.push()
    assert await session.run("cat report.txt") == "theirs\n"
    await session.pull()
    assert (session.work / "report.txt.container").read_text() == "theirs\n"


async def test_files_become_folders_and_folders_files(session: Session) -> None:
    (session.work / "a").write_text("a")
    (session.work / "b").mkdir()
    (session.work / "b/inner").write_text("b")
    (session.work / "c").write_text("c")
    (session.work / "d").mkdir()
    (session.work / "d/inner").write_text("d")
    await session.start()
    await session.call("rm a; mkdir a; echo x > a/x; rm -r b; echo y > b")
    assert (session.work / "a/x").read_text() == "x\n"
    assert (session.work / "b").read_text() == "y\n"
    (session.work / "c").unlink()
    (session.work / "c").mkdir()
    (session.work / "c/z").write_text("z")
    (session.work / "d/inner").unlink()
    (session.work / "d").rmdir()
    (session.work / "d").write_text("flat")
    assert await session.call("cat c/z d") == "zflat"
    assert names(session.work) == ["a", "b", "c", "d"]


async def test_what_is_no_file_stays_and_hard_links_become_files(session: Session) -> None:
    await session.start()
    await session.call(
        "mkfifo p; echo data > f; mkdir sub; ln f sub/g; ln f h; for i in 1 2 3; do echo $i > sub/$i; done"
    )
    assert names(session.work) == ["f", "h", "sub"]
    assert [(session.work / name).read_text() for name in ("f", "h", "sub/g")] == ["data\n"] * 3
    await session.call("echo more >> f")
    assert [(session.work / name).read_text() for name in ("f", "h", "sub/g")] == ["data\nmore\n"] * 3


async def test_names_of_any_bytes(session: Session) -> None:
    odd = os.fsdecode(b"caf\xe9 \n'\"$(x)*?[a]\\.txt")
    (session.work / odd).write_text("odd")
    (session.work / "日本語").mkdir()
    (session.work / "日本語" / "ü").write_text("ü")
    await session.start()
    await session.call('for f in *.txt; do cp -- "$f" "copy-$f"; done; mv 日本語 中文')
    assert (session.work / ("copy-" + odd)).read_text() == "odd"
    assert (session.work / "中文/ü").read_text() == "ü"
    assert not (session.work / "日本語").exists()


async def test_a_large_file_and_one_with_holes(session: Session) -> None:
    await session.start()
    await session.call(
        "head -c 30000000 /dev/urandom > big; truncate -s 300M holes; echo end >> holes; sha256sum big > sum"
    )
    big, holes = session.work / "big", session.work / "holes"
    assert big.stat().st_size == 30_000_000
    assert holes.stat().st_size == 300 * 2**20 + 4
    assert holes.stat().st_blocks * 512 < 10 * 2**20
    big.rename(session.work / "moved")
    assert "OK" in await session.call("mv moved big && sha256sum -c sum")


async def test_a_folder_that_cannot_be_read_is_not_taken_for_empty(session: Session) -> None:
    session.user = "1000:1000"
    (session.work / "closed").mkdir()
    (session.work / "closed/x").write_text("x")
    await session.start()
    await session.call("chmod 0 closed")
    assert (session.work / "closed/x").read_text() == "x"
    await session.call("chmod 700 closed; rm -r closed")
    assert not (session.work / "closed").exists()


async def test_without_a_link_everything_is_compared(session: Session) -> None:
    (session.work / "a").write_text("a")
    (session.work / "b").write_text("b")
    files = await session.start()
    await session.run("echo new > a; rm b; mkdir d; echo c > d/c; ln d/c d/hard")
    await session.leave()
    await files.pull()
    assert names(session.work) == ["a", "d"]
    assert [(session.work / name).read_text() for name in ("a", "d/c", "d/hard")] == ["new\n", "c\n", "c\n"]
    before = (session.work / "a").stat()
    assert (await files.pull()).paths == ()
    assert (session.work / "a").stat() == before
    await session.enter()
    assert await session.call("cat a") == "new\n"


async def test_nothing_moves_when_nothing_changed(session: Session) -> None:
    (session.work / "a").write_text("a")
    await session.start()
    await session.call("echo b > b")
    assert (await session.push()).paths == ()
    assert (await session.pull()).paths == ()


async def test_what_there_is_no_room_for_stays_in_its_volume(session: Session) -> None:
    files = await session.start()
    await session.run("echo small > small; head -c 100000 /dev/zero > large")
    moved = await files.pull(session.link, session.context, limit=1000)
    assert (session.work / "small").exists()
    assert not (session.work / "large").exists()
    assert any("large" in note for note in moved.notes)
    assert not await files.close()
    assert session.engine is not None
    for mount in files.mounts:
        if mount.kind == "volume":
            await session.leave()
            await session.engine.call(session.engine.api.remove_volume, mount.source, force=True)
            break


async def test_everything_is_removed_at_the_end(session: Session) -> None:
    files = await session.start()
    engine = session.engine
    assert engine is not None
    await session.leave()
    await files.pull()
    ours = {"label": "conjure.session=test"}
    assert len((await engine.call(engine.api.volumes, filters=ours))["Volumes"]) >= 3
    assert await files.close()
    names = {str(mount.source) for mount in files.mounts}
    left = (await engine.call(engine.api.volumes, filters=ours))["Volumes"] or []
    assert not names & {each["Name"] for each in left}
    assert not await engine.call(engine.api.containers, all=True, filters=ours)


async def test_a_cancelled_pull_is_gone_on_with(session: Session) -> None:
    await session.start()
    await session.run("head -c 60000000 /dev/urandom > big; echo x > small")
    task = asyncio.ensure_future(session.pull())
    while not any(name.startswith(".conjure-") for name in names(session.work)):
        assert not task.done()
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(name.startswith(".conjure-") for name in names(session.work))
    await session.pull()
    assert (session.work / "big").stat().st_size == 60_000_000


async def test_an_engine_killed_in_the_middle_of_a_pull_loses_nothing(session: Session, apart: Apart) -> None:
    (session.work / "mine").write_text("mine")
    files = await session.start()
    await session.run(
        "for i in $(seq 50); do echo $i > $i; done; head -c 60000000 /dev/urandom > big; rm mine"
    )
    task = asyncio.ensure_future(session.pull())
    while not any(name.startswith(".conjure-") for name in names(session.work)):
        assert not task.done()
        await asyncio.sleep(0.005)
    await asyncio.to_thread(apart.kill)
    with pytest.raises((DockerUnavailableError, ContainerError)):
        await task
    left = names(session.work)
    assert "big" not in left
    assert "mine" in left  # nothing is removed before all is here
    assert not await files.close(keep=True)
    await asyncio.to_thread(apart.start)
    assert session.container is not None
    await session.container.remove()


async def test_a_pull_goes_on_after_the_engine_came_back(session: Session, apart: Apart) -> None:
    files = await session.start()
    await session.push()
    await session.run(
        "mkdir d; for i in $(seq 50); do echo $i > d/$i; done; head -c 60000000 /dev/urandom > d/big"
    )
    task = asyncio.ensure_future(session.pull())
    while not any(name.startswith(".conjure-") for name in _all(session.work)):
        assert not task.done()
        await asyncio.sleep(0.005)
    await asyncio.to_thread(apart.kill)
    with pytest.raises((DockerUnavailableError, ContainerError)):
        await task
    await asyncio.to_thread(apart.start)
    (session.work / "meanwhile").write_text("mine")
    await files.push()
    assert (session.work / "d/big").stat().st_size == 60_000_000
    assert sum(len(names) for _, _, names in os.walk(session.work)) == 52
    await session.enter()
    assert await session.call("cat meanwhile d/7") == "mine7\n"


def _all(folder: Path) -> list[str]:
    return [name for _, _, names in os.walk(folder) for name in names]


async def test_a_probe_tells_engines_apart(
    session: Session, docker_engine: str, docker_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_module, "_known", {})
    await session.start()
    assert session.engine is not None
    own = labels("test", "helper")
    probe = Probe(tmp_path)
    try:
        assert probe.known(session.engine) is None
        assert not await probe.look(session.engine, docker_image, own)
        assert probe.known(session.engine) is False
        assert session.link is not None
        assert not await probe.check(session.engine, session.link, session.context)
        assert session.files is not None
        session.files.mounts = (probe.mount,)
        with pytest.raises(ContainerError) as caught:
            await session.enter()
        assert no_such_source(caught.value)
        here = await Engine.connect(docker_engine)
        try:
            assert await probe.look(here, docker_image, own)
            assert probe.known(here) is True
        finally:
            await here.close()
    finally:
        probe.close()
    assert not any(name.startswith(".conjure-probe") for name in names(tmp_path))
