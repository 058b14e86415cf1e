"""What the model computes, whatever its parameters are."""

import math

import numpy as np
import pytest

from tests.checks import DROPOUT, batch_of, random_model, random_pairs, small_config
from toolkit.errors import ConfigError
from toolkit.functional.output_loss import LossSums
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqBatch, Seq2SeqConfig, source_rows, translation_batch
from toolkit.nn import rows as rows_module
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, EOS

CONFIGS = [
    small_config(),
    small_config(norm_position="post", positions="learned"),
    small_config(bias=False, tie="none", activation="gelu", positions="sinusoidal_halves"),
    small_config(scale_embedding=False, output_bias=True),
]
every_config = pytest.mark.parametrize("config", CONFIGS, ids=["pre", "post", "no bias", "output bias"])


def loss(model: Seq2Seq, batch: Seq2SeqBatch) -> LossSums:
    return model.loss(batch, Tape(), 0.1, np.full(30, 1 / 30))


@pytest.mark.parametrize("scores", [1 << 14, 30], ids=["wide spans", "narrow spans"])
@every_config
def test_a_batch_is_its_sentences_one_by_one(monkeypatch, config: Seq2SeqConfig, scores: int) -> None:
    monkeypatch.setattr(rows_module, "_SPAN_SCORES", scores)
    rng = np.random.default_rng(0)
    model, pairs = random_model(config, rng), random_pairs(rng, 12)
    together = loss(model, batch_of(pairs))
    alone = [loss(model, batch_of([pair])) for pair in pairs]
    assert together.tokens == sum(sums.tokens for sums in alone) == sum(len(target) + 1 for _, target in pairs)
    assert together.loss == pytest.approx(sum(sums.loss for sums in alone), rel=1e-12, abs=1e-10)
    likelihoods = sum(sums.negative_log_likelihood for sums in alone)
    assert together.negative_log_likelihood == pytest.approx(likelihoods, rel=1e-12, abs=1e-10)


@every_config
def test_the_gradient_of_a_batch_is_that_of_its_sentences(config: Seq2SeqConfig) -> None:
    rng = np.random.default_rng(0)
    model, pairs = random_model(config, rng), random_pairs(rng, 8)
    vectors = []
    for batches in ([batch_of(pairs)], [batch_of([pair]) for pair in pairs]):
        vectors.append(np.zeros_like(model.vector))
        for batch in batches:
            tape = Tape(model.views(vectors[-1]))
            model.loss(batch, tape)
            model.backward(tape)
    np.testing.assert_allclose(*vectors, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_final_norm_of_zero_leaves_no_preference(norm: str) -> None:
    """Its rows are zero, all logits are equal, and every token costs ln V."""
    rng = np.random.default_rng(0)
    model = random_model(small_config(norm_position=norm), rng)
    final = model.decoder.norm or model.decoder.blocks[-1].feed_forward.norm
    final.gain.data[...] = 0
    final.bias.data[...] = 0
    sums = loss(model, batch_of(random_pairs(rng, 6)))
    assert sums.loss / sums.tokens == pytest.approx(math.log(30), rel=0, abs=1e-12)
    assert sums.negative_log_likelihood / sums.tokens == pytest.approx(math.log(30), rel=0, abs=1e-12)


def test_the_order_of_the_sources_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    model, pairs = random_model(small_config(), rng), random_pairs(rng, 9)
    batch = batch_of(pairs)
    lengths, order = batch.source_rows.lengths, rng.permutation(len(pairs))
    sources = [batch.sources[start : start + n] for start, n in zip(batch.source_rows.starts, lengths, strict=True)]
    memory = Rows(lengths[order])
    rows = Rows(batch.rows.lengths, memory=memory, memory_of=np.argsort(order)[batch.rows.memory_of])
    other = batch._replace(sources=np.concatenate([sources[i] for i in order]), source_rows=memory, rows=rows)
    assert (other.sources != batch.sources).any()
    vectors, sums = [], []
    for each in (batch, other):
        vectors.append(np.zeros_like(model.vector))
        tape = Tape(model.views(vectors[-1]))
        sums.append(model.loss(each, tape).loss)
        model.backward(tape)
    assert sums[0] == pytest.approx(sums[1], rel=1e-13)
    np.testing.assert_allclose(*vectors, rtol=1e-8, atol=1e-10)


def test_the_loss_is_that_of_the_logits() -> None:
    rng = np.random.default_rng(4)
    model, batch = random_model(small_config(tie="none", output_bias=True), rng), batch_of(random_pairs(rng, 4))
    memory = model.encode(batch.sources, batch.source_rows, Tape())
    logits = model.output.logits(model.decode(batch.inputs, memory, batch.rows, Tape()), Tape())
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = -log_probs[np.arange(len(logits)), batch.labels].sum()
    assert model.loss(batch, Tape()).negative_log_likelihood == pytest.approx(expected, rel=1e-12)


def test_embeddings_that_are_not_scaled_are_those_of_a_scaled_model_times_its_scale() -> None:
    rng = np.random.default_rng(7)
    scaled, batch = random_model(small_config(tie="none"), rng), batch_of(random_pairs(rng, 5))
    plain = Seq2Seq(small_config(tie="none", scale_embedding=False))
    plain.allocate(np.float64)
    scales = {f"{side}.embedding.table": math.sqrt(8) for side in ("source", "target")}
    plain.load_arrays({name: value * scales.get(name, 1) for name, value in scaled.arrays().items()}, "the other")
    assert loss(plain, batch).loss == pytest.approx(loss(scaled, batch).loss, rel=1e-12)


def test_an_output_bias_is_added_to_the_scores() -> None:
    """Of a bias that all tokens have nothing is left; without one, the model is that with a bias of zeros."""
    rng = np.random.default_rng(8)
    biased, batch = random_model(small_config(output_bias=True), rng), batch_of(random_pairs(rng, 5))
    x = rng.standard_normal((3, 8))
    bias = biased.output.bias.data.copy()
    found = biased.output.logits(x, Tape())
    biased.output.bias.data[...] = 0
    np.testing.assert_allclose(found - biased.output.logits(x, Tape()), np.broadcast_to(bias, (3, 30)), atol=1e-12)
    without = Seq2Seq(small_config())
    without.allocate(np.float64)
    without.load_arrays({k: v for k, v in biased.arrays().items() if k != "output.bias"}, "the other")
    plain = loss(without, batch).loss
    for constant in (0.0, 3.0):
        biased.output.bias.data[...] = constant
        assert loss(biased, batch).loss == pytest.approx(plain, rel=1e-12)
    assert not biased.output.bias.decay


def test_a_label_is_not_seen_before_it_is_asked_for() -> None:
    """Changing the last token of a target changes nothing that is predicted before it."""
    rng = np.random.default_rng(4)
    model = random_model(small_config(), rng)
    source, target = np.array([20, 21, 22]), np.array([17, 18, 19])
    results = []
    for last in (19, 25):
        batch = translation_batch([source], [np.append(target[:-1], last)])
        memory = model.encode(batch.sources, batch.source_rows, Tape())
        results.append(model.decode(batch.inputs, memory, batch.rows, Tape()))
    np.testing.assert_array_equal(results[0][:-1], results[1][:-1])
    assert (results[0][-1] != results[1][-1]).all()


def test_dropout_is_off_without_a_generator_and_follows_its_seed() -> None:
    rng = np.random.default_rng(5)
    model, batch = random_model(small_config(**DROPOUT), rng), batch_of(random_pairs(rng, 4))
    plain = Seq2Seq(small_config())
    plain.allocate(np.float64, vector=model.vector)
    assert model.loss(batch, Tape()).loss == plain.loss(batch, Tape()).loss
    losses = [model.loss(batch, Tape(dropout=np.random.SFC64(seed))).loss for seed in (1, 1, 2)]
    assert losses[0] == losses[1]
    assert len({*losses, plain.loss(batch, Tape()).loss}) == 3


def test_float32_stays_float32_and_is_close() -> None:
    rng = np.random.default_rng(6)
    model, batch = random_model(small_config(activation="gelu"), rng), batch_of(random_pairs(rng, 4))
    single = Seq2Seq(model.config)
    single.allocate()
    single.load_arrays(model.arrays(), "the other model")
    memory = single.encode(batch.sources, batch.source_rows, Tape())
    x = single.decode(batch.inputs, memory, batch.rows, Tape())
    assert {memory.dtype, x.dtype, single.output.logits(x, Tape()).dtype} == {np.dtype(np.float32)}
    assert single.loss(batch, Tape()).loss == pytest.approx(model.loss(batch, Tape()).loss, rel=1e-5)


def test_a_batch_says_what_it_should() -> None:
    sources, targets = [np.array([20, 21]), np.array([], int), np.array([22])], [[17], [18, 19], [16, 16]]
    batch = translation_batch(sources, [np.array(target) for target in targets])
    assert batch.inputs.tolist() == [BOS, 17, BOS, 18, 19, BOS, 16, 16]
    assert batch.labels.tolist() == [17, EOS, 18, 19, EOS, 16, 16, EOS]
    assert batch.rows.lengths.tolist() == [2, 3, 3]
    assert batch.sources.tolist() == [EOS, 22, EOS, 20, 21, EOS]  # shortest first
    assert batch.source_rows.lengths.tolist() == [1, 2, 3]
    assert batch.rows.memory_of.tolist() == [2, 0, 1]
    ids, rows = source_rows([np.array([20, 21]), np.array([], int)])
    assert (ids.tolist(), rows.lengths.tolist()) == ([20, 21, EOS, EOS], [3, 1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"d_model": 0}, "d_model is 0: it must be at least 1"),
        ({"decoder_layers": -1}, "decoder_layers is -1"),
        ({"d_model": 10, "num_heads": 4}, "d_model 10 cannot be divided into 4 heads"),
        ({"residual_dropout": 1.0}, "residual_dropout is 1.0: it must be at least 0 and below 1"),
        ({"attention_dropout": float("nan")}, "attention_dropout is nan"),
        ({"activation": "tanh"}, "activation is 'tanh': it must be one of relu, gelu, gelu_tanh, silu"),
        ({"tie": "some"}, "tie is 'some'"),
    ],
)
def test_settings_that_do_not_fit(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Seq2SeqConfig(**settings)
