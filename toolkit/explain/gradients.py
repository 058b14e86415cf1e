"""The page of all derivatives: formula, source and a live check of each pair, and what wrong ones do."""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import dedent
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

import toolkit
from toolkit.errors import ConfigError
from toolkit.explain.wrong_training import (
    TRIALS,
    UPDATES,
    residual_without_the_way_around,
    residual_without_the_way_through,
    training_section,
)
from toolkit.functional.arrays import Array
from toolkit.nn.blocks import Residual
from toolkit.nn.layers import LayerNorm, Linear
from toolkit.nn.module import Model
from toolkit.nn.tape import Tape
from toolkit.pages.blocks import Block, Code, Erratum, Formula, Page, Section, Table
from toolkit.proof import CASES, WRONG, Case, Report, Wrong
from toolkit.proof.cases import normal, pair_name
from toolkit.proof.gradient_check import SMALLEST_SLOPE, TOLERANCE

_ABOUT = (
    "Every derivative of the toolkit is written by hand, and each is checked here, now, against the definition of a "
    "derivative: all arguments are random float64 numbers, an argument moves a little along a random direction, and "
    "the slope that is seen must be the one that the gradient tells."
)
_METHOD = (
    "A pair is a forward and a backward. Its result y is made one number by a random cotangent c, L = Σ c · y, and the "
    "backward is given c as the gradient of y. For each argument a, with a random direction d and h = 0.00001:"
)
_SLOPES = "<gradient, d>      = Σ da · d\ncentral difference = (L(a + h d) - L(a - h d)) / 2h"
_CRITERION = (
    f"The relative error is their distance divided by the larger of the two (by {SMALLEST_SLOPE} where both are "
    f"smaller); a right gradient has at most {TOLERANCE:g}. Parameters are random too: with a gain of 1, as a fresh "
    "model has it, some wrong gradients pass. With some seed in thousands a right gradient may miss that too: relu and "
    "clips have no slope at their corners, and a slope may be small beside the numbers that it is the difference of."
)
_MOST_LETTERS = 40  # of a name that no pair has
_HEADER = ("argument", "<gradient, d>", "central difference", "relative error")


class _SubLayer(Model):
    """A residual around a linear map, with the norm before it: a pair that is not of `toolkit.functional`.

    `Residual` holds a sub-layer, so that its pair needs one.
    """

    def __init__(self, width: int):
        self.residual = Residual(LayerNorm(width, eps=1e-3), Linear(width, width))


def _sub_layer(x: Array, gain: Array, shift: Array, weight: Array, bias: Array) -> tuple[Array, Any]:
    """Run a sub-layer with these parameters: the gain and the bias of its norm, the weight and the bias of f."""
    model = _SubLayer(x.shape[1])
    model.allocate(x.dtype.type)
    for parameter, value in zip(model.parameters().values(), (gain, shift, weight, bias), strict=True):
        parameter.data[...] = value
    tape = Tape(model.views(np.zeros_like(model.vector)))
    return model.residual.forward(x, tape), (model, tape)


def _sub_layer_backward(joined: Callable) -> Callable:
    def derivative(dy: Array, saved: Any) -> tuple[Array, ...]:
        model, tape = saved
        model.residual.joined = MethodType(joined, model.residual)
        dx = model.residual.backward(dy, tape)
        return dx, *(tape.gradients[parameter] for parameter in model.parameters().values())

    return derivative


def _residual_arguments(rng: np.random.Generator, dtype: type) -> list[Array]:
    *parameters, x = normal(rng, dtype, (4,), (4,), (4, 4), (4,), (5, 4))
    return [x, *parameters]


RESIDUAL = Case("residual", _sub_layer, Residual.joined, _residual_arguments, (), _sub_layer_backward)
ALL_WRONG = [
    *WRONG,
    Wrong("residual", residual_without_the_way_around),
    Wrong("residual", residual_without_the_way_through),
]


class Pair(NamedTuple):
    """A forward and a backward as a reader meets them, what they are made of, and the cases of their check."""

    name: str
    functions: tuple[Callable, Callable]
    helpers: list[Callable]  # functions of the same module that the two call
    cases: list[Case]


def pairs() -> dict[str, Pair]:
    """List all pairs of `toolkit.functional` by name, in the order of their cases, and the residual connection."""
    cases: dict[Callable, list[Case]] = {}
    for case in CASES:
        cases.setdefault(case.backward, []).append(case)
    found = {}
    for backward, own in cases.items():
        name = pair_name(backward)
        functions = getattr(sys.modules[backward.__module__], name), backward
        helpers = dict.fromkeys(each for function in functions for each in _called(function))
        found[name] = Pair(name, functions, [each for each in helpers if each not in functions], own)
    return {**found, "residual": Pair("residual", (Residual.forward, Residual.joined), [], [RESIDUAL])}


def _called(function: FunctionType) -> Iterator[FunctionType]:
    """Find the functions of its own module that a function names, and those that they name; of a table, all of it."""
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        for each in value.values() if isinstance(value, dict) else [value]:
            if isinstance(each, FunctionType) and each.__module__ == function.__module__ and each is not function:
                yield each
                yield from _called(each)


def formula(function: Callable) -> str:
    """Take the indented lines of a docstring: the formulas without the words. "" where there are none."""
    lines = inspect.getdoc(function).splitlines()
    return "\n".join(line.strip() for line in lines if line.startswith("    "))


def source(function: Callable) -> Code:
    """Read a function's source from its file, with the place of it: "toolkit/functional/linear.py:9"."""
    lines, first = inspect.getsourcelines(function)
    path = Path(inspect.getsourcefile(function)).relative_to(Path(toolkit.__file__).parents[1])
    return Code(dedent("".join(lines)).rstrip("\n"), f"{path.as_posix()}:{first}")


def gradients_page(
    names: Sequence[str] = (),
    seed: int = 0,
    updates: int = UPDATES,
    progress: Callable[[str], None] = lambda doing: None,
) -> Page:
    """Show all pairs, or those of these names.

    seed: of the arguments, and of the models that are trained. updates: of each of these models. progress: called with
    a line on each step of the work.

    Raises ConfigError for a name that no pair has, and for a seed below 0.
    """
    known = pairs()
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(f"there is no pair {unknown[0][:_MOST_LETTERS]!r}: the pairs are {', '.join(known)}")
    if seed < 0:
        raise ConfigError(f"seed is {seed}: it must be 0 or more")
    chosen = [known[name] for name in dict.fromkeys(names)] or list(known.values())
    progress("checking all pairs" if not names else f"checking {', '.join(pair.name for pair in chosen)}")
    checked = [_Checked(pair, seed) for pair in chosen]
    errors = {wrong.backward: report.error for each in checked for wrong, report in each.wrong}
    trials = [trial for trial in TRIALS if trial.backward in errors]
    return Page(
        "Every derivative, and the proof of it",
        _ABOUT,
        [
            _table_of_all(checked),
            *(each.section() for each in checked),
            *([training_section(trials, errors, seed, updates, progress)] if trials else []),
        ],
    )


def _table_of_all(checked: Sequence["_Checked"]) -> Section:
    header = ("pair", "arguments", "cases", "largest relative error", "", "wrong ones found")
    return Section(
        "All pairs" if len(checked) > 1 else "The check",
        _METHOD,
        Formula(_SLOPES),
        _CRITERION,
        Table(header, [each.row() for each in checked], left=(0, 1, 4)),
    )


class _Checked:
    """A pair, the reports of its cases, and those of the wrong versions."""

    def __init__(self, pair: Pair, seed: int):
        self.pair, cases = pair, {case.name: case for case in pair.cases}
        self.right = {name: case.check(seed) for name, case in cases.items()}
        self.wrong = [
            (wrong, cases[wrong.case].check(seed, wrong.backward)) for wrong in ALL_WRONG if wrong.case in cases
        ]
        self.arguments = max((report.arguments for report in self.right.values()), key=len)

    def row(self) -> tuple[str, ...]:
        error = float(np.max([report.error for report in self.right.values()]))
        verdict = "right" if error <= TOLERANCE else "off"
        caught = sum(not report.error <= TOLERANCE for _, report in self.wrong)
        of = f"{caught} of {len(self.wrong)}" if self.wrong else "–"
        return self.pair.name, ", ".join(self.arguments), str(len(self.right)), f"{error:.1e}", verdict, of

    def section(self) -> Section:
        """Make the pair's own section: formulas, source, the check of its first case, errors of all, wrong versions."""
        pair, (first, report) = self.pair, next(iter(self.right.items()))
        blocks: list[Block | str] = []
        for title, function in zip(("Forward", "Backward"), pair.functions, strict=True):
            blocks += [f"{title}:", Formula(formula(function)), source(function)]
        if pair.helpers:
            blocks += ["What the two are made of:", *map(source, pair.helpers)]
        blocks += [f"The check, case “{first}”:", Table(_HEADER, _rows(report))]
        if len(self.right) > 1:
            blocks += ["The relative errors of all its cases, argument by argument:", self._table_of_cases()]
        return Section(pair.name, blocks, [self._wrong_version(*each) for each in self.wrong])

    def _table_of_cases(self) -> Table:
        rows = []
        for name, report in self.right.items():
            errors = {each.argument: f"{each.error:.1e}" for each in report.measurements}
            rows.append((name, *(errors.get(argument, "–") for argument in self.arguments)))
        return Table(("case", *self.arguments), rows)

    def _wrong_version(self, wrong: Wrong, report: Report) -> list[Block | str]:
        """Show a wrong version, its errors beside the right ones, and the founding document that prints it."""
        right = self.right[wrong.case]
        blocks = [
            f"Wrong: {wrong.name}. {inspect.getdoc(wrong.backward)}",
            source(wrong.backward),
            Table((*_HEADER, "of the right one"), _rows(report, right)),
        ]
        if wrong.printed is not None:
            computed = f"relative error {report.error:.1e}, by the right backward {right.error:.1e}"
            blocks.append(Erratum(*wrong.printed, computed, wrong.about))
        return blocks


def _rows(report: Report, right: Report | None = None) -> list[tuple[str, ...]]:
    """Make a row for each argument.  right: adds the errors of the right backward, with the same numbers."""
    rows = []
    for index, each in enumerate(report.measurements):
        beside = () if right is None else (f"{right.measurements[index].error:.1e}",)
        rows.append((each.argument, f"{each.analytic:.9f}", f"{each.numeric:.9f}", f"{each.error:.1e}", *beside))
    return rows
