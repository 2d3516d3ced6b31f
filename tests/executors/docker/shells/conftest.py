"""Images without Python."""

from __future__ import annotations

import pytest

from tests.executors.docker.engine import NoEngineError

from . import images


@pytest.fixture(scope="session")
def busybox_image(docker_engine: str) -> str:
    """The name of an image with bash and busybox only."""
    try:
        return images.busybox(docker_engine)
    except NoEngineError as error:
        pytest.skip(str(error))
