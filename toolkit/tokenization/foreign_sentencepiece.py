"""SentencePiece models of other toolkits: of Marian, Pegasus and Llama, and whatever else has pieces for ids."""

import base64
import os
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from toolkit.errors import ModelError
from toolkit.tokenization.foreign import FIRST_TOKEN, ForeignTokenizer, are_rows
from toolkit.tokenization.normal_form import refuse_surrogates
from toolkit.tokenization.pieces import SPACE_MARK
from toolkit.tokenization.special import SPECIAL_TOKENS, UNK
from toolkit.tokenization.storage import JSON_FILE, damaged, read_settings, write_settings

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

_LANGUAGE = re.compile("\\s*(>>[^<]+<<)")  # what some translators want in front of a source
_MARK_UP = re.compile("<.+>|>>.+<<")  # tokens that no text has, where the model does not know them


class ForeignSentencePieceTokenizer(ForeignTokenizer):
    """The pieces of a SentencePiece model under other ids, perhaps with another model for the sources.

    Not lossless: the model may normalise a text (to NFKC, as a rule), remove spaces, put one in front, and know no
    bytes; what it has no piece for is then <unk>. A real ▁ is read as a space. Where a model knows languages in
    the form >>xx<<, one in front of a source is one token.
    """

    kind = "sentencepiece"

    def __init__(
        self,
        pieces: Sequence[str],
        rows: Sequence[int],
        target: bytes,
        source: bytes | None = None,
        origin: str | Path = "the tokenizer",
        reads_sources: bool = False,
    ):
        """Take the name and the foreign id of each of ours, the special ones first, and serialised models.

        target: for what a translator writes, or for everything. source: for what it reads, where that is another.
        origin: names the tokenizer in an error. reads_sources: whether `encode` takes sources.

        Raises ModelError for a model that is damaged.
        """
        self._target, self._source, self._reads_sources = target, source, reads_sources
        models = [processor(model, origin) for model in (target, source) if model is not None]
        self._processor = models[-1] if reads_sources else models[0]
        super().__init__(pieces, rows, [_surface(piece, models) for piece in pieces])

    def __reduce__(self) -> tuple[type, tuple]:
        """Pickled as its models, for the processes of training."""
        models = self._target, self._source
        return type(self), (self.pieces, self.rows, *models, "the tokenizer", self._reads_sources)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> "ForeignSentencePieceTokenizer":
        """Read `tokenizer.json` of a model directory. Raises ModelError if it is missing or damaged."""
        path = Path(directory) / JSON_FILE
        settings = read_settings(directory)
        pieces, rows, target, source = (settings.pop(name, None) for name in ("pieces", "rows", "target", "source"))
        if settings != {"kind": cls.kind} or not are_rows(rows) or not _are_pieces(pieces, len(rows)):
            raise damaged(path)
        try:
            other = None if source is None else base64.b64decode(source, validate=True)
            return cls(pieces, rows, base64.b64decode(target, validate=True), other, origin=path)
        except (TypeError, ValueError) as error:
            raise damaged(path) from error

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write `tokenizer.json` into a directory, which is made if need be. Raises DataError if that fails."""
        target, source = (
            None if model is None else base64.b64encode(model).decode() for model in (self._target, self._source)
        )
        write_settings(directory, self.kind, pieces=self.pieces, rows=self.rows, target=target, source=source)

    @property
    def models(self) -> tuple[bytes, bytes | None]:
        """The serialised models, of targets (or of everything) and of sources."""
        return self._target, self._source

    @cached_property
    def source(self) -> "ForeignSentencePieceTokenizer":
        """What reads the texts that a translator translates."""
        return type(self)(self.pieces, self.rows, self._target, self._source, reads_sources=True)

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without begin or end marker. Raises DataError as the base class says."""
        language = _LANGUAGE.match(text) if self._reads_sources else None
        ids, names = [], []
        if language and self._languages:
            names, text = [language[1]], text[language.end() :]
            ids = [self._languages.get(language[1], UNK)]
        try:
            pieces = self._processor.encode(text, out_type=str, num_threads=1)
        except (RuntimeError, TypeError, UnicodeEncodeError) as error:
            refuse_surrogates([text], error)
            raise
        return self._known([*ids, *(self._ids.get(piece, UNK) for piece in pieces)], [*names, *pieces])

    @cached_property
    def _ids(self) -> dict[str, int]:
        """The ids of the pieces that a text can have."""
        return {piece: index for index, piece in enumerate(self.pieces) if index >= FIRST_TOKEN and self.surface(index)}

    @cached_property
    def _languages(self) -> dict[str, int]:
        return {piece: index for index, piece in enumerate(self.pieces) if _LANGUAGE.fullmatch(piece)}


def processor(model: bytes, origin: str | Path) -> "SentencePieceProcessor":
    """What the library makes of a serialised model.

    Raises ModelError for one that is damaged: its pieces must be UTF-8, and their scores finite numbers.
    """
    from sentencepiece import SentencePieceProcessor

    try:
        if not model:
            raise ValueError("empty")
        found = SentencePieceProcessor(model_proto=model)
        ids = [*range(found.vocab_size())]
        found.id_to_piece(ids)  # which decodes them
        if not np.isfinite(found.get_score(ids)).all():
            raise ValueError("no score")
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"{origin} is damaged: it holds no SentencePiece model") from error
    return found


def _surface(piece: str, models: Sequence["SentencePieceProcessor"]) -> bytes:
    """The bytes that a piece adds to a text, according to the first model that knows it."""
    for model in models:
        index = model.piece_to_id(piece)
        if 0 <= index < model.vocab_size() and model.id_to_piece(index) == piece:
            if model.is_byte(index):
                return bytes([int(piece[1:-1], 16)])
            is_text = not (model.is_control(index) or model.is_unknown(index) or model.is_unused(index))
            return piece.replace(SPACE_MARK, " ").encode() if is_text else b""
    return b"" if _MARK_UP.fullmatch(piece) else piece.replace(SPACE_MARK, " ").encode()


def _are_pieces(value: object, size: int) -> bool:
    is_list = isinstance(value, list) and len(value) == size and all(isinstance(piece, str) for piece in value)
    return is_list and tuple(value[:FIRST_TOKEN]) == SPECIAL_TOKENS and len(set(value)) == size
