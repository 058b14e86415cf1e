"""The look-up baseline: a test set translated by the nearest training sentence.

A system that does not beat it has learned nothing that copying would not give.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from toolkit.display import counted, short_repr
from toolkit.errors import DataError
from toolkit.evaluation.scores import stripped
from toolkit.tokenization.normal_form import normal_form

ORDER = 4  # characters in the longest n-gram
# Plain cosine (power 1) prefers short sentences, whose translations are then a tenth shorter than the references, and
# brevity costs score. This power balances it; it was chosen on held-out training sentences, English to Nepali.
LENGTH_POWER = 0.85
# How many training sentences, of how many characters together, are compared at a time with how many sources: this
# bounds the memory.
_ROWS, _CHARACTERS, _QUERIES = 1024, 1 << 17, 1024
# The most frequent n-grams, this many, are compared by one matrix product; the others through an inverted index.
_FREQUENT = 2048
# A key holds the hash of an n-gram below and the number of the sentence in its block above.
_HASH_BITS = 52


@dataclass(frozen=True)
class Baseline:
    """The looked-up translations, and how near the training sentences come to the sources.

    similarity: mean cosine of a source and its nearest training source. verbatim: the number of sources that
    occur among the training sources, white space at the ends aside: these are no test of anything but memory.
    """

    translations: list[str]
    similarity: float
    verbatim: int

    __repr__ = short_repr


def look_up(sources: Sequence[str], train_sources: Sequence[str], train_targets: Sequence[str]) -> Baseline:
    """Translate every source by the target of the most similar training source (see `nearest`).

    Raises DataError if there is no source or no training pair, and for unequal numbers of training sentences.
    """
    if len(train_sources) != len(train_targets):
        raise DataError(
            f"{counted(len(train_sources), 'training source')} and {counted(len(train_targets), 'target')} are given: "
            "each line needs its counterpart"
        )
    if not sources:
        raise DataError("there is no sentence to look up: give at least one")
    index, similarity = nearest(sources, train_sources)
    known = {stripped(text) for text in sources}.intersection(map(stripped, train_sources))
    return Baseline(
        translations=[train_targets[place] for place in index],
        similarity=float(similarity.mean()),
        verbatim=sum(stripped(text) in known for text in sources),
    )


class Grams(NamedTuple):
    """Sentences as sparse unit vectors: sentence row[i] has weight[i] of the n-gram with hash gram[i].

    length: what the vector of each sentence was divided by.
    """

    row: np.ndarray
    gram: np.ndarray
    weight: np.ndarray
    length: np.ndarray


def nearest(
    sources: Sequence[str], train_sources: Sequence[str], below: float = np.inf
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest training source of every source -> (its index, int64; their cosine, float32), each (B,).

    A sentence is a vector q or t with 1 + ln(count) for every character n-gram of 1 to 4 characters, in lower case,
    with a space at either end. The nearest t has the largest

        q . t / (|q| |t|^LENGTH_POWER)

    except that the same sentence, which has cosine 1, beats any other. Of equally near ones the first is taken. Both
    sides are compared block by block, so that little more memory is needed than for the texts.

    below: look among those of a smaller cosine alone, as training sentences are looked up among themselves. Where there
    is none, the index is 0 and the cosine 0.

    Raises DataError if there is no training source.
    """
    if not train_sources:
        raise DataError("there is no training sentence to look anything up in: give at least one")
    index = np.zeros(len(sources), np.int64)
    similarity = np.zeros(len(sources), np.float32)
    for first in range(0, len(sources), _QUERIES):
        part = slice(first, first + _QUERIES)
        queries = Queries(sources[part])
        nearness = np.full(queries.count, -1.0)
        for start, block in _blocks(train_sources):
            grams = _grams(block)
            cosine = queries.cosines(grams)
            near = np.where(cosine < 1, cosine * grams.length[:, None] ** (1 - LENGTH_POWER), np.inf)
            near[cosine >= below] = -1
            best = near.argmax(axis=0)
            columns = np.flatnonzero(near.max(axis=0) > nearness)
            nearness[columns] = near[best[columns], columns]
            index[part][columns] = start + best[columns]
            similarity[part][columns] = cosine[best[columns], columns]
    return index, similarity


class Queries:
    """Sentences that others are compared with, by their n-grams."""

    def __init__(self, texts: Sequence[str]):
        grams = _grams(texts)
        self.count = len(texts)
        self.gram, column = np.unique(grams.gram, return_inverse=True)
        holders = np.bincount(column, minlength=len(self.gram))
        # The most frequent n-grams get the first columns, which are the ones of the matrix.
        rank = np.empty(len(holders), np.int64)
        rank[np.argsort(-holders, kind="stable")] = np.arange(len(holders))
        self.column = rank
        order = np.argsort(rank[column], kind="stable")
        self.query, self.weight, column = grams.row[order], grams.weight[order], rank[column][order]
        self.start = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=len(holders)))])
        self.frequent = np.zeros((min(_FREQUENT, len(holders)), self.count), np.float32)
        dense = column < _FREQUENT
        self.frequent[column[dense], self.query[dense]] = self.weight[dense]

    def cosines(self, others: Grams) -> np.ndarray:
        """Compute the cosine of each of R other sentences and each of the B own ones, (R, B) float32, to five places.

        Rounding makes equal sentences equally similar, whatever order their products were summed in.
        """
        place = np.minimum(np.searchsorted(self.gram, others.gram), len(self.gram) - 1)
        known = self.gram[place] == others.gram
        row, column, weight = others.row[known], self.column[place[known]], others.weight[known]
        rows = len(others.length)
        dense = column < _FREQUENT
        matrix = np.zeros((rows, len(self.frequent)), np.float32)
        matrix[row[dense], column[dense]] = weight[dense]
        rare = self._rare(row[~dense], column[~dense], weight[~dense], rows)
        return np.minimum((matrix @ self.frequent + rare).round(5), 1)

    def _rare(self, row: np.ndarray, column: np.ndarray, weight: np.ndarray, rows: int) -> np.ndarray:
        """Sum the part of the cosines from n-grams outside the matrix: each entry meets all who share it."""
        holders = self.start[column + 1] - self.start[column]
        ends = np.cumsum(holders)
        entry = np.repeat(np.arange(len(column)), holders)
        partner = np.arange(len(entry)) + (self.start[column] - ends + holders)[entry]
        pair = row[entry] * self.count + self.query[partner]
        products = weight[entry] * self.weight[partner]
        return np.bincount(pair, products, rows * self.count).reshape(rows, self.count).astype(np.float32)


def _blocks(texts: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield the texts in blocks of bounded size, each with the index of its first text."""
    start = characters = 0
    for place, text in enumerate(texts):
        if place > start and (place - start == _ROWS or characters + len(text) > _CHARACTERS):
            yield start, texts[start:place]
            start, characters = place, 0
        characters += len(text)
    yield start, texts[start:]


def _grams(texts: Sequence[str]) -> Grams:
    """Count the n-grams of at most 4,096 sentences."""
    tidied = (" ".join(normal_form(text).lower().split()) for text in texts)
    text = "".join(f" {sentence} \n" for sentence in tidied)
    code = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    ends = code == ord("\n")
    row = np.cumsum(ends) - ends
    keys, hashed, inside = [], np.zeros(len(code), np.uint64), np.ones(len(code), bool)
    for length in range(1, ORDER + 1):
        last = slice(length - 1, None)  # the n-grams of this length, by their last characters
        inside = inside[: len(code) - length + 1] & ~ends[last]
        # 64-bit polynomial hash (Knuth's multiplier); the upper bits, which all characters reach, are kept.
        hashed = hashed[: len(inside)] * np.uint64(6364136223846793005) + code[last] + np.uint64(1)
        mixed = (hashed * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - _HASH_BITS)
        keys.append((row[: len(inside)].astype(np.uint64) << np.uint64(_HASH_BITS) | mixed)[inside])
    key, count = np.unique(np.concatenate(keys), return_counts=True)
    row = (key >> np.uint64(_HASH_BITS)).astype(np.int64)
    weight = 1 + np.log(count)
    length = np.sqrt(np.bincount(row, weight * weight, len(texts))).astype(np.float32)
    return Grams(row, key & np.uint64((1 << _HASH_BITS) - 1), (weight / length[row]).astype(np.float32), length)
