"""Conversations as a task: the loss is on supervised tokens alone, and conversations of a batch know of no others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import random_model, small_gpt_config
from toolkit.data.store import RaggedStore
from toolkit.functional.output_loss import output_loss
from toolkit.nn.tape import Tape
from toolkit.proof import central_difference
from toolkit.training.conversation import ConversationTask
from toolkit.training.language import Share

LENGTHS = (9, 4, 17, 2, 9, 12)
CONTEXT = 16


@pytest.fixture(scope="module")
def conversations() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Ids of conversations, and flags: some of their tokens, but never the first, and always one."""
    rng = np.random.default_rng(5)
    ids = [rng.integers(0, 30, length) for length in LENGTHS]
    flags = [rng.random(length) < 0.4 for length in LENGTHS]
    for each in flags:
        each[0], each[-1] = False, True
    return ids, flags


@pytest.fixture(scope="module")
def task(conversations, tmp_path_factory: pytest.TempPathFactory) -> ConversationTask:
    ids, flags = conversations
    room = tmp_path_factory.mktemp("stores")
    tokens = RaggedStore.write(room / "ids", ids, np.uint16)
    supervised = RaggedStore.write(room / "supervised", flags, np.uint8)
    return ConversationTask(tokens, tokens, (supervised, supervised), CONTEXT)


@pytest.fixture(scope="module")
def model():
    config = small_gpt_config(max_length=CONTEXT, positions="learned")
    return random_model(config, np.random.default_rng(2))


def loss_and_gradient(model, task, numbers) -> tuple[tuple, np.ndarray]:
    vector = np.zeros_like(model.vector)
    tape = Tape(model.views(vector))
    sums = task.loss(model, Share("train", np.array(numbers)), tape)
    assert tape.finished
    return sums, vector


@given(st.permutations(range(len(LENGTHS))).flatmap(lambda order: st.integers(1, 6).map(lambda n: order[:n])))
def test_the_loss_of_a_batch_is_that_of_its_conversations_one_by_one(task, model, numbers) -> None:
    together, gradient = loss_and_gradient(model, task, numbers)
    alone = [loss_and_gradient(model, task, [number]) for number in numbers]
    np.testing.assert_allclose(together, np.sum([sums for sums, _ in alone], axis=0), rtol=1e-12)
    np.testing.assert_allclose(gradient, np.sum([each for _, each in alone], axis=0), rtol=1e-9, atol=1e-12)


def test_the_gradient_is_the_slope_of_the_loss(task, model) -> None:
    share = Share("train", np.arange(len(LENGTHS)))
    _, gradient = loss_and_gradient(model, task, share.texts)
    rng = np.random.default_rng(4)
    for _ in range(4):
        direction = rng.standard_normal(len(model.vector))
        slope = central_difference(lambda: task.loss(model, share, Tape()).loss, model.vector, direction, 1e-6)
        assert float(gradient @ direction) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("number", range(len(LENGTHS)))
def test_exactly_the_supervised_tokens_are_predicted(task, model, conversations, number: int) -> None:
    ids, flags = (part[number] for part in conversations)
    batch = task.batch("train", np.array([number]))
    assert (batch.scored + 1).tolist() == np.flatnonzero(flags).tolist()
    assert batch.labels[batch.scored].tolist() == ids[flags].tolist()
    tape = Tape()
    x = model.read(batch.inputs, batch.rows, tape)[np.flatnonzero(flags) - 1]
    wanted, _ = output_loss(x, model.output.table.data, None, ids[flags])
    sums, _ = loss_and_gradient(model, task, [number])
    assert sums.tokens == flags.sum()
    assert sums.loss == pytest.approx(wanted.loss, rel=1e-12)


def test_a_pass_counts_every_supervised_token_once(task, conversations, model) -> None:
    counted = [task.loss(model, share, Tape()).tokens for share in task.validation_batches(1)]
    assert sum(counted) == sum(flags.sum() for flags in conversations[1])


def test_what_is_only_read_has_an_effect_on_replies_and_none_on_the_count(task, model, conversations) -> None:
    flags = conversations[1][2]
    first = int(np.flatnonzero(flags)[0])
    assert first > 1
    batch = task.batch("train", np.array([2]))
    before = model.loss(batch, Tape())
    batch.inputs[0] = (batch.inputs[0] + 1) % 30
    after = model.loss(batch, Tape())
    assert after.tokens == before.tokens
    assert after.loss != before.loss
