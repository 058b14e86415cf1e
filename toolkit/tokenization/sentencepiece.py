"""SentencePiece tokenizers, unigram (Kudo 2018) and BPE (Sennrich et al. 2016), made lossless.

Four things make a SentencePiece model give back what it was given: no normalisation of its own (ours is Unicode
normal form C, before it), no spaces added or removed, bytes for characters that are not in the vocabulary, and
care for ▁ (U+2581). SentencePiece writes a space as ▁, so a ▁ in the text would come back as a space. It is the
only such character, and its three byte tokens say it unmistakably: the text is cut at every ▁, the parts are encoded
as they stand and joined by those three ids. Nothing is escaped, so there is nothing that could be unescaped wrongly.
"""

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from toolkit.errors import ConfigError, ModelError
from toolkit.tokenization.carrying import Carrier
from toolkit.tokenization.normal_form import normal_form, refuse_surrogates
from toolkit.tokenization.segmentation import (
    SPACE_MARK,
    Sampler,
    UnigramSampler,
    bpe_sample,
    occurring_pieces,
    sample_ids,
    uniforms,
)
from toolkit.tokenization.special import CONTROL_IDS, FIRST_TOKEN, SPECIAL_TOKENS
from toolkit.tokenization.subword_training import ModelType, train_model
from toolkit.tokenization.tokenizer import SPECIAL_SURFACES, Tokenizer, damaged, read_file, write_file

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

FILE_NAME = "tokenizer.model"
FIRST_BYTE = FIRST_TOKEN
FIRST_PIECE = FIRST_BYTE + 256
SPACE_MARK_IDS = [FIRST_BYTE + byte for byte in SPACE_MARK.encode()]

# Spaces in every place where a foreign normaliser or a lost setting would change them; "ﬁ" is "fi" under NFKC.
_PROBE = "  a  b\t\n ﬁ "


class SentencePieceTokenizer(Tokenizer):
    """A lossless SentencePiece model. Ids: 16 special tokens, 256 bytes, then the pieces."""

    def __init__(self, model: bytes, origin: str | Path = "the tokenizer"):
        """Take a serialised model, as `train` makes it; `origin` names it in an error.

        Raises ModelError if it is damaged or was made by something else.
        """
        self._model = model
        try:
            self._processor = open_processor(model, origin)
            is_ours = _has_our_layout(self._processor) and self.decode(self.encode(_PROBE)) == _PROBE
        except (ModelError, RuntimeError, IndexError, ValueError):  # the library's, for foreign bytes and missing ids
            is_ours = False
        if not is_ours:
            raise damaged(origin)

    def __reduce__(self) -> tuple[type, tuple[bytes], dict]:
        """Pickle the model, for the processes of training: they sample segmentations of their own."""
        return type(self), (self._model,), {"carrier": self.carrier}

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        model_type: ModelType = "unigram",
        seed: int = 0,
        sample: int = 500_000,
        split_digits: bool = False,
    ) -> "SentencePieceTokenizer":
        """Learn a vocabulary from `texts`. The same texts and arguments give the same bytes.

        vocab_size: ids in all, special tokens and bytes included. It is an upper bound: a small corpus has fewer
            different pieces to offer, and `tokenizer.vocab_size` says how many there are. Of the characters, the rarest
            0.05 % of all occurrences have no piece of their own and are spelled in bytes.
        seed, sample: of a corpus of more than `sample` lines, a random `sample` of them is learned from. (Texts of
            more than 1,000 characters count as several lines.) The seed also decides between which words a line is
            cut to find unigram candidates.
        split_digits: no piece has a digit beside anything else, so that numbers are read and written digit by digit,
            and every character of the texts has a piece.

        Raises ConfigError for a vocabulary too small for the characters of the texts or an unknown model type, and
        DataError for texts without a character or with a lone surrogate.
        """
        return cls(train_model(texts, vocab_size, model_type, seed, sample, split_digits))

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> "SentencePieceTokenizer":
        """Read `tokenizer.model` of a model directory. Raises ModelError if it is missing or damaged."""
        path = Path(directory) / FILE_NAME
        found = cls(read_file(path), origin=path)
        found.carrier = Carrier.load(directory)
        return found

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write `tokenizer.model` into a directory, which is made if need be. Raises DataError if that fails."""
        write_file(directory, FILE_NAME, self._model)
        if self.carrier:
            self.carrier.save(directory)

    @cached_property
    def pieces(self) -> list[str]:
        return self._processor.id_to_piece([*range(self.vocab_size)])

    @property
    def vocab_size(self) -> int:
        return self._processor.vocab_size()

    @cached_property
    def surfaces(self) -> list[bytes]:
        pieces = (piece.replace(SPACE_MARK, " ").encode() for piece in self.pieces[FIRST_PIECE:])
        return [*SPECIAL_SURFACES, *(bytes([byte]) for byte in range(256)), *pieces]

    def encode(self, text: str) -> list[int]:
        return self.encode_batch([text])[0]

    def encode_batch(
        self, texts: Iterable[str], alpha: float = 0.0, seed: int | Sequence[int] | None = None
    ) -> list[list[int]]:
        """Encode every text in one call of the library; with `alpha`, draw random segmentations.

        alpha: above 0, each text is cut at random, and its ids decode to the same text (subword regularisation). For
            unigram it sharpens the distribution over all segmentations, P(x)^alpha (Kudo 2018, section 3.2): the
            nearer to 0, the more even; for BPE it is the probability that a merge is left out (Provilkov et al. 2020).
        seed: the same texts, alpha and seed give the same ids, in any process. Without one, every call draws anew.

        Raises ConfigError for an alpha that is negative or no number, and for BPE above 1.
        """
        parts = [normal_form(text).split(SPACE_MARK) for text in texts]
        flat = [part for text_parts in parts for part in text_parts]
        try:
            # One thread: 3 million tokens a second are enough, and threads do not survive the fork of a worker.
            ids = self._sample(flat, alpha, seed) if alpha != 0 else self._processor.encode(flat, num_threads=1)
        except (RuntimeError, TypeError, UnicodeEncodeError) as error:
            refuse_surrogates(flat, error)
            raise
        encoded = iter(ids)
        return [_join(islice(encoded, len(text_parts))) for text_parts in parts]

    def _sample(self, texts: list[str], alpha: float, seed: int | Sequence[int] | None) -> list[list[int]]:
        if not 0 < alpha < math.inf:
            raise ConfigError(f"alpha is {alpha}: sampled segmentations need a number above 0, and 0 samples none")
        if alpha > 1 and self.is_bpe:
            raise ConfigError(f"alpha is {alpha}: for BPE it is the probability that a merge is left out, at most 1")
        draws = uniforms(np.random.default_rng(seed))
        return [sample_ids(text, alpha, self._sampler, self._ids, FIRST_BYTE, draws) for text in texts]

    @cached_property
    def _ids(self) -> dict[str, int]:
        """The id of every piece that is neither special nor a byte."""
        return {piece: index for index, piece in enumerate(self.pieces) if index >= FIRST_PIECE}

    @cached_property
    def scores(self) -> dict[str, float]:
        """The score of every piece that is neither special nor a byte: see `segmentation.Scores`."""
        return {piece: self._processor.get_score(index) for piece, index in self._ids.items()}

    @property
    def is_bpe(self) -> bool:
        """True for BPE, which numbers its merges 0, -1, -2, ...; no log-probability of unigram is 0."""
        return self._processor.get_score(FIRST_PIECE) == 0

    @cached_property
    def _sampler(self) -> Sampler:
        return partial(bpe_sample, self.scores) if self.is_bpe else UnigramSampler(self.scores)

    def possible_ids(self, texts: Iterable[str]) -> np.ndarray:
        """List the ids of all pieces that occur in the texts, sorted, (P,): `encode_batch` gives no others.

        Characters without a piece are left out: they are spelled in the same bytes in every segmentation.
        """
        return np.array(sorted(self._ids[piece] for piece in occurring_pieces(self._ids, texts)), dtype=np.int64)

    def decode(self, ids: Sequence[int]) -> str:
        return self._processor.decode([int(index) for index in ids if index not in CONTROL_IDS])


def _has_our_layout(processor: "SentencePieceProcessor") -> bool:
    specials = tuple(processor.id_to_piece([*range(FIRST_TOKEN)])) == SPECIAL_TOKENS
    bytes_follow = all(map(processor.is_byte, range(FIRST_BYTE, FIRST_PIECE)))
    return specials and bytes_follow and all(map(processor.is_control, CONTROL_IDS))


def open_processor(model: bytes, origin: str | Path) -> "SentencePieceProcessor":
    """Give a serialised model to the library; `origin` names it in an error.

    Raises ModelError for one that is damaged: its pieces must be UTF-8, and their scores finite.
    """
    from sentencepiece import SentencePieceProcessor

    try:
        if not model:
            raise ValueError("empty")
        processor = SentencePieceProcessor(model_proto=model)
        ids = [*range(processor.vocab_size())]
        processor.id_to_piece(ids)  # which decodes them
        if not np.isfinite(processor.get_score(ids)).all():
            raise ValueError("no score")
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"{origin} is damaged: it holds no SentencePiece model") from error
    return processor


def _join(parts: Iterator[list[int]]) -> list[int]:
    """Join the parts of one text by the bytes of ▁."""
    ids = next(parts)
    for part in parts:
        ids += SPACE_MARK_IDS + part
    return ids
