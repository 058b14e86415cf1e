"""The nearest sentence is the one that the formula says, however the sentences are cut into blocks."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.evaluation import look_up, lookup, nearest

TRAIN = [
    "I am a boy.",
    "She eats rice.",
    "Where do you go?",
    "She eats rice.",
    "म केटा हुँ।",
    "ok",
    "I am a very good boy.",
]

sentences = st.text("abc आई.", max_size=14)


def vector(text):
    text = f" {' '.join(text.lower().split())} "
    counts = Counter(text[i : i + n] for n in range(1, 5) for i in range(len(text) - n + 1))
    return {gram: 1 + math.log(count) for gram, count in counts.items()}


def formula(source, train_source):
    """Cosine and nearness as the docstring gives them."""
    q, t = vector(source), vector(train_source)
    product = sum(weight * t.get(gram, 0) for gram, weight in q.items())
    q_length, t_length = (math.sqrt(sum(weight**2 for weight in side.values())) for side in (q, t))
    cosine = product / q_length / t_length
    return cosine, math.inf if cosine > 1 - 5e-6 else product / q_length / t_length**lookup.LENGTH_POWER


@given(st.lists(sentences, min_size=1, max_size=5), st.lists(sentences, min_size=1, max_size=8))
@settings(max_examples=60)
def test_it_is_what_the_formula_says(sources, train):
    index, similarity = nearest(sources, train)
    for source, found, cosine in zip(sources, index, similarity, strict=True):
        scored = [formula(source, text) for text in train]
        assert cosine == pytest.approx(scored[found][0], abs=2e-5)
        assert scored[found][1] >= max(near for _, near in scored) * (1 - 1e-4)


@pytest.mark.parametrize("frequent", [1, 20, 4096])
def test_blocks_and_frequent_grams_change_nothing(monkeypatch, frequent):
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abcde "), rng.integers(1, 20))) for _ in range(60)]
    index, similarity = nearest(texts[:20], texts[20:])
    monkeypatch.setattr(lookup, "_FREQUENT", frequent)
    for name, size in ("_ROWS", 7), ("_CHARACTERS", 50), ("_QUERIES", 3):
        monkeypatch.setattr(lookup, name, size)
        again, other = nearest(texts[:20], texts[20:])
        np.testing.assert_array_equal(again, index)
        np.testing.assert_allclose(other, similarity, atol=2e-5)


def test_a_block_is_bounded_in_sentences_and_in_characters(monkeypatch):
    monkeypatch.setattr(lookup, "_ROWS", 3)
    monkeypatch.setattr(lookup, "_CHARACTERS", 10)
    texts = ["a" * length for length in (1, 2, 3, 4, 5, 6, 40, 1, 0, 0, 0)]
    blocks = list(lookup._blocks(texts))
    assert [text for _, block in blocks for text in block] == texts
    assert [start for start, _ in blocks] == [0, 3, 5, 6, 7, 10]


def test_a_sentence_that_is_there_is_found_the_first_time_it_occurs():
    index, similarity = nearest(TRAIN, TRAIN)
    np.testing.assert_array_equal(index, [0, 1, 2, 1, 4, 5, 6])
    np.testing.assert_array_equal(similarity, 1)
    # Its vector is nearly the one of a longer sentence, which the formula alone would prefer.
    np.testing.assert_array_equal(nearest(["ha ha ha"], ["ha ha ha ha", "ha ha ha"])[0], [1])


def test_case_and_white_space_do_not_count_and_a_decomposed_letter_is_the_same():
    index, similarity = nearest(["  WHERE do   you go?", "क़लम"], [*TRAIN, "क़लम"])
    np.testing.assert_array_equal(index, [2, 7])
    np.testing.assert_array_equal(similarity, 1)


@given(st.lists(sentences, min_size=1, max_size=4), st.lists(sentences, min_size=1, max_size=8), st.floats(0.1, 1))
@settings(max_examples=60)
def test_below_a_similarity_the_nearest_of_the_others_is_found(sources, train, below):
    index, similarity = nearest(sources, train, below)
    for source, found, cosine in zip(sources, index, similarity, strict=True):
        scored = [formula(source, text) for text in train]
        others = [near for own, near in scored if own < below - 2e-5]
        assert cosine < below
        if others:
            assert cosine == pytest.approx(scored[found][0], abs=2e-5)
            assert scored[found][1] >= max(others) * (1 - 1e-4)
        elif all(own > below + 2e-5 for own, _ in scored):
            assert (found, cosine) == (0, 0)


def test_nothing_in_common_but_the_space_is_hardly_similar():
    index, similarity = nearest(["xyz"], ["abc", "pqr"])
    assert (index.tolist(), similarity[0] < 0.2) == ([0], True)


def test_shapes_and_types():
    for count in 0, 1, 3:
        index, similarity = nearest(TRAIN[:count], TRAIN)
        assert (index.shape, similarity.shape) == ((count,), (count,))
        assert (index.dtype, similarity.dtype) == (np.int64, np.float32)
    assert nearest(["", "a"], [""])[0].tolist() == [0, 0]


def test_looking_up_gives_the_targets_and_says_how_much_is_known_already():
    found = look_up([" ok", "She eats", "I am a boy."], TRAIN, [str(place) for place in range(len(TRAIN))])
    assert found.translations == ["5", "1", "0"]
    assert found.verbatim == 2
    assert 0.5 < found.similarity < 1


def test_what_cannot_be_looked_up_is_refused():
    with pytest.raises(DataError, match="no training sentence"):
        nearest(["a"], [])
    with pytest.raises(DataError, match="2 training sources and 1 target are given"):
        look_up(["a"], ["a", "b"], ["c"])
    with pytest.raises(DataError, match="no sentence to look up"):
        look_up([], ["a"], ["c"])
