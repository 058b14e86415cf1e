"""Write the everyday corpus: training pairs by kind, and the held-out ones with all their references.

    python -m data.everyday.generate              write the files next to this program; see data/command.py

    sentences.*   what is written by hand: every English wording with the first Nepali one
    typed.*       the same, as people type English in a hurry, two or three in one breath: to be read, not to be written
    worded.*      further Nepali wordings with the first English one, in words that others use (lexicon/synonyms.tsv),
                  some in one breath: to be read, not to be written
    swaps.*       the same, said of other things, and two of them as one
    grammar.*     what the grammars write: this one, and that of data/en_ne as far as it is taught there
    names.*       sentences with marks in the places of names, and with other numbers and addresses
    english-spellings.*, foreign-spellings.*, nepali-spellings.*
                  names by the language that they are said in, and English words, in both scripts, letter by letter
    valid, test   .en and .ne are sources; .references.en and .references.ne have all translations of a line, between
                  tabs; .topics their topics; valid.judged.en has what readers found right, too: to calibrate by
    names-test    three sentences for each of 524 names that stand nowhere else, and in .json those names

Nothing that is taught says what a held-out pair says. Same program, same bytes.
"""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from operator import itemgetter
from pathlib import Path

from data import command
from data.en_ne import generate as en_ne
from data.en_ne.surface import full, variant
from data.everyday import grammar, swaps, tables
from data.everyday.swaps import MARK
from data.everyday.tables import Entry, HeldOut, Name

HERE = Path(__file__).parent
SEED = 22
Pairs = list[tuple[str, str]]

SPELLED = {"english": "E", "nepali": "N", "foreign": "GFISPAHJO"}  # kinds of names that are spelled, by language
# What is not shuffled: of several spellings the first of the table is the commonest, and the one that is kept.
AS_IN_THE_TABLES = "sentences", *(f"{name}-spellings" for name in SPELLED)

OTHER_THINGS = 2  # times that a sentence of a thing is said again of others
OTHER_NUMBERS = 4  # times that a sentence with digits is said again with others
TESTED_IN = 3  # sentences for each name of the test
PLACE_OF = {"given": "{person}", "nepali": "{person}", "family": "{family}"}  # of other kinds, {place}
DEVANAGARI = str.maketrans("0123456789", "०१२३४५६७८९")
ENDINGS = "ले|को|का|की|लाई|मा|बाट|सँग|देखि|सम्म|हरू|भन्दा|तिर|पनि|कै|जी"  # what is written together with a name
FEW = 30  # sentences with a name, fewer than which teach it to nobody
LATIN = re.compile("[A-Za-zÀ-ɏ]+")
PLACES = re.compile(r"\{\w+\}")
NUMBER = re.compile(r"[0-9][0-9,.:/-]*[0-9]|[0-9]")
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


def said(entries: Iterable[Entry]) -> Pairs:
    """Pair every English wording with the first Nepali one."""
    return [(english, entry.nepali[0]) for entry in entries for english in entry.english]


def typed(entries: Iterable[Entry], rng: random.Random) -> Pairs:
    """Type one English wording of each pair in a hurry: lower case, contractions, marks and articles as they come."""
    found = []
    for entry in entries:
        english = rng.choice(entry.english)
        pair = variant(english, entry.nepali[0], rng)
        if pair[0] == english and english[-1] in tables.MARKS:
            pair = english[:-1], entry.nepali[0][:-1]
        found.append(pair)
    return found


def worded(entries: Iterable[Entry], rng: random.Random) -> Pairs:
    """Pair every further Nepali wording with the first English one, and the first otherwise or without its mark."""
    synonyms = swaps.Synonyms()
    found = [(entry.english[0], nepali) for entry in entries for nepali in entry.nepali[1:]]
    for english, nepali in ((entry.english[0], entry.nepali[0]) for entry in entries):
        other = synonyms.of(english, nepali, rng)
        if other != nepali:
            found.append((english, other))
        elif english[-1] in tables.MARKS:
            found.append((english[:-1], nepali[:-1]))
    return found


def taught_by_en_ne() -> Pairs:
    """Give the sentences that data/en_ne teaches, properly written; what it holds out stays held out."""
    collection = en_ne.Collection(en_ne.read_phrases())
    en_ne.gather(collection)
    return [(full(each.english), each.nepali) for each in collection.phrases + collection.sides["train"]]


def with_names(names: Iterable[Name], carriers: Pairs, count: int, rng: random.Random) -> Pairs:
    """Say every name in `count` sentences that have a place for its kind."""
    pairs = []
    for name in names:
        place = PLACE_OF.get(name.kind, "{place}")
        fitting = [pair for pair in carriers if PLACES.findall(pair[0]) == [place]]
        for english, nepali in rng.sample(fitting, min(count, len(fitting))):
            pairs.append((english.replace(place, name.latin), nepali.replace(place, name.devanagari[0])))
    return pairs


def with_marks(carriers: Pairs, names: Iterable[Name], pairs: Pairs) -> Pairs:
    """Put marks where names stand, in the sentences that carry names and in others that have one: so any name fits."""
    found = []
    for pair in carriers:
        marks = {place: chr(ord(MARK) + number) for number, place in enumerate(dict.fromkeys(PLACES.findall(pair[0])))}
        found.append(tuple(PLACES.sub(lambda match, marks=marks: marks[match[0]], text) for text in pair))
    said = {word for english, _ in pairs for word in LATIN.findall(english)}  # a search for all names would take long
    of_latin = {name.latin: name.devanagari for name in names if said.issuperset(LATIN.findall(name.latin))}
    finder = re.compile(r"\b(" + "|".join(map(re.escape, of_latin)) + r")\b")
    for english, nepali in pairs:
        here = all_marked = (english, nepali)
        for match in finder.finditer(english):
            spelled = [each for each in of_latin[match[0]] if nepali.count(each) == 1]
            if spelled and english.count(match[0]) == 1:
                found.append(marked(here, match[0], spelled[0]))
                all_marked = marked(all_marked, match[0], spelled[0])
                if all_marked != found[-1]:
                    found.append(all_marked)
    return found


def marked(pair: tuple[str, str], latin: str, devanagari: str) -> tuple[str, str]:
    """Put a mark that the pair does not have yet in the place of a name."""
    mark = swaps.free_mark(pair[0])
    return pair[0].replace(latin, mark), pair[1].replace(devanagari, mark)


def spelling_of(devanagari: Iterable[str]) -> re.Pattern[str]:
    """Find a name in a Nepali sentence, in any of its spellings and with what is written together with it."""
    return re.compile(rf"(?<![\u0900-\u0963])(?:{'|'.join(devanagari)})(?={ENDINGS}|[^\u0900-\u0963]|$)")


def rare_names(entries: Iterable[Entry], names: Iterable[Name], others: Iterable[str]) -> dict[str, list[str]]:
    """Find the names that few sentences have: nobody learns to spell a name from so few.

    A word that also stands in lower case is no name alone.

    others: further English sentences that are taught.
    """
    seen = Counter(word for text in chain(others, *(each.english for each in entries)) for word in LATIN.findall(text))
    rare = (each for each in names if 0 < seen[each.latin] < FEW and not seen[each.latin.lower()])
    return {each.latin: each.devanagari for each in rare}


def without(rare: Mapping[str, list[str]], entries: Iterable[Entry]) -> list[Entry]:
    """Put a mark in the place of a name that is rare. What has the name on one side alone is left out."""
    found = []
    for entry in entries:
        here = [name for name in dict.fromkeys(LATIN.findall(entry.english[0])) if name in rare]
        others = rare.keys() - here
        entry = entry._replace(english=[each for each in entry.english if others.isdisjoint(LATIN.findall(each))])
        for number, name in enumerate(here):
            mark, finders = chr(ord(MARK) + number), (re.compile(rf"\b{name}\b"), spelling_of(rare[name]))
            sides = [
                [finder.sub(mark, text) for text in side if len(finder.findall(text)) == 1]
                for finder, side in zip(finders, entry[:2], strict=True)
            ]
            entry = Entry(*sides, entry.topic)
        if entry.english and entry.nepali:
            found.append(entry)
    return found


def spelled(names: Iterable[Name]) -> Pairs:
    """Spell names letter by letter, in every spelling."""
    single = [name for name in names if " " not in name.latin]
    return [
        (" ".join(name.latin.lower()), " ".join(devanagari))
        for name in single
        for devanagari in name.devanagari
        if " " not in devanagari
    ]


def with_other_numbers(pairs: Pairs, rng: random.Random) -> Pairs:
    """Say the sentences that have digits on both sides again with other ones, and addresses with others."""
    found = []
    for english, nepali in pairs:
        numbers = [each for each in NUMBER.findall(ADDRESS.sub("", english)) if each.translate(DEVANAGARI) in nepali]
        addresses = [each for each in ADDRESS.findall(english) if each in nepali]
        for _ in range(OTHER_NUMBERS if numbers or addresses else 0):
            ours, theirs = english, nepali
            for old in dict.fromkeys(numbers):
                new = _other_number(old, rng)
                ours = re.sub(rf"(?<!\d){re.escape(old)}(?!\d)", new, ours)
                theirs = theirs.replace(old.translate(DEVANAGARI), new.translate(DEVANAGARI))
            for old in dict.fromkeys(addresses):
                new = _other_address(rng)
                ours, theirs = ours.replace(old, new), theirs.replace(old, new)
            found.append((ours, theirs))
    return found


def _other_number(old: str, rng: random.Random) -> str:
    """Draw a number of the same form: a time stays a time, a year a year, a phone number one."""
    if re.fullmatch(r"\d{1,2}:\d\d", old):
        return f"{rng.randint(1, 12)}:{rng.choice(('00', '15', '30', '45', f'{rng.randint(1, 59):02}'))}"
    if re.fullmatch(r"(19|20)\d\d", old):
        return str(rng.randint(1940, 2089))
    if len(old) <= 2 and old.isdigit():
        return str(rng.randint(2, 9) if len(old) == 1 else rng.randint(10, 99))
    drawn = "".join(rng.choice("0123456789") if each.isdigit() else each for each in old[1:])
    return (rng.choice("123456789") if old[0] != "9" or len(old) < 8 else "9") + drawn


def _other_address(rng: random.Random) -> str:
    """Draw an address of nobody."""
    letters = "abcdeghijklmnoprstuvy"
    name = "".join(rng.choice(letters) for _ in range(rng.randint(3, 9)))
    name += rng.choice(("", "", f".{''.join(rng.choice(letters) for _ in range(5))}", str(rng.randint(1, 999))))
    return (
        f"{name}@{rng.choice(('gmail.com', 'yahoo.com', 'hotmail.com', 'example.com', 'mail.com.np', 'example.org'))}"
    )


def kept(pairs: Pairs, held: HeldOut) -> Pairs:
    """Leave out what is held out, and what was said before."""
    return [pair for pair in dict.fromkeys(pairs) if not held.has(*pair)]


def references(entries: list[Entry], nepali: bool) -> str:
    """Write all translations of every source, between tabs."""
    return "".join("\t".join(entry.nepali if nepali else entry.english) + "\n" for entry in entries)


def texts() -> Iterator[tuple[str, str]]:
    """The name and the contents of every file."""
    whole, tests = tables.sentences(), {name: tables.held_out(name) for name in ("valid", "test")}
    known = [entry for entries in tests.values() for entry in entries]
    from_grammars = taught_by_en_ne() + grammar.pairs()
    every = chain.from_iterable(said(whole) + [(each, "") for one in whole for each in one.nepali] + from_grammars)
    taught = set(chain.from_iterable(map(tables.words, dict.fromkeys(every))))
    names = tables.names()
    tested = tables.tested_names(names, taught)
    held = HeldOut(known, tested)
    rng = random.Random(f"{SEED} names")
    carriers = tables.carriers()
    others = [name for name in names if name not in tested]
    to_spell = others + tables.only_spelled(tested)
    free = (each._replace(english=[one for one in each.english if not held.has(one, each.nepali[0])]) for each in whole)
    free = list(filter(itemgetter(0), free))
    rare = rare_names(free, others, (english for english, _ in from_grammars))
    by_hand = without(rare, free)
    kinds = {
        "sentences": said(by_hand),
        "typed": typed(by_hand, random.Random(f"{SEED} typed"))
        + swaps.run_on(by_hand, len(by_hand) // 6, random.Random(f"{SEED} run on")),
        "worded": worded(by_hand, random.Random(f"{SEED} worded"))
        + swaps.run_on(by_hand, len(by_hand) // 12, random.Random(f"{SEED} run on in Nepali"), nepali=True),
        "swaps": swaps.said_of_others(by_hand, OTHER_THINGS, random.Random(f"{SEED} swaps"))
        + swaps.joined(by_hand, len(by_hand) // 2, random.Random(f"{SEED} joined")),
        "grammar": said(without(rare, (Entry([english], [nepali], "") for english, nepali in from_grammars))),
        "names": with_marks(carriers, others, said(by_hand)) + with_other_numbers(said(by_hand), rng),
    }
    for name, languages in SPELLED.items():
        kinds[f"{name}-spellings"] = spelled(each for each in to_spell if each.language in [*languages])
    for name, pairs in kinds.items():
        pairs = kept(pairs, held)
        if name not in AS_IN_THE_TABLES:
            rng.shuffle(pairs)
        for column, language in enumerate(("en", "ne")):
            yield f"{name}.{language}", "".join(pair[column] + "\n" for pair in pairs)
    for name, entries in tests.items():
        yield f"{name}.en", "".join(f"{entry.english[0]}\n" for entry in entries)
        yield f"{name}.ne", "".join(f"{entry.nepali[0]}\n" for entry in entries)
        yield f"{name}.references.en", references(entries, nepali=False)
        yield f"{name}.references.ne", references(entries, nepali=True)
        yield f"{name}.topics", "".join(f"{entry.topic}\n" for entry in entries)
    also = tables.judged()
    with_judged = [one._replace(english=one.english + also.get(one.nepali[0], [])) for one in tests["valid"]]
    yield "valid.judged.en", references(with_judged, nepali=False)
    for column, language in enumerate(("en", "ne")):
        pairs = with_names(tested, carriers, TESTED_IN, random.Random(f"{SEED} names-test"))
        yield f"names-test.{language}", "".join(pair[column] + "\n" for pair in pairs)
    told = [name._asdict() for name in tested for _ in range(TESTED_IN)]
    yield "names-test.json", json.dumps(told, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(command.run(HERE, texts))
