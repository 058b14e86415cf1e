"""Draw what people tell of themselves from more places, jobs and likings than a small model can learn by heart.

A hash of the words decides whether a value belongs to train, valid or test, as names.split_of does for names, so that
tests can ask for places and jobs that no training text has. Of the training values some come from the short lists of
world.py: those are known, and asked for in the questions about what was told.
"""

from functools import cache
from random import Random

from data.chat import world
from data.chat.free_words import (
    COUNTRIES,
    HOBBIES,
    JOBS,
    SUBJECTS,
    TOWNS,
    WORK,
    WORK_PLACES,
    WORK_THINGS,
    WORK_VERBS,
)
from data.chat.names import Split, made_name, split_of

FAMILIAR = 0.3  # of the training values are of the short lists
MADE_PLACES = 0.3  # of the other places have a name that is made, as villages have names that nobody has heard of
ENDINGS = ("", "", "", "", "pur", "gaun", "ville", "ton", "stadt", " Bazar", " Valley", " Bay", " Falls")
COMPOSED = 0.6  # of what somebody works at is a verb with a thing


TEACH = tuple(f"{verb} {subject}" for verb in ("teach", "study") for subject in SUBJECTS)
WORK_AT = tuple(f"work {where}" for where in WORK_PLACES)


@cache
def places(split: Split) -> tuple[str, ...]:
    return of_split((*TOWNS, *COUNTRIES), world.PLACES, split)


@cache
def jobs(split: Split) -> tuple[str, ...]:
    return of_split(JOBS, world.JOBS, split)


@cache
def likes(split: Split) -> tuple[str, ...]:
    return of_split((*HOBBIES, *HOBBIES, *WORK_THINGS), world.LIKES, split)


def of_split(values: tuple[str, ...], known: tuple[str, ...], split: Split) -> tuple[str, ...]:
    """The values that belong to a split, without those that are known to every model."""
    return tuple(value for value in values if value not in known and split_of(value) == split)


def place(split: Split, rng: Random) -> str:
    """A place that fits "I live in {}": "Lisbon", "the Netherlands", "Tolavirpur"."""
    if split == "train" and rng.random() < FAMILIAR:
        return rng.choice(world.PLACES)
    if rng.random() < MADE_PLACES:
        return made_name(split, rng) + rng.choice(ENDINGS)
    return rng.choice(places(split))


def job(split: Split, rng: Random) -> str:
    """A job that fits "I am {}": "a bus driver"."""
    if split == "train" and rng.random() < FAMILIAR:
        return rng.choice(world.JOBS)
    return rng.choice(jobs(split))


def work(split: Split, rng: Random) -> str:
    """What somebody does for a living, that fits "I {}" and "you {}": "teach maths", "repair wooden toys"."""
    while True:
        if rng.random() < COMPOSED:
            drawn = f"{rng.choice(WORK_VERBS)} {rng.choice(WORK_THINGS)}"
        else:
            drawn = rng.choice(rng.choice((WORK, WORK, WORK_AT, TEACH)))
        if split_of(drawn) == split:
            return drawn


def like(split: Split, rng: Random) -> str:
    """What somebody likes, that fits "I like {}": "tea", "collecting stamps", "wedding cakes"."""
    if split == "train" and rng.random() < FAMILIAR:
        return rng.choice(world.LIKES)
    return rng.choice(likes(split))
