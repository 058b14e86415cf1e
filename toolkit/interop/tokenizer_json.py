"""The content of a tokenizer.json, in the format of the `tokenizers` library, that gives the same ids as a tokenizer.

Its steps are normalisers (text to text), pre-tokenizers (where no token may reach across), a model (text to tokens), a
post-processor (special tokens around it) and decoders (tokens to text). Three things need care.

- ▁ stands for a space. A real ▁ of a text is spelled in its bytes, which we do by cutting the text there (see
  `toolkit.tokenization.sentencepiece`). Here a normaliser writes the names of the three bytes instead, each behind a
  mark, and a unigram model takes the names for the tokens.
- Nothing else that looks like the name of a byte or of a special token may become one: it is cut.
- The library looks for special tokens in every text. The setting `split_special_tokens` turns that off, but for models
  that converse, whose conversations are texts there (see `toolkit.interop.chat_templates`).

Differences that remain. BPE: a real ▁ is read as a space, because that model knows no names. Characters that a
character tokenizer refuses are <unk>. <unk> is shown as nothing. Of a run of bytes that is not all valid, every byte
is shown as U+FFFD. Decoded text is not put into normal form C. Lower case makes every capital sigma σ, where we have
ς at the end of a word. Scores are added up in float64 for every word, by SentencePiece in float32 over the whole
text: in texts of many thousand characters, that decides here and there between two segmentations.
"""

import base64
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from toolkit.errors import ModelError
from toolkit.interop.chat_templates import MARK, joining
from toolkit.interop.hugging_face_files import Config
from toolkit.models.gpt import GPTConfig
from toolkit.models.seq2seq import Seq2SeqConfig
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer
from toolkit.tokenization.segmentation import SPACE_MARK
from toolkit.tokenization.sentencepiece import FIRST_PIECE, SPACE_MARK_IDS, open_processor
from toolkit.tokenization.special import BOS, EOS, SPECIAL_TOKENS, UNK

Json = dict[str, Any]
PatternKind = Literal["String", "Regex"]

OwnTokenizer = SentencePieceTokenizer | CharacterTokenizer | ByteTokenizer

_NORMAL_FORM = {"type": "NFC"}
_BYTES, _TOGETHER = {"type": "ByteFallback"}, {"type": "Fuse"}
_PIECES_TO_TEXT = [{"type": "Replace", "pattern": {"String": SPACE_MARK}, "content": " "}, _BYTES, _TOGETHER]


def own_content(tokenizer: OwnTokenizer, config: Config) -> Json:
    """Describe one of our own tokenizers, in a model of this shape."""
    pieces = [tokenizer.piece(index) for index in range(tokenizer.vocab_size)]
    ids = {piece: index for index, piece in enumerate(pieces)}
    if not isinstance(tokenizer, SentencePieceTokenizer):
        model = bpe(ids, [], SPECIAL_TOKENS[UNK], byte_fallback=isinstance(tokenizer, ByteTokenizer))
        return tokenizer_content(config, pieces, [_NORMAL_FORM], [], model, [_BYTES, _TOGETHER])
    normalizers, words = (
        [_NORMAL_FORM, replace("String", " ", SPACE_MARK)],
        [split("String", SPACE_MARK, "MergedWithNext")],
    )
    if tokenizer.is_bpe:
        model = bpe(ids, merges_of(pieces[FIRST_PIECE:]), SPECIAL_TOKENS[UNK], byte_fallback=True)
    else:
        vocabulary = [(piece, tokenizer.scores.get(piece, 0.0)) for piece in pieces]
        model = {"type": "Unigram", "unk_id": UNK, "vocab": vocabulary, "byte_fallback": True}
        marked = "".join(MARK + pieces[index] for index in SPACE_MARK_IDS)
        normalizers.insert(1, replace("String", SPACE_MARK, marked))
        words = [*cuts(pieces[FIRST_PIECE:]), *words]
    return tokenizer_content(config, pieces, normalizers, words, model, _PIECES_TO_TEXT)


def pieces_content(model: bytes, names: Sequence[str], special: Mapping[int, int], config: GPTConfig) -> Json:
    """Describe the SentencePiece model that is the tokenizer of a language model.

    names: of the ids. special: for each of our special ids the one that it has there. What the library does with white
    space at the ends of a text, and with names of tokens in it, is not always what SentencePiece does.
    """
    own = open_processor(model, "the tokenizer")
    bytes_, kinds = {*filter(own.is_byte, range(own.vocab_size()))}, (own.is_control, own.is_unknown, own.is_unused)
    texts = (each for each in range(own.vocab_size()) if not (each in bytes_ or any(kind(each) for kind in kinds)))
    scores = {own.id_to_piece(index): own.get_score(index) for index in texts}
    unk = special.get(UNK, 0)
    if _section(model, _TRAINER).get(_MODEL_TYPE, _UNIGRAM) == _UNIGRAM:
        vocabulary = [(name, scores.get(name, 0.0)) for name in names]
        content = {"type": "Unigram", "unk_id": unk, "vocab": vocabulary, "byte_fallback": bool(bytes_)}
        cut = cuts([*scores])
    else:
        merges = merges_of(sorted(scores, key=scores.__getitem__, reverse=True))
        ids = {name: index for index, name in enumerate(names)}
        content, cut = bpe(ids, merges, names[unk], byte_fallback=bool(bytes_), fuse_unk=True), []
    normalizers = _normalizers(_section(model, _NORMALIZER))
    if config.template != "none":  # contents of conversations are always put into normal form
        normalizers.insert(0, _NORMAL_FORM)
    return tokenizer_content(config, names, normalizers, cut, content, _PIECES_TO_TEXT, special)


# Numbers of the fields in a SentencePiece model, by its definition in the format of protocol buffers.
_TRAINER, _NORMALIZER = 2, 3
_MODEL_TYPE, _UNIGRAM = 3, 1
_CHARACTERS, _ADDS_SPACE, _REMOVES_SPACES = 2, 3, 4


def _normalizers(settings: dict[int, int | bytes]) -> list[Json]:
    """Give the steps that a SentencePiece model takes before it cuts a text."""
    steps: list[Json] = []
    if isinstance(characters := settings.get(_CHARACTERS), bytes) and characters:
        steps.append({"type": "Precompiled", "precompiled_charsmap": base64.b64encode(characters).decode()})
    if settings.get(_REMOVES_SPACES, True):
        steps += [replace("Regex", " {2,}", " "), replace("Regex", "\\A +| +\\z", "")]
    if settings.get(_ADDS_SPACE, True):
        steps.append({"type": "Prepend", "prepend": " "})
    return [*steps, replace("String", " ", SPACE_MARK)]


def _section(model: bytes, number: int) -> dict[int, int | bytes]:
    """Read the settings under a number in a SentencePiece model; none where it leaves them out.

    Raises ModelError where they cannot be told.
    """
    try:
        found = dict(fields(model)).get(number)
        return dict(fields(found)) if isinstance(found, bytes) else {}
    except (IndexError, KeyError):
        raise ModelError("the tokenizer is damaged: its SentencePiece model has settings that cannot be read") from None


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message in the format of protocol buffers: numbers, with values that are numbers or bytes.

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
    """Read a number of seven bits a byte, the lowest first -> it, and the place of the next field."""
    value = shift = 0
    while message[place] >= 128:
        value |= (message[place] & 127) << shift
        place, shift = place + 1, shift + 7
    return value | message[place] << shift, place + 1


_WHITE_SPACE = "[ \\t\\r\\n]+"  # of which `tidy` makes one space
_ENDS = "\\A[\\s\\x1c-\\x1f]+|[\\s\\x1c-\\x1f]+\\z"  # what Python strips
_ANY_BYTE = ("<", "0", "x", "0123456789ABCDEF", "0123456789ABCDEF", ">")


def tokenizer_content(
    config: Config,
    names: Sequence[str],
    normalizers: Sequence[Json],
    pre_tokenizers: Sequence[Json],
    model: Json,
    decoders: Sequence[Json],
    special: Mapping[int, int] | None = None,
) -> Json:
    """Describe a tokenizer for a model of this shape.

    A translator's text is tidied as `toolkit.data.sentences.spaced` and `sentence_text` do, and ends with </s>; a
    language model's begins with <s> if `config.begin` says so, and one that converses is for a template of
    `toolkit.interop.chat_templates`. names: of the ids. special: for each of our special ids the one that it has
    there; as it is, if not given.
    """
    special = special or {index: index for index in range(len(SPECIAL_TOKENS))}
    before, after = ([special[BOS]] if config.begin else [], []) if isinstance(config, GPTConfig) else ([], [EOS])
    if isinstance(config, GPTConfig) and config.template != "none":
        normalizers = [joining(names[index] for index in special.values()), *normalizers]
    if isinstance(config, Seq2SeqConfig):
        tidy = [replace("Regex", _WHITE_SPACE, " "), replace("Regex", _ENDS, "")]
        lower = [{"type": "Lowercase"}] if config.ignore_case else []
        normalizers = [_NORMAL_FORM, *tidy, *lower, {"type": "Prepend", "prepend": " "}, *normalizers]
        decoders = [*decoders, *tidy]
    return _whole(
        {index: names[index] for index in special.values()},
        {"type": "Sequence", "normalizers": [*normalizers]} if normalizers else None,
        {"type": "Sequence", "pretokenizers": [*pre_tokenizers]} if pre_tokenizers else None,
        around(before, after, names),
        {"type": "Sequence", "decoders": [*decoders]},
        model,
    )


def byte_level_content(ids: Json, merges: list[list[str]], added: Mapping[int, str], prefix: bool) -> Json:
    """Describe byte-level BPE as GPT-2 has it (Radford et al. 2019), in older files vocab.json and merges.txt.

    added: names of special tokens by their ids. prefix: a text begins with a space.
    """
    step = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True}
    model = bpe(ids, merges, None, continuing_subword_prefix="", end_of_word_suffix="")
    return _whole(added, None, step, None, step, model)


def _whole(added: Mapping[int, str], normalizer: Any, pre_tokenizer: Any, last: Any, decoder: Any, model: Json) -> Json:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special_token(index, added[index]) for index in sorted(added)],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": last,
        "decoder": decoder,
        "model": model,
    }


def around(before: Sequence[int], after: Sequence[int], names: Sequence[str]) -> Json:
    """Give the step that puts special tokens, by their ids, around a text, or around two."""

    def tokens(ids: Sequence[int]) -> list[Json]:
        return [{"SpecialToken": {"id": names[index], "type_id": 0}} for index in ids]

    def special(index: int) -> Json:
        return {"id": names[index], "ids": [index], "tokens": [names[index]]}

    first, second = ({"Sequence": {"id": text, "type_id": 0}} for text in "AB")
    return {
        "type": "TemplateProcessing",
        "single": [*tokens(before), first, *tokens(after)],
        "pair": [*tokens(before), first, second, *tokens(after)],
        "special_tokens": {names[index]: special(index) for index in (*before, *after)},
    }


def bpe(ids: Mapping[str, int], merges: Sequence[Sequence[str]], unk: str | None, **settings: Any) -> Json:
    """Describe a model that joins pairs, the first of `merges` first.  ids: of all pieces."""
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unk,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": ids,
        "merges": merges,
        **settings,
    }


def merges_of(pieces: Sequence[str]) -> list[tuple[str, str]]:
    """List all pairs of pieces that make a piece, the best piece first: SentencePiece joins whatever gives it."""
    known = set(pieces)
    return [
        (piece[:place], piece[place:])
        for piece in pieces
        for place in range(1, len(piece))
        if piece[:place] in known and piece[place:] in known
    ]


def cuts(pieces: Sequence[str]) -> list[Json]:
    """Give the steps that cut names in a text, lest a unigram model take them for tokens, and that drop the marks.

    A name of a special token or a byte is cut at a place that is inside of no piece, so that it is cut there anyway;
    one that has no such place is left as it is. A name behind a mark is meant to be a token.
    """
    inside = {piece[place : place + 2] for piece in pieces for place in range(len(piece) - 1)}
    patterns = [_cut(name, inside) for name in (*SPECIAL_TOKENS, _ANY_BYTE)]
    return [
        split("Regex", "|".join(filter(None, patterns)), "MergedWithPrevious"),
        split("String", MARK, "Removed"),
    ]


def _cut(name: Sequence[str], inside: Collection[str]) -> str:
    """Write a pattern for the character of a name behind which it can be cut, or an empty one.

    name: the characters possible in every place. inside: pairs of characters that are within pieces.
    """
    classes = [f"[{re.escape(characters)}]" for characters in name]
    for place in range(1, len(name)):
        if not any(first + second in inside for first in name[place - 1] for second in name[place]):
            front, last, rest = "".join(classes[: place - 1]), classes[place - 1], "".join(classes[place:])
            return f"(?<!{MARK}{front}){f'(?<={front})' if front else ''}{last}(?={rest})"
    return ""


def special_token(index: int, name: str) -> Json:
    """Describe a token that no text has."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": index, "content": name, **flags}


def replace(kind: PatternKind, pattern: str, content: str) -> Json:
    """Give the step that writes `content` for everything that a pattern finds."""
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def split(kind: PatternKind, pattern: str, behavior: str) -> Json:
    """Give the step that cuts a text at a pattern."""
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": False}


def content_ids(content: Json) -> dict[str, int]:
    """Give the ids of the tokens that the model of a tokenizer.json knows by itself."""
    vocabulary = content["model"]["vocab"]
    if isinstance(vocabulary, list):  # unigram: pieces with their scores
        return {piece: index for index, (piece, _) in enumerate(vocabulary)}
    return vocabulary


def first_added(content: Json) -> int | None:
    """Find the id of the special token that the last step of a tokenizer.json puts in front of a text, if it does."""
    last = content.get("post_processor") or {}
    for step in last.get("processors", [last]):
        found = step.get("cls") if step.get("type") in ("RobertaProcessing", "BertProcessing") else None
        if step.get("type") == "TemplateProcessing":
            with suppress(KeyError, IndexError, TypeError):  # a text is first, or the library refuses it
                found = step["special_tokens"][step["single"][0]["SpecialToken"]["id"]]["ids"]
        if isinstance(found, list) and found and type(found[-1]) is int:
            return found[-1]
    return None


def unknown_id(content: Json) -> int | None:
    """Find the id that the model of a tokenizer.json gives to what it does not know."""
    model = content["model"]
    found = model.get("unk_id", content_ids(content).get(str(model.get("unk_token"))))
    return found if type(found) is int else None
