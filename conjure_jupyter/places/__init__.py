"""Where tools run: the kernel's filesystem today; a container beside it and hosted ones to come."""

from .contract import Place
from .local import LocalPlace

__all__ = ["LocalPlace", "Place"]
