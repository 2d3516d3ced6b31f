"""What a container is made of, and what can be done from inside."""

from __future__ import annotations

import asyncio
import io
import os
import re
import socket
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from conjure_jupyter.errors import ContainerError, DockerImageError
from conjure_jupyter.executors.docker.connection import Engine
from conjure_jupyter.executors.docker.container import Container
from conjure_jupyter.executors.docker.hardening import checked, host_config
from conjure_jupyter.executors.docker.mounts import Mount
from conjure_jupyter.executors.docker.options import DockerOptions
from conjure_jupyter.settings import MB

from .containers import bind, connected, exists, plan, running, says, shell, until


async def none_of(engine: Engine, session: str) -> bool:
    ours = {"label": f"conjure.session={session}"}
    return not await engine.call(engine.api.containers, all=True, filters=ours)


class Somewhere:
    """An engine of this machine, as far as the hardening asks."""

    version = (1, 43)
    podman = False
    confined = False
    remote = False


def test_what_the_engine_is_asked_for() -> None:
    config = host_config(DockerOptions(image="x"), (), "1000:1000", Somewhere())
    assert config["cap_drop"] == ["ALL"]
    assert config["security_opt"] == ["no-new-privileges"]  # and so the engine's own seccomp profile
    assert config["network_mode"] == "none"
    assert config["mem_limit"] == config["memswap_limit"] == 2048 * MB
    assert config["nano_cpus"] == 10**9
    assert config["pids_limit"] == 256
    assert config["auto_remove"]
    assert config["init"]
    assert config["read_only"]
    assert not config["privileged"]
    assert (config["ipc_mode"], config["cgroupns"]) == ("private", "private")
    assert dict(config["log_config"])["Type"] == "none"
    assert not {"devices", "cap_add", "pid_mode", "oom_kill_disable", "userns_mode"} & set(config)


@pytest.mark.parametrize(("network", "mode"), [("none", "none"), ("limited", "none"), ("bridge", "bridge")])
def test_networks(network: str, mode: str) -> None:
    options = DockerOptions(image="x", network=network)  # type: ignore[arg-type]  # one of the three
    assert host_config(options, (), "1:1", Somewhere())["network_mode"] == mode


def test_gpus() -> None:
    def asked(gpus: str) -> int:
        config = host_config(DockerOptions(image="x", gpus=gpus), (), "1:1", Somewhere())
        return int(config["device_requests"][0]["Count"])

    assert (asked("all"), asked("2")) == (-1, 2)


def test_other_engines() -> None:
    class Selinux(Somewhere):
        confined = True

    class Podman(Somewhere):
        podman = True

    class Old(Somewhere):
        version = (1, 40)

    folder = (bind("/home/x/y", "/workspace"),)
    mask = (Mount(None, PurePosixPath("/workspace/.git"), "tmpfs"),)
    options = DockerOptions(image="x")
    assert "label=disable" in host_config(options, folder, "1:1", Selinux())["security_opt"]
    assert "label=disable" not in host_config(options, (), "1:1", Selinux())["security_opt"]
    assert "cgroupns" not in host_config(options, (), "1:1", Old())
    # Podman fills a folder in memory with what is below it, unless told not to.
    covers = host_config(options, mask, "1:1", Podman())["tmpfs"]
    assert all("notmpcopyup" in each for each in covers.values())


@pytest.mark.parametrize(
    "source", ["/", "/proc", "/proc/1", "/sys/fs", "/dev", "/dev/kmsg", "/run", "/var/run"]
)
def test_the_machine_itself_is_refused(source: str) -> None:
    with pytest.raises(ContainerError, match="never shared"):
        checked((bind(source, "/data"),), engine=Somewhere(), socket=None)


def test_what_leads_to_the_machine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "homes/me"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    work = home / "work"
    (work / "engine").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(work / "engine/e.sock"))
    for name, target in (
        ("root", "/"),
        ("home", home),
        ("socket", work / "engine/e.sock"),
        ("processes", "/proc/self/root"),
    ):
        (work / name).symlink_to(target)
    os.mkfifo(work / "pipe")
    sock = work / "engine/e.sock"
    refused = ["root", "home", "socket", "processes", "pipe", "engine", "engine/e.sock"]
    for source in [home, home.parent, *(work / name for name in refused)]:
        with pytest.raises(ContainerError, match="never shared"):
            checked((bind(source, "/data"),), engine=Somewhere(), socket=sock)
    with pytest.raises(ContainerError, match="does not exist"):
        checked((bind(work / "missing", "/data"),), engine=Somewhere(), socket=None)
    with pytest.raises(ContainerError, match="no absolute path"):
        checked((bind(f"{work}/../..", "/data"),), engine=Somewhere(), socket=None)
    (work / "fine").mkdir()
    assert checked((bind(work / "fine", "/data"),), engine=Somewhere(), socket=sock)


def test_links_that_tools_could_have_left_are_refused(tmp_path: Path) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    (work / "skills").mkdir(parents=True)
    elsewhere.mkdir()
    mounts = (
        bind(work, "/workspace", writable=True),
        bind(work / "skills", "/mnt/skills"),
        Mount(None, PurePosixPath("/workspace/hidden"), "tmpfs"),
    )
    assert len(checked(mounts, engine=Somewhere(), socket=None)) == 3
    (work / "hidden").symlink_to("skills")
    with pytest.raises(ContainerError, match="hidden was replaced by a link"):
        checked(mounts, engine=Somewhere(), socket=None)
    (work / "hidden").unlink()
    (work / "skills").rmdir()
    (work / "skills").symlink_to(elsewhere)
    with pytest.raises(ContainerError, match="skills was replaced by a link"):
        checked(mounts, engine=Somewhere(), socket=None)


@pytest.mark.docker
async def test_the_bounds_seen_from_inside(docker_engine: str, docker_image: str) -> None:
    async with running(docker_engine, plan(docker_image, cpus=0.5, pids=64)) as container:
        status = dict(
            line.split(":\t", 1)
            for line in (await shell(container, "cat /proc/self/status")).splitlines()
            if ":\t" in line
        )
        assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2"
        assert status["Uid"].split() == ["1000"] * 4
        assert await shell(container, "ulimit -Hn; ulimit -Hc") == "4096\n0"
        assert await shell(container, "ls /sys/class/net") == "lo"
        for place in ("/", "/etc", "/usr/bin", "/var", "/run"):
            code, _ = await says(container, "touch", f"{place}/x")
            assert code != 0, place
        for place in ("/tmp", "/home/sandbox", "/run/conjure", "/dev/shm"):
            await shell(container, f"touch {place}/x")
        await shell(
            container, "cp /bin/true /tmp/t && /tmp/t && cp /bin/true /home/sandbox/t && /home/sandbox/t"
        )
        code, _ = await says(container, "mknod", "/tmp/d", "c", "1", "3")
        assert code != 0
        code, _ = await says(container, "dd", "if=/dev/zero", "of=/tmp/full", "bs=1M", "count=64")
        assert code != 0
        seen = await container.engine.call(container.engine.api.inspect_container, container.id)
        limits = seen["HostConfig"]
        assert (limits["Memory"], limits["NanoCpus"], limits["PidsLimit"]) == (128 * MB, 5 * 10**8, 64)
        assert seen["Config"]["Labels"]["conjure.session"] == "test"
        assert seen["Config"]["Labels"]["conjure.kind"] == "container"


@pytest.mark.docker
async def test_nothing_of_the_hosts_environment(
    docker_engine: str, docker_image: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    (tmp_path / "config.json").write_text(
        '{"proxies": {"default": {"httpProxy": "http://me:secret@proxy:1"}}}'
    )
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    async with running(docker_engine, plan(docker_image)) as container:
        assert "secret" not in await shell(container, "env; cat /proc/[0-9]*/environ 2>/dev/null; true")


@pytest.mark.docker
async def test_mounts(docker_engine: str, docker_image: str, tmp_path: Path) -> None:
    work, shown = tmp_path / "work", tmp_path / "shown"
    work.mkdir()
    os.chown(work, 1000, 1000)
    (shown / "git").mkdir(parents=True)
    (shown / "git/config").write_text("token")
    (shown / "env").write_text("token")
    (shown / "open").write_text("text")
    mounts = (
        bind(work, "/workspace", writable=True),
        bind(shown, "/notebook"),
        Mount(None, PurePosixPath("/notebook/git"), "tmpfs"),
        Mount(None, PurePosixPath("/notebook/env"), "null"),
    )
    async with running(docker_engine, plan(docker_image, *mounts)) as container:
        assert await shell(container, "cd /notebook; cat open env; ls -A git") == "text"
        for attempt in ("touch /notebook/x", "touch /notebook/git/x", "echo x >> /notebook/open"):
            code, _ = await says(container, "bash", "-c", attempt)
            assert code != 0, attempt
        await shell(container, "echo made > /workspace/made")
    assert (work / "made").read_text() == "made\n"
    assert (work / "made").stat().st_uid == 1000
    assert sorted(path.name for path in shown.iterdir()) == ["env", "git", "open"]


@pytest.mark.docker
async def test_root_without_capabilities(docker_engine: str, docker_image: str, tmp_path: Path) -> None:
    """Root owns what root owns, and no more: it cannot pass over permissions, owners or processes."""
    mine, others = tmp_path / "mine", tmp_path / "others"
    for folder, uid in ((mine, 0), (others, 1000)):
        folder.mkdir(mode=0o700)
        os.chown(folder, uid, uid)
    mounts = (bind(mine, "/mine", writable=True), bind(others, "/others", writable=True))
    async with running(docker_engine, plan(docker_image, *mounts, user="0:0")) as container:
        assert (
            await shell(container, "id -u; grep CapEff /proc/self/status") == "0\nCapEff:\t0000000000000000"
        )
        await shell(container, "touch /mine/x /home/sandbox/x")
        for attempt in (
            "touch /others/x",
            "chown 1000 /mine/x",
            "touch /etc/x",
            "mount -t tmpfs none /mnt",
            "mount -o remount,rw /",
            "chroot / true",
            "unshare -m true",
        ):
            code, _ = await says(container, "bash", "-c", attempt)
            assert code != 0, attempt
    assert (mine / "x").stat().st_uid == 0


@pytest.mark.docker
async def test_images_that_cannot_be_used(docker_engine: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("empty"))
    async with connected(docker_engine) as engine:
        with pytest.raises(DockerImageError, match=r"no-such-image:1.*conjure docker build"):
            await Container.create(engine, plan("no-such-image:1"))
        await engine.call(
            engine.api.import_image_from_data, packed.getvalue(), repository="conjure-test", tag="empty"
        )
        with pytest.raises(DockerImageError, match="conjure-test:empty has no bash"):
            await Container.create(engine, plan("conjure-test:empty", session="empty"))
        await until(lambda: none_of(engine, "empty"), 10)
        await engine.call(engine.api.remove_image, "conjure-test:empty", force=True)


@pytest.mark.docker
async def test_an_entry_point_and_health_check_of_the_image_are_not_run(
    docker_engine: str, docker_image: str
) -> None:
    async with connected(docker_engine) as engine:
        api = engine.api
        made = await engine.call(api.create_container, docker_image, ["true"])
        await engine.call(
            api.commit,
            made["Id"],
            "conjure-test",
            "entry",
            conf={"Entrypoint": ["false"], "User": "0", "Healthcheck": {"Test": ["CMD", "false"]}},
        )
        await engine.call(api.remove_container, made["Id"])
    async with running(docker_engine, plan("conjure-test:entry")) as container:
        assert "false" not in await shell(container, "tr '\\0' ' ' < /proc/1/cmdline")
        seen = await container.engine.call(container.engine.api.inspect_container, container.id)
        assert seen["Config"]["Healthcheck"]["Test"] == ["NONE"]
        assert seen["Config"]["User"] == "65534:65534"
        await container.remove()
        await container.engine.call(container.engine.api.remove_image, "conjure-test:entry", force=True)


@pytest.mark.docker
async def test_a_start_that_is_cancelled_leaves_nothing(docker_engine: str, docker_image: str) -> None:
    async with connected(docker_engine) as engine:
        for delay in (0.0, 0.05, 0.2):
            task = asyncio.ensure_future(Container.create(engine, plan(docker_image, session="cancelled")))
            await asyncio.sleep(delay)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: none_of(engine, "cancelled"), 10)


@pytest.mark.docker
async def test_why_it_is_gone(docker_engine: str, docker_image: str) -> None:
    async with running(docker_engine, plan(docker_image)) as container:
        assert not container.gone
        assert await container.why() == "The container runs."
        await container.engine.call(container.engine.api.remove_container, container.id, force=True)
        await asyncio.wait_for(container.ended(), 10)
        assert re.search("removed by somebody else|was killed", await container.why())
    async with running(docker_engine, plan(docker_image)) as container:
        engine = container.engine
        await container.remove()
        await container.remove()
        assert container.gone
        assert not await exists(engine, container.id)
        assert await container.why() == "The container was removed."
