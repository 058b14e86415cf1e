"""Filters of training pairs: which are left out, which are duplicates, and the account of both."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

import numpy as np

from toolkit.errors import ConfigError

PLACES = 3  # that are named of every kind of finding


@dataclass(frozen=True)
class Filters:
    """Rules for leaving out training pairs; all that are left out are counted. Lengths are in characters."""

    empty: Literal["refuse", "drop"] = "refuse"  # a pair with a blank side is an error, or is left out
    min_characters: int = 0  # a pair with a shorter side is left out
    max_characters: int = 5000  # a pair with a longer side is left out; 0 is no limit
    max_ratio: float = 0.0  # a pair is left out if one side is longer than this many times the other; 0: never
    duplicates: Literal["keep", "drop"] = "keep"  # pairs that are the same as one before
    overlap: Literal["drop", "keep"] = "drop"  # training pairs whose source, in lower case, is a validation source too

    def __post_init__(self) -> None:
        """Raise ConfigError where a setting is out of range."""
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(f"filters.{name} is {getattr(self, name)!r}: choose {' or '.join(choices)}")
        for name in ("min_characters", "max_characters"):
            if getattr(self, name) < 0:
                raise ConfigError(f"filters.{name} is {getattr(self, name)}: it must not be negative")
        if 0 < self.max_characters < self.min_characters:
            raise ConfigError(
                f"filters.max_characters {self.max_characters} is below filters.min_characters {self.min_characters}: "
                "no pair would be left"
            )
        if not (self.max_ratio == 0 or self.max_ratio >= 1):
            raise ConfigError(f"filters.max_ratio is {self.max_ratio}: it must be at least 1, or 0 for any ratio")

    def objection(self, source: str, target: str) -> str | None:
        """Find the reason to leave out a pair of texts that are not blank, as a key of `KINDS`; None where it stays."""
        shorter, longer = sorted((len(source), len(target)))
        if shorter < self.min_characters:
            return "short"
        if 0 < self.max_characters < longer:
            return "long"
        if 0 < self.max_ratio * shorter < longer:
            return "ratio"
        return None


_CHOICES = {"empty": ("refuse", "drop"), "duplicates": ("keep", "drop"), "overlap": ("drop", "keep")}

# What can be found in a corpus, in the order in which it is looked for: a pair counts where it is found first.
KINDS = {
    "empty": "with a blank side",
    "short": "with a side of fewer than {min_characters} characters",
    "long": "with a side of more than {max_characters} characters",
    "ratio": "with one side more than {max_ratio:g} times as long as the other",
    "duplicate": "equal to one before",
    "overlap": "whose source is also a validation source",
    "tokens": "with a side of more than {max_tokens} tokens",
}


@dataclass
class Finding:
    """Pairs of one kind: their number, whether they were left out, and the places of the first ones."""

    pairs: int = 0
    dropped: bool = True
    places: list[str] = field(default_factory=list)

    def add(self, place: Callable[[int], str], line: int) -> None:
        """Count one more pair; `place` says where a line is."""
        self.pairs += 1
        if len(self.places) < PLACES:
            self.places.append(place(line))


Findings = dict[str, Finding]  # by the keys of `KINDS`


def counted(finding: Finding, kind: str, limits: dict[str, Any]) -> str:
    """Say \"3 pairs with a blank side"; limits: the values that the words of `KINDS` name."""
    pairs = "1 pair" if finding.pairs == 1 else f"{finding.pairs:,} pairs"
    return f"{pairs} {KINDS[kind].format(**limits)}"


def sentence(finding: Finding, kind: str, limits: dict[str, Any]) -> str:
    """Say \"3 pairs with a blank side are left out (my.en, line 7; my.en, line 9; my.en, line 30)"."""
    verb = f"{'is' if finding.pairs == 1 else 'are'} {'left out' if finding.dropped else 'kept'}"
    return f"{counted(finding, kind, limits)} {verb} ({first_places(finding.places, finding.pairs)})"


def first_places(places: list[str], found: int) -> str:
    """List the places of the first things that were found, for a sentence."""
    return "; ".join(places) + ("; ..." if found > len(places) else "")


def text_hashes(texts: Iterable[bytes]) -> np.ndarray:
    """Hash every text to 64 bits, (texts,), uint64; the same on every machine.

    Duplicates are found by hashes: eight bytes a text instead of the text. Two different texts have the same one with a
    probability of 5e-20; among a million texts any two do with one of 3e-8, and then one pair too many is a duplicate.
    """
    return np.frombuffer(b"".join(blake2b(text, digest_size=8).digest() for text in texts), "<u8")


def seen_before(hashes: np.ndarray) -> np.ndarray:
    """Mark the hashes that stand further in front too, (texts,), bool."""
    order = np.argsort(hashes, kind="stable")
    in_order = hashes[order]
    seen = np.zeros(len(hashes), bool)
    seen[order[1:][in_order[1:] == in_order[:-1]]] = True
    return seen


def among(hashes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Mark the hashes that are among the `others`, (texts,), bool."""
    if len(others) == 0:
        return np.zeros(len(hashes), bool)
    others = np.sort(others)
    return others[np.minimum(np.searchsorted(others, hashes), len(others) - 1)] == hashes
