"""Tokenizers of models from elsewhere, by the files in a directory of Hugging Face's format.

SentencePiece models are read as they are; what is in the format of the `tokenizers` library needs that library, the
optional extra `hf`. Whatever our own export has written becomes the tokenizer that it was.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from toolkit.errors import ConfigError, ModelError
from toolkit.interop.chat_templates import mark_name, marks_of, recognized
from toolkit.interop.hugging_face_files import ForeignSettings
from toolkit.interop.tokenizer_json import Json, byte_level_content, content_ids, first_added, unknown_id
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.storage import read_json
from toolkit.tokenization import (
    ByteTokenizer,
    CharacterTokenizer,
    IdTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
)
from toolkit.tokenization.chat_template import TemplateName
from toolkit.tokenization.foreign import ForeignSentencePieceTokenizer, piece_names
from toolkit.tokenization.foreign_library import LibraryTokenizer
from toolkit.tokenization.sentencepiece import FILE_NAME, open_processor
from toolkit.tokenization.special import BOS, CONTROL_IDS, EOS, FIRST_TOKEN, PAD, SPECIAL_TOKENS
from toolkit.tokenization.tokenizer import read_file
from toolkit.untrusted import (
    ANYTHING,
    OBJECT,
    SETTINGS_BYTES,
    VOCABULARY_BYTES,
    Either,
    Items,
    Maybe,
    Number,
    Record,
    Row,
    Text,
    Whole,
    read_bytes,
)

LIBRARY_FILE, SETTINGS_FILE, NAMES_FILE = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
SOURCE_FILE, TARGET_FILE, PIECES_FILE, MERGES_FILE = "source.spm", "target.spm", "vocab.json", "merges.txt"
BPE_FILE = "sentencepiece.bpe.model"
ADDED_FILE, TEMPLATE_FILE = "added_tokens.json", "chat_template.jinja"

_ROLES = ("pad", "unk", "bos", "eos")

_INDEX = re.compile("[0-9]{1,10}")
_IDS = Record(others=Whole(0, 2**31 - 1))
_TOKEN = Either(Text(), Record({"content": Text()}, needed=("content",), others=ANYTHING))
_NAMES = {f"{role}_token": Maybe(_TOKEN) for role in _ROLES}
_SETTINGS = Record({**_NAMES, "added_tokens_decoder": Maybe(Record(others=_TOKEN))}, others=ANYTHING)
_PIECES = Items(Row(Text(), Number()))
_MODEL = Record({"vocab": Either(_IDS, _PIECES)}, needed=("vocab",), others=ANYTHING)
_LAST_STEP = Maybe(Record({"processors": Items(OBJECT)}, others=ANYTHING))
_ADDED = Record({"id": Whole(0, 2**31 - 1), "content": Text()}, needed=("id", "content"), others=ANYTHING)
_LIBRARY = {"model": _MODEL, "post_processor": _LAST_STEP, "added_tokens": Maybe(Items(_ADDED))}
_SCHEMAS = {
    LIBRARY_FILE: Record(_LIBRARY, needed=("model",), others=ANYTHING),
    SETTINGS_FILE: _SETTINGS,
    NAMES_FILE: _SETTINGS,
    PIECES_FILE: _IDS,
    ADDED_FILE: _IDS,
}


class TokenizerDirectory:
    """The files of a tokenizer beside a config.json, for a model of `size` tokens.

    end_token: what texts end with, whatever its files say. Raises ModelError where a file is damaged, and ConfigError
    where nothing but the end mark can end a text: of a translator, or a model that our export has written.
    """

    def __init__(self, config: ForeignSettings, size: int, end_token: str | None = None):
        self.path, self.config, self.size = config.directory, config, size
        self._end_token = end_token
        if end_token is not None and (config.is_own or config.is_encoder_decoder):
            raise own_end(self.path)
        self._contents: dict[str, Json] = {}
        self.settings = self.json(SETTINGS_FILE)
        names = self.json(NAMES_FILE) | self.settings
        self.names = {role: _content(names.get(f"{role}_token")) for role in _ROLES}

    def has(self, *names: str) -> bool:
        """True if all of these files are there."""
        return all((self.path / name).is_file() for name in names)

    def json(self, name: str) -> Json:
        """Read a JSON object; empty where there is no such file."""
        if name not in self._contents:
            settings = {"schema": _SCHEMAS[name], "most": VOCABULARY_BYTES, "endless": True}  # 1e30 says: any length
            self._contents[name] = read_json(self.path / name, **settings) if self.has(name) else {}
        return self._contents[name]

    def by_id(self, ids: Mapping[str, int], name: str) -> list[str | None]:
        """List the token of every id, (size,). ids: of tokens in the file `name`; others may have been added.

        Raises ModelError where the model has fewer tokens, or more than twice as many.
        """
        tokens: list[str | None] = [None] * self.size
        for token, index in ids.items():
            if index >= self.size:
                raise ModelError(
                    f"{self.path / name} has {token!r:.60} as token {index}, but the model has only {self.size} "
                    "tokens, from 0 on: they belong to different models"
                )
            tokens[index] = token
        if len(ids) < self.size / 2:  # some models have rows to spare, but fewer than that
            raise ModelError(
                f"{self.path / name} has {len(ids)} tokens and the model {self.size}: they belong to different models"
            )
        for index, token in self._added().items():
            if index < self.size and tokens[index] is None:
                tokens[index] = token
        return tokens

    def vocabulary(
        self,
        tokens: Sequence[str | None],
        known: Mapping[str, int] | None = None,
        certain: Mapping[str, int | None] | None = None,
        marks: Mapping[int, int] | None = None,
    ) -> Vocabulary:
        """Lay out the vocabulary: special tokens have the ids that config.json gives them, else those of their names.

        known: ids of special tokens by their roles, for those that neither says. certain: those that have these ids,
        whatever else is said, for the tokenizer itself uses them. marks: as `Vocabulary.plan` takes them; where one of
        them ends what is written, config.json says what ends a text.

        Raises ModelError where the end token is no token.
        """
        if self.config.is_own:
            return Vocabulary.own(self.size)
        named = {token: index for index, token in enumerate(tokens) if token is not None}
        found = {role: self.config.special(role) for role in _ROLES}
        for role, index in found.items():
            if index is None:
                found[role] = named.get(self.names[role] or "", (known or {}).get(role))
        if marks and found["eos"] in marks.values():
            declared = self.config.values.get("eos_token_id")
            found["eos"] = declared if type(declared) is int and declared >= 0 else None
        if found["pad"] is not None and found["pad"] >= self.size:  # one that was added, and never became a row
            found["pad"] = None
        if found["unk"] in (found["pad"], found["bos"], found["eos"]):  # byte-level BPE knows all, and names another
            found["unk"] = None
        found |= {role: index for role, index in (certain or {}).items() if index is not None}
        if self._end_token is not None:
            if self._end_token not in named:
                raise ModelError(f"{self.path} has no token {self._end_token!r:.60}, which its texts end with")
            found["eos"] = named[self._end_token]
        return Vocabulary.plan(self.size, **found, origin=self.path, marks=marks)

    @property
    def chat_template(self) -> str | None:
        """Chat template in the language of transformers; None where there is none."""
        if self.has(TEMPLATE_FILE):
            try:
                return read_bytes(self.path / TEMPLATE_FILE, SETTINGS_BYTES).decode("utf-8", "replace")
            except OSError as error:
                raise ModelError(f"{self.path / TEMPLATE_FILE} cannot be read: {error.strerror or error}") from error
        found = self.settings.get("chat_template")
        if isinstance(found, list):  # several, each with a name
            found = str(found)
        return found if isinstance(found, str) and found.strip() else None

    def _added(self) -> dict[int, str]:
        """Collect tokens that were added to those of the model's own file, by their ids."""
        added = {index: token for token, index in self.json(ADDED_FILE).items()}
        added |= {token["id"]: token["content"] for token in self.json(LIBRARY_FILE).get("added_tokens") or []}
        listed = self.settings.get("added_tokens_decoder") or {}
        if odd := [index for index in listed if not _INDEX.fullmatch(index)]:
            path = self.path / SETTINGS_FILE
            raise ModelError(f"{path} is damaged: it has no number for an added token, but {odd[0]!r:.20}")
        return added | {int(index): _content(token) for index, token in listed.items()}

    def library_content(self) -> tuple[Json, Path]:
        """Give what the `tokenizers` library reads, and its file: tokenizer.json, or vocab.json with merges.txt.

        Raises ModelError where the directory has neither.
        """
        if self.has(LIBRARY_FILE):
            return self.json(LIBRARY_FILE), self.path / LIBRARY_FILE
        if not self.has(PIECES_FILE, MERGES_FILE):
            raise ModelError(
                f"{self.path} has no tokenizer that the toolkit can read: it looks for source.spm, target.spm and "
                f"{PIECES_FILE}, for tokenizer.model or spiece.model, for {LIBRARY_FILE}, and for {PIECES_FILE} and "
                f"{MERGES_FILE}"
            )
        try:
            lines = read_bytes(self.path / MERGES_FILE, VOCABULARY_BYTES).decode().splitlines()
        except (OSError, ValueError) as error:
            raise ModelError(f"{self.path / MERGES_FILE} is damaged: it is not text in UTF-8") from error
        merges = [line.split(" ") for line in lines if line.strip() and not line.startswith("#version")]
        ids = self.json(PIECES_FILE)
        added = self._added() | {ids[name]: name for name in self.names.values() if name in ids}
        content = byte_level_content(ids, merges, added, bool(self.settings.get("add_prefix_space")))
        return content, self.path / PIECES_FILE


def own_end(path: Path) -> ConfigError:
    """Refuse an end token for a model that has its own."""
    return ConfigError(f"{path} has an end mark of its own: --end-token is for language models from elsewhere")


def _content(token: Any) -> str | None:
    """Give the text of a token that is written as such or with settings of its own."""
    token = token.get("content") if isinstance(token, dict) else token
    return token if isinstance(token, str) else None


_BEGINNING = ("llama", "mistral", "phi3")  # whose tokenizers begin texts with <s>, where they do not say
SENTENCEPIECE_FILES = (FILE_NAME, "spiece.model", "sentencepiece.model", BPE_FILE)
USUAL_TOKENS = {"pad": "<pad>", "unk": "<unk>", "eos": "</s>"}  # Marian's special tokens

_PEGASUS_OFFSET = 103  # tokens that only pre-training used, between the first two and the pieces
_PEGASUS_FIRST = 2


class ReadTokenizer(NamedTuple):
    """A tokenizer with our ids, and what its files say about the model."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary  # which foreign id stands at each of ours
    begin: bool | None  # it puts the begin token in front of a text; None where the files do not say
    tokens: Sequence[str | None] = ()  # the name of each foreign id, if another library has written it
    template: str = "none"  # the one of ours that it writes conversations with
    has_other_template: bool = False  # it writes them in a way of its own


def read_tokenizer(config: ForeignSettings, size: int, end_token: str | None = None) -> ReadTokenizer:
    """Read the tokenizer of a directory in Hugging Face's format.

    size: how many tokens the model has; those without a name are kept. end_token: see `TokenizerDirectory`.

    Where there is none, texts are ids. Raises ModelError where it is damaged or belongs to another model, and where the
    library that it needs is not installed; and what `TokenizerDirectory` raises.
    """
    found = TokenizerDirectory(config, size, end_token)
    own = _own(found)
    if own is not None:
        return ReadTokenizer(own, Vocabulary.own(size), None)
    if found.has(SOURCE_FILE, TARGET_FILE, PIECES_FILE):
        return _marian(found)
    if not has_tokenizer(found.path):
        return _by_ids(found)
    for name in SENTENCEPIECE_FILES:
        if found.has(name) and not (found.has(LIBRARY_FILE) and _is_other(found.path / name)):
            return _sentencepiece(found, name)
    return library_tokenizer(found)


def library_tokenizer(found: TokenizerDirectory, begins: bool = True) -> ReadTokenizer:
    """Read what the `tokenizers` library reads.  begins: what its last step puts in front begins every text."""
    content, origin = found.library_content()
    tokens = found.by_id(content_ids(content), origin.name)
    begin, first = beginning(found, tokens) if begins else (False, None)
    certain = {"bos": first, "unk": unknown_id(content)}
    vocabulary = found.vocabulary(tokens, certain=certain)
    template = "none"
    if conversation := _conversation(found, tokens, vocabulary):
        template, begin, marks = conversation
        vocabulary = found.vocabulary(tokens, certain=certain, marks=marks)
    tokenizer = LibraryTokenizer(content, vocabulary.rows, origin)
    has_other = conversation is None and found.chat_template is not None
    return ReadTokenizer(tokenizer, vocabulary, bool(begin), tokens, template, has_other)


def has_tokenizer(directory: Path) -> bool:
    """True where a file lies that a tokenizer is read from, or part of one."""
    names = (LIBRARY_FILE, PIECES_FILE, MERGES_FILE, SOURCE_FILE, TARGET_FILE, *SENTENCEPIECE_FILES)
    return any((directory / name).exists() for name in names)


def _by_ids(found: TokenizerDirectory) -> ReadTokenizer:
    """Call each token by its id.  Nothing is put around the ids that a language model reads, and so none is special but
    its end mark, and those that its authors never let it write.
    """
    tokens = [str(index) for index in range(found.size)]
    vocabulary = found.vocabulary(tokens)
    if not (found.config.is_own or found.config.is_encoder_decoder):
        vocabulary = vocabulary.with_end_alone(found.config.tokens("suppress_tokens"))
    return ReadTokenizer(IdTokenizer(vocabulary.rows), vocabulary, False, tokens)


def _own(found: TokenizerDirectory) -> Tokenizer | None:
    """Read one of our own tokenizers, where our export has written it."""
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
    if found.settings.get("separate_vocabs"):
        raise ModelError(
            f"{found.path} has one vocabulary for sources and one for targets: the toolkit has one for all"
        )
    ids = found.json(PIECES_FILE)
    tokens = found.by_id(ids, PIECES_FILE)
    vocabulary = found.vocabulary(tokens, {role: ids[name] for role, name in USUAL_TOKENS.items() if name in ids})
    tokenizer = sentencepiece_tokenizer(tokens, vocabulary, found.path / TARGET_FILE, found.path / SOURCE_FILE)
    return ReadTokenizer(tokenizer, vocabulary, None, tokens)


def _sentencepiece(found: TokenizerDirectory, name: str) -> ReadTokenizer:
    """Read the pieces of one SentencePiece model with its ids, which for Pegasus are moved."""
    own = open_processor(read_file(found.path / name), found.path / name)
    model_type = found.config.values.get("model_type")
    offset = found.settings.get("offset", _PEGASUS_OFFSET) if model_type == "pegasus" else 0
    if type(offset) is not int or offset < 0:
        raise ModelError(f"{found.path / SETTINGS_FILE} is damaged: offset is {offset!r:.60}")

    def foreign(index: int) -> int:
        return index + offset if index >= _PEGASUS_FIRST else index

    tokens = found.by_id({own.id_to_piece(index): foreign(index) for index in range(own.vocab_size())}, name)
    special = {"pad": own.pad_id(), "unk": own.unk_id(), "bos": own.bos_id(), "eos": own.eos_id()}
    begin, first = beginning(found, tokens)
    known = {role: foreign(index) for role, index in special.items() if index >= 0}
    vocabulary = found.vocabulary(tokens, known, {"bos": first})
    tokenizer = sentencepiece_tokenizer(tokens, vocabulary, found.path / name)
    begin = model_type in _BEGINNING if begin is None else begin
    return ReadTokenizer(tokenizer, vocabulary, begin, tokens, has_other_template=found.chat_template is not None)


def sentencepiece_tokenizer(
    tokens: Sequence[str | None], vocabulary: Vocabulary, path: Path, *sources: Path
) -> ForeignSentencePieceTokenizer:
    """Read SentencePiece models: of everything, or of targets and of sources."""
    models = [read_file(each) for each in (path, *sources)]
    for model, each in zip(models[1:], sources, strict=True):
        open_processor(model, each)  # so that an error names the right one
    return ForeignSentencePieceTokenizer(piece_names(tokens, vocabulary.rows), vocabulary.rows, *models, origin=path)


def _is_other(path: Path) -> bool:
    """True for a file that is no SentencePiece model: others use the same names."""
    try:
        open_processor(read_file(path), path)
    except ModelError:
        return True
    return False


def _conversation(
    found: TokenizerDirectory, tokens: Sequence[str | None], vocabulary: Vocabulary
) -> tuple[TemplateName, bool, dict[int, int]] | None:
    """Find which template of ours the directory has -> its name, True if conversations begin with the begin token, and
    the ids of its marks; None where it has none.  vocabulary: the layout without those marks.
    """
    if found.chat_template is None:
        return None
    ids = {token: index for index, token in enumerate(tokens) if token is not None}
    names = {ours: tokens[vocabulary.rows[ours]] for ours in (BOS, EOS) if vocabulary.rows[ours] >= 0}
    names |= {mark: mark_name(mark, ids, last=True) for mark in CONTROL_IDS - {PAD, BOS, EOS}}
    known = {mark: name for mark, name in names.items() if name in ids}
    added = found.json(LIBRARY_FILE).get("added_tokens") or []
    template = recognized(found.chat_template, known, [token["content"] for token in added if token.get("special")])
    return template and (*template, {mark: ids[names[mark]] for mark in marks_of(template[0]) if mark != EOS})


def beginning(found: TokenizerDirectory, tokens: Sequence[str | None]) -> tuple[bool | None, int | None]:
    """Tell if texts begin with a special token, and its id; None where neither is said.

    A tokenizer.json decides it, as in transformers 5, and a setting where there is none.
    """
    if found.has(LIBRARY_FILE):
        first = first_added(found.json(LIBRARY_FILE))
        return first is not None, first
    begin, name = found.settings.get("add_bos_token"), found.names["bos"]
    if not isinstance(begin, bool):
        return None, None
    return begin, tokens.index(name) if name in tokens else None
