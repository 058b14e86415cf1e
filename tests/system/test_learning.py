"""A transformer that is right learns to copy and to sort digits almost perfectly, and quickly.

The tasks, the sizes and the thresholds are those of Sockeye's system tests (2+2 layers, D 32, F 64; at most 4,000
updates of 16 sentences to copy, 6,000 of 90 target tokens to sort). No padding bug, wrong mask, wrong gradient or
wrong search gets through them.
"""

import functools
import math

import numpy as np
import pytest

from toolkit.data.batches import Example
from toolkit.decoding import generate
from toolkit.evaluation.scores import bleu_chrf
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run
from toolkit.training.trainer import Trainer
from toolkit.training.translation import TranslationTask

FIRST_DIGIT, VOCABULARY = 16, 26


class DigitsTokenizer:
    """Ids are digits already; a run saves its tokenizer, and there is nothing to save."""

    def save(self, directory) -> None:
        pass


def examples(count: int, answer, rng: np.random.Generator) -> list[Example]:
    """Sequences of one to nine digits with what is to be said about them."""
    sources = [rng.integers(FIRST_DIGIT, VOCABULARY, rng.integers(1, 10)) for _ in range(count)]
    return [Example(source.astype(np.int32), answer(source).astype(np.int32)) for source in sources]


def as_text(ids) -> str:
    return " ".join(str(token - FIRST_DIGIT) for token in ids)


@pytest.mark.parametrize(
    ("answer", "heads", "updates", "perplexity", "bleu"),
    [(np.array, 4, 700, 1.02, 98), (np.sort, 2, 1000, 1.03, 97)],
    ids=["copy", "sort"],
)
def test_digits_are_learned(answer, heads, updates, perplexity, bleu, tmp_path):
    rng = np.random.default_rng(13)
    train, valid, test = (examples(count, answer, rng) for count in (10_000, 300, 300))
    seen = {(*example.source,) for example in train}
    test = [example for example in test if (*example.source,) not in seen]
    assert len(test) > 100
    config = Seq2SeqConfig(
        vocab_size=VOCABULARY,
        d_model=32,
        num_heads=heads,
        d_ff=64,
        encoder_layers=2,
        decoder_layers=2,
        embedding_dropout=0,
        attention_dropout=0,
        activation_dropout=0,
        residual_dropout=0,
    )
    settings = TrainingConfig(
        updates=updates,
        tokens_per_batch=90,
        learning_rate=5e-3,
        weight_decay=0,
        label_smoothing=0,
        validate_every=updates,
        best_by="loss",
        workers=1,
    )
    run = Run(tmp_path / "run", {})
    run.create()
    task = TranslationTask(train, valid, VOCABULARY, settings.label_smoothing)
    trainer = Trainer(
        functools.partial(Seq2Seq, config),
        task,
        settings,
        run,
        DigitsTokenizer(),
        quiet=True,
    )
    state = trainer.train()
    assert math.exp(state.scores["loss"]) <= perplexity
    outputs = generate(trainer.model, [example.source.tolist() for example in test])
    scores = bleu_chrf([as_text(e.target) for e in test], [as_text(best.ids) for best, *_ in outputs])
    assert scores.bleu >= bleu
