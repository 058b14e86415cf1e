import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.store import CHUNK, ArrayWriter, RaggedStore, RaggedWriter, chunks, map_array
from toolkit.errors import DataError

IDS = st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5), max_size=12)
BYTES = st.lists(st.binary(max_size=9), max_size=12)


@given(ids=IDS)
def test_sequences_of_numbers_come_back(tmp_path_factory, ids):
    store = RaggedStore.write(tmp_path_factory.mktemp("store") / "ids", iter(ids), np.int32)
    assert [sequence.tolist() for sequence in store] == ids
    assert store.lengths.tolist() == [len(sequence) for sequence in ids]
    assert all(sequence.dtype == np.int32 for sequence in store)


@given(texts=BYTES)
def test_bytes_come_back_also_from_the_end(tmp_path_factory, texts):
    store = RaggedStore.write(tmp_path_factory.mktemp("store") / "texts", texts, np.uint8)
    assert len(store) == len(texts)
    assert [store[index].tobytes() for index in range(-len(texts), 0)] == texts


@given(parts=st.lists(st.tuples(st.lists(st.integers(0, 2**16 - 1), max_size=4), st.booleans()), max_size=9))
def test_a_sequence_may_come_in_parts(tmp_path_factory, parts):
    sequences, prefix = [[]], tmp_path_factory.mktemp("store") / "ids"
    with RaggedWriter(prefix, np.uint16) as writer:
        for values, ends in [*parts, ([], True)]:
            sequences[-1] += values
            middle = len(values) // 2
            writer.append(np.array(values, np.uint16), np.array([middle, len(values)] if ends else [], np.int64))
            if ends:
                sequences[-1:] = [sequences[-1][: len(sequences[-1]) - len(values) + middle], values[middle:], []]
    assert [sequence.tolist() for sequence in RaggedStore(prefix)] == sequences[:-1]


def test_a_sequence_that_has_not_ended_is_not_opened(tmp_path):
    with RaggedWriter(tmp_path / "ids", np.uint16) as writer:
        writer.append(np.array([1, 2, 3]), np.array([2]))
    with pytest.raises(DataError, match="missing or damaged"):
        RaggedStore(tmp_path / "ids")


@pytest.mark.parametrize("index", [3, -4])
def test_there_is_nothing_beyond_the_ends(tmp_path, index):
    with pytest.raises(IndexError):
        RaggedStore.write(tmp_path / "ids", [[1], [2], [3]], np.int32)[index]


def test_more_than_a_chunk_comes_back(tmp_path):
    ids = [[number] * (number % 3) for number in range(2 * CHUNK + 7)]
    store = RaggedStore.write(tmp_path / "ids", ids, np.int32)
    assert [sequence.tolist() for sequence in store] == ids


def test_a_store_is_pickled_as_its_path_and_its_sequences_are_views(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = RaggedStore.write(tmp_path.relative_to(tmp_path) / "ids", [range(10_000)], np.int32)
    data = pickle.dumps(store)
    assert len(data) < 1000
    monkeypatch.chdir("/")
    assert pickle.loads(data)[0].tolist() == list(range(10_000))
    assert np.shares_memory(store[0], store.values)


def test_the_files_are_ordinary_arrays_also_after_the_header_has_grown(tmp_path):
    with ArrayWriter(tmp_path / "a.npy", np.int64) as writer:
        for begin in range(0, 100_000, 1000):
            writer.append(np.arange(begin, begin + 1000))
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.arange(100_000))
    assert np.array_equal(map_array(tmp_path / "a.npy"), np.arange(100_000))


def test_what_was_not_written_to_the_end_is_not_opened(tmp_path):
    def write_half():
        with RaggedWriter(tmp_path / "ids", np.int32) as writer:
            writer.extend([[1, 2], [3]])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    with pytest.raises(DataError, match="missing or damaged"):
        RaggedStore(tmp_path / "ids")


@pytest.mark.parametrize("name", ["ids.values.npy", "ids.offsets.npy"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "text"])
def test_a_damaged_store_is_named(tmp_path, name, damage):
    RaggedStore.write(tmp_path / "ids", [[1, 2], [3]] * 50, np.int32)
    path = tmp_path / name
    data = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes({"empty": b"", "cut": data[:-8], "text": b"ordinary text\n" * 20}[damage])
    with pytest.raises(DataError, match="missing or damaged") as error:
        RaggedStore(tmp_path / "ids")
    assert str(tmp_path) in str(error.value)


def test_chunks_are_the_items():
    assert list(chunks(iter(range(7)), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(chunks([], 3)) == []
