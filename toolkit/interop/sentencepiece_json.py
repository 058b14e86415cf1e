"""A SentencePiece model from elsewhere in the format of the `tokenizers` library."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from toolkit.interop.library_format import Json, bpe, cuts, merges_of, replace, replace_all, tokenizer_content
from toolkit.models.gpt import GPTConfig
from toolkit.tokenization.foreign_sentencepiece import processor
from toolkit.tokenization.pieces import SPACE_MARK
from toolkit.tokenization.special import UNK

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor


def pieces_content(model: bytes, names: Sequence[str], special: Mapping[int, int], config: GPTConfig) -> Json:
    """The content of tokenizer.json for a language model whose tokenizer is a SentencePiece model.

    names: of the ids. special: for each of our special ids the one that it has there. What the library does with white
    space at the ends of a text, and with names of tokens in it, is not always what SentencePiece does.
    """
    own, settings = processor(model, "the tokenizer"), dict(fields(model))
    scores = {own.id_to_piece(index): own.get_score(index) for index in _texts(own)}
    has_bytes = any(own.is_byte(index) for index in range(own.vocab_size()))
    unk = special.get(UNK, 0)
    if dict(fields(settings[_TRAINER])).get(_MODEL_TYPE, _UNIGRAM) == _UNIGRAM:
        vocabulary = [(name, scores.get(name, 0.0)) for name in names]
        content = {"type": "Unigram", "unk_id": unk, "vocab": vocabulary, "byte_fallback": has_bytes}
        cut = cuts([*scores])
    else:
        merges = merges_of(sorted(scores, key=scores.__getitem__, reverse=True))
        content, cut = bpe(names, merges, names[unk], byte_fallback=has_bytes, fuse_unk=True), []
    normalizers = _normalizers(dict(fields(settings[_NORMALIZER])))
    decoders = [replace(SPACE_MARK, " "), {"type": "ByteFallback"}, {"type": "Fuse"}]
    return tokenizer_content(config, names, normalizers, cut, content, decoders, special)


# Numbers of the fields in a SentencePiece model, by its definition in the format of protocol buffers.
_TRAINER, _NORMALIZER = 2, 3
_MODEL_TYPE, _UNIGRAM = 3, 1
_CHARACTERS, _ADDS_SPACE, _REMOVES_SPACES = 2, 3, 4


def _normalizers(settings: dict[int, int | bytes]) -> list[Json]:
    """What a SentencePiece model does to a text before it cuts it."""
    steps: list[Json] = []
    if settings.get(_CHARACTERS):
        steps.append({"type": "Precompiled", "precompiled_charsmap": base64.b64encode(settings[_CHARACTERS]).decode()})
    if settings.get(_REMOVES_SPACES, True):
        steps += [replace_all(" {2,}", " "), replace_all("\\A +| +\\z", "")]
    if settings.get(_ADDS_SPACE, True):
        steps.append({"type": "Prepend", "prepend": " "})
    return [*steps, replace(" ", SPACE_MARK)]


def _texts(own: "SentencePieceProcessor") -> Iterator[int]:
    """The ids of the pieces that texts have."""
    for index in range(own.vocab_size()):
        if not (own.is_control(index) or own.is_unknown(index) or own.is_unused(index) or own.is_byte(index)):
            yield index


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbers and values of the fields of a message in the format of protocol buffers: numbers, and bytes."""
    place = 0
    while place < len(message):
        key, place = _number(message, place)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, place = _number(message, place)
            yield number, value
            continue
        size, place = _number(message, place) if kind == 2 else ({1: 8, 5: 4}[kind], place)
        yield number, message[place : place + size]
        place += size


def _number(message: bytes, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where the next field begins."""
    value = shift = 0
    while message[place] >= 128:
        value |= (message[place] & 127) << shift
        place, shift = place + 1, shift + 7
    return value | message[place] << shift, place + 1
