"""SentencePiece tokenizers, unigram (Kudo 2018) and BPE (Sennrich et al. 2016), made lossless.

Four things make a SentencePiece model give back what it was given: no normalisation of its own (ours is Unicode
normal form C, before it), no spaces added or removed, bytes for characters that are not in the vocabulary, and
care for ▁ (U+2581). SentencePiece writes a space as ▁, so a ▁ in the text would come back as a space. It is the
only such character, and its three byte tokens say it unmistakably: the text is cut at every ▁, the parts are encoded
as they stand and joined by those three ids. Nothing is escaped, so there is nothing that could be unescaped wrongly.
"""

import io
import math
import os
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from toolkit.errors import ConfigError, DataError
from toolkit.tokenization.corpus import MAX_LINE_BYTES, reservoir, training_lines, with_open_word_ends
from toolkit.tokenization.normal_form import normal_form, refuse_surrogates
from toolkit.tokenization.pieces import SPACE_MARK, occurring
from toolkit.tokenization.sampling import BPESampler, UnigramSampler, sample_ids, uniforms
from toolkit.tokenization.special import BOS, CONTROL_IDS, EOS, PAD, SPECIAL_TOKENS, UNK
from toolkit.tokenization.storage import damaged, read_file, write_file
from toolkit.tokenization.surface import LOST, REPLACEMENT

ModelType = Literal["unigram", "bpe"]

FILE_NAME = "tokenizer.model"
FIRST_BYTE = len(SPECIAL_TOKENS)
FIRST_PIECE = FIRST_BYTE + 256
SPACE_MARK_IDS = [FIRST_BYTE + byte for byte in SPACE_MARK.encode()]
SMALLEST_VOCABULARY = FIRST_PIECE + 1  # special tokens, bytes, the space
LARGEST_VOCABULARY = 1_000_000

# Spaces in every place where a foreign normaliser or a lost setting would change them; "ﬁ" is "fi" under NFKC.
_PROBE = "  a  b\t\n ﬁ "


class SentencePieceTokenizer:
    """A lossless SentencePiece model. Ids: 16 special tokens, 256 bytes, then the pieces."""

    def __init__(self, model: bytes, origin: str | Path = "the tokenizer"):
        """Take a serialised model, as `train` makes it; `origin` names it in an error.

        Raises ModelError if it is damaged or was made by something else.
        """
        from sentencepiece import SentencePieceProcessor

        self._model = model
        try:
            if not model:
                raise ValueError("empty")
            self._processor = SentencePieceProcessor(model_proto=model)
            self._processor.id_to_piece([*range(self._processor.vocab_size())])  # which decodes them
            is_ours = self._has_our_layout() and self.decode(self.encode(_PROBE)) == _PROBE
        except (RuntimeError, IndexError, ValueError):  # what the library raises for foreign bytes and missing ids
            is_ours = False
        if not is_ours:
            raise damaged(origin)
        self._vocab_size = self._processor.vocab_size()

    def __reduce__(self) -> tuple[type, tuple[bytes]]:
        """Pickled as its model, for the processes of training: they sample segmentations of their own."""
        return type(self), (self._model,)

    def _has_our_layout(self) -> bool:
        processor = self._processor
        return (
            all(processor.id_to_piece(index) == piece for index, piece in enumerate(SPECIAL_TOKENS))
            and all(processor.is_control(index) for index in CONTROL_IDS)
            and all(processor.is_byte(index) for index in range(FIRST_BYTE, FIRST_PIECE))
        )

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        model_type: ModelType = "unigram",
        seed: int = 0,
        sample: int = 500_000,
    ) -> "SentencePieceTokenizer":
        """Learn a vocabulary from `texts`. The same texts and arguments give the same bytes.

        vocab_size: ids in all, special tokens and bytes included. It is an upper bound: a small corpus has fewer
            different pieces to offer, and `tokenizer.vocab_size` says how many there are. Of the characters, the rarest
            0.05 % of all occurrences have no piece of their own and are spelled in bytes.
        seed, sample: of a corpus of more than `sample` lines, a random `sample` of them is learned from. (Texts of
            more than 1,000 characters count as several lines.) The seed also decides between which words a line is
            cut to find unigram candidates.

        Raises ConfigError for a vocabulary too small for the characters of the texts or an unknown model type, and
        DataError for texts without a character or with a lone surrogate.
        """
        if model_type not in get_args(ModelType):
            raise ConfigError(
                f"model_type {model_type!r} does not exist: choose one of {', '.join(get_args(ModelType))}"
            )
        if not SMALLEST_VOCABULARY <= vocab_size <= LARGEST_VOCABULARY:
            raise ConfigError(
                f"vocab_size {vocab_size} is out of range: choose {SMALLEST_VOCABULARY} to {LARGEST_VOCABULARY}"
            )
        if sample < 1:
            raise ConfigError(f"sample is {sample}: a tokenizer learns from at least one line")
        rng = np.random.default_rng(seed)
        lines = reservoir(training_lines(texts), sample, rng)
        try:
            model = _train(
                with_open_word_ends(lines, rng) if model_type == "unigram" else lines, vocab_size, model_type
            )
        except RuntimeError as error:
            refuse_surrogates(lines, error)
            _explain(error, vocab_size)
            raise
        return cls(model)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> "SentencePieceTokenizer":
        """Read `tokenizer.model` of a model directory. Raises ModelError if it is missing or damaged."""
        path = Path(directory) / FILE_NAME
        return cls(read_file(path), origin=path)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write `tokenizer.model` into a directory, which is made if need be. Raises DataError if that fails."""
        write_file(directory, FILE_NAME, self._model)

    @property
    def source(self) -> "SentencePieceTokenizer":
        """What reads the texts that a translator translates."""
        return self

    @property
    def vocab_size(self) -> int:
        """Number of ids, the special ones included."""
        return self._vocab_size

    def encode(self, text: str) -> list[int]:
        """The ids of `text` in normal form C, without begin or end marker. Raises DataError for a lone surrogate."""
        return self.encode_batch([text])[0]

    def encode_batch(
        self, texts: Iterable[str], alpha: float = 0.0, seed: int | Sequence[int] | None = None
    ) -> list[list[int]]:
        """The ids of every text, as from `encode`, in one call of the library; with `alpha`, of sampled segmentations.

        alpha: above 0, each text is cut at random, and its ids decode to the same text (subword regularisation). For
            unigram it sharpens the distribution over all segmentations, P(x)^alpha (Kudo 2018, section 3.2): the
            nearer to 0, the more even; for BPE it is the probability that a merge is left out (Provilkov et al. 2020).
        seed: the same texts, alpha and seed give the same ids, in any process. Without one, every call draws anew.

        Raises ConfigError for an alpha that is negative or no number, and for BPE above 1.
        """
        parts = [normal_form(text).split(SPACE_MARK) for text in texts]
        flat = [part for text_parts in parts for part in text_parts]
        try:
            encoded = iter(self._sample(flat, alpha, seed) if alpha != 0 else self._encode(flat))
        except (RuntimeError, TypeError, UnicodeEncodeError) as error:
            refuse_surrogates(flat, error)
            raise
        return [_join(list(islice(encoded, len(text_parts)))) for text_parts in parts]

    def _encode(self, texts: list[str]) -> list[list[int]]:
        # One thread: 3 million tokens a second are enough, and threads do not survive the fork of a worker.
        return self._processor.encode(texts, num_threads=1)

    def _sample(self, texts: list[str], alpha: float, seed: int | Sequence[int] | None) -> list[list[int]]:
        if not 0 < alpha < math.inf:
            raise ConfigError(f"alpha is {alpha}: sampled segmentations need a number above 0, and 0 samples none")
        if alpha > 1 and isinstance(self._sampler, BPESampler):
            raise ConfigError(f"alpha is {alpha}: for BPE it is the probability that a merge is left out, at most 1")
        draws = uniforms(np.random.default_rng(seed))
        return [sample_ids(text, alpha, self._sampler, self._ids, FIRST_BYTE, draws) for text in texts]

    @cached_property
    def _ids(self) -> dict[str, int]:
        """The id of every piece that is neither special nor a byte."""
        return {self.piece(index): index for index in range(FIRST_PIECE, self._vocab_size)}

    @cached_property
    def scores(self) -> dict[str, float]:
        """The score of every piece that is neither special nor a byte: see `sampling.Scores`."""
        return {piece: self._processor.get_score(index) for piece, index in self._ids.items()}

    @property
    def is_bpe(self) -> bool:
        """Whether it is BPE, which numbers its merges 0, -1, -2, ...; no log-probability of unigram is 0."""
        return self._processor.get_score(FIRST_PIECE) == 0

    @cached_property
    def _sampler(self) -> UnigramSampler | BPESampler:
        return BPESampler(self.scores) if self.is_bpe else UnigramSampler(self.scores)

    def possible_ids(self, texts: Iterable[str]) -> np.ndarray:
        """Sorted ids of all pieces that occur in the texts, (P,): what `encode_batch` with any alpha can give.

        Characters without a piece are left out: they are spelled in the same bytes in every segmentation.
        """
        return np.array(sorted(self._ids[piece] for piece in occurring(self._ids, texts)), dtype=np.int64)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`. Control ids are skipped; <unk> and bytes that are not UTF-8 become U+FFFD.

        Raises IndexError for an id outside the vocabulary.
        """
        return self._processor.decode([int(index) for index in ids if index not in CONTROL_IDS])

    def piece(self, token_id: int) -> str:
        """The piece behind an id as SentencePiece writes it: ▁ for a space, <0x0A> for a byte."""
        return self._processor.id_to_piece(int(token_id))

    def surface(self, token_id: int) -> bytes:
        """The bytes that one id adds to a text. Raises IndexError for an id outside the vocabulary."""
        piece = self.piece(token_id)
        if token_id >= FIRST_PIECE:
            return piece.replace(SPACE_MARK, " ").encode()
        if token_id >= FIRST_BYTE:
            return bytes([token_id - FIRST_BYTE])
        return LOST if token_id == UNK else b""


def _train(lines: Iterable[str], vocab_size: int, model_type: ModelType) -> bytes:
    """The serialised model. Through a writer, because a model file otherwise contains the path it was written to."""
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


def _join(parts: list[list[int]]) -> list[int]:
    """The parts of one text with the bytes of ▁ between them."""
    ids = parts[0]
    for part in parts[1:]:
        ids += SPACE_MARK_IDS
        ids += part
    return ids


def _explain(error: RuntimeError, vocab_size: int) -> None:
    """Say in our words which of the caller's mistakes the library's failed assertion stands for, if it is one."""
    needed = re.search(r"smaller than required_chars\. -?\d+ vs (\d+)", str(error))
    if needed:
        raise ConfigError(
            f"vocab_size {vocab_size} is too small: special tokens, bytes and the characters of this text alone "
            f"need {needed[1]}"
        ) from error
    if re.search(r"sentences_\.empty|seed_sentencepieces\.empty", str(error)):
        raise DataError(
            "the tokenizer has no text to learn from: give it at least one line that is not empty"
        ) from error
