import gc
import multiprocessing
import os

import numpy as np
import pytest

from tests.checks import DROPOUT, batch_of, gpt_batch, random_model, random_pairs, small_config, small_gpt_config
from toolkit.nn import memory
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape

LARGE = (300, 100)  # float32: several pages


def address(array: np.ndarray) -> int:
    return array.ctypes.data


def test_shape_and_dtype() -> None:
    pool = Pool()
    for shape in ((), (0, 4), (3, 5), LARGE):
        for dtype in (np.float32, np.float64, np.int64):
            array = pool.empty(shape, dtype)
            assert (array.shape, array.dtype, array.flags.c_contiguous) == (shape, dtype, True)
            array[...] = 1
            assert array.sum() == array.size


def test_a_block_is_lent_again_when_its_last_array_is_gone() -> None:
    pool = Pool()
    first = pool.empty(LARGE)
    place, allocated = address(first), pool.allocated
    view = first[10:20].reshape(-1, 5).T
    del first
    other = pool.empty(LARGE)
    assert address(other) != place  # the view still stands on the first block
    assert pool.allocated == 2 * allocated
    del view
    third = pool.empty(LARGE)
    assert address(third) == place
    assert pool.allocated == 2 * allocated


@pytest.mark.parametrize("keep", [lambda x: x[1:], lambda x: x.reshape(100, 300), lambda x: np.split(x, 2, axis=1)[1]])
def test_no_two_living_arrays_share_memory(keep) -> None:
    pool, living = Pool(), []
    for value in range(6):
        array = keep(pool.empty(LARGE))
        array[...] = value
        living.append(array)
        if value == 3:
            del living[1], array
    assert [float(array.mean()) for array in living] == [0, 2, 3, 4, 5]
    assert all(array.std() == 0 for array in living)


def test_the_block_freed_last_is_lent_first() -> None:
    pool = Pool()
    first, second = pool.empty(LARGE), pool.empty(LARGE)
    expected = [address(second), address(first)]
    del first, second
    assert [address(array) for array in (pool.empty(LARGE),)] == expected[:1]
    held = [pool.empty(LARGE), pool.empty(LARGE)]
    assert sorted(map(address, held)) == sorted(expected)


def test_nearly_equal_sizes_share_blocks() -> None:
    pool = Pool()
    for rows in (1000, 990, 1001, 985):
        pool.empty((rows, 64))
    assert pool.allocated < 2 * 1001 * 64 * 4


def test_lent_memory_is_poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "poison", True)
    pool = Pool()
    for shape in ((3, 4), LARGE):
        pool.empty(shape)[...] = 1
        assert np.isnan(pool.empty(shape)).all()
    assert pool.empty((3,), np.int64).dtype == np.int64


@pytest.mark.parametrize(
    ("config", "batch"),
    [
        (
            small_config(d_model=32, d_ff=64, activation="gelu", **DROPOUT),
            lambda rng, count: batch_of(random_pairs(rng, count)),
        ),
        (
            small_gpt_config(d_model=32, d_ff=64, activation="swiglu", norm="rms", **DROPOUT),
            lambda rng, count: gpt_batch(rng, [8] * count),
        ),
    ],
    ids=["seq2seq", "gpt"],
)
def test_a_warmed_up_training_step_takes_no_memory(config, batch) -> None:
    rng = np.random.default_rng(0)
    model = random_model(config, rng, np.float32)
    views, pool = model.views(np.zeros_like(model.vector)), Pool()
    batches = [batch(rng, count) for count in (60, 40)]

    def step() -> int:
        for batch in batches:
            tape = Tape(views, np.random.SFC64(1), pool)
            model.loss(batch, tape)
            model.backward(tape)
            assert tape.finished
        return pool.allocated

    gc.collect()
    gc.disable()  # no cycle may keep a block from being lent again
    try:
        first = step()
        assert first > 500_000
        assert [step() for _ in range(4)] == [first] * 4
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_has_memory_of_its_own() -> None:
    """Both have the same free blocks, and would otherwise write into each other's."""
    pool = Pool()
    array = pool.empty(LARGE)
    array[...] = 1
    child = multiprocessing.get_context("fork").Process(target=array.fill, args=(2,))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert (array == 1).all()
