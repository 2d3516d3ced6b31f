"""Notebooks as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}


def write_notebook(path: Path, *cells: str, kernel: dict[str, Any] | None = None) -> Path:
    """A notebook of code cells that have not run."""
    data = {
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {},
                "execution_count": None,
                "outputs": [],
                "source": source,
            }
            for number, source in enumerate(cells)
        ],
        "metadata": {"kernelspec": kernel or KERNEL},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path
