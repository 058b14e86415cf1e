"""The task: which pairs a worker gets, and what is minimised on them."""

import numpy as np
import pytest

from tests.checks import batch_of, random_model, small_config
from tests.training.small import small_task
from toolkit.data.batches import Example
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import EOS
from toolkit.training.translation import describe


def test_an_epoch_has_every_pair_once_and_differs_from_the_next() -> None:
    task = small_task()
    epochs = [task.batches(epoch, 60, 1) for epoch in (0, 1, 0)]
    for batches in epochs:
        assert sorted(index for _, indices in batches for index in indices) == list(range(30))
    orders = [[indices.tolist() for _, indices in batches] for batches in epochs]
    assert orders[0] == orders[2] != orders[1]
    assert orders[0] != [indices.tolist() for _, indices in task.batches(0, 60, 2)]


def test_validation_has_every_pair_once() -> None:
    batches = small_task().validation_batches(20)
    assert {name for name, _ in batches} == {"valid"}
    assert sorted(index for _, indices in batches for index in indices) == list(range(6))


def test_shares_are_a_batch() -> None:
    task = small_task()
    for batch in task.batches(0, 60, 1):
        shares = task.split(batch, 3)
        assert sorted(index for _, share in shares for index in share) == sorted(batch[1])


def test_the_prior_is_even_over_tokens_that_occur_as_labels() -> None:
    task = small_task()
    labels = {EOS} | {int(token) for example in task.examples["train"] for token in example.target}
    assert set(np.flatnonzero(task.prior).tolist()) == labels
    np.testing.assert_allclose(task.prior[sorted(labels)], 1 / len(labels), rtol=1e-6)


@pytest.mark.parametrize("name", ["train", "valid"])
def test_only_training_is_smoothed(name: str) -> None:
    task = small_task()
    model = random_model(small_config(), np.random.default_rng(0))
    share = (name, np.arange(5))
    pairs = [tuple(example) for example in task.examples[name][:5]]
    expected = model.loss(batch_of(pairs), Tape(), 0.1 if name == "train" else 0.0, task.prior)
    assert task.loss(model, share, Tape()) == pytest.approx(expected)
    assert (expected.loss == pytest.approx(expected.negative_log_likelihood)) == (name == "valid")


def test_a_kept_pass_is_differentiated_and_an_empty_share_costs_nothing() -> None:
    task, model = small_task(), random_model(small_config(), np.random.default_rng(0))
    vector = np.zeros_like(model.vector)
    tape = Tape(model.views(vector))
    assert task.loss(model, ("train", np.array([], int)), tape) == (0, 0, 0)
    assert not vector.any()
    task.loss(model, ("train", np.arange(4)), tape)
    assert tape.finished
    assert vector.any()


def test_describe() -> None:
    examples = [Example(np.arange(3), np.arange(1)), Example(np.arange(999), np.arange(0))]
    assert describe(examples) == "2 pairs, 1,004 source and 3 target tokens"
