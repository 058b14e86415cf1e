"""A lesson for a model: one pair of sentences, or one text, as training gives it, and a pass with teacher forcing.

The model reads the right tokens whatever it would have said itself, so that all positions are scored in one pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from toolkit.decoding.sampling import log_sum_exp
from toolkit.decoding.state import DecoderState, GPTState, Seq2SeqState
from toolkit.errors import ConfigError, DataError
from toolkit.explain.reading import DEFAULT_PAIR, default_text, source_ids, text_ids
from toolkit.functional.arrays import Array
from toolkit.functional.output_loss import LossSums
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT, GPTBatch, text_batch
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqBatch, translation_batch
from toolkit.nn.memory import Pool
from toolkit.nn.module import Model
from toolkit.nn.tape import Recorder, Tape
from toolkit.pages.writing import labels
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.special import BOS, EOS, SPECIAL_TOKENS
from toolkit.training.config import TrainingConfig
from toolkit.translator import Translator


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

    def columns(self, *ids: Array) -> list[list[str]]:
        """Name the ids of several columns, so that all names tell ids apart.  Shapes: (N,) each."""
        names = self.names(np.concatenate(ids))
        return [names[start : start + len(ids[0])] for start in range(0, len(names), len(ids[0]))]

    @property
    def prior(self) -> Array:
        """Spread label smoothing: (V,) equal shares for the EOS and all tokens of text."""
        occurs = np.arange(self.tokenizer.vocab_size) >= len(SPECIAL_TOKENS)
        occurs[EOS] = True
        return (occurs / occurs.sum()).astype(self.model.vector.dtype)


def lesson(owner: Translator | LanguageModel, texts: Sequence[str], metrics: Mapping[str, Any]) -> Lesson:
    """Encode two texts for a translator or one for a language model; where none is given, examples of our own.

    metrics: the model directory's record of its training. Text longer than the model reads is cut, and `cut` says so.

    Raises ConfigError for another number of texts, and where ours is none for this model; DataError for texts that are
    blank or not Unicode.
    """
    config, cut = training_config(metrics), []
    if isinstance(owner, Translator):
        batch = _pair(owner, texts or DEFAULT_PAIR[:: -1 if _settings(metrics).get("reverse") else 1], cut)
    else:
        batch = _text(owner, texts, cut)
    return Lesson(owner.model, owner.tokenizer, batch, config or TrainingConfig(), config is not None, tuple(cut))


def training_config(metrics: Mapping[str, Any]) -> TrainingConfig | None:
    """Read the settings of a model's training from its metrics; None where they are missing or damaged."""
    training = _settings(metrics).get("training")
    if not isinstance(training, dict):
        return None
    known = {field.name for field in fields(TrainingConfig)}
    try:
        return TrainingConfig(**{name: value for name, value in training.items() if name in known})
    except (ConfigError, TypeError):
        return None


def _settings(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    settings = metrics.get("settings")
    return settings if isinstance(settings, dict) else {}


def _pair(owner: Translator, texts: Sequence[str], cut: list[str]) -> Seq2SeqBatch:
    if len(texts) != 2:
        given = "1 text is" if len(texts) == 1 else f"{len(texts)} texts are"
        raise ConfigError(f"a translator is taught with a sentence and its translation: {given} given")
    most = owner.limit - 1  # the end mark counts
    source = source_ids(owner, texts[0], most, cut, "The sentence")
    target = source_ids(owner, texts[1], most, cut, "The translation", source=False)
    if not (source and target):
        raise DataError(f"the {'translation' if source else 'sentence'} is blank: there is nothing to learn from")
    return translation_batch([np.array(source, np.int64)], [np.array(target, np.int64)])


def _text(owner: LanguageModel, texts: Sequence[str], cut: list[str]) -> GPTBatch:
    if len(texts) > 1:
        raise ConfigError(f"a language model is taught with one text: {len(texts)} texts are given")
    begin, most = owner.model.config.begin, owner.model.config.max_length + 1  # the last one is a label only
    ids = text_ids(owner.tokenizer, texts[0] if texts else default_text(owner.tokenizer), most - begin, cut)
    marked = [BOS, *ids, EOS][:most] if begin else ids
    if not ids or len(marked) < 2:
        raise DataError("the text has less than two tokens: there is nothing to predict")
    return text_batch([np.array(marked, np.int64)])


class TeacherForcing(NamedTuple):
    """One pass with teacher forcing, token by token, without dropout."""

    losses: Array  # (N,) -log p(label), in float64
    best: Array  # (N,) the most probable token
    best_probabilities: Array  # (N,)
    mean_log_probs: Array  # (N,) the mean of log p over the tokens that smoothing spreads to
    attention: Array  # (T, S) of the first layer that reads the target, the mean of its heads

    @property
    def loss(self) -> float:
        return float(self.losses.mean())


def teacher_forcing(model: Seq2Seq | GPT, batch: Seq2SeqBatch | GPTBatch, prior: Array) -> TeacherForcing:
    """Read the labels' probabilities from one forward pass.

    prior: (V,) the shares of the tokens that label smoothing spreads to.
    """
    decoder = model.trunk.decoder if isinstance(model, GPT) else model.decoder
    attention = decoder.blocks[0].attention.layer
    recorder = Recorder([attention], ["probabilities"])
    tape = Tape(memory=Pool(), recorder=recorder)
    logits = model.output.logits(model.forward(batch, tape), tape)
    totals, best = log_sum_exp(logits), logits.argmax(axis=1)
    rows = np.arange(len(logits))
    return TeacherForcing(
        totals - logits[rows, batch.labels],
        best,
        np.exp(logits[rows, best] - totals),
        logits @ prior - totals,
        recorder.attention_maps(attention)[0].mean(axis=0),
    )


def step_by_step(model: Seq2Seq | GPT, batch: Seq2SeqBatch | GPTBatch) -> Array:
    """Compute -log p(label), (N,), as decoding finds it: one token at a time over the KV cache."""
    if isinstance(model, GPT):
        state: DecoderState = GPTState(model, [batch.inputs[:1]], Pool(), new_tokens=len(batch.labels))
    else:
        state = Seq2SeqState(model, [batch.sources[:-1]], Pool(), room=len(batch.labels))
    losses = np.empty(len(batch.labels))
    for step, (read, label) in enumerate(zip(batch.inputs, batch.labels, strict=True)):
        logits = state.logits(np.array([read]))
        losses[step] = log_sum_exp(logits)[0] - logits[0, label]
    return losses


def gradient_of(model: Model, batch: Seq2SeqBatch | GPTBatch) -> tuple[LossSums, Array]:
    """Run a backward pass -> (loss sums, the gradient of the summed loss as one vector, laid out as the model's)."""
    gradient = np.zeros_like(model.vector)
    tape = Tape(model.views(gradient), memory=Pool())
    sums = model.loss(batch, tape)
    model.backward(tape)
    return sums, gradient
