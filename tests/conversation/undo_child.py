"""What the kill tests kill: a process that forks children, each of which undoes a turn or erases a session.

Started as ``python -m tests.conversation.undo_child``; reads lines ``undo FOLDER`` or ``erase FOLDER`` and
answers each with the pid of a new child. The line after that lets the pid go; ``gone`` says it has ended.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from conjure_jupyter.conversation.erasing import erase_session

from .past import Past


def work(what: str, folder: Path) -> None:
    """Do it, from the start to the end."""
    if what == "erase":
        asyncio.run(erase_session(folder))
        return
    past = Past(folder)
    past.undo()
    past.timeline.close()


def main() -> None:
    """Fork a child for each line."""
    for line in sys.stdin:
        what, folder = line.split()
        child = os.fork()
        if child == 0:
            try:
                work(what, Path(folder))
                os._exit(0)
            except BaseException as error:  # noqa: BLE001  the parent test reads it
                Path(folder).with_name("failed").write_text(f"{type(error).__name__}: {error}")
            os._exit(1)
        print(child, flush=True)
        sys.stdin.readline()  # until then its pid is nobody else's, so that the right process is killed
        os.waitpid(child, 0)
        print("gone", flush=True)


if __name__ == "__main__":
    main()
