"""Tokenizers of the `tokenizers` library, an optional one: byte-level BPE as GPT-2's, and everything else it has.

The bytes that each token adds to a text come from the decoder that the library's file describes.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Self

from toolkit.errors import ModelError, ToolkitError
from toolkit.tokenization.foreign import ROWS, ForeignTokenizer, piece_names
from toolkit.tokenization.languages import LANGUAGES, Languages
from toolkit.tokenization.normal_form import refuse_surrogates
from toolkit.tokenization.segmentation import SPACE_MARK
from toolkit.tokenization.special import FIRST_TOKEN, UNK
from toolkit.untrusted import OBJECT

Json = dict[str, Any]
Part = str | bytes  # a token on its way: bytes once it is known which it stands for
Step = Callable[[str], Part]

_BYTE_NAME = re.compile("<0x([0-9A-Fa-f]{2})>")


class LibraryTokenizer(ForeignTokenizer):
    """The tokenizer that a tokenizer.json of the library describes, under our ids.

    Byte-level BPE gives every text back; others may normalise it, put a space in front or not know its characters. What
    looks like a special token in a text is text.
    """

    kind = "tokenizers"
    fields: ClassVar = {"rows": ROWS, "tokenizer": OBJECT}
    optional: ClassVar = {"languages": LANGUAGES}

    def __init__(
        self,
        content: dict[str, Any],
        rows: Sequence[int],
        origin: str | Path = "the tokenizer",
        languages: Languages | None = None,
    ):
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
        super().__init__(piece_names(self.tokens, rows), rows, surfaces, languages)

    def __reduce__(self) -> tuple[type, tuple]:
        return type(self), (self.content, self.rows, self._origin, self.languages)

    def with_languages(self, languages: Languages) -> Self:
        """Give the same tokenizer for a model that knows these languages."""
        return type(self)(self.content, self.rows, self._origin, languages)

    @classmethod
    def _from_fields(cls, values: Mapping[str, Any], path: Path) -> "LibraryTokenizer":
        return cls(values["tokenizer"], values["rows"], path, Languages.from_fields(values["languages"]))

    def _fields(self) -> dict[str, Any]:
        return {"rows": self.rows, "tokenizer": self.content, **self._language_fields()}

    @property
    def special_names(self) -> list[str]:
        """The special tokens of the other vocabulary."""
        return [token["content"] for token in self.content.get("added_tokens") or [] if token.get("special")]

    @property
    def next_id(self) -> int:
        """The foreign id that the next added token gets."""
        added = self._tokenizer.get_added_tokens_decoder()
        return max(self._tokenizer.get_vocab_size(with_added_tokens=False), max(added, default=-1) + 1)

    def encode(self, text: str) -> list[int]:
        with _asking(f"{self._origin} has rules by which this text cannot be cut into tokens"):
            try:
                found = self._tokenizer.encode(text, add_special_tokens=False)
            except (TypeError, UnicodeEncodeError) as error:
                refuse_surrogates([text], error)
                raise
        return self._known([self._ours.get(foreign, UNK) for foreign in found.ids], found.tokens)

    @cached_property
    def _ours(self) -> dict[int, int]:
        pairs = [*enumerate(self.rows)][FIRST_TOKEN:]
        return {foreign: index for index, foreign in pairs if foreign not in self._special}


def _tokenizer(content: dict[str, Any], origin: str | Path) -> Any:
    """Make the library's tokenizer, which takes a text for nothing but text."""
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
    """Turn whatever the library does where a file is damaged into one sentence: it raises, or it panics."""
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
    """Closes standard error while one thread or several are within: a panic of the library prints a page there."""

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


def byte_characters() -> dict[int, str]:
    """Map bytes to characters as byte-level BPE does (Radford et al. 2019): to themselves, or from U+0100 on."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {byte: chr(256 + index) for index, byte in enumerate(others)}


_BYTES = {character: byte for byte, character in byte_characters().items()}


def token_bytes(decoder: Json | None, origin: str | Path = "the tokenizer") -> Callable[[str], bytes]:
    """Make a function from a token to its bytes. Raises ModelError for a decoder that does not work token by token.

    A space that a decoder removes from the beginning of a text stays: what continues a text begins with one.
    """
    steps = [_step(each, origin) for each in _each(decoder, origin)]

    def surface(token: str) -> bytes:
        part: Part = token
        for step in steps:
            part = step(part) if isinstance(part, str) else part
        return part.encode() if isinstance(part, str) else part

    return surface


def _each(decoder: Json | None, origin: str | Path) -> list[Json]:
    """List the steps of a decoder, up to the one that joins all tokens."""
    if decoder is None:
        return [{"type": "WordPiece", "prefix": ""}]
    if not isinstance(decoder, dict):  # the library takes a list for one
        raise ModelError(f"{origin} is damaged: a decoder is no object")
    if decoder.get("type") != "Sequence":
        return [decoder]
    steps: list[Json] = []
    for each in decoder.get("decoders", []):
        if isinstance(each, dict) and each.get("type") == "Fuse":
            break
        steps += _each(each, origin)
    return steps


def _step(decoder: Json, origin: str | Path) -> Step:
    kind, pattern = decoder.get("type"), decoder.get("pattern")
    if kind == "ByteLevel":
        return lambda token: bytes(map(_BYTES.get, token)) if _BYTES.keys() >= {*token} else token.encode()
    if kind == "ByteFallback":
        return lambda token: bytes([int(name[1], 16)]) if (name := _BYTE_NAME.fullmatch(token)) else token
    if kind == "Fuse":
        return lambda token: token
    if kind == "Metaspace":
        mark = decoder.get("replacement", SPACE_MARK)
        return lambda token: token.replace(mark, " ")
    if kind == "Replace" and isinstance(pattern, dict) and isinstance(pattern.get("String"), str):
        return lambda token: token.replace(pattern["String"], decoder["content"])
    if kind == "WordPiece":
        prefix = decoder.get("prefix", "##")
        return lambda token: token.removeprefix(prefix) if prefix and token.startswith(prefix) else f" {token}"
    if kind == "BPEDecoder":
        suffix = decoder.get("suffix", "</w>")
        return lambda token: f"{token.removesuffix(suffix)} " if token.endswith(suffix) else token
    raise ModelError(f"{origin} shows its tokens by a decoder {kind!r:.60}, which cannot be done token by token")
