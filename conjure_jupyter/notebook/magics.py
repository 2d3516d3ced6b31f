"""The magics: they read their line and hand it on.

Nothing heavy is imported here: loading the extension must cost a running kernel next to nothing.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any, cast

from IPython.core.magic import Magics, magics_class

from .complaint import in_one_line, in_one_line_async
from .configurable import Configured, traits
from .decorators import cell, line, options
from .options import parse, words

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .desk import Desk


#: The options of a cell, in the order in which ``%%claude?`` lists them.
OPTIONS: dict[str, dict[str, Any]] = {
    "--model": {"help": "model to ask, for this cell; %%config ConjureMagics.model for all"},
    "--system": {"help": "text before the skills in the system prompt; only in a new session"},
    "--on": {
        "metavar": "PLACE",
        "help": "where tools run: local, or docker for a container; %%config ConjureMagics.on for all",
    },
    "--session": {"metavar": "NAME", "help": "a session of that name, apart from the others"},
    "--new": {"action": "store_true", "help": "start a new session"},
    "--retry": {"action": "store_true", "help": "go back to before this cell's last turn, and ask again"},
    "--skill": {"metavar": "NAME", "help": "use this skill, and no tools but those it allows"},
    "--file": {"action": "append", "metavar": "PATH", "help": "attach a file; may be given several times"},
    "--max-iterations": {"type": int, "metavar": "N", "help": "most requests of this turn"},
    "--budget": {"help": "most this turn may cost: 0.50 (USD) or '20000 tokens'"},
    "--approve": {"choices": ("ask", "auto", "deny"), "help": "who approves tool calls"},
    "--out": {"metavar": "VAR", "help": "put the reply into this variable"},
    "--replay": {"metavar": "FILE", "help": "record the model's turns to a file, and answer from it later"},
    "--dry-run": {
        "action": "store_true",
        "help": "show what would be sent and what it may cost; send nothing",
    },
    "--background": {"action": "store_true", "help": "return at once; see %%claude status and stop"},
    "--raw": {"action": "store_true", "help": "show the answer as it was written, not as Markdown"},
    "--quiet": {"action": "store_true", "help": "show nothing; the reply is the cell's value"},
    "-h --help": {"action": "store_true", "help": "show this"},
}


@magics_class
class _Magics(Magics, Configured):
    """Claude with Agent Skills."""

    _desk: Desk | None = None

    @property
    def desk(self) -> Desk:
        """What this kernel has open; made at first use."""
        if self._desk is None:
            from .desk import Desk

            assert self.shell is not None  # noqa: S101  magics are made by a shell
            self._desk = Desk(self.shell, self.settings)
        return self._desk

    def close(self) -> None:
        """Close the sessions."""
        if self._desk is not None:
            self._desk.close()
            self._desk = None

    @line("skills_load")
    @in_one_line
    def skills_load(self, line: str) -> None:
        """Load skills: ``%skills_load PATH…``.

        PATH is a folder that is a skill or holds some, or a ``.skill`` archive; quote one with blanks in
        it. Relative paths are looked for beside the notebook, then in the current folder. A skill that
        cannot be loaded is listed with what to do about it; the others load all the same.
        """
        from .catalogue import load

        load(self.desk, words(line))

    @line("skills")
    @in_one_line
    def skills(self, line: str) -> None:
        """Show the skills that are loaded, or one of them: ``%skills [NAME]``."""
        from .catalogue import one, table

        name = line.strip()
        one(self.desk, name) if name else table(self.desk)

    @line("artifacts")
    @in_one_line
    def artifacts(self, line: str) -> Any:
        """What was given, what was made, and what has a name: ``%artifacts [add|get|save|remove …]``.

        ``%artifacts help`` lists what may follow. ``file = %artifacts get outputs/report.csv`` gives a value
        with .to_dataframe(), .bytes(), .text(), .path and .save(…).
        """
        from .artifacts import Artifacts

        return Artifacts(self.desk).run(line)

    @options("%claude", OPTIONS)
    @cell("claude")
    def claude_cell(self, line: str, cell: str) -> Any:
        """Ask Claude. The lines below are the prompt; so is what follows the options on the first line.

        Words of the prompt that stand for something: {name} and {name.attr} for the value of a variable
        ({{name}} is literal); @path, @variable and file://path attach a file or a variable. What does not
        exist is left as it is.

        The value of the cell is a Reply: .text .files .tool_calls .usage .cost .stop_reason. Stop the cell
        at any time: what was done until then is kept. %claude help lists what else there is.
        """
        return self._blocking(line, cell)

    @cell("conjure")
    def conjure_cell(self, line: str, cell: str) -> Any:
        """``%%claude`` under the name that no other package takes; ``%%claude?`` documents it."""
        return self._blocking(line, cell)

    @line("conjure")
    def conjure_line(self, line: str) -> Any:
        """``%claude`` under the name that no other package takes."""
        return self.claude_line(line)

    @cell("_claude")
    def claude_awaited(self, line: str, cell: str) -> Any:
        """What ``%%claude`` becomes in a kernel that can await."""
        return in_one_line_async(self._awaiting(line, cell))

    @in_one_line
    def _blocking(self, line: str, cell: str) -> Any:
        given, text = self._read(line, cell)
        if given is None:
            return None
        from .asking import Asking

        return Asking(self.desk, given, text).run()

    async def _awaiting(self, line: str, cell: str) -> Any:
        given, text = self._read(line, cell)
        if given is None:
            return None
        from .asking import Asking

        return await Asking(self.desk, given, text).run_async()

    def _read(self, line: str, cell: str) -> tuple[Namespace | None, str]:
        given, text = parse(cell_parser(), line)
        if given.help:
            from .view import say

            say(str(type(self).claude_cell.__doc__))
            return None, ""
        return given, "\n".join(part for part in (text, cell.strip("\n")) if part.strip())

    @line("claude")
    @in_one_line
    def claude_line(self, line: str) -> Any:
        """What is not a question: ``%claude status``, ``new``, ``fix`` …; ``%claude help`` lists them."""
        from .commands import Commands

        defaults, _ = parse(cell_parser(), "")
        return Commands(self.desk, self._set_model, defaults).run(line)

    def _set_model(self, name: str) -> None:
        self.model = name


def cell_parser() -> ArgumentParser:
    """The parser of a cell's options."""
    return cast("ArgumentParser", cast("Any", _Magics.claude_cell).parser)


#: The class by the name that ``%config`` and ``ipython_config.py`` know; each setting is a trait of it.
ConjureMagics = cast("type[_Magics]", type("ConjureMagics", (_Magics,), traits()))


def make(shell: InteractiveShell) -> _Magics:
    """The magics of a shell."""
    return ConjureMagics(shell)
