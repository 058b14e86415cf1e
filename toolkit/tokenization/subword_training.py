"""Learning a SentencePiece vocabulary: from lines of text to a serialised model.

No line is dropped in silence, and no more of them are held than fit into memory.
"""

import io
import math
import re
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import Literal, get_args

import numpy as np

from toolkit.errors import ConfigError, DataError
from toolkit.tokenization.normal_form import normal_form, refuse_surrogates
from toolkit.tokenization.segmentation import SPACE_MARK
from toolkit.tokenization.special import BOS, EOS, FIRST_TOKEN, PAD, SPECIAL_TOKENS, UNK
from toolkit.tokenization.tokenizer import REPLACEMENT

ModelType = Literal["unigram", "bpe"]

SMALLEST_VOCABULARY = FIRST_TOKEN + 256 + 1  # special tokens, bytes, the space
COVERAGE = 0.9995  # SentencePiece's default
LARGEST_VOCABULARY = 1_000_000

# SentencePiece skips a line that is too long or holds one of its reserved characters, and says so only in its log:
# ▅ is its mark for unknown characters, NUL ends its strings, and ▁ would be counted as a space.
MAX_LINE_CHARACTERS = 1000
MAX_LINE_BYTES = 4 * MAX_LINE_CHARACTERS

_RESERVED = re.compile("[\u2581\u2585\0]+")
_LONG_LINE = re.compile(f".{{1,{MAX_LINE_CHARACTERS}}}(?= |\\Z)|.{{1,{MAX_LINE_CHARACTERS}}}", re.DOTALL)

_MARK = r"\s!-/:-@\[-`{-~।॥\u2010-\u2027、。！？"  # what may follow a word and is never in one piece with it
_DIGIT = re.compile(r"(\d|[\ue000-\ue00f])")  # or one of the marks of `carrying`
_WORD_END = re.compile(f"(?<=[^{_MARK}])(?=[{_MARK}])")


def train_model(
    texts: Iterable[str], vocab_size: int, model_type: ModelType, seed: int, sample: int, split_digits: bool = False
) -> bytes:
    """Learn a model, as `SentencePieceTokenizer.train` describes it, and serialise it."""
    if model_type not in get_args(ModelType):
        raise ConfigError(f"model_type {model_type!r} does not exist: choose one of {', '.join(get_args(ModelType))}")
    if not SMALLEST_VOCABULARY <= vocab_size <= LARGEST_VOCABULARY:
        raise ConfigError(
            f"vocab_size {vocab_size} is out of range: choose {SMALLEST_VOCABULARY} to {LARGEST_VOCABULARY}"
        )
    if sample < 1:
        raise ConfigError(f"sample is {sample}: a tokenizer learns from at least one line")
    rng = np.random.default_rng(seed)
    lines = reservoir(training_lines(texts), sample, rng)
    cut = with_open_word_ends(lines, rng) if model_type == "unigram" else lines
    cut, coverage = (_digits_apart(cut), 1.0) if split_digits else (cut, COVERAGE)
    try:
        return _train(cut, vocab_size, model_type, coverage)
    except RuntimeError as error:  # a failed assertion of the library, which may stand for a mistake of the caller
        refuse_surrogates(lines, error)
        if needed := re.search(r"smaller than required_chars\. -?\d+ vs (\d+)", str(error)):
            raise ConfigError(
                f"vocab_size {vocab_size} is too small: special tokens, bytes and the characters of this text alone "
                f"need {needed[1]}"
            ) from error
        if re.search(r"sentences_\.empty|seed_sentencepieces\.empty", str(error)):
            raise DataError(
                "the tokenizer has no text to learn from: give it at least one line that is not empty"
            ) from error
        raise


def _digits_apart(lines: Iterable[str]) -> Iterator[str]:
    """Cut every line around each digit of any script, so that no piece has one beside anything else."""
    for line in lines:
        yield from filter(None, _DIGIT.split(line))


def _train(lines: Iterable[str], vocab_size: int, model_type: ModelType, coverage: float) -> bytes:
    """Call the trainer. With a writer, because a model file otherwise contains the path that it was written to.

    coverage: the share of all characters that get pieces; the others are spelled in bytes.
    """
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=model_type,
        vocab_size=vocab_size,
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        byte_fallback=True,
        character_coverage=coverage,
        required_chars=SPACE_MARK,  # a corpus without a space must not leave the space to the bytes of the real ▁
        max_sentence_length=MAX_LINE_BYTES,
        shuffle_input_sentence=False,
        num_threads=1,
        minloglevel=2,
        pad_id=PAD,
        unk_id=UNK,
        bos_id=BOS,
        eos_id=EOS,
        pad_piece=SPECIAL_TOKENS[PAD],
        unk_piece=SPECIAL_TOKENS[UNK],
        bos_piece=SPECIAL_TOKENS[BOS],
        eos_piece=SPECIAL_TOKENS[EOS],
        unk_surface=REPLACEMENT,
        control_symbols=list(SPECIAL_TOKENS[EOS + 1 :]),
    )
    return model.getvalue()


def training_lines(texts: Iterable[str]) -> Iterator[str]:
    """Cut every text, in normal form C, at reserved characters and, where it is long, before a space."""
    for text in texts:
        for section in _RESERVED.split(normal_form(text)):
            if len(section) > MAX_LINE_CHARACTERS:
                yield from _LONG_LINE.findall(section)
            elif section:
                yield section


def reservoir(lines: Iterable[str], size: int, rng: "np.random.Generator") -> list[str]:
    """Draw a uniform random sample of at most `size` lines of a stream, in one pass and in memory for `size` lines.

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


def with_open_word_ends(lines: list[str], rng: "np.random.Generator") -> Iterator[str]:
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
