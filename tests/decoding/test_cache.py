"""The cache: whichever way sequences are read, dropped and multiplied, each has its own tokens and no others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.decoding.cache import Cache
from toolkit.nn.rows import Rows

WIDTH = 2


def full_of_nan(shape, dtype):
    """Lend memory that nobody has written to."""
    return np.full(shape, np.nan, dtype)


class Told:
    """A cache with one module, and beside it what each sequence was told, as lists."""

    def __init__(self, sequences, **options):
        self.cache, self.owner = Cache(sequences, empty=full_of_nan, **options), object()
        self.texts = [[] for _ in range(sequences)]
        self.generator = np.random.default_rng(0)

    def read(self, lengths):
        """Read any number of tokens, as the ordinary forward does."""
        rows = self.cache.rows(np.array(lengths))
        key = self.generator.standard_normal((rows.total, WIDTH))
        keys, values = np.split(self.cache.extend(self.owner, np.hstack([key, -key]), rows), 2, axis=2)
        self.cache.advance(np.array(lengths))
        for text, part in zip(self.texts, np.split(key, rows.starts[1:]), strict=True):
            text += part.tolist()
        for sequence, text in enumerate(self.texts):
            np.testing.assert_array_equal(keys[sequence, : len(text)], np.reshape(text, (-1, WIDTH)))
            np.testing.assert_array_equal(values[sequence, : len(text)], -np.reshape(text, (-1, WIDTH)))
        assert np.isfinite(keys[:, : rows.longest]).all()  # what is not read is multiplied by 0

    def step(self):
        """Read one token of every sequence."""
        key = self.generator.standard_normal((len(self.texts), WIDTH))
        new, [(seen, read)] = self.cache.begin_step(np.float64)
        both = np.hstack([key, -key])
        stored = self.cache.room(self.owner, both)
        keys, values = np.split(stored, 2, axis=2)
        count, texts = len(self.texts), self.cache.texts
        stored[new] = both.reshape(texts, -1, 2 * WIDTH)
        self.cache.end_step()
        if read is None:
            read = np.ones((texts, count // texts, seen))
        for sequence, text in enumerate(self.texts):
            text.append(key[sequence].tolist())
            beam = divmod(sequence, count // texts)
            own = read[beam] == 1
            assert sorted(keys[beam[0], :seen][own].tolist()) == sorted(text)
            assert sorted((-values[beam[0], :seen][own]).tolist()) == sorted(text)
            assert own.sum() == read[beam].sum() == self.cache.lengths[sequence]
        assert np.isfinite(keys[:, :seen]).all()

    def select(self, texts, parents):
        """parents: for each text that stays, which of its sequences go on."""
        width = len(self.texts) // self.cache.texts
        sequences = [text * width + parent for text, own in zip(texts, parents, strict=True) for parent in own]
        self.cache.select(np.array(texts), np.array(sequences))
        self.texts = [list(self.texts[sequence]) for sequence in sequences]


def test_texts_of_unequal_length_grow_and_shrink():
    told = Told(3, capacity=4)
    told.read([2, 2, 2])
    told.read([1, 3, 2])
    told.step()
    told.select([2, 1, 0], [[0], [0], [0]])
    told.step()
    told.select([0, 2], [[0], [0]])
    told.read([40, 1])
    for _ in range(5):
        told.step()


def test_what_lies_between_texts_of_unequal_length_is_finite():
    told = Told(2, capacity=5)
    told.step()  # which makes room in memory that holds anything
    told.read([2, 0])
    told.read([0, 1])


@pytest.mark.parametrize("first", [[3, 3, 3], [1, 4, 0]])
def test_beams_share_what_they_descend_from(first):
    told = Told(3, capacity=4)
    told.read(first)
    told.step()
    told.select([0, 1, 2], [[0, 0], [0, 0], [0, 0]])
    for parents in ([[0, 0], [1, 0], [1, 1]], [[0, 1], [0, 1], [0, 1]], [[1, 1], [0, 0], [1, 0]]):
        told.step()
        told.select([0, 1, 2], parents)
    told.step()
    told.select([2, 1], [[1, 0], [0, 1]])  # a text leaves
    told.step()
    told.read([2, 1, 2, 3])  # what beams read by the ordinary forward
    told.step()
    told.select([1], [[1, 1]])
    told.step()


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_any_order_of_reading_and_selecting(data):
    told = Told(data.draw(st.integers(1, 3)), capacity=data.draw(st.integers(1, 5)))
    for _ in range(data.draw(st.integers(1, 7))):
        action = data.draw(st.sampled_from(["step", "read", "select", "forget", "keep"]))
        count, texts = len(told.texts), told.cache.texts
        if action == "step":
            told.step()
        elif action == "read":
            told.read(data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)))
        elif action == "forget":
            gone = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
            told.cache.forget(gone)
            told.texts = [[] if forgotten else text for text, forgotten in zip(told.texts, gone, strict=True)]
        elif action == "keep":
            most = data.draw(st.lists(st.integers(0, 6), min_size=count, max_size=count))
            told.cache.keep(np.array(most))
            told.texts = [text[:length] for text, length in zip(told.texts, most, strict=True)]
        else:
            stay = data.draw(st.lists(st.integers(0, texts - 1), min_size=1, max_size=texts, unique=True))
            width = data.draw(st.integers(1, 3))
            beam = st.lists(st.integers(0, count // texts - 1), min_size=width, max_size=width)
            told.select(stay, [data.draw(beam) for _ in stay])


def test_forgotten_sequences_begin_anew():
    told = Told(2)
    told.read([3, 1])
    told.step()
    told.cache.forget(np.array([True, False]))
    told.texts[0] = []
    told.read([2, 0])
    told.step()


def test_memories_go_with_their_texts():
    lengths = np.array([2, 4, 1])
    cache, owner = Cache(3, Rows(lengths)), object()
    rows = np.arange(7.0)[:, None, None]
    assert not cache.has_memory(owner)
    cache.store_memory(owner, rows, -rows)
    assert cache.visible[1].sum(axis=1).tolist() == [2, 4, 1]
    cache.select(np.array([2, 0]), np.array([2, 2, 0, 0]))
    seen, real = cache.visible
    key, value = cache.memory(owner)[:, :, :seen]
    assert key.shape == (2, 2, 1, 1)
    assert key[1, :, 0, 0].tolist() == [0, 1]
    assert (key[real] == -value[real]).all()
    assert key[0, 0, 0] == 6
    assert cache.rows(np.ones(4, np.int64)).memory_of.tolist() == [0, 0, 1, 1]
    cache.select(np.array([1]), np.array([2]))
    assert cache.visible[1] is None
