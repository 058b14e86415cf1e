"""Tokenizers of imported models under our ids, and the SentencePiece models of Marian, Pegasus, Llama and others."""

import base64
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from toolkit.errors import DataError
from toolkit.tokenization.languages import LANGUAGES, Languages
from toolkit.tokenization.normal_form import refuse_surrogates
from toolkit.tokenization.segmentation import SPACE_MARK
from toolkit.tokenization.sentencepiece import open_processor
from toolkit.tokenization.special import FIRST_TOKEN, SPECIAL_TOKENS, UNK
from toolkit.tokenization.tokenizer import SPECIAL_SURFACES, Tokenizer
from toolkit.untrusted import Maybe, Schema, Text, UnfitError

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

_LANGUAGE = re.compile("\\s*(>>[^<]+<<)")  # what some translators want in front of a source
_MARK_UP = re.compile("<.+>|>>.+<<")  # tokens that no text has, where the model does not know them


def _are_rows(value: object) -> bool:
    if not isinstance(value, list) or not all(type(row) is int and -1 <= row < len(value) for row in value):
        return False
    return len(value) > FIRST_TOKEN and set(value) >= set(range(max(value) + 1)) and min(value[FIRST_TOKEN:]) >= 0


def _are_pieces(value: object) -> bool:
    is_list = isinstance(value, list) and all(isinstance(piece, str) for piece in value)
    return is_list and tuple(value[:FIRST_TOKEN]) == SPECIAL_TOKENS and len(set(value)) == len(value)


ROWS = Schema("a table of foreign ids, of which each occurs", _are_rows)
_PIECES = Schema("a list of pieces, all different, the special tokens first", _are_pieces)


class ForeignTokenizer(Tokenizer):
    """Ids: 16 special tokens, then the tokens of another vocabulary. Subclasses say how a text is cut.

    Unlike our own tokenizers, these need not give back what they were given: many normalise a text, put a space in
    front of it (which `decode` leaves there) or know only some characters. Each says it of itself.
    """

    def __init__(
        self,
        pieces: Sequence[str],
        rows: Sequence[int],
        surfaces: Sequence[bytes],
        languages: Languages | None = None,
    ):
        """Take how each id is shown, its foreign id, and the bytes that it adds to a text; the special ones first.

        rows: (V,), as `toolkit.interop.vocabulary.Vocabulary` has them. languages: their tokens add nothing to a text.

        Raises UnfitError for a language whose token is none of the vocabulary.
        """
        self.pieces, self.rows, self.languages = list(pieces), list(rows), languages
        self.surfaces = [*SPECIAL_SURFACES, *surfaces[FIRST_TOKEN:]]
        for code, index in languages.ids.items() if languages else ():
            if index >= len(self.pieces):
                raise UnfitError(f"has token {index} for {code}, which is outside its vocabulary")
            self.surfaces[index] = b""

    def _language_fields(self) -> dict[str, Any]:
        return {"languages": self.languages.fields()} if self.languages else {}

    def _known(self, ids: list[int], names: Sequence[str]) -> list[int]:
        """Return the ids. Raises DataError, with the name of the first unknown, where the model has no <unk>."""
        if self.rows[UNK] < 0 and UNK in ids:
            name = names[ids.index(UNK)]
            raise DataError(f"{name!r:.60} is no text to this model, and it has no token for what it does not know")
        return ids


class ForeignSentencePieceTokenizer(ForeignTokenizer):
    """The pieces of a SentencePiece model under other ids, perhaps with another model for the sources.

    Not lossless: the model may normalise a text (to NFKC, as a rule), remove spaces, put one in front, and know no
    bytes; what it has no piece for is then <unk>. A real ▁ is read as a space. Where a model knows languages in
    the form >>xx<<, one in front of a source is one token.
    """

    kind = "sentencepiece"
    fields: ClassVar = {"pieces": _PIECES, "rows": ROWS, "target": Text(), "source": Maybe(Text())}
    optional: ClassVar = {"languages": LANGUAGES}

    def __init__(
        self,
        pieces: Sequence[str],
        rows: Sequence[int],
        target: bytes,
        source: bytes | None = None,
        origin: str | Path = "the tokenizer",
        reads_sources: bool = False,
        languages: Languages | None = None,
    ):
        """Take the name and the foreign id of each of ours, the special ones first, and serialised models.

        target: for what a translator writes, or for everything. source: for what it reads, where that is another.
        origin: names the tokenizer in an error. reads_sources: whether `encode` takes sources.

        Raises ModelError for a model that is damaged.
        """
        self.models, self._reads_sources = (target, source), reads_sources  # of targets (or of everything), of sources
        models = [open_processor(model, origin) for model in (target, source) if model is not None]
        self._processor = models[-1] if reads_sources else models[0]
        super().__init__(pieces, rows, [_surface(piece, models) for piece in pieces], languages)

    def __reduce__(self) -> tuple[type, tuple]:
        """Pickle the models, for the processes of training."""
        origin, reads_sources = "the tokenizer", self._reads_sources
        return type(self), (self.pieces, self.rows, *self.models, origin, reads_sources, self.languages)

    def with_languages(self, languages: Languages) -> Self:
        """Give the same tokenizer for a model that knows these languages."""
        return type(self)(self.pieces, self.rows, *self.models, languages=languages)

    @classmethod
    def _from_fields(cls, values: Mapping[str, Any], path: Path) -> "ForeignSentencePieceTokenizer":
        pieces, rows = values["pieces"], values["rows"]
        if len(pieces) != len(rows):
            raise UnfitError("has another number of pieces than of rows")
        models = [model and base64.b64decode(model, validate=True) for model in (values["target"], values["source"])]
        return cls(pieces, rows, *models, origin=path, languages=Languages.from_fields(values["languages"]))

    def _fields(self) -> dict[str, Any]:
        target, source = (model and base64.b64encode(model).decode() for model in self.models)
        return {"pieces": self.pieces, "rows": self.rows, "target": target, "source": source, **self._language_fields()}

    @cached_property
    def source(self) -> "ForeignSentencePieceTokenizer":
        """The tokenizer for the texts that a translator reads."""
        return type(self)(self.pieces, self.rows, *self.models, reads_sources=True, languages=self.languages)

    def encode(self, text: str) -> list[int]:
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
        return {piece: index for index, piece in enumerate(self.pieces) if index >= FIRST_TOKEN and self.surface(index)}

    @cached_property
    def _languages(self) -> dict[str, int]:
        return {piece: index for index, piece in enumerate(self.pieces) if _LANGUAGE.fullmatch(piece)}


def _surface(piece: str, models: Sequence["SentencePieceProcessor"]) -> bytes:
    """Find the bytes that a piece adds to a text, according to the first model that knows it."""
    for model in models:
        index = model.piece_to_id(piece)
        if 0 <= index < model.vocab_size() and model.id_to_piece(index) == piece:
            if model.is_byte(index):
                return bytes([int(piece[1:-1], 16)])
            is_text = not (model.is_control(index) or model.is_unknown(index) or model.is_unused(index))
            return piece.replace(SPACE_MARK, " ").encode() if is_text else b""
    return b"" if _MARK_UP.fullmatch(piece) else piece.replace(SPACE_MARK, " ").encode()


def piece_names(tokens: Sequence[str | None], rows: Sequence[int]) -> list[str]:
    """Name each of our ids, all differently, from the foreign tokens and the foreign id of each of ours.

    tokens: (foreign size,), None for an id that has no token. rows: (V,), see `toolkit.interop.vocabulary`.
    """
    pieces, taken = list(SPECIAL_TOKENS), set(SPECIAL_TOKENS)
    for foreign in rows[FIRST_TOKEN:]:
        piece = tokens[foreign]
        piece = f"<extra_{foreign}>" if piece is None else piece
        while piece in taken:
            piece += "'"
        pieces.append(piece)
        taken.add(piece)
    return pieces
