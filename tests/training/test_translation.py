"""The task: which pairs a worker gets, and what is minimised on them."""

import pickle

import numpy as np
import pytest

from tests.checks import batch_of, encode_pairs, random_model, small_config
from tests.conftest import ENGLISH, NEPALI
from tests.training.small import small_task
from toolkit.data.batches import Example
from toolkit.data.pair_corpus import StoredExamples
from toolkit.data.sentences import SubwordSampler
from toolkit.data.store import RaggedStore
from toolkit.nn.tape import Tape
from toolkit.tokenization import SentencePieceTokenizer
from toolkit.tokenization.special import EOS
from toolkit.training.task import Share
from toolkit.training.translation import TranslationTask, describe

PAIRS = list(zip(ENGLISH, NEPALI, strict=True))


@pytest.fixture(scope="module")
def sampling_task() -> TranslationTask:
    """Every pair is in both sets; those for training are segmented anew each time."""
    tokenizer = SentencePieceTokenizer.train([*ENGLISH, *NEPALI] * 5, 400)
    examples, _ = encode_pairs(PAIRS, tokenizer, 64)
    sampler = SubwordSampler(tokenizer, PAIRS, alpha=0.1, max_length=64)
    return TranslationTask(examples, examples, tokenizer.vocab_size, 0.1, sampler=sampler)


def losses(task: TranslationTask, shares: list[Share]) -> list[float]:
    model = random_model(small_config(vocab_size=len(task.prior), max_length=64), np.random.default_rng(0))
    return [task.loss(model, share, Tape()).negative_log_likelihood for share in shares]


def test_an_epoch_has_every_pair_once_and_differs_from_the_next() -> None:
    task = small_task()
    epochs = [task.batches(epoch, 60, 1) for epoch in (0, 1, 0)]
    for batches in epochs:
        assert sorted(index for _, indices, _ in batches for index in indices) == list(range(30))
    orders = [[indices.tolist() for _, indices, _ in batches] for batches in epochs]
    assert orders[0] == orders[2] != orders[1]
    assert orders[0] != [indices.tolist() for _, indices, _ in task.batches(0, 60, 2)]


def test_validation_has_every_pair_once() -> None:
    batches = small_task().validation_batches(20)
    assert {name for name, *_ in batches} == {"valid"}
    assert sorted(index for _, indices, _ in batches for index in indices) == list(range(6))


def test_shares_are_a_batch() -> None:
    task = small_task()
    for batch in task.batches(0, 60, 1):
        shares = task.split(batch, 3)
        assert sorted(index for _, share, _ in shares for index in share) == sorted(batch[1])


def test_the_prior_is_even_over_tokens_that_occur_as_labels() -> None:
    task = small_task()
    labels = {EOS} | {int(token) for example in task.examples["train"] for token in example.target}
    assert set(np.flatnonzero(task.prior).tolist()) == labels
    np.testing.assert_allclose(task.prior[sorted(labels)], 1 / len(labels), rtol=1e-6)


@pytest.mark.parametrize("name", ["train", "valid"])
def test_only_training_is_smoothed(name: str) -> None:
    task = small_task()
    model = random_model(small_config(), np.random.default_rng(0))
    share = Share(name, np.arange(5))
    pairs = [tuple(example) for example in task.examples[name][:5]]
    expected = model.loss(batch_of(pairs), Tape(), 0.1 if name == "train" else 0.0, task.prior)
    assert task.loss(model, share, Tape()) == pytest.approx(expected)
    assert (expected.loss == pytest.approx(expected.negative_log_likelihood)) == (name == "valid")


def test_a_kept_pass_is_differentiated_and_an_empty_share_costs_nothing() -> None:
    task, model = small_task(), random_model(small_config(), np.random.default_rng(0))
    vector = np.zeros_like(model.vector)
    tape = Tape(model.views(vector))
    assert task.loss(model, Share("train", np.array([], int)), tape) == (0, 0, 0)
    assert not vector.any()
    task.loss(model, Share("train", np.arange(4)), tape)
    assert tape.finished
    assert vector.any()


def test_training_pairs_are_segmented_anew_in_every_epoch_and_alike_for_the_same_seed(sampling_task) -> None:
    whole = 10_000  # one batch holds the set
    epochs = [sampling_task.batches(epoch, whole, seed) for epoch, seed in ((0, 1), (1, 1), (0, 2))]
    first, second, other_seed = (losses(sampling_task, batches) for batches in epochs)
    assert len({*first, *second, *other_seed}) == 3
    assert first == losses(sampling_task, sampling_task.batches(0, whole, 1))


def test_every_worker_draws_its_own_segmentations_and_the_same_in_any_process(sampling_task) -> None:
    shares = sampling_task.split(sampling_task.batches(0, 10_000, 1)[0], 2)
    assert len({share.seed for share in shares}) == 2
    assert losses(pickle.loads(pickle.dumps(sampling_task)), shares) == losses(sampling_task, shares)


def test_validation_is_never_segmented_at_random(sampling_task) -> None:
    (batch,) = sampling_task.validation_batches(10_000)
    pairs = [tuple(example) for example in sampling_task.examples["valid"]]
    model = random_model(small_config(vocab_size=len(sampling_task.prior), max_length=64), np.random.default_rng(0))
    expected = model.loss(batch_of(pairs), Tape()).negative_log_likelihood
    (share,) = sampling_task.split(batch, 1)
    assert losses(sampling_task, [share]) == pytest.approx([expected])


def test_the_prior_covers_what_sampling_draws(sampling_task) -> None:
    best = sampling_task.examples["train"]
    drawn = {
        int(token)
        for seed in range(50)
        for example in sampling_task.sampler.sample(range(len(best)), best, (seed,))
        for token in example.target
    }
    assert drawn - {int(token) for example in best for token in example.target}
    assert all(sampling_task.prior[token] > 0 for token in drawn)
    assert not sampling_task.prior[:EOS].any()


def test_an_epoch_has_pairs_as_often_as_asked() -> None:
    examples = small_task().examples["train"]
    repeats = np.repeat([2.0, 1.0, 0.0], 10)
    task = TranslationTask(examples, examples, 30, 0.1, repeats=repeats)
    indices = [index for batch in task.batches(0, 60, 1) for index in batch.numbers]
    assert sorted(indices) == sorted([*range(10), *range(20)])


def test_pairs_on_the_disk_are_trained_on_like_pairs_in_memory(tmp_path) -> None:
    listed = small_task()
    sets = []
    for name, examples in listed.examples.items():
        sides = [
            RaggedStore.write(tmp_path / f"{name}.{side}", [getattr(example, side) for example in examples], np.int32)
            for side in ("source", "target")
        ]
        sets.append(StoredExamples(*sides))
    stored = TranslationTask(*sets, 30, 0.1)
    assert np.array_equal(stored.prior, listed.prior)
    assert describe(stored.examples["train"]) == describe(listed.examples["train"])
    model = random_model(small_config(), np.random.default_rng(0))
    sums = [
        [task.loss(model, share, Tape()) for batch in task.batches(0, 60, 1) for share in task.split(batch, 2)]
        for task in (stored, listed)
    ]
    assert sums[0] == sums[1]


def test_describe() -> None:
    examples = [Example(np.arange(3), np.arange(1)), Example(np.arange(999), np.arange(0))]
    assert describe(examples) == "2 pairs, 1,004 source and 3 target tokens"
