"""Tokenizers of the `tokenizers` library, an optional one: byte-level BPE as GPT-2's, and everything else it has."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from toolkit.errors import ModelError, ToolkitError
from toolkit.tokenization.foreign import FIRST_TOKEN, ForeignTokenizer, are_rows, shown
from toolkit.tokenization.library_surfaces import token_bytes
from toolkit.tokenization.normal_form import refuse_surrogates
from toolkit.tokenization.special import UNK
from toolkit.tokenization.storage import JSON_FILE, damaged, read_settings, write_settings


class LibraryTokenizer(ForeignTokenizer):
    """What a tokenizer.json of the library says, under our ids.

    Byte-level BPE gives every text back; others may normalise it, put a space in front or not know its characters. What
    looks like a special token in a text is text.
    """

    kind = "tokenizers"

    def __init__(self, content: dict[str, Any], rows: Sequence[int], origin: str | Path = "the tokenizer"):
        """Take the content of the library's file, and the foreign id of each of ours, -1 where there is none.

        Raises ModelError where the library is not installed, does not understand the content, or shows tokens in a way
        that is unknown here.
        """
        self.content, self._origin = content, origin
        self._tokenizer = _tokenizer(content, origin)
        self.tokens = [self._tokenizer.id_to_token(foreign) for foreign in range(max(rows) + 1)]  # by foreign id
        added = self._tokenizer.get_added_tokens_decoder()
        self._special = special = {foreign for foreign, token in added.items() if token.special}
        to_bytes = token_bytes(content.get("decoder"), origin)
        surfaces = []
        for foreign in rows:
            token = None if foreign in special or foreign < 0 else self.tokens[foreign]
            surfaces.append(b"" if token is None else token.encode() if foreign in added else to_bytes(token))
        super().__init__(shown(self.tokens, rows), rows, surfaces)

    def __reduce__(self) -> tuple[type, tuple]:
        """Pickled as what it was made of."""
        return type(self), (self.content, self.rows, self._origin)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> "LibraryTokenizer":
        """Read `tokenizer.json` of a model directory. Raises ModelError if it is missing or damaged."""
        path = Path(directory) / JSON_FILE
        settings = read_settings(directory)
        content, rows = settings.pop("tokenizer", None), settings.pop("rows", None)
        if settings != {"kind": cls.kind} or not isinstance(content, dict) or not are_rows(rows):
            raise damaged(path)
        return cls(content, rows, path)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write `tokenizer.json` into a directory, which is made if need be. Raises DataError if that fails."""
        write_settings(directory, self.kind, rows=self.rows, tokenizer=self.content)

    @property
    def special_names(self) -> list[str]:
        """The special tokens of the other vocabulary."""
        return [token["content"] for token in self.content.get("added_tokens") or [] if token.get("special")]

    @property
    def next_id(self) -> int:
        """The foreign id that a token gets which is added."""
        added = self._tokenizer.get_added_tokens_decoder()
        return max(self._tokenizer.get_vocab_size(with_added_tokens=False), max(added, default=-1) + 1)

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without begin or end marker. Raises DataError as the base class says."""
        with _asking(f"{self._origin} has rules by which this text cannot be cut into tokens"):
            try:
                found = self._tokenizer.encode(text, add_special_tokens=False)
            except (TypeError, UnicodeEncodeError) as error:
                refuse_surrogates([text], error)
                raise
        return self._known([self._ours.get(foreign, UNK) for foreign in found.ids], found.tokens)

    @cached_property
    def _ours(self) -> dict[int, int]:
        """Our ids of the foreign ones that a text can have."""
        pairs = [*enumerate(self.rows)][FIRST_TOKEN:]
        return {foreign: index for index, foreign in pairs if foreign not in self._special}


def _tokenizer(content: dict[str, Any], origin: str | Path) -> Any:
    """The library's tokenizer, which takes a text for nothing but text."""
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise ModelError(f"{origin} needs the library tokenizers: pip install tokenizers") from error
    with _asking(f"{origin} is damaged, or of a later version of the tokenizers library"):
        tokenizer = Tokenizer.from_str(json.dumps({**content, "truncation": None, "padding": None}))
    tokenizer.encode_special_tokens = True
    return tokenizer


@contextmanager
def _asking(fault: str) -> Iterator[None]:
    """Make one sentence of whatever the library does where a file is damaged: it raises, or it panics."""
    try:
        with _SILENCE:
            yield
    except ToolkitError:
        raise
    except BaseException as error:  # a panic is no Exception, and has no class that could be imported
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ModelError(f"{fault}: {error}") from error


class _Silence:
    """While one thread or several are within, nothing comes out of standard error: a panic tells a page there."""

    def __init__(self) -> None:
        self._lock, self._inside, self._kept = Lock(), 0, -1

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                with suppress(OSError):  # it may be closed
                    self._kept = os.dup(2)
                    with Path(os.devnull).open("wb", 0) as nowhere:
                        os.dup2(nowhere.fileno(), 2)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._kept >= 0:
                os.dup2(self._kept, 2)
                os.close(self._kept)
                self._kept = -1


_SILENCE = _Silence()
