"""Give a translator into Nepali a glossary: nouns that it has not read, or hardly, are looked up, and not guessed.

    python -m data.everyday.glossary --model checkpoints/mine

A noun of glossary.tsv that the model does not know is put into its list of known spellings with what Nepalis call it:
it is carried over as a name is (see `Carrier`), and what it is called stands in its place, with any postposition; if it
is a name too (Rose, Potter) it stays one. A noun that the model knows from at most FEW sentences is put there as well,
and taken out of the words that it knows. The model has to be calibrated again afterwards.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from itertools import chain
from pathlib import Path

import toolkit
from data.everyday import tables
from toolkit.errors import ToolkitError
from toolkit.files import atomic_writer
from toolkit.models.storage import find_model
from toolkit.speller import SPELLINGS, load_spellings
from toolkit.tokenization.carrying import Carrier

FEW = 8  # sentences: a noun that stands in more is known well


def read_glossary() -> dict[str, str]:
    """Read English nouns in small letters and what Nepalis call them."""
    return dict(tables.cells(tables.HERE / "glossary.tsv", 2))


def to_look_up(glossary: dict[str, str], known: Collection[str]) -> dict[str, str]:
    """Choose the nouns that a model with these known words is to look up."""
    sentences = ({*re.findall("[a-z]+", " ".join(entry.english).lower())} for entry in tables.sentences())
    met = Counter(word for words in sentences for word in words & glossary.keys())
    names = {name.latin.lower() for name in chain(tables.names(), tables.names("further-names.tsv"))}
    return {
        noun: nepali for noun, nepali in glossary.items() if (met[noun] <= FEW if noun in known else noun not in names)
    }


def main() -> int:
    """Write the lists of a model anew -> an exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True, help="directory of a translator into Nepali that spells names")
    given = parser.parse_args()
    try:
        directory = find_model(given.model)
        translator = toolkit.load_translator(directory)
    except ToolkitError as error:
        print(f"data.everyday.glossary: {error}", file=sys.stderr)
        return 2
    carrier, speller = translator.tokenizer.carrier, translator.speller
    if not speller or carrier.script != "devanagari":
        print(f"data.everyday.glossary: {given.model} spells no names in Devanagari", file=sys.stderr)
        return 2
    nouns = to_look_up(read_glossary(), carrier.known)
    save(directory, carrier, speller.directory, nouns)
    print(f"{len(nouns):,} nouns are looked up; the model knew {len(carrier.known & nouns.keys()):,} of them")
    return 0


def save(directory: Path, carrier: Carrier, names: Path, nouns: dict[str, str]) -> None:
    """Write the words that a model knows without these nouns, and its list of spellings with them."""
    spellings = load_spellings(names) | nouns
    with atomic_writer(names / SPELLINGS) as file:
        file.write("".join(f"{word}\t{spelling}\n" for word, spelling in sorted(spellings.items())).encode())
    replace(carrier, known=carrier.known - nouns.keys()).save(directory)


if __name__ == "__main__":
    sys.exit(main())
