"""Write the English–Nepali corpus: train, valid and test, each as two line-aligned files.

    python -m data.en_ne.generate              write the six files next to this program; see data/command.py

The steps: every family (families.py) says its sentences; holdout.py decides which of them may be taught; hand-written
phrases win over the grammar; the checks of `verify` hold; surface.py types each sentence the way people do. Same
program, same bytes.
"""

import itertools
import random
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from data import command
from data.en_ne.families import FAMILIES
from data.en_ne.holdout import TESTED, side
from data.en_ne.sentence import Sentence
from data.en_ne.surface import fold, fold_hard, fold_nepali, full, variant

HERE = Path(__file__).parent
SEED = 20
TEST_SIZE, VALID_SIZE = 1000, 500
OFTEN = 8  # every English word of the grammar occurs at least so often in the training sentences
PHRASE_FORMS = 5  # in how many forms a phrase is typed, where there are so many
DRAWS = 40  # a family gives up after so many draws for each sentence that it owes
MORE_DRAWS = 10_000  # and after so many when it is asked for rare words


class Collection:
    """The sentences of all three sides while they are gathered; one translation for every folded English sentence."""

    def __init__(self, phrases: list[Sentence]):
        self.meaning: dict[str, str] = {}
        self.sides: dict[str, list[Sentence]] = {"train": [], "valid": [], "test": []}
        self.count: Counter[str] = Counter()
        self.phrases = phrases
        for phrase in phrases:
            self._remember(phrase)
        self.taken = set(self.meaning)  # said by hand: the grammar does not say it again

    def _remember(self, sentence: Sentence) -> None:
        """Two translations of one sentence are an error of the grammar."""
        key, nepali = fold(full(sentence.english)), fold_nepali(sentence.nepali)
        known = self.meaning.setdefault(key, nepali)
        if known != nepali:
            raise ValueError(f"two translations of {key!r}: {known!r} and {nepali!r} ({sentence.family})")

    def add(self, sentence: Sentence, seen: set[str]) -> str:
        """File the sentence; returns its side, or nothing if it is known already."""
        key = fold(full(sentence.english))
        if key in seen or key in self.taken:
            return ""
        self._remember(sentence)
        seen.add(key)
        where = side(sentence)
        self.sides[where].append(sentence)
        if where == "train":
            self.count.update(key.split())
        return where


def read_phrases() -> list[Sentence]:
    """The hand-written pairs of phrases/*.tsv, in the order of the files' names."""
    found, seen = [], {}
    for path in sorted((HERE / "phrases").glob("*.tsv")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            cells = line.split("\t")
            if len(cells) != 2:
                raise ValueError(f"{path.name}:{number} is not `English<TAB>Nepali`")
            key, nepali = fold(cells[0]), fold_nepali(cells[1])
            if key in seen and seen[key] != nepali:
                raise ValueError(f"{path.name}:{number}: {cells[0]!r} already has another translation: {seen[key]!r}")
            if key not in seen:
                found.append(Sentence(cells[0].strip(), unicodedata.normalize("NFC", cells[1].strip()), (), "phrases"))
            seen[key] = nepali
    return found


def labelled(family, rng):
    for sentence in family(rng):
        yield Sentence(sentence.english, sentence.nepali, sentence.parts, family.__name__)


def gather(collection: Collection) -> None:
    """Let every family speak until it has given what it owes, then top up the words that are still rare."""
    seen: set[str] = set()
    for family, owed in FAMILIES:
        stream, given = labelled(family, random.Random(f"{SEED} {family.__name__}")), 0
        for sentence in itertools.islice(stream, owed * DRAWS if owed else None):
            given += collection.add(sentence, seen) == "train"
            if given == owed:
                break
    top_up(collection, seen)


def top_up(collection: Collection, seen: set[str]) -> None:
    """More sentences with the words that are still rare, from the families that have used them, small ones first.

    A word that only families without a number have used (they have said all they can) is looked for in the clauses.
    """
    owing = {family.__name__: family for family, owed in sorted(FAMILIES, key=lambda pair: pair[1] or 0) if owed}
    users: dict[str, set[str]] = {}
    for sentence in collection.sides["train"]:
        for word in fold(full(sentence.english)).split():
            users.setdefault(word, set()).add(sentence.family)
    for name, family in owing.items():
        rare = {word for word, who in users.items() if name in (who & set(owing) or {"clauses"})}
        rare = {word for word in rare if collection.count[word] < OFTEN}
        stream = labelled(family, random.Random(f"{SEED} more {name}"))
        for sentence in itertools.islice(stream, MORE_DRAWS):
            if not rare:
                break
            if not rare.isdisjoint(fold(full(sentence.english)).split()) and side(sentence) == "train":
                collection.add(sentence, seen)
                rare = {word for word in rare if collection.count[word] < OFTEN}


def choose(held: list[Sentence], size: int, known: tuple[set, set], hard: set, nepali: set, rng) -> list[Sentence]:
    """Up to `size` held-out sentences, from all families in turn.

    Taken are those whose every word, in both languages, is taught, and that no training sentence equals in either
    language.
    """
    by_family: dict[str, list[Sentence]] = {}
    for sentence in held:
        english, ours = fold(full(sentence.english)), fold_nepali(sentence.nepali)
        taught = set(english.split()) <= known[0] and set(ours.split()) <= known[1]
        if taught and fold_hard(full(sentence.english)) not in hard and ours not in nepali:
            by_family.setdefault(sentence.family, []).append(sentence)
    for family in by_family.values():
        rng.shuffle(family)
        family.sort(key=lambda sentence: not any(part in TESTED for part in sentence.parts))
    turns = itertools.zip_longest(*by_family.values())
    return [sentence for turn in turns for sentence in turn if sentence is not None][:size]


def typed(sentences: list[Sentence], rng, twice: float, blocked=frozenset(), meaning=None) -> list[tuple[str, str]]:
    """The surface variants: one for each sentence and, with probability `twice`, a second one; several for a phrase,
    which is a whole to be known by heart and not a combination of what other sentences teach."""
    lines = []
    for sentence in sentences:
        wanted, forms, whole = 1 + (rng.random() < twice), [], (full(sentence.english), sentence.nepali)
        if sentence.family == "phrases":
            wanted, forms = PHRASE_FORMS, [whole]
        named = any(part in TESTED for part in sentence.parts)  # said in full, so that everybody finds it
        for _ in range(6 * wanted):
            if len(forms) >= wanted:
                break
            form = variant(whole[0] if named else sentence.english, sentence.nepali, rng)
            key = fold(form[0])
            clash = meaning is not None and meaning.setdefault(key, fold_nepali(form[1])) != fold_nepali(form[1])
            if form in forms or clash or key in blocked:
                continue
            if not forms and meaning is not None and key != fold(whole[0]):
                forms.append(whole)  # an article is only left out beside the full form
            forms.append(form)
        lines += forms or [whole]
    return lines


def build() -> dict[str, list[tuple[str, str]]]:
    """The three sides as lists of (English, Nepali) lines."""
    collection = Collection(read_phrases())
    gather(collection)
    train = collection.phrases + collection.sides["train"]
    english = set().union(*(fold(full(s.english)).split() for s in train))
    nepali_words = set().union(*(fold_nepali(s.nepali).split() for s in train))
    hard, nepali = {fold_hard(full(s.english)) for s in train}, {fold_nepali(s.nepali) for s in train}
    chosen = {}
    for name, size in (("test", TEST_SIZE), ("valid", VALID_SIZE)):
        rng = random.Random(f"{SEED} {name}")
        chosen[name] = choose(collection.sides[name], size, (english, nepali_words), hard, nepali, rng)
        hard |= {fold_hard(full(s.english)) for s in chosen[name]}
        nepali |= {fold_nepali(s.nepali) for s in chosen[name]}
    rng = random.Random(f"{SEED} surface")
    blocked = {fold(full(s.english)) for name in chosen for s in chosen[name]}
    lines = {"train": typed(train, rng, 0.4, blocked, collection.meaning)}
    rng.shuffle(lines["train"])
    return lines | {name: typed(chosen[name], rng, 0.0) for name in ("valid", "test")}


def verify(lines: dict[str, list[tuple[str, str]]]) -> None:
    """What must be true of any corpus that this program writes."""
    meaning: dict[str, str] = {}
    for english, nepali in itertools.chain(*lines.values()):
        known = meaning.setdefault(fold(english), fold_nepali(nepali))
        if known != fold_nepali(nepali):
            raise ValueError(f"two translations of {english!r}: {known!r} and {nepali!r}")
    taught_hard = {fold_hard(english) for english, _ in lines["train"]}
    taught_nepali = {fold_nepali(nepali) for _, nepali in lines["train"]}
    words = {word for english, _ in lines["train"] for word in fold(english).split()}
    forms = {word for _, nepali in lines["train"] for word in fold_nepali(nepali).split()}
    for english, nepali in lines["valid"] + lines["test"]:
        if fold_hard(english) in taught_hard or fold_nepali(nepali) in taught_nepali:
            raise ValueError(f"held out and taught: {english!r}")
        if not set(fold(english).split()) <= words or not set(fold_nepali(nepali).split()) <= forms:
            raise ValueError(f"a word of {english!r} is never taught")


def texts() -> Iterator[tuple[str, str]]:
    """The name and the contents of every file."""
    lines = build()
    verify(lines)
    for name, pairs in lines.items():
        for column, language in enumerate(("en", "ne")):
            yield f"{name}.{language}", "".join(unicodedata.normalize("NFC", pair[column]) + "\n" for pair in pairs)


if __name__ == "__main__":
    sys.exit(command.run(HERE, texts))
