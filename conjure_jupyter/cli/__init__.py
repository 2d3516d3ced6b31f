"""The ``conjure`` command: skills, the image of the sandbox, and the demonstration.

Exit codes: 0 all is well, 1 a skill or the engine has a problem, 2 the command was given something it cannot
use, 130 it was interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .._version import __version__
from ..errors import ConjureError, ExecutorError
from . import docker, skills
from .output import fail


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
        fail(str(error))
        return 1 if isinstance(error, ExecutorError) else 2
    except OSError as error:
        return fail(f"{error.filename or 'conjure'}: {error.strerror or error}")
    except KeyboardInterrupt:
        fail("interrupted")
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="conjure", description="Agent Skills for Claude in Jupyter.")
    parser.add_argument("--version", action="version", version=f"conjure {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    skills.add_commands(commands)
    docker.add_commands(commands)
    commands.add_parser("demo", help="run the demonstration notebook; see conjure demo --help")
    return parser


def _demo(arguments: Sequence[str]) -> int:
    from ..notebook import demo

    code: int | None = demo.main(list(arguments))
    return code or 0
