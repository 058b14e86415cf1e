"""The config.json of a model from elsewhere, read with care: types are checked, and nothing unknown is passed over."""

import json
from pathlib import Path
from typing import Any, TypeVar

from toolkit.errors import ModelError
from toolkit.models.storage import CONFIG_FILE, read_json

GENERATION_FILE = "generation_config.json"

# Where our export keeps the settings that the other library has no name for; it hands them on untouched.
OWN_ENTRY = "toolkit"

T = TypeVar("T", int, float, bool, str)

_TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


class ForeignSettings:
    """What config.json and generation_config.json of a directory say.

    Raises ModelError where there is no config.json, or where it is damaged.
    """

    def __init__(self, directory: Path):
        self.path = directory / CONFIG_FILE
        self.values = read_json(self.path)
        generation = directory / GENERATION_FILE
        self._generation = read_json(generation) if generation.exists() else {}

    @property
    def architecture(self) -> str | None:
        """The class of the model, as `architectures` names it."""
        names = self.values.get("architectures")
        return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None

    @property
    def own(self) -> dict[str, Any] | None:
        """The settings that our export left there; None for a model that is not ours."""
        own = self.values.get(OWN_ENTRY)
        return own if isinstance(own, dict) else None

    def get(self, name: str, default: T) -> T:
        """A setting, of the type of its default, which stands for one that is missing or null."""
        value = self.values.get(name)
        return default if value is None else self.typed(name, value, default)

    def count(self, name: str, default: int) -> int:
        """As `get`, for what cannot be below 1."""
        value = self.get(name, default)
        if value < 1:
            raise ModelError(f"{self.path} is damaged: {name} is {value}, but must be at least 1")
        return value

    def section(self, name: str) -> dict[str, Any]:
        """A setting that is an object of its own; empty where it is missing."""
        value = self.values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ModelError(f"{self.path} is damaged: {name} is {_shown(value)}, not an object")
        return value

    def token(self, name: str) -> int | None:
        """The id of a special token, generation_config.json's before config.json's, of several the first.

        None where there is none, for which some models write a negative number.
        """
        ids = self.tokens(name)
        return ids[0] if ids and ids[0] >= 0 else None

    def tokens(self, name: str) -> list[int]:
        """All the ids of a special token."""
        value = self._generation.get(name)
        value = self.values.get(name) if value is None else value
        several = value if isinstance(value, list) else [] if value is None else [value]
        return [self.typed(name, each, 0) for each in several]

    def expect(self, name: str, *allowed: Any) -> None:
        """Raises ModelError where a setting is given and is none of those that the toolkit has a counterpart for."""
        value = self.values.get(name)
        if name in self.values and not any(type(value) is type(each) and value == each for each in allowed):
            instead = " or ".join(map(_shown, allowed))
            raise ModelError(f"{self.path} has {name} {_shown(value)}: this toolkit has no such model, only {instead}")

    def typed(self, name: str, value: Any, default: T) -> T:
        """A value that stands under this name, as the type of a default.  Raises ModelError where it is of another."""
        wanted = type(default)
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            raise ModelError(f"{self.path} is damaged: {name} is {_shown(value)}, not {_TYPE_NAMES[wanted]}")
        try:
            return wanted(value)
        except OverflowError:
            raise ModelError(f"{self.path} is damaged: {name} is larger than any number") from None


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"
