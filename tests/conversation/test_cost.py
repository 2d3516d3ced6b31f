"""Tokens, money and the room a budget leaves."""

from __future__ import annotations

import pytest

from conjure_jupyter.conversation.cost import Meter, input_tokens, price
from conjure_jupyter.errors import BudgetExceededError, SettingsError
from conjure_jupyter.settings import Budget, parse_budget

MODEL = "claude-sonnet-5-5"


def test_every_kind_of_input_has_its_price() -> None:
    plain = price(MODEL, {"input_tokens": 1_000_000, "output_tokens": 0})
    read = price(MODEL, {"input_tokens": 0, "cache_read_input_tokens": 1_000_000, "output_tokens": 0})
    written = price(MODEL, {"input_tokens": 0, "cache_creation_input_tokens": 1_000_000, "output_tokens": 0})
    assert plain is not None
    assert read is not None
    assert written is not None
    assert read < plain < written


def test_an_unknown_model_has_no_price() -> None:
    assert price("llama-of-my-own", {"input_tokens": 1, "output_tokens": 1}) is None


def test_counts_that_are_missing_are_nought() -> None:
    assert input_tokens({"input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": 9}) == 3


def test_cost_is_the_sum_of_requests() -> None:
    meter = Meter(None)
    usage = {"input_tokens": 1000, "output_tokens": 500}
    meter.add(MODEL, usage)
    once = meter.cost
    meter.add(MODEL, usage)
    assert once is not None
    assert meter.cost == pytest.approx(2 * once)


def test_one_unknown_price_makes_the_cost_unknown() -> None:
    meter = Meter(None)
    meter.add(MODEL, {"input_tokens": 1, "output_tokens": 1})
    meter.add("llama-of-my-own", {"input_tokens": 1, "output_tokens": 1})
    assert meter.cost is None


def test_what_is_free_costs_nothing() -> None:
    meter = Meter(Budget(usd=0.01), free=True)
    meter.add("offline", {"input_tokens": 10**9, "output_tokens": 10**9})
    assert meter.cost == 0.0
    assert meter.allowance("offline", 1000, 10**9) == 1000


def test_a_token_budget_clamps_the_answer() -> None:
    meter = Meter(parse_budget("1000 tokens"))
    meter.add(MODEL, {"input_tokens": 300, "output_tokens": 100})
    assert meter.allowance(MODEL, 32_000, 200) == 400


def test_a_dollar_budget_clamps_the_answer() -> None:
    meter = Meter(parse_budget("0.10"))
    allowed = meter.allowance(MODEL, 32_000, 1000)
    most = price(MODEL, {"cache_creation_input_tokens": 1000, "output_tokens": allowed})
    assert most is not None
    assert 0.099 < most <= 0.10


@pytest.mark.parametrize("budget", ["100 tokens", "0.0001"])
def test_a_used_up_budget_is_told(budget: str) -> None:
    meter = Meter(parse_budget(budget))
    meter.add(MODEL, {"input_tokens": 90, "output_tokens": 5})
    with pytest.raises(BudgetExceededError, match="raise --budget"):
        meter.allowance(MODEL, 32_000, 100)


def test_dollars_need_a_known_price() -> None:
    with pytest.raises(SettingsError, match="budget in tokens"):
        Meter(parse_budget("0.10")).allowance("llama-of-my-own", 1000, 10)
