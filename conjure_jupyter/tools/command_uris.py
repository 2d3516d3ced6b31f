"""Artifact URIs in a command line, as the absolute paths of the files they name.

Only whole words outside quotes are read as URIs, and only where they name something that the session has:
``file://NAME`` a registered artifact, ``skill://NAME/…`` an asset of a loaded skill. Anything else
(``https://``, text in quotes, here-documents, comments) is the command's own business. Paths are absolute
because a command may have changed its folder before the word.
"""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..artifacts.uris import parse_uri, uris_in_words
from ..errors import ArtifactNotFoundError, InvalidArtifactError
from .tool import ToolEnv

if TYPE_CHECKING:
    from ..artifacts.service import ArtifactService


async def with_paths(command: str, env: ToolEnv) -> tuple[str, list[str]]:
    """The command with every such URI replaced by a quoted path, and what to say of those that name nothing.

    Raises:
        ArtifactError: the file of a registered artifact cannot be had.
    """
    if env.artifacts is None or "://" not in command:
        return command, []
    folder = PurePosixPath(env.context.working_directory.as_posix())
    parts: list[str] = []
    problems: list[str] = []
    at = 0
    for start, end, uri in uris_in_words(command):
        path = await _path(uri, env.artifacts, env.call_id, problems)
        if path is not None:
            parts += [command[at:start], shlex.quote(str(folder / path))]
            at = end
    return "".join([*parts, command[at:]]), problems


async def _path(uri: str, artifacts: ArtifactService, call_id: str | None, problems: list[str]) -> str | None:
    """The file of a URI; None for a word that names nothing of the session's."""
    try:
        parsed = parse_uri(uri)
    except InvalidArtifactError:
        return None
    if parsed.scheme == "file" and parsed.name not in artifacts.discovery.registered:
        return None
    try:
        return (await artifacts.resolve_path(uri, call_id=call_id)).path
    except ArtifactNotFoundError as error:
        if parsed.scheme == "file":
            raise
        problems.append(str(error))
        return None
