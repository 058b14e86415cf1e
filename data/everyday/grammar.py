"""Everyday sentences by grammar: patterns filled with the words of `lexicon/`, in English and Nepali.

    from data.everyday.grammar import pairs
    pairs(seed=1)     about 30,000 distinct (English, Nepali)

A pattern is a line of lexicon/patterns_*.tsv: kind, subjects, English, Nepali, how often a word of that kind is put in.

In braces stands what changes; `fill.py` says what may stand there. In brackets stand alternatives, [today/tomorrow];
the Nepali brackets of the same place take the same choice. Subjects are groups of `fill.SUBJECTS`. The program only
joins what the tables say fits: a verb stands with the complements that are written beside it, a noun in the patterns of
its kind.
"""

import random
import unicodedata

from data.en_ne.surface import fold
from data.everyday import fill, words
from data.everyday.fill import Filling, Pattern

TRIES = 4  # draws for one pattern and word before it is given up


def read_patterns() -> dict[str, list[Pattern]]:
    """All patterns, by the kind of word that they take."""
    found: dict[str, list[Pattern]] = {}
    for path in sorted(words.LEXICON.glob("patterns_*.tsv")):
        for row in words.rows(path.name):
            if len(row) != 4:
                raise ValueError(f"{path.name}: {row} has not four cells")
            kinds, group, english, nepali = row
            if len(fill.CHOICE.findall(english)) < len(fill.CHOICE.findall(nepali)):
                raise ValueError(f"{path.name}: choices of {english!r} and {nepali!r} differ")
            for kind in kinds.split():
                found.setdefault(kind, []).append(Pattern(kind, group, english, nepali))
    return found


class Collection:
    """Distinct pairs: an English sentence is taken once, with its first Nepali."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"everyday {seed}")
        self.pairs: list[tuple[str, str]] = []
        self.seen: set[str] = set()

    def add(self, pattern: Pattern, **slots) -> bool:
        """Fill the pattern until it gives a sentence that is new; say whether it did."""
        for _ in range(TRIES):
            subject = fill.subject_for(pattern.group, self.rng)
            english, nepali = fill.fill(pattern, Filling(subject, **slots), self.rng)
            key = fold(english)
            if key not in self.seen:
                self.seen.add(key)
                self.pairs.append((english, unicodedata.normalize("NFC", nepali)))
                return True
        return False


# How many patterns a word of each table is put in (a verb or adjective: all its complements together).
NOUN_SENTENCES, DEED_SENTENCES, QUALITY_SENTENCES, ADVERB_SENTENCES = 10, 24, 14, 8
IN_ALL = ("nation", "language")  # kinds whose words stand in all of their patterns, for they stand nowhere else


def spread(collection: Collection, patterns: list[Pattern], options: list[dict], wanted: int, used: list[int]) -> None:
    """Put one word into `wanted` patterns, those used least so far first, its complements in turn."""
    order = list(range(len(patterns)))
    collection.rng.shuffle(order)
    order.sort(key=lambda index: used[index])
    given = turn = 0
    while given < wanted and turn < 2 * max(wanted, len(order)):
        index = order[turn % len(order)]
        if collection.add(patterns[index], **options[turn % len(options)]):
            used[index] += 1
            given += 1
        turn += 1
        if turn % len(order) == 0 and len(options) % max(len(order), 1) == 0:
            options = options[1:] + options[:1]


def pairs(seed: int = 1) -> list[tuple[str, str]]:
    """All sentences of the grammar: distinct, in a fixed order for each seed."""
    collection, patterns = Collection(seed), read_patterns()
    used = {kind: [0] * len(found) for kind, found in patterns.items()}
    for noun in words.nouns():
        wanted = len(patterns[noun.kind]) if noun.kind in IN_ALL else NOUN_SENTENCES
        spread(collection, patterns[noun.kind], [{"noun": noun}], wanted, used[noun.kind])
    for group in words.deeds():
        kind = group[0].kind
        spread(collection, patterns[kind], [{"deed": deed} for deed in group], DEED_SENTENCES, used[kind])
    for group in words.qualities():
        kind = group[0].kind
        spread(collection, patterns[kind], [{"quality": quality} for quality in group], QUALITY_SENTENCES, used[kind])
    for kind, word, nepali, deeds in words.adverbs():
        options = [{"deed": deed, "adverb": (word, nepali)} for deed in deeds]
        spread(collection, patterns[kind], options, ADVERB_SENTENCES, used[kind])
    for pattern in patterns.get("whole", []):
        for _ in range(pattern.choices() * 3):
            collection.add(pattern)
    collection.rng.shuffle(collection.pairs)
    return collection.pairs


if __name__ == "__main__":
    for english, nepali in pairs():
        print(f"{english}\t{nepali}")
