"""How far a model has moved: nothing from itself, and otherwise what can be added up by hand."""

import numpy as np
import pytest

from tests.preference.small import random_gpt, random_texts, start_policy
from toolkit.nn.memory import Pool
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.preference.divergence import divergence
from toolkit.preference.policy import never_written
from toolkit.tokenization.special import BOS, END

PROMPTS, _ = random_texts()


def next_token(model, prompt, end=END):
    """log-probabilities of all tokens after a prompt, in float64: minus infinity for what is never written."""
    tape = Tape(memory=Pool())
    x = model.read(np.asarray(prompt), Rows(np.array([len(prompt)])), tape)
    logits = model.logits(x, tape)[-1].astype(np.float64)
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
    from toolkit.preference.rollout import write_replies

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
