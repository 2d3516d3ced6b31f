"""Settings as traitlets, made from the fields of ``Settings``: help, types, choices and limits are theirs."""

from __future__ import annotations

import dataclasses
from typing import Any

from traitlets import Bool, Enum, Float, Int, TraitError, TraitType, Unicode
from traitlets.config import Configurable

from ..errors import SettingsError
from ..settings import Settings

NAMES = tuple(spec.name for spec in dataclasses.fields(Settings))


class Configured(Configurable):
    """Knows which settings were given by ``%config`` or a configuration file.

    Those are stronger than the environment; a setting that nobody gave is left to it.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._given: set[str] = set()
        super().__init__(**kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in NAMES:
            self._given.add(name)

    def settings(self) -> Settings:
        """All settings as they are now.

        Raises:
            SettingsError: a variable of the environment has a wrong value.
        """
        return Settings.from_env(**{name: getattr(self, name) for name in self._given})


def _check(trait: TraitType[Any, Any], _: Any, value: Any) -> Any:
    """The rules that a type alone does not hold, such as a budget's form."""
    try:
        Settings(**{str(trait.name): value})
    except SettingsError as error:
        raise TraitError(str(error)) from None
    return value


def traits() -> dict[str, TraitType[Any, Any]]:
    """A trait for each setting."""
    return {spec.name: _trait(spec) for spec in dataclasses.fields(Settings)}


def _trait(spec: dataclasses.Field[Any]) -> TraitType[Any, Any]:
    kind = str(spec.type)
    none = "None" in kind
    common: dict[str, Any] = {
        "default_value": spec.default,
        "help": spec.metadata["help"],
        "allow_none": none,
    }
    choices, low = spec.metadata["choices"], spec.metadata["low"]
    trait: TraitType[Any, Any]
    if choices:
        trait = Enum([*choices, None] if none else list(choices), **common)
    elif kind.startswith("tuple"):
        trait = _Texts(**common)
    elif kind.startswith("int"):
        trait = Int(min=low, **common)
    elif kind.startswith("float"):
        trait = Float(min=low, **common)
    elif kind.startswith("bool"):
        trait = Bool(**common)
    else:
        trait = _Text(**common)
    return trait.tag(config=True)


class _Text(Unicode[Any, Any]):
    """Text that ``Settings`` accepts."""

    def validate(self, obj: Any, value: Any) -> Any:
        return _check(self, obj, super().validate(obj, value))


class _Texts(TraitType[Any, Any]):
    """Texts, as a tuple or a list of any length."""

    info_text = "a list of texts"

    def validate(self, obj: Any, value: Any) -> Any:
        return tuple(_check(self, obj, value))

    def from_string(self, s: str) -> Any:
        """From a command line: texts with commas between them."""
        return tuple(part for part in s.split(",") if part)
