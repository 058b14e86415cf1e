"""A decoding step against the ordinary forward over the same cache, for every kind of model."""

import copy
import itertools

import numpy as np
import pytest

from toolkit.decoding import weights
from toolkit.decoding.cache import Cache
from toolkit.decoding.step import Step
from toolkit.decoding.weights import PackedWeights
from toolkit.functional.tuning import Choice
from toolkit.models.seq2seq import source_rows
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape

SEQ2SEQ = [
    {"norm_position": "post", "activation": "gelu"},
    {"norm_position": "pre", "activation": "silu", "positions": "learned"},
    {"output_bias": True, "scale_embedding": False, "tie": "all", "positions": "sinusoidal_halves"},
]
GPT = [
    {"norm": "rms", "activation": "swiglu", "num_key_value_heads": 2},
    {"norm": "layer", "activation": "gelu_tanh", "positions": "learned", "bias": True, "output_bias": True},
    {"num_key_value_heads": 1, "positions": "sinusoidal", "tie": True, "bias": True, "activation": "swiglu"},
    {
        "qk_norm": True,
        "head_dim": 6,
        "num_key_value_heads": 2,
        "rotary_scaling": "yarn",
        "rotary_attention_factor": 1.2,
    },
]


class Pair:
    """A step and the ordinary forward, each with a cache of its own, that read the same."""

    def __init__(self, model, cache, memory=None):
        self.model, self.memory = model, memory
        self.cache, self.plain = cache, copy.deepcopy(cache, {id(module): module for module in cache._layers})
        self.step = Step(model, cache, PackedWeights(), Pool())

    def read(self, ids):
        """The same ids to both; returns the logits."""
        found = self.step.logits(ids).copy()
        lengths = np.ones(len(ids), np.int64)
        rows = self.plain.rows(lengths)
        if self.memory is None:
            x = self.model.read(ids, rows, Tape())
        else:
            x = self.model.decode(ids, self.memory, rows, Tape())
        self.plain.advance(lengths)
        expected = self.model.output.logits(x, Tape())
        assert found.dtype == expected.dtype
        tolerance = 1e-10 if found.dtype == np.float64 else 2e-5
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())
        return found

    def select(self, texts, sequences):
        for cache in (self.cache, self.plain):
            cache.select(np.array(texts), np.array(sequences))


def translation(model, sources):
    tape = Tape()
    ids, rows = source_rows(sources)
    memory, caches = model.encode(ids, rows, tape), [Cache(len(sources), rows) for _ in range(2)]
    pair = Pair(model, caches[0], memory)
    pair.plain = caches[1]
    for block in model.decoder.blocks:
        block.cross_attention.layer.remember(memory, caches[0], tape)
    return pair


def continuation(model, lengths):
    generator, pair = np.random.default_rng(2), Pair(model, Cache(len(lengths)))
    ids, lengths = generator.integers(16, 37, sum(lengths)), np.array(lengths)
    for cache in (pair.cache, pair.plain):
        model.read(ids, cache.rows(lengths), Tape())
        cache.advance(lengths)
    return pair


def follow(pair, dtype):
    """Greedy at first, then two beams and three, then fewer texts, in an order of their own."""
    generator = np.random.default_rng(3)
    for texts, sequences in (
        (None, None),
        (None, None),
        ([0, 1, 2], [0, 0, 1, 1, 2, 2]),
        ([0, 1, 2], [1, 1, 2, 3, 5, 4]),
        ([0, 2], [0, 1, 1, 4, 5, 5]),
        ([1, 0], [3, 3, 4, 2, 0, 1]),
        ([1], [4]),
    ):
        if texts:
            pair.select(texts, sequences)
        assert pair.read(generator.integers(16, 37, len(pair.cache.lengths))).dtype == dtype


@pytest.mark.parametrize("settings", SEQ2SEQ)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_step_of_a_translator_is_its_forward(random_model, make_sources, settings, dtype):
    follow(translation(random_model(dtype, **settings), make_sources([4, 7, 2])), dtype)


@pytest.mark.parametrize("settings", GPT)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lengths", [[2, 2, 2], [4, 0, 3]])
def test_a_step_of_a_language_model_is_its_forward(random_gpt, settings, dtype, lengths):
    follow(continuation(random_gpt(dtype, **settings), lengths), dtype)


def test_many_rows_and_odd_sizes(random_gpt):
    """Sizes at which products are computed in several parts."""
    pair = continuation(random_gpt(np.float32, d_model=144, vocab_size=301, num_heads=3, d_ff=1024), [1] * 33)
    for count in (33, 33, 16, 12, 2, 1):
        pair.select(range(count), range(count))
        pair.read(np.random.default_rng(1).integers(16, 37, count))


@pytest.mark.parametrize("choice", [*itertools.product(("vecdot", "matmul", "rows"), ("vecdot", "packed"), (64, 0))])
def test_whichever_kernels_are_chosen(random_gpt, monkeypatch, choice):
    monkeypatch.setattr(weights, "choose", lambda _: Choice(*choice))
    pair = continuation(random_gpt(np.float32, d_model=48, vocab_size=70, num_heads=3), [1] * 17)
    for count in (17, 4, 3, 2, 1):
        pair.select(range(count), range(count))
        pair.read(np.random.default_rng(1).integers(16, 37, count))


@pytest.mark.parametrize("one", ["rows", "vecdot", "matmul"])
@pytest.mark.parametrize("settings", SEQ2SEQ)
def test_one_row_by_every_kernel(random_model, make_sources, monkeypatch, settings, one):
    monkeypatch.setattr(weights, "choose", lambda _: Choice(one, "packed", 64))
    pair = translation(random_model(np.float64, **settings), make_sources([5]))
    for _ in range(3):
        pair.read(np.random.default_rng(1).integers(16, 37, 1))


@pytest.mark.parametrize("settings", [SEQ2SEQ[1], GPT[0], GPT[1], GPT[3]])
def test_a_model_whose_copies_are_too_large(random_model, random_gpt, make_sources, monkeypatch, settings):
    """Nothing is folded then, and the rest is the same."""
    monkeypatch.setattr(weights, "_MOST_PACKED_BYTES", 1000)
    if settings in SEQ2SEQ:
        follow(translation(random_model(np.float64, **settings), make_sources([4, 7, 2])), np.float64)
    else:
        follow(continuation(random_gpt(np.float64, **settings), [4, 0, 3]), np.float64)


@pytest.mark.parametrize(
    ("one", "beams", "expected"), [("rows", 1, 39), ("vecdot", 1, 51), ("vecdot", 4, 53), ("vecdot", 32, 53)]
)
def test_a_step_takes_this_many_operations(random_model, make_sources, monkeypatch, one, beams, expected):
    """Each is a call of NumPy, or a handful of them: with few rows they take as long as the arithmetic."""
    monkeypatch.setattr(weights, "choose", lambda _: Choice(one, "packed", 64))
    pair = translation(random_model(np.float32, tie="all"), make_sources([5]))
    pair.select([0], [0] * beams)
    pair.read(np.full(beams, 20))
    [(recording, _)] = pair.step._kept.values()
    assert len(recording) == expected


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("beams", [1, 3])
def test_scores_beyond_the_range_of_exp_are_no_matter(random_gpt, size, beams):
    """Of enormous scores too only the differences count."""
    model = random_gpt(np.float32, positions="rotary")
    for block in model.trunk.decoder.blocks:
        block.attention.layer.query_key_value.weight.data *= size
    pair = continuation(model, [3, 5])
    pair.select([0, 1], np.arange(2).repeat(beams))
    for _ in range(3):
        logits = pair.step.logits(np.random.default_rng(1).integers(16, 37, 2 * beams))
        assert np.isfinite(logits).all()
    assert pair.step._careful == (size > 1)
