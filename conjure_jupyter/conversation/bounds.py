"""Within what bounds the tools of a session run, and which calls need the user's word."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from ..executors import ExecutionContext
from ..executors.contract import Network
from ..places import Place
from ..settings import Settings
from ..skills import Skill
from ..tools.permissions import Mode, Policy
from ..types import Event, Listener, ToolFinished
from .approvals import Gate
from .store import FOLDER
from .workspace import Workspace


def context(settings: Settings, project: Path, files: Workspace) -> ExecutionContext:
    """Where the tools of a session run and what they may read and write.

    A notebook in the home folder, or at the root, does not open all that lies below to the file tools. Where
    they work in the notebook's folder itself, the sessions in it are not theirs to write.
    """
    readable = [Path(path).expanduser().resolve() for path in settings.allowed_paths]
    if project not in (Path.home(), Path(project.anchor)):
        readable.append(project)
    return ExecutionContext(
        working_directory=files.cwd,
        skills_root=files.skills,
        environment={name: os.environ[name] for name in settings.environment if name in os.environ},
        timeout=settings.timeout,
        allowed_paths=(files.root, *readable),
        writable_paths=(files.root,),
        read_only_paths=(files.skills,) if files.cwd == files.root else (project / FOLDER,),
        network_access=cast("Network | None", settings.network),
        memory_limit=settings.memory_limit,
    )


def policy(
    settings: Settings,
    rules: Sequence[str],
    skill: Skill | None,
    *,
    place: Place,
    registered: Callable[[str], bool],
) -> Policy:
    """What may run without asking.

    Args:
        settings: mode and rules.
        rules: what the user allowed in this session.
        skill: the one the turn keeps to, if it does: only the tools it allows may run.
        place: where the tools run; started, where asking depends on how it confines them.
        registered: whether the user gave a URL a name.
    """
    return Policy(
        cast("Mode", settings.approve or ("auto" if place.confined else "ask")),
        rules=[*settings.approval_rules, *rules],
        only=skill.allowed_tools if skill else None,
        context=place.context,
        registered=registered,
    )


def approve_skills_in_use(
    gate: Gate, by_location: Mapping[str, Skill], files: Workspace, place: Place, *, trust: bool
) -> Listener:
    """Let a skill's allowed-tools count from when Claude has read its SKILL.md in this turn.

    Args:
        gate: whose policy hears of them.
        by_location: the skills by the path Claude is told.
        files: where paths start from.
        place: whose paths the calls name.
        trust: whether skills found in the notebook's folder count too.
    """

    def listen(event: Event) -> None:
        if not isinstance(event, ToolFinished) or event.call.name != "view" or event.result.is_error:
            return
        path = place.on_host(str(event.call.input["path"]))
        skill = by_location.get(files.told(files.cwd / path))
        if skill and skill.allowed_tools and (skill.trusted or trust) and gate.policy:
            gate.policy.preapprove(skill.allowed_tools)

    return listen
