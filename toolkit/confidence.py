"""The confidence in a translation: how probable it is that it, and each of its words, is right.

The probabilities that a model gives its own tokens say much about that, and not what they seem to: a sentence of
probability 0.6 may be right nine times in ten. `Calibration.fit` learns what they mean from translations of which it is
known whether they are right (by references that nobody trained on), as logistic regression (Platt 1999): the confidence
is σ(w·x + b), x what is known of a translation. So of all sentences with a confidence of about 0.8, eight in ten are
right, as long as those to come are like those that it was learned from.

A sentence that says the same over and over (`repeats`) has the confidence 0, whatever its tokens say.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.decoding import words_of
from toolkit.display import short_repr
from toolkit.errors import DataError
from toolkit.functional.arrays import Array
from toolkit.models.storage import CONFIDENCE_FILE, read_json, write_json
from toolkit.untrusted import Items, Number, Record, Whole

FLOOR = -12.0  # the least log-probability of a token that makes a difference
NEAREST = 1e-3  # a log-probability is not nearer to 0 than this
RIDGE = 1.0  # weight of |w|² beside the sum of all losses: with few sentences, large weights are chance
SURE = 0.93  # of those that are marked sure this share should be right, where it is calibrated
PASSED = 0.25  # and of the wrong ones at most this share is marked sure, however many right ones there are
TENTHS = 10
_SPACE_MARK = "▁"
_STEPS = 50  # of Newton's method, which takes about eight

_LINE = Record({"mean": Items(Number()), "weights": Items(Number()), "bias": Number()}, ("mean", "weights", "bias"))
_TENTH = Record({"sentences": Whole(0), "confidence": Number(), "right": Number()})
_FIELDS = {"sentence": _LINE, "word": _LINE, "sure": Number(), "sentences": Whole(0), "tenths": Items(_TENTH)}
_SCHEMA = Record(_FIELDS, needed=_FIELDS)


@dataclass(frozen=True)
class Confidence:
    """The probability that a sentence is right, and that of each of its words.

    sure: whether the sentence is as probable as those that are called sure. repeats: it says the same over and over.
    lost: a number, an address or a word that is carried over is missing in it.
    """

    sentence: float
    words: list[float]  # one for each word of the translation, as splitting at spaces counts them
    sure: bool
    repeats: bool = False
    lost: bool = False

    __repr__ = short_repr

    def to_dict(self) -> dict[str, Any]:
        """Give what `toolkit translate --json` prints of it, to four digits."""
        words = [round(each, 4) for each in self.words]
        told = {"confidence": round(self.sentence, 4), "sure": self.sure, "word_confidence": words}
        return told | {name: True for name in ("repeats", "lost") if getattr(self, name)}


def joined_confidence(parts: Sequence[Confidence | None], words: int) -> Confidence | None:
    """Give that of a text by those of its sentences: as sure as the least sure one.

    words: how many the text has. Those that were copied, as numbers of a list are, are certain; where copied ones stand
    between the others, it is not known which they are, and none is listed.
    """
    known = [each for each in parts if each is not None]
    if len(known) < len(parts) or not known:
        return None
    listed = [word for each in known for word in each.words]
    return Confidence(
        min(each.sentence for each in known),
        listed if len(listed) == words else [],
        all(each.sure for each in known),
        any(each.repeats for each in known),
        any(each.lost for each in known),
    )


@dataclass(frozen=True)
class Line:
    """A logistic regression: σ(w·(x − mean) + b)."""

    mean: list[float]
    weights: list[float]
    bias: float

    def __call__(self, features: Array) -> Array:
        """Compute the probability of every row.  Shapes: (N, F) -> (N,)."""
        z = (features - np.array(self.mean)) @ np.array(self.weights) + self.bias
        return 1 / (1 + np.exp(-np.clip(z, -30, 30)))

    @classmethod
    def fit(cls, features: Array, right: Array) -> "Line":
        """Fit by Newton's method (Bishop 2006, section 4.3.3), with RIDGE on the weights of features of variance 1.

        features: (N, F). right: (N,), 1 where the example is right.  The loss −Σ log p has the gradient Xᵀ(p − y)
        and the Hessian Xᵀ diag(p(1 − p)) X.
        """
        mean, scale = features.mean(axis=0), features.std(axis=0)
        scale[scale < 1e-9] = math.inf  # a feature that is always the same says nothing: its weight is 0
        x = np.column_stack([(features - mean) / scale, np.ones(len(features))])
        ridge = np.diag([RIDGE] * features.shape[1] + [1e-6])
        w = np.zeros(x.shape[1])
        for _ in range(_STEPS):
            p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
            step = np.linalg.solve((x.T * (p * (1 - p))) @ x + ridge, x.T @ (p - right) + ridge @ w)
            w -= step
            if np.abs(step).max() < 1e-9:
                break
        return cls(mean.tolist(), (w[:-1] / scale).tolist(), float(w[-1]))


@dataclass(frozen=True)
class Example:
    """A sentence's translation as calibration sees it.

    tokens: of the translation, without its end. log_probs: theirs, and that of the end where there is one. source: the
    tokens of the source.
    """

    tokens: Sequence[str]
    log_probs: Sequence[float]
    source: Sequence[str]

    def of_sentence(self) -> list[float]:
        """Compute the features of the whole, (6,).

        Mean, least and sum of the log-probabilities; the logarithm of minus the sum, which still tells 0.99 from 0.999;
        the length; how strange the source is.
        """
        logs = np.maximum(self.log_probs, FLOOR) if len(self.log_probs) else np.zeros(1)
        total = float(logs.sum())
        near = math.log(NEAREST - total)
        return [float(logs.mean()), float(logs.min()), total, near, math.log(len(logs)), strangeness(self.source)]

    def of_words(self) -> list[list[float]]:
        """Compute the features of each word, (5,): its sum and the logarithm of that, and what is true of the whole."""
        whole, found = self.of_sentence(), {}
        for word, log_prob in zip(words_of(self.tokens), self.log_probs, strict=False):
            if word >= 0:
                found.setdefault(word, []).append(max(log_prob, FLOOR))
        return [[sum(logs), math.log(NEAREST - sum(logs)), *whole[:2], whole[-1]] for _, logs in sorted(found.items())]

    def words(self) -> list[str]:
        """Join the tokens of each word."""
        found: dict[int, str] = {}
        for word, token in zip(words_of(self.tokens), self.tokens, strict=True):
            if word >= 0:
                found[word] = found.get(word, "") + token.replace(_SPACE_MARK, "")
        return [text for _, text in sorted(found.items())]


def strangeness(source: Sequence[str]) -> float:
    """Compute the share of tokens that are single letters: of a text of known words few are.  0 without tokens."""
    letters = sum(len(token.replace(_SPACE_MARK, "")) == 1 and token[-1].isalpha() for token in source)
    return letters / max(len(source), 1)


def repeats(words: Sequence[str]) -> bool:
    """Say if words repeat as a model does that has lost its way: one to four of them three times in a row."""
    for size in range(1, 5):
        for begin in range(len(words) - 3 * size + 1):
            part = words[begin : begin + size]
            if part == words[begin + size : begin + 2 * size] == words[begin + 2 * size : begin + 3 * size]:
                return True
    return False


@dataclass(frozen=True)
class Calibration:
    """Knows how often translations are right whose tokens have certain probabilities.

    sure: from this confidence on a sentence is called sure. sentences: how many it was learned from. tenths: for each
    tenth of confidence, how many of those there were, their mean confidence, and the share that was right.
    """

    sentence: Line
    word: Line
    sure: float
    sentences: int
    tenths: list[dict[str, Any]]

    __repr__ = short_repr

    def of(self, example: Example) -> Confidence:
        """Compute the confidence in a translation."""
        if repeats(example.words()):
            return Confidence(0.0, [0.0] * len(example.words()), False, True)
        sentence = float(self.sentence(np.array([example.of_sentence()]))[0])
        rows = example.of_words()
        words = self.word(np.array(rows)).tolist() if rows else []
        return Confidence(sentence, words, sentence >= self.sure)

    @classmethod
    def fit(cls, examples: Sequence[Example], right: Sequence[bool], words: Sequence[Sequence[bool]]) -> "Calibration":
        """Learn from examples, of which it is known if they, and each of their words, are right.

        Raises DataError for fewer than 20 sentences, and where all are right or all are wrong.
        """
        if len(examples) < 20:
            raise DataError(f"{len(examples)} sentences are too few to calibrate by: give at least 20, better 200")
        known = np.array(right, float)
        if known.min() == known.max():
            told = "right" if known[0] else "wrong"
            raise DataError(f"all {len(examples)} translations are {told}: what differs then cannot be learned")
        features = np.array([each.of_sentence() for each in examples])
        rows = np.array([row for each in examples for row in each.of_words()])
        sentence = Line.fit(features, known)
        word = Line.fit(rows, np.array([one for each in words for one in each], float))
        found = sentence(features)
        return cls(sentence, word, sure_from(found, known), len(examples), by_tenths(found, known))

    def save(self, directory: Path) -> None:
        """Write confidence.json into the directory of a model."""
        write_json(directory / CONFIDENCE_FILE, asdict(self))

    @classmethod
    def load(cls, directory: Path) -> "Calibration | None":
        """Read what belongs to a model; None where it was never calibrated.  Raises ModelError where it is damaged."""
        path = directory / CONFIDENCE_FILE
        if not path.exists():
            return None
        found = read_json(path, schema=_SCHEMA)
        return cls(Line(**found.pop("sentence")), Line(**found.pop("word")), **found)


def sure_from(confidence: Array, right: Array) -> float:
    """Find the least confidence from which on SURE are right, and at most PASSED of the wrong ones pass; else above 1.

    Of several such the one that marks most sentences sure: (N,), (N,) -> a number. A translator that is right nine
    times in ten could call all sentences sure by the first condition alone, and would warn of nothing. The shares are
    those of further sentences, by Laplace's rule of succession, (right + 1) / (n + 2): a few show little.
    """
    order = np.argsort(-confidence, kind="stable")
    hits = np.cumsum(right[order])
    sure = np.arange(1, len(order) + 1)
    passed = (sure - hits + 1) / (len(right) - right.sum() + 2)
    good = np.flatnonzero(((hits + 1) / (sure + 2) >= SURE) & (passed <= PASSED))
    return float(confidence[order[good[-1]]]) if len(good) else 1.01


def by_tenths(confidence: Array, right: Array) -> list[dict[str, Any]]:
    """Compare confidence with what was right, tenth by tenth; empty ones are left out."""
    tenth = np.minimum((confidence * TENTHS).astype(int), TENTHS - 1)
    return [
        {
            "sentences": int((tenth == number).sum()),
            "confidence": round(float(confidence[tenth == number].mean()), 4),
            "right": round(float(right[tenth == number].mean()), 4),
        }
        for number in range(TENTHS)
        if (tenth == number).any()
    ]
