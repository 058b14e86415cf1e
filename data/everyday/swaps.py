"""Sentences written by hand, said again: of other things, in other words, and two of them as one.

"I left my phone on the bus" is said of an umbrella, of a wallet.
A noun is put in the place of another of the same kind (the kinds of lexicon/nouns.tsv, food, tool, place and so on)
where both sides of a pair have it exactly once, in the singular, in Nepali with at most a postposition. So every word
of the lexicon is met in sentences that people say, and not only in those of the grammar. Persons are left alone: their
verbs agree with them.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from data.en_ne import nouns as en_ne
from data.en_ne.english import a
from data.everyday import words
from data.everyday.tables import BETWEEN, Entry

KINDS = ("food", "drink", "place", "tool", "wear", "thing", "vehicle", "animal", "plant", "spice", "part")
# Kinds of the words that the small corpus has, by the first of their tags that is here.
OF_TAG = {
    "edible": "food", "drink": "drink", "building": "place", "land": "place", "shop": "place", "wear": "wear",
    "cloth": "wear", "vehicle": "vehicle", "furniture": "part", "part": "part", "container": "tool", "read": "thing",
    "use": "tool", "own": "thing",
}  # fmt: skip
CONJUNCTIONS = ("and", "र"), ("but", "तर"), ("so", "त्यसैले"), ("because", "किनभने"), ("and then", "अनि")
WITH_COMMA = "तर", "त्यसैले"  # in front of which both languages have one
MARK = "\ue000"  # stands for what is carried over: see toolkit/tokenization/carrying.py
SHORT = 7  # words of a statement that is joined to another
SAID_OTHERWISE = 0.5  # of the words for which there is another
IN_A_BREATH = 10  # words of a sentence that is typed with others, without marks
POSTPOSITIONS = ("", "मा", "को", "का", "की", "लाई", "ले", "बाट", "सँग", "सम्म", "तिर", "नजिक", "पनि", "भित्र", "बाहिर")


class Thing(NamedTuple):
    """A noun that can be put in the place of others of its kind; those that are not counted only in that of such."""

    english: str
    nepali: str
    kind: str
    counted: bool


def things() -> list[Thing]:
    """List the nouns of both lexicons that stand for things."""
    found = []
    for row in words.rows("nouns.tsv"):
        kind, english, nepali = row[:3]
        found.append(Thing(english, nepali, kind, row[3:4] != ["-"]))
    for line in en_ne.THINGS.strip().splitlines():
        english, nepali, tags = (cell.strip() for cell in line.split("|"))
        kind = next((OF_TAG[tag] for tag in tags.split() if tag in OF_TAG), "")
        if "many" not in tags.split():
            found.append(Thing(english, nepali, kind, "mass" not in tags.split()))
    return [thing for thing in dict.fromkeys(found) if thing.kind in KINDS]


class Swaps:
    """Says pairs again with other nouns."""

    def __init__(self, every: Iterable[Thing]):
        self._by_english: dict[str, Thing] = {}
        self._others: dict[tuple[str, bool], list[Thing]] = defaultdict(list)
        for thing in every:
            self._by_english.setdefault(thing.english, thing)
            self._others[thing.kind, thing.counted].append(thing)
        by_letter = defaultdict(list)  # the search tries one alternative after the other: few, where letters come first
        for noun in sorted(self._by_english, key=len, reverse=True):
            by_letter[noun[0].lower()].append(re.escape(noun[1:]))
        any_noun = "|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in by_letter.items())
        self._finder = re.compile(rf"(?<![\w'-])(?:(an?) )?({any_noun})(?![\w'-])", re.IGNORECASE)

    def of(self, english: str, nepali: str, rng: random.Random, strange: bool = False) -> tuple[str, str] | None:
        """Say a pair again with one other noun; None where it has none that can be exchanged.

        strange: with a mark in place of the noun, as of a word that is carried over.
        """
        found = list(self._finder.finditer(english))
        rng.shuffle(found)
        for match in found:
            old = self._by_english.get(match[2].lower())
            if old is None or sum(each[2].lower() == match[2].lower() for each in found) > 1:
                continue
            token = re.compile(
                rf"(?<![\u0900-\u097f]){re.escape(old.nepali)}({'|'.join(POSTPOSITIONS[1:])}|)(?![\u0900-\u097f])"
            )
            places = list(token.finditer(nepali))
            if len(places) != 1:
                continue
            new = old._replace(english=free_mark(english), nepali=free_mark(english))
            if not strange:
                new = rng.choice(self._others[old.kind, old.counted])
            if new.english == old.english or new.nepali in nepali:
                continue
            said = a(new.english) if match[1] else new.english
            if match.start() == 0 and not strange:
                said = said[0].upper() + said[1:]
            place = places[0]
            theirs = nepali[: place.start()] + new.nepali + place[1] + nepali[place.end() :]
            return english[: match.start()] + said + english[match.end() :], theirs
        return None


def free_mark(english: str) -> str:
    """Give the first mark that does not stand in a sentence."""
    return next(mark for mark in map(chr, range(ord(MARK), ord(MARK) + 16)) if mark not in english)


class Synonyms:
    """Says Nepali sentences in words that people use in place of those of the corpus: to be read, not to be written."""

    def __init__(self):
        self._others: dict[str, tuple[list[str], re.Pattern[str] | None]] = {}
        for usual, others, english in words.rows("synonyms.tsv"):
            meant = None if english == "-" else re.compile(rf"\b(?:{english})\b", re.IGNORECASE)
            self._others[usual] = others.split(BETWEEN), meant
        ends = [usual[1:] for usual in self._others if usual[0] == "-"]
        whole = sorted((usual for usual in self._others if usual[0] != "-"), key=len, reverse=True)
        self._finder = re.compile(
            rf"(?<![\u0900-\u0963])({'|'.join(whole)})((?:हरू)?(?:{'|'.join(POSTPOSITIONS[1:])}|))(?![\u0900-\u0963])"
            rf"|({'|'.join(ends)})(?![\u0900-\u0963])"
        )

    def of(self, english: str, nepali: str, rng: random.Random) -> str:
        """Say a sentence otherwise: about half of the words that have others are exchanged, of each sense alone."""

        def other(match: re.Match[str]) -> str:
            others, meant = self._others[match[1] or "-" + match[3]]
            if rng.random() < SAID_OTHERWISE and (meant is None or meant.search(english)):
                return rng.choice(others) + (match[2] or "")
            return match[0]

        return self._finder.sub(other, nepali)


def said_of_others(entries: Iterable[Entry], times: int, rng: random.Random) -> list[tuple[str, str]]:
    """Say every sentence of a thing again of others, up to so many times, and once of one that nobody knows."""
    swaps, found = Swaps(things()), []
    for entry in entries:
        for number in range(times + 1):
            if pair := swaps.of(rng.choice(entry.english), entry.nepali[0], rng, strange=number == times):
                found.append(pair)
    return found


def joined(entries: Iterable[Entry], count: int, rng: random.Random) -> list[tuple[str, str]]:
    """Join statements of a few words, two by two, with a conjunction: what each says stays what it says."""
    entries = list(entries)
    known = {word for entry in entries for text in entry.english for word in re.findall(r"(?<= )[a-z']+", text)}
    short = [
        (english, entry.nepali[0])
        for entry in entries
        for english in entry.english
        if re.fullmatch(r"[^.?!]+\.", english) and entry.nepali[0].count("।") == 1 and len(english.split()) <= SHORT
    ]
    found = []
    for _ in range(count):
        one, two = rng.sample(short, 2)
        two = tuple(text.replace(MARK, free_mark(one[0])) for text in two)
        english, nepali = rng.choice(CONJUNCTIONS)
        first = two[0].split()[0]
        second = two[0][0].lower() + two[0][1:] if first.lower() in known and first.split("'")[0] != "I" else two[0]
        comma = "," if nepali in WITH_COMMA else ""
        found.append((f"{one[0][:-1]}{comma} {english} {second}", f"{one[1][:-1]}{comma} {nepali} {two[1]}"))
    return found


def run_on(entries: Iterable[Entry], count: int, rng: random.Random, nepali: bool = False) -> list[tuple[str, str]]:
    """Type two sentences or three in one breath, with a comma or nothing between: to be read alone, in one language.

    Returns (English, Nepali): small English as it is typed with Nepali as it is written, or the other way.
    """
    short = []
    for entry in entries:
        read, written = (entry.nepali, entry.english[0]) if nepali else (entry.english, entry.nepali[0])
        single = (one for one in read if re.fullmatch(r"[^.?!।–]+[.?!।]", one) and len(one.split()) <= IN_A_BREATH)
        short += [(one, written) for one in single if chr(ord(MARK) + 1) not in one]
    found = []
    for _ in range(count):
        read, written = "", ""
        for number, (one, other) in enumerate(rng.sample(short, rng.choice((2, 2, 3)))):
            mark = free_mark(read)
            text = one[:-1].replace(MARK, mark)
            text = text if nepali or rng.random() < 0.3 else text.lower()
            read += (rng.choice((", ", " ", " अनि " if nepali else " and ")) if number else "") + text
            written += (" " if number else "") + other.replace(MARK, mark)
        read, written = read if nepali or rng.random() < 0.7 else read.replace("'", ""), written[:-1]
        found.append((written, read) if nepali else (read, written))
    return found
