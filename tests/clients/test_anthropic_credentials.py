"""Our cheap look for a credential agrees with what the SDK does."""

from __future__ import annotations

import json
from pathlib import Path

import anthropic
import pytest

from conjure_jupyter.clients.credentials import find_credential, has_credential, own_base_url

FEDERATION = {
    "ANTHROPIC_FEDERATION_RULE_ID": "fdrl_1",
    "ANTHROPIC_ORGANIZATION_ID": "org_1",
    "ANTHROPIC_IDENTITY_TOKEN": "jwt",
}


def sdk_finds_one() -> bool:
    """Whether a client made now could authenticate, or would complain of a chosen credential's state."""
    try:
        client = anthropic.Anthropic()
    except anthropic.AnthropicError:
        return True
    try:
        headers, omitted = client.default_headers, frozenset[str]()
        import httpx2

        given = httpx2.Headers({name: value for name, value in headers.items() if isinstance(value, str)})
        client._validate_headers(given, omitted)
    except TypeError:
        return False
    finally:
        client.close()
    return True


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"ANTHROPIC_API_KEY": ""},
        {"ANTHROPIC_API_KEY": "k"},
        {"ANTHROPIC_AUTH_TOKEN": "t"},
        {"ANTHROPIC_BASE_URL": "http://localhost:1"},
        {"ANTHROPIC_CUSTOM_HEADERS": "X-Api-Key: k"},
        {"ANTHROPIC_CUSTOM_HEADERS": "X-Team: a\nauthorization: Bearer t"},
        {"ANTHROPIC_CUSTOM_HEADERS": "X-Team: a"},
        {"ANTHROPIC_PROFILE": "work"},
        FEDERATION,
        {**FEDERATION, "ANTHROPIC_IDENTITY_TOKEN": ""},
        {**FEDERATION, "ANTHROPIC_ORGANIZATION_ID": ""},
    ],
    ids=str,
)
def test_the_environment(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert has_credential() == sdk_finds_one()


@pytest.mark.parametrize("place", ["home", "chosen folder"])
@pytest.mark.parametrize("files", [[], ["default"], ["work"], ["work", "active"], ["active"]], ids=str)
def test_profiles_on_disk(
    place: str, files: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = Path.home() / ".config" / "anthropic"
    if place == "chosen folder":
        folder = tmp_path
        monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(folder))
    for name in files:
        if name == "active":
            (folder / "active_config").parent.mkdir(parents=True, exist_ok=True)
            (folder / "active_config").write_text("work\n")
            continue
        profile = folder / "configs" / f"{name}.json"
        profile.parent.mkdir(parents=True, exist_ok=True)
        secret = folder / "token.json"
        secret.write_text(json.dumps({"access_token": "t"}))
        secret.chmod(0o600)
        profile.write_text(
            json.dumps({"authentication": {"type": "user_oauth", "credentials_path": str(secret)}})
        )
    assert has_credential() == sdk_finds_one()


def test_where_it_was_found_is_told_not_what() -> None:
    assert find_credential({"ANTHROPIC_API_KEY": "secret"}) == "ANTHROPIC_API_KEY"
    assert find_credential({}) is None


def test_anthropics_own_address_asks_for_a_credential() -> None:
    assert own_base_url({"ANTHROPIC_BASE_URL": "https://api.anthropic.com"}) is None
    assert own_base_url({"ANTHROPIC_BASE_URL": "http://localhost:11434"}) == "http://localhost:11434"
    assert own_base_url({}) is None
