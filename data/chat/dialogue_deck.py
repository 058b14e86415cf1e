"""The sentences that are translated in conversations: short ones of the English–Nepali corpus, with their marks.

The corpus has its sentences as people type them; here they are brought back to a capital and a final mark, so that an
answer in a conversation looks like a sentence. Train takes the training sentences, valid and test the held-out ones.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from data.chat.style import core
from data.en_ne.surface import BARE, fold, fold_hard

CORPUS = Path(__file__).parent.parent / "en_ne"
WORDS = (2, 7)
MARKS = {".": "।", "?": "?", "!": "!"}


class Pair(NamedTuple):
    english: str
    nepali: str


def read(split: str) -> list[Pair]:
    """The corpus, line by line."""
    sides = [(CORPUS / f"{split}.{language}").read_text(encoding="utf-8").splitlines() for language in ("en", "ne")]
    return [Pair(*pair) for pair in zip(*sides, strict=True)]


@cache
def proper() -> dict[str, str]:
    """Words that are always written with a capital, by their form in lower case: "ram" -> "Ram", "i'm" -> "I'm"."""
    forms: dict[str, set[str]] = {}
    for english, _ in read("train"):
        if english[0].isupper():  # else it is typed in lower case throughout
            for word in re.findall(r"[\w']+", english)[1:]:
                forms.setdefault(word.lower(), set()).add(word)
    return {lower: min(found) for lower, found in forms.items() if all(form[0].isupper() for form in found)}


def capitals(english: str) -> str:
    """A sentence typed in lower case with the capitals that it lacks."""
    text = re.sub(r"[\w']+", lambda word: proper().get(word.group(), word.group()), english)
    return text[0].upper() + text[1:]


def usable(pair: Pair) -> bool:
    """Short, one sentence, with the same mark at both ends, and not to be mistaken for manners."""
    english, nepali = pair
    words = english.split()
    if not WORDS[0] <= len(words) <= WORDS[1] or MARKS.get(english[-1]) != nepali[-1]:
        return False
    if re.search(r'[.?!"]', english[:-1]) or re.search(r"[।?!]", nepali[:-1]) or core(nepali) != nepali:
        return False
    return not any(word.strip(".,?!").lower() in BARE for word in words)  # "dont", "im"


@cache
def sentences(split: str) -> tuple[Pair, ...]:
    """Every usable sentence once, in the order of the corpus; the form with a capital is preferred, and a form that
    lacks an article is left out where the full one is there.
    """
    known: dict[str, Pair] = {}
    for pair in read(split):
        if usable(pair):
            key = fold(pair.english)
            if key not in known or pair.english[0].isupper() > known[key].english[0].isupper():
                known[key] = pair
    longest: dict[str, str] = {}
    for key in known:
        hard = fold_hard(key)
        longest[hard] = max(longest.get(hard, ""), key, key=len)
    return tuple(
        Pair(capitals(known[key].english), known[key].nepali) for key in known if longest[fold_hard(key)] == key
    )


def sentence(split: str, english: str) -> Pair:
    """One sentence of a split, with its marks, however it is typed in the corpus."""
    found = next(pair for pair in read(split) if fold(pair.english) == fold(english))
    return Pair(english, found.nepali.rstrip("।?!") + MARKS[english[-1]])


class Deck:
    """Deals the sentences of a split in a random order, and shuffles them again when all are dealt."""

    def __init__(self, split: str, seed: str):
        self.all, self.rng = sentences(split), Random(seed)
        self.left: list[Pair] = []

    def deal(self, fits: Callable[[Pair], bool] = lambda pair: True) -> Pair:
        """The next sentence that fits; the others keep their turn."""
        while True:
            for place in reversed(range(len(self.left))):
                if fits(self.left[place]):
                    return self.left.pop(place)
            self.left = list(self.all)
            self.rng.shuffle(self.left)


STARTS = frozenset(("The", "He", "She", "They", "It", "This", "That", "These", "Those", "There"))


def is_statement(pair: Pair) -> bool:
    """A sentence that somebody could just say, and that says nothing about him."""
    words = pair.english.split()
    return pair.english[-1] == "." and len(words) > 2 and words[0] in STARTS
