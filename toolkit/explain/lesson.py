"""What a model is taught in an explanation: one pair of sentences, or one text, as it would meet it in training."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from toolkit.data.sentences import sentence_ids
from toolkit.errors import ConfigError, DataError
from toolkit.explain.teacher_forcing import one_text, pair_batch
from toolkit.explain.tokens import labels
from toolkit.functional.arrays import Array
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT, GPTBatch
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqBatch
from toolkit.tokenization.base import Tokenizer
from toolkit.tokenization.special import BOS, EOS, SPECIAL_TOKENS
from toolkit.training.config import TrainingConfig
from toolkit.translator import Translator

# No tokenizer makes so few tokens of so many characters: what comes behind them is not even tokenized.
_MOST_CHARACTERS = 64

DEFAULT_PAIR = "I am a boy", "म केटा हुँ"
DEFAULT_TEXT = "Long ago, a little boy named Bikash lived near a big forest."


@dataclass(frozen=True)
class Lesson:
    """A batch of one, and how its tokens are called."""

    model: Seq2Seq | GPT
    tokenizer: Tokenizer
    batch: Seq2SeqBatch | GPTBatch
    config: TrainingConfig  # how the model was trained
    is_known: bool  # False: the model does not say, and these are the settings that training has by itself
    cut: tuple[str, ...] = ()

    @property
    def is_pair(self) -> bool:
        return isinstance(self.batch, Seq2SeqBatch)

    @property
    def tokens(self) -> int:
        return len(self.batch.labels)

    def names(self, ids: Array) -> list[str]:
        return labels(self.tokenizer, ids)

    @property
    def prior(self) -> Array:
        """(V,) equal shares for the end mark and all tokens of text: what label smoothing spreads to."""
        occurs = np.arange(self.tokenizer.vocab_size) >= len(SPECIAL_TOKENS)
        occurs[EOS] = True
        return (occurs / occurs.sum()).astype(self.model.vector.dtype)


def lesson(owner: Translator | LanguageModel, texts: Sequence[str], metrics: Mapping[str, Any]) -> Lesson:
    """Two texts for a translator, one for a language model; none are ours.

    metrics: what the model's directory says of its training. What is longer than the model reads is cut, and told.

    Raises ConfigError for another number of texts, DataError for texts that are blank or not Unicode.
    """
    config = training_config(metrics)
    known, config = config is not None, config or TrainingConfig()
    make = _pair if isinstance(owner, Translator) else _text
    batch, cut = make(owner, texts)
    return Lesson(owner.model, owner.tokenizer, batch, config, known, tuple(cut))


def training_config(metrics: Mapping[str, Any]) -> TrainingConfig | None:
    """The settings that a model was trained with, as far as its directory tells them."""
    settings = metrics.get("settings")
    training = settings.get("training") if isinstance(settings, dict) else None
    if not isinstance(training, dict):
        return None
    known = {field.name for field in fields(TrainingConfig)}
    try:
        return TrainingConfig(**{name: value for name, value in training.items() if name in known})
    except (ConfigError, TypeError):
        return None


def _pair(owner: Translator, texts: Sequence[str]) -> tuple[Seq2SeqBatch, list[str]]:
    if len(texts) not in (0, 2):
        raise ConfigError(
            f"a translator is taught with a sentence and its translation: {len(texts)} {_texts(texts)} given"
        )
    source, target = texts or DEFAULT_PAIR
    cut: list[str] = []
    ids = []
    for name, tokenizer, text, ignore_case in (
        ("the sentence", owner.tokenizer.source, source, owner.model.config.ignore_case),
        ("the translation", owner.tokenizer, target, False),
    ):
        (own,) = sentence_ids(tokenizer, [shortened(text, owner.limit)], ignore_case)
        if not own:
            raise DataError(f"{name} is blank: there is nothing to learn from")
        ids.append(_fitting(own, owner.limit - 1, name, cut))
    return pair_batch(*ids), cut


def _text(owner: LanguageModel, texts: Sequence[str]) -> tuple[GPTBatch, list[str]]:
    if len(texts) > 1:
        raise ConfigError(f"a language model is taught with one text: {len(texts)} {_texts(texts)} given")
    text = unicodedata.normalize("NFC", texts[0]) if texts else DEFAULT_TEXT
    ids = owner.tokenizer.encode(shortened(text, owner.model.config.max_length))
    cut: list[str] = []
    begin = owner.model.config.begin
    marked = [BOS, *ids, EOS] if begin else ids
    if not ids or len(marked) < 2:
        raise DataError("the text has less than two tokens: there is nothing to predict")
    return one_text(_fitting(marked, owner.model.config.max_length + 1, "the text", cut)), cut


def shortened(text: str, tokens: int) -> str:
    """The text, or as much of its beginning as surely makes more than that many tokens."""
    return text[: _MOST_CHARACTERS * (tokens + 1)]


def _texts(texts: Sequence[str]) -> str:
    return "text is" if len(texts) == 1 else "texts are"


def _fitting(ids: list[int], most: int, name: str, cut: list[str]) -> list[int]:
    if len(ids) > most:
        cut.append(f"Of {name}, the first {most} tokens are read: the model reads no more at once.")
    return ids[:most]
