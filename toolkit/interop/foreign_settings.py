"""The config.json of a model from elsewhere, read with care: types are checked, and nothing unknown is passed over."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from toolkit.errors import ConfigError, ModelError
from toolkit.models.gpt import GPTConfig
from toolkit.models.seq2seq import Seq2SeqConfig
from toolkit.models.storage import CONFIG_FILE, read_json
from toolkit.untrusted import LIKE, OBJECT, Schema, UnfitError, check, shown

Config = Seq2SeqConfig | GPTConfig

GENERATION_FILE = "generation_config.json"

# Where our export keeps the settings that the other library has no name for; it hands them on untouched.
OWN_ENTRY = "toolkit"
_OWN_SETTINGS = ("max_length", "ignore_case", "begin", "template", "fixed_output_bias")

_ENCODER_DECODERS = ("marian", "pegasus")  # by their model_type

T = TypeVar("T", int, float, bool, str)


class ForeignSettings:
    """What config.json and generation_config.json of a directory say.

    Raises ModelError where there is no config.json, or where it is damaged.
    """

    def __init__(self, directory: Path):
        self.directory, self.path = directory, directory / CONFIG_FILE
        self.values = read_json(self.path)
        generation = directory / GENERATION_FILE
        self._generation = read_json(generation) if generation.exists() else {}
        self.generation_path = generation if generation.exists() else self.path

    def rename(self, aliases: Mapping[str, str]) -> None:
        """Take settings under other names of theirs.  Raises ModelError where the two say different things."""
        for alias, name in aliases.items():
            value, own = self.values.get(alias), self.values.get(name)
            if own is None and value is not None:
                self.values[name] = value
            elif value not in (None, own):
                raise ModelError(
                    f"{self.path} has {name} {shown(own)} and {alias} {shown(value)}, which are two "
                    "names of one setting: leave out the one that is wrong"
                )

    @property
    def architecture(self) -> str | None:
        """The class of the model, as `architectures` names it."""
        names = self.values.get("architectures")
        return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None

    @property
    def is_own(self) -> bool:
        """Whether our export has written the model: its tokens are in our order."""
        return self.values.get(OWN_ENTRY) is not None

    def with_own(self, config: Config, **usual: Any) -> Config:
        """Our settings, with those that no other library has: as our export has left them, or as they usually are.

        Raises ModelError where they are damaged.
        """
        values = usual | self.section(OWN_ENTRY)
        known = {name: values[name] for name in _OWN_SETTINGS if hasattr(config, name) and name in values}
        if any(type(value) is not type(getattr(config, name)) for name, value in known.items()):
            raise ModelError(f"{self.path} is damaged: {OWN_ENTRY!r} has settings of a wrong type")
        try:
            return replace(config, **known)
        except ConfigError as error:
            raise ModelError(f"{self.path} is damaged: {error}") from None

    @property
    def is_encoder_decoder(self) -> bool:
        return bool(self.values.get("is_encoder_decoder")) or self.values.get("model_type") in _ENCODER_DECODERS

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
        return self._checked(name, value, OBJECT)

    def special(self, role: str) -> int | None:
        """The id of the special token "pad", "unk", "bos" or "eos", of several the first.

        None where there is none, for which some models write a negative number. Raises ModelError where there is none
        for the outputs of an encoder-decoder to begin with.
        """
        starts = role == "bos" and self.is_encoder_decoder
        for name in ("decoder_start_token_id", "bos_token_id") if starts else (f"{role}_token_id",):
            ids = self.tokens(name)
            if ids and ids[0] >= 0:
                return ids[0]
        if starts:
            raise ModelError(f"{self.path} has no decoder_start_token_id: every output must begin with a token")
        return None

    def tokens(self, name: str) -> list[int]:
        """All the ids of a special token, generation_config.json's before config.json's."""
        value = self._generation.get(name)
        value = self.values.get(name) if value is None else value
        several = value if isinstance(value, list) else [] if value is None else [value]
        return [self.typed(name, each, 0) for each in several]

    def generation(self, name: str) -> Any:
        """How to decode, by generation_config.json, or in older directories, which have none, by config.json."""
        return (self.values if self.generation_path == self.path else self._generation).get(name)

    def expect(self, name: str, *allowed: Any) -> None:
        """Raises ModelError where a setting is given and is none of those that the toolkit has a counterpart for."""
        value = self.values.get(name)
        if name in self.values and not any(type(value) is type(each) and value == each for each in allowed):
            instead = " or ".join(map(shown, allowed))
            raise ModelError(
                f"{self.path} has {name} {shown(value)}, which no model of this toolkit has: it must be {instead}"
            )

    def typed(self, name: str, value: Any, default: T) -> T:
        """A value that stands under this name, as the type of a default.  Raises ModelError where it is of another."""
        return type(default)(self._checked(name, value, LIKE[type(default)]))

    def _checked(self, name: str, value: Any, schema: Schema) -> Any:
        try:
            return check(value, schema)
        except UnfitError as error:
            raise ModelError(f"{self.path} is damaged: {error.within(name)}") from None


def own_settings(config: Config) -> dict[str, Any]:
    """What `ForeignSettings.with_own` reads, to be left as OWN_ENTRY."""
    return {name: getattr(config, name) for name in _OWN_SETTINGS if hasattr(config, name)}
