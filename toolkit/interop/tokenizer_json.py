"""The content of a tokenizer.json, in the format of the `tokenizers` library, that gives the same ids as a tokenizer.

Three things need care.

- ▁ stands for a space. A real ▁ of a text is spelled in its bytes, which we do by cutting the text there (see
  `toolkit.tokenization.sentencepiece`). Here a normaliser writes the names of the three bytes instead, each behind a
  mark, and a unigram model takes the names for the tokens.
- Nothing else that looks like the name of a byte or of a special token may become one: it is cut.
- The library looks for special tokens in every text. The setting `split_special_tokens` turns that off, but for models
  that converse, whose conversations are texts there (see `toolkit.interop.chat_templates`).

What is not the same. BPE: a real ▁ is read as a space, because that model knows no names. Characters that a character
tokenizer refuses are <unk>. <unk> is shown as nothing. Of a run of bytes that is not all valid, every byte is shown as
U+FFFD. Decoded text is not put into normal form C. Lower case makes every capital sigma σ, where we have ς at the end
of a word. Scores are added up in float64 for every word, by SentencePiece in float32 over the whole text: in texts of
many thousand characters, that decides here and there between two segmentations.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from toolkit.errors import ModelError
from toolkit.interop.chat_templates import MARK
from toolkit.interop.hugging_face_files import Config
from toolkit.interop.tokenizer_json_parts import (
    Json,
    bpe,
    cuts,
    merges_of,
    replace,
    replace_all,
    split,
    tokenizer_content,
)
from toolkit.models.gpt import GPTConfig
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer
from toolkit.tokenization.segmentation import SPACE_MARK
from toolkit.tokenization.sentencepiece import FIRST_PIECE, SPACE_MARK_IDS, open_processor
from toolkit.tokenization.special import SPECIAL_TOKENS, UNK

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

OwnTokenizer = SentencePieceTokenizer | CharacterTokenizer | ByteTokenizer

_NORMAL_FORM = {"type": "NFC"}
_BYTES, _TOGETHER = {"type": "ByteFallback"}, {"type": "Fuse"}


def own_content(tokenizer: OwnTokenizer, config: Config) -> Json:
    """The content of tokenizer.json for one of our own tokenizers, in a model of this shape."""
    pieces = [tokenizer.piece(index) for index in range(tokenizer.vocab_size)]
    if not isinstance(tokenizer, SentencePieceTokenizer):
        model = bpe(pieces, [], SPECIAL_TOKENS[UNK], byte_fallback=isinstance(tokenizer, ByteTokenizer))
        return tokenizer_content(config, pieces, [_NORMAL_FORM], [], model, [_BYTES, _TOGETHER])
    normalizers, words = [_NORMAL_FORM, replace(" ", SPACE_MARK)], [split({"String": SPACE_MARK}, "MergedWithNext")]
    if tokenizer.is_bpe:
        model = bpe(pieces, merges_of(pieces[FIRST_PIECE:]), SPECIAL_TOKENS[UNK], byte_fallback=True)
    else:
        vocabulary = [(piece, tokenizer.scores.get(piece, 0.0)) for piece in pieces]
        model = {"type": "Unigram", "unk_id": UNK, "vocab": vocabulary, "byte_fallback": True}
        marked = "".join(MARK + pieces[index] for index in SPACE_MARK_IDS)
        normalizers.insert(1, replace(SPACE_MARK, marked))
        words = [*cuts(pieces[FIRST_PIECE:]), *words]
    return tokenizer_content(config, pieces, normalizers, words, model, [replace(SPACE_MARK, " "), _BYTES, _TOGETHER])


def pieces_content(model: bytes, names: Sequence[str], special: Mapping[int, int], config: GPTConfig) -> Json:
    """The content of tokenizer.json for a language model whose tokenizer is a SentencePiece model.

    names: of the ids. special: for each of our special ids the one that it has there. What the library does with white
    space at the ends of a text, and with names of tokens in it, is not always what SentencePiece does.
    """
    own = open_processor(model, "the tokenizer")
    scores = {own.id_to_piece(index): own.get_score(index) for index in _texts(own)}
    has_bytes = any(own.is_byte(index) for index in range(own.vocab_size()))
    unk = special.get(UNK, 0)
    if _section(model, _TRAINER).get(_MODEL_TYPE, _UNIGRAM) == _UNIGRAM:
        vocabulary = [(name, scores.get(name, 0.0)) for name in names]
        content = {"type": "Unigram", "unk_id": unk, "vocab": vocabulary, "byte_fallback": has_bytes}
        cut = cuts([*scores])
    else:
        merges = merges_of(sorted(scores, key=scores.__getitem__, reverse=True))
        content, cut = bpe(names, merges, names[unk], byte_fallback=has_bytes, fuse_unk=True), []
    normalizers = _normalizers(_section(model, _NORMALIZER))
    if config.template != "none":  # what is said in a conversation is always put into normal form
        normalizers.insert(0, _NORMAL_FORM)
    decoders = [replace(SPACE_MARK, " "), {"type": "ByteFallback"}, {"type": "Fuse"}]
    return tokenizer_content(config, names, normalizers, cut, content, decoders, special)


# Numbers of the fields in a SentencePiece model, by its definition in the format of protocol buffers.
_TRAINER, _NORMALIZER = 2, 3
_MODEL_TYPE, _UNIGRAM = 3, 1
_CHARACTERS, _ADDS_SPACE, _REMOVES_SPACES = 2, 3, 4


def _normalizers(settings: dict[int, int | bytes]) -> list[Json]:
    """What a SentencePiece model does to a text before it cuts it."""
    steps: list[Json] = []
    if isinstance(characters := settings.get(_CHARACTERS), bytes) and characters:
        steps.append({"type": "Precompiled", "precompiled_charsmap": base64.b64encode(characters).decode()})
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


def _section(model: bytes, number: int) -> dict[int, int | bytes]:
    """The settings that stand under a number in a SentencePiece model; none where it leaves them out.

    Raises ModelError where they cannot be told.
    """
    try:
        found = dict(fields(model)).get(number)
        return dict(fields(found)) if isinstance(found, bytes) else {}
    except (IndexError, KeyError):
        raise ModelError("the tokenizer is damaged: its SentencePiece model has settings that cannot be read") from None


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The numbers and values of the fields of a message in the format of protocol buffers: numbers, and bytes.

    Raises IndexError or KeyError where it is none.
    """
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
