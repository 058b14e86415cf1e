"""Between machines: buckets of the gradient, and the moment at which each is complete."""

import numpy as np
import pytest

from tests.checks import batch_of, gpt_batch, random_model, random_pairs, small_config, small_gpt_config
from toolkit.functional.arrays import BLOCK_ELEMENTS
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.nn.memory import Pool
from toolkit.training.exchange import BucketTape, blocks_of, cut_into_buckets, owners_of, parameters_in
from toolkit.training.optimizer import Adam, Muon, maps_of, partition

MODELS = {
    "translator": small_config(),
    "translator, nothing tied": small_config(tie="none"),
    "translator, decoder tied": small_config(tie="decoder", norm_position="post"),
    "language model": small_gpt_config(positions="learned"),
    "language model, turned": small_gpt_config(num_key_value_heads=2, activation="swiglu", norm="rms", tie=False),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_complete_changes_no_more(name: str) -> None:
    rng = np.random.default_rng(3)
    model = random_model(MODELS[name], rng)
    batch = gpt_batch(rng, [5, 3]) if isinstance(model, GPT) else batch_of(random_pairs(rng, 6))
    gradient = np.full_like(model.vector, np.nan)
    cuts = np.linspace(0, len(gradient), 25).astype(int)
    buckets = [slice(*cuts[i : i + 2]) for i in range(24)]
    views, inside, seen = model.views(gradient), parameters_in(model, buckets), {}
    unwritten = set(views)

    def complete(bucket: int) -> None:
        for parameter in inside[bucket] & unwritten:
            views[parameter][...] = 0
            unwritten.remove(parameter)
        assert bucket not in seen
        seen[bucket] = gradient[buckets[bucket]].copy()

    tape = BucketTape(owners_of(model, buckets), complete, views, None, Pool(), unwritten=unwritten)
    model.loss(batch, tape)
    model.backward(tape)
    assert len(seen) >= 8  # or nothing would travel while something is computed
    for bucket, values in seen.items():
        np.testing.assert_array_equal(values, gradient[buckets[bucket]])


@pytest.mark.parametrize("optimizer", [Adam(), Muon()], ids=["adam", "muon"])
def test_buckets_change_nothing_of_the_blocks_over_which_squares_are_added(optimizer: Adam | Muon) -> None:
    model = GPT(GPTConfig(vocab_size=500, d_model=160, layers=4, num_heads=4, d_ff=500))
    model.allocate()
    buckets = cut_into_buckets(model, optimizer)
    assert [bucket.start for bucket in buckets[1:]] == [bucket.stop for bucket in buckets[:-1]]
    assert (buckets[0].start, buckets[-1].stop) == (0, len(model.vector))
    assert len(buckets) > 3
    for stretch in (shard.stretch for shard in maps_of(model, optimizer)):
        assert any(bucket.start <= stretch.start and stretch.stop <= bucket.stop for bucket in buckets)

    def blocks(count: int, cut: list[slice]) -> list[tuple[int, int]]:
        shards = (shard for own in partition(model, optimizer, count, cut) for shard in own)
        return sorted((block.start, block.stop) for stretch, _ in shards for block in blocks_of(stretch))

    assert all(blocks(count, cut) == blocks(1, []) for count in (1, 2, 3, 16) for cut in ([], buckets))
    assert max(stop - start for start, stop in blocks(3, buckets)) == BLOCK_ELEMENTS
