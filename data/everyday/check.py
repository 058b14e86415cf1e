"""Report how various the sentences written by hand are, and refuse tables that are not what they must be.

    python -m data.everyday.check

A table that was filled in from templates would show here: many sentences that are the same once names, numbers and
nouns are masked, many with a near neighbour, many that begin with the same four words.
"""

import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import chain
from typing import NamedTuple

from data.en_ne import nouns
from data.en_ne.english import plural
from data.en_ne.surface import fold
from data.everyday import tables, words
from data.everyday.tables import BETWEEN, DEVANAGARI_DIGITS, MARKS, Entry

EXTRA = 5  # n-grams that are looked up beyond half of a text's
NEAR = 0.9  # similarity of characters (Ratcliff and Obershelp) from which on sentences are neighbours
LETTERS = 4  # of the n-grams that two sentences must share to be compared
NUMBERS = {
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
    "hundred",
    "thousand",
    "first",
    "second",
    "third",
    "half",
}
# What is never right, however it is meant: old spellings, and signs in the wrong place.
WRONG = ("हरु", "तपाईँ", "काठमाडौं", " ।", "गर्यो", "पर्यो", "दैछ", "कोलागि", "।।", "  ")
JOINERS = re.compile(r"[\u200b\u200c]|(?<!र्)\u200d")


class Report(NamedTuple):
    """How various sentences are: their number, and those that are distinct, near, and alike in their beginning.

    `near` is of the `compared` ones.
    """

    rows: int
    pairs: int
    masked: int
    near: int
    compared: int
    beginnings: list[tuple[str, int]]


def problems(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield what is wrong with the writing of an entry: marks, digits, spelling, normal form, letters."""
    for entry in entries:
        for text in (*entry.english, *entry.nepali):
            if unicodedata.normalize("NFC", text) != text or JOINERS.search(text) or BETWEEN.strip() in text:
                yield f"{entry.topic}: signs that do not belong there: {text}"
        for nepali in entry.nepali:
            if found := [each for each in WRONG if each in nepali]:
                yield f"{entry.topic}: {found[0]!r} in {nepali}"
        for english in entry.english:
            wanted = sorted(re.findall(r"\d+", english))
            for nepali in entry.nepali:
                if sorted(re.findall(r"\d+", nepali.translate(DEVANAGARI_DIGITS))) != wanted:
                    yield f"{entry.topic}: other digits: {english} / {nepali}"
                if english[-1] in MARKS and nepali[-1] not in MARKS.values():
                    yield f"{entry.topic}: no final mark: {english} / {nepali}"


def masked(text: str, names: set[str], things: set[str]) -> str:
    """Put signs in the place of names, numbers and nouns."""
    found = []
    for word in fold(text).split():
        word = word.removesuffix("s") if word.removesuffix("s") in names else word
        sign = "NAME" if word in names else "NUMBER" if word in NUMBERS or word[0].isdigit() else ""
        found.append(sign or ("NOUN" if word in things else word))
    return " ".join(found)


def known_nouns() -> set[str]:
    """List the nouns of both grammars, in both numbers."""
    found = {line.split("|")[0].strip() for line in nouns.THINGS.splitlines() if "|" in line}
    found |= {row[1] for row in words.rows("nouns.tsv")}
    return found | {plural(word) for word in found}


def near_ones(texts: list[str], one_in: int = 1) -> int:
    """Count the texts that one before them is similar to, above NEAR; only one text in `one_in` is looked at.

    Above 0.9, nine letters in ten are in common, and of the n-grams of either still more than half. So of their rarer
    halves and EXTRA more, EXTRA + 1 are in common: only such texts are compared, and of these those of about the same
    length.
    """
    all_grams = [{text[begin : begin + LETTERS] for begin in range(max(1, len(text) - LETTERS + 1))} for text in texts]
    seen = Counter(gram for grams in all_grams for gram in grams)
    places: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))  # by n-gram and length

    def is_near(text: str, grams: set[str], rarer: list[str]) -> bool:
        lengths = range(int(len(text) * NEAR / (2 - NEAR)), int(len(text) * (2 - NEAR) / NEAR) + 1)
        near = [places[gram][length] for gram in rarer for length in places[gram].keys() & lengths]
        met = Counter(chain.from_iterable(near))
        needed = min(EXTRA, len(grams) // 2) + 1
        others = (other for other, times in met.items() if times >= needed)
        alike = (texts[other] for other in others if len(grams & all_grams[other]) > len(grams) / 2)
        return any(SequenceMatcher(None, text, other, autojunk=False).ratio() > NEAR for other in alike)

    count = 0
    for place, (text, grams) in enumerate(zip(texts, all_grams, strict=True)):
        rarer = sorted(grams, key=lambda gram: (seen[gram], gram))[: (len(grams) + 1) // 2 + EXTRA]
        count += (place + 1) % one_in == 0 and is_near(text, grams, rarer)
        for gram in rarer:
            places[gram][len(text)].append(place)
    return count


def report(entries: list[Entry], one_in: int = 1) -> Report:
    """Count what there is, by the first English wording of every pair; neighbours of one sentence in `one_in`."""
    firsts = [fold(entry.english[0]) for entry in entries]
    names, things = {name.latin.lower() for name in tables.names()}, known_nouns()
    four = Counter(" ".join(text.split()[:4]) for text in firsts if len(text.split()) > 3)
    return Report(
        len(entries),
        sum(len(entry.english) * len(entry.nepali) for entry in entries),
        len({masked(text, names, things) for text in firsts}),
        near_ones(firsts, one_in),
        len(firsts) // one_in,
        four.most_common(5),
    )


def main() -> int:
    """Print the report; returns 2 where a table has mistakes."""
    entries = tables.sentences()
    for topic, count in Counter(entry.topic for entry in entries).items():
        print(f"{topic:32} {count:5,}")
    found = report(entries)
    print(f"{found.rows:,} sentences, {found.pairs:,} pairs with all their wordings")
    print(f"{found.masked:,} are distinct once names, numbers and nouns are masked")
    print(f"{found.near:,} ({found.near / found.rows:.1%}) have a neighbour of similarity above {NEAR}")
    print("most common beginnings:", ", ".join(f"{text} ({count})" for text, count in found.beginnings))
    wrong = list(problems(entries))
    for each in wrong:
        print(each, file=sys.stderr)
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
