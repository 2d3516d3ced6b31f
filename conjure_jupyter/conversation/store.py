"""Where sessions lie on disk, and what they are called."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import secrets
from pathlib import Path

from ..errors import SessionError, SessionNotFoundError, ToolError
from ..paths import make_private_dir
from ..settings import Settings

FOLDER = ".conjure"

#: What version control should not keep.
_IGNORED = "sessions/\ncache/\n"

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def project_folder() -> Path:
    """The notebook's folder: from the front end's variables where they are set, else the cwd."""
    named = os.environ.get("JPY_SESSION_NAME", "")
    if named and Path(named).is_absolute() and Path(named).parent.is_dir():
        return Path(named).parent.resolve()
    return Path.cwd()


def new_id() -> str:
    """An identifier that sorts by time and that nobody else has."""
    return f"{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def checked_id(session_id: str) -> str:
    """``session_id``, when it can be the name of a folder.

    Raises:
        SessionError: it cannot.
    """
    if not _ID.fullmatch(session_id) or session_id.endswith("."):
        raise SessionError(
            f"{session_id!r} cannot be a session's name: use up to 64 letters, digits, '.', '_' and '-'"
        )
    return session_id


def sessions_folder(project: Path, settings: Settings) -> tuple[Path, str | None]:
    """The folder that holds the sessions, made if need be, and what the user should be told of it.

    It is ``.conjure/sessions`` beside the notebook; where that cannot be written, the user's data folder.

    Raises:
        SessionError: neither can be written.
    """
    if settings.sessions_dir:
        chosen = Path(settings.sessions_dir).expanduser()
        return _made(chosen if chosen.is_absolute() else project / chosen), None
    beside = project / FOLDER
    try:
        beside.mkdir(mode=0o755, exist_ok=True)
        if beside.is_symlink():  # a cloned folder could send the sessions anywhere
            raise SessionError(f"{beside} is a link")  # noqa: TRY301  told like what cannot be written
        with (
            contextlib.suppress(FileExistsError),
            (beside / ".gitignore").open("x", encoding="utf-8") as ignore,
        ):
            ignore.write(_IGNORED)
        return _made(beside / "sessions"), None
    except (OSError, SessionError):
        fallback = _made(fallback_folder())
        return fallback, f"{project} cannot be written; sessions are kept in {fallback}"


def fallback_folder() -> Path:
    """The user's own folder of sessions, for notebooks whose folder cannot be written."""
    from platformdirs import user_data_path

    return user_data_path("conjure", appauthor=False) / "sessions"


def cache_folder(session: Path) -> Path:
    """Where what can be had again is kept: ``.conjure/cache``, or the user's cache folder."""
    if session.parent.parent.name == FOLDER:
        return session.parent.parent / "cache"
    from platformdirs import user_cache_path

    return user_cache_path("conjure", appauthor=False)


def _made(folder: Path) -> Path:
    try:
        make_private_dir(folder)
    except (OSError, ToolError) as error:
        raise SessionError(
            f"{folder} cannot be made ({error}); name another with CONJURE_SESSIONS_DIR"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SessionError(f"{folder} cannot be written; name another with CONJURE_SESSIONS_DIR")
    return folder


def session_folder(session_id: str, project: Path, settings: Settings) -> Path:
    """Where a session that exists lies.

    Raises:
        SessionNotFoundError: none of that name does.
    """
    folder, _ = sessions_folder(project, settings)
    for candidate in (folder / checked_id(session_id), fallback_folder() / session_id):
        if (candidate / "timeline.jsonl").is_file():
            return candidate
    raise SessionNotFoundError(session_id, folder)


def session_ids(project: Path, settings: Settings) -> list[str]:
    """Names of the sessions beside the notebook, the oldest first."""
    folder, _ = sessions_folder(project, settings)
    logs = (entry / "timeline.jsonl" for entry in folder.iterdir())
    return sorted(log.parent.name for log in logs if log.is_file())
