"""Norms folded into maps: the same model in fewer operations, and nothing of a model that is read by others changes."""

import copy

import numpy as np
import pytest

from toolkit.models.folding import fold_norms
from toolkit.models.gpt import GPT, GPTConfig, text_batch
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig, translation_batch
from toolkit.nn.blocks import Block
from toolkit.nn.layers import FeedForward, LayerNorm, RMSNorm
from toolkit.nn.tape import Tape

SIZES = {"vocab_size": 37, "d_model": 16, "num_heads": 2, "d_ff": 24}
SEQ2SEQ = [
    {},
    {"tie": "none", "bias": False},
    {"tie": "decoder", "positions": "learned", "output_bias": True},
    {"norm_position": "post"},
]
LANGUAGE = [
    {"norm": "rms", "activation": "swiglu", "num_key_value_heads": 1},
    {"bias": True, "bias_in": "norms", "qk_norm": True, "head_dim": 6},
    {"bias": True, "output_bias": True, "positions": "learned", "tie": False},
]


class Twice(FeedForward):
    """A kind that folding does not know: what it computes with its maps is its own matter."""

    def forward(self, x, tape):
        return self.down.forward(self.up.forward(2 * x, tape), tape)


def drawn(model):
    model.allocate(np.float64)
    generator = np.random.default_rng(5)
    for parameter in model.parameters().values():  # gains and biases too
        parameter.data[...] = parameter.initial(generator, parameter.shape)
        parameter.data += 0.3 * generator.standard_normal(parameter.shape)
    return model


def translator(**settings):
    return drawn(Seq2Seq(Seq2SeqConfig(**SIZES, encoder_layers=2, decoder_layers=2, **settings)))


def language_model(**settings):
    return drawn(GPT(GPTConfig(**SIZES, layers=2, **settings)))


def logits(model):
    generator = np.random.default_rng(0)
    texts = [generator.integers(16, 37, length) for length in (3, 8, 5)]
    batch = text_batch(texts) if isinstance(model, GPT) else translation_batch(texts, texts[::-1])
    return model.output.logits(model.forward(batch, Tape()), Tape())


def norms(stack):
    return [part.norm for block in stack.blocks for part in vars(block).values()]


def is_plain(norm):
    """True where all that is left of a norm is the division by a row's length."""
    return type(norm) is RMSNorm and (norm.gain.data == 1 / 4).all()


@pytest.mark.parametrize("settings", SEQ2SEQ)
def test_a_folded_translator_computes_the_same(settings):
    model = translator(**settings)
    expected = logits(model)
    model._fold()
    np.testing.assert_allclose(logits(model), expected, rtol=1e-11, atol=1e-11)
    folded = "norm_position" not in settings
    assert [is_plain(norm) for stack in (model.encoder, model.decoder) for norm in norms(stack)] == 10 * [folded]
    assert is_plain(model.encoder.norm) == folded
    assert type(model.decoder.norm) is (LayerNorm if folded else type(None))
    assert (model.output.table is model.target.embedding.table) is (settings.get("tie") != "none")


@pytest.mark.parametrize("settings", LANGUAGE)
def test_a_folded_language_model_computes_the_same(settings):
    model = language_model(**settings)
    expected = logits(model)
    model._fold()
    np.testing.assert_allclose(logits(model), expected, rtol=1e-11, atol=1e-11)
    assert list(map(is_plain, norms(model.trunk.decoder))) == 4 * [True]


def test_a_module_of_another_kind_is_left_and_the_stream_has_its_mean():
    model = language_model(bias=True)
    part = model.trunk.decoder.blocks[0].feed_forward
    part.layer.__class__ = Twice
    expected, norm, gain = logits(model), part.norm, part.norm.gain.data.copy()
    model._fold()
    np.testing.assert_allclose(logits(model), expected, rtol=1e-11, atol=1e-11)
    assert part.norm is norm
    assert np.array_equal(norm.gain.data, gain)
    others = [each for each in norms(model.trunk.decoder) if each is not norm]
    assert all(type(each) is LayerNorm and each.bias is None and (each.gain.data == 1 / 4).all() for each in others)


def test_a_block_of_another_kind_is_left():
    class Parallel(Block):
        def forward(self, x, rows, tape):
            return self.attention.forward(x, rows, tape) + self.feed_forward.forward(x, tape)

    model = language_model()
    model.trunk.decoder.blocks[1].__class__ = Parallel
    expected = logits(model)
    model._fold()
    np.testing.assert_allclose(logits(model), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("shared", ["norm", "layer"])
def test_what_two_sub_layers_share_is_left(shared):
    model = language_model(bias=True)
    first, second = (block.feed_forward for block in model.trunk.decoder.blocks)
    setattr(second, shared, getattr(first, shared))
    expected = logits(model)
    model._fold()
    np.testing.assert_allclose(logits(model), expected, rtol=1e-11, atol=1e-11)


def test_parameters_of_ones_own_leave_the_model_as_it_is():
    """A copy of the modules alone, as a decoding step makes it, changes no array of the model."""

    def own(parameter):
        found = copy.copy(parameter)
        found.data = parameter.data.copy()
        return found

    model = language_model(bias=True)
    before, expected = model.vector.copy(), logits(model)
    kept = {id(each): each for each in model.parameters().values()}
    trunk, output = copy.deepcopy((model.trunk, model.output), kept)
    fold_norms(trunk.input, trunk.decoder, own=own)
    assert np.array_equal(model.vector, before)
    model.trunk, model.output = trunk, output
    np.testing.assert_allclose(logits(model), expected, rtol=1e-11, atol=1e-11)
