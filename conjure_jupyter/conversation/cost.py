"""What a turn has used, what it cost, and what the next request may use.

Prices come from ``genai-prices`` (its offline data), never from this code.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping
from typing import Any

from ..errors import BudgetExceededError, SettingsError
from ..settings import Budget
from ..timeline import add_usage
from ..types import Usage

#: A budget that leaves fewer output tokens than this is used up: an answer cut so short is worth nothing.
LEAST_ANSWER = 64

_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def price(model: str, usage: Usage) -> float | None:
    """Cost of one request in USD, or None when the model's price is not known."""
    from genai_prices import extract_usage

    counts = {"input_tokens": 0, "output_tokens": 0} | {
        key: value for key, value in usage.items() if value is not None
    }
    try:
        extracted = extract_usage({"model": model, "usage": counts}, provider_id="anthropic")
        return float(extracted.calc_price().total_price)
    except (LookupError, ValueError):
        return None


_loaded = threading.Event()


def load_prices() -> None:
    """Load the prices: about 0.4 s the first time, which no event loop should wait for."""
    price("claude-sonnet-5-5", {"input_tokens": 1, "output_tokens": 1})
    _loaded.set()


def prices_loaded() -> bool:
    """Whether a price can be found at once."""
    return _loaded.is_set()


def input_tokens(usage: Mapping[str, Any]) -> int:
    """The whole input: fresh, written to the cache and read from it."""
    return sum(usage.get(key) or 0 for key in _COUNTS if key != "output_tokens")


def all_tokens(usage: Mapping[str, Any]) -> int:
    """Input and output together."""
    return input_tokens(usage) + (usage.get("output_tokens") or 0)


class Meter:
    """Counts the requests of a turn against its budget.

    Args:
        budget: the limit, if there is one.
        free: whether the client costs nothing (offline, replay).
    """

    def __init__(self, budget: Budget | None, *, free: bool = False) -> None:
        self.budget = budget
        self.free = free
        self._usage: Usage = dict.fromkeys(_COUNTS, 0)
        self._last: Usage | None = None
        self._unpriced: list[tuple[str, Usage]] = []
        self._cost: float | None = 0.0

    def add(self, model: str, usage: Usage) -> None:
        """Count a request that was answered, wholly or in part."""
        self._last = usage
        self.count(model, usage)

    def count(self, model: str, usage: Usage) -> None:
        """Count a request beside the conversation, such as for a summary."""
        add_usage(self._usage, usage)
        self._unpriced.append((model, usage))

    @property
    def usage(self) -> Usage:
        """Token counts of all requests so far: a copy."""
        return copy.deepcopy(self._usage)

    @property
    def last(self) -> Usage | None:
        """The usage of the latest request."""
        return self._last

    @property
    def cost(self) -> float | None:
        """USD so far; None when a price is not known."""
        if self.free:
            return 0.0
        for model, usage in self._unpriced:
            cost = price(model, usage)
            self._cost = None if cost is None or self._cost is None else self._cost + cost
        self._unpriced.clear()
        return self._cost

    def allowance(self, model: str, max_tokens: int, next_input: int) -> int:
        """How many tokens the next answer may have.

        Args:
            model: the model that will answer.
            max_tokens: what it would be without a budget.
            next_input: estimated input tokens of the request.

        Raises:
            BudgetExceededError: not even a short answer fits.
            SettingsError: the budget is in USD and the model's price is not known.
        """
        if self.budget is None or (self.free and self.budget.usd is not None):
            return max_tokens
        if self.budget.tokens is not None:
            spent = all_tokens(self._usage)
            left = self.budget.tokens - spent - next_input
            told, used = f"{self.budget.tokens} tokens", f"{spent} tokens"
        else:
            assert self.budget.usd is not None  # noqa: S101  exactly one of the two is set
            output = price(model, {"input_tokens": 0, "output_tokens": 1_000_000})
            if not output:
                raise SettingsError(
                    "budget",
                    f"the price of {model!r} is not known; give a budget in tokens, as '20000 tokens'",
                )
            spent_usd = self.cost or 0.0
            # The input is priced as if all of it were written to the cache, the dearest case.
            ahead = price(model, {"cache_creation_input_tokens": next_input, "output_tokens": 0}) or 0.0
            left = int((self.budget.usd - spent_usd - ahead) / output * 1_000_000)
            told, used = f"${self.budget.usd:g}", f"${spent_usd:.4f}"
        if left < min(LEAST_ANSWER, max_tokens):
            raise BudgetExceededError(told, used)
        return min(max_tokens, left)
