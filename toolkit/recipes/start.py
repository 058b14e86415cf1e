"""The model that a recipe goes on with (`start`): its shape is kept, and its tokenizer, and what export needs of it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from toolkit.api import load_language_model, load_translator
from toolkit.data.store import RaggedStore
from toolkit.errors import ConfigError, ModelError
from toolkit.models.gpt import ABSENT, GPTConfig
from toolkit.models.reward import ActorCriticConfig, settings_like
from toolkit.models.seq2seq import Seq2SeqConfig
from toolkit.models.storage import described_model, holds_a_model, read_model, read_origin, refuse_int8
from toolkit.nn.module import Model
from toolkit.speller import NAMES
from toolkit.text_model import TextModel
from toolkit.tokenization import ByteTokenizer, Tokenizer
from toolkit.tokenization.sentencepiece import FILE_NAME
from toolkit.tokenization.special import EOS, UNK
from toolkit.training.config import TrainingConfig

_BYTE = re.compile("<0x[89A-Fa-f][0-9A-Fa-f]>")  # of a character beyond ASCII
_AT_ONCE = 1 << 20  # ids
_WIDTH = 128  # of the models that ship

# By the class of a model's settings: what loads it, and the recipe that goes on with a model of the other kind.
_LOADERS: dict[type, tuple[Callable[..., TextModel], str]] = {
    Seq2SeqConfig: (load_translator, "the recipe of language models"),
    GPTConfig: (load_language_model, "the recipe of translation"),
}


class Start(NamedTuple):
    """A model to go on with."""

    model: Model
    tokenizer: Tokenizer
    origin: dict[str, Any]  # what it passes on to those that begin as it
    names: str = ""  # directory of the model that spells its unknown words; "" for none


def read_start(name: str, kind: type) -> Start:
    """Read the model to go on with, whose settings are of this class.

    Raises ModelError where there is none, and for one without a tokenizer, which can learn nothing from texts.
    """
    load, other_recipe = _LOADERS[kind]

    def read(directory: Path) -> Start:
        refuse_int8(directory)
        found = load(directory, other_recipe)
        if found.by_ids:
            told = "has no tokenizer, without which nothing can be learned from text"
            raise ModelError(f"{directory} {told}: give another model")
        names = str(directory / NAMES) if holds_a_model(directory / NAMES) else ""
        return Start(found.model, found.tokenizer, read_origin(directory), names)

    return read_model(name, read)


def config_of_start(name: str, kind: type) -> Any:
    """Read the settings of a model to go on with, of which only the dropout is for training to choose.

    Raises ModelError where there is no model of this kind.
    """
    read_model(name, refuse_int8)
    config = read_model(name, described_model)[0].config
    if kind is GPTConfig and type(config) is ActorCriticConfig:
        return settings_like(GPTConfig, config)
    return config if type(config) is kind else read_start(name, kind).model.config  # which says why it is none


def tuned(training: TrainingConfig, config: Any) -> TrainingConfig:
    """Give settings of training that fit a model of width 128 to one of this config: wider ones take smaller steps.

    By the square of the width: 3e-3 becomes 1.9e-4 at 512, and 4.7e-5 at 1024, which is usual for models that large.
    """
    rate = training.learning_rate * min(1.0, (_WIDTH / config.d_model) ** 2)
    return replace(training, learning_rate=float(f"{rate:.2g}"))


def samples_subwords(name: str) -> bool:
    """Say if the tokenizer of a model can cut a text into other pieces each time: those that were made here can."""
    return read_model(name, lambda directory: (directory / FILE_NAME).exists())


def check_shape(name: str, config: Any) -> None:
    """Raise ConfigError where settings of a model are not those of the one to go on with.

    Dropout is for training to choose, and how a text is divided is no shape.
    """
    own, asked = asdict(config_of_start(name, type(config))), asdict(config)
    other = [key for key in own if own[key] != asked[key] and not key.endswith(("_dropout", "split_sentences"))]
    if other:
        flags = ", ".join(f"--model.{key.replace('_', '-')}" for key in other)
        raise ConfigError(f"{name}, which --start gives, has a shape of its own: leave out {flags}")


def can_end(model: Model) -> bool:
    """Say if a model can write the end mark, which some from elsewhere do not have."""
    bias = model.output.bias
    return bias is None or bias.data[EOS] > ABSENT / 2


def strange_tokens(tokenizer: Tokenizer, texts: Mapping[str, RaggedStore]) -> list[str]:
    """Say what a vocabulary that was made for other texts lacks, in sentences.  texts: their ids, by what they are."""
    spelled = [index for index, piece in enumerate(tokenizer.pieces) if _BYTE.fullmatch(piece)]
    if isinstance(tokenizer, ByteTokenizer):
        spelled = []
    lines = []
    for what, store in texts.items():
        counts = np.zeros(tokenizer.vocab_size, np.int64)
        for begin in range(0, len(store.values), _AT_ONCE):
            counts += np.bincount(store.values[begin : begin + _AT_ONCE], minlength=len(counts))
        total, lost, single = max(int(counts.sum()), 1), int(counts[UNK]), int(counts[spelled].sum())
        if lost:
            lines.append(f"{what}: {_share(lost, total)} are <unk>: their text is not in the vocabulary, and is lost")
        if single:
            lines.append(f"{what}: {_share(single, total)} are single bytes of characters not in the vocabulary")
    return lines


def _share(count: int, total: int) -> str:
    return f"{count:,} of {total:,} tokens ({100 * count / total:.1f} %)"
