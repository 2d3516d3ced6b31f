"""All settings, in one frozen object.

A value comes, strongest first, from: an option of the call or cell, ``%config ConjureMagics``, the
environment (``CONJURE_<NAME>``), the default here. The notebook's traitlets are made from these fields.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import SettingsError

PREFIX = "CONJURE_"

MB = 1024 * 1024


def _setting(default: Any, help_: str, *, choices: tuple[str, ...] = (), low: float | None = None) -> Any:
    metadata = {"help": help_, "choices": choices, "low": low}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting; each field's ``help`` says what it is, with its unit.

    Raises:
        SettingsError: a value is of the wrong type or out of range.
    """

    # The model
    model: str = _setting("claude-sonnet-5-5", "Model to ask.")
    max_tokens: int = _setting(32_000, "Most tokens of one answer.", low=1)
    system: str | None = _setting(None, "Text put before the skills in the system prompt.")
    thinking: str | None = _setting(None, "Extended thinking.", choices=("adaptive", "enabled", "disabled"))
    thinking_tokens: int = _setting(8_000, "Thinking budget in tokens, when thinking is 'enabled'.", low=1024)
    effort: str | None = _setting(None, "output_config.effort, such as 'low' or 'high'.")
    cache_ttl: str = _setting(
        "5m", "How long the service keeps the prompt cached.", choices=("5m", "1h", "off")
    )
    client: str = _setting(
        "auto",
        "Who answers: 'auto' is Anthropic's SDK where it finds a credential, else the offline client.",
        choices=("auto", "anthropic", "offline"),
    )
    api_timeout: float = _setting(600.0, "Seconds to wait for the service.", low=0.1)
    retries: int = _setting(4, "How often a failed request is sent again.", low=0)

    # Limits
    max_iterations: int = _setting(25, "Most requests in one turn.", low=1)
    budget: str | None = _setting(None, "Most a turn may cost: '0.50' (USD) or '20000 tokens'.")

    # Skills
    skill_paths: tuple[str, ...] = _setting((), "Folders and .skill files to load at the start.")
    trust_project_skills: bool = _setting(
        False, "Let the allowed-tools of skills found in the notebook's folder pre-approve calls."
    )
    catalogue_tokens: int = _setting(8_000, "Most tokens the skill catalogue takes in the prompt.", low=100)

    # Tools
    on: str = _setting(
        "local",
        "Where tools run: 'local', 'docker', or an executor that an installed package adds by its name.",
    )
    approve: str | None = _setting(
        None,
        "Who approves calls: default is 'ask' on the kernel's filesystem, 'auto' in a container.",
        choices=("ask", "auto", "deny"),
    )
    approval_rules: tuple[str, ...] = _setting(
        (), "Calls that need no asking, such as 'bash_tool(git status:*)' or 'create_file(outputs/**)'."
    )
    timeout: float = _setting(30.0, "Seconds a command may run.", low=0.1)
    output_limit: int = _setting(30_000, "Characters of a tool's output that Claude gets.", low=1000)
    environment: tuple[str, ...] = _setting((), "Names of environment variables that tools may see.")
    allowed_paths: tuple[str, ...] = _setting((), "Folders outside the notebook's that tools may read.")
    network: str | None = _setting(
        None,
        "Network of tools; an error where it cannot be enforced. Containers have none unless it is set: "
        "'limited' reaches network_hosts through a guarded proxy, 'bridge' (or 'full') everything.",
        choices=("none", "limited", "bridge", "full", "host"),
    )
    network_hosts: tuple[str, ...] = _setting(
        (), "Hosts that network 'limited' reaches, such as 'pypi.org' or '*.pythonhosted.org'."
    )
    memory_limit: int | None = _setting(
        None, "Bytes tools may use; 2 GB in a container; an error where it cannot be enforced.", low=1
    )
    sandbox: str = _setting(
        "off",
        "Confine local commands: 'auto' takes what the machine has.",
        choices=("off", "auto", "bubblewrap", "landlock", "seatbelt"),
    )

    # Docker
    docker_image: str = _setting("conjure/sandbox:latest", "Image of the container.")
    docker_cpus: float = _setting(1.0, "Processors of the container.", low=0.01)
    docker_pids: int = _setting(256, "Most processes and threads in the container.", low=16)
    docker_user: str | None = _setting(None, "'UID:GID' that tools run as; default is the notebook's own.")
    docker_gpus: str | None = _setting(None, "GPUs of the container: 'all' or how many.")
    docker_volumes: tuple[str, ...] = _setting(
        (), "What else is mounted: 'SOURCE:TARGET[:ro|rw]', read-only unless it says rw."
    )
    docker_idle: float = _setting(900.0, "Seconds without a call until the container stops; 0 never.", low=0)
    inspect_variables: bool = _setting(True, "Offer Claude a read-only look at the kernel's variables.")

    # Artifacts
    artifact_paths: tuple[str, ...] = _setting(
        (), "Folders that artifacts may be registered from; empty allows every file the user names."
    )
    artifact_limit: int = _setting(100 * MB, "Most bytes of an artifact that is staged or kept.", low=1)
    artifact_file_limit: int = _setting(50 * MB, "Most bytes of a file that is registered.", low=1)
    url_fetch_enabled: bool = _setting(True, "Fetch https:// artifacts.")
    url_timeout: float = _setting(30.0, "Seconds a URL may take, redirects included.", low=0.1)
    url_max_size: int = _setting(10 * MB, "Most bytes of a URL's content.", low=1)
    url_schemes: tuple[str, ...] = _setting(("https",), "Schemes that may be fetched; add http to allow it.")
    url_ports: tuple[str, ...] = _setting(("80", "443"), "Ports that may be fetched from.")
    url_blocked_hosts: tuple[str, ...] = _setting(
        (), "Hosts never fetched from, with all below them; addresses that are not public never are."
    )
    url_cache_ttl: float = _setting(900.0, "Seconds a fetched URL is used without asking again.", low=0)
    url_cache_size: int = _setting(200 * MB, "Most bytes of fetched URLs that are kept.", low=0)

    # Context
    context_tokens: int = _setting(200_000, "Tokens that the model's context holds.", low=1000)
    compact_at: float = _setting(
        0.8, "Part of the context at which older turns are summarised; 0 never does.", low=0
    )

    # Sessions
    storage: str | None = _setting(
        None, "Where sessions are kept besides this machine: 's3://bucket/prefix', 'tigris', 'local'."
    )
    storage_cache: str | None = _setting(None, "Folder of the local copies of sessions kept elsewhere.")
    session_days: float | None = _setting(
        None, "Days after which sessions nobody used are removed; never for workspace '.'.", low=0
    )
    undo_limit: int = _setting(256 * MB, "Most bytes of work files kept for undoing a turn.", low=0)
    sessions_dir: str | None = _setting(
        None, "Folder of the sessions; default is .conjure beside the notebook."
    )
    workspace: str | None = _setting(None, "'.' makes the notebook's folder the tools' working directory.")
    replay: str = _setting(
        "off", "Cassette mode when a replay file is named.", choices=("off", "record", "replay", "auto")
    )
    replay_file: str | None = _setting(None, "Cassette beside the notebook.")
    replay_strict: bool = _setting(False, "A tool output that differs from the recorded one is an error.")

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            object.__setattr__(self, spec.name, _checked(spec, getattr(self, spec.name)))
        parse_budget(self.budget)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **changes: Any) -> Settings:
        """Defaults, then ``CONJURE_*`` variables, then ``changes``.

        Raises:
            SettingsError: a variable or change has a wrong value, or a change has an unknown name.
        """
        source = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        for spec in dataclasses.fields(cls):
            raw = source.get(PREFIX + spec.name.upper())
            if raw is not None:
                values[spec.name] = parse_text(spec.name, raw)
        return cls(**{**values, **known(changes)})

    def with_(self, **changes: Any) -> Settings:
        """A copy with some settings changed.

        Raises:
            SettingsError: a name is unknown or a value wrong.
        """
        return dataclasses.replace(self, **known(changes))


def known(changes: Mapping[str, Any]) -> dict[str, Any]:
    """``changes`` as they are, when every name in them is a setting.

    Raises:
        SettingsError: one is not.
    """
    names = [spec.name for spec in dataclasses.fields(Settings)]
    for name in changes:
        if name not in names:
            raise SettingsError(name, "no such setting" + _nearest(name, names))
    return dict(changes)


def _nearest(name: str, names: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(names)}"


def parse_text(name: str, raw: str) -> Any:
    """A setting's value from text, as an environment variable or option gives it.

    Lists are separated by ``os.pathsep`` for paths and by commas otherwise; an empty text is None where a
    setting may be None.

    Raises:
        SettingsError: the text is no value of the setting's type.
    """
    spec = next(spec for spec in dataclasses.fields(Settings) if spec.name == name)
    kind = str(spec.type)
    if not raw and "None" in kind:
        return None
    parse = next(parse for prefix, parse in _PARSERS.items() if kind.startswith(prefix))
    try:
        return parse(raw, name)
    except ValueError as error:
        raise SettingsError(name, f"{raw!r} is not {_TYPE_NAMES[kind.split(' ', maxsplit=1)[0]]}") from error


def _parse_bool(raw: str, _: str) -> bool:
    words = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }
    if raw.lower() not in words:
        raise ValueError(raw)
    return words[raw.lower()]


def _parse_list(raw: str, name: str) -> tuple[str, ...]:
    separator = os.pathsep if name.endswith("paths") else ","
    return tuple(part.strip() for part in raw.split(separator) if part.strip())


_PARSERS: dict[str, Callable[[str, str], Any]] = {
    "bool": _parse_bool,
    "int": lambda raw, _: int(raw),
    "float": lambda raw, _: float(raw),
    "tuple": _parse_list,
    "str": lambda raw, _: raw,
}
_TYPE_NAMES = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "tuple[str,": "a list",
}


def _checked(spec: dataclasses.Field[Any], value: Any) -> Any:
    kind = str(spec.type)
    if value is None and "None" in kind:
        return None
    if isinstance(value, Path):
        value = str(value)
    if kind.startswith("tuple"):
        if isinstance(value, str) or not all(isinstance(part, str | Path) for part in value):
            raise SettingsError(spec.name, f"expected a list of texts, got {value!r}")
        return tuple(str(part) for part in value)
    if kind.startswith("float") and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    expected = {"bool": bool, "int": int, "float": float, "str": str}[kind.split(" ", maxsplit=1)[0]]
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise SettingsError(spec.name, f"expected {_TYPE_NAMES[expected.__name__]}, got {value!r}")
    choices = spec.metadata["choices"]
    if choices and value not in choices:
        raise SettingsError(spec.name, f"{value!r} is not one of {', '.join(choices)}")
    low: float | None = spec.metadata["low"]
    if low is not None and isinstance(value, int | float) and not low <= value < math.inf:
        raise SettingsError(spec.name, f"{value!r} is less than {low:g}")
    return value


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit on what a turn may cost; exactly one of the two is set.

    Attributes:
        usd: US dollars.
        tokens: input and output tokens together.
    """

    usd: float | None = None
    tokens: int | None = None


def parse_budget(text: str | None) -> Budget | None:
    """``0.50``, ``$0.50`` and ``0.5 usd`` are dollars; ``20000 tokens`` and ``20k tokens`` are tokens.

    Raises:
        SettingsError: it is neither.
    """
    if text is None:
        return None
    match = re.fullmatch(r"\s*\$?\s*(\d+(?:\.\d+)?)\s*(k|m)?\s*(usd|tokens?|tok)?\s*", text, re.IGNORECASE)
    if match:
        number, scale, unit = float(match[1]), (match[2] or "").lower(), (match[3] or "").lower()
        if unit.startswith("tok"):
            tokens = int(number * {"": 1, "k": 1_000, "m": 1_000_000}[scale])
            if tokens > 0:
                return Budget(tokens=tokens)
        elif not scale and number > 0:
            return Budget(usd=number)
    raise SettingsError("budget", f"{text!r} is neither dollars ('0.50') nor tokens ('20000 tokens')")
