"""Texts that occur more than once, found by their hashes: eight bytes a text instead of the text.

Two different texts have the same 64-bit hash with a probability of 5e-20; among a million texts any two do with one of
3e-8, and then one pair too many is taken for a duplicate.
"""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np


def text_hashes(texts: Iterable[bytes]) -> np.ndarray:
    """A 64-bit hash of every text, (texts,), uint64; the same on every machine."""
    return np.frombuffer(b"".join(blake2b(text, digest_size=8).digest() for text in texts), "<u8")


def seen_before(hashes: np.ndarray) -> np.ndarray:
    """Whether the same hash stands further in front, (texts,), bool."""
    order = np.argsort(hashes, kind="stable")
    in_order = hashes[order]
    seen = np.zeros(len(hashes), bool)
    seen[order[1:][in_order[1:] == in_order[:-1]]] = True
    return seen


def among(hashes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each hash is one of the `others`, (texts,), bool."""
    if len(others) == 0:
        return np.zeros(len(hashes), bool)
    others = np.sort(others)
    return others[np.minimum(np.searchsorted(others, hashes), len(others) - 1)] == hashes
