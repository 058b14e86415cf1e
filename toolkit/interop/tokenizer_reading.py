"""Tokenizers of models from elsewhere.

SentencePiece models are read as they are; what is in the format of the `tokenizers` library needs that library, the
optional extra `hf`. Whatever our own export has written becomes the tokenizer that it was.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from toolkit.errors import ModelError
from toolkit.interop.chat_templates import mark_name, marks_of, recognized
from toolkit.interop.hugging_face_files import ForeignSettings
from toolkit.interop.tokenizer_directory import (
    LIBRARY_FILE,
    PIECES_FILE,
    SETTINGS_FILE,
    SOURCE_FILE,
    TARGET_FILE,
    TokenizerDirectory,
    content_ids,
    first_added,
    unknown_id,
)
from toolkit.interop.vocabulary import Vocabulary
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer, Tokenizer, load_tokenizer
from toolkit.tokenization.chat_template import TemplateName
from toolkit.tokenization.foreign import ForeignSentencePieceTokenizer, piece_names
from toolkit.tokenization.foreign_library import LibraryTokenizer
from toolkit.tokenization.sentencepiece import FILE_NAME, open_processor
from toolkit.tokenization.special import BOS, CONTROL_IDS, EOS, FIRST_TOKEN, PAD, SPECIAL_TOKENS
from toolkit.tokenization.tokenizer import read_file

Json = dict[str, Any]

_MODELS = (FILE_NAME, "spiece.model", "sentencepiece.model", "sentencepiece.bpe.model")
_USUAL = {"pad": "<pad>", "unk": "<unk>", "eos": "</s>"}  # Marian's special tokens

_PEGASUS_OFFSET = 103  # tokens that only pre-training used, between the first two and the pieces
_PEGASUS_FIRST = 2


class ReadTokenizer(NamedTuple):
    """A tokenizer with our ids, and what its files say about the model."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary  # which foreign id stands at each of ours
    begin: bool | None  # whether it puts the begin mark in front of a text; None where the files do not say
    tokens: Sequence[str | None] = ()  # what each foreign id is called, if another library has written it
    template: str = "none"  # how it writes conversations, where it does so as one of ours
    has_other_template: bool = False  # whether it writes them in a way of its own


def read_tokenizer(config: ForeignSettings, size: int, end_token: str | None = None) -> ReadTokenizer:
    """The tokenizer of a directory in Hugging Face's format.

    size: how many tokens the model has; those without a name are kept. end_token: see `TokenizerDirectory`.

    Raises ModelError where there is none, where it is damaged or belongs to another model, and where the library that
    it needs is not installed; and what `TokenizerDirectory` raises.
    """
    found = TokenizerDirectory(config, size, end_token)
    own = _own(found)
    if own is not None:
        return ReadTokenizer(own, Vocabulary.own(size), None)
    if found.has(SOURCE_FILE, TARGET_FILE, PIECES_FILE):
        return _marian(found)
    for name in _MODELS:
        if found.has(name) and not (found.has(LIBRARY_FILE) and _is_other(found.path / name)):
            return _sentencepiece(found, name)
    content, origin = found.library_content()
    tokens = found.by_id(content_ids(content), origin.name)
    begin, first = _beginning(found, tokens)
    certain = {"bos": first, "unk": unknown_id(content)}
    vocabulary = found.vocabulary(tokens, certain=certain)
    conversation = _conversation(found, tokens, vocabulary)
    if conversation is None:
        template = "none"
    else:
        template, begin, marks = conversation
        vocabulary = found.vocabulary(tokens, certain=certain, marks=marks)
    tokenizer = LibraryTokenizer(content, vocabulary.rows, origin)
    has_other = conversation is None and found.chat_template is not None
    return ReadTokenizer(tokenizer, vocabulary, bool(begin), tokens, template, has_other)


def pieces_tokenizer(directory: Path, tokens: Sequence[str], vocabulary: Vocabulary) -> Tokenizer:
    """The tokenizer beside a model whose tokens are known already, as CTranslate2's are.

    tokens: (foreign size,). Raises ModelError where there is none, where it is damaged, or where the library that it
    needs is not installed.
    """
    if vocabulary == Vocabulary.own(vocabulary.size):
        return load_tokenizer(directory)
    pieces = piece_names(tokens, vocabulary.rows)
    if all((directory / name).is_file() for name in (SOURCE_FILE, TARGET_FILE)):
        return _two_models(directory, pieces, vocabulary)
    for name in _MODELS:
        if (directory / name).is_file():
            return _one_model(directory / name, pieces, vocabulary)
    content, origin = TokenizerDirectory(ForeignSettings(directory), len(tokens)).library_content()
    return LibraryTokenizer(content, vocabulary.rows, origin)


def _own(found: TokenizerDirectory) -> Tokenizer | None:
    """One of our own tokenizers, where our export has written it."""
    if not found.config.is_own:
        return None
    if found.has(FILE_NAME):
        return SentencePieceTokenizer.load(found.path)
    if not found.has(LIBRARY_FILE):
        return None
    ids = content_ids(found.json(LIBRARY_FILE))
    pieces = sorted(ids, key=ids.__getitem__)
    if tuple(pieces[:FIRST_TOKEN]) != SPECIAL_TOKENS or len(pieces) != found.size:
        return None
    symbols, bytes_alone = pieces[FIRST_TOKEN:], ByteTokenizer()
    if pieces == [bytes_alone.piece(index) for index in range(bytes_alone.vocab_size)]:
        return bytes_alone
    return CharacterTokenizer(symbols) if symbols == sorted(symbols) and {*map(len, symbols)} == {1} else None


def _marian(found: TokenizerDirectory) -> ReadTokenizer:
    """Pieces of two SentencePiece models, with ids that both share."""
    if found.settings.get("separate_vocabs"):
        raise ModelError(
            f"{found.path} has one vocabulary for sources and one for targets: the toolkit has one for all"
        )
    ids = found.json(PIECES_FILE)
    tokens = found.by_id(ids, PIECES_FILE)
    vocabulary = found.vocabulary(tokens, {role: ids[name] for role, name in _USUAL.items() if name in ids})
    return ReadTokenizer(
        _two_models(found.path, piece_names(tokens, vocabulary.rows), vocabulary), vocabulary, None, tokens
    )


def _sentencepiece(found: TokenizerDirectory, name: str) -> ReadTokenizer:
    """Pieces of one SentencePiece model with its ids, which for Pegasus are moved."""
    own = open_processor(read_file(found.path / name), found.path / name)
    model_type = found.config.values.get("model_type")
    offset = found.settings.get("offset", _PEGASUS_OFFSET) if model_type == "pegasus" else 0
    if type(offset) is not int or offset < 0:
        raise ModelError(f"{found.path / SETTINGS_FILE} is damaged: offset is {offset!r:.60}")

    def foreign(index: int) -> int:
        return index + offset if index >= _PEGASUS_FIRST else index

    tokens = found.by_id({own.id_to_piece(index): foreign(index) for index in range(own.vocab_size())}, name)
    special = {"pad": own.pad_id(), "unk": own.unk_id(), "bos": own.bos_id(), "eos": own.eos_id()}
    begin, first = _beginning(found, tokens)
    known = {role: foreign(index) for role, index in special.items() if index >= 0}
    vocabulary = found.vocabulary(tokens, known, {"bos": first})
    tokenizer = _one_model(found.path / name, piece_names(tokens, vocabulary.rows), vocabulary)
    begin, has_other = model_type == "llama" if begin is None else begin, found.chat_template is not None
    return ReadTokenizer(tokenizer, vocabulary, begin, tokens, has_other_template=has_other)


def _one_model(path: Path, pieces: Sequence[str], vocabulary: Vocabulary) -> Tokenizer:
    return ForeignSentencePieceTokenizer(pieces, vocabulary.rows, read_file(path), origin=path)


def _two_models(directory: Path, pieces: Sequence[str], vocabulary: Vocabulary) -> Tokenizer:
    models = [read_file(directory / name) for name in (TARGET_FILE, SOURCE_FILE)]
    open_processor(models[1], directory / SOURCE_FILE)  # so that an error names the right one
    return ForeignSentencePieceTokenizer(pieces, vocabulary.rows, *models, directory / TARGET_FILE)


def _is_other(path: Path) -> bool:
    """Whether a file is no SentencePiece model: others use the same names."""
    try:
        open_processor(read_file(path), path)
    except ModelError:
        return True
    return False


def _conversation(
    found: TokenizerDirectory, tokens: Sequence[str | None], vocabulary: Vocabulary
) -> tuple[TemplateName, bool, dict[int, int]] | None:
    """Which template of ours the directory has, whether it begins, and the ids of its marks; None where it has none.

    vocabulary: the layout without those marks.
    """
    text = found.chat_template
    if text is None:
        return None
    ids = {token: index for index, token in enumerate(tokens) if token is not None}
    names = {ours: tokens[vocabulary.rows[ours]] for ours in (BOS, EOS) if vocabulary.rows[ours] >= 0}
    names |= {mark: mark_name(mark, ids, last=True) for mark in CONTROL_IDS - {PAD, BOS, EOS}}
    found_names = {mark: name for mark, name in names.items() if name in ids}
    template = recognized(text, found_names, found.special_names)
    if template is None:
        return None
    return *template, {mark: ids[names[mark]] for mark in marks_of(template[0]) if mark != EOS}


def _beginning(found: TokenizerDirectory, tokens: Sequence[str | None]) -> tuple[bool | None, int | None]:
    """Whether texts begin with a special token, and its id; None where neither is said.

    A tokenizer.json decides it, as in transformers 5, and a setting where there is none.
    """
    if found.has(LIBRARY_FILE):
        first = first_added(found.json(LIBRARY_FILE))
        return first is not None, first
    begin, name = found.settings.get("add_bos_token"), found.names["bos"]
    if not isinstance(begin, bool):
        return None, None
    return begin, tokens.index(name) if name in tokens else None
