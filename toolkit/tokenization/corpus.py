"""The lines that a tokenizer is trained on: nothing dropped in silence, and no more of them than memory holds."""

import math
import re
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

import numpy as np

from toolkit.tokenization.normal_form import normal_form

# SentencePiece skips a line that is too long or holds one of its reserved characters, and says so only in its log:
# ▅ is its mark for unknown characters, NUL ends its strings, and ▁ would be counted as a space.
MAX_LINE_CHARACTERS = 1000
MAX_LINE_BYTES = 4 * MAX_LINE_CHARACTERS

_RESERVED = re.compile("[\u2581\u2585\0]+")
_LONG_LINE = re.compile(f".{{1,{MAX_LINE_CHARACTERS}}}(?= |\\Z)|.{{1,{MAX_LINE_CHARACTERS}}}", re.DOTALL)

_MARK = r"\s!-/:-@\[-`{-~।॥\u2010-\u2027、。！？"  # what may follow a word and is never in one piece with it
_WORD_END = re.compile(f"(?<=[^{_MARK}])(?=[{_MARK}])")


def training_lines(texts: Iterable[str]) -> Iterator[str]:
    """Every text in normal form C, cut at reserved characters and, where it is long, before a space."""
    for text in texts:
        for section in _RESERVED.split(normal_form(text)):
            if len(section) > MAX_LINE_CHARACTERS:
                yield from _LONG_LINE.findall(section)
            elif section:
                yield section


def reservoir(lines: Iterable[str], size: int, rng: np.random.Generator) -> list[str]:
    """A uniform random sample of at most `size` lines of a stream, in one pass and in memory for `size` lines.

    Algorithm L (Li 1994): the i-th line should stay with probability size / i, so the number of lines to skip
    until the next one that stays is drawn at once. Fewer lines than `size` come back as they are.
    """
    stream = iter(lines)
    kept = list(islice(stream, size))
    exponent = 0.0  # w = exp(-exponent) is the largest of the uniform keys that the kept lines would have
    while True:
        exponent += rng.standard_exponential() / size
        skip = int(-rng.standard_exponential() / math.log(-math.expm1(-exponent)))
        line = next(islice(stream, skip, None), None)
        if line is None:
            return kept
        kept[rng.integers(size)] = line


def with_open_word_ends(lines: list[str], rng: np.random.Generator) -> Iterator[str]:
    """Cut every line after each second word, so that the unigram trainer sees all words it should consider.

    It takes its candidates from the inner nodes of a suffix tree: strings that occur with two different
    continuations. A word that is always followed by a space, as most articles and adjectives are, or always by a full
    stop, as verbs are at the end of a Nepali sentence, is no such node, and is left in fragments however frequent it
    is. Cut here and there, it is followed by a line end as well. Pieces never cross these places, so nothing else
    changes.
    """
    for line, first in zip(lines, rng.integers(2, size=len(lines)).tolist(), strict=True):
        ends = [match.start() for match in _WORD_END.finditer(line)][first::2]
        yield from (line[start:end] for start, end in pairwise([0, *ends, len(line)]))
