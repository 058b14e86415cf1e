"""The pairs as a reader meets them: their cases, their formulas and their source."""

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from types import FunctionType
from typing import NamedTuple

import toolkit
from toolkit.explain.gradients.pair_case import Case
from toolkit.explain.gradients.pair_residual import RESIDUAL, SubLayer
from toolkit.explain.gradients.pairs import CASES
from toolkit.nn.blocks import Residual


class Pair(NamedTuple):
    """A forward and a backward, what they are made of, and the cases that they are checked with."""

    name: str
    told: tuple[Callable, Callable]  # whose docstrings have the formulas: of the forward, and of the backward
    functions: tuple[Callable, Callable]
    helpers: tuple[Callable, ...]  # functions of the same module that the two call
    cases: tuple[Case, ...]


def pairs() -> dict[str, Pair]:
    """All pairs of `toolkit.functional` by their names, in the order of their cases, and the residual connection."""
    cases: dict[Callable, list[Case]] = {}
    for case in CASES:
        cases.setdefault(case.backward, []).append(case)
    found = [_pair(backward, tuple(own)) for backward, own in cases.items()]
    functions = Residual.leave, Residual.enter_backward
    found.append(Pair("residual", (SubLayer.forward, SubLayer.backward), functions, (), (RESIDUAL,)))
    return {pair.name: pair for pair in found}


def _pair(backward: Callable, cases: tuple[Case, ...]) -> Pair:
    name = backward.__name__.removesuffix("_backward")
    functions = getattr(sys.modules[backward.__module__], name), backward
    helpers: dict[Callable, None] = {}
    for function in functions:
        helpers |= dict.fromkeys(_called(function))
    return Pair(name, functions, functions, tuple(each for each in helpers if each not in functions), cases)


def _called(function: FunctionType) -> Iterator[FunctionType]:
    """The functions of its own module that a function names, and those that they name; of a table, all that it has."""
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        for each in value.values() if isinstance(value, dict) else [value]:
            if isinstance(each, FunctionType) and each.__module__ == function.__module__ and each is not function:
                yield each
                yield from _called(each)


def formula(function: Callable) -> str:
    """The indented lines of a docstring: what is computed, without the words around it. "" where there are none."""
    lines = inspect.getdoc(function).splitlines()
    return "\n".join(line.strip() for line in lines if line.startswith("    "))


def source(function: Callable) -> tuple[str, str]:
    """The text of a function as it stands in its file, and where: "toolkit/functional/linear.py:9"."""
    lines, first = inspect.getsourcelines(function)
    path = Path(inspect.getsourcefile(function)).relative_to(Path(toolkit.__file__).parents[1])
    return dedent("".join(lines)).rstrip("\n"), f"{path.as_posix()}:{first}"
