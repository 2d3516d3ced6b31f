"""How a turn is shown while it runs, and what stays when it is over.

A view hears events on the engine's thread and only notes them down. A painter thread of its own takes them
in and draws, at most 20 times a second and less often when drawing is slow, so that neither the model nor
the cell ever waits for a front end.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ..types import AnswerDiscarded, Event
from .record import Call, Note, Record, Text

if TYPE_CHECKING:
    from ..conversation.reply import Reply
    from .render import Style

#: Seconds between two updates: VS Code flickers above 20 a second.
INTERVAL = 0.05

#: Drawing takes at most this part of the painter's time.
SHARE = 0.25


def show(data: Mapping[str, Any], *, display_id: str | None = None, update: bool = False) -> None:
    """Publish a MIME bundle to the cell it belongs to."""
    from IPython.display import display

    display(data, raw=True, display_id=display_id, update=update)  # type: ignore[no-untyped-call]  # IPython's


def say(text: str) -> None:
    """Print a line of text in the cell."""
    sys.stdout.write(text + "\n")


class View(Protocol):
    """Shows one turn."""

    def hear(self, event: Event) -> None:
        """Note an event; called on the engine's thread, returns at once."""

    def start(self) -> None:
        """The turn is about to start; called in the cell."""

    def finish(self, reply: Reply) -> None:
        """The turn is over: leave the static record. A second call does nothing."""


class Painter:
    """A thread that draws when something has happened."""

    def __init__(self, root: str | None = None) -> None:
        self.record = Record(root=root)
        self._events: deque[Event] = deque()
        self._news = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def hear(self, event: Event) -> None:
        """Note an event."""
        self._events.append(event)
        self._news.set()

    def start(self) -> None:
        """Start drawing, in the context of the cell: what is drawn belongs to it."""
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="conjure-view", daemon=True
        )
        self._thread.start()

    def close(self) -> bool:
        """Stop drawing and take in what was heard until now; False when it was closed before."""
        if self._closing.is_set():
            return False
        self._closing.set()
        self._news.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(5)
        self._take_in()
        return True

    def _run(self) -> None:
        while True:
            self._news.wait()
            if self._closing.is_set():
                return
            self._news.clear()
            self._take_in()
            began = time.monotonic()
            self.paint()
            self._closing.wait(max(INTERVAL, (time.monotonic() - began) / SHARE))

    def _take_in(self) -> None:
        while self._events:
            self.note(self._events.popleft())

    def note(self, event: Event) -> None:
        """Take in an event; on the painter's thread."""
        self.record.hear(event)

    def paint(self) -> None:
        """Draw the record as it is now."""
        raise NotImplementedError


class LiveView(Painter):
    """A display that changes while the turn runs and ends as the static record."""

    def __init__(self, style: Style) -> None:
        super().__init__(style.root)
        self.style = style
        self._id = uuid.uuid4().hex

    def start(self) -> None:
        """Make the display."""
        self.record.status = "Claude is thinking"
        self._show(update=False)
        super().start()

    def paint(self) -> None:
        """Update the display."""
        self._show(update=True)

    def _show(self, *, update: bool) -> None:
        from .render import live

        show(live(self.record, self.style), display_id=self._id, update=update)

    def finish(self, reply: Reply) -> None:
        """Put the static record in the display's place, and the images that were made below it."""
        if not self.close():
            return
        from .render import bundle, images

        show(bundle(reply, self.style), display_id=self._id, update=True)
        for image in images(reply):
            show(image)


class FinalView:
    """Nothing until the turn is over, then the static record, once: for outputs that are compared."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self._over = False

    def hear(self, event: Event) -> None:
        """Nothing is shown before the end."""

    def start(self) -> None:
        """Nothing is shown before the end."""

    def finish(self, reply: Reply) -> None:
        """Show the record."""
        if self._over:
            return
        self._over = True
        from .render import bundle, images

        show(bundle(reply, self.style))
        for image in images(reply):
            show(image)


class QuietView:
    """Shows nothing at all."""

    def hear(self, event: Event) -> None:
        """Not shown."""

    def start(self) -> None:
        """Not shown."""

    def finish(self, reply: Reply) -> None:
        """Not shown."""


class TerminalView(Painter):
    """Text as it comes, and a line for each call."""

    def __init__(self, root: str | None = None) -> None:
        super().__init__(root)
        self._out: list[str] = []
        self._told: set[str] = set()
        self._printed: dict[int, int] = {}
        self._open = False

    def note(self, event: Event) -> None:
        """An answer that is asked for again has been printed already: say so."""
        super().note(event)
        if isinstance(event, AnswerDiscarded):
            self._printed = {id(item): len(item.text) for item in self.record.items if isinstance(item, Text)}
            self._line("(the answer broke off and is asked for again)")

    def paint(self) -> None:
        """Print what is new."""
        from .words import call_line

        for item in self.record.items:
            match item:
                case Text(text=text) if len(text) > self._printed.get(id(item), 0):
                    self._text(text[self._printed.get(id(item), 0) :])
                    self._printed[id(item)] = len(text)
                case Call(id=key, state="done") if key not in self._told:
                    self._told.add(key)
                    self._line(call_line(item))
                case Note(text=text) if str(id(item)) not in self._told:
                    self._told.add(str(id(item)))
                    self._line(f"[{text}]")
                case _:
                    pass
        if self.record.status and self.record.status not in self._told and "attempt" in self.record.status:
            self._told.add(self.record.status)
            self._line(f"[{self.record.status}]")
        self._flush()

    def finish(self, reply: Reply) -> None:
        """Print the rest, how it ended, the files and what it cost."""
        if not self.close():
            return
        from .record import from_reply
        from .visible import one_line
        from .words import ending, facts, footer

        self.paint()
        record = from_reply(reply)
        for ref in record.files:
            self._line(f"{one_line(ref.path, 200)} ({facts(ref)})")
        for told in (ending(record), footer(record)):
            if told:
                self._line(told)
        self._flush()

    def _text(self, text: str) -> None:
        from .visible import visible

        self._out.append(visible(text))
        self._open = not text.endswith("\n")

    def _line(self, text: str) -> None:
        from .visible import visible

        self._out.append(("\n" if self._open else "") + visible(text) + "\n")
        self._open = False

    def _flush(self) -> None:
        if self._out:
            sys.stdout.write("".join(self._out))
            sys.stdout.flush()
            self._out.clear()
