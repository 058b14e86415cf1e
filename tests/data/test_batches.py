import hashlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data import Example, epoch_batches, split_batch
from toolkit.data.batches import cut_batch
from toolkit.errors import ConfigError


def make(lengths):
    return [Example(np.zeros(source, np.int32), np.zeros(target, np.int32)) for source, target in lengths]


def random_examples(count, seed=0):
    return make(np.random.default_rng(seed).geometric(0.1, (count, 2)))


def by_length(examples, indices):
    return [(len(examples[index].target), len(examples[index].source)) for index in indices]


def target_tokens(examples, indices):
    return sum(len(examples[index].target) + 1 for index in indices)


def tokens(examples, indices):
    return sum(len(examples[index].target) + len(examples[index].source) for index in indices)


EXAMPLES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60).map(make)
SEEDS = st.integers(0, 2**32)


@given(examples=EXAMPLES, budget=st.integers(1, 100), seed=SEEDS)
def test_an_epoch_holds_every_example_once_within_the_budget(examples, budget, seed):
    batches = epoch_batches(examples, budget, np.random.default_rng(seed))
    assert sorted(int(index) for batch in batches for index in batch) == list(range(len(examples)))
    for batch in batches:
        assert len(batch) == 1 or target_tokens(examples, batch) <= budget
        assert by_length(examples, batch) == sorted(by_length(examples, batch))


def test_a_batch_is_filled_to_the_last_token():
    batches = epoch_batches(make([(3, 4)] * 6), 10, np.random.default_rng(0))
    assert [len(batch) for batch in batches] == [2, 2, 2]


def test_batches_are_full_and_of_similar_lengths():
    examples = random_examples(5000)
    batches = epoch_batches(examples, 1000, np.random.default_rng(1))
    total = target_tokens(examples, range(len(examples)))
    assert len(batches) < 1.1 * total / 1000
    padded = sum((max(by_length(examples, batch))[0] + 1) * len(batch) for batch in batches)
    assert padded < 1.1 * total  # unsorted batches would be padded to several times the total


def test_the_generator_alone_decides_and_epochs_differ():
    examples = random_examples(2000)
    rng, again = np.random.default_rng(3), np.random.default_rng(3)
    first, second = (epoch_batches(examples, 500, rng) for _ in range(2))
    repeated = [epoch_batches(examples, 500, again) for _ in range(2)]
    assert [[batch.tolist() for batch in epoch] for epoch in repeated] == [
        [batch.tolist() for batch in epoch] for epoch in (first, second)
    ]
    members = {frozenset(batch.tolist()) for batch in first}
    kept = sum(frozenset(batch.tolist()) in members for batch in second)
    assert kept < 0.1 * len(second)  # the company an example keeps changes, not only the order of batches


def test_batches_are_those_of_earlier_versions():
    """A run that is resumed, or repeated with the same seed, meets the batches it met before."""
    batches = epoch_batches(random_examples(2000), 500, np.random.default_rng(3))
    data = b"|".join(batch.astype("<i8").tobytes() for batch in batches)
    assert hashlib.sha256(data + b"|").hexdigest().startswith("a8617f066b18917b")
    once = epoch_batches(random_examples(2000), 500, np.random.default_rng(3), np.ones(2000))
    assert [batch.tolist() for batch in once] == [batch.tolist() for batch in batches]


def test_repeats_are_met_in_every_epoch_and_drawn_anew():
    repeats = np.repeat([0.5, 2.0, 2.25, 1.0], 500)
    rng = np.random.default_rng(0)
    examples = random_examples(2000)
    counts = np.stack(
        [np.bincount(np.concatenate(epoch_batches(examples, 300, rng, repeats)), minlength=2000) for _ in range(40)]
    )
    assert np.all((counts >= np.floor(repeats)) & (counts <= np.ceil(repeats)))
    np.testing.assert_allclose(counts.sum(axis=1), repeats.sum(), atol=1)
    assert len({row.tobytes() for row in counts}) == 40
    means = counts.reshape(40, 4, 500).mean(axis=2)
    np.testing.assert_allclose(means, np.tile([0.5, 2, 2.25, 1], (40, 1)), atol=0.1)
    assert counts[:, :500].any(axis=0).all()  # a half that is drawn anew leaves nobody out for long


def test_an_epoch_of_nothing_has_no_batch():
    assert epoch_batches(random_examples(5), 10, np.random.default_rng(0), np.zeros(5)) == []


def test_the_order_of_batches_is_shuffled():
    examples = random_examples(2000)
    longest = [max(by_length(examples, batch))[0] for batch in epoch_batches(examples, 200, np.random.default_rng(0))]
    rises = sum(before <= after for before, after in pairwise(longest))
    assert 0.3 < rises / len(longest) < 0.7


def test_a_budget_without_a_token_is_refused():
    with pytest.raises(ConfigError, match="tokens_per_batch is 0"):
        epoch_batches(make([(1, 1)]), 0, np.random.default_rng(0))


@given(examples=EXAMPLES, parts=st.integers(1, 5), seed=SEEDS)
def test_parts_are_the_batch_balanced_and_sorted(examples, parts, seed):
    batch = np.random.default_rng(seed).permutation(len(examples))
    dealt = split_batch(batch, examples, parts)
    assert len(dealt) == parts
    assert sorted(np.concatenate(dealt).tolist()) == list(range(len(examples)))
    loads = [tokens(examples, part) for part in dealt]
    longest = max((tokens(examples, [index]) for index in batch), default=0)
    assert max(loads) - min(loads) <= longest
    for part in dealt:
        assert by_length(examples, part) == sorted(by_length(examples, part))


def test_lengths_one_apart_are_dealt_out_evenly():
    examples = make((0, length) for length in range(12))
    loads = [tokens(examples, part) for part in split_batch(np.arange(12), examples, 3)]
    assert loads == [22, 22, 22]


def test_splitting_is_deterministic_and_one_part_is_the_batch():
    examples = random_examples(300)
    for batch in epoch_batches(examples, 200, np.random.default_rng(0)):
        first, second = split_batch(batch, examples, 3), split_batch(batch, examples, 3)
        assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
        assert np.array_equal(split_batch(batch, examples, 1)[0], batch)


def test_a_split_into_nothing_is_refused():
    with pytest.raises(ConfigError, match="0 parts"):
        split_batch(np.arange(2), make([(1, 1)] * 2), 0)


@pytest.mark.parametrize("parts", [1, 2, 4, 16])
def test_shards_are_the_batch_in_parts_of_similar_lengths_and_equal_tokens(parts: int) -> None:
    rng = np.random.default_rng(5)
    examples = make([(int(rng.integers(1, 30)), int(rng.integers(1, 30))) for _ in range(200)])
    shards = cut_batch(rng.permutation(200)[:150], examples, parts)
    assert len(np.unique(np.concatenate(shards))) == 150
    loads = [tokens(examples, shard) for shard in shards]
    assert max(loads) - min(loads) <= 2 * 62
    spans = sorted((len(examples[shard[0]].target), len(examples[shard[-1]].target)) for shard in shards)
    assert all(last <= first for (_, last), (first, _) in pairwise(spans))


def test_there_may_be_more_shards_than_examples() -> None:
    shards = cut_batch(np.arange(3), make([(1, 1), (2, 2), (3, 3)]), 8)
    assert sorted(len(shard) for shard in shards) == [0] * 5 + [1] * 3
    assert [len(shard) for shard in cut_batch(np.arange(0), make([(1, 1)]), 4)] == [0] * 4
