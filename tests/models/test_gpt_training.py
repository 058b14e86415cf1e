"""Where the language model begins, and that it learns."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.checks import batch_of_texts, gpt_batch, small_gpt_config
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.presets import PRESETS
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.training.optimizer import Adam, clip_scale, make_schedule, sum_of_squares


def fresh(config: GPTConfig, seed: int = 0) -> GPT:
    model = GPT(config)
    model.allocate()
    model.initialize(np.random.default_rng(seed))
    return model


def shallow(config: GPTConfig) -> GPTConfig:
    """What makes a model large and has no part in the first loss, made small."""
    return replace(config, vocab_size=min(config.vocab_size, 500), layers=2 if config.d_model < 512 else 1)


@pytest.mark.parametrize("name", [name for name, config in PRESETS.items() if config.d_model <= 1024])
def test_a_fresh_model_is_as_good_as_guessing(name: str) -> None:
    model = fresh(shallow(PRESETS[name]))
    vocabulary = model.config.vocab_size
    sums = model.loss(gpt_batch(np.random.default_rng(1), (60, 40), vocabulary), Tape())
    assert abs(sums.loss / sums.tokens - math.log(vocabulary)) < 0.3


def test_initial_values_are_those_of_gpt_2() -> None:
    settings = {"d_model": 128, "d_ff": 512, "vocab_size": 300, "max_length": 256}
    config = small_gpt_config(**settings, layers=8, bias=True, tie=False, positions="learned", num_key_value_heads=2)
    narrow = 0.02 / math.sqrt(2 * 8)
    for name, value in fresh(config).arrays().items():
        if name.endswith("bias"):
            assert not value.any(), name
        elif name.endswith("gain"):
            assert (value == 1).all(), name
        else:
            into_stream = name.endswith(("attention.layer.output.weight", "down.weight"))
            assert value.std() == pytest.approx(narrow if into_stream else 0.02, rel=0.03), name
            assert abs(value.mean()) < 0.001, name


def test_matrices_decay_and_nothing_else() -> None:
    """The groups of nanoGPT: embeddings decay as all matrices do, gains and biases do not."""
    model = GPT(small_gpt_config(bias=True, positions="learned"))
    model.allocate()
    model.vector[: model.decayed] = 1
    for name, value in model.arrays().items():
        assert (value == name.endswith(("weight", "table"))).all(), name


@pytest.mark.parametrize(
    "settings",
    [
        {"positions": "learned", "activation": "gelu", "bias": True, "tie": False},
        {"positions": "rotary", "activation": "swiglu", "norm": "rms", "num_key_value_heads": 2},
    ],
    ids=["gpt-2", "llama"],
)
def test_one_batch_is_learned_by_heart(settings: dict) -> None:
    model = fresh(small_gpt_config(d_model=32, d_ff=64, max_length=16, **settings))
    rng = np.random.default_rng(2)
    texts = [np.concatenate(([first], rng.integers(0, 30, length))) for first, length in enumerate((16, 9, 16, 3, 12))]
    batch, gradient, memory = batch_of_texts(texts), np.zeros_like(model.vector), Pool()
    optimizer, schedule = Adam(0.9, 0.95, 1e-8, 0.01), make_schedule("cosine", 2e-2, 20, 160, 1e-3)
    moments = np.zeros_like(gradient), np.zeros_like(gradient)
    for update in range(1, 161):
        gradient[:] = 0
        tape = Tape(model.views(gradient), memory=memory)
        tokens = model.loss(batch, tape).tokens
        model.backward(tape)
        scale = clip_scale(math.sqrt(sum_of_squares(gradient)) / tokens, 1.0) / tokens
        optimizer.update(model.vector, gradient, moments, update, schedule(update), scale, model.decayed)
    sums = model.loss(batch, Tape())
    assert sums.loss / sums.tokens < 0.01
