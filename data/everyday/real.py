"""Join real text into one table to train on, without what the translators are tested on.

    python -m data.everyday.real --out DIR --table android.tsv wikipedia.tsv --lines mixed.en mixed.ne

Tables have the columns en and ne; --lines are two files, line by line, of which every 20th line is a test: DIR/long.en
and DIR/long.ne, and every 20th line after the tenth is to choose by: DIR/valid.tsv. Everything else goes to
DIR/real.tsv, but for pairs that were there before, those that equal a line that is held out (here, in
data/everyday/test.tsv or valid.tsv), and those that nearly do. The text itself is not in the repository; see README.md
for sources and licences.

With --memory, each English side is followed by a mark and the Nepali of the most similar other pair of real.tsv, for a
translator that reads both (Bulte and Tezcan 2019, Neural fuzzy repair): DIR/memory.tsv, each pair twice, once with a
less similar one; DIR/memory.valid.tsv, DIR/memory.long.en.
"""

import argparse
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from data.en_ne.surface import fold
from data.everyday import tables
from toolkit.evaluation.lookup import nearest

EVERY = 20
LETTERS = 5  # of the n-grams by which texts are compared
NEAR = 0.8  # share of n-grams (Dice) from which on two texts are nearly equal
LONGEST = 400  # characters of a side: nobody types more, and a batch would be one pair
# Between a sentence and what is remembered; and how similar that may be to a sentence that is trained on: more similar
# ones than the first are left out of the test as nearly equal.
REMEMBERED, SIMILARITIES = " ⦀ ", (0.92, 0.75)


def read_table(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a table whose first line names the columns en and ne."""
    lines = path.read_text(encoding="utf-8").splitlines()
    columns = lines[0].split("\t")
    for line in lines[1:]:
        cells = line.split("\t")
        if len(cells) == len(columns):
            yield cells[columns.index("en")], cells[columns.index("ne")]


def read_lines(english: Path, nepali: Path) -> list[tuple[str, str]]:
    """Read two files line by line.  Raises ValueError for unequal numbers of lines."""
    files = [path.read_text(encoding="utf-8").splitlines() for path in (english, nepali)]
    return list(zip(*files, strict=True))


def tidy(pair: tuple[str, str]) -> tuple[str, str]:
    """Put both sides into normal form C, with single spaces."""
    english, nepali = (" ".join(unicodedata.normalize("NFC", text).split()) for text in pair)
    return english, nepali


class Near:
    """Finds texts that nearly equal one of some, by the n-grams of characters that they share."""

    def __init__(self, texts: list[str]):
        self._sizes = [len(grams(text)) for text in texts]
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for gram in grams(text):
                self._places[gram].append(place)

    def has(self, text: str) -> bool:
        """Say if one of the texts shares NEAR of the n-grams of both with this one."""
        own = grams(text)
        shared = Counter(place for gram in own for place in self._places.get(gram, ()))
        return any(2 * count >= NEAR * (len(own) + self._sizes[place]) for place, count in shared.items())


def grams(text: str) -> set[str]:
    """List the n-grams of a folded text, once each; of a short one itself."""
    text = fold(text)
    return {text[begin : begin + LETTERS] for begin in range(max(1, len(text) - LETTERS + 1))}


def remembering(english: list[str], pairs: list[tuple[str, str]], below: float = 2.0) -> list[str]:
    """Put after each sentence the Nepali of the most similar one of the pairs whose similarity is below a number."""
    places, similarities = nearest(english, [source for source, _ in pairs], below)
    found = (pairs[place][1] if similarity else "" for place, similarity in zip(places, similarities, strict=True))
    return [text + REMEMBERED + target for text, target in zip(english, found, strict=True)]


def write_remembering(out: Path, kept: list[tuple[str, str]], valid: list[tuple[str, str]], test: list[str]) -> None:
    """Write the files of a translator that reads the most similar pair too."""
    english, nepali = ([pair[side] for pair in kept] for side in (0, 1))
    read = [text for below in SIMILARITIES for text in remembering(english, kept, below)]
    write_table(out / "memory.tsv", zip(read, nepali * len(SIMILARITIES), strict=True))
    read = remembering([pair[0] for pair in valid], kept)
    write_table(out / "memory.valid.tsv", zip(read, [pair[1] for pair in valid], strict=True))
    write_lines(out / "memory.long.en", remembering(test, kept))


def write_table(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Write a table of the columns en and ne."""
    write_lines(path, ["en\tne", *map("\t".join, pairs)])


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines in UTF-8."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main() -> int:
    """Read, divide and write; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m data.everyday.real", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="directory to write to")
    parser.add_argument("--table", type=Path, nargs="*", default=[], help="tables with the columns en and ne")
    parser.add_argument("--lines", type=Path, nargs=2, help="English lines and Nepali lines, with the long test")
    parser.add_argument("--memory", action="store_true", help="also write what remembers the most similar pair")
    arguments = parser.parse_args()
    try:
        aligned = read_lines(*arguments.lines) if arguments.lines else []
        given = [pair for path in arguments.table for pair in read_table(path)]
    except (OSError, UnicodeDecodeError, ValueError) as error:
        print(f"data.everyday.real: the text cannot be read: {error}", file=sys.stderr)
        return 2
    test, valid = aligned[EVERY - 1 :: EVERY], [tidy(pair) for pair in aligned[EVERY // 2 - 1 :: EVERY]]
    given += [pair for number, pair in enumerate(aligned, 1) if number % (EVERY // 2)]
    everyday = [entry for name in ("test", "valid") for entry in tables.held_out(name)]
    tested = Near([english for english, _ in test])
    valid = [pair for pair in valid if all(pair) and not tested.has(pair[0])]
    near = Near([english for english, _ in (*test, *valid)] + [text for entry in everyday for text in entry.english])
    held, seen, kept, left = tables.HeldOut(everyday), set(), [], Counter()
    for pair in given:
        english, nepali = tidy(pair)
        if not fold(english) or not nepali or max(len(english), len(nepali)) > LONGEST:
            left["blank or long"] += 1
        elif (english, nepali) in seen:
            left["there before"] += 1
        elif held.has(english, nepali) or near.has(english):
            left["equal or nearly equal to what is held out"] += 1
        else:
            kept.append((english, nepali))
        seen.add((english, nepali))
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, pairs in ("real", kept), ("valid", valid):
        write_table(arguments.out / f"{name}.tsv", pairs)
    for column, language in enumerate(("en", "ne")):
        write_lines(arguments.out / f"long.{language}", [tidy(pair)[column] for pair in test])
    if arguments.memory:
        write_remembering(arguments.out, kept, valid, [tidy(pair)[0] for pair in test])
    print(f"{len(kept):,} pairs to train on, {len(valid)} to choose by, {len(test)} to test; left out: {dict(left)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
