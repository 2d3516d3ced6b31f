"""For tests of notebooks and programs that use Claude: a scripted service, and checks of what it is sent."""

from .builders import message, redacted_thinking, sign, text, thinking, tool_use
from .caching import PromptCache, count_input
from .executor_contract import ExecutorContract
from .fake_claude import FakeClaude, RecordedRequest
from .faults import CutConnection, Delay, EndEarly, Fault, HTTPError, Malformed, StreamError, Wire
from .script import Reply, Script, ScriptError, last_prompt
from .storage_contract import StorageContract
from .validation import validate_messages, validate_request

__all__ = [
    "CutConnection",
    "Delay",
    "EndEarly",
    "ExecutorContract",
    "FakeClaude",
    "Fault",
    "HTTPError",
    "Malformed",
    "PromptCache",
    "RecordedRequest",
    "Reply",
    "Script",
    "ScriptError",
    "StorageContract",
    "StreamError",
    "Wire",
    "count_input",
    "last_prompt",
    "message",
    "redacted_thinking",
    "sign",
    "text",
    "thinking",
    "tool_use",
    "validate_messages",
    "validate_request",
]
