"""Facts for people, worded the same wherever they are shown."""

from __future__ import annotations


def size_text(size: int) -> str:
    """A number of bytes: ``512 B``, ``15.2 KB``, ``1.2 MB``.

    A KB is 1024 bytes, as in the settings' limits and in JupyterLab's file browser: what a limit of 100 MB
    lets through never reads as more than 100 MB.
    """
    if size < 1024:
        return f"{size} B"
    value = size / 1024
    for unit in ("KB", "MB", "GB"):
        if value < 1023.95:  # what would be rounded to 1024.0 is one of the next unit
            return f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TB"
