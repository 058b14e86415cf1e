"""Small random models and random sentences for them."""

import numpy as np
import pytest

from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.tokenization.special import EOS


@pytest.fixture
def random_model():
    """random_model(dtype=..., seed=..., sharpness=..., end=..., **settings).

    Logits are scaled by `sharpness`, and `end` is what the end mark's logit has besides. The defaults end
    some outputs early, some late and some at the limit.
    """

    def make(dtype=np.float64, seed=1, sharpness=2.0, end=4.0, **settings):
        settings = {"vocab_size": 37, "d_model": 16, "num_heads": 2, "d_ff": 32, "tie": "none"} | settings
        config = Seq2SeqConfig(encoder_layers=2, decoder_layers=2, max_length=64, **settings)
        model = Seq2Seq(config)
        model.allocate(dtype)
        generator = np.random.default_rng([seed, 2])
        for parameter in model.parameters().values():  # gains and biases too: zeros and ones hide mistakes
            parameter.data[...] = parameter.initial(generator, parameter.shape)
            parameter.data += 0.1 * generator.standard_normal(parameter.shape)
        last_norm = model.decoder.norm or model.decoder.blocks[-1].feed_forward.norm
        last_norm.gain.data[0], last_norm.bias.data[0] = 0, 1  # the first number of a state is always 1
        model.output.table.data *= sharpness
        model.output.table.data[:, 0] = 0
        model.output.table.data[EOS, 0] = end
        return model

    return make


@pytest.fixture
def make_sources():
    """make_sources(lengths, vocab_size=..., seed=...): random sentences of these lengths."""

    def make(lengths, vocab_size=37, seed=0):
        generator = np.random.default_rng([seed, 2])
        return [generator.integers(16, vocab_size, length).tolist() for length in lengths]

    return make


@pytest.fixture
def random_gpt():
    """random_gpt(dtype=..., seed=..., sharpness=..., **settings): a language model with a context of 12 tokens."""

    def make(dtype=np.float64, seed=1, sharpness=25.0, **settings):
        sizes = {"vocab_size": 37, "d_model": 16, "num_heads": 4, "layers": 2, "d_ff": 32, "max_length": 12}
        model = GPT(GPTConfig(**sizes | {"tie": False} | settings))
        model.allocate(dtype)
        generator = np.random.default_rng([seed, 2])
        for parameter in model.parameters().values():
            parameter.data[...] = parameter.initial(generator, parameter.shape)
            parameter.data += 0.2 * generator.standard_normal(parameter.shape)
        model.output.table.data *= sharpness / 16
        return model

    return make
