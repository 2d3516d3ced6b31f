"""Kinds of sandbox that work on this machine; where one does not, its tests say why and are skipped."""

from __future__ import annotations

import pytest

from conjure_jupyter.executors.sandbox import Kind
from conjure_jupyter.executors.sandbox.choice import trouble

KINDS: tuple[Kind, ...] = ("bubblewrap", "landlock")


def need(kind: Kind) -> None:
    """Skip where a kind does not work."""
    why = trouble(kind, network=False)
    if why is not None:
        pytest.skip(why)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    chosen: Kind = request.param
    need(chosen)
    return chosen
