"""Reward models and DPO: their losses through whole models in float64, and that both learn."""

import functools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.preference.small import (
    CONFIG,
    LIKED,
    TOKENIZER,
    gradient_of,
    random_gpt,
    random_pairs_of_replies,
    random_reward_model,
    start_policy,
)
from tests.training.small import log
from toolkit.errors import ConfigError, DataError
from toolkit.models.gpt import GPT
from toolkit.models.reward import RewardConfig, RewardModel, copy_values, settings_like
from toolkit.nn.module import Model
from toolkit.nn.tape import Tape
from toolkit.preference.dpo import DPOConfig, DPOTask, reference_log_probs
from toolkit.preference.pairs import ByLength, Pairs, PairTask, RewardTask, by_length, pair_rewards
from toolkit.preference.replies import reply_batch, whole_texts
from toolkit.proof import central_difference
from toolkit.tokenization.special import BOS, END
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run
from toolkit.training.task import Share
from toolkit.training.trainer import Trainer

PAIRS = Pairs(random_pairs_of_replies(), CONFIG.max_length)
ALL = Share("train", np.arange(len(PAIRS)))


def dpo_task(reference: GPT, beta: float = 0.3, supervised: float = 0.0) -> DPOTask:
    """With the reference's log-probabilities in its own precision, which training does not need."""
    task = DPOTask(PAIRS, PAIRS, reference, DPOConfig(beta, supervised))
    prompts, replies = PAIRS.sides(range(len(PAIRS)))
    exact = [log_prob_of(reference, prompt, reply) for prompt, reply in zip(prompts, replies, strict=True)]
    np.testing.assert_allclose(task.reference["train"].reshape(-1), exact, rtol=1e-5)
    task.reference = dict.fromkeys(("train", "valid"), np.reshape(exact, (-1, 2)))
    return task


def log_prob_of(model: GPT, prompt: np.ndarray, reply: np.ndarray) -> float:
    """Through the cross-entropy of the language model."""
    return -model.loss(reply_batch([prompt], [reply]), Tape()).negative_log_likelihood


def test_dpo_begins_with_ln_2_and_with_half_the_difference_of_two_likelihoods() -> None:
    """The gradient is -β/2 (∇log π_chosen - ∇log π_rejected), over all pairs."""
    model, beta = random_gpt(output_bias=True), 0.3
    task = dpo_task(model, beta)
    sums = task.loss(model, ALL, Tape())
    assert sums.loss == pytest.approx(len(PAIRS) * math.log(2), rel=1e-12)
    assert sums.tokens == len(PAIRS)
    assert sums.margin == pytest.approx(0, abs=1e-12)
    expected = np.zeros_like(model.vector)
    for pair in PAIRS:
        for reply, sign in ((pair.chosen, 1), (pair.rejected, -1)):
            tape = Tape(model.views(expected))
            model.loss(reply_batch([pair.prompt], [reply]), tape)  # -log π
            model.backward(tape, sign * beta / 2)
    found = gradient_of(model, lambda tape: task.loss(model, ALL, tape))
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_dpo_rewards_are_log_ratios() -> None:
    model, reference = random_gpt(1), random_gpt(2)
    sums = dpo_task(reference, 0.3).loss(model, ALL, Tape())
    chosen, rejected = (
        np.array([0.3 * (log_prob_of(model, p, r) - log_prob_of(reference, p, r)) for p, r in side])
        for side in ([(pair.prompt, pair.chosen) for pair in PAIRS], [(pair.prompt, pair.rejected) for pair in PAIRS])
    )
    assert sums.chosen_reward == pytest.approx(chosen.sum())
    assert sums.rejected_reward == pytest.approx(rejected.sum())
    assert sums.margin == pytest.approx((chosen - rejected).sum())
    assert sums.accuracy == (chosen > rejected).sum()
    assert sums.loss == pytest.approx(np.logaddexp(0, rejected - chosen).sum())


def test_dpo_with_supervision_adds_the_likelihood_of_what_was_chosen() -> None:
    """In nats a token, the end marker counted, and of the chosen replies alone."""
    model, task = random_gpt(1), dpo_task(random_gpt(2), supervised=0.7)
    sums, without = task.loss(model, ALL, Tape()), dpo_task(random_gpt(2)).loss(model, ALL, Tape())
    expected = sum(-log_prob_of(model, pair.prompt, pair.chosen) / len(pair.chosen) for pair in PAIRS)
    assert sums.negative_log_likelihood == pytest.approx(expected)
    assert sums.loss == pytest.approx(without.loss + 0.7 * expected)
    assert sums.margin == without.margin
    assert task.scores(sums)["negative_log_likelihood"] == pytest.approx(expected / len(PAIRS))


@pytest.mark.parametrize(
    "case",
    [
        lambda: (random_reward_model(), RewardTask(PAIRS, PAIRS)),
        lambda: (random_gpt(1), dpo_task(random_gpt(2))),
        lambda: (random_gpt(1), dpo_task(random_gpt(2), supervised=0.7)),
    ],
)
def test_gradients_are_slopes(case: Callable[[], tuple[Model, PairTask]]) -> None:
    """Each parameter by itself."""
    (model, task), rng = case(), np.random.default_rng(4)
    vector = gradient_of(model, lambda tape: task.loss(model, ALL, tape))
    gradients = model.views(vector)
    for name, parameter in model.parameters().items():
        direction = rng.standard_normal(parameter.shape)
        difference = central_difference(lambda: task.loss(model, ALL, Tape()).loss, parameter.data, direction, 1e-6)
        gradient = float(np.vdot(gradients[parameter], direction))
        # One bias of all rewards changes no difference of two.
        assert name == "head.bias" or abs(difference) > 1e-4, name
        assert math.isclose(gradient, difference, rel_tol=1e-5, abs_tol=1e-6), f"{name}: {gradient} {difference}"


@pytest.mark.parametrize("make", [lambda: (random_reward_model(), RewardTask), lambda: (random_gpt(), None)])
def test_shares_add_up(make: Callable) -> None:
    model, kind = make()
    task = kind(PAIRS, PAIRS) if kind else dpo_task(random_gpt(2))
    parts = task.split(ALL, 3)
    sums = [task.loss(model, part, Tape()) for part in parts]
    np.testing.assert_allclose(np.sum(sums, axis=0), task.loss(model, ALL, Tape()), rtol=1e-9)
    assert not any(task.loss(model, Share("train", ALL.numbers[:0]), Tape()))


def test_batches_hold_every_pair_once_and_are_the_same_again() -> None:
    pairs = Pairs(random_pairs_of_replies(40), CONFIG.max_length)
    task = RewardTask(pairs, PAIRS)
    batches = task.batches(3, 100, 7)
    assert sorted(number for batch in batches for number in batch.numbers) == list(range(40))
    again = task.batches(3, 100, 7)
    for one, other in zip(batches, again, strict=True):
        np.testing.assert_array_equal(one.numbers, other.numbers)
        prompts, replies = pairs.sides(one.numbers)
        assert sum(map(len, prompts)) + sum(map(len, replies)) <= 100
    (whole,) = task.validation_batches(100)
    assert sorted(whole.numbers) == list(range(len(PAIRS)))


@pytest.mark.parametrize("workers", [1, 2])
def test_the_reference_is_read_by_any_number_of_workers(workers: int) -> None:
    reference, pairs = random_gpt(), Pairs(random_pairs_of_replies(9), CONFIG.max_length)
    found = reference_log_probs(reference, pairs, workers)
    for (chosen, rejected), pair in zip(found, pairs, strict=True):
        assert chosen == pytest.approx(log_prob_of(reference, pair.prompt, pair.chosen), rel=1e-5)
        assert rejected == pytest.approx(log_prob_of(reference, pair.prompt, pair.rejected), rel=1e-5)


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([], "there are no pairs"),
        ([([2], [7], [7]), ([2], [], [7])], "pair 2 has an empty prompt or reply"),
        ([([2, 20], [20] * 14 + [7], [7])], "pair 1 has 17 tokens, and the model reads 16"),
    ],
)
def test_pairs_that_cannot_be_read(pairs: list, told: str) -> None:
    with pytest.raises(DataError, match=f"^{told}"):
        Pairs(pairs, CONFIG.max_length)


@pytest.mark.parametrize("beta", [0.0, -1.0, math.inf, math.nan])
def test_beta_is_above_zero(beta: float) -> None:
    with pytest.raises(ConfigError, match=r"^beta is .*: it must be a number above 0$"):
        DPOConfig(beta)


@pytest.mark.parametrize("weight", [-0.1, math.inf, math.nan])
def test_supervision_is_not_negative(weight: float) -> None:
    with pytest.raises(ConfigError, match=r"^supervised is .*: it must be a number of at least 0$"):
        DPOConfig(supervised=weight)


def preferences(count: int, seed: int) -> Pairs:
    """Random prompts and replies, of which the one with more of the liked token is preferred."""
    rng, pairs = np.random.default_rng(seed), []
    while len(pairs) < count:
        prompt, one, other = (rng.integers(16, 24, length) for length in rng.integers(1, 5, 3))
        liked = [np.mean(reply == LIKED) for reply in (one, other)]
        if liked[0] > liked[1]:
            pairs.append(([BOS, *prompt], [*one, END], [*other, END]))
    return Pairs(pairs, 12)


def train(path: Path, build: Callable[[], Model], task: PairTask, start: Callable, updates: int = 60) -> Trainer:
    config = TrainingConfig(
        updates=updates,
        tokens_per_batch=400,
        learning_rate=1e-2,
        warmup=5,
        validate_every=updates,
        best_by="loss",
        workers=1,
    )
    run = Run(path, {})
    run.create()
    trainer = Trainer(build, task, config, run, TOKENIZER, quiet=True, start=start)
    trainer.train()
    return trainer


def test_a_reward_model_learns_what_is_preferred(tmp_path: Path) -> None:
    policy = start_policy()
    task = RewardTask(preferences(200, 1), preferences(60, 2))
    build = functools.partial(RewardModel, settings_like(RewardConfig, policy.config))
    trainer = train(tmp_path / "run", build, task, lambda model: model.begin_from(policy))
    scores = trainer.state.scores
    assert scores["accuracy"] >= 0.95
    assert scores["margin"] == pytest.approx(scores["chosen_reward"] - scores["rejected_reward"])
    assert {"accuracy", "margin", "chosen_reward"} < log(tmp_path / "run", "gradient_norm")[-1].keys()


def test_dpo_learns_what_is_preferred_and_begins_where_it_was(tmp_path: Path) -> None:
    policy = start_policy()
    train_pairs, valid = preferences(200, 1), preferences(60, 2)
    task = DPOTask(train_pairs, valid, policy, DPOConfig(0.5, supervised=0))
    before = task.scores(task.loss(policy, task.validation_batches(1000)[0], Tape()))
    assert before["loss"] == pytest.approx(math.log(2), abs=1e-6)
    build = functools.partial(GPT, policy.config)
    trainer = train(tmp_path / "run", build, task, functools.partial(copy_values, policy))
    scores = trainer.state.scores
    assert scores["accuracy"] >= 0.95
    assert scores["loss"] < 0.4


@pytest.mark.parametrize(("count", "every", "out"), [(2, 20, 1), (19, 20, 1), (20, 20, 1), (40, 20, 2), (45, 2, 22)])
def test_prompts_are_taken_out_evenly_with_all_their_pairs(count: int, every: int, out: int) -> None:
    pairs = [([BOS, 20 + prompt], [30 + reply, END], [50, END]) for reply in range(3) for prompt in range(count)]
    trained, validated = Pairs(pairs, CONFIG.max_length).parted(every)
    prompts = [{prompt.tobytes() for prompt in each.prompts()} for each in (trained, validated)]
    assert (len(prompts[0]), len(prompts[1]), prompts[0] & prompts[1]) == (count - out, out, set())
    assert (len(trained), len(validated)) == (3 * (count - out), 3 * out)
    with pytest.raises(DataError, match="all preferences have the same prompt: give others to validate on"):
        Pairs(pairs[::count], CONFIG.max_length).parted(every)


def test_a_reward_that_is_earned_by_length_is_found() -> None:
    """Half of the better replies are shorter: who only counts tokens is right about none of these."""
    rng = np.random.default_rng(5)
    sizes = [(int(low), int(low + more)) for low, more in rng.integers(1, 9, (40, 2))]
    replies = [(short, long) if number % 2 else (long, short) for number, (short, long) in enumerate(sizes)]
    pairs = Pairs([([BOS, 20], [30] * better + [END], [30] * worse + [END]) for better, worse in replies], 64)
    lengths = np.array([len(reply) for pair in pairs for reply in (pair.chosen, pair.rejected)], np.float32)
    assert by_length(pairs, lengths) == ByLength(0.5, 0.5, 0.0, 40, 20)  # what the rule knows, and nothing else
    assert by_length(pairs, -lengths) == ByLength(0.5, 0.5, 1.0, 40, 20)
    knowing = np.tile(np.array([1.0, 0.0], np.float32), 40)
    assert by_length(pairs, knowing) == ByLength(1.0, 0.5, 1.0, 40, 20)
    longer = Pairs([pair for pair, (better, worse) in zip(pairs, replies, strict=True) if better > worse], 64)
    found = by_length(longer, lengths.reshape(-1, 2)[0::2].reshape(-1))
    assert (found.right, found.rule, found.pairs_shorter) == (1.0, 1.0, 0)
    assert found.told().startswith("right about 100.0 % of 20 pairs; the rule")


def test_rewards_of_pairs_are_those_of_each_alone() -> None:
    model = start_policy()
    judge = RewardModel(settings_like(RewardConfig, model.config))
    judge.allocate()
    judge.initialize(np.random.default_rng(2))
    pairs = preferences(37, 3)
    rewards = pair_rewards(judge, pairs)
    assert rewards.shape == (74,)
    for number in 0, 20, 36:
        alone = judge.values(*whole_texts(*pairs.sides([number])), Tape())
        np.testing.assert_allclose(rewards[2 * number : 2 * number + 2], alone, rtol=1e-4, atol=1e-5)
