"""Where tools run: the kernel's filesystem, or a container beside it; hosted ones are to come."""

from .contract import Place
from .executing import ExecutorPlace

__all__ = ["ExecutorPlace", "Place"]
