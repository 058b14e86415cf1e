"""Parts of a tokenizer.json, in the format of the `tokenizers` library.

Its steps are normalisers (text to text), pre-tokenizers (where no token may reach across), a model (text to tokens), a
post-processor (special tokens around it) and decoders (tokens to text).
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from toolkit.interop.chat_templates import MARK, joining
from toolkit.interop.hugging_face_files import Config
from toolkit.models.gpt import GPTConfig
from toolkit.models.seq2seq import Seq2SeqConfig
from toolkit.tokenization.special import BOS, EOS, SPECIAL_TOKENS

Json = dict[str, Any]

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
    """All of it, for a model of this shape.

    A translator's text is tidied as `toolkit.data.sentences.spaced` and `sentence_text` do, and ends with </s>; a
    language model's begins with <s> if `config.begin` says so, and one that converses is for a template of
    `toolkit.interop.chat_templates`. names: of the ids. special: for each of our special ids
    the one that it has there; as it is, if not given.
    """
    special = special or {index: index for index in range(len(SPECIAL_TOKENS))}
    before, after = ([special[BOS]] if config.begin else [], []) if isinstance(config, GPTConfig) else ([], [EOS])
    if isinstance(config, GPTConfig) and config.template != "none":
        normalizers = [joining(names[index] for index in special.values()), *normalizers]
    if isinstance(config, Seq2SeqConfig):
        normalizers = [*_sentence(config.ignore_case), *normalizers]
        decoders = [*decoders, replace_all(_WHITE_SPACE, " "), replace_all(_ENDS, "")]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special_token(index, names[index]) for index in sorted({*special.values()})],
        "normalizer": {"type": "Sequence", "normalizers": [*normalizers]} if normalizers else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*pre_tokenizers]} if pre_tokenizers else None,
        "post_processor": around(before, after, names),
        "decoder": {"type": "Sequence", "decoders": [*decoders]},
        "model": model,
    }


def _sentence(ignore_case: bool) -> list[Json]:
    """The steps of `spaced`."""
    lower = [{"type": "Lowercase"}] if ignore_case else []
    prefix = {"type": "Prepend", "prepend": " "}
    return [{"type": "NFC"}, replace_all(_WHITE_SPACE, " "), replace_all(_ENDS, ""), *lower, prefix]


def around(before: Sequence[int], after: Sequence[int], names: Sequence[str]) -> Json:
    """The step that puts special tokens, by their ids, around a text, or around two."""

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


def bpe(pieces: Iterable[str], merges: Sequence[tuple[str, str]], unk: str | None, **settings: bool) -> Json:
    """A model that joins pairs, the first of `merges` first. pieces: one for each id."""
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unk,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {piece: index for index, piece in enumerate(pieces)},
        "merges": merges,
        **settings,
    }


def merges_of(pieces: Sequence[str]) -> list[tuple[str, str]]:
    """All pairs of pieces that make a piece, the best piece first: SentencePiece joins whatever gives it."""
    known = set(pieces)
    return [
        (piece[:place], piece[place:])
        for piece in pieces
        for place in range(1, len(piece))
        if piece[:place] in known and piece[place:] in known
    ]


def cuts(pieces: Sequence[str]) -> list[Json]:
    """The steps that cut names in a text, so that a unigram model does not take them for tokens, and drop the marks.

    A name of a special token or a byte is cut at a place that is inside of no piece, so that it is cut there anyway;
    one that has no such place is left as it is. What stands behind a mark is meant to be a token.
    """
    inside = {piece[place : place + 2] for piece in pieces for place in range(len(piece) - 1)}
    patterns = [_cut(name, inside) for name in (*SPECIAL_TOKENS, _ANY_BYTE)]
    return [
        split({"Regex": "|".join(filter(None, patterns))}, "MergedWithPrevious"),
        split({"String": MARK}, "Removed"),
    ]


def _cut(name: Sequence[str], inside: Collection[str]) -> str:
    """A pattern for the character of a name behind which it can be cut, or an empty one.

    name: the characters possible in every place. inside: pairs of characters that are within pieces.
    """
    classes = [f"[{re.escape(characters)}]" for characters in name]
    for place in range(1, len(name)):
        if not any(first + second in inside for first in name[place - 1] for second in name[place]):
            front, last, rest = "".join(classes[: place - 1]), classes[place - 1], "".join(classes[place:])
            return f"(?<!{MARK}{front}){f'(?<={front})' if front else ''}{last}(?={rest})"
    return ""


def special_token(index: int, name: str) -> Json:
    """A token that no text has."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": index, "content": name, **flags}


def replace(text: str, content: str) -> Json:
    """A step that writes `content` for every `text`."""
    return {"type": "Replace", "pattern": {"String": text}, "content": content}


def replace_all(pattern: str, content: str) -> Json:
    """A step that writes `content` for everything that a pattern finds."""
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def split(pattern: Json, behavior: str) -> Json:
    """A step that cuts a text at a pattern."""
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": False}
