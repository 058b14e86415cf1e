"""Teacher forcing and a step of AdamW: the numbers shown are those of the model, its gradient and its optimizer."""

import math

import numpy as np
import pytest

from tests.checks import random_model, small_config, small_gpt_config
from toolkit.explain.adam import (
    chosen_entries,
    cross_entropy,
    example_step,
    first_update,
    founding_section,
    key_biases,
    parts_of,
    with_values,
)
from toolkit.explain.lesson import (
    gradient_of,
    step_by_step,
    teacher_forcing,
)
from toolkit.models.gpt import text_batch
from toolkit.models.seq2seq import translation_batch
from toolkit.nn.tape import Tape
from toolkit.pages.blocks import Erratum, Formula, Table
from toolkit.tokenization.special import BOS, EOS
from toolkit.training.optimizer import Adam

SOURCE, TARGET = (17, 25, 20), (19, 28, 16, 22, 28)
PAIR = translation_batch([np.array(SOURCE)], [np.array(TARGET)])
TEXT = text_batch([np.array((BOS, *TARGET, EOS))])
CONFIGS = [
    small_config(),
    small_config(norm_position="post", tie="none", activation="gelu", positions="learned", output_bias=True),
    small_gpt_config(),
    small_gpt_config(positions="learned", bias=True, tie=False, num_key_value_heads=2),
]


@pytest.fixture(params=CONFIGS, ids=("pre", "post", "rotary", "learned"))
def taught(request):
    """A random model and a batch of one."""
    model = random_model(request.param, np.random.default_rng(3))
    return model, PAIR if request.param in CONFIGS[:2] else TEXT


def uniform(model):
    return np.full(model.config.vocab_size, 1 / model.config.vocab_size)


# Teacher forcing


def test_the_target_is_shifted_by_one():
    batch = PAIR
    assert batch.inputs.tolist() == [BOS, *TARGET]
    assert batch.labels.tolist() == [*TARGET, EOS]
    assert batch.sources.tolist() == [*SOURCE, EOS]
    assert (TEXT.inputs.tolist(), TEXT.labels.tolist()) == ([BOS, *TARGET], [*TARGET, EOS])


def test_the_losses_of_the_tokens_add_up_to_the_loss(taught):
    model, batch = taught
    found = teacher_forcing(model, batch, uniform(model))
    assert len(found.losses) == len(TARGET) + 1
    np.testing.assert_allclose(found.losses.sum(), model.loss(batch, Tape()).loss, rtol=1e-12)
    np.testing.assert_allclose(found.loss, found.losses.mean())
    right = found.best == batch.labels
    np.testing.assert_allclose(np.exp(-found.losses[right]), found.best_probabilities[right])
    assert (np.exp(-found.losses[~right]) < found.best_probabilities[~right]).all()


def test_the_smoothed_losses_add_up_to_the_smoothed_loss(taught):
    model, batch = taught
    found = teacher_forcing(model, batch, uniform(model))
    smoothed = 0.9 * found.losses - 0.1 * found.mean_log_probs
    np.testing.assert_allclose(smoothed.sum(), model.loss(batch, Tape(), 0.1, uniform(model)).loss, rtol=1e-12)


def test_all_at_once_is_step_by_step(taught):
    model, batch = taught
    np.testing.assert_allclose(
        step_by_step(model, batch), teacher_forcing(model, batch, uniform(model)).losses, rtol=1e-10
    )


def test_no_row_looks_ahead(taught):
    model, batch = taught
    attention = teacher_forcing(model, batch, uniform(model)).attention
    assert attention.shape == (len(TARGET) + 1,) * 2
    np.testing.assert_allclose(attention.sum(axis=1), 1)
    assert not np.triu(attention, 1).any()


# The step


def updated(model, batch, optimizer=None, rate=1e-3, clip=0.5):
    sums, gradient = gradient_of(model, batch)
    return first_update(model, gradient, sums.tokens, optimizer or Adam(weight_decay=0.1), rate, clip)


OPTIMIZERS = [
    Adam(weight_decay=0.1),
    Adam(0.8, 0.9, 1e-2, weight_decay=0.3, decoupled=False),
    Adam(eps=1e-3, weight_decay=0.2, eps_inside=True),
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=("adamw", "adam", "inside"))
@pytest.mark.parametrize("clip", [0.0, 0.3])
def test_the_numbers_of_an_entry_are_those_of_the_step(taught, optimizer, clip):
    model, batch = taught
    update = updated(model, batch, optimizer, clip=clip)
    entries = chosen_entries(model, update)
    assert len(entries) >= 5
    assert any(each.decay for each in entries) == optimizer.decoupled
    for each in entries:
        g = each.gradient
        np.testing.assert_allclose(each.after, each.before - each.decay - each.step, rtol=1e-12)
        expected = (1 - optimizer.beta1) * g, (1 - optimizer.beta2) * g * g, g, g * g
        np.testing.assert_allclose((each.m, each.v, each.m_hat, each.v_hat), expected, rtol=1e-9, atol=1e-40)
        root = math.sqrt(g * g + optimizer.eps) if optimizer.eps_inside else abs(g) + optimizer.eps
        np.testing.assert_allclose(each.step, 1e-3 * g / root, rtol=1e-9)
        if each.name.endswith("gain") or "gain[" in each.name:
            assert each.decay == 0


def test_the_gradient_is_the_slope_of_the_mean_loss(taught):
    model, batch = taught
    update = updated(model, batch, clip=0.2)
    assert update.clipping < 1
    np.testing.assert_allclose(np.linalg.norm(update.gradient), 0.2)
    for each in chosen_entries(model, update):
        name, _, place = each.name.removesuffix("]").partition("[")
        index, losses = tuple(map(int, place.split(", "))), []
        for sign in (1, -1):
            moved = with_values(model, update.before.copy())
            moved.arrays()[name][index] += sign * 1e-5
            losses.append(moved.loss(batch, Tape()).loss / len(batch.labels))
        slope = (losses[0] - losses[1]) / 2e-5
        np.testing.assert_allclose(each.gradient / update.clipping, slope, rtol=1e-5, atol=1e-8)


def test_the_loss_falls_as_the_slope_says(taught):
    model, batch = taught
    update = updated(model, batch, rate=1e-7)
    before, after = model.loss(batch, Tape()), with_values(model, update.after).loss(batch, Tape())
    change = (after.loss - before.loss) / before.tokens
    assert change < 0
    np.testing.assert_allclose(update.slope, change, rtol=1e-3)


def test_the_model_stays_as_it_is(taught):
    model, batch = taught
    before = model.vector.copy()
    update = updated(model, batch)
    with_values(model, update.after).vector[:] = 0
    np.testing.assert_array_equal(model.vector, before)
    assert update.before is model.vector


def test_every_parameter_belongs_to_one_part(taught):
    model, batch = taught
    update = updated(model, batch)
    parts = parts_of(model, update)
    assert sum(each.size for each in parts) == model.parameter_count
    assert len({each.name for each in parts}) == len(parts) > 4
    assert sum(each.moved for each in parts) == np.count_nonzero(update.gradient)
    np.testing.assert_allclose(math.hypot(*(each.norm for each in parts)), update.norm)


def test_biases_of_keys_have_no_gradient_unless_they_are_turned():
    rotary = random_model(small_gpt_config(bias=True), np.random.default_rng(3))
    assert key_biases(rotary) == []
    for config, batch in ((CONFIGS[0], PAIR), (CONFIGS[3], TEXT)):
        model = random_model(config, np.random.default_rng(3))
        update = updated(model, batch, clip=0.0)
        views, parameters = model.views(update.gradient), model.parameters()
        found = key_biases(model)
        assert len(found) == sum("key_value.bias" in name for name in parameters)
        for name, columns in found:
            gradient = views[parameters[name]]
            assert np.abs(gradient[columns]).max() < 1e-13 < np.abs(np.delete(gradient, np.r_[columns])).min()


# The founding documents


def test_the_founding_example_of_adam():
    example = example_step(Adam(0.9, 0.999, 1e-8), np.zeros((2, 2)), [[0.01, -0.02], [0.005, 0.01]], 0.001)
    np.testing.assert_allclose(example.m, [[0.001, -0.002], [0.0005, 0.001]])
    np.testing.assert_allclose(example.v, [[1e-7, 4e-7], [2.5e-8, 1e-7]])
    np.testing.assert_allclose(example.m_hat, [[0.01, -0.02], [0.005, 0.01]])
    np.testing.assert_allclose(example.v_hat, [[1e-4, 4e-4], [2.5e-5, 1e-4]])
    np.testing.assert_allclose(example.step, 0.001 * np.array([[1, -1], [1, 1]]), rtol=1e-5)
    np.testing.assert_allclose(example.after, -example.step)


def test_its_errors_are_told_with_what_is_right():
    errata = [each for each in founding_section().blocks if type(each) is Erratum]
    told = {each.printed: each.computed for each in errata}
    assert (told["0.17"], told["1e-6"]) == ("0.163", "1e-7")
    assert cross_entropy(0.1) == pytest.approx(-math.log(0.1))
    assert any(type(each) is Formula and "2.303" in each.text for each in founding_section().blocks)


def test_where_epsilon_stands_decides_when_it_matters():
    table = [each for each in founding_section().blocks if type(each) is Table][-1]
    at = {float(g): (float(outside), float(inside)) for g, outside, inside in table.rows}
    assert at[1e-4] == (pytest.approx(0.9999, abs=1e-6), pytest.approx(0.5**0.5, abs=1e-6))
    assert at[1e-8] == (0.5, pytest.approx(1e-4))
