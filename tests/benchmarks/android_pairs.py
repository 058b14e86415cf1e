"""Pairs of real interface strings, from the sources of Android: what recipes/README.md measures a translator on.

    python tests/benchmarks/android_pairs.py frameworks/base packages/apps/Settings --output short

The directories are checkouts, or parts of them. Wherever a file lies in a `values` and, under the same name, in a
`values-ne` beside it, its strings, plurals and arrays are paired by name. Kept are pairs of short plain sentences, each
once; what is left out is counted. Then --valid of them are drawn, and training pairs that nearly repeat one of these
are left out as well. The same sources give the same files: OUTPUT.train.en, .train.ne, .valid.en and .valid.ne.
"""

import argparse
import hashlib
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

Pair = tuple[str, str]

DEVANAGARI = re.compile("[\u0900-\u0963\u0966-\u097f]")  # the danda is written by others too
PLACEHOLDER = re.compile(r"%|\{|\^\d|\$")
MARKUP = re.compile(r"<\s*/?\w|&\w+;|https?:|^[@?]")
NEAR = 0.9  # of all groups of three letters that two sentences have, those that both have
RATIO = (0.5, 2.5)  # characters of a translation for one of the source

_QUOTED = re.compile(r'\\u([0-9a-fA-F]{4})|\\(.)|(")|(\s+)', re.DOTALL)
_WORD = re.compile(r"[^\W_]+")
_WRITTEN = {"n": "\n", "t": "\t"}  # after a backslash; what else stands there stands for itself


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", type=Path, nargs="+", metavar="DIRECTORY", help="with values and values-ne")
    parser.add_argument("--output", required=True, metavar="PREFIX", help="of the names of the four files")
    parser.add_argument("--language", default="ne", help="of the translations: what is behind `values-`")
    parser.add_argument("--words", type=int, nargs=2, default=(2, 16), metavar=("FEWEST", "MOST"), help="of a sentence")
    parser.add_argument("--valid", type=int, default=300, help="pairs that are held out")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    try:
        found = [pair for each in arguments.directories for pair in named_pairs(each, arguments.language)]
        kept = sorted(set(fit_pairs(found, arguments.words, counts)), key=lambda pair: (_digest(pair[0]), pair))
        train, valid = split(kept, arguments.valid)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    counts["the same pair again"] = len(found) - counts.total() - len(kept)
    counts["in training, near to one that is held out"] = len(kept) - len(train) - len(valid)
    for name, pairs in (("train", train), ("valid", valid)):
        for side, texts in zip(("en", arguments.language), zip(*pairs, strict=True), strict=True):
            Path(f"{arguments.output}.{name}.{side}").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    print(f"{len(found)} pairs by name, of them {len(train)} to train on and {len(valid)} held out; left out:")
    print("\n".join(f"{count:6} {reason}" for reason, count in counts.items()))


def named_pairs(directory: Path, language: str = "ne") -> Iterator[Pair]:
    """Yield the strings of a directory that have a translation. Raises ValueError where there are none."""
    files = [
        (path, there)
        for path in sorted(directory.rglob("values/*.xml"))
        if (there := path.parent.with_name(f"values-{language}") / path.name).is_file()
    ]
    if not files:
        raise ValueError(f"{directory} has no values/*.xml with the same file in values-{language} beside it")
    for source, target in files:
        translations = strings(target)
        yield from ((text, translations[name]) for name, text in strings(source).items() if name in translations)


def strings(path: Path) -> dict[tuple[str, ...], str]:
    """Read the strings of a resource file, by kind, name, product and place. Raises ValueError for other XML."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f"{path} is not XML: {error}") from error
    found = {}
    for element in root:
        if element.get("translatable") == "false" or element.tag not in ("string", "plurals", "string-array"):
            continue
        name = (element.tag, element.get("name", ""), element.get("product", ""))
        items = [element] if element.tag == "string" else element.findall("item")
        for place, item in enumerate(items):
            found[*name, item.get("quantity", str(place))] = plain(item)
    return found


def plain(element: ElementTree.Element) -> str:
    """Read a string as Android does: escapes, and white space that counts in quotation marks only.

    What a program fills in, <xliff:g>, is marked by a %, and other elements by their tags.
    """
    text = element.text or ""
    for inner in element:
        tag = inner.tag.rpartition("}")[2]
        text += ("%" if tag == "g" else f"<{tag}>{plain(inner)}</{tag}>") + (inner.tail or "")
    quoted = False

    def read(match: re.Match[str]) -> str:
        nonlocal quoted
        code, escaped, mark, space = match.groups()
        if mark:
            quoted = not quoted
            return ""
        if space:
            return space if quoted else " "
        return chr(int(code, 16)) if code else _WRITTEN.get(escaped, escaped)

    return _QUOTED.sub(read, text).strip()


def fit_pairs(pairs: Sequence[Pair], words: Sequence[int], left_out: Counter[str]) -> Iterator[Pair]:
    """Yield the pairs that are a short plain sentence on both sides, in normal form C; the others are counted."""
    for pair in pairs:
        source, target = (unicodedata.normalize("NFC", text) for text in pair)
        lengths = [len(text.split()) for text in (source, target)]
        reasons = {
            "empty": not source or not target,
            "with a place to be filled in": any(PLACEHOLDER.search(text) for text in (source, target)),
            "with markup, an address or a reference": any(MARKUP.search(text) for text in (source, target)),
            "of several lines": any("\n" in text or "\t" in text for text in (source, target)),
            "not translated": not DEVANAGARI.search(target) or bool(DEVANAGARI.search(source)),
            "of too few or too many words": not words[0] <= lengths[0] <= words[1] or lengths[1] > words[1],
            "of very unequal length": not source or not RATIO[0] <= len(target) / len(source) <= RATIO[1],
        }
        reason = next((name for name, holds in reasons.items() if holds), None)
        if reason:
            left_out[reason] += 1
        else:
            yield " ".join(source.split()), " ".join(target.split())


def split(pairs: Sequence[Pair], count: int) -> tuple[list[Pair], list[Pair]]:
    """Hold out the first `count` pairs of different sources -> (training pairs that are near to none of them, these).

    Raises ValueError where nothing would be left to train on.
    """
    parts = [triples(source) for source, _ in pairs]
    held: list[int] = []
    for place, own in enumerate(parts):
        if len(held) < count and not any(near(own, parts[other]) for other in held):
            held.append(place)
    train = [pair for pair, own in zip(pairs, parts, strict=True) if not any(near(own, parts[each]) for each in held)]
    if len(held) < count or not train:
        raise ValueError(
            f"{len(pairs)} pairs are fit, too few to hold out {count}: give more sources, or a lower --valid"
        )
    return train, [pairs[place] for place in held]


def triples(text: str) -> set[str]:
    """Cut a sentence into all groups of three letters, without case and punctuation."""
    text = f" {' '.join(_WORD.findall(text.lower()))} "
    return {text[start : start + 3] for start in range(len(text) - 2)}


def near(one: set[str], other: set[str]) -> bool:
    return len(one & other) >= NEAR * len(one | other)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
