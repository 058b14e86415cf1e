"""The cache of places: whoever joins, leaves, moves or is copied, each text reads its own tokens and no others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.decoding.cache import Cache
from toolkit.decoding.slots import PlacesCache, SlotCache
from toolkit.nn.rows import Rows

WIDTH, MOST = 2, 150  # numbers of a key; tokens that a place holds


class Told:
    """A cache of places with one module, and beside it the keys that each sequence of each place was told."""

    def __init__(self, places, beams):
        self.cache, self.owner, self.beams = SlotCache(places, beams, 40, MOST * beams, np.float64), object(), beams
        self.texts = [[[] for _ in range(beams)] for _ in range(places)]
        self.generator = np.random.default_rng(0)

    def read(self, places, counts):
        """The ordinary forward reads some tokens into places where nothing is written."""
        rows = PlacesCache(self.cache, places).rows(np.array(counts))
        key = self.generator.standard_normal((rows.total, WIDTH))
        stored = rows.cache.extend(self.owner, np.hstack([key, -key]), rows)
        for row, (place, part) in enumerate(zip(places, np.split(key, rows.starts[1:]), strict=True)):
            self.cache.wrote(place, np.arange(len(part)))
            for text in self.texts[place]:
                text += part.tolist()
            np.testing.assert_array_equal(stored[row, : len(text), :WIDTH], np.reshape(text, (-1, WIDTH)))

    def step(self):
        cache, active = self.cache, np.flatnonzero(self.cache.active)
        cache.arrange(int(active.max()) + 1)
        count = cache.texts
        key = self.generator.standard_normal((count, self.beams, WIDTH))
        both = np.concatenate([key, -key], axis=2)
        new, parts = cache.begin_step(np.float64)
        positions = cache.lengths.reshape(count, self.beams)
        stored = cache.room(self.owner, both)
        stored[new] = both
        reads = [(seen, each) for (seen, read), part in zip(parts, cache.parts, strict=True) for each in read]
        assert len(reads) == count
        assert all((read.shape, read.any(axis=1).all()) == ((self.beams, seen), True) for seen, read in reads)
        for place in active:
            for beam, text in enumerate(self.texts[place]):
                assert positions[place, beam] == len(text)
                text.append(key[place, beam].tolist())
                seen, read = reads[place]
                own = stored[place, :seen][read[beam] == 1]
                assert sorted(own[:, :WIDTH].tolist()) == sorted(text)
                assert sorted((-own[:, WIDTH:]).tolist()) == sorted(text)
        assert np.isfinite(stored).all()
        assert cache.longest == positions.max()
        cache.end_step()


def is_open(texts):
    """Whether the ordinary forward can read on: a text with beams is read as one."""
    return len(texts[0]) < (MOST if len(texts) == 1 else 1)


@pytest.mark.parametrize("beams", [1, 3])
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_any_order_of_joining_leaving_and_moving(beams, data):
    places = data.draw(st.sampled_from([1, 2, 5, 19]))
    told = Told(places, beams)
    cache = told.cache
    for _ in range(data.draw(st.integers(1, 12))):
        place, other = (data.draw(st.integers(0, places - 1)) for _ in range(2))
        action = data.draw(st.sampled_from(["step", "read", "join", "leave", "swap", "copy", "select", "grow"]))
        active = np.flatnonzero(cache.active)
        if action == "step" and len(active) and max(len(told.texts[each][0]) for each in active) < MOST:
            told.step()
        elif action == "read":
            read = [each for each in {place, other} if not cache.active[each] and is_open(told.texts[each])]
            if read:
                told.read(read, [data.draw(st.integers(1, MOST - len(told.texts[each][0]))) for each in read])
        elif action == "join" and not cache.active[place]:
            cache.join(place)
        elif action == "leave":
            cache.leave(place)
            cache.held[place] = cache.counts[place] = 0
            told.texts[place] = [[] for _ in range(beams)]
        elif action == "swap" and place != other:
            cache.swap(place, other)
            told.texts[place], told.texts[other] = told.texts[other], told.texts[place]
        elif action == "copy" and beams == 1 and place != other and not cache.active[other]:
            length = data.draw(st.integers(0, len(told.texts[place][0])))
            cache.copy(place, other, length)
            told.texts[other] = [told.texts[place][0][:length]]
        elif action == "select" and len(active):
            parents = np.array([data.draw(st.lists(st.integers(0, beams - 1), min_size=beams, max_size=beams))])
            place = int(active[0])
            cache.select(np.array([place]), parents)
            told.texts[place] = [list(told.texts[place][parent]) for parent in parents[0]]
        elif action == "grow":
            cache.make_places(places + 2)
            told.texts += [[[] for _ in range(beams)] for _ in range(2)]
            places += 2
    if cache.active.any():
        told.step()


def test_beams_that_have_read_by_themselves_share_a_place():
    told = Told(2, 3)
    told.read([1], [4])
    told.cache.join(1)
    told.step()
    separate, owner = Cache(3), told.owner
    key = np.random.default_rng(1).standard_normal((6, WIDTH))
    separate.extend(owner, np.hstack([key, -key]), separate.rows(np.full(3, 2)))
    separate.advance(np.full(3, 2))
    told.cache.spread(1, separate)
    told.texts[1] = key.reshape(3, 2, WIDTH).tolist()
    told.step()
    told.step()


def test_what_a_place_that_is_not_written_holds_stays():
    told = Told(3, 1)
    told.read([0, 1], [40, 3])  # the whole capacity
    told.cache.join(1)
    for _ in range(5):
        told.step()
    told.cache.join(0)
    told.step()


def test_common_prefixes():
    cache = SlotCache(4, 1, 10, 10, np.float64)
    for place, ids in ((1, [5, 6, 7]), (2, [5, 6, 8, 9]), (3, [0, 0])):
        cache.wrote(place, np.array(ids))
    assert cache.common_prefixes(np.array([5, 6, 8])).tolist() == [0, 2, 3, 0]
    assert cache.common_prefixes(np.array([5, 6, 7, 0, 0, 0])).tolist() == [0, 3, 2, 0]
    assert cache.common_prefixes(np.array([0, 0, 0])).tolist() == [0, 0, 0, 2]
    assert cache.common_prefixes(np.array([], np.int64)).tolist() == [0, 0, 0, 0]


def test_memories_of_texts_that_join_later():
    cache, owner = SlotCache(3, 1, 10, 10, np.float64), object()

    def remember(lengths, places, first):
        rows = Rows(np.array(lengths))
        cache.remember(rows, places)
        values = first + np.arange(float(rows.total))[:, None, None]
        cache.store_memory(owner, values, -values)

    def seen(place):
        count, real = cache.visible
        key, value = cache.memory(owner)[:, place, :count, 0, 0]
        rest = np.zeros(count, bool) if real is None else real[place] == 0
        assert (value[rest] == 0).all()  # which adds nothing to an average
        np.testing.assert_array_equal(key[~rest], -value[~rest])
        return key[~rest].tolist()

    remember([2, 4], [2, 0], 10)
    version = cache.version
    cache.active[[0, 2]] = 1
    cache.arrange(3)
    assert (seen(0), seen(2)) == ([12, 13, 14, 15], [10, 11])
    remember([100], [1], 50)  # for which there is no room yet
    assert cache.version > version
    cache.active[1] = 1
    cache.arrange(3)
    assert (seen(0), seen(1), seen(2)) == ([12, 13, 14, 15], [*range(50, 150)], [10, 11])
    cache.active[1] = 0
    remember([1], [2], 90)
    cache.arrange(3)
    assert cache.visible[0] == 4
    assert (seen(0), seen(2)) == ([12, 13, 14, 15], [90])
    cache.copy(2, 1, 0)
    cache.swap(0, 2)
    cache.arrange(3)
    assert (seen(0), seen(1), seen(2)) == ([90], [90], [12, 13, 14, 15])


def test_sizes_are_few():
    cache = SlotCache(100, 1, 10, 10, np.float64)
    sizes = {cache.size_for(texts) for texts in range(1, 101)}
    assert len(sizes) == 15
    assert all(texts <= cache.size_for(texts) <= max(1.5 * texts, texts + 15) for texts in range(1, 101))
