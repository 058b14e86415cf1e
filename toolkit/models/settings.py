"""Checks of the settings of models."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.errors import ConfigError
from toolkit.tokenization.special import BOS
from toolkit.untrusted import LIKE, Record

# The longest context of any model, in tokens: what a number costs nothing to write must not cost memory to obey.
LONGEST_CONTEXT = 1 << 20


def check_settings(config: Any, counts: Sequence[str], choices: Mapping[str, Sequence[str]]) -> None:
    """Raises ConfigError for settings that no model of this kind can have.

    counts: names of whole numbers of at least 1, `d_model` and `num_heads` among them. choices: by name, the words to
    choose from. Names that end in _dropout are probabilities below 1.
    """
    for name in counts:
        if getattr(config, name) < 1:
            raise ConfigError(f"{name} is {getattr(config, name)}: it must be at least 1")
    if getattr(config, "max_length", 1) > LONGEST_CONTEXT:
        raise ConfigError(f"max_length is {config.max_length}: it must be at most {LONGEST_CONTEXT:,} tokens")
    if config.d_model % config.num_heads:
        raise ConfigError(f"d_model {config.d_model} cannot be divided into {config.num_heads} heads")
    row = getattr(config, "begin_row", BOS)
    if row != BOS and not 0 <= row < config.vocab_size:
        raise ConfigError(f"begin_row is {row}: it must be one of the {config.vocab_size} tokens")
    for name, value in vars(config).items():
        if name.endswith("_dropout") and not 0 <= value < 1:
            raise ConfigError(f"{name} is {value}: it must be at least 0 and below 1")
    for name, words in choices.items():
        if getattr(config, name) not in words:
            raise ConfigError(f"{name} is {getattr(config, name)!r}: it must be one of {', '.join(words)}")


def settings_schema(config_class: type) -> Record:
    """Describe the settings that a file may hold, by the types of their defaults; all may be left out."""
    return Record({field.name: LIKE[type(field.default)] for field in dataclasses.fields(config_class)})
