"""The formulas of `prediction.py`: what they must give where the answer is known."""

import math

import pytest

from tests.benchmarks.side_by_side.prediction import (
    COLLECTIVES,
    PER_MESSAGE,
    Cost,
    Network,
    Shape,
    binomial,
    halving,
    pairwise,
    ring,
    speedup,
    tokens_needed,
    update,
)

SHAPE = Shape("a model", 6, 256, 8000, 128)
COST = Cost(256, 1e11, 1e-9, 4e-10, 5e-10)
SLOW, FAST = Network("slow", 50e-6, 125e6), Network("fast", 0.0, math.inf)


def test_one_rank_only_computes() -> None:
    """The arithmetic is 6 a weight and token, beside attention; then come passes over the vector."""
    found = update(SHAPE, COST, SLOW, 1, 2048)
    assert (found.exchange, found.exposed) == (0, 0)
    flops = 2048 * (6 * SHAPE.parameters + 6 * 6 * 256 * 128)
    assert found.gradient == pytest.approx(flops / 1e11 + 1e-9 * SHAPE.parameters)
    assert found.seconds == pytest.approx(found.gradient + SHAPE.parameters * (2 * 4e-10 + 7 * 5e-10))
    assert speedup(SHAPE, COST, SLOW, 1, 2048, weak=True) == 1


@pytest.mark.parametrize("machines", [2, 3, 8, 1024])
def test_all_but_the_binomial_tree_move_the_least_there_can_be(machines: int) -> None:
    """Both halves of an all-reduce take 2 (N - 1) / N of the vector; the rest of the time is for messages."""
    least = 2 * (machines - 1) / machines * 1e9 / SLOW.bandwidth
    steps = math.ceil(math.log2(machines))
    work = SLOW.latency + 2 * PER_MESSAGE
    starts = {ring: (machines - 1) * work, halving: steps * work}
    starts[pairwise] = SLOW.latency + 2 * (machines - 1) * PER_MESSAGE
    for collective, start in starts.items():
        assert 2 * collective(machines, 1e9, SLOW) == pytest.approx(least + 2 * start)
    assert binomial(machines, 1e9, SLOW) == pytest.approx(steps * (work + 1e9 / SLOW.bandwidth))


def test_nothing_is_exchanged_by_one_machine() -> None:
    assert {each(1, 1e9, SLOW) for each in COLLECTIVES.values()} == {0}


def test_overlap_hides_no_more_than_backward_and_half_of_the_exchange() -> None:
    after, during = (update(SHAPE, COST, SLOW, 8, 2048, overlap=overlap) for overlap in (False, True))
    assert after.exposed == after.exchange
    gathered = pairwise(4, 4 * SHAPE.parameters, SLOW)
    assert gathered < during.exposed < after.exposed
    assert after.exposed - during.exposed <= 2 / 3 * after.gradient


def test_without_a_network_many_ranks_are_many_times_as_fast() -> None:
    """But for what every machine adds up, packs and sends, however many there are."""
    assert speedup(SHAPE, COST, FAST, 64, 1 << 16, weak=True) == pytest.approx(64, rel=0.01)
    assert speedup(SHAPE, COST, SLOW, 64, 128, weak=True) < 16


def test_tokens_that_are_needed_are_just_enough() -> None:
    tokens = tokens_needed(SHAPE, COST, SLOW, 16)
    for number, is_enough in ((tokens, True), (0.95 * tokens, False)):
        found = update(SHAPE, COST, SLOW, 16, number)
        assert ((found.seconds - found.exposed) / found.seconds >= 0.9) == is_enough
