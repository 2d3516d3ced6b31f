"""What the kill test kills: a process that forks children, each of which talks in one session for ever.

Started as ``python -m tests.conversation.crash_child``; reads lines ``PROJECT SESSION`` and answers each with
the pid of a new child. The children write one line an acknowledged turn to the file ``acks`` in the project.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import Any

from conjure_jupyter.conversation import Session
from conjure_jupyter.errors import SessionNotFoundError
from conjure_jupyter.settings import Settings
from conjure_jupyter.testing import message, tool_use

Messages = list[dict[str, Any]]


def answer(messages: Messages) -> dict[str, Any]:
    """Two calls, then a text that names the prompt."""
    last = messages[-1]["content"]
    if last[0]["type"] == "tool_result":
        prompt = next(
            block["text"]
            for entry in reversed(messages)
            for block in reversed(entry["content"])
            if entry["role"] == "user" and block["type"] == "text"
        )
        return message(f"Answer to {prompt}")
    write = {"path": "outputs/a.txt", "file_text": "x" * 2000, "description": "write"}
    return message(
        "Working. ",
        tool_use(
            "bash_tool",
            {"command": "echo $RANDOM > outputs/b.txt", "description": "run"},
            os.urandom(6).hex(),
        ),
        tool_use("create_file", write, os.urandom(6).hex()),
    )


def talk(project: Path, name: str) -> None:
    """Talk until killed; a turn is acknowledged once ``chat`` has returned."""
    settings = Settings(approve="auto")
    try:
        session = Session.resume(name, settings, project=project, client=answer)
    except SessionNotFoundError:
        session = Session(settings, id=name, project=project, client=answer)
    acks = os.open(project / "acks", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for _ in itertools.count():
        prompt = f"prompt {os.urandom(4).hex()}"
        session.chat(prompt)
        os.write(acks, f"{name} {prompt}\n".encode())


def main() -> None:
    """Fork a child for each line."""
    for line in sys.stdin:
        project, name = line.split()
        child = os.fork()
        if child == 0:
            try:
                talk(Path(project), name)
            except BaseException as error:  # noqa: BLE001  the parent test reads it
                Path(project, "failed").write_text(f"{type(error).__name__}: {error}")
            os._exit(1)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("gone", flush=True)


if __name__ == "__main__":
    main()
