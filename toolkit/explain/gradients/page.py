"""The page of all derivatives: formula, source and a live check of each pair, and what wrong ones do."""

import zlib
from collections.abc import Callable, Sequence
from inspect import getdoc, signature
from typing import NamedTuple

import numpy as np

from toolkit.errors import ConfigError
from toolkit.explain.gradients.check import SMALLEST_SLOPE, TOLERANCE, Measurement, measure
from toolkit.explain.gradients.pair_case import Case
from toolkit.explain.gradients.pair_source import Pair, formula, pairs, source
from toolkit.explain.gradients.pairs import case
from toolkit.explain.gradients.wrong import WRONG, Wrong
from toolkit.explain.gradients.wrong_curves import training_sections
from toolkit.explain.gradients.wrong_training import TRIALS, UPDATES
from toolkit.explain.pages.blocks import Block, Code, Erratum, Formula, Page, Section, Table, Text

_ABOUT = (
    "Every derivative of the toolkit is written by hand, and each is checked here, now, against the definition of a "
    "derivative: all arguments are random float64 numbers, an argument moves a little along a random direction, and "
    "the slope that is seen must be the one that the gradient tells."
)
_METHOD = (
    "A pair is a forward and a backward. Its result y is made one number by a random cotangent c, L = Σ c · y, and the "
    "backward is given c as the gradient of y. For each argument a, with a random direction d and h = 0.00001:"
)
_CRITERION = (
    f"The relative error is their distance divided by the larger of the two (by {SMALLEST_SLOPE} where both are "
    f"smaller); a right gradient has at most {TOLERANCE:g}. Parameters are random too: with a gain of 1, as a fresh "
    "model has it, some wrong gradients pass. With some seed in thousands a right gradient may miss that too: relu and "
    "clips have no slope at their corners, and a slope may be small beside the numbers that it is the difference of."
)
_MOST_LETTERS = 40  # of a name that no pair has
_HEADER = ("argument", "<gradient, d>", "central difference", "relative error")


class Found(NamedTuple):
    """What the check found of one case, right or wrong."""

    case: Case
    arguments: list[str]
    measurements: list[Measurement]

    @property
    def error(self) -> float:
        """The largest relative error; NaN where one is."""
        return float(np.max([each.error for each in self.measurements]))


def check_case(case: Case, seed: int = 0, backward: Callable | None = None) -> Found:
    """The generic check of a case, with numbers that depend on the seed and the case's name alone.

    backward: a wrong one, in the place of the right one.
    """
    rng = np.random.default_rng([seed, zlib.crc32(case.name.encode())])
    forward, derivative, arguments, _ = case.check(rng, backward=backward)
    names = list(signature(forward).parameters)[: len(arguments)]
    return Found(case, names, measure(forward, derivative, arguments, rng))


def gradients_page(
    names: Sequence[str] = (),
    seed: int = 0,
    updates: int = UPDATES,
    progress: Callable[[str], None] = lambda doing: None,
) -> Page:
    """All pairs, or those of these names.

    seed: of the arguments, and of the models that are trained. updates: of each of these models. progress: is told
    what is being done.

    Raises ConfigError for a name that no pair has, and for a seed below 0.
    """
    known = pairs()
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(f"there is no pair {unknown[0][:_MOST_LETTERS]!r}: the pairs are {', '.join(known)}")
    if seed < 0:
        raise ConfigError(f"seed is {seed}: it must be 0 or more")
    chosen = [known[name] for name in dict.fromkeys(names)] or list(known.values())
    progress("checking all pairs" if not names else f"checking {', '.join(pair.name for pair in chosen)}")
    found = {pair.name: [check_case(each, seed) for each in pair.cases] for pair in chosen}
    slips = {pair.name: [(wrong, _check_wrong(wrong, seed)) for wrong in _wrong_ones(pair)] for pair in chosen}
    sections = [
        _table_of_all(chosen, found, slips),
        *(_section(pair, found[pair.name], slips[pair.name]) for pair in chosen),
    ]
    caught = {wrong.backward: found.error for each in slips.values() for wrong, found in each}
    trials = [trial for trial in TRIALS if trial.backward in caught]
    sections += training_sections(trials, caught, seed, updates, progress)
    return Page("Every derivative, and the proof of it", _ABOUT, sections)


def _wrong_ones(pair: Pair) -> list[Wrong]:
    names = {case.name for case in pair.cases}
    return [wrong for wrong in WRONG if wrong.case in names]


def _check_wrong(wrong: Wrong, seed: int) -> Found:
    return check_case(case(wrong.case), seed, wrong.backward)


def _table_of_all(chosen: list[Pair], found: dict[str, list[Found]], slips: dict[str, list]) -> Section:
    header = ("pair", "arguments", "cases", "largest relative error", "", "wrong ones found")
    rows = []
    for pair in chosen:
        error, wrong = _largest(found[pair.name]), [each for _, each in slips[pair.name]]
        caught = sum(not each.error <= TOLERANCE for each in wrong)
        arguments = ", ".join(max((each.arguments for each in found[pair.name]), key=len))
        verdict = "right" if error <= TOLERANCE else "off"
        rows.append((pair.name, arguments, str(len(pair.cases)), f"{error:.1e}", verdict, _of(caught, len(wrong))))
    slope = "<gradient, d>      = Σ da · d\ncentral difference = (L(a + h d) - L(a - h d)) / 2h"
    blocks = [Text(_METHOD), Formula(slope), Text(_CRITERION), Table(header, rows, left=(0, 1, 4))]
    return Section("All pairs" if len(chosen) > 1 else "The check", blocks)


def _section(pair: Pair, found: list[Found], slips: list[tuple[Wrong, Found]]) -> Section:
    blocks: list[Block] = []
    for title, told, function in zip(("Forward", "Backward"), pair.told, pair.functions, strict=True):
        blocks += [Text(f"{title}:"), Formula(formula(told)), Code(*source(function))]
    if pair.helpers:
        blocks += [Text("What the two are made of:"), *(Code(*source(helper)) for helper in pair.helpers)]
    blocks += [Text(f"The check, case “{found[0].case.name}”:"), Table(_HEADER, _rows(found[0]))]
    if len(found) > 1:
        blocks += [Text("The relative errors of all its cases, argument by argument:"), _table_of_cases(found)]
    for wrong, measured in slips:
        told = f"Wrong: {wrong.name}. {getdoc(wrong.backward)}"
        right = next(each for each in found if each.case.name == wrong.case)
        compared = Table((*_HEADER, "of the right one"), _rows(measured, right))
        blocks += [Text(told), Code(*source(wrong.backward)), compared, *_erratum(wrong, measured, right)]
    return Section(pair.name, blocks)


def _erratum(wrong: Wrong, found: Found, right: Found) -> list[Erratum]:
    """What is wrong in a founding document, where the wrong backward is of one."""
    if wrong.printed is None:
        return []
    computed = f"relative error {found.error:.1e}, by the right backward {right.error:.1e}"
    return [Erratum(*wrong.printed, computed, (getdoc(wrong.backward) or "").splitlines()[0])]


def _rows(found: Found, right: Found | None = None) -> list[tuple[str, ...]]:
    """A row for each argument; `right` adds the errors of the right backward, with the same numbers."""
    rows = []
    for index, (name, each) in enumerate(zip(found.arguments, found.measurements, strict=True)):
        beside = () if right is None else (f"{right.measurements[index].error:.1e}",)
        rows.append((name, f"{each.found:.9f}", f"{each.difference:.9f}", f"{each.error:.1e}", *beside))
    return rows


def _table_of_cases(found: list[Found]) -> Table:
    names = max((each.arguments for each in found), key=len)
    rows = []
    for each in found:
        errors = {name: f"{one.error:.1e}" for name, one in zip(each.arguments, each.measurements, strict=True)}
        rows.append((each.case.name, *(errors.get(name, "–") for name in names)))
    return Table(("case", *names), rows)


def _largest(found: list[Found]) -> float:
    return float(np.max([each.error for each in found]))


def _of(caught: int, count: int) -> str:
    return f"{caught} of {count}" if count else "–"
