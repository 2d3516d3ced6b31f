"""The sandbox image, built at its first use if the user says so."""

from __future__ import annotations

import shutil
import sys

from ..errors import DockerImageError, DockerUnavailableError
from ..wording import size_text

#: Images that were found on the engine by this kernel.
_found: set[str] = set()


def offer_image(image: str, *, ask: bool) -> None:
    """Make sure that the image is there: build ours when it is missing and the user agrees.

    Args:
        image: its name.
        ask: whether somebody is there to be asked.

    Raises:
        DockerImageError: it is not there, and was not built.
        DockerUnavailableError: no engine answers.
    """
    from ..executors.docker import IMAGE, build_image, check_environment

    if image in _found:
        return
    found = check_environment(image=image)
    if not found.address:
        raise DockerUnavailableError("; ".join(found.problems))
    if found.image_id is None:
        if image != IMAGE or not ask:
            raise DockerImageError(image, _advice(image))
        print(  # noqa: T201  the question belongs to the cell's output
            f"The image {image} is not on the Docker engine yet. Building it takes some minutes and about "
            f"{size_text(2 << 30)} of disk; `conjure docker build --help` has smaller and other ways."
        )
        if input("Build it now? y(es), n(o): ").strip().lower() not in ("y", "yes"):
            raise DockerImageError(image, _advice(image))
        try:
            build_image(tag=image, on_progress=_progress)
        finally:
            print()  # noqa: T201  ends the line of the progress
    _found.add(image)


def _advice(image: str) -> str:
    """What the user can do."""
    from ..executors.docker import IMAGE

    if image == IMAGE:
        return "is not on the Docker engine; build it with `conjure docker build`"
    return f"is not on the Docker engine; get it with `docker pull {image}`, or name another in docker_image"


def _progress(line: str) -> None:
    """Show the latest line of the build, in one line of the cell's output."""
    width = min(shutil.get_terminal_size().columns, 100) - 1
    text = " ".join(line.split())[:width]
    sys.stdout.write(f"\r{text:<{width}}")
    sys.stdout.flush()
