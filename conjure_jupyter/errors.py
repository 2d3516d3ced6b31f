"""Every error this package raises on purpose.

Each class carries the facts of what happened as typed attributes and a message that says what to do.
``type`` is the identifier of the source specification (section 12), stable across versions.

::

    ConjureError
    ├── SettingsError                 a setting or option has a wrong name or value
    ├── SkillError
    │   ├── SkillNotFoundError        no loaded skill has that name
    │   ├── InvalidFrontmatterError   the YAML of a SKILL.md cannot be used
    │   └── InvalidSkillStructureError
    │       └── SkillArchiveError     a .skill archive was refused whole
    ├── ToolError                     goes back to Claude as an ``is_error`` result
    │   ├── UnknownToolError
    │   ├── InvalidToolInputError
    │   ├── PathNotFoundError         also a FileNotFoundError
    │   ├── PermissionDeniedError     also a PermissionError
    │   ├── ExecutionFailedError
    │   ├── ExecutionTimeoutError     also a TimeoutError
    │   └── ArtifactError             an artifact cannot be named, found, fetched or kept
    │       ├── InvalidArtifactError  a name, URI or logical path that can be none
    │       ├── ArtifactNotFoundError also a FileNotFoundError
    │       ├── ArtifactTooLargeError
    │       └── FetchError            a URL gave nothing
    │           └── FetchBlockedError it may not be fetched at all
    ├── ExecutorError                 the place where commands run is at fault
    │   ├── UnsupportedSettingError   asked for a limit this executor cannot enforce
    │   ├── DockerUnavailableError
    │   │   └── DockerImageError      the image is not on the engine, or cannot be built
    │   └── ContainerError
    ├── APIError                      the model's service answered with an error, or not at all
    │   ├── MissingCredentialError
    │   ├── AuthenticationError
    │   ├── InvalidRequestError
    │   │   ├── ModelNotFoundError
    │   │   └── RequestTooLargeError
    │   ├── RateLimitError
    │   ├── OverloadedError
    │   ├── ServerError
    │   ├── APITimeoutError           also a TimeoutError
    │   └── APIConnectionError        also a ConnectionError
    │       └── StreamInterruptedError
    ├── ReplayError
    │   ├── ReplayMissError           the cassette has no turn for this request
    │   └── ReplayMismatchError       a tool's output differs from the recorded one (strict)
    ├── ConversationError             carries ``.messages``: nothing said so far is lost
    │   ├── MaxIterationsError
    │   ├── BudgetExceededError
    │   ├── ApprovalRequiredError
    │   └── StoppedError
    ├── StorageError                  keys and bytes could not be kept or read
    │   ├── StorageNotFoundError      also a FileNotFoundError
    │   ├── StorageUnavailableError   the service did not answer; worth another try
    │   └── StorageConflictError      somebody else wrote there first
    └── SessionError
        ├── SessionNotFoundError
        ├── SessionLockedError
        ├── SessionClosedError
        └── TimelineError             the session's log cannot be read or written
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

Message = dict[str, Any]


class ConjureError(Exception):
    """Base of every error of this package.

    Attributes:
        type: the specification's identifier of the kind of error.
        message: one or more sentences: what happened, and what to do.
        details: the typed attributes once more, as a dict for logs.
    """

    type: ClassVar[str] = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message

    @property
    def details(self) -> dict[str, Any]:
        """The attributes of this error, without its message."""
        return {
            name: value
            for name, value in vars(self).items()
            if name != "message" and not name.startswith("_")
        }


class SettingsError(ConjureError):
    """A setting or option is unknown or has a value that cannot be used."""

    type = "invalid_setting"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason


class SkillError(ConjureError):
    """Something is wrong with a skill."""

    type = "skill_error"


class SkillNotFoundError(SkillError):
    """No loaded skill has the name."""

    type = "skill_not_found"

    def __init__(self, name: str, known: tuple[str, ...] = ()) -> None:
        hint = f"loaded: {', '.join(known)}" if known else "none is loaded; load some with %skills_load PATH"
        super().__init__(f"Skill {name!r} not found ({hint})")
        self.name = name
        self.known = known


class InvalidFrontmatterError(SkillError):
    """The YAML frontmatter of a SKILL.md cannot be used.

    Attributes:
        path: the file, or None when text was parsed.
        reason: what is wrong.
        line: its line in the file, from 1, when known.
        field: the frontmatter key at fault, when there is one.
    """

    type = "invalid_frontmatter"

    def __init__(
        self, path: Path | None, reason: str, *, line: int | None = None, field: str | None = None
    ) -> None:
        place = f" in {path}" if path else ""
        at = f", line {line}" if line else ""
        super().__init__(f"Invalid frontmatter{place}{at}: {reason}")
        self.path = path
        self.reason = reason
        self.line = line
        self.field = field


class InvalidSkillStructureError(SkillError):
    """A folder or archive does not hold a skill."""

    type = "invalid_skill_structure"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class SkillArchiveError(InvalidSkillStructureError):
    """A .skill archive was refused; nothing of it was kept."""


class ToolError(ConjureError):
    """A tool call failed in a way that Claude should hear of (``is_error`` result)."""

    type = "tool_error"


class UnknownToolError(ToolError):
    """Claude called a tool that does not exist."""

    type = "unknown_tool"

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"There is no tool {name!r}. Available: {', '.join(known)}")
        self.name = name
        self.known = known


class InvalidToolInputError(ToolError):
    """A tool's input does not fit its schema."""

    type = "invalid_tool_input"

    def __init__(self, tool: str, reason: str, *, field: str | None = None) -> None:
        super().__init__(f"{tool}: {reason}")
        self.tool = tool
        self.reason = reason
        self.field = field


class PathNotFoundError(ToolError, FileNotFoundError):
    """A file or folder does not exist."""

    type = "file_not_found"

    def __init__(self, path: str, reason: str = "no such file or folder") -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class PermissionDeniedError(ToolError, PermissionError):
    """A path is outside the allowed folders, or the user or a rule said no."""

    type = "permission_denied"

    def __init__(self, subject: str, reason: str) -> None:
        super().__init__(f"{subject}: {reason}")
        self.subject = subject
        self.reason = reason


class ExecutionFailedError(ToolError):
    """A command ended with an exit code other than 0."""

    type = "execution_failed"

    def __init__(self, command: str, exit_code: int, output: str) -> None:
        super().__init__(f"Command failed with exit code {exit_code}")
        self.command = command
        self.exit_code = exit_code
        self.output = output


class ExecutionTimeoutError(ToolError, TimeoutError):
    """A command ran past its time limit and was ended with all its processes.

    Attributes:
        timeout: the limit, in seconds.
        output: what it had printed by then.
    """

    type = "execution_timeout"

    def __init__(self, command: str, timeout: float, output: str = "") -> None:
        super().__init__(f"Command ended after its time limit of {timeout:g} s")
        self.command = command
        self.timeout = timeout
        self.output = output


class ArtifactError(ToolError):
    """An artifact cannot be named, found, fetched or kept."""

    type = "artifact_error"


class InvalidArtifactError(ArtifactError):
    """A name, URI or logical path that can be none.

    Attributes:
        subject: the name, URI or path.
        reason: what is wrong with it.
    """

    type = "invalid_artifact"

    def __init__(self, subject: str, reason: str) -> None:
        super().__init__(f"{_short(subject)}: {reason}")
        self.subject = subject
        self.reason = reason


class ArtifactNotFoundError(ArtifactError, FileNotFoundError):
    """Nothing is known by that name, URI or logical path."""

    type = "artifact_not_found"

    def __init__(self, subject: str, known: tuple[str, ...] = (), reason: str | None = None) -> None:
        hint = reason or (f"there are: {', '.join(known[:20])}" if known else "there is none yet")
        super().__init__(f"No artifact {_short(subject)} ({hint})")
        self.subject = subject
        self.known = known


class ArtifactTooLargeError(ArtifactError):
    """An artifact is larger than the setting allows.

    Attributes:
        subject: the name, URI or path.
        size: bytes, None when reading stopped at the limit.
        limit: bytes.
        setting: the setting to raise.
    """

    type = "artifact_too_large"

    def __init__(self, subject: str, size: int | None, limit: int, setting: str) -> None:
        told = f"{size:,} bytes" if size is not None else "larger"
        super().__init__(
            f"{_short(subject)} is too large: {told}, and {limit:,} bytes are allowed ({setting})"
        )
        self.subject = subject
        self.size = size
        self.limit = limit
        self.setting = setting


class FetchError(ArtifactError):
    """A URL gave nothing that can be used.

    Attributes:
        url: as it was asked for, without credentials.
        reason: what happened.
        status: the HTTP status, when there was an answer.
    """

    type = "fetch_failed"

    def __init__(self, url: str, reason: str, *, status: int | None = None) -> None:
        super().__init__(f"{_short(url)} cannot be fetched: {reason}")
        self.url = url
        self.reason = reason
        self.status = status


class FetchBlockedError(FetchError):
    """A URL may not be fetched: its scheme, host, port or address is refused, or fetching is off."""

    type = "fetch_blocked"


def _short(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "…")


class StorageError(ConjureError):
    """Keys and bytes could not be kept or read."""

    type = "storage_error"

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason


class StorageNotFoundError(StorageError, FileNotFoundError):
    """There is nothing under that key."""

    type = "storage_not_found"


class StorageUnavailableError(StorageError, ConnectionError):
    """The service did not answer, or not in full; worth another try."""

    type = "storage_unavailable"


class StorageConflictError(StorageError):
    """Somebody else wrote there first; nothing was overwritten."""

    type = "storage_conflict"


class ExecutorError(ConjureError):
    """The place where commands run is at fault, not the command."""

    type = "executor_error"


class UnsupportedSettingError(ExecutorError):
    """A limit was asked for that this executor cannot enforce."""

    type = "unsupported_setting"

    def __init__(self, setting: str, executor: str, advice: str) -> None:
        super().__init__(f"{setting} cannot be enforced by the {executor} executor: {advice}")
        self.setting = setting
        self.executor = executor
        self.advice = advice


class DockerUnavailableError(ExecutorError):
    """No Docker engine answers, or it does not let this user in."""

    type = "docker_unavailable"


class DockerImageError(DockerUnavailableError):
    """The image of the sandbox is not on the engine, or could not be built.

    Attributes:
        image: its name.
    """

    type = "docker_image"

    def __init__(self, image: str, reason: str) -> None:
        super().__init__(f"The image {image} {reason}")
        self.image = image


class ContainerError(ExecutorError):
    """A container failed.

    Attributes:
        container_id: the engine's identifier, when it got one.
    """

    type = "container_error"

    def __init__(self, message: str, container_id: str | None = None) -> None:
        super().__init__(message)
        self.container_id = container_id


class APIError(ConjureError):
    """The model's service answered with an error, or did not answer.

    Attributes:
        status: HTTP status, None when there was no answer.
        error_type: the service's own ``error.type``, such as ``overloaded_error``.
        request_id: the service's identifier of the request.
        retry_after: seconds the service asks to wait, when it says so.
    """

    type = "api_error"
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        error_type: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error_type = error_type
        self.request_id = request_id
        self.retry_after = retry_after


class MissingCredentialError(APIError):
    """The SDK found no credential."""

    type = "missing_credential"


class AuthenticationError(APIError):
    """The credential was refused (401, 403)."""

    type = "authentication_error"


class InvalidRequestError(APIError):
    """The service refused the request as it is (400, 404, 413, 422)."""

    type = "invalid_request"


class ModelNotFoundError(InvalidRequestError):
    """The service has no model of that name (404)."""

    type = "model_not_found"


class RequestTooLargeError(InvalidRequestError):
    """The request is larger than the service takes (413)."""

    type = "request_too_large"


class RateLimitError(APIError):
    """Too many requests or tokens (429)."""

    type = "rate_limited"
    retryable = True


class OverloadedError(APIError):
    """The service is overloaded (529, or ``overloaded_error`` in a stream)."""

    type = "overloaded"
    retryable = True


class ServerError(APIError):
    """The service failed (5xx, or ``api_error`` in a stream)."""

    type = "server_error"
    retryable = True


class APITimeoutError(APIError, TimeoutError):
    """The service did not answer in time."""

    type = "api_timeout"
    retryable = True


class APIConnectionError(APIError, ConnectionError):
    """The service cannot be reached."""

    type = "api_connection_error"
    retryable = True


class StreamInterruptedError(APIConnectionError):
    """The answer broke off before ``message_stop``."""

    type = "stream_interrupted"


class ReplayError(ConjureError):
    """A recorded conversation cannot be replayed."""

    type = "replay_error"


class ReplayMissError(ReplayError):
    """The cassette has no recorded turn for this request."""

    type = "replay_miss"

    def __init__(self, cassette: Path, reason: str) -> None:
        super().__init__(
            f"{cassette}: {reason}. Record it again with --replay {cassette.name} and CONJURE_REPLAY=record"
        )
        self.cassette = cassette
        self.reason = reason


class ReplayMismatchError(ReplayError):
    """A tool's output is not the recorded one."""

    type = "replay_mismatch"

    def __init__(self, cassette: Path, call_id: str, reason: str) -> None:
        super().__init__(f"{cassette}: call {call_id}: {reason}")
        self.cassette = cassette
        self.call_id = call_id
        self.reason = reason


class ConversationError(ConjureError):
    """A conversation ended before Claude was done.

    Attributes:
        messages: the conversation so far, in the Messages API's form, fit to be sent again.
    """

    type = "conversation_error"

    def __init__(self, message: str, messages: list[Message] | None = None) -> None:
        super().__init__(message)
        self.messages = messages if messages is not None else []


class MaxIterationsError(ConversationError):
    """The loop made as many requests as it may."""

    type = "max_iterations_reached"

    def __init__(self, limit: int, messages: list[Message] | None = None) -> None:
        super().__init__(
            f"Stopped after {limit} requests in one turn (max_iterations). "
            "Say 'continue', or raise --max-iterations",
            messages,
        )
        self.limit = limit


class BudgetExceededError(ConversationError):
    """The next request would go over the budget.

    Attributes:
        budget: the limit, as the user gave it.
        spent: what the turn has used, in the same unit.
    """

    type = "budget_exceeded"

    def __init__(self, budget: str, spent: str, messages: list[Message] | None = None) -> None:
        super().__init__(
            f"The budget of {budget} is used up ({spent} spent); raise --budget to go on", messages
        )
        self.budget = budget
        self.spent = spent


class ApprovalRequiredError(ConversationError):
    """A call needs the user's word and nobody can be asked.

    Attributes:
        calls: ``(id, name, one-line summary)`` of each call that waits.
    """

    type = "approval_required"

    def __init__(self, calls: list[tuple[str, str, str]], messages: list[Message] | None = None) -> None:
        listed = "; ".join(f"{name}: {summary}" for _, name, summary in calls)
        super().__init__(
            f"{len(calls)} call(s) wait for approval: {listed}. "
            "Run %claude approve to go on, or use --approve auto",
            messages,
        )
        self.calls = calls


class StoppedError(ConversationError):
    """The user stopped the turn, or a time limit did.

    Attributes:
        text: what Claude had said by then.
    """

    type = "stopped"

    def __init__(
        self, reason: str = "Stopped", text: str = "", messages: list[Message] | None = None
    ) -> None:
        super().__init__(reason, messages)
        self.reason = reason
        self.text = text


class SessionError(ConjureError):
    """Something is wrong with a session on disk."""

    type = "session_error"


class SessionNotFoundError(SessionError):
    """No session has that identifier."""

    type = "session_not_found"

    def __init__(self, session_id: str, folder: Path) -> None:
        super().__init__(f"No session {session_id!r} in {folder}; %claude sessions lists them")
        self.session_id = session_id
        self.folder = folder


class SessionLockedError(SessionError):
    """Another process writes to the session."""

    type = "session_locked"

    def __init__(self, session_id: str, owner: str) -> None:
        super().__init__(
            f"Session {session_id!r} is in use by {owner}; "
            "close it there, or start one of your own with %claude new"
        )
        self.session_id = session_id
        self.owner = owner


class SessionClosedError(SessionError):
    """The session was closed."""

    type = "session_closed"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session {session_id!r} is closed; resume it with Session.resume({session_id!r})")
        self.session_id = session_id


class TimelineError(SessionError):
    """A session's log cannot be read or written."""

    type = "timeline_error"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
