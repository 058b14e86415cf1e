"""Define an exercise: a function that is to be finished, what it must return, and the mistakes that are known.

The right function is the toolkit's own; the check calls it and the learner's with the same random numbers. What equals
a known mistake is told as such, everything else by what differs. A gradient is compared with the toolkit's, which is
itself checked by finite differences (toolkit/proof).
"""

import copy
import inspect
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from toolkit.exercises.comparing import differences, listing, same

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Mistake:
    """A wrong function that is known, and what to tell whoever has written it."""

    function: Callable[..., Any]
    told: str


@dataclass(frozen=True)
class Exercise:
    """One function of the learner's, with its check.

    name: of the function, and of the file that it stands in. make: draws the arguments of a call. results: names of
    what is compared: of the returned values, or, where the function returns a result and `back`, of the gradients that
    `back` gives. sizes: letter -> size, to recognise a forgotten factor by.
    """

    name: str
    title: str
    right: Callable[..., Any]
    make: Callable[[np.random.Generator], Arguments]
    results: tuple[str, ...]
    hints: tuple[str, ...]
    afterwards: str  # where the toolkit has it
    mistakes: tuple[Mistake, ...] = ()
    sizes: Mapping[str, int] | None = None
    has_back: bool = False
    points: int = 1
    calls: int = 3  # with other numbers each

    def check(self, module: ModuleType, seed: int = 0) -> list[str]:
        """Say what is wrong with the learner's function; nothing if it is right. Seeds draw other numbers."""
        function = getattr(module, self.name, None)
        if not callable(function):
            return [f"there is no function {self.name!r} in {Path(module.__file__ or '').name}"]
        draws = [[seed, call, len(self.name)] for call in range(self.calls)]
        for draw in draws:
            found = self._check_once(function, np.random.default_rng(draw))
            if found:
                made = (mistake.told for mistake in self.mistakes if self._is_made(mistake, function, draws))
                return [told] if (told := next(made, "")) else found
        return []

    def _is_made(self, mistake: Mistake, function: Callable[..., Any], draws: Sequence[Sequence[int]]) -> bool:
        """Say if the learner's function gives what this mistake gives, with all numbers: once may be chance."""
        for draw in draws:
            rng = np.random.default_rng(draw)
            arguments = self.make(rng)
            try:
                known, found = (
                    self.outcome(each, copy.deepcopy(arguments), copy.deepcopy(rng))
                    for each in (mistake.function, function)
                )
            except Exception:
                return False
            if differences(found, known, self.results, {}):
                return False
        return True

    def _check_once(self, function: Callable[..., Any], rng: np.random.Generator) -> list[str]:
        arguments = self.make(rng)
        right = self.outcome(self.right, arguments, copy.deepcopy(rng))
        before = copy.deepcopy(arguments)
        try:
            found = self.outcome(function, arguments, copy.deepcopy(rng), careful=True)
        except NotImplementedError as error:
            return [_unfinished(error, self.name)]
        except SpoiledError as error:
            return [str(error)]
        except Exception as error:
            return [_where(error, function)]
        if not same(list(arguments), list(before)):
            return ["it has changed what it was given: work on copies, since the caller needs its arrays"]
        if self.has_back and len(found) != len(right):
            count, wanted = len(right) - 1, listing(right[1:], self.results[1:])
            wanted = f"{count} things, {wanted}, in this order" if count > 1 else f"one thing, {wanted}"
            return [f"back has to return {wanted}; yours returns {len(found) - 1}"]
        return [each + _called(function, before) for each in differences(found, right, self.results, self.sizes or {})]

    def outcome(
        self, function: Callable[..., Any], arguments: Arguments, rng: np.random.Generator, careful: bool = False
    ) -> Any:
        """Call a function; of one that returns `back`, give the gradients of a random cotangent, a tuple.

        careful: raises SpoiledError where `back` changes what it is given, or gives something else the second time.
        """
        if not self.has_back:
            return function(*arguments)
        result = function(*arguments)
        if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
            raise TypeError(f"{self.name} must return two things: its result, and the function back")
        y, back = result
        # A loss, one number, is where gradients begin: its `back` takes nothing.
        given = () if np.ndim(y) == 0 else (rng.standard_normal(np.shape(y)),)
        kept = copy.deepcopy(given)
        y, gradients = copy.deepcopy(y), copy.deepcopy(back(*given))
        if careful and not same(given, kept):
            raise SpoiledError(
                "back has changed the dy that it was given: write dy = dy + …, not dy += …, since the caller needs it"
            )
        if careful and not same(back(*kept), gradients):
            raise SpoiledError(
                "back gives something else when it is called again: it has changed what the forward made (x = p is no "
                "copy: p.copy() is)"
            )
        if isinstance(gradients, list) and len(self.results) > 2 - any(isinstance(x, Mapping) for x in gradients):
            gradients = tuple(gradients)
        return (y, *gradients) if isinstance(gradients, tuple) else (y, gradients)


class SpoiledError(Exception):
    """Raised where a `back` leaves other numbers behind than it found."""


def _unfinished(error: NotImplementedError, name: str) -> str:
    """Tell which file is not finished: this one, or one that it uses."""
    other = Path(traceback.extract_tb(error.__traceback__)[-1].filename).stem
    if other == name:
        return "it is not finished yet: put your lines in the place of raise NotImplementedError"
    return f"{other}.py, which this one uses, is not finished yet: toolkit exercise check {other}"


def _called(function: Callable[..., Any], arguments: Arguments) -> str:
    """Tell the arguments of a call, where all are numbers."""
    names = inspect.signature(function).parameters
    if not all(isinstance(each, int | float) for each in arguments) or len(names) != len(arguments):
        return ""
    return f" ({', '.join(f'{name} = {each:.6g}' for name, each in zip(names, arguments, strict=True))})"


def _where(error: Exception, function: Callable[..., Any]) -> str:
    """Tell an exception with the line of the learner's file that it comes from; some in plainer words."""
    file = function.__code__.co_filename if hasattr(function, "__code__") else ""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
    place = f"line {frames[-1].lineno}, {frames[-1].line!r}: " if frames else ""
    unfit = re.search(r"^matmul: .*size (\d+) is different from (\d+)", str(error))
    if unfit:
        return f"{place}the shapes do not fit in this product: {unfit[2]} columns meet {unfit[1]} rows"
    if isinstance(error, np.exceptions.AxisError):
        return f"{place}{error}: it may have fewer axes than you think; the last one is always axis=-1"
    return f"{place}{type(error).__name__}: {error}"
