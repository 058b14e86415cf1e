"""The base of all tokenizers: text to ids and back, and the file of a model directory that holds one.

The text of some ids is the lenient decoding of their bytes, joined: every byte that is no part of a character becomes
U+FFFD, one for each. This is how SentencePiece decodes byte pieces. 0xFF occurs nowhere in UTF-8, so an id that stands
for lost text has that as its bytes.
"""

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from toolkit.display import counted
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.files import atomic_writer
from toolkit.tokenization.carrying import Carrier
from toolkit.tokenization.languages import Languages
from toolkit.tokenization.special import FIRST_TOKEN, UNK
from toolkit.untrusted import (
    ANYTHING,
    VOCABULARY_BYTES,
    Record,
    Schema,
    Text,
    UnfitError,
    check,
    parse_json,
    read_bytes,
)

REPLACEMENT = "\ufffd"
LOST = b"\xff"  # the bytes of <unk>
SPECIAL_SURFACES = tuple(LOST if index == UNK else b"" for index in range(FIRST_TOKEN))

JSON_FILE = "tokenizer.json"  # of all tokenizers but our own SentencePiece ones
JSON_VERSION = 1

_INVALID = re.compile("[\udc80-\udcff]")
_ANY_KIND = Record({"kind": Text()}, needed=("kind",), others=ANYTHING)


class Tokenizer(ABC):
    """Text to ids and back: decode(encode(text)) is text in Unicode normal form C, for every text.

    That holds for our own; tokenizers of imported models may lose something (see `ForeignTokenizer`).
    """

    pieces: Sequence[str]  # each id as a person is shown it: "▁house", "<0x0A>", "</s>"
    surfaces: Sequence[bytes]  # what each adds to a text: nothing (control ids), maybe part of a character

    kind: ClassVar[str] = ""  # names the class in tokenizer.json
    fields: ClassVar[Mapping[str, Schema]] = {}  # of tokenizer.json, beside version and kind
    optional: ClassVar[Mapping[str, Schema]] = {}  # those that it may have

    carrier: Carrier | None = None  # of a translator that carries over numbers, addresses and unknown words
    languages: Languages | None = None  # of a model that knows several, whose texts begin with the token of theirs

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {counted(self.vocab_size, 'token')}>"

    @property
    def source(self) -> "Tokenizer":
        """The tokenizer for the texts that a translator reads: this one, but for some imported pairs with equal ids."""
        return self

    @property
    def vocab_size(self) -> int:
        """The number of ids, the special ones included: every id is below it."""
        return len(self.pieces)

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Encode a text, put into normal form C, without BOS and EOS. No text yields a control id.

        Raises DataError for half of a surrogate pair, and for what the vocabulary cannot express.
        """

    def encode_batch(
        self, texts: Iterable[str], alpha: float = 0.0, seed: int | Sequence[int] | None = None
    ) -> list[list[int]]:
        """Encode every text; with `alpha` above 0, draw random segmentations (subword regularisation).

        Raises ConfigError for an alpha other than 0 where a text has only one segmentation.
        """
        if alpha != 0:
            raise ConfigError(
                f"alpha is {alpha}: this tokenizer can cut a text in only one way: choose 0, or SentencePiece"
            )
        return [self.encode(text) for text in texts]

    def possible_ids(self, texts: Iterable[str]) -> np.ndarray:
        """List the ids, sorted, (P,), that random segmentations of the texts may have beside those of `encode`."""
        return np.empty(0, np.int64)

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids (any integers, NumPy's too). Control ids are skipped; <unk> and invalid bytes become U+FFFD.

        Raises IndexError for an id outside the vocabulary.
        """
        return lenient_text(b"".join(map(self.surface, ids)))

    def shown_ids(self, ids: Iterable[int]) -> list[int]:
        """Give ids as users of the model know them: unchanged, but where it is used by ids from elsewhere."""
        return list(ids)

    def given_ids(self, ids: Iterable[int]) -> list[int]:
        """Give the ids of this tokenizer from what users call them.  Raises DataError for one that the model lacks."""
        return list(ids)

    def piece(self, token_id: int) -> str:
        """Look up how a person is shown an id. Raises IndexError as `decode`."""
        return self.pieces[self._inside(token_id)]

    def surface(self, token_id: int) -> bytes:
        """Look up the bytes that an id adds to a text. Raises IndexError as `decode`."""
        return self.surfaces[self._inside(token_id)]

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the tokenizer into a model directory, which is made if need be. Raises DataError if that fails."""
        settings = {"version": JSON_VERSION, "kind": self.kind, **self._fields()}
        write_file(directory, JSON_FILE, f"{json.dumps(settings, ensure_ascii=False, indent=2)}\n".encode())

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Self:
        """Read a tokenizer of this class from a model directory. Raises ModelError if it is missing or damaged."""
        return cls.from_settings(read_settings(directory), Path(directory) / JSON_FILE)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], path: Path) -> Self:
        """Make a tokenizer from what `read_settings` has read from a path. Raises ModelError for damage."""
        fields = {"kind": Schema(cls.kind, cls.kind.__eq__), **cls.fields}
        try:
            check(settings, Record({**fields, **cls.optional}, needed=fields))
            return cls._from_fields({name: settings.get(name) for name in (*cls.fields, *cls.optional)}, path)
        except (TypeError, ValueError, DataError) as error:
            raise damaged(path) from error

    def _fields(self) -> dict[str, Any]:
        """Return what `save` writes under the keys of `fields`."""
        return {}

    @classmethod
    def _from_fields(cls, values: Mapping[str, Any], path: Path) -> Self:
        """Make a tokenizer from what `_fields` gave. Raises TypeError, ValueError or a ToolkitError for damage."""
        return cls(**values)

    def _inside(self, token_id: int) -> int:
        """Return the id as an int. Raises IndexError for one outside the vocabulary."""
        index = int(token_id)
        if not 0 <= index < len(self.pieces):
            raise IndexError(f"id {index} is outside the vocabulary of {self.vocab_size}")
        return index


def lenient_text(content: bytes) -> str:
    """Decode UTF-8 with U+FFFD for each byte that is no part of a character."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return replace_invalid(content.decode("utf-8", "surrogateescape"))


def replace_invalid(text: str) -> str:
    """Put U+FFFD for each byte that decoding with "surrogateescape" has kept as half of a surrogate pair."""
    return text if text.isascii() else _INVALID.sub(REPLACEMENT, text)


def read_settings(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """Read `tokenizer.json`, of which "kind" is a text. Raises ModelError if it is missing, damaged or foreign."""
    path = Path(directory) / JSON_FILE
    try:
        settings = check(parse_json(read_file(path)), _ANY_KIND)
    except UnfitError:
        raise damaged(path) from None
    version = settings.pop("version", None)
    if version != JSON_VERSION or isinstance(version, bool):
        found = "no format version" if version is None else f"format version {version!r:.60}"
        raise ModelError(
            f"{path} has {found}, and this toolkit reads version {JSON_VERSION}: use the toolkit that wrote it"
        )
    return settings


def read_file(path: Path) -> bytes:
    """Read a tokenizer's file. Raises ModelError if it is missing, unreadable or too large."""
    try:
        return read_bytes(path, VOCABULARY_BYTES)
    except FileNotFoundError as error:
        raise ModelError(f"{path} does not exist: a model directory holds its tokenizer there") from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error


def write_file(directory: str | os.PathLike[str], name: str, content: bytes) -> None:
    """Write a tokenizer's file into a directory, which is made if need be. Raises DataError if that fails."""
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{directory} cannot be made a directory: {error.strerror or error}") from error
    with atomic_writer(directory / name) as file:
        file.write(content)


def damaged(path: str | Path) -> ModelError:
    """Make the error for a file that holds something else than a tokenizer of ours."""
    return ModelError(f"{path} is damaged or is not a tokenizer of this toolkit: copy the whole model directory again")
