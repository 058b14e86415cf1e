"""The tables of the everyday corpus: pairs with several wordings, the tests with their references, names, carriers.

A table is read whole and checked as it is read: a line that is not what it must be ends the program with its place.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from data.en_ne.surface import fold, fold_nepali

HERE = Path(__file__).parent
BETWEEN = " | "  # wordings of one side
DEVANAGARI_DIGITS = str.maketrans("०१२३४५६७८९", "0123456789")
MARKS = {".": "।", "?": "?", "!": "!"}  # a final mark and the one that mirrors it
HELD_NAMES = 200  # of foreign, of English and of Nepali names that no training text has, to be tested on
FOREIGN, NEPALI = ("given", "family", "place"), ("nepali", "nepali-place")  # kinds of names


_WORD, _OWNERS = re.compile(r"[a-zà-ÿ\u0900-\u0963\u200d'’.-]+"), ("'s", "’s")


class Entry(NamedTuple):
    """A pair with all its wordings, the commonest first; all combinations are translations of each other."""

    english: list[str]
    nepali: list[str]
    topic: str


class Name(NamedTuple):
    """A name in both scripts, and a letter for the language that it is said in; "" is not told.

    Further spellings in Devanagari are as good as the first. E: English; G: German, Dutch, Scandinavian; F: French; I:
    Italian; S: Spanish, Portuguese; P: Slavic, and others of eastern Europe; A: Arabic, Persian, Turkish, Hebrew; H: of
    India; J: of eastern Asia; N: Nepali; O: others.
    """

    kind: str
    latin: str
    devanagari: list[str]
    language: str = ""


def cells(path: Path, count: int) -> Iterator[list[str]]:
    """Yield the cells of every line that is neither blank nor a comment.  Raises ValueError for another number."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("# "):
            continue
        found = [unicodedata.normalize("NFC", cell.strip()) for cell in line.split("\t")]
        if len(found) != count or not all(found):
            raise ValueError(f"{path.name}:{number} has {len(found)} cells, {count} are needed: {line!r}")
        yield found


def sentences() -> list[Entry]:
    """Read what is written by hand, a file a topic; of an English sentence said twice the first translation stays."""
    entries, known = [], set()
    for path in sorted((HERE / "sentences").glob("*.tsv")):
        for english, nepali in cells(path, 2):
            wordings = [each for each in english.split(BETWEEN) if fold(each) not in known]
            known |= {*map(fold, wordings)}
            if wordings:
                entries.append(Entry(wordings, nepali.split(BETWEEN), path.stem))
    return entries


def held_out(name: str) -> list[Entry]:
    """Read the pairs of "test" or "valid", in order."""
    rows = list(cells(HERE / f"{name}.tsv", 3))[1:]
    return [Entry(english.split(BETWEEN), nepali.split(BETWEEN), topic) for topic, english, nepali in rows]


def judged() -> dict[str, list[str]]:
    """Read the English that a reader found right beside what is listed, by the Nepali of the validation sentence."""
    found: dict[str, list[str]] = {}
    for nepali, english in cells(HERE / "valid-judged.tsv", 2):
        found.setdefault(nepali, []).append(english)
    return found


class HeldOut:
    """Tells which pairs may not be taught: those that say what a held-out pair says, on either side.

    English counts in all wordings, Nepali in the one that is a source; case, marks and contractions make no difference.
    """

    def __init__(self, entries: Iterable[Entry], names: Iterable[Name] = ()):
        entries = list(entries)
        self._english = {fold(each) for entry in entries for each in entry.english}
        self._nepali = {fold_nepali(entry.nepali[0]) for entry in entries}
        self._words = {name.latin.lower() for name in names} | {each for name in names for each in name.devanagari}

    def has(self, english: str, nepali: str) -> bool:
        """Say if a pair, or a name in it, is held out."""
        if fold(english) in self._english or fold_nepali(nepali) in self._nepali:
            return True
        return bool(self._words) and not self._words.isdisjoint(words(english))


def words(text: str) -> list[str]:
    """List the words of a text in lower case, and those that they begin with where they are possessive."""
    found = [word.strip(".-") for word in _WORD.findall(text.lower())]
    if "'" not in text and "’" not in text:
        return found
    return [part for word in found for part in (word.strip("'’.-"), word[:-2] if word.endswith(_OWNERS) else word)]


def names(file: str = "names.tsv") -> list[Name]:
    """Read the names of a table, of every spelling in Latin letters the first."""
    found: dict[str, Name] = {}
    for kind, latin, devanagari, language in list(cells(HERE / file, 4))[1:]:
        told = language.strip("-")
        found.setdefault(latin.lower(), Name(kind, latin.split(BETWEEN)[0], devanagari.split(BETWEEN), told))
    return list(found.values())


def english_names() -> list[str]:
    """Read which of the names that are never taught are English: by the same hash the first that somebody called so.

    Those of the 200 foreign ones come first. Who told them apart saw a name, and no spelling of it in Devanagari.
    """
    return (HERE / "english-names.txt").read_text(encoding="utf-8").split()


def tested_names(every: Iterable[Name], taught: set[str]) -> list[Name]:
    """Choose the names that are never taught: by a hash of the name, among those that no sentence has.

    taught: the words of all sentences, in lower case.  The foreign ones come first, then Nepali ones, and English ones.
    """
    free = [
        name
        for name in every
        if " " not in name.latin and name.latin.lower() not in taught and taught.isdisjoint(name.devanagari)
    ]
    free.sort(key=lambda name: blake2b(name.latin.encode(), key=b"everyday").digest())
    spellings: set[str] = set()
    chosen: list[Name] = []
    for kinds in (FOREIGN, NEPALI):
        own = [name for name in free if name.kind in kinds and spellings.isdisjoint(name.devanagari)][:HELD_NAMES]
        spellings |= {each for name in own for each in name.devanagari}
        chosen += own
    english = set(english_names()).difference(name.latin for name in chosen)
    return chosen + [name for name in free if name.latin in english]


def only_spelled(tested: Iterable[Name]) -> list[Name]:
    """Read the names that were written after those of the test were chosen, and English words as Nepali writes them.

    Those that are written like a name of the test, in either script, are left out.
    """
    tested = list(tested)
    held = {name.latin.lower() for name in tested} | {each for name in tested for each in name.devanagari}
    words = (Name("word", latin, [devanagari], "E") for latin, devanagari in cells(HERE / "borrowed.tsv", 2))
    every = chain(names("further-names.tsv"), words)
    return [each for each in every if held.isdisjoint((each.latin.lower(), *each.devanagari))]


def carriers() -> list[tuple[str, str]]:
    """Read the sentences with a place for a name: {person}, {family} or {place} on both sides."""
    return [(english, nepali) for english, nepali in cells(HERE / "carriers.tsv", 2)]
