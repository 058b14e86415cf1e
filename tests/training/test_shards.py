"""Gradients of shards add up to the same bits, whoever has which of them."""

import math
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolkit.functional.arrays import BLOCK_ELEMENTS, Array
from toolkit.training.shards import Adder, Node, Schedule, add_from_right, deal

SIZE = 5
POWERS = st.integers(0, 6).map(lambda exponent: 2**exponent)
WORKERS = st.integers(1, 20)


def gradients(shards: int, seed: int) -> Array:
    """Numbers of very different sizes, whose sum depends on the order in nearly all places."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((shards, SIZE)) * 2.0 ** rng.integers(-12, 12, (shards, SIZE))).astype(np.float32)


def over_the_tree(leaves: Array) -> Array:
    """The sum as it is defined: halves to wholes, level by level."""
    while len(leaves) > 1:
        leaves = leaves[0::2] + leaves[1::2]
    return leaves[0]


def sums_of_workers(leaves: Array, workers: int) -> list[tuple[list[Node], list[Array]]]:
    """What each worker holds, by its schedule, in buffers that have had anything before."""
    found = []
    for shards in deal(len(leaves), workers):
        schedule = Schedule(shards)
        buffers = np.full((schedule.buffers, SIZE), np.nan, np.float32)
        for shard, leaf in zip(shards, schedule.leaves, strict=True):
            buffers[leaf.buffer] = leaves[shard]
            if len(leaf.added) > 1:
                add_from_right([buffers[place] for place in leaf.added])
        found.append(([node for node, _ in schedule.held], [buffers[place] for _, place in schedule.held]))
    return found


def joined(parts: list[tuple[list[Node], list[Array]]], whole: bool) -> tuple[list[Node], list[Array]]:
    """The sums of several workers, or machines, added up as far as they go."""
    adder = Adder([node for nodes, _ in parts for node in nodes])
    return adder.left, adder.add([block for _, blocks in parts for block in blocks], whole)


@given(POWERS, WORKERS, st.integers(0, 999))
def test_any_number_of_workers_gives_the_bits_of_the_tree(shards: int, workers: int, seed: int) -> None:
    leaves = gradients(shards, seed)
    nodes, (total,) = joined(sums_of_workers(leaves, workers), whole=True)
    assert nodes == [Node(0, shards)]
    assert total.tobytes() == over_the_tree(leaves).tobytes()


@given(POWERS, WORKERS, st.lists(st.integers(1, 20), max_size=4), st.integers(0, 999))
def test_any_division_of_the_workers_among_machines_gives_them_too(
    shards: int, workers: int, borders: list[int], seed: int
) -> None:
    leaves = gradients(shards, seed)
    held, bounds = sums_of_workers(leaves, workers), sorted({0, workers, *(each for each in borders if each < workers)})
    machines = [joined(held[begin:end], whole=False) for begin, end in pairwise(bounds)]
    _, (total,) = joined([each for each in machines if each[0]], whole=True)
    assert total.tobytes() == over_the_tree(leaves).tobytes()


@given(st.integers(1, 40), WORKERS, st.integers(0, 999))
def test_shards_that_are_no_power_of_two_add_up_alike_too(shards: int, workers: int, seed: int) -> None:
    leaves = gradients(shards, seed)
    (_, (total,)), (_, (alone,)) = (joined(sums_of_workers(leaves, count), True) for count in (workers, 1))
    assert total.tobytes() == alone.tobytes()
    np.testing.assert_allclose(total, leaves.sum(axis=0, dtype=np.float64), rtol=1e-3, atol=1e-2)


@given(st.integers(1, 70), WORKERS)
def test_shards_are_dealt_in_order_and_evenly(shards: int, workers: int) -> None:
    dealt = deal(shards, workers)
    assert [shard for each in dealt for shard in each] == list(range(shards))
    assert len(dealt) == workers
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
    assert len(dealt[0]) >= 1


@given(POWERS, WORKERS)
def test_few_sums_are_held_at_a_time(shards: int, workers: int) -> None:
    for own in deal(shards, workers):
        most = 2 * math.log2(len(own) or 1) + 1 if shards % workers else math.log2(len(own) or 1) + 1
        assert Schedule(own).buffers <= most


def test_the_order_of_shards_would_give_other_bits() -> None:
    leaves = gradients(16, 1)
    total = leaves[0].copy()
    for leaf in leaves[1:]:
        total += leaf
    assert total.tobytes() != over_the_tree(leaves).tobytes()


def test_long_vectors_are_added_block_by_block() -> None:
    vectors = list(np.random.default_rng(0).standard_normal((3, 2 * BLOCK_ELEMENTS + 7), np.float32))
    expected = vectors[0] + (vectors[1] + vectors[2])
    add_from_right(vectors)
    assert vectors[0].tobytes() == expected.tobytes()
