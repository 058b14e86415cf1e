"""A model with its tokenizer: the base of translators and language models."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from toolkit.display import meant, no_setting
from toolkit.errors import ConfigError, DataError, LengthError, ModelError
from toolkit.nn.module import Model
from toolkit.pages.blocks import Block, Shown, Text
from toolkit.tokenization import IdTokenizer, Tokenizer
from toolkit.tokenization.normal_form import text_list
from toolkit.tokenization.special import EOS

Config = TypeVar("Config")  # a dataclass

# Names a text in an error by its number, from 1.
Where = Callable[[int], str]

# No tokenizer makes fewer tokens than one of this number of characters: a longer text is refused at once.
CHARACTERS_OF_A_TOKEN = 64

# From this number of parameters on, a decoding step is large enough to be divided among BLAS threads.
_LARGE = 20_000_000


def listed(text: str | Iterable[str], what: str, where: Where | None) -> tuple[list[str], Where]:
    """List one text, or several -> the list, and a function that names each in an error; `where` is another."""
    if isinstance(text, str):
        return [text], where or (lambda _: f"the {what}")
    where = where or f"{what} {{}}".format
    return text_list(text, f"{what}s", where), where


def config_of(
    kind: type[Config], config: Config | None, settings: dict[str, Any], others: Iterable[str] = ()
) -> Config:
    """Take the settings that belong to a config out of the others, and change the config, or the defaults, by them.

    Raises ConfigError where they are out of range, and TypeError for a setting that is neither of it nor of `others`.
    """
    own = {field.name: settings.pop(field.name) for field in fields(kind) if field.name in settings}
    for name in sorted(settings.keys() - set(others)):
        raise no_setting(name, meant(name, [*(field.name for field in fields(kind)), *others]))
    if config is not None and not isinstance(config, kind):
        raise TypeError(f"config is {config!r:.60}: give a {kind.__name__}, or settings by name")
    return replace(config, **own) if config is not None else kind(**own)


def check_length(text: str, name: str, tokens: int) -> None:
    """Raises LengthError, which calls the text by its `name`, where it cannot have so few tokens."""
    if len(text) > CHARACTERS_OF_A_TOKEN * tokens:
        raise LengthError(f"{name} has {len(text)} characters, more than the model reads: shorten it")


class TextModel(Shown):
    """A model and its tokenizer."""

    def __init__(self, model: Model, tokenizer: Tokenizer, name: str = "the model"):
        """Raises ModelError where the tokenizer belongs to another model."""
        if tokenizer.vocab_size != model.config.vocab_size:
            raise ModelError(
                f"{name} has a tokenizer of {tokenizer.vocab_size} tokens and a model of {model.config.vocab_size}: "
                "copy both from one directory"
            )
        self.model, self.tokenizer = model, tokenizer
        self._threads, self._name = ThreadpoolController(), name
        self._most_threads = None if model.parameter_count >= _LARGE else 1

    @property
    def by_ids(self) -> bool:
        """True where texts are ids, divided by spaces, in and out: see `IdTokenizer`."""
        return isinstance(self.tokenizer, IdTokenizer)

    def __repr__(self) -> str:
        kind = ", int8" if self.model.quantized else ""
        return f"<{type(self).__name__}: {PurePath(self._name).name}, {self.model.parameter_count:,} parameters{kind}>"

    def _shown(self) -> list[Block]:
        """Show its name, its tokenizer and its parameters."""
        return [Text(f"{repr(self).strip('<>')}, {repr(self.tokenizer).strip('<>')}"), *self.model._shown()]

    def __reduce__(self) -> tuple[type, tuple]:
        """Pickle and copy model and tokenizer; processes and what was computed in advance stay behind."""
        return type(self), (self.model, self.tokenizer, self._name)

    @contextmanager
    def arithmetic(self, threads: int | None = None) -> Iterator[None]:
        """Limit BLAS to one thread for small models, and silence overflow warnings (`check_finite` reports them).

        A decoding step of a small model is too small to be divided: two threads were measured several times slower.
        """
        with (
            self._threads.limit(limits=threads or self._most_threads, user_api="blas"),
            np.errstate(over="ignore", divide="ignore", invalid="ignore"),
        ):
            yield

    def check_finite(self, log_probs: Sequence[float]) -> None:
        """Raises ModelError where one of them is not."""
        if not all(map(math.isfinite, log_probs)):
            raise ModelError(
                f"{self._name} computes numbers that are not finite: it is damaged, or its training diverged"
            )

    def bad_ids(self, words: Sequence[str]) -> list[list[int]]:
        """Give the ids of words that are not to be written.

        Raises ConfigError for one that is empty, or a text alone, and DataError for one that no output could hold.
        """
        words = text_list(words, "bad words", "bad word {}".format)
        if not all(words):
            raise ConfigError("a bad word is empty: leave it out")
        ids = []
        for number, word in enumerate(words, start=1):
            check_length(word, f"bad word {number}", self.model.config.max_length)
            try:
                ids.append(self.tokenizer.encode(word))
            except DataError as error:
                raise DataError(f"bad word {number} cannot be read: {error}") from error
            if EOS in ids[-1]:  # which no text has, but where it is ids
                raise ConfigError(f"bad word {number} has the end mark in it, and outputs must end: leave it out")
            with suppress(DataError):  # a tokenizer of characters that knows no space writes none
                ids.append(self.tokenizer.encode(f" {word.lstrip(' ')}"))
        return ids
