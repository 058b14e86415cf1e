"""Settings of decoding: frozen dataclasses, with the names and defaults of Hugging Face's `generate`."""

import math
from dataclasses import dataclass, fields, replace
from typing import Literal, Self, TypedDict, get_args, get_origin

from toolkit.display import counted, short_repr
from toolkit.errors import ConfigError

_LEAST = {
    "num_beams": 1,
    "num_return_sequences": 1,
    "min_new_tokens": 0,
    "top_k": 0,
    "no_repeat_ngram_size": 0,
    "seed": 0,
    "temperature": 0,
}
# Drawn seeds are below this: short enough to be typed again.
_SEEDS = 1 << 31

# What only sampling heeds, and the values that ask for nothing.
_OF_SAMPLING = {"temperature": (0, 1), "top_k": (0,), "top_p": (1,), "min_p": (0,)}


def fresh_seed() -> int:
    """Draw a seed from what the operating system has gathered."""
    import secrets  # here, because a search draws nothing

    return secrets.randbelow(_SEEDS)


@dataclass(frozen=True)
class GenerationConfig:
    """One beam and no sampling is greedy search, and so is sampling at temperature 0.

    early_stopping says when beam search is done with a sentence. "settled": as soon as no unfinished hypothesis can
    displace one that will be returned, because log-probabilities only fall. The other three are Hugging Face's rules,
    which wait for num_beams finished hypotheses: True stops there; False goes on while the best unfinished one, its
    log-probability divided by the penalty of its present length, is better than the worst of them; "never" takes the
    penalty of the length limit instead, where length_penalty is above 0.

    forced_eos says what happens to an output that reaches the length limit. "scored": its last token is an end mark,
    which counts with the probability that the model gives it. "free": the end mark has log-probability 0, as with
    Hugging Face's forced_eos_token_id. "none": it is cut off without an end mark, as there without that setting.

    repetition_penalty and no_repeat_ngram_size look at what an encoder-decoder has written, the mark that it began with
    included, and at prompt and output of a decoder-only model. Greedy search and sampling apply them to logits, beam
    search to log-probabilities, as Hugging Face does. Sampling then divides by the temperature, and keeps what top_k,
    top_p and min_p keep, in this order. Where nothing at all may be written, the end mark is, even before
    min_new_tokens.

    A setting that has no effect beside the others is refused, but for a seed, which may always be given.
    """

    max_new_tokens: int | None = None  # end mark included; by default twice the source plus 20
    min_new_tokens: int = 0  # tokens that every output has before its end mark
    num_beams: int = 1  # hypotheses kept alive for every sentence
    # Beams: a search ends when no unfinished hypothesis can win (settled), or by Hugging Face's True, False and never.
    early_stopping: Literal[True, False, "never", "settled"] = "settled"
    # At the length limit: an end mark with the model's probability (scored) or with probability 1 (free), or none.
    forced_eos: Literal["scored", "free", "none"] = "scored"
    length_penalty: float = 1.0  # score = log-probability / length ** this; above 0 favours longer outputs
    num_return_sequences: int = 1  # outputs for every sentence, best first
    do_sample: bool = False  # draw tokens instead of searching for the most probable sequence
    temperature: float = 1.0  # sampling: logits are divided by it
    top_k: int = 50  # sampling: only this many most probable tokens; 0 is all
    top_p: float = 1.0  # sampling: only the fewest most probable tokens that together reach this probability
    min_p: float = 0.0  # sampling: only tokens at least this many times as probable as the most probable one
    # Tokens that occurred: their scores are divided by this where positive and multiplied where negative; 1 is off.
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0  # no sequence of this many tokens is written twice; 0 is off
    # Sampling: the same seed draws the same tokens. Without one, every call draws anew.
    seed: int | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Raises ConfigError where a setting is out of range or contradicts another."""
        self._check_types()
        for name, least in _LEAST.items():
            if (value := getattr(self, name)) is not None and value < least:
                raise ConfigError(f"{name} is {value}: it must be at least {least}")
        if self.max_new_tokens is not None and self.max_new_tokens < 1:
            raise ConfigError(f"max_new_tokens is {self.max_new_tokens}: it must be at least 1, for the end mark")
        if self.max_new_tokens is not None and self.max_new_tokens < self.shortest:
            raise ConfigError(
                f"min_new_tokens is {self.min_new_tokens}, but max_new_tokens {self.max_new_tokens} leaves no room for "
                "so many: raise the one or lower the other"
            )
        for name in ("top_p", "min_p"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: it must lie between 0 and 1")
        if self.repetition_penalty <= 0:
            raise ConfigError(f"repetition_penalty is {self.repetition_penalty}: it must be above 0")
        if self.samples and self.num_beams > 1:
            raise ConfigError(
                f"num_beams is {self.num_beams}, but sampling has no beams: use one beam, or do not sample"
            )
        if not self.samples and self.num_return_sequences > self.num_beams:
            raise ConfigError(
                f"num_return_sequences is {self.num_return_sequences}, but a search with "
                f"{counted(self.num_beams, 'beam')} finds no more than {self.num_beams}: raise num_beams or sample"
            )
        self._check_effect()

    def _check_effect(self) -> None:
        defaults = {field.name: field.default for field in fields(self)}
        why, remedy = ("at temperature 0", "raise it") if self.do_sample else ("while do_sample is False", "set it")
        for name, off in _OF_SAMPLING.items():
            value = getattr(self, name)
            if not self.samples and value not in (defaults[name], *off):
                raise ConfigError(f"{name} is {value}, but {why} nothing is drawn: {remedy}, or leave {name} out")
        if self.early_stopping != defaults["early_stopping"] and self.num_beams == 1:
            raise ConfigError(
                f"early_stopping is {self.early_stopping}, but with one beam there is nothing to stop: "
                "raise num_beams, or leave it out"
            )

    @property
    def samples(self) -> bool:
        """True if tokens are drawn by chance: at temperature 0 they are not."""
        return self.do_sample and self.temperature > 0

    def seeded(self) -> Self:
        """Give these settings with a seed to draw by: a fresh one where there is none and tokens are drawn."""
        if self.seed is not None or not self.samples:
            return self
        return replace(self, seed=fresh_seed())

    @property
    def sequences_each(self) -> int:
        """The sequences with which decoding begins for each text: one for each sample, otherwise one."""
        return self.num_return_sequences if self.samples else 1

    @property
    def shortest(self) -> int:
        """The fewest new tokens that an output can have, a forced EOS included."""
        return self.min_new_tokens + (self.forced_eos != "none")

    def _check_types(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if field.type is float and not (number and math.isfinite(value)):
                raise ConfigError(f"{field.name} is {value!r}: it must be a finite number")
            whole = field.type is int or (field.type == int | None and value is not None)
            if whole and not (number and isinstance(value, int)):
                raise ConfigError(f"{field.name} is {value!r}: it must be a whole number")
            if field.type is bool and not isinstance(value, bool):
                raise ConfigError(f"{field.name} is {value!r}: it must be True or False")
            choices = get_args(field.type) if get_origin(field.type) is Literal else ()
            # 1, which equals True, is none of them.
            if choices and not any(type(value) is type(choice) and value == choice for choice in choices):
                raise ConfigError(f"{field.name} is {value!r}: it must be one of {', '.join(map(str, choices))}")


@dataclass(frozen=True)
class ContinuationConfig(GenerationConfig):
    """Settings for continuing prompts with a decoder-only model: as `GenerationConfig`, but sampling is the default.

    A model reads at most `max_length` tokens at once. past_context says what happens there. "stop": the output ends, so
    that BOS, prompt and output together have at most `max_length` tokens. "slide": all that was read is forgotten,
    the last half of it is read again, and the output goes on; each sequence does so at its own length, whatever else is
    in the batch. A prompt is read as if the model had written it: one that is longer has slid before.
    """

    # EOS included; by default the rest of the context, and a whole context where past_context is slide.
    max_new_tokens: int | None = None
    # At the length limit: an end mark with the model's probability (scored) or with probability 1 (free), or none.
    forced_eos: Literal["scored", "free", "none"] = "none"
    do_sample: bool = True  # tokens are drawn; no sampling searches for the most probable sequence
    temperature: float = 0.7  # sampling: logits are divided by it; 0 is greedy search, or beam search
    # Sampling: only tokens at least this many times as probable as the most probable one. What a small model gives the
    # rest is mostly noise, so that some of it is cut off by default.
    min_p: float = 0.1
    # At the end of the context: stop, or slide, which reads the last half again and goes on.
    past_context: Literal["stop", "slide"] = "stop"

    __repr__ = short_repr


class GenerationSettings(TypedDict, total=False):
    """The settings of a `GenerationConfig` as keywords, for editors and type checkers."""

    max_new_tokens: int | None
    min_new_tokens: int
    num_beams: int
    early_stopping: Literal[True, False, "never", "settled"]
    forced_eos: Literal["scored", "free", "none"]
    length_penalty: float
    do_sample: bool
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    no_repeat_ngram_size: int
    seed: int | None


class ContinuationSettings(GenerationSettings, total=False):
    """Those of a `ContinuationConfig`."""

    past_context: Literal["stop", "slide"]
