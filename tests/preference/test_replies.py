"""Replies: as rows, as samples of the distribution that is trained, and how far they are from another model's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.preference.small import CONFIG, random_gpt, random_reward_model, random_texts, start_policy
from toolkit.errors import ConfigError, DataError
from toolkit.nn.memory import Pool
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.preference.ppo import PPOConfig, PPOTask
from toolkit.preference.replies import (
    divergence,
    never_written,
    reply_batch,
    reply_log_probs,
    whole_texts,
    write_replies,
)
from toolkit.preference.reward import ModelScore, normalized_score
from toolkit.tokenization.special import BOS, END, EOS

texts = st.lists(
    st.tuples(
        st.lists(st.integers(0, 99), min_size=1, max_size=6), st.lists(st.integers(0, 99), min_size=1, max_size=6)
    ),
    min_size=1,
    max_size=6,
)


@given(texts)
def test_the_rows_that_count_predict_exactly_the_replies(pairs: list) -> None:
    """Id by id: what a row has read, and what it is to predict."""
    prompts, replies = ([np.array(part) for part in side] for side in zip(*pairs, strict=True))
    batch = reply_batch(prompts, replies)
    expected = [(prompt + reply[:place], reply[place]) for prompt, reply in pairs for place in range(len(reply))]
    found = []
    for row in batch.scored:
        sequence = batch.rows.sequence_of[row]
        seen = batch.inputs[batch.rows.starts[sequence] : row + 1]
        found.append((seen.tolist(), int(batch.labels[row])))
    assert found == expected
    assert batch.rows.total == len(batch.inputs) == len(batch.labels)


@given(texts)
def test_whole_texts_end_at_their_last_token(pairs: list) -> None:
    prompts, replies = ([np.array(part) for part in side] for side in zip(*pairs, strict=True))
    ids, rows, last = whole_texts(prompts, replies)
    assert ids.tolist() == [token for prompt, reply in pairs for token in prompt + reply]
    assert ids[last].tolist() == [reply[-1] for _, reply in pairs]
    assert rows.sequence_of[last].tolist() == list(range(len(pairs)))


PROMPTS, REPLIES = random_texts()


@pytest.mark.parametrize("end", [END, EOS])
def test_replies_end_with_their_marker_or_at_the_limit(end: int) -> None:
    model = start_policy()
    prompts = [np.array([BOS, 16 + number % 8]) for number in range(100)]
    replies = write_replies(model, prompts, end, max_new_tokens=4)
    assert {reply.ended for reply in replies} == {True, False}
    for reply in replies:
        assert reply.ended == (reply.ids[-1] == end)
        assert (reply.ids[:-1] >= 16).all()
        assert len(reply.ids) == 4 or (reply.ended and len(reply.ids) < 4)


def test_a_prompt_has_its_own_draw_whoever_replies_to_the_others() -> None:
    model = random_gpt()
    whole = write_replies(model, PROMPTS, END, max_new_tokens=5, seed=3)
    parts = [
        *write_replies(model, PROMPTS[:2], END, max_new_tokens=5, seed=3),
        *write_replies(model, PROMPTS[2:], END, max_new_tokens=5, seed=3, first=2),
    ]
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
    others = write_replies(model, PROMPTS, END, max_new_tokens=5, seed=4)
    assert any(one.ids.tolist() != other.ids.tolist() for one, other in zip(whole, others, strict=True))


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_replies_come_from_the_distribution_that_is_scored(temperature: float) -> None:
    """First tokens of many replies to one prompt, as often as their probability says: a chi-squared statistic."""
    model = random_gpt()
    prompt = PROMPTS[0]
    count = 2000
    replies = write_replies(model, [prompt] * count, END, temperature=temperature, max_new_tokens=1)
    possible = np.setdiff1d(np.arange(CONFIG.vocab_size), never_written(END))
    batch = reply_batch([prompt] * len(possible), [np.array([token]) for token in possible])
    log_probs, entropies = reply_log_probs(model, batch, Tape(), temperature, never_written(END))
    probabilities = np.exp(log_probs)
    assert probabilities.sum() == pytest.approx(1, rel=1e-12)
    assert entropies[0] == pytest.approx(-(probabilities * log_probs).sum())
    seen = np.array([sum(reply.ids[0] == token for reply in replies) for token in possible])
    assert seen.sum() == count
    expected = probabilities * count
    statistic = ((seen - expected) ** 2 / expected).sum()
    freedom = len(possible) - 1
    assert statistic < freedom + 4 * np.sqrt(2 * freedom)


def test_a_normalized_score_has_mean_0_and_deviation_1_on_the_reference() -> None:
    reference, model = random_gpt(), random_reward_model()
    config = PPOConfig(max_new_tokens=6)
    prompts = PROMPTS * 20
    score = normalized_score(model, reference, prompts, END, config, seed=2)
    rng = np.random.default_rng(2)
    asked = [prompts[number] for number in rng.choice(len(prompts), len(prompts), replace=False)]
    replies = write_replies(reference, asked, END, max_new_tokens=6, seed=2)
    both = [(prompt, reply.ids) for prompt, reply in zip(asked, replies, strict=True) if reply.ended]
    assert 5 < len(both) < len(asked)
    values = score(*zip(*both, strict=True), Pool())
    assert values.mean() == pytest.approx(0, abs=1e-9)
    assert values.std() == pytest.approx(1, rel=1e-9)
    critic = ModelScore(score.critic())
    np.testing.assert_allclose(critic(PROMPTS, REPLIES, Pool()), score(PROMPTS, REPLIES, Pool()), rtol=1e-9)


def test_a_reference_that_never_ends_has_no_scale() -> None:
    reference = random_gpt(output_bias=True)
    reference.output.bias.data[END] = -1e4
    with pytest.raises(DataError, match=r"^no reply of the model ends by itself: "):
        normalized_score(random_reward_model(), reference, PROMPTS, END, PPOConfig(max_new_tokens=4))


@pytest.mark.parametrize(
    ("prompts", "valid", "told"),
    [
        ([], PROMPTS, "there are no train prompts"),
        (PROMPTS, [], "there are no valid prompts"),
        ([[20, 21]], PROMPTS, "prompt 1 does not begin with the begin mark"),
        ([PROMPTS[0], []], PROMPTS, "prompt 2 does not begin with the begin mark"),
        (PROMPTS, [[BOS, 99]], "prompt 1 has ids outside the model's vocabulary of 30"),
        (
            [[BOS] * 12],
            PROMPTS,
            "a train prompt has 12 tokens, which leaves less room than 5 tokens in a context of 16",
        ),
    ],
)
def test_prompts_that_cannot_be_replied_to(prompts: list, valid: list, told: str) -> None:
    with pytest.raises(DataError, match=f"^{told}"):
        PPOTask(prompts, valid, END, random_gpt(), lambda *_: None, PPOConfig(max_new_tokens=5))


@pytest.mark.parametrize(
    "settings",
    [
        {"prompts": 0}, {"ppo_epochs": 0}, {"minibatches": 0}, {"max_new_tokens": 0}, {"clip": 0.0},
        {"value_clip": -0.1}, {"temperature": 0.0}, {"kl_coef": -0.1}, {"vf_coef": -1.0}, {"gamma": 1.1},
        {"gae_lambda": -0.1}, {"unfinished": float("nan")}, {"kl_coef": float("inf")},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_named(settings: dict) -> None:
    ((name, value),) = settings.items()
    with pytest.raises(ConfigError, match=f"^{name} is {value}: it must"):
        PPOConfig(**settings)


def test_more_minibatches_than_prompts() -> None:
    with pytest.raises(ConfigError, match="3 prompts cannot be divided into 4 minibatches"):
        PPOConfig(prompts=3, minibatches=4)


PROMPTS, _ = random_texts()


def next_token(model, prompt, end=END):
    """log-probabilities of all tokens after a prompt, in float64: minus infinity for what is never written."""
    tape = Tape(memory=Pool())
    x = model.read(np.asarray(prompt), Rows(np.array([len(prompt)])), tape)
    logits = model.output.logits(x, tape)[-1].astype(np.float64)
    logits[never_written(end)] = -np.inf
    return logits - np.logaddexp.reduce(logits)


def exact(model, reference, prompts):
    """KL of replies of one token, and the expected square of what one sample of it gives."""
    kl, square = [], []
    for prompt in prompts:
        own, other = next_token(model, prompt), next_token(reference, prompt)
        written = np.isfinite(own)
        differences = own[written] - other[written]
        kl.append(np.exp(own[written]) @ differences)
        square.append(np.exp(own[written]) @ differences**2)
    return np.mean(kl), np.mean(square)


def test_nothing_is_far_from_itself():
    model = random_gpt()
    found = divergence(model, random_gpt(), PROMPTS, END, 8)
    assert found.kl == 0
    assert found.error == 0
    assert 1 <= found.length <= 8


def test_replies_of_one_token_have_the_divergence_of_their_distributions():
    """The mean of many samples is the exact sum, within four times its own standard error."""
    model, reference = random_gpt(0), random_gpt(1)
    kl, square = exact(model, reference, PROMPTS)
    assert kl > 0.1
    found = divergence(model, reference, PROMPTS * 400, END, 1)
    assert found.length == 1
    assert abs(found.kl - kl) < 4 * found.error
    # The error is of all samples, in which prompts differ too.
    spread = np.sqrt((square - kl**2) / (400 * len(PROMPTS)))
    assert found.error == pytest.approx(spread, rel=0.15)


def test_it_is_the_mean_of_log_ratios_of_the_replies_that_are_drawn():
    """Of longer replies too: here each is read again, token by token."""
    from toolkit.preference.replies import write_replies

    model, reference = random_gpt(0), random_gpt(1)
    replies = write_replies(model, PROMPTS, END, max_new_tokens=6, seed=3)
    ratios = []
    for prompt, reply in zip(PROMPTS, replies, strict=True):
        text, ratio = list(prompt), 0.0
        for token in reply.ids:
            ratio += next_token(model, text)[token] - next_token(reference, text)[token]
            text.append(token)
        ratios.append(ratio)
    found = divergence(model, reference, PROMPTS, END, 6, seed=3)
    assert found.kl == pytest.approx(np.mean(ratios))
    assert found.error == pytest.approx(np.std(ratios) / np.sqrt(len(ratios)))
    assert found.length == np.mean([len(reply.ids) for reply in replies])


def test_the_same_seed_draws_the_same():
    model, reference = random_gpt(0), random_gpt(1)
    first = divergence(model, reference, PROMPTS, END, 6, seed=1)
    assert divergence(model, reference, PROMPTS, END, 6, seed=1) == first
    assert divergence(model, reference, PROMPTS, END, 6, seed=2) != first


def test_it_is_not_the_same_the_other_way_round():
    """The expectation is over the replies of the first model."""
    sharp, flat = random_gpt(0), random_gpt(0)
    flat.vector *= 0.2
    prompts = [np.array([BOS, 20])] * 2000
    for one, other in ((sharp, flat), (flat, sharp)):
        found = divergence(one, other, prompts, END, 1)
        assert abs(found.kl - exact(one, other, prompts[:1])[0]) < 4 * found.error
    assert exact(sharp, flat, prompts[:1])[0] != pytest.approx(exact(flat, sharp, prompts[:1])[0], rel=0.1)


def test_models_of_single_precision_differ_from_themselves_by_nothing_either():
    model = start_policy()
    found = divergence(model, model, [np.array([BOS, 20]), np.array([BOS])], END, 5)
    assert (found.kl, found.error) == (0, 0)
