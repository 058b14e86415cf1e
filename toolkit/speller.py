"""Spelling: how a translator writes names and other words that it does not know in the script of the other language.

A model of names lies in the directory `names` of a translator (see `train translation --preset names`): a translator of
its own, which reads letters and writes letters, j o h n -> ज ो न, and a list of the words that it was trained on. The
list may have nouns too, and what they are called, ambassador -> राजदूत: they are looked up as in a glossary.
It is read when the first such word comes up: most sentences have none, and a translation should begin at once.
"""

import os
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from toolkit.errors import ModelError
from toolkit.files import atomic_writer
from toolkit.untrusted import VOCABULARY_BYTES, read_bytes

NAMES = "names"  # directory of a translator's model of names
SPELLINGS = "spellings.tsv"  # of a model of names: the words that it was trained on, and how they are written


class Speller:
    """Writes words in another script: as the list has them, else letter by letter as the model does.

    Methods and properties raise ModelError where what lies in the directory is damaged.
    """

    def __init__(self, directory: Path, read: Callable[[Path], Any]):
        """Take the directory of a model of names, and a function that reads a `Translator`."""
        self.directory, self._read = directory, read

    @cached_property
    def known(self) -> dict[str, str]:
        """The listed words in small letters, and how each is written: "" where it is as the model does."""
        return load_spellings(self.directory)

    def lists(self, word: str) -> bool:
        """Say if a word, in small letters, is listed."""
        return word in self.known

    @cached_property
    def _model(self) -> Any:
        return self._read(self.directory)

    def spell(self, word: str) -> str:
        """Write a word, which begins with a capital letter if the other script has them."""
        found = self.known.get(word.lower())
        # Greedy, a model ends now and then after one letter, where it wavers between many; no name shrinks so much.
        limits = {"split_sentences": False, "min_new_tokens": len(word) // 3}
        found = found or joined(self._model.translate(" ".join(word.lower()), **limits))
        return found[:1].upper() + found[1:]


def save_spellings(directory: str | os.PathLike[str], pairs: Iterable[tuple[str, str]]) -> None:
    """Write spellings.tsv into the directory of a model that spells: of each word the first spelling.

    pairs: words in both scripts, letter by letter with spaces between.
    """
    found: dict[str, str] = {}
    for source, target in pairs:
        found.setdefault(joined(source), joined(target))
    with atomic_writer(Path(directory) / SPELLINGS) as file:
        file.write("".join(f"{source}\t{target}\n" for source, target in sorted(found.items())).encode())


def load_spellings(directory: str | os.PathLike[str]) -> dict[str, str]:
    """Read the words whose spelling is known; {} where there is no list.

    A line has a word, a tab and its spelling, which may be left out where the model spells as much: it is "" then.
    Raises ModelError where the list is damaged.
    """
    path = Path(directory) / SPELLINGS
    if not os.path.lexists(path):
        return {}
    try:
        lines = read_bytes(path, VOCABULARY_BYTES).decode("utf-8").splitlines()
        return dict(line.split("\t") for line in lines)
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} is damaged: it is no list of words and spellings in UTF-8") from error


def joined(letters: str) -> str:
    """Join what stands letter by letter."""
    return "".join(letters.split())
