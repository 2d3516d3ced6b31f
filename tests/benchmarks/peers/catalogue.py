"""Load a folder of skills with one library; run as ``python catalogue.py SUBJECT``, orders on stdin as JSON.

``{"folder": …, "runs": n}`` is timed; ``{"cases": {name: folder}}`` answers what was found in each folder.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Pairs = list[tuple[str, str]]
Loader = Callable[[Path], Any]
Reader = Callable[[Any], Pairs]


def conjure() -> tuple[Loader, Reader]:
    from conjure_jupyter.skills import load, parsing, scanning

    def fresh(folder: Path) -> Any:
        parsing.forget()
        scanning.forget()
        return load(folder)

    return fresh, lambda found: [(skill.name, skill.description) for skill in found]


def conjure_again() -> tuple[Loader, Reader]:
    from conjure_jupyter.skills import load

    return load, lambda found: [(skill.name, skill.description) for skill in found]


def skills_ref() -> tuple[Loader, Reader]:
    from skills_ref import read_properties

    def every(folder: Path) -> Any:
        return [read_properties(child) for child in sorted(folder.iterdir()) if child.is_dir()]

    return every, lambda found: [(skill.name, skill.description) for skill in found]


def strands_agents() -> tuple[Loader, Reader]:
    from strands.vended_plugins.skills import Skill

    return Skill.from_directory, lambda found: [(skill.name, skill.description) for skill in found]


def openai_agents() -> tuple[Loader, Reader]:
    import os

    from agents.sandbox.capabilities.skills import LocalDirLazySkillSource
    from agents.sandbox.entries import LocalDir

    def every(folder: Path) -> Any:
        os.chdir(folder.parent)  # it takes local folders below the working directory only
        source = LocalDirLazySkillSource(source=LocalDir(src=Path(folder.name)))
        return source.list_skill_metadata(skills_path="/skills")

    return every, lambda found: [(skill.name, skill.description) for skill in found]


def deepagents() -> tuple[Loader, Reader]:
    from deepagents.backends.filesystem import FilesystemBackend
    from deepagents.middleware.skills import _list_skills

    def every(folder: Path) -> Any:
        return _list_skills(FilesystemBackend(root_dir=str(folder), virtual_mode=False), str(folder))

    return every, lambda found: [(skill["name"], skill["description"]) for skill in found]


def agno() -> tuple[Loader, Reader]:
    from agno.skills import LocalSkills

    return (
        lambda folder: LocalSkills(str(folder), validate=False).load(),
        lambda found: [(skill.name, skill.description) for skill in found],
    )


SUBJECTS: dict[str, Callable[[], tuple[Loader, Reader]]] = {
    "conjure": conjure,
    "conjure, again": conjure_again,
    "skills-ref": skills_ref,
    "strands-agents": strands_agents,
    "openai-agents": openai_agents,
    "deepagents": deepagents,
    "agno": agno,
}


def measure(load: Loader, folder: Path, runs: int) -> dict[str, Any]:
    found = load(folder)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        found = load(folder)
        times.append((time.perf_counter() - start) * 1000)
    return {"times": times, "count": len(found)}


def answer(load: Loader, read: Reader, cases: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, folder in cases.items():
        try:
            found[name] = read(load(Path(folder)))
        except Exception as error:  # noqa: BLE001  a peer may fail in any way: that is the answer
            found[name] = f"{type(error).__name__}"
    return found


def main() -> None:
    logging.disable(logging.CRITICAL)
    order = json.load(sys.stdin)
    load, read = SUBJECTS[sys.argv[1]]()
    if "cases" in order:
        result = answer(load, read, order["cases"])
    else:
        result = measure(load, Path(order["folder"]), order["runs"])
    sys.stdout.write("\n" + json.dumps(result, default=repr) + "\n")


if __name__ == "__main__":
    main()
