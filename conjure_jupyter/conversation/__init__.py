"""Pure functions of a response, one loop, and the session on top."""

from .approvals import ApprovalRequest, Approver, Verdict
from .artifacts import SessionArtifacts
from .erasing import Erased
from .preview import DryRun
from .reply import Reply, ToolRecord
from .responses import (
    ParsedResponse,
    conversation_complete,
    extract_tool_uses,
    format_tool_results,
    format_tool_results_message,
    parse_response,
)
from .run import (
    Continue,
    Done,
    arun_loop,
    create_context,
    execute,
    execute_tool_calls,
    process_response,
    run_loop,
)
from .session import Session
from .turn import Turn, TurnOptions
from .undo import Undone, UndoPlan

__all__ = [
    "ApprovalRequest",
    "Approver",
    "Continue",
    "Done",
    "DryRun",
    "Erased",
    "ParsedResponse",
    "Reply",
    "Session",
    "SessionArtifacts",
    "ToolRecord",
    "Turn",
    "TurnOptions",
    "UndoPlan",
    "Undone",
    "Verdict",
    "arun_loop",
    "conversation_complete",
    "create_context",
    "execute",
    "execute_tool_calls",
    "extract_tool_uses",
    "format_tool_results",
    "format_tool_results_message",
    "parse_response",
    "process_response",
    "run_loop",
]
