"""Is this text one of our stories? A reader that knows their grammar, in English and in Nepali.

A text is a consistent story if some plot derives it: one line from each beat, in order, with one choice of characters
and things that explains every name, pronoun, object and place. The reader keeps, for every slot, the candidates
that still explain what has been read: "there was a little girl named Sita" leaves one candidate for the hero, and a
later "his" leaves none, which is a problem. Since it reads the same templates that the generator writes, it accepts
every generated story and nothing that the plots cannot say; a sensible sentence that no plot has is a problem to it.

python -m data.stories.check FILE [--language ne]        the problems of every story of a file
"""

import argparse
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from data.stories import words
from data.stories.plots import LANGUAGES, Line, Plot, read_plots
from data.stories.template import Choice, Entity, Slot, Template, pattern, slots

SENTENCE = re.compile(r'[^.!?]*[.!?]+"?(?: [a-z][^.!?]*[.!?]+"?)*')
ENDS = (".", "!", "?", '"', "।")
PRONOUNS = ("he", "his", "him", "himself")
Cast = dict[str, tuple[Entity, ...]]


@dataclass
class Reading:
    """How far the plots can follow a text, and what stops them there."""

    complete: bool = False
    reached: int = -1
    reasons: list[str] = field(default_factory=list)

    def stop(self, position: int, reason: str) -> None:
        if position > self.reached:
            self.reached, self.reasons = position, []
        if position == self.reached and reason not in self.reasons:
            self.reasons.append(reason)


@cache
def expression(language: str, plot: int, beat: int, line: int) -> tuple[re.Pattern, tuple[Slot, ...]]:
    """The regular expression of a line and the slots that its groups capture."""
    chosen = read_plots(language)[plot]
    template = chosen.beats[beat][line].template
    return re.compile(pattern(template, chosen.candidates) + r"(?= |$)"), tuple(slots(template))


FEW = 100  # candidates that are looked through one by one
INDEXES: dict[tuple[int, str], tuple[tuple[Entity, ...], dict[str, tuple[Entity, ...]]]] = {}


def by_form(candidates: tuple[Entity, ...], form: str) -> dict[str, tuple[Entity, ...]]:
    """Many candidates by one of their forms; the index is kept with them, for they are those of a plot."""
    key = id(candidates), form
    if key not in INDEXES or INDEXES[key][0] is not candidates:
        found: dict[str, list[Entity]] = {}
        for entity in candidates:
            found.setdefault(entity.form(form), []).append(entity)
        INDEXES[key] = candidates, {text: tuple(entities) for text, entities in found.items()}
    return INDEXES[key][1]


def anybody_named(text: str, form: str) -> tuple[Entity, ...]:
    """Whoever has a name that no list has: a story of anybody may be of her or of him."""
    is_name = form == "name" and text.isalpha() and text.istitle()
    return tuple(words.someone(text, pronoun) for pronoun in words.PRONOUNS) if is_name else ()


def narrow(cast: Cast, captured: list[tuple[Slot, str]]) -> tuple[Cast, str]:
    """The candidates that explain what was captured, and a reason if for some slot there are none."""
    cast = dict(cast)
    for slot, text in captured:
        candidates = cast[slot.variable]
        if len(candidates) > FEW:
            left = by_form(candidates, slot.form).get(text, ()) or anybody_named(text, slot.form)
        else:
            left = tuple(entity for entity in candidates if entity.form(slot.form) == text)
        if not left:
            return cast, conflict(slot, text, cast[slot.variable])
        cast[slot.variable] = left
    names = Counter(left[0].name for left in cast.values() if len(left) == 1)
    twice = [name for name, times in names.items() if times > 1]
    return cast, f"{twice[0]!r} is two characters or things at once" if twice else ""


def conflict(slot: Slot, text: str, candidates: tuple[Entity, ...]) -> str:
    """Say in words why none of the candidates is called `text` here."""
    expected = " or ".join(sorted({entity.form(slot.form) for entity in candidates})[:3])
    if slot.form.lower() in PRONOUNS:
        names = " or ".join(sorted({entity.name for entity in candidates})[:3])
        return f"pronoun: {text!r} does not fit {names}"
    if any(text in inventory.ALL_NAMES for inventory in LANGUAGES.values()):
        known = len(candidates) == 1
        return f"name: {text} was not introduced, {expected} was" if known else f"name: {text} fits no one here"
    return f"object: {text!r}, but before it was {expected!r}"


class Reader:
    """Reads one text along one plot, trying the lines of each beat and going back where they lead nowhere."""

    def __init__(self, language: str, plot: int, text: str, reading: Reading):
        self.language, self.number, self.text, self.reading = language, plot, text, reading
        self.plot: Plot = read_plots(language)[plot]

    def follow(self, beat: int, position: int, cast: Cast, flags: frozenset[str]) -> None:
        """Read the text from a position with the beats from `beat` on; sets `reading.complete` on success."""
        if beat == len(self.plot.beats):
            if position >= len(self.text):
                self.reading.complete = True
            else:
                self.reading.stop(position, f"after the end: {first_sentence(self.text[position:])!r}")
            return
        matched = False
        for number, line in enumerate(self.plot.beats[beat]):
            if line.fits(flags) and not self.reading.complete:
                matched |= self.read_line(beat, number, line, position, cast, flags)
        if not matched:
            rest = self.text[position:]
            unfinished = not rest or not rest.endswith(ENDS)
            reason = "unfinished story" if unfinished else f"no pattern goes on with {first_sentence(rest)!r}"
            self.reading.stop(position, reason)

    def read_line(self, beat: int, number: int, line: Line, position: int, cast: Cast, flags: frozenset[str]) -> bool:
        """Whether the line's pattern is here; if its names and things agree too, the rest of the text is read."""
        if not line.template:
            self.follow(beat + 1, position, cast, flags | line.sets)
            return True
        compiled, captures = expression(self.language, self.number, beat, number)
        match = compiled.match(self.text, position)
        if not match:
            return False
        captured = [(slot, text) for slot, text in zip(captures, match.groups(), strict=True) if text is not None]
        narrowed, reason = narrow(cast, captured)
        if reason:
            self.reading.stop(match.end() + 1, reason)
        else:
            self.follow(beat + 1, match.end() + 1, narrowed, flags | line.sets)
        return True


def first_sentence(text: str) -> str:
    match = SENTENCE.match(text)
    return match.group() if match else text


@cache
def vocabulary(language: str) -> frozenset[str]:
    """Every word that a story can have, in lower case."""
    texts: set[str] = set()
    slots_read: set[tuple[int, str]] = set()  # most plots have the same many names and things

    def collect(template: Template, plot: Plot) -> None:
        for part in template:
            if isinstance(part, Slot):
                candidates = plot.candidates[part.variable]
                if (id(candidates), part.form) not in slots_read:
                    slots_read.add((id(candidates), part.form))
                    texts.update(entity.form(part.form) for entity in candidates)
            elif isinstance(part, Choice):
                for option in part.options:
                    collect(option, plot)
            else:
                texts.add(part)

    for plot in read_plots(language):
        for beat in plot.beats:
            for line in beat:
                collect(line.template, plot)
    return frozenset(words_of(" ".join(texts)))


def words_of(text: str) -> list[str]:
    return re.findall(r"[^\s.,:!?\"'।]+", text.lower())


def read(text: str, language: str = "en") -> Reading:
    """Follow a text with every plot; the reading tells of the plot that came furthest."""
    reading = Reading()
    for number, plot in enumerate(read_plots(language)):
        if not reading.complete:
            Reader(language, number, text, reading).follow(0, 0, plot.candidates, frozenset())
    return reading


def problems(story: str, language: str = "en") -> list[str]:
    """What is wrong with a story, in words; an empty list means that it is consistent from beginning to end."""
    text = story.strip()
    if not text:
        return ["empty"]
    reading = read(text, language)
    if reading.complete:
        return []
    unknown = sorted(set(words_of(text)) - vocabulary(language))
    return [f"unknown word: {word}" for word in unknown] + reading.reasons[:3]


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Which stories of a file are consistent, and what is wrong with the others."
    )
    parser.add_argument("file", type=Path, help="stories, separated by empty lines")
    parser.add_argument("--language", choices=tuple(LANGUAGES), default="en")
    arguments = parser.parse_args()
    try:
        texts = arguments.file.read_text(encoding="utf-8").strip().split("\n\n")
    except (OSError, UnicodeDecodeError) as error:
        parser.error(f"{arguments.file} cannot be read as text in UTF-8: {error}")
    stories = [" ".join(text.split()) for text in texts]
    wrong = 0
    for number, story in enumerate(stories, 1):
        found = problems(story, arguments.language)
        wrong += bool(found)
        if found:
            print(f"story {number}: {'; '.join(found)}")
    print(f"{len(stories) - wrong} of {len(stories)} stories are consistent")
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
