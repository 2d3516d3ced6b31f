"""The images that tests of containers start from."""

from __future__ import annotations

from scripts.setup_docker import ARCHIVE, IMAGE, NAME, TAG, client, has

from .engine import NoEngineError, alone

#: The image of the tests without its Python.
BARE = f"{NAME}:bare"
WITHOUT_PYTHON = "rm -rf /usr/bin/*python* /usr/lib/python* /usr/local/bin/*python* /usr/local/lib/*python*"


def base(address: str) -> str:
    """The name of a small image with Python and bash; it is put on the engine where it is missing.

    Raises:
        NoEngineError: there is nothing to make it from.
    """
    with alone(), client(address) as api:
        if not has(api, IMAGE):
            if not ARCHIVE.exists():
                raise NoEngineError("no image for the tests of containers: make docker gets one")
            api.import_image(src=str(ARCHIVE), repository=NAME, tag=TAG)
    return IMAGE


def bare(address: str) -> str:
    """The name of an image with bash and without Python.

    Raises:
        NoEngineError: there is nothing to make it from.
    """
    source = base(address)
    with alone(), client(address) as api:
        if not has(api, BARE):
            made = api.create_container(source, ["bash", "-c", WITHOUT_PYTHON], network_disabled=True)
            try:
                api.start(made)
                api.wait(made)
                api.commit(made, NAME, BARE.partition(":")[2], conf={"Cmd": ["bash"]})
            finally:
                api.remove_container(made, force=True)
    return BARE
