"""Calls into a container whose image has bash and no Python: a pool of attached shells, one call each."""

from __future__ import annotations

from .link import ShellLink

__all__ = ["ShellLink"]
