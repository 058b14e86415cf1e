"""Writing the ids of texts, many at a time."""

import numpy as np

from toolkit.data.store import RaggedWriter
from toolkit.data.texts import PIECE, Piece, utf8_length
from toolkit.data.token_stream import ArrayEncoder, WordEncoder, marked


class TokenWriter:
    """Writes the store of one set, a sequence for each document, as a context manager that ends the last document.

    marks: whether sequences stand between BOS and EOS. Counts what was written: `documents`, `tokens` (the marks
    included), `characters`, and `bytes`, which is what the tokens stand for in UTF-8.
    """

    def __init__(self, store: RaggedWriter, encoder: WordEncoder | ArrayEncoder, marks: bool):
        self.documents = self.tokens = self.characters = self.bytes = 0
        self._store, self._encoder, self._marks = store, encoder, marks
        self._texts: list[str] = []
        self._begins: list[bool] = []
        self._ends: list[bool] = []
        self._waiting = 0  # characters
        self._is_open = False

    def __enter__(self) -> "TokenWriter":
        self._store.__enter__()
        return self

    def __exit__(self, kind: type | None, *error: object) -> None:
        try:
            if kind is None:
                if self._is_open:
                    self.add(Piece("", True), "")
                self._write()
        finally:
            self._store.__exit__(kind, *error)

    def add(self, piece: Piece, separator: str) -> None:
        """Go on with the document, or begin the next one; separator: what EOS stands for in the text."""
        self._texts.append(piece.text)
        self._begins.append(not self._is_open)
        self._ends.append(piece.ends)
        self._is_open = not piece.ends
        self._waiting += len(piece.text)
        self.characters += len(piece.text)
        self.bytes += utf8_length(piece.text)
        if piece.ends:
            self.documents += 1
            self.bytes += len(separator)
        if self._waiting >= PIECE or len(self._texts) >= PIECE:
            self._write()

    def _write(self) -> None:
        if not self._texts:
            return
        ids, lengths = self._encoder.encode(self._texts)
        ends = np.array(self._ends)
        if self._marks:
            ids, lengths = marked(ids, lengths, np.array(self._begins), ends)
        self._store.append(ids, lengths.cumsum()[ends])
        self.tokens += len(ids)
        self._texts, self._begins, self._ends, self._waiting = [], [], [], 0
