"""What the language model computes, whatever its parameters are."""

import math
from itertools import product

import numpy as np
import pytest

from tests.checks import DROPOUT, batch_of_texts, gpt_batch, random_model, small_gpt_config
from tests.models.reference_gpt import reference_logits, reference_loss
from toolkit.decoding.cache import Cache
from toolkit.errors import ConfigError
from toolkit.models.gpt import ABSENT, GPT, GPTBatch, GPTConfig
from toolkit.nn import rows as rows_module
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape

LENGTHS = (3, 8, 1, 5, 5, 8)
CONFIGS = [
    small_gpt_config(positions="learned", bias=True, output_bias=True),
    small_gpt_config(positions="sinusoidal", activation="gelu_tanh", num_key_value_heads=2, tie=False),
    small_gpt_config(positions="sinusoidal_halves", activation="silu", norm="rms"),
    small_gpt_config(positions="rotary", activation="swiglu", norm="rms", num_key_value_heads=2),
    small_gpt_config(positions="rotary", activation="relu", bias=True, num_key_value_heads=1, rotary_base=50.0),
]

every_config = pytest.mark.parametrize(
    "config", CONFIGS, ids=lambda config: f"{config.positions} {config.num_key_value_heads}"
)


def texts_of(batch: GPTBatch) -> list[slice]:
    starts, lengths = batch.rows.starts, batch.rows.lengths
    return [slice(start, start + length) for start, length in zip(starts, lengths, strict=True)]


def read(model: GPT, ids: np.ndarray, rows: Rows | None = None) -> np.ndarray:
    return model.read(ids, rows or Rows(np.array([len(ids)])), Tape())


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "silu", "swiglu"])
@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "sinusoidal_halves", "rotary"])
def test_against_a_plain_reimplementation(activation: str, positions: str) -> None:
    rng = np.random.default_rng(0)
    for norm, bias, heads, tie in product(("layer", "rms"), (True, False), (0, 1, 2), (True, False)):
        settings = {"norm": norm, "bias": bias, "num_key_value_heads": heads, "tie": tie, "layers": 1 + tie}
        config = small_gpt_config(**settings, activation=activation, positions=positions, norm_eps=0.01)
        model, batch = random_model(config, rng), gpt_batch(rng, (6, 2))
        logits = model.output.logits(model.read(batch.inputs, batch.rows, Tape()), Tape())
        expected = [reference_logits(config, model.arrays(), batch.inputs[text]) for text in texts_of(batch)]
        np.testing.assert_allclose(logits, np.concatenate(expected), rtol=1e-9, atol=1e-11, err_msg=str(config))


@every_config
def test_the_loss_against_a_plain_reimplementation(config: GPTConfig) -> None:
    rng = np.random.default_rng(1)
    model, batch = random_model(config, rng), gpt_batch(rng, LENGTHS)
    sums = model.loss(batch, Tape())
    losses = [reference_loss(config, model.arrays(), batch.inputs[t], batch.labels[t]) for t in texts_of(batch)]
    assert sums.tokens == sum(LENGTHS)
    assert sums.loss == pytest.approx(sum(losses), rel=1e-12)
    assert sums.negative_log_likelihood == pytest.approx(sum(losses), rel=1e-12)
    prior = np.zeros(30)
    prior[[3, 20, 29]] = 0.5, 0.2, 0.3
    smoothed = model.loss(batch, Tape(), 0.1, prior)
    towards = [
        share * reference_loss(config, model.arrays(), batch.inputs[t], np.full(t.stop - t.start, token))
        for t in texts_of(batch)
        for token, share in ((3, 0.5), (20, 0.2), (29, 0.3))
    ]
    assert smoothed.negative_log_likelihood == pytest.approx(sum(losses), rel=1e-12)
    assert smoothed.loss == pytest.approx(0.9 * sum(losses) + 0.1 * sum(towards), rel=1e-12)


@every_config
def test_what_comes_later_is_not_seen(config: GPTConfig) -> None:
    """Changing one token changes nothing before it, not by a bit, and everything from there on."""
    rng = np.random.default_rng(2)
    model, batch = random_model(config, rng), gpt_batch(rng, LENGTHS)
    before = read(model, batch.inputs, batch.rows)
    for changed in (0, 4, 7):  # of the second text, which is as long as the context
        begin, end = texts_of(batch)[1].start, texts_of(batch)[1].stop
        ids = batch.inputs.copy()
        ids[begin + changed] = (ids[begin + changed] + 1) % 30
        after = read(model, ids, batch.rows)
        later = slice(begin + changed, end)
        assert (after[later] != before[later]).all()
        after[later] = before[later]
        np.testing.assert_array_equal(after, before)  # the other texts too


@pytest.mark.parametrize("scores", [1 << 14, 30], ids=["wide spans", "narrow spans"])
@every_config
def test_a_batch_is_its_texts_one_by_one(monkeypatch, config: GPTConfig, scores: int) -> None:
    monkeypatch.setattr(rows_module, "_SPAN_SCORES", scores)
    rng = np.random.default_rng(3)
    model, batch = random_model(config, rng), gpt_batch(rng, LENGTHS)
    together = read(model, batch.inputs, batch.rows)
    for text in texts_of(batch):
        np.testing.assert_allclose(read(model, batch.inputs[text]), together[text], rtol=1e-10, atol=1e-12)


@every_config
def test_reading_over_a_cache_is_reading_at_once(config: GPTConfig) -> None:
    """Texts of unequal length, first in pieces of unequal length, then token by token up to the context."""
    rng = np.random.default_rng(4)
    model = random_model(config, rng)
    texts = [rng.integers(0, 30, 8) for _ in range(4)]
    cache, seen = Cache(len(texts)), np.zeros(len(texts), int)
    found: list[list] = [[] for _ in texts]
    for lengths in ([3, 1, 4, 2], [1, 3, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1]):
        ids = np.concatenate([text[s : s + n] for text, s, n in zip(texts, seen, lengths, strict=True)])
        rows = cache.rows(np.array(lengths))
        x = model.read(ids, rows, Tape())
        cache.advance(np.array(lengths))
        for own, piece in zip(found, np.split(x, np.cumsum(lengths)[:-1]), strict=True):
            own.append(piece)
        seen += lengths
    for text, count, pieces in zip(texts, seen, found, strict=True):
        np.testing.assert_allclose(np.concatenate(pieces), read(model, text[:count]), rtol=1e-10, atol=1e-12)
    assert seen.max() == config.max_length


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary"])
def test_only_the_distance_counts_for_rotary_positions(positions: str) -> None:
    rng = np.random.default_rng(5)
    model = random_model(small_gpt_config(positions=positions, max_length=40), rng)
    ids, rows = rng.integers(0, 30, 6), Rows(np.array([6]))
    rows.positions, rows.longest = np.arange(6) + 31, 37  # the same text, further on
    same = np.allclose(read(model, ids, rows), read(model, ids), rtol=1e-9, atol=1e-12)
    assert same == (positions == "rotary")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_config
def test_a_final_norm_of_zero_leaves_no_preference(config: GPTConfig, dtype: type) -> None:
    """Its rows are zero, all logits are equal, and every token costs ln V."""
    rng = np.random.default_rng(6)
    model = random_model(config, rng, dtype)
    for name in ("trunk.decoder.norm.gain", "trunk.decoder.norm.bias", "output.bias"):
        if name in model.arrays():
            model.arrays()[name][...] = 0
    sums = model.loss(gpt_batch(rng, LENGTHS), Tape())
    tolerance = 1e-6 if dtype is np.float32 else 1e-12
    assert sums.loss / sums.tokens == pytest.approx(math.log(30), rel=0, abs=tolerance)


def test_what_import_forbids_can_be_permitted_and_what_was_learned_stays() -> None:
    model = random_model(small_gpt_config(output_bias=True), np.random.default_rng(0))
    bias = model.output.bias.data
    bias[[5, 7]] = ABSENT
    before = bias.copy()
    model.permit([4, 5, 6])
    assert bias[5] == 0
    assert np.array_equal(np.delete(bias, 5), np.delete(before, 5))


def test_dropout_is_off_without_a_generator_and_follows_its_seed() -> None:
    rng = np.random.default_rng(7)
    settings = {"activation": "swiglu", "norm": "rms", "num_key_value_heads": 2}
    model, batch = random_model(small_gpt_config(**settings, **DROPOUT), rng), gpt_batch(rng, LENGTHS)
    plain = GPT(small_gpt_config(**settings))
    plain.allocate(np.float64, vector=model.vector)
    assert model.loss(batch, Tape()).loss == plain.loss(batch, Tape()).loss
    losses = [model.loss(batch, Tape(dropout=np.random.SFC64(seed))).loss for seed in (1, 1, 2)]
    assert losses[0] == losses[1]
    assert len({*losses, plain.loss(batch, Tape()).loss}) == 3


def test_every_rate_of_dropout_drops_something_of_its_own() -> None:
    rng = np.random.default_rng(7)
    plain, batch = random_model(small_gpt_config(), rng), gpt_batch(rng, LENGTHS)
    losses = [plain.loss(batch, Tape(dropout=np.random.SFC64(1))).loss]
    for rate in DROPOUT:
        model = GPT(small_gpt_config(**{rate: 0.3}))
        model.allocate(np.float64, vector=plain.vector)
        losses.append(model.loss(batch, Tape(dropout=np.random.SFC64(1))).loss)
    assert len(set(losses)) == 5


@every_config
def test_float32_stays_float32_and_is_close(config: GPTConfig) -> None:
    rng = np.random.default_rng(8)
    model, batch = random_model(config, rng), gpt_batch(rng, LENGTHS)
    single = GPT(config)
    single.allocate()
    single.load_arrays(model.arrays(), "the other model")
    x = single.read(batch.inputs, batch.rows, Tape())
    assert {x.dtype, single.output.logits(x, Tape()).dtype} == {np.dtype(np.float32)}
    np.testing.assert_allclose(x, model.read(batch.inputs, batch.rows, Tape()), rtol=1e-3, atol=1e-4)
    assert single.loss(batch, Tape()).loss == pytest.approx(model.loss(batch, Tape()).loss, rel=1e-5)


def test_a_text_longer_than_the_learned_positions() -> None:
    model = random_model(small_gpt_config(positions="learned"), np.random.default_rng(0))
    with pytest.raises(ConfigError, match="a sequence of 9 tokens is longer than the model's 8 positions"):
        model.loss(batch_of_texts([np.arange(10)]), Tape())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 0}, "layers is 0: it must be at least 1"),
        ({"d_model": 18}, "d_model 18 cannot be divided into 4 heads"),
        ({"num_key_value_heads": 3}, "4 heads cannot share 3 num_key_value_heads evenly"),
        ({"num_key_value_heads": 8}, "4 heads cannot share 8 num_key_value_heads evenly"),
        ({"num_key_value_heads": -1}, "4 heads cannot share -1 num_key_value_heads"),
        ({"d_model": 12}, "rotary positions need heads of even width: 12 / 4 is odd"),
        ({"rotary_base": 0.0}, "rotary_base is 0.0: it must be a number above 0"),
        ({"norm_eps": float("inf")}, "norm_eps is inf"),
        ({"head_dim": -2}, "head_dim is -2: it must be at least 1, or 0 for d_model / num_heads"),
        ({"head_dim": 5}, "rotary positions need heads of even width: head_dim 5 is odd"),
        ({"rotary_factor": float("nan")}, "rotary_factor is nan: it must be from 1e-06 to 1,000,000"),
        ({"rotary_attention_factor": -1.0}, "rotary_attention_factor is -1.0: it must be from 1e-06"),
        (
            {"rotary_low_freq_factor": 4.0},
            "rotary_low_freq_factor is 4.0: it must be below rotary_high_freq_factor, 4.0",
        ),
        ({"rotary_original_length": -1}, "rotary_original_length is -1: it must be at most 1,048,576 tokens, or 0 for"),
        ({"rotary_scaling": "yarn", "rotary_base": 1.0}, "rotary_base is 1.0: yarn needs waves that grow"),
        ({"rotary_scaling": "ntk"}, "rotary_scaling is 'ntk': it must be one of none, linear, llama3, yarn"),
        ({"residual_dropout": 1.0}, "residual_dropout is 1.0: it must be at least 0 and below 1"),
        ({"activation": "glu"}, "activation is 'glu': it must be one of relu, gelu, gelu_tanh, silu, swiglu"),
        ({"norm": "post"}, "norm is 'post': it must be one of layer, rms"),
        ({"positions": "none"}, "positions is 'none'"),
    ],
)
def test_settings_that_do_not_fit(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        small_gpt_config(**settings)
