from itertools import chain

import numpy as np
import pytest

from tests.checks import encode_pairs
from tests.conftest import ENGLISH, NEPALI
from toolkit.data.sentences import SubwordSampler, sentence_text
from toolkit.errors import ConfigError
from toolkit.tokenization import SentencePieceTokenizer

PAIRS = list(zip(ENGLISH, NEPALI, strict=True))
TOKENIZER = SentencePieceTokenizer.train([*(text.lower() for text in ENGLISH), *NEPALI] * 5, 400)
BEST, _ = encode_pairs(PAIRS, TOKENIZER, 100, ignore_case=True)


def sample(seed, max_length=100, indices=(0, 1, 2, 3, 4, 5)):
    sampler = SubwordSampler(TOKENIZER, PAIRS, 0.1, max_length, ignore_case=True)
    return sampler.sample(indices, [BEST[index] for index in indices], (seed,))


@pytest.mark.parametrize("seed", range(5))
def test_samples_are_the_same_sentences_read_as_the_model_reads_them(seed):
    drawn = sample(seed, indices=[4, 1, 1])
    assert [tuple(sentence_text(TOKENIZER, side) for side in example) for example in drawn] == [
        (PAIRS[index][0].lower(), PAIRS[index][1]) for index in (4, 1, 1)
    ]
    assert all(side.dtype == np.int32 for example in drawn for side in example)


def test_sources_and_targets_are_both_drawn():
    drawn = sample(0)
    for side in (0, 1):
        assert any(not np.array_equal(one[side], best[side]) for one, best in zip(drawn, BEST, strict=True))


def test_a_sample_that_is_too_long_is_the_best_segmentation_instead():
    longest = max(len(side) for example in BEST for side in example) + 1
    drawn = [sample(seed, max_length=longest) for seed in range(20)]
    assert all(len(side) < longest for examples in drawn for example in examples for side in example)
    free = [sample(seed) for seed in range(20)]
    for bounded, example, best in zip(chain(*drawn), chain(*free), BEST * 20, strict=True):
        for side in (0, 1):
            expected = example[side] if len(example[side]) < longest else best[side]
            assert np.array_equal(bounded[side], expected)
    assert any(len(side) >= longest for examples in free for example in examples for side in example)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan")])
def test_sampling_without_a_number_above_zero_is_refused(alpha):
    with pytest.raises(ConfigError, match="alpha"):
        SubwordSampler(TOKENIZER, PAIRS, alpha, 100)
