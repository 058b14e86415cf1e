import unicodedata
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checks import encode_pairs
from tests.conftest import ENGLISH, NEPALI
from toolkit.data.sentences import SubwordSampler, sentence_ids, sentence_text, spaced, tidy
from toolkit.errors import ConfigError
from toolkit.tokenization import SentencePieceTokenizer


@pytest.fixture(scope="module")
def tokenizer() -> SentencePieceTokenizer:
    lines = ["the boy sees the dog", "dog sees boy", "Dog and Boy", "केटा कुकुर देख्छ।", "कुकुर"]
    return SentencePieceTokenizer.train([spaced(line) for line in lines * 4], 340)


@given(text=st.text(alphabet=" \t\n\rab\u00e9e\u0301", max_size=20))
@settings(deadline=None)
def test_tidy_text_stays_as_it_is(text):
    tidied = tidy(text)
    assert tidy(tidied) == tidied
    assert tidied.split() == unicodedata.normalize("NFC", text).split()
    assert "  " not in tidied


def test_a_word_is_the_same_token_wherever_it_stands(tokenizer):
    first, _, last = sentence_ids(tokenizer, ["dog sees", "sees", "sees dog"])
    assert first == last[::-1]
    assert len(first) == 2


def test_blank_sentences_have_no_ids_and_white_space_makes_no_difference(tokenizer):
    assert sentence_ids(tokenizer, ["", " \n\t", "the  dog", " the dog\n"]) == [
        [],
        [],
        *sentence_ids(tokenizer, ["the dog"] * 2),
    ]


def test_case_is_ignored_on_request_only(tokenizer):
    lower = sentence_ids(tokenizer, ["dog and boy"])
    assert sentence_ids(tokenizer, ["Dog AND Boy"], ignore_case=True) == lower
    assert sentence_ids(tokenizer, ["Dog AND Boy"]) != lower
    assert spaced("केटा।", ignore_case=True) == " केटा।"


@given(text=st.text(max_size=40))
@settings(deadline=None)
def test_what_is_read_can_be_written(text):
    tokenizer = SentencePieceTokenizer.train(["some text"], 300)
    text = tidy(text.encode("utf-8", "ignore").decode())
    assert sentence_text(tokenizer, sentence_ids(tokenizer, [text])[0]) == tidy(text)


# Sampled subwords

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
