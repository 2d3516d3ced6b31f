"""What can be made of a file's bytes for the user: a data frame, and something to look at in a notebook."""

from __future__ import annotations

from .preview import preview
from .tables import read_table, table_format

__all__ = ["preview", "read_table", "table_format"]
