"""A ``Reply`` as a cell's value: kept in ``_`` and ``Out``, shown once.

The view has shown the record already when the value of the cell reaches IPython's display hook. It is not
shown a second time in that cell; evaluated again, in a later cell, it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..conversation import Reply, Turn

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

#: Replies that the cell which runs has shown.
_shown: list[Reply] = []


def register(shell: InteractiveShell) -> None:
    """Teach the shell's formatters about replies."""
    from .frontend import kind

    formatter = shell.display_formatter
    if formatter is None:
        return

    def displayed(reply: Reply) -> None:
        if kind(shell) == "terminal" or not any(reply is known for known in _shown):
            raise NotImplementedError  # IPython goes on with the other formats

    def bundle(reply: Reply, **_: Any) -> dict[str, Any]:
        if kind(shell) == "terminal":
            return {"text/plain": brief(reply)}
        from .render import Style, bundle

        return bundle(reply, Style(headless=kind(shell) == "headless"))

    formatter.ipython_display_formatter.for_type(Reply, displayed)
    formatter.mimebundle_formatter.for_type(Reply, bundle)
    formatter.formatters["text/plain"].for_type(Turn, lambda turn, printer, _: printer.text(about(turn)))
    shell.events.register("post_execute", _forget)


def unregister(shell: InteractiveShell) -> None:
    """Leave the formatters as they were."""
    formatter = shell.display_formatter
    if formatter is None:
        return
    formatter.ipython_display_formatter.pop(Reply, None)
    formatter.mimebundle_formatter.pop(Reply, None)
    formatter.formatters["text/plain"].pop(Turn, None)
    shell.events.unregister("post_execute", _forget)


def shown(reply: Reply) -> None:
    """The cell that runs has shown this reply."""
    _shown.append(reply)


def _forget() -> None:
    """The cell is over: from here on a reply is shown like any other value."""
    _shown.clear()


def brief(reply: Reply) -> str:
    """A reply on one line."""
    calls = f", {len(reply.tool_calls)} tool calls" if reply.tool_calls else ""
    files = f", {len(reply.files)} files" if reply.files else ""
    return f"<Reply: turn {reply.turn}, {reply.stop_reason}{calls}{files}; .text holds the answer>"


def about(turn: Turn) -> str:
    """A turn in the background on one line."""
    state = "over" if turn.done() else "under way"
    return f"<Turn {turn.number or ''} {state}; %claude status shows it, %claude stop ends it>".replace(
        "  ", " "
    )
