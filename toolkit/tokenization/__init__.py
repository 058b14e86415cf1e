"""Tokenization: text to ids and back, without loss; conversations as ids; text while a model writes it."""

import os
from pathlib import Path

from toolkit.errors import ModelError
from toolkit.tokenization.characters import ByteTokenizer, CharacterTokenizer
from toolkit.tokenization.chat_template import ChatTemplate, Message, make_template
from toolkit.tokenization.foreign import ForeignSentencePieceTokenizer
from toolkit.tokenization.foreign_library import LibraryTokenizer
from toolkit.tokenization.ids import IdTokenizer
from toolkit.tokenization.sentencepiece import FILE_NAME, SentencePieceTokenizer
from toolkit.tokenization.streaming import Detokenizer, StopStrings
from toolkit.tokenization.tokenizer import JSON_FILE, Tokenizer, read_settings

__all__ = [
    "ByteTokenizer",
    "CharacterTokenizer",
    "ChatTemplate",
    "Detokenizer",
    "IdTokenizer",
    "Message",
    "SentencePieceTokenizer",
    "StopStrings",
    "Tokenizer",
    "load_tokenizer",
    "make_template",
]

_KINDS = {
    tokenizer.kind: tokenizer
    for tokenizer in (CharacterTokenizer, ByteTokenizer, ForeignSentencePieceTokenizer, LibraryTokenizer, IdTokenizer)
}


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
    settings, path = read_settings(directory), directory / JSON_FILE
    kind = settings["kind"]
    if kind not in _KINDS:
        raise ModelError(
            f"{path} is a tokenizer of kind {kind!r:.60}, this toolkit has {', '.join(_KINDS)}: "
            "copy the whole model directory again"
        )
    return _KINDS[kind].from_settings(settings, path)
