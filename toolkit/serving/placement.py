"""Places of inline elements in a translation, by its word alignment: tags go where the words went that they stood at.

An element gets one run of words, within that of the element around it, so that tags are never broken; what has no words
of the translation, as an image, stands behind the word that it stood behind.
"""

import re
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from html import escape

from toolkit.outputs import Translation

_WORD = re.compile(r"\S+")
# Signs at the ends of a word, which an element may leave out.
_OPENERS, _CLOSERS = "\"'“‘«([{¿¡", "\"'”’»)]}.,;:!?…।"
_FARTHEST = 50  # words that are looked at for the place of what has none


@dataclass
class Element:
    """An inline element of a text, or an atom: what stands there without words.  Places are of characters in the text.

    Of an element that has begun before the text, the opening tag is empty; of one that ends after it, the closing one.
    """

    start: int
    opening: str = ""
    closing: str = ""
    name: str = ""
    end: int = 0
    parts: list["Element"] = field(default_factory=list)
    atom: bool = False
    spaced: tuple[bool, bool] = (False, False)  # white space stands before and after the atom

    @property
    def outer(self) -> tuple[bool, bool]:
        """Say if it has begun before the text, and if it ends after it."""
        return not self.atom and not self.opening, not self.atom and not self.closing


class Placement:
    """Finds the places of elements in a translation: of each one run of words, within that of the one around it."""

    def __init__(self, root: Element, source: str, found: Translation):
        self._root, self._target = root, found.text
        self._spans = [each.span() for each in _WORD.finditer(found.text)]
        self._own = [_bare(source, *each.span()) for each in _WORD.finditer(source)]
        self._starts = [start for start, _ in self._own]
        self._of: list[int | None] = [None] * len(self._spans)  # the source word of each word
        self._targets: list[list[int]] = [[] for _ in self._own]
        for source, target in found.alignment or ():
            if source < len(self._own) and target < len(self._spans):
                self._of[target] = source
                self._targets[source].append(target)

    def written(self) -> str:
        """Write the translation with all elements."""
        every = range(len(self._own))
        return self._element(self._root, every, range(len(self._spans)), (0, len(self._target)))

    def _element(self, element: Element, words: range, run: range, place: tuple[int, int]) -> str:
        """Write an element, which has these words of the source, this run of the translation, and this place in it."""
        if element.atom:
            return self._atom(element, place[0])
        written, at = [element.opening], place[0]
        for start, end, _, inner, its_run, part in sorted(
            self._places(element, words, run, place), key=lambda at: at[:3]
        ):
            written += [escape(self._target[at:start], quote=False), self._element(part, inner, its_run, (start, end))]
            at = end
        return "".join([*written, escape(self._target[at : place[1]], quote=False), element.closing])

    def _atom(self, atom: Element, at: int) -> str:
        before = atom.spaced[0] and at and not self._target[at - 1].isspace()
        after = atom.spaced[1] and not self._target[at : at + 1].isspace() and at < len(self._target)
        return f"{' ' * bool(before)}{atom.opening}{' ' * bool(after)}"

    def _places(self, element: Element, words: range, run: range, place: tuple[int, int]) -> list[tuple]:
        """Find the places of all parts of an element, which have nothing in common with each other."""
        parts = element.parts
        inner = [self._words(each, words) for each in parts]
        runs = self._runs(parts, inner, words, run)
        placed, free, least, most = [], [], *place
        for number, (part, own) in enumerate(zip(parts, inner, strict=True)):
            if number not in runs:
                free.append(number)
                continue
            start, end = self._trimmed(part, own, runs[number], place)
            if part.outer[0]:
                start, least = place[0], max(least, end)
            if part.outer[1]:
                end, most = place[1], min(most, start)
            placed.append((start, end, number, own, runs[number], part))
        taken = sorted((start, end) for start, end, *_ in placed)
        for number in free:
            part = parts[number]
            at = place[part.outer[1]] if True in part.outer else self._point(part.start, words, run, place)
            at = min(max(at, least), most)
            before = bisect_right(taken, (at, at)) - 1
            if before >= 0 and taken[before][0] < at < taken[before][1]:
                at = taken[before][1]
            placed.append((at, at, number, inner[number], range(0), part))
        return placed

    def _words(self, part: Element, words: range) -> range:
        """Find the words that a part has: of which it has half of the letters at least."""
        if part.atom:
            return range(0)
        first = max(bisect_right(self._starts, part.start) - 1, words.start)
        last = min(bisect_left(self._starts, part.end), words.stop)
        while first < last and not self._has(part, first):
            first += 1
        while first < last and not self._has(part, last - 1):
            last -= 1
        return range(first, last)

    def _has(self, part: Element, word: int) -> bool:
        start, end = self._own[word]
        return 2 * (min(end, part.end) - max(start, part.start)) >= end - start

    def _runs(self, parts: list[Element], inner: list[range], words: range, run: range) -> dict[int, range]:
        """Choose, for the parts that have words, disjoint runs: first what has begun before, or ends later."""
        owner: dict[int, int] = {}
        for number, own in enumerate(inner):
            for word in own:
                owner.setdefault(word, number)
        targets: dict[int, list[int]] = {}
        for target in run:
            if (number := owner.get(self._of[target])) is not None:
                targets.setdefault(number, []).append(target)
        found: dict[int, range] = {}
        low, high = run.start, run.stop
        for number, (part, own) in enumerate(zip(parts, inner, strict=True)):
            if own and own == words and run:
                return {number: run}  # all of it
            if own and part.outer[0]:
                low = _edge([*targets.get(number, ())], low, high, 1)
                found[number] = range(run.start, low)
            elif own and part.outer[1]:
                high = _edge([*targets.get(number, ())], low, high, -1)
                found[number] = range(high, run.stop)
        taken: list[tuple[int, int]] = []  # first words of runs, and those behind them
        for number in sorted(targets.keys() - found.keys(), key=lambda each: (-len(targets[each]), each)):
            own = [each for each in targets[number] if low <= each < high and not _is_taken(each, taken)]
            if own:
                found[number] = _densest(own, taken)
                insort(taken, (found[number].start, found[number].stop))
        return {number: each for number, each in found.items() if each}

    def _trimmed(self, part: Element, own: range, run: range, place: tuple[int, int]) -> tuple[int, int]:
        """Give the place of a run, without signs at its ends where those of the source stand outside of the part."""
        start, end = self._spans[run.start][0], self._spans[run.stop - 1][1]
        bare = _bare(self._target, *self._spans[run.start])[0], _bare(self._target, *self._spans[run.stop - 1])[1]
        if part.start >= self._own[own.start][0]:
            start = bare[0]
        if part.end <= self._own[own.stop - 1][1]:
            end = bare[1]
        start, end = max(start, place[0]), min(end, place[1])
        return start, max(start, end)

    def _point(self, at: int, words: range, run: range, place: tuple[int, int]) -> int:
        """Find the place of what has no words: behind the word before it, or in front of the one that follows."""
        following = bisect_left(self._starts, at, words.start, words.stop)
        if following == words.start or following == words.stop:
            return place[following == words.stop and following > words.start]
        for distance in range(_FARTHEST):
            before, after = following - 1 - distance, following + distance
            if before >= words.start and (own := [each for each in self._targets[before] if each in run]):
                return min(max(self._spans[own[-1]][1], place[0]), place[1])
            if after < words.stop and (own := [each for each in self._targets[after] if each in run]):
                return min(max(self._spans[own[0]][0], place[0]), place[1])
        return place[1]


def _bare(text: str, start: int, end: int) -> tuple[int, int]:
    """Give the place of a word without the signs at its ends, unless there is nothing else."""
    word = text[start:end]
    first, last = len(word) - len(word.lstrip(_OPENERS)), len(word.rstrip(_CLOSERS))
    return (start + first, start + last) if first < last else (start, end)


def _edge(targets: list[int], low: int, high: int, step: int) -> int:
    """Find how far a run goes that begins at the edge: to where it has the most of these words for each of others."""
    own, best, total = set(targets), 0, 0
    edge = at = low if step > 0 else high
    for word in range(low, high) if step > 0 else range(high - 1, low - 1, -1):
        total += 2 if word in own else -1
        at += step
        if total > best:
            best, edge = total, at
    return edge


def _is_taken(word: int, taken: list[tuple[int, int]]) -> bool:
    """Say if a word is within one of these runs, which are sorted."""
    before = bisect_left(taken, (word + 1,)) - 1
    return before >= 0 and word < taken[before][1]


def _densest(targets: list[int], taken: list[tuple[int, int]]) -> range:
    """Find the run with the most of these words for each of others between them, and no run that is taken."""
    best, total, start = (0, range(0)), 0, 0
    for number, each in enumerate(targets):
        gap = each - targets[number - 1] - 1 if number else 0
        crossed = number and bisect_left(taken, (each,)) > bisect_left(taken, (targets[number - 1],))
        if total - gap <= 0 or crossed:
            total, start = 0, each
            gap = 0
        total += 2 - gap
        if total > best[0]:
            best = total, range(start, each + 1)
    return best[1]
