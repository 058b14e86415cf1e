"""Questions that nobody can answer who knows no more than a conversation: the assistant says that it does not know.

They are about what will be, about what strangers do and have, and about what only the asker can see. Some wordings and
some fillers of the slots are kept for validation and test. Those from outside of what is taught (outside.train.txt)
are for training only: the tests ask what other people wrote down.
"""

import re
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Literal

Split = Literal["train", "valid", "test"]

TRAIN = """
    What will the weather be {when}?
    Will it rain {when}?
    Will it snow {when}?
    Will the sun shine {when}?
    How warm will it be {when}?
    How cold will the night be {when}?
    What will happen {when}?
    How much money is in my {container}?
    What is in my {container}?
    How many {things} are in my {container}?
    What colour is my {container}?
    Where did I put my {object}?
    Who took my {object}?
    How old is my {object}?
    How much did my {object} cost?
    When did I buy my {object}?
    Is my {object} clean?
    Who will win the {game} match {when}?
    Who won the {game} match yesterday?
    How many people will watch the {game} match?
    Who will be the best at {game} in our school?
    When will the {game} match begin?
    What did {person} eat this morning?
    What is {person} doing now?
    Where is {person} now?
    What is {person} thinking about?
    When will {person} come home?
    What does {person} want to have for dinner?
    How tall is {person}?
    How many {things} does {person} have?
    What did {person} dream last night?
    Where did {person} go yesterday?
    What did {person} buy at the market?
    Why is {person} late?
    Why did {person} laugh?
    What will {person} give me for my birthday?
    What is the telephone number of {person}?
    When did {person} get up today?
    What did {person} say to me yesterday?
    Is {person} happy today?
    Who is standing behind me?
    Who is at the door?
    What am I holding in my hand?
    What number am I thinking of?
    What am I thinking about?
    What did I eat {past}?
    What did I do {past}?
    Whom did I meet {past}?
    What did I dream {past}?
    How did I sleep {past}?
    What time is it now?
    What day is it today?
    What is the date today?
    How much does a {fruit} cost at the market today?
    How many {things} are there in our house?
    How many {things} are there in the next village?
    How many leaves are on the tree in front of my window?
    What is the name of my neighbour?
    What is the name of the girl next door?
    How many children are playing outside now?
    What is on the table in my room?
    What is my teacher going to ask {when}?
    Will I be rich one day?
    Shall I be famous one day?
    Which bus will come first {when}?
    Will the bus be late {when}?
    What will my mother cook {when}?
    What is written in the letter that I got {past}?
    Who will knock at the door {when}?
"""
VALID = """
    What will the wind be like {when}?
    Who hid my {object}?
    What is {person} reading now?
    How many {things} can {person} carry?
    Which song did {person} sing {past}?
"""
TEST = """
    Will there be a storm {when}?
    Which team will lose the {game} match {when}?
    What is {person} wearing today?
    How much money does {person} have?
    Whom did {person} meet {past}?
    What lies under my bed?
    What is behind the door of my room?
    How heavy is my {container}?
    Who broke my {object}?
    Which book did I read {past}?
    How many {things} did I see {past}?
    What is the favourite song of {person}?
    How many birds are on our roof now?
    Who will write to me {when}?
    What is hidden in my {container}?
"""
# slot: (what anybody may see, what is kept for the test)
FILLERS = {
    "when": ("tomorrow, next week, next month, next year, tonight, on Sunday, next Monday", "in ten days, next Friday"),
    "past": ("yesterday, last night, last week, last Sunday", "three days ago, last Tuesday"),
    "container": ("pocket, bag, box, basket, cupboard, drawer", "purse, suitcase"),
    "object": ("key, umbrella, book, pen, watch, cap, bicycle, ring", "scarf, lamp"),
    "game": ("football, cricket, volleyball, chess, hockey", "tennis, basketball"),
    "things": ("books, cups, chairs, stones, flowers, pens, shoes, spoons", "plates, candles"),
    "fruit": ("mango, banana, lemon, pear, melon", "pineapple, coconut"),
    "person": (
        "my sister, my brother, my mother, my uncle, my friend, my teacher, our neighbour, the shopkeeper, the doctor, "
        "your friend, the king of Spain, the man next door, my grandmother, the bus driver",
        "my cousin, the postman, my grandfather",
    ),
}  # fmt: skip
SLOT = re.compile(r"{(\w+)}")
UNKNOWABLE = tuple(line.strip() for text in (TRAIN, VALID, TEST) for line in text.strip().splitlines())


def templates(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def fill(template: str, kept: bool) -> list[str]:
    """Every question that a template makes of the fillers that all may see, or, if `kept`, every other."""
    slots = SLOT.findall(template)
    known = set(product(*(FILLERS[slot][0].split(", ") for slot in slots)))
    every = product(*(", ".join(FILLERS[slot]).split(", ") for slot in slots))
    chosen = [values for values in every if (values in known) != kept]
    return [template.format(**dict(zip(slots, values, strict=True))) for values in chosen]


@cache
def questions(split: Split) -> tuple[tuple[str, ...], ...]:
    """The questions of a split, by template. A test question has a wording or a filler that is kept for the test."""
    if split != "test":
        return tuple(tuple(fill(template, kept=False)) for template in templates(TRAIN if split == "train" else VALID))
    new = [tuple(fill(template, kept=False) + fill(template, kept=True)) for template in templates(TEST)]
    old = [tuple(fill(template, kept=True)) for template in templates(TRAIN) if SLOT.search(template)]
    return (*new, *old)


def unknowable(split: Split, rng: Random) -> str:
    """A question of a split; every wording is drawn as often as any other."""
    return rng.choice(rng.choice(questions(split)))


@cache
def outside_lines() -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """The templates of outside.train.txt, and what fills their slots."""
    text = (Path(__file__).parent / "outside.train.txt").read_text(encoding="utf-8")
    asked, _, filled = text.partition("\n\n")
    tables = (line.partition(" = ")[::2] for line in filled.splitlines())
    fillers = {slot: tuple(words.split(", ")) for slot, words in tables}
    return tuple(line for line in asked.splitlines() if not line.startswith("#")), fillers


def outside(rng: Random) -> str:
    """A question or request from outside of what is taught."""
    asked, fillers = outside_lines()
    return SLOT.sub(lambda slot: rng.choice(fillers[slot[1]]), rng.choice(asked))
