"""What a turn would send, before anything is sent or written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..clients import Client, Request
from ..errors import APIError, PathNotFoundError
from ..prompt import estimate_tokens
from ..settings import Settings, parse_budget
from ..types import FileRef, Message
from .cost import Meter, price
from .workspace import Workspace


@dataclass(frozen=True, slots=True)
class DryRun:
    """What Claude would see, and what that may cost.

    Attributes:
        model: who would be asked.
        client: the client's name.
        system: the system prompt.
        tools: names of the tools offered.
        messages: the conversation with the new message last, in the API's form.
        files: what would be copied to ``uploads/``.
        input_tokens: of the first request.
        exact: whether the service counted them; else they are estimated.
        max_tokens: most output tokens of one answer.
        max_iterations: most requests of the turn.
        first_request: most the first request may cost in USD; None when the price is not known.
        ceiling: the budget as the user gave it; None when there is none.
    """

    model: str
    client: str
    system: str
    tools: tuple[str, ...]
    messages: list[Message]
    files: tuple[FileRef, ...]
    input_tokens: int
    exact: bool
    max_tokens: int
    max_iterations: int
    first_request: float | None
    ceiling: str | None


async def dry_run(
    client: Client,
    prefix: Mapping[str, Any],
    messages: list[Message],
    files: Sequence[FileRef],
    settings: Settings,
) -> DryRun:
    """Size and price of the first request of a turn.

    Raises:
        BudgetExceededError: the budget has no room for it.
        SettingsError: the budget is in USD and the model's price is not known.
    """
    request = Request(settings.model, settings.max_tokens, prefix["system"], messages, prefix["tools"])
    try:
        counted = await client.count_tokens(request)
    except APIError:
        # A compatible server may not count; an estimate is what is left.
        counted = None
    tokens = counted
    if tokens is None:
        tokens = estimate_tokens(request.system + json.dumps([request.tools, messages], ensure_ascii=False))
    meter = Meter(parse_budget(settings.budget), free=not client.live)
    allowed = meter.allowance(settings.model, settings.max_tokens, tokens)
    worst = {"cache_creation_input_tokens": tokens, "output_tokens": allowed}
    return DryRun(
        model=settings.model,
        client=client.name,
        system=request.system,
        tools=tuple(tool["name"] for tool in request.tools),
        messages=messages,
        files=tuple(files),
        input_tokens=tokens,
        exact=counted is not None,
        max_tokens=allowed,
        max_iterations=settings.max_iterations,
        first_request=price(settings.model, worst) if client.live else 0.0,
        ceiling=settings.budget,
    )


def file_ref(file: Path, files: Workspace) -> FileRef:
    """A file as it would be told to Claude, without copying it.

    Raises:
        PathNotFoundError: there is no such file.
    """
    if not file.is_file():
        raise PathNotFoundError(str(file), "no such file")
    ref = files.file_ref(file)
    return FileRef(
        files.told(files.uploads / file.name), ref.size, ref.content_type, ref.sha256, local_path=file
    )
