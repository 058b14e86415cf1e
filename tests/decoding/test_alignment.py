"""Attention read from the real pass, and words aligned by it."""

import numpy as np
import pytest

from tests.conftest import ENGLISH, NEPALI
from toolkit.data.sentences import sentence_ids
from toolkit.decoding import cross_attention, word_alignment, words_of
from toolkit.decoding.cache import Cache
from toolkit.errors import ConfigError
from toolkit.models.seq2seq import source_rows
from toolkit.nn.tape import Recorder, Tape
from toolkit.tokenization import load_tokenizer
from toolkit.tokenization.special import BOS

LENGTHS = [3, 7, 0, 7, 5, 1, 9, 40]
TARGETS = [5, 0, 2, 3, 3, 50, 1, 8]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_sum_to_one_and_batches_make_no_difference(random_model, make_sources, dtype):
    model, sources, targets = random_model(dtype), make_sources(LENGTHS), make_sources(TARGETS, seed=1)
    together, apart = (cross_attention(model, sources, targets, size) for size in (64, 1))
    for source, target, left, right in zip(sources, targets, together, apart, strict=True):
        assert left.shape == (len(target) + 1, len(source) + 1)
        np.testing.assert_allclose(left.sum(axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(left, right, atol=1e-5)
    assert np.ptp(together[0], axis=1).max() > 0.01  # and they are not all uniform


def test_the_default_is_the_average_of_the_layers(random_model, make_sources):
    model, sources, targets = random_model(), make_sources([4, 2]), make_sources([3, 6], seed=1)
    first, second, both = (cross_attention(model, sources, targets, layer=layer) for layer in (0, 1, None))
    for one, two, average in zip(first, second, both, strict=True):
        np.testing.assert_allclose((one + two) / 2, average, atol=1e-12)
        assert np.abs(one - two).max() > 0.01
    with pytest.raises(ConfigError, match="layers 0 to 1"):
        cross_attention(model, sources, targets, layer=2)


def test_decoding_step_by_step_attends_as_teacher_forcing_does(random_model, make_sources):
    model, (source,), (target,) = random_model(), make_sources([6]), make_sources([5], seed=1)
    module = model.decoder.blocks[1].cross_attention.layer
    recorder = Recorder([module])
    tape = Tape(recorder=recorder)
    ids, rows = source_rows([source])
    memory, cache = model.encode(ids, rows, tape), Cache(1, rows)
    for token in [BOS, *target]:
        model.decode(np.array([token]), memory, cache.rows(np.array([1])), tape)
        cache.advance(np.array([1]))
    steps = np.concatenate(recorder.attention_maps(module), axis=1).mean(axis=0)
    np.testing.assert_allclose(steps, cross_attention(model, [source], [target], layer=1)[0], atol=1e-12)


def test_a_word_goes_with_the_word_that_it_takes_most_from():
    attention = np.array([[0.1, 0.5, 0.4, 0.0], [0.4, 0.1, 0.2, 0.3], [0.0, 0.1, 0.0, 0.9], [0, 0, 0, 1]])
    # Tokens 1 and 2 of the source are one word and weigh together; the end mark's weight is nobody's.
    assert word_alignment(attention, [0, 1, 1], [0, 1, 2]) == [(1, 0), (0, 1), (1, 2)]
    # Tokens 0 and 1 of the target are one word: 0.5 against 1.2.
    assert word_alignment(attention, [0, 1, 1], [0, 0, 1]) == [(1, 0), (1, 1)]
    assert word_alignment(attention, [0, -1, 1], [-1, 0, 0]) == [(0, 0)]


def test_nothing_is_aligned_with_nothing():
    assert word_alignment(np.ones((1, 3)), [0, 0], []) == []
    assert word_alignment(np.ones((3, 1)), [], [0, 0]) == []
    assert word_alignment(np.ones((2, 2)), [-1], [0]) == []


def test_words_are_what_spaces_divide(tiny_model):
    assert words_of(["▁a", "b", "▁", "c", "▁d", "<0x0A>", "▁"]) == [0, 0, -1, 1, 2, 2, -1]
    assert words_of(["a", "▁b"]) == [0, 1]
    tokenizer = load_tokenizer(tiny_model)
    for text in (*ENGLISH, *NEPALI, "X-ray 50% ▁ 漢字"):
        (ids,) = sentence_ids(tokenizer, [text])
        words = words_of([tokenizer.piece(index) for index in ids])
        for number, word in enumerate(text.split()):
            spelled = tokenizer.decode([index for index, own in zip(ids, words, strict=True) if own == number])
            assert spelled.strip() == word
        assert max(words) == len(text.split()) - 1
