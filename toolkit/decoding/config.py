"""How to decode: one frozen dataclass, with the names and defaults of Hugging Face's `generate`."""

import math
from dataclasses import dataclass, fields

from toolkit.errors import ConfigError


@dataclass(frozen=True)
class GenerationConfig:
    """One beam and no sampling is greedy search, and so is sampling at temperature 0."""

    max_new_tokens: int | None = None  # end mark included; None: twice the source plus 20, within the model's length
    num_beams: int = 1  # hypotheses kept alive for every sentence
    length_penalty: float = 1.0  # score = log-probability / length ** this; above 0 favours longer outputs
    num_return_sequences: int = 1  # outputs for every sentence, best first
    do_sample: bool = False  # draw tokens instead of searching for the most probable sequence
    temperature: float = 1.0  # sampling: logits are divided by it
    top_k: int = 50  # sampling: only this many most probable tokens; 0 is all
    top_p: float = 1.0  # sampling: only the fewest most probable tokens that together reach this probability
    seed: int = 0  # sampling: the same seed draws the same tokens

    def __post_init__(self) -> None:
        """Raises ConfigError where a setting is out of range or contradicts another."""
        self._check_types()
        for name, least in (("num_beams", 1), ("num_return_sequences", 1), ("top_k", 0), ("seed", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}: it must be at least {least}")
        if self.max_new_tokens is not None and self.max_new_tokens < 1:
            raise ConfigError(f"max_new_tokens is {self.max_new_tokens}: it must be at least 1, for the end mark")
        if self.temperature < 0:
            raise ConfigError(f"temperature is {self.temperature}: it must be at least 0")
        if not 0 <= self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}: it must lie between 0 and 1")
        if self.do_sample and self.num_beams > 1:
            raise ConfigError(f"num_beams is {self.num_beams}, but sampling has no beams: leave out one of the two")
        if not self.do_sample and self.num_return_sequences > self.num_beams:
            raise ConfigError(
                f"num_return_sequences is {self.num_return_sequences}, but {self.num_beams} beams find only "
                f"{self.num_beams}: raise num_beams or sample"
            )

    @property
    def samples(self) -> bool:
        """Whether chance has a part: at temperature 0 it has none."""
        return self.do_sample and self.temperature > 0

    def _check_types(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is float and (isinstance(value, bool) or not _is_finite(value)):
                raise ConfigError(f"{field.name} is {value!r}: it must be a finite number")
            whole = field.type is int or (field.name == "max_new_tokens" and value is not None)
            if whole and (isinstance(value, bool) or not isinstance(value, int)):
                raise ConfigError(f"{field.name} is {value!r}: it must be a whole number")
            if field.type is bool and not isinstance(value, bool):
                raise ConfigError(f"{field.name} is {value!r}: it must be True or False")


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
