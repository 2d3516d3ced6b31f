"""Builders of inputs that tests of all parts share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conjure_jupyter.testing import tool_use
from conjure_jupyter.types import Content

BODY = "# Instructions\n\nDo what the user asks.\n"


def write_skill(
    root: Path,
    name: str = "csv-helper",
    *,
    description: str = "Summarises CSV files. Use when the user has a table.",
    body: str = BODY,
    files: Mapping[str, str | bytes] | None = None,
    frontmatter: str | None = None,
    folder: str | None = None,
    entry: str = "SKILL.md",
    raw: str | bytes | None = None,
    **keys: str,
) -> Path:
    """Write a skill below ``root`` and return its folder.

    Args:
        root: the folder of skills; made when missing.
        name: of the skill, and of its folder unless ``folder`` says otherwise (it may hold ``/``).
        files: other files of the skill, by relative path; those that begin with ``#!`` are executable.
        frontmatter: the text between the fences, in place of name, description and ``keys``.
        entry: the name of its file.
        raw: the whole content of that file, in place of all that.
        keys: further lines of frontmatter; ``allowed_tools`` is written as ``allowed-tools``.
    """
    path = root / (folder or name)
    path.mkdir(parents=True, exist_ok=True)
    if frontmatter is None:
        lines = {"name": name, "description": description, **keys}
        frontmatter = "".join(
            f"{key.replace('allowed_tools', 'allowed-tools')}: {value}\n" for key, value in lines.items()
        )
    if raw is None:
        raw = f"---\n{frontmatter.rstrip()}\n---\n\n{body}"
    _write(path / entry, raw)
    for relative, content in (files or {}).items():
        _write(path / relative, content)
    return path


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(data)
    if data.startswith(b"#!"):
        path.chmod(0o755)


def bash(command: str, id: str | None = None) -> Content:  # noqa: A002  the API's name
    """A call of ``bash_tool``, as Claude asks for it."""
    return tool_use("bash_tool", {"command": command, "description": "test"}, id)
