"""Plots: what a story is made of, read from the hand-written files in plots/.

A plot is a name, slots, and beats; a beat is a block of lines, and a story takes one line from each.

    == lost toy
    A: child                                        a class of words.py (or a tag of data/en_ne/nouns.py)
    x (name, where): ball | under the bed; kite | on the roof       or the words themselves, in columns

    &open                                           all lines of the shared block "open"

    One day, {A} could not find {A.his} {x}.
    +help {A} asked everybody for help.             +flag: this story goes the way "help" from here on

    ?help A friend found it {x.where}.              ?flag: only in such a story
    !help {A} found it {x.where}.                   !flag: only in another

    -                                               nothing: the beat may be left out
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from data.stories import words, words_ne
from data.stories.template import Entity, Template, parse, slots

HERE = Path(__file__).parent
LANGUAGES = {"en": words, "ne": words_ne}


@dataclass(frozen=True)
class Line:
    """One way to tell a beat; `template` is empty where the beat is left out."""

    template: Template
    sets: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    excludes: frozenset[str] = frozenset()

    def fits(self, flags: frozenset[str]) -> bool:
        return self.needs <= flags and not self.excludes & flags


@dataclass(frozen=True)
class Plot:
    name: str
    candidates: dict[str, tuple[Entity, ...]]
    beats: tuple[tuple[Line, ...], ...]
    is_open: bool = False  # it is of anybody and anything


def _line(text: str) -> Line:
    flags = {"+": set(), "?": set(), "!": set()}
    while match := re.match(r"([+?!])(\w+) ", text):
        flags[match[1]].add(match[2])
        text = text[match.end() :]
    template = () if text == "-" else parse(text)
    return Line(template, *(frozenset(flags[mark]) for mark in "+?!"))


def _with_quality(text: str) -> list[str]:
    """A line as it is, and once more with a quality `q` of its thing: "a kite", "a broken kite"; "his broken kite"."""
    described = text.replace("{x.a}", "{q.a} {x}").replace("{x.A}", "{q.A} {x}")
    described = re.sub(r"(\b[Tt]he|\{A\.[Hh]is\}) \{x\}", r"\1 {q} {x}", described)
    return [text, described] if described != text else [text, text]


def _slot(text: str, language: str) -> tuple[str, tuple[Entity, ...]]:
    """ "x (name, where): ball | under the bed; ..." -> "x" and its candidates."""
    head, _, rows = text.partition(":")
    variable, _, columns = head.partition("(")
    of_class = LANGUAGES[language].entities(rows.strip())
    if of_class:
        return variable.strip(), of_class
    columns = [column.strip() for column in columns.rstrip(") ").split(",")] if columns else ["name"]
    cells = [[cell.strip() for cell in row.split("|")] for row in rows.split(";")]
    entities = tuple(LANGUAGES[language].thing(dict(zip(columns, row, strict=True))) for row in cells)
    return variable.strip(), entities


def _blocks(text: str) -> list[list[str]]:
    lines = [line.strip() for line in text.splitlines() if not line.startswith("#")]
    return [block.split("\n") for block in re.split(r"\n{2,}", "\n".join(lines).strip())]


def _plot(text: str, shared: dict[str, list[str]], language: str) -> Plot:
    head, *blocks = _blocks(text)
    candidates = dict(_slot(line, language) for line in head[1:])
    is_open = any(re.match(r"\w+: anybody$", line) for line in head[1:])
    beats = []
    for number, block in enumerate(blocks):
        lines = [line for entry in block for line in (shared[entry[1:]] if entry[0] == "&" else [entry])]
        if is_open and number == 0:
            lines = [described for line in lines for described in _with_quality(line)]
        beats.append(tuple(_line(line) for line in lines))
    unknown = {slot.variable for beat in beats for line in beat for slot in slots(line.template)} - candidates.keys()
    if unknown:
        raise ValueError(f"plot {head[0]!r} has no slot {sorted(unknown)}")
    lines = [line for beat in beats for line in beat]
    idle = set().union(*(line.sets for line in lines)) ^ set().union(*(line.needs | line.excludes for line in lines))
    if idle:
        raise ValueError(f"plot {head[0]!r} sets or asks for a flag in vain: {sorted(idle)}")
    return Plot(head[0], candidates, tuple(beats), is_open)


@cache
def read_plots(language: str) -> tuple[Plot, ...]:
    """All plots of a language, in the order of the files."""
    folder = HERE / "plots" / language
    shared = {}
    for path in sorted(folder.glob("shared*.txt")):
        for block in _blocks(path.read_text(encoding="utf-8")):
            if block[0]:
                shared[block[0].removeprefix("== ")] = block[1:]
    plots = []
    for path in sorted(folder.glob("*.txt")):
        if not path.name.startswith("shared"):
            texts = re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
            plots += [_plot(text, shared, language) for text in texts]
    return tuple(plots)
