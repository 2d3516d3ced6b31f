"""Tab completion for the magics' lines, and for ``@``, ``file://`` and ``{`` in a prompt."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .desk import Desk

#: Most completions that are offered.
MOST = 200

_CELL = re.compile(r"%%(?:claude|conjure)(?:\s|$)")
_LINE = re.compile(r"%(?:claude|conjure)\s+(?:(\w+)\s+(?:\S+\s+)*)?(\S*)$")
_ARTIFACTS = re.compile(r"(?:[\w.]+\s*=\s*)?%artifacts\s+(?:(\w+)\s+((?:\S+\s+)*))?(\S*)$")
_SKILLS = re.compile(r"%skills\s+(\S*)$")
_LOAD = re.compile(r"%skills_load\s(?:.*\s)?(\S*)$")
_OPTION = re.compile(r"(?:^|\s)(--[\w-]*)$")
_VALUE = re.compile(r"(--[\w-]+)(?:\s+|=)(\S*)$")
_MENTION = re.compile(r"(?:^|[\s(\[{\"'`,;])@([^\s@]*)$")
_URL = re.compile(r"file://(\S*)$")
_BRACE = re.compile(r"(?:^|[^{])\{(\w*)$")

#: What may follow sub-commands of ``%claude`` that take words of a list.
_WORDS = {
    "approve": ("yes", "no"),
    "sessions": ("--delete", "--prune", "--dry-run"),
    "undo": ("--dry-run",),
}


class Completion:
    """The matcher of one shell.

    Args:
        shell: IPython's.
        desk: gives what the kernel has open; asked only when something of it is completed.
    """

    def __init__(self, shell: InteractiveShell, desk: Callable[[], Desk]) -> None:
        from IPython.core.completer import context_matcher

        self._shell = shell
        self._desk = desk
        # A bound method cannot carry the attributes by which IPython knows a matcher.
        self._matcher = context_matcher(identifier="conjure")(lambda context: self._match(context))  # noqa: PLW0108

    def install(self) -> None:
        """Ask this matcher, too."""
        if self._shell.Completer is not None:
            self._shell.Completer.custom_matchers.append(self._matcher)

    def remove(self) -> None:
        """Do not ask it any more."""
        if self._shell.Completer is not None and self._matcher in self._shell.Completer.custom_matchers:
            self._shell.Completer.custom_matchers.remove(self._matcher)

    def _match(self, context: Any) -> Any:
        from IPython.core.completer import SimpleCompletion

        lines = context.full_text.split("\n")
        if context.cursor_line >= len(lines):
            return {"completions": []}
        before = lines[context.cursor_line][: context.cursor_position]
        fragment, found = self.complete(lines[0], before, in_body=context.cursor_line > 0)
        return {
            "completions": [SimpleCompletion(text=text, type="conjure") for text in found[:MOST]],
            "matched_fragment": fragment,
            "suppress": bool(found),
        }

    def complete(self, first: str, before: str, *, in_body: bool) -> tuple[str, list[str]]:
        """What may stand in place of the end of ``before``.

        Args:
            first: the cell's first line.
            before: the line with the cursor, up to the cursor.
            in_body: whether it is below the first line.

        Returns:
            the part that is replaced, and what may replace it.
        """
        if _CELL.match(first):
            return self._words(before) if in_body else self._options(before)
        line = before.lstrip()
        if match := _LINE.match(line):
            return match[2], _starting(match[2], self._arguments(match[1]))
        if match := _ARTIFACTS.match(line):
            return match[3], self._artifacts(match[1], match[2] or "", match[3])
        if match := _SKILLS.match(line):
            return match[1], _starting(match[1], self._skills())
        if match := _LOAD.match(line):
            return match[1], self._paths(match[1])
        return "", []

    def _options(self, before: str) -> tuple[str, list[str]]:
        if match := _VALUE.search(before):
            name, part = match[1], match[2]
            if name == "--file":
                return part, self._paths(part)
            known = self._values(name)
            if known is not None:
                return part, _starting(part, known)
        if match := _OPTION.search(before):
            return match[1], _starting(match[1], sorted(self._parser_actions()))
        return self._words(before)

    def _parser_actions(self) -> dict[str, Any]:
        from .magics import cell_parser

        actions = cell_parser()._actions  # noqa: SLF001  argparse has no other way to list them
        return {name: action for action in actions for name in action.option_strings if len(name) > 2}

    def _values(self, name: str) -> Iterable[str] | None:
        if name == "--skill":
            return self._skills()
        if name == "--model":
            return self._models()
        if name == "--session":
            return self._desk().opened()
        if name == "--on":
            return _executors()
        action = self._parser_actions().get(name)
        return action.choices if action is not None else None

    def _arguments(self, command: str | None) -> Iterable[str]:
        from .commands import HELP

        match command:
            case None:
                return HELP
            case "model":
                return self._models()
            case "resume":
                from ..conversation.store import session_ids

                desk = self._desk()
                return reversed(session_ids(desk.project, desk.settings()))
            case _:
                return _WORDS.get(command, ())

    def _artifacts(self, command: str | None, before: str, part: str) -> list[str]:
        """What may follow ``%artifacts``: sub-commands, then names, then sources and places."""
        from .artifacts import HELP

        named = bool(before)
        match command:
            case None:
                return _starting(part, HELP)
            case "add" if named:
                return [*self._paths(part), *_starting(part, self._variables())]
            case "save" if named:
                return [*self._paths(part), *_starting(part, ["--overwrite"])]
            case "get" | "save" if not named:
                return _starting(part, [*self._names(), *self._files()])
            case "remove" if not named:
                return _starting(part, self._names())
            case _:
                return []

    def _names(self) -> list[str]:
        """Registered names of the session that the next cell goes on with."""
        opened = self._desk().current()
        return [entry.name for entry in opened.session.artifacts.registered()] if opened else []

    def _files(self) -> list[str]:
        """Its files that were given or made, the newest first."""
        opened = self._desk().current()
        files = opened.session.artifacts.discovery.current() if opened else []
        return [found.path for found in reversed(files) if found.visibility == "external"]

    def _skills(self) -> list[str]:
        return [skill.name for skill in self._desk().registry.list()]

    def _models(self) -> list[str]:
        """Models that the SDK knows by name, when it is imported already, and the one in use."""
        names = {self._desk().settings().model}
        module = sys.modules.get("anthropic.types.model_param")
        for part in get_args(getattr(module, "ModelParam", None)):
            names.update(name for name in get_args(part) if isinstance(name, str))
        return sorted(names)

    def _words(self, before: str) -> tuple[str, list[str]]:
        if match := _URL.search(before):
            return match[1], _each_once([*_starting(match[1], self._names()), *self._paths(match[1])])
        if match := _MENTION.search(before):
            part, known = match[1], [*self._variables(), *self._names()]
            return part, _each_once([*self._paths(part), *_starting(part, known)])
        if match := _BRACE.search(before):
            return match[1], _starting(match[1], self._variables())
        return "", []

    def _variables(self) -> list[str]:
        return sorted(self._desk().namespace())

    def _paths(self, part: str) -> list[str]:
        """Files and folders beside the notebook whose path begins like that."""
        folder, _, name = part.rpartition("/")
        head = folder + "/" if folder or part.startswith("/") else ""
        try:
            base = self._desk().project / Path(head).expanduser()
            entries = sorted(base.iterdir())
        except (OSError, RuntimeError, ValueError):
            return []
        return [
            head + entry.name + ("/" if entry.is_dir() else "")
            for entry in entries
            if entry.name.startswith(name) and (name.startswith(".") or not entry.name.startswith("."))
        ]


def _executors() -> list[str]:
    """Places by name: ours, and those that installed packages add."""
    from importlib.metadata import entry_points

    from ..executors import DOCKER, ENTRY_POINTS, LocalExecutor

    return sorted({LocalExecutor.name, DOCKER, *entry_points(group=ENTRY_POINTS).names})


def _each_once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _starting(part: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(part)]
