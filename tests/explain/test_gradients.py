"""The page of all derivatives tells what the check finds, and the check tells right from wrong."""

import importlib
import math
import pkgutil
from pathlib import Path

import numpy as np
import pytest

import toolkit
from toolkit.errors import ConfigError
from toolkit.explain.gradients import ALL_WRONG, RESIDUAL, gradients_page, pairs, source
from toolkit.explain.wrong_training import RIGHT, TRIALS, Trial, curve, guessing, losses, swapped, verdict
from toolkit.functional.norms import layer_norm, layer_norm_backward
from toolkit.pages.blocks import Block, Code, Curves, Erratum, Formula, Page, Section, Table, Text
from toolkit.proof import CASES, Case, Wrong

UPDATES = 10  # of each model that is trained here
EVERY = {case.name: case for case in [*CASES, RESIDUAL]}
every_trial = pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)


@pytest.fixture(scope="module")
def page() -> Page:
    return gradients_page(seed=3, updates=UPDATES)


@pytest.fixture(scope="module")
def right() -> list[float]:
    """The first losses with the right gradients."""
    return losses(None, 1, 3)


def section(page: Page, title: str) -> Section:
    (found,) = (each for each in page.sections if each.title == title)
    return found


def blocks(section: Section, kind: type[Block]) -> list:
    return [block for block in section.blocks if isinstance(block, kind)]


def test_every_pair_is_on_the_page(page: Page) -> None:
    public = set()
    for module_info in pkgutil.iter_modules(toolkit.functional.__path__):
        module = importlib.import_module(f"toolkit.functional.{module_info.name}")
        public |= {name.removesuffix("_backward") for name in vars(module) if name.endswith("_backward")}
    titles = [each.title for each in page.sections]
    assert public | {"residual"} == set(titles[1:-1])
    (table,) = blocks(page.sections[0], Table)
    assert [row[0] for row in table.rows] == titles[1:-1]
    assert {row[4] for row in table.rows} == {"right"}
    assert sum(int(row[2]) for row in table.rows) == len(CASES) + 1


@pytest.mark.parametrize("name", list(pairs()))
def test_a_pair_has_its_formulas_and_its_source(page: Page, name: str) -> None:
    own = section(page, name)
    assert all(formula.text.strip() for formula in blocks(own, Formula))
    assert len(blocks(own, Formula)) == 2
    codes = {code.text: code.where for code in blocks(own, Code)}
    for function in (*pairs()[name].functions, *pairs()[name].helpers):
        text, where = source(function).text, source(function).where
        assert codes[text] == where
        path, line = where.rsplit(":", 1)
        whole = (Path(toolkit.__file__).parents[1] / path).read_text(encoding="utf-8").splitlines()
        assert whole[int(line) - 1].strip() == text.splitlines()[0]
        assert f"def {function.__name__}(" in text


def test_what_the_two_call_is_shown() -> None:
    called = {helper.__name__ for helper in pairs()["activated_linear"].helpers}
    assert {"relu", "gelu", "gelu_tanh", "silu", "normal_distribution"} <= called
    assert "softmax_over_keys" in {helper.__name__ for helper in pairs()["attention"].helpers}


@pytest.mark.parametrize("each", [*CASES, RESIDUAL], ids=lambda case: case.name)
def test_the_errors_of_the_page_are_those_of_the_check(page: Page, each: Case) -> None:
    found = each.check(3)
    errors = [f"{one.error:.1e}" for one in found.measurements]
    (pair,) = (pair for pair in pairs().values() if each in pair.cases)
    detail, *others = blocks(section(page, pair.name), Table)
    if each is pair.cases[0]:
        slopes = [(f"{one.analytic:.9f}", f"{one.numeric:.9f}") for one in found.measurements]
        assert [row[0] for row in detail.rows] == found.arguments
        assert [row[1:3] for row in detail.rows] == slopes
        assert [row[3] for row in detail.rows] == errors
    if len(pair.cases) > 1:
        (row,) = (row for row in others[0].rows if row[0] == each.name)
        assert [cell for cell in row[1:] if cell != "–"] == errors
    (total,) = (row for row in blocks(page.sections[0], Table)[0].rows if row[0] == pair.name)
    assert found.error <= float(total[3]) * 1.1  # it is rounded


@pytest.mark.parametrize("wrong", ALL_WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_version_stands_beside_the_right_one(page: Page, wrong: Wrong) -> None:
    each = EVERY[wrong.case]
    right, found = each.check(3), each.check(3, wrong.backward)
    assert right.passed
    assert found.error > 1e-3
    (pair,) = (pair for pair in pairs().values() if each in pair.cases)
    own = section(page, pair.name)
    index = own.blocks.index(source(wrong.backward))
    assert [row[3] for row in own.blocks[index + 1].rows] == [f"{one.error:.1e}" for one in found.measurements]
    assert [row[4] for row in own.blocks[index + 1].rows] == [f"{one.error:.1e}" for one in right.measurements]


def test_the_formula_of_document_000_is_wrong_by_a_missing_sum(page: Page) -> None:
    (erratum,) = blocks(section(page, "layer_norm"), Erratum)
    assert erratum.document == "000"
    (wrong,) = (each for each in ALL_WRONG if each.printed)
    assert f"{EVERY[wrong.case].check(3, wrong.backward).error:.1e}" in erratum.computed
    rng = np.random.default_rng(0)
    x, gain, dy = rng.standard_normal((6, 4)), rng.standard_normal(4), rng.standard_normal((6, 4))
    saved = layer_norm(x, gain, gain)[1]
    printed = wrong.backward(dy, saved)[0]
    dnormal, inverse_std = dy * gain, saved[1]
    lacking = (-(dnormal * inverse_std).sum(axis=1, keepdims=True) + dnormal * inverse_std) / 4
    np.testing.assert_allclose(printed + lacking, layer_norm_backward(dy, saved)[0], rtol=1e-12)


@every_trial
def test_a_trial_is_of_a_wrong_backward_that_the_check_has(trial: Trial) -> None:
    assert trial.backward in {wrong.backward for wrong in ALL_WRONG}
    (wrong,) = (each for each in ALL_WRONG if each.backward is trial.backward)
    for owner, attribute in trial.places:
        assert getattr(owner, attribute) is EVERY[wrong.case].backward


class OtherError(Exception):
    pass


@every_trial
def test_a_swap_is_undone(trial: Trial) -> None:
    def placed() -> list:
        return [getattr(owner, attribute) for owner, attribute in trial.places]

    before = placed()
    with swapped(trial):
        assert placed() == [trial.backward] * len(trial.places)
    assert placed() == before
    with pytest.raises(OtherError), swapped(trial):
        raise OtherError
    assert placed() == before


def test_a_swap_of_what_is_not_there_changes_nothing() -> None:
    trial = TRIALS[0]._replace(places=[*TRIALS[0].places, (layer_norm, "no such function")])
    with pytest.raises(AttributeError), swapped(trial):
        pytest.fail("it began")
    (owner, attribute), _ = trial.places
    assert getattr(owner, attribute) is layer_norm_backward


@every_trial
def test_the_first_losses_are_the_same_and_then_gradients_differ(trial: Trial, right: list[float]) -> None:
    found = losses(trial, 1, 3)
    assert found[0] == right[0]
    assert found[2] != right[2]


def test_a_seed_is_a_run_and_another_seed_is_another(right: list[float]) -> None:
    assert losses(None, 1, 3) == right != losses(None, 2, 3)


def test_the_right_gradients_learn_and_a_wrong_one_does_not() -> None:
    right, found = losses(None, 0, 60), losses(TRIALS[0], 0, 60)
    assert np.mean(right[-10:]) < guessing() - 0.1
    assert np.mean(found[-10:]) > guessing() + 0.1


def test_the_training_section_tells_the_losses(page: Page) -> None:
    own = page.sections[-1]
    (table,), (curves,) = blocks(own, Table), blocks(own, Curves)
    assert list(curves.lines) == [RIGHT, *(trial.name for trial in TRIALS)]
    assert [row[0] for row in table.rows] == list(curves.lines)
    for trial, row in ((None, table.rows[0]), (TRIALS[-1], table.rows[-1])):
        found = losses(trial, 3, UPDATES)
        assert row[-1] == f"{np.mean(found[-10:]):.3f}"
        assert curves.lines[row[0]] == curve(found)
    assert table.rows[0][1] == ""
    for wrong in ALL_WRONG:
        for trial, row in zip(TRIALS, table.rows[1:], strict=True):
            if trial.backward is wrong.backward:
                assert row[1] == f"{EVERY[wrong.case].check(3, wrong.backward).error:.1e}"
    texts = " ".join(text.text for text in blocks(own, Text))
    assert all(trial.why in texts and trial.printed in texts for trial in TRIALS)


def test_a_curve_is_of_means() -> None:
    assert curve([*range(10), *[4.0] * 10, 100.0]) == ([10, 20], [4.5, 4.0])


def test_the_verdict_follows_the_losses() -> None:
    assert "as well" in verdict(0.1, 0.05)
    assert verdict(1.0, 0.05) == "learns, but worse"
    assert "guessing" in verdict(guessing(), 0.05)
    assert verdict(math.nan, 0.05) == "diverges"


def test_one_pair_alone(run) -> None:
    outcome = run("explain", "gradients", "dropout", "--seed", 4)
    assert outcome.code == 0
    found = EVERY["dropout"].check(4)
    assert f"{found.error:.1e}" in outcome.out
    assert "def dropout_backward(" in outcome.out
    assert "linear" not in outcome.out
    assert "training" not in outcome.out


def test_pairs_are_shown_once_in_the_order_asked_for() -> None:
    page = gradients_page(["rms_norm", "dropout", "rms_norm"])
    assert [each.title for each in page.sections] == ["All pairs", "rms_norm", "dropout"]


def test_only_what_belongs_to_the_pair_is_trained() -> None:
    told = []
    page = gradients_page(["linear"], updates=10, progress=told.append)
    assert list(blocks(page.sections[-1], Curves)[0].lines) == [RIGHT, TRIALS[4].name, TRIALS[5].name]
    assert len(told) == 4  # the check, and three models


def test_unknown_pairs_and_seeds_are_told(run) -> None:
    outcome = run("explain", "gradients", "dropout", "layernorm")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"toolkit: there is no pair 'layernorm': the pairs are {', '.join(pairs())}\n"
    outcome = run("explain", "gradients", "dropout", "--seed", "-1")
    assert (outcome.code, outcome.err) == (2, "toolkit: seed is -1: it must be 0 or more\n")
    with pytest.raises(ConfigError, match="no pair 'x'"):
        gradients_page(["x"])


def test_a_page_for_the_browser(run, tmp_path) -> None:
    outcome = run("explain", "gradients", "rotary", "--html", tmp_path / "page.html")
    assert outcome.code == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8").replace("−", "-")
    assert "def rotary_backward(" in text
    assert f"{EVERY['rotary'].check().error:.1e}" in text
