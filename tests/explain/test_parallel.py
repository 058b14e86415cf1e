"""All at once is one at a time, the recurrent network beside it is right, and what reaches how far."""

import numpy as np
import pytest

from tests.checks import random_model, small_gpt_config
from toolkit import load
from toolkit.errors import ConfigError, DataError
from toolkit.explain import parallel
from toolkit.explain.parallel import all_at_once, block_model, one_at_a_time, parallel_page, products_at_once, timed
from toolkit.explain.recurrence import WIDTH, OneBlock, Recurrent, reach, recurrence, recurrence_backward
from toolkit.pages.blocks import Code, Curves, Table
from toolkit.pages.html import document
from toolkit.proof import check

LAYERS = [OneBlock, lambda generator: Recurrent(generator, 1.2)]


@pytest.fixture
def near(monkeypatch):
    """Pages measure short distances only, which takes less time."""
    monkeypatch.setattr(parallel, "_DISTANCES", [1, 4])


def recurrent_arguments(rng, batch=3, steps=5, width=4, hidden=6):
    shapes = (batch, steps, width), (width, hidden), (hidden, hidden), (hidden,)
    return [rng.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_recurrence_is_differentiated_right(steps):
    rng = np.random.default_rng(0)
    report = check(recurrence, recurrence_backward, recurrent_arguments(rng, steps=steps), seed=rng)
    assert report.passed, str(report)


def test_the_recurrence_is_its_formula():
    x, weight, recurrent, bias = recurrent_arguments(np.random.default_rng(1))
    states, _ = recurrence(x, weight, recurrent, bias)
    state = np.zeros((3, 6))
    for step in range(5):
        state = np.tanh(x[:, step] @ weight + state @ recurrent + bias)
        np.testing.assert_allclose(states[:, step], state)


@pytest.mark.parametrize(
    "settings",
    [{}, {"positions": "learned", "num_key_value_heads": 2}, {"norm": "rms", "activation": "swiglu", "tie": False}],
)
def test_all_at_once_equals_one_at_a_time(settings):
    model = random_model(small_gpt_config(**settings), np.random.default_rng(2))
    ids = np.random.default_rng(3).integers(16, 30, 8)
    together = all_at_once(model, ids)
    np.testing.assert_allclose(one_at_a_time(model, ids), together, rtol=1e-9, atol=1e-12)
    for length in (1, 5):  # what comes later changes nothing
        np.testing.assert_allclose(all_at_once(model, ids[:length]), together[:length], rtol=1e-9, atol=1e-12)


def test_what_is_timed_is_the_same_and_counted_right():
    model = block_model(70, width=16)
    for length in (1, 70):
        timing = timed(model, length)
        assert timing.length == length
        assert timing.apart < 1e-4
        assert min(timing.at_once, timing.one_at_a_time, timing.recurrent) > 0
        matrices = sum(each.data.size for each in model.parameters().values() if len(each.shape) > 1)
        pairs = length * (length + 1) // 2  # of a query and a key that it sees: a score, and a part of its context
        assert timing.at_once_products == length * matrices + 2 * pairs * 16
        assert timing.recurrent_products == length * 2 * 16 * 16
    assert products_at_once(model.config, 140) > 2 * products_at_once(model.config, 70)


@pytest.mark.parametrize("layer", LAYERS, ids=("attention", "recurrent"))
@pytest.mark.parametrize("length", [2, 9])
def test_the_jacobian_is_what_the_first_input_does_to_the_last_output(layer, length):
    layer = layer(np.random.default_rng(4))
    x = np.random.default_rng(5).standard_normal((length, WIDTH))
    jacobian = layer.jacobian(x)
    assert jacobian.shape == (WIDTH, WIDTH)

    def last(moved):
        if isinstance(layer, Recurrent):
            return recurrence(moved[None], layer.weight, layer.recurrent, np.zeros(WIDTH))[0][0, -1]
        return layer.output(moved)[-1]

    direction = np.zeros_like(x)
    direction[0] = np.random.default_rng(6).standard_normal(WIDTH)
    slope = (last(x + 1e-5 * direction) - last(x - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose(jacobian @ direction[0], slope, rtol=1e-5, atol=1e-7)


def test_attention_reaches_far_and_a_recurrence_does_not():
    found = reach([1, 16, 128], (0.9, 1.0, 1.5))
    attention, below, at, above = (np.array(found[name]) for name in found)
    lengths = np.array([2, 17, 129])
    assert (attention * lengths).max() < 5 * (attention * lengths).min()  # about 1 / T
    assert below[2] < 1e-6 * below[0]
    assert below[2] < at[2] < 1e-2 * at[0]
    assert above[1] > 5 * above[0]
    assert attention[2] > 1e3 * at[2]


def test_the_radius_is_that_of_the_recurrent_matrix():
    for radius in (0.5, 1.5):
        layer = Recurrent(np.random.default_rng(7), radius)
        assert np.abs(np.linalg.eigvals(layer.recurrent)).max() == pytest.approx(radius)


def test_the_page(tiny_gpt, near):
    owner, seen = load(tiny_gpt), []

    def each(lengths):
        for length in lengths:
            seen.append(length)
            yield length

    page = parallel_page(owner, "She eats rice.", (8, 2, 8), each)
    assert seen == [2, 8]
    same, times, _, far = page.sections
    ids = [2, *owner.tokenizer.encode("She eats rice.")]
    apart = np.abs(all_at_once(owner.model, ids) - one_at_a_time(owner.model, ids)).max(axis=1)
    (table,) = (block for block in same.blocks if type(block) is Table)
    assert [row[4] for row in table.rows] == [f"{each:.1e}" for each in apart]
    assert all(row[2] == row[3] for row in table.rows)
    (curves,) = (block for block in times.blocks if type(block) is Curves)
    assert [list(x) for x, _ in curves.lines.values()] == [[2, 8]] * 3
    (curves,) = (block for block in far.blocks if type(block) is Curves)
    assert all(min(y) > 0 and len(x) == len(y) for x, y in curves.lines.values())
    (code,) = (block for block in page.sections[2].blocks if type(block) is Code)
    assert code.where.startswith("toolkit/explain/recurrence.py:")
    assert document(page)


def test_what_is_not_read_is_told(make_gpt, tmp_path, near):
    owner = load(make_gpt(tmp_path / "long", max_length=60))
    page = parallel_page(owner, "She eats rice. " * 40, (2,))
    assert len(page.cut) == 2
    assert page.cut[0].endswith("of which the model reads the first 59.")  # behind the begin mark


@pytest.mark.parametrize("lengths", [(), (0, 4), (16, 1 << 20)])
def test_lengths_that_are_none_are_refused(tiny_gpt, lengths):
    with pytest.raises(ConfigError, match="give some from 1"):
        parallel_page(load(tiny_gpt), "a", lengths)


def test_the_command(run, tiny_gpt, tiny_model, tmp_path, near):
    file = tmp_path / "page.html"
    assert run("explain", "parallel", "--model", tiny_gpt, "--lengths", "2", "4", "--quiet", "--html", file).code == 0
    assert "recurrent" in file.read_text(encoding="utf-8")
    assert run("explain", "parallel", "--model", tiny_model).code == 2
    assert run("explain", "parallel", "--model", tiny_gpt, "--lengths", "0").code == 2
    with pytest.raises(DataError):
        parallel_page(load(tiny_gpt), "\ud800")
