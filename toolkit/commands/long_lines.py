"""Lines that are longer than a model reads: refused, skipped or cut off, as `--long-lines` says, and counted."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from toolkit.commands.windows import Window
from toolkit.data.readers import LONGEST_LINE
from toolkit.display import counted, tell
from toolkit.errors import LengthError

LongLines = Literal["refuse", "skip", "truncate"]
# Encodes a text, and raises LengthError for one that is too long.
Check = Callable[[str], object]


class Answer(NamedTuple):
    """What a window becomes: an output for every line, and what errors call the lines that were too long."""

    outputs: list[str]
    long: list[str]


class Fitting:
    """What `--long-lines` does for a verb.

    check: of a line. check_cut: of what is left of one that is cut off, where that needs more room.
    """

    def __init__(self, policy: LongLines, check: Check, check_cut: Check | None = None):
        self._policy, self._check, self._check_cut = policy, check, check_cut or check

    def answer(
        self, window: Window, answer: Callable[[Window, Sequence[int]], list[str]], skipped: Callable[[str], str]
    ) -> Answer:
        """Answer the lines that fit, and those that are cut off so that they do; what is skipped is told to `skipped`.

        answer: takes a window whose lines fit, and the places of those that were cut off.
        """
        if self._policy == "refuse":
            return Answer(answer(window, ()), [])
        lines = window.lines
        long = [place for place, line in enumerate(lines) if not self._fits(line, self._check)]
        names = [window.where(place + 1) for place in long]
        if self._policy == "truncate":
            whole = list(lines)
            for place in long:
                whole[place] = self._cut(lines[place])
            return Answer(answer(window._replace(lines=whole), long), names)
        outputs, begin = [], 0
        for place in [*long, len(lines)]:
            outputs += answer(window.part(begin, place), ()) if place > begin else []
            outputs += [skipped(line) for line in lines[place : place + 1]]
            begin = place + 1
        return Answer(outputs, names)

    def _fits(self, line: str, check: Check) -> bool:
        with suppress(LengthError):
            if len(line) <= LONGEST_LINE:
                check(line)
                return True
        return False

    def _cut(self, line: str) -> str:
        """The longest beginning that fits, after a whole word where one does."""
        line = line[:LONGEST_LINE]
        words = [found.start() for found in re.finditer(r"\s+|$", line)]
        place = self._longest(line, words)
        return line[: place or self._longest(line, range(1, words[0] + 1))]

    def _longest(self, line: str, ends: Sequence[int]) -> int:
        """Of places where a beginning may end, in rising order, the last at which it fits; 0 where none does."""
        count = bisect_left(ends, True, key=lambda end: not self._fits(line[:end], self._check_cut))
        return ends[count - 1] if count else 0


def told(answers: Iterator[Answer], policy: LongLines) -> Iterator[list[str]]:
    """The outputs of all windows; at the end, how many lines were too long."""
    count, first = 0, ""
    for outputs, long in answers:
        count, first = count + len(long), first or "".join(long[:1])
        yield outputs
    if count:
        done = f"{'was' if count == 1 else 'were'} {'skipped' if policy == 'skip' else 'cut off'}"
        which = first if count == 1 else f"the first is {first}"
        tell(f"toolkit: {counted(count)} too long for the model {done}: {which}")
