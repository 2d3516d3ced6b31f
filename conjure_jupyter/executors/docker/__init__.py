"""A container beside the kernel: commands and files in isolation, through the Docker SDK."""

from __future__ import annotations

from .check import Environment, acheck_environment, check_environment
from .executor import DockerExecutor
from .image import abuild_image, build_image
from .options import IMAGE, DockerOptions, Volume

__all__ = [
    "IMAGE",
    "DockerExecutor",
    "DockerOptions",
    "Environment",
    "Volume",
    "abuild_image",
    "acheck_environment",
    "build_image",
    "check_environment",
]
