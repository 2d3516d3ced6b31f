"""``conjure validate``, ``pack`` and ``init``: check, pack and begin skills."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..skills import init_skill, pack_skill, scan_directory, validate
from .output import fail, say


def add_commands(commands: Any) -> None:
    """Add these commands to the parser's."""
    command = commands.add_parser("validate", help="check skills; one line for each problem")
    command.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="a skill, a folder of skills, or a .skill file"
    )
    mode = command.add_mutually_exclusive_group()
    mode.add_argument(
        "--strict",
        dest="strict",
        action="store_true",
        default=True,
        help="by the public validator's rules (default)",
    )
    mode.add_argument(
        "--lenient", dest="strict", action="store_false", help="as loading does: only errors count"
    )
    command.set_defaults(command=_validate)

    command = commands.add_parser("pack", help="make a .skill archive of a skill's folder")
    command.add_argument("folder", type=Path, metavar="DIR")
    command.add_argument("-o", "--out", type=Path, help="the archive, or a folder for it (default: here)")
    command.set_defaults(command=_pack)

    command = commands.add_parser("init", help="begin a new skill, here")
    command.add_argument("name", metavar="NAME", help="lowercase letters, digits and hyphens")
    command.set_defaults(command=_init)


def _validate(arguments: argparse.Namespace) -> int:
    missing = [path for path in arguments.paths if not path.expanduser().exists()]
    if missing:
        return fail(f"{missing[0]}: no such file or folder")
    targets = [target for path in arguments.paths for target in _skills_at(path)]
    code = 0
    for target in targets:
        problems = validate(target, strict=arguments.strict)
        for problem in problems:
            say(str(problem))
        if any(problem.severity == "error" for problem in problems):
            code = 1
        elif not problems:
            say(f"{target}: valid")
    return code


def _skills_at(path: Path) -> list[Path]:
    """The skills a path stands for: itself, or those in a folder that is none."""
    path = path.expanduser()
    if not path.is_dir() or any((path / entry).exists() for entry in ("SKILL.md", "skill.md")):
        return [path]
    return [found if found.suffix == ".skill" else found.parent for found in scan_directory(path)] or [path]


def _pack(arguments: argparse.Namespace) -> int:
    folder = arguments.folder.expanduser()
    if not folder.is_dir():
        return fail(f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}")
    archive = pack_skill(folder, arguments.out)
    for problem in validate(folder):
        sys.stderr.write(f"{problem}\n")
    say(str(archive))
    return 0


def _init(arguments: argparse.Namespace) -> int:
    folder = init_skill(arguments.name, Path.cwd())
    say(f"{folder}: write its SKILL.md, then try it in a notebook with %skills_load {folder.name}")
    return 0
