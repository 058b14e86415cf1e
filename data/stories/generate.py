"""Write the embedded corpus of small stories, in English and in Nepali.

python -m data.stories.generate    write train and valid of both languages; see data/command.py
"""

import random
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from data import command
from data.stories.plots import Plot, read_plots
from data.stories.template import MANY, Entity, write

HERE = Path(__file__).parent
SEED = 1
SIZES = {"en": {"train": 16_000, "valid": 200}, "ne": {"train": 5000, "valid": 100}}
LEAVE_OUT = 0.5  # of the beats that a story can do without: short stories are learnt faster
WORDS = {"en": (40, 90), "ne": (30, 78)}  # Nepali says the same with fewer words


def cast(plot: Plot, rng: random.Random) -> dict[str, Entity]:
    """Who and what this story is about. Two slots never get the same name, so that a name means one character."""
    values: dict[str, Entity] = {}
    for variable, candidates in plot.candidates.items():
        others = list(values.values())
        if len(candidates) <= MANY:
            candidates = [entity for entity in candidates if not any(clash(entity, o) for o in others)]
        drawn = rng.choice(candidates)
        while any(clash(drawn, other) for other in others):
            drawn = rng.choice(candidates)
        values[variable] = drawn
    return values


def clash(one: Entity, other: Entity) -> bool:
    """Whether two cannot be in one story: the same name, or two animals of the same kind."""
    return one.name == other.name or one.forms.get("species", 1) == other.forms.get("species", 2)


def tell(plot: Plot, rng: random.Random) -> str:
    """One story of a plot: a line from each beat that fits the way the story has taken."""
    values, flags, told = cast(plot, rng), frozenset(), []
    for beat in plot.beats:
        lines = [line for line in beat if line.fits(flags)]
        spare = [line for line in lines if not line.template]
        line = spare[0] if spare and rng.random() < LEAVE_OUT else rng.choice(lines)
        flags |= line.sets
        told.append(write(line.template, values, rng))
    return unicodedata.normalize("NFC", " ".join(text for text in told if text))


def story(language: str, number: int) -> str:
    """The story of this number: a function of language and number alone. Every other story is of anybody and anything,
    where there are such plots; the plots of either kind take turns. A story that is too long or too short is told anew.
    """
    plots, (least, most) = read_plots(language), WORDS[language]
    rng = random.Random(f"{SEED} {language} {number}")
    open_plots = [plot for plot in plots if plot.is_open]
    if open_plots:
        plots = (open_plots, [plot for plot in plots if not plot.is_open])[number % 2]
        number //= 2
    while True:
        text = tell(plots[number % len(plots)], rng)
        if least <= len(text.split()) <= most:
            return text


def build(language: str) -> dict[str, list[str]]:
    """The distinct stories of a language, mixed and divided into train and valid."""
    wanted = sum(SIZES[language].values())
    stories: dict[str, None] = {}
    number = 0
    while len(stories) < wanted:
        stories[story(language, number)] = None
        number += 1
    mixed = list(stories)
    random.Random(f"{SEED} {language} order").shuffle(mixed)
    valid = SIZES[language]["valid"]
    return {"train": mixed[valid:], "valid": mixed[:valid]}


def text_of(stories: list[str]) -> str:
    """A story is a line; an empty line stands between stories."""
    return "\n\n".join(stories) + "\n"


def read(path: Path) -> list[str]:
    """The stories of a file."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n\n")


def texts() -> Iterator[tuple[str, str]]:
    """The name and the contents of every file."""
    for language in SIZES:
        for side, stories in build(language).items():
            yield f"{side}.{language}.txt", text_of(stories)


if __name__ == "__main__":
    sys.exit(command.run(HERE, texts))
