"""The same weights give what the reference implementations give: Hugging Face's transformers and PyTorch's autograd.

Their answers were made by `make.py` and lie in `fixtures`, so that neither is needed here.
"""

from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.parity import ours
from tests.parity.cases import CASES, EXPECTED, FIXTURES, SEARCHES, WEIGHTS, Search, searched
from toolkit.functional.arrays import Array
from toolkit.interop.vocabulary import Vocabulary
from toolkit.nn.module import Model

NAMES = list(CASES)


class Given(NamedTuple):
    """What the reference said, and the model that we made of its files."""

    expected: dict[str, Any]
    model: Model
    vocabulary: Vocabulary


@cache
def given(name: str, dtype: type = np.float64) -> Given:
    with np.load(FIXTURES / name / EXPECTED) as file:
        expected = dict(file)
    return Given(expected, *ours.read(FIXTURES / name, CASES[name], dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", NAMES)
def test_logits(name: str, dtype: type) -> None:
    expected, model, vocabulary = given(name, dtype)
    wanted = expected["logits"]
    found = ours.logits(model, vocabulary, CASES[name], expected)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max(), rtol=0)
    assert wanted.std() > 1  # they say something


@pytest.mark.parametrize("name", NAMES)
def test_loss(name: str) -> None:
    """Ids of ours that the reference does not have take none of the probability."""
    expected, model, vocabulary = given(name)
    loss, _ = ours.loss_and_gradient(model, vocabulary, CASES[name], expected)
    assert loss == pytest.approx(float(expected["loss"]), rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name: str, tmp_path: Any) -> None:
    """Of every tensor that the reference stores: the sum of ours over the places where it was put."""
    expected, model, vocabulary = given(name)
    wanted = expected["gradient"]
    _, gradients = ours.loss_and_gradient(model, vocabulary, CASES[name], expected)
    places, tensors = ours.places(FIXTURES / name, CASES[name], tmp_path)
    found = summed(gradients, places, len(wanted))
    for tensor, part in tensors.items():
        largest = np.abs(wanted[part]).max()
        # What has no gradient at all, such as the bias of keys, is a rounding error on both sides.
        tolerance = 1e-4 * max(largest, 1e-6 * np.abs(wanted).max())
        np.testing.assert_allclose(found[part], wanted[part], atol=tolerance, rtol=0, err_msg=tensor)
    assert max(part.stop for part in tensors.values()) == len(wanted)


def summed(gradients: dict[str, Array], places: dict[str, Array], count: int) -> Array:
    """(count,): of each number of the reference, the gradients of all its copies together."""
    total = np.zeros(count + 1)
    for name, place in places.items():
        np.add.at(total, np.maximum(place, 0), gradients[name])
    return total[1:]


@pytest.mark.parametrize(("name", "search"), [(name, each) for name in NAMES for each in CASES[name].compared], ids=str)
def test_searches(name: str, search: Search) -> None:
    compare_search(name, search, np.float64)


@pytest.mark.parametrize(
    ("name", "search"), [(name, CASES[name].compared[at]) for name in NAMES for at in (0, -1)], ids=str
)
def test_searches_in_the_precision_of_use(name: str, search: Search) -> None:
    compare_search(name, search, np.float32)


def compare_search(name: str, search: Search, dtype: type) -> None:
    """Every id of every hypothesis of every text, in order, and the scores that they are ranked by."""
    expected, model, vocabulary = given(name, dtype)
    case, number = CASES[name], CASES[name].compared.index(search)
    found = ours.search(model, vocabulary, case, search, *searched(case, expected))
    scores = expected["scores"][number]
    wanted = [
        [ids[ids >= 0].tolist() for ids, score in zip(*text, strict=True) if not np.isnan(score)]
        for text in zip(expected["ids"][number], scores, strict=True)
    ]
    assert [[each.ids for each in hypotheses] for hypotheses in found] == wanted
    assert {len(hypotheses) for hypotheses in found} == {search.settings.get("num_return_sequences", 1)}
    for hypotheses, row in zip(found, scores, strict=True):
        np.testing.assert_allclose([each.score for each in hypotheses], row[: len(hypotheses)], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("setting", ["early_stopping", "length_penalty"])
def test_rules_and_penalties_make_a_difference(setting: str) -> None:
    """Searches that took one value of a setting for another would be noticed."""
    beams = [(number, search.settings) for number, search in enumerate(SEARCHES) if setting in search.settings]
    pairs, noticed = set(), set()
    for (one, mine), (other, yours) in combinations(beams, 2):
        if mine.keys() == yours.keys() and [key for key in mine if mine[key] != yours[key]] == [setting]:
            pairs.add((mine[setting], yours[setting]))
            whole = (given(name).expected["ids"] for name in NAMES if CASES[name].searches is None)
            if any(not np.array_equal(ids[one], ids[other]) for ids in whole):
                noticed.add((mine[setting], yours[setting]))
    assert pairs == noticed
    assert len(pairs) == 3


def test_fixtures_are_small() -> None:
    assert sum(path.stat().st_size for path in FIXTURES.rglob("*") if path.is_file()) < 1e6
    assert {path.parent.name for path in FIXTURES.glob(f"*/{WEIGHTS}")} == set(NAMES)
