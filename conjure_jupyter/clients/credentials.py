"""Whether Anthropic's SDK would find a credential, told without importing it.

The order and the names are the SDK's: an API key, an auth token, a named profile, workload identity
federation, the active profile on disk (``anthropic.lib.credentials``). Importing the SDK takes a second; this
takes a few file look-ups, so that an extension can choose its client while it loads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from conjure_jupyter.errors import SettingsError

#: What to do when there is no credential; the end of a message.
ADVICE = (
    "set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN, or ANTHROPIC_PROFILE), "
    "or pass a client of your own; CONJURE_CLIENT=offline works without"
)


def find_credential(environ: Mapping[str, str] | None = None) -> str | None:
    """Where the SDK would take its credential from, such as ``ANTHROPIC_API_KEY``; None if nowhere.

    The credential itself is neither read nor checked.
    """
    env = os.environ if environ is None else environ
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        if env.get(name):
            return name
    if _has_auth_header(env.get("ANTHROPIC_CUSTOM_HEADERS", "")):
        return "ANTHROPIC_CUSTOM_HEADERS"
    identity = env.get("ANTHROPIC_IDENTITY_TOKEN") or env.get("ANTHROPIC_IDENTITY_TOKEN_FILE")
    if identity and env.get("ANTHROPIC_FEDERATION_RULE_ID") and env.get("ANTHROPIC_ORGANIZATION_ID"):
        return "ANTHROPIC_FEDERATION_RULE_ID"
    if env.get("ANTHROPIC_CONFIG_DIR"):
        return "ANTHROPIC_CONFIG_DIR"
    return _active_profile(env)


def has_credential(environ: Mapping[str, str] | None = None) -> bool:
    """Whether the SDK would find a credential."""
    return find_credential(environ) is not None


def own_base_url(environ: Mapping[str, str] | None = None) -> str | None:
    """``ANTHROPIC_BASE_URL`` when it names a server other than Anthropic's.

    Such a server may ask for no credential at all.

    Raises:
        SettingsError: it ends in ``/v1``.
    """
    env = os.environ if environ is None else environ
    url = env.get("ANTHROPIC_BASE_URL")
    if not url:
        return None
    check_base_url(url)
    host = urlsplit(url).hostname or ""
    return None if host == "api.anthropic.com" else url


def check_base_url(url: str) -> None:
    """Refuse a base URL that already holds the API's version.

    Raises:
        SettingsError: it ends in ``/v1``, which the SDK adds itself.
    """
    path = urlsplit(url).path.rstrip("/")
    if path.endswith("/v1"):
        raise SettingsError("ANTHROPIC_BASE_URL", f"leave out the /v1 at the end of {_without_login(url)}")


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _has_auth_header(lines: str) -> bool:
    names = {line.partition(":")[0].strip().lower() for line in lines.split("\n") if ":" in line}
    return bool(names & {"authorization", "x-api-key"})


def _active_profile(env: Mapping[str, str]) -> str | None:
    """The active profile's file, when it, or a choice of profile, is on disk."""
    if sys.platform == "win32":
        folder = Path(env.get("APPDATA") or Path.home() / "AppData" / "Roaming") / "Anthropic"
    else:
        folder = Path.home() / ".config" / "anthropic"
    try:
        chosen = (folder / "active_config").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        chosen = ""
    profile = folder / "configs" / f"{chosen or 'default'}.json"
    return str(profile) if chosen or profile.is_file() else None
