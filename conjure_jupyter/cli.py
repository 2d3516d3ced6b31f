"""The ``conjure`` command: check, pack and begin skills, and see the demonstration.

Exit codes: 0 all is well, 1 a skill has a problem, 2 the command was given something it cannot use.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ._version import __version__
from .errors import ConjureError
from .skills import init_skill, pack_skill, scan_directory, validate


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; ``argv`` is without the program's name, ``sys.argv`` when None.

    Returns:
        The exit code.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["demo"]:
        return _demo(words[1:])
    arguments = _parser().parse_args(words)
    try:
        code: int = arguments.command(arguments)
    except ConjureError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename or 'conjure'}: {error.strerror or error}")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="conjure", description="Agent Skills for Claude in Jupyter.")
    parser.add_argument("--version", action="version", version=f"conjure {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

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

    commands.add_parser("demo", help="run the demonstration notebook; see conjure demo --help")
    return parser


def _validate(arguments: argparse.Namespace) -> int:
    missing = [path for path in arguments.paths if not path.expanduser().exists()]
    if missing:
        return _fail(f"{missing[0]}: no such file or folder")
    targets = [target for path in arguments.paths for target in _skills_at(path)]
    code = 0
    for target in targets:
        problems = validate(target, strict=arguments.strict)
        for problem in problems:
            _print(str(problem))
        if any(problem.severity == "error" for problem in problems):
            code = 1
        elif not problems:
            _print(f"{target}: valid")
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
        return _fail(f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}")
    archive = pack_skill(folder, arguments.out)
    for problem in validate(folder):
        sys.stderr.write(f"{problem}\n")
    _print(str(archive))
    return 0


def _init(arguments: argparse.Namespace) -> int:
    folder = init_skill(arguments.name, Path.cwd())
    _print(f"{folder}: write its SKILL.md, then try it in a notebook with %skills_load {folder.name}")
    return 0


def _demo(arguments: Sequence[str]) -> int:
    from .notebook import demo

    code: int | None = demo.main(list(arguments))
    return code or 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _fail(reason: str) -> int:
    sys.stderr.write(f"conjure: {reason}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
