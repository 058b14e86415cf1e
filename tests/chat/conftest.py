"""Tokenizers of every kind, and random models that end some replies early."""

import numpy as np
import pytest

from tests.tokenization.traps import CORPUS
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer

LETTERS = "SystemUserAssistant: \\\n\r\u2028abcdeकाखि।"


@pytest.fixture(scope="session")
def tokenizers():
    """Of all four kinds; that of characters knows LETTERS alone."""
    return {
        "unigram": SentencePieceTokenizer.train(CORPUS, 340),
        "bpe": SentencePieceTokenizer.train(CORPUS, 340, "bpe"),
        "characters": CharacterTokenizer.train([LETTERS]),
        "bytes": ByteTokenizer(),
    }


@pytest.fixture(scope="session")
def talker(tokenizers):
    """talker(template, tokenizer=..., end=..., seed=..., **settings of GPTConfig): a model that says anything.

    end: what the scores of both end markers have besides.
    """

    def make(template="control", tokenizer="characters", end=5.0, seed=0, **settings):
        tokenizer = tokenizers[tokenizer]
        sizes = {"width": 16, "heads": 4, "layers": 2, "feed_forward": 32, "max_length": 96, "output_bias": True}
        config = {"vocab_size": tokenizer.vocab_size, "template": template, "key_value_heads": 2, **sizes, **settings}
        model = GPT(GPTConfig(**config))
        model.allocate(np.float64)
        model.initialize(np.random.default_rng(seed))
        model.vector *= 6
        model.output_bias.data[[3, 7]] += end
        return LanguageModel(model, tokenizer)

    return make
