"""An image with bash and busybox and nothing else, as an Alpine with bash added is."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

from scripts.setup_docker import NAME, client, has
from tests.executors.docker import images
from tests.executors.docker.engine import NoEngineError, alone

BUSYBOX = f"{NAME}:busybox"
#: All programs make room for busybox's but bash, and ``sleep``: the suite calls that by other names, which no
#: program of busybox's may have.
SWAP = (
    "cd /usr/bin && /only/busybox mv bash sleep /only && /only/busybox rm -rf /usr/bin/* /usr/sbin/* && "
    "/only/busybox mv /only/bash /only/sleep /usr/bin && /only/busybox --install -s /usr/bin"
)


def busybox(address: str) -> str:
    """The name of the image.

    Raises:
        NoEngineError: there is nothing to make it from.
    """
    source = images.bare(address)
    with alone(), client(address) as api:
        if has(api, BUSYBOX):
            return BUSYBOX
        program = shutil.which("busybox")
        if program is None:
            raise NoEngineError("no busybox for the tests of small images: apt-get install busybox-static")
        made = api.create_container(source, ["/only/busybox", "sh", "-c", SWAP], network_disabled=True)
        try:
            api.put_archive(made, "/", _archive(Path(program)))
            api.start(made)
            status = api.wait(made)["StatusCode"]
            if status:
                raise NoEngineError(f"the image of busybox cannot be made: {api.logs(made)!r}")
            api.commit(made, NAME, BUSYBOX.partition(":")[2], conf={"Cmd": ["bash"]})
        finally:
            api.remove_container(made, force=True)
    return BUSYBOX


def _archive(program: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(program.resolve(), "only/busybox")
    return buffer.getvalue()
