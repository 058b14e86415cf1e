"""The tokenizer of a model directory."""

import os
from pathlib import Path

from toolkit.errors import ModelError
from toolkit.tokenization.base import Tokenizer
from toolkit.tokenization.byte_level import ByteTokenizer
from toolkit.tokenization.characters import CharacterTokenizer
from toolkit.tokenization.foreign_library import LibraryTokenizer
from toolkit.tokenization.foreign_sentencepiece import ForeignSentencePieceTokenizer
from toolkit.tokenization.sentencepiece import FILE_NAME, SentencePieceTokenizer
from toolkit.tokenization.storage import JSON_FILE, read_settings

_CLASSES = (CharacterTokenizer, ByteTokenizer, ForeignSentencePieceTokenizer, LibraryTokenizer)
_KINDS = {tokenizer.kind: tokenizer for tokenizer in _CLASSES}


def load_tokenizer(directory: str | os.PathLike[str]) -> Tokenizer:
    """Read the tokenizer that lies in a model directory: `tokenizer.model` or `tokenizer.json`.

    Raises ModelError if there is none or it is damaged, and if there are both.
    """
    directory = Path(directory)
    has_model, has_json = (os.path.lexists(directory / name) for name in (FILE_NAME, JSON_FILE))
    if has_model and has_json:
        raise ModelError(
            f"{directory} has both {FILE_NAME} and {JSON_FILE}: a model has one tokenizer, so remove the other"
        )
    if not has_model and not has_json:
        raise ModelError(f"{directory / FILE_NAME} does not exist, nor {JSON_FILE}: a model directory has one of them")
    if has_model:
        return SentencePieceTokenizer.load(directory)
    kind = read_settings(directory)["kind"]
    if kind not in _KINDS:
        raise ModelError(
            f"{directory / JSON_FILE} is a tokenizer of kind {kind!r:.60}, this toolkit has {', '.join(_KINDS)}: "
            "copy the whole model directory again"
        )
    return _KINDS[kind].load(directory)
