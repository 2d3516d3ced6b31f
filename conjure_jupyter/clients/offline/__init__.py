"""Answers without a model: skills matched by their words, documented commands run as they stand."""

from __future__ import annotations

from .client import OfflineClient

__all__ = ["OfflineClient"]
