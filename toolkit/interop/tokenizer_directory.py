"""What the files of a directory in Hugging Face's format say about tokens."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.errors import ConfigError, ModelError
from toolkit.interop.hugging_face_files import ForeignSettings
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.storage import read_json
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

Json = dict[str, Any]

LIBRARY_FILE, SETTINGS_FILE, NAMES_FILE = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
SOURCE_FILE, TARGET_FILE, PIECES_FILE, MERGES_FILE = "source.spm", "target.spm", "vocab.json", "merges.txt"
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
    """A directory, by what its config.json says, of a model of so many tokens.

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
        """Whether all of these files are there."""
        return all((self.path / name).is_file() for name in names)

    def json(self, name: str) -> Json:
        """A JSON object; empty where there is no such file."""
        if name not in self._contents:
            path, schema = self.path / name, _SCHEMAS[name]
            self._contents[name] = read_json(path, schema=schema, most=VOCABULARY_BYTES) if self.has(name) else {}
        return self._contents[name]

    def by_id(self, ids: Mapping[str, int], name: str) -> list[str | None]:
        """(size,) The token of every id. ids: of tokens in the file `name`; others may have been added.

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
        if len(ids) < self.size / 2:  # some models have rows to spare, but not so many
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
        """The layout: special tokens have the ids that the configuration gives them, else those of their names.

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
    def special_names(self) -> list[str]:
        """The special tokens of tokenizer.json."""
        added = self.json(LIBRARY_FILE).get("added_tokens") or []
        return [token["content"] for token in added if token.get("special")]

    @property
    def chat_template(self) -> str | None:
        """How a conversation is written, in the language of templates; None where nothing says it."""
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
        """Tokens that were added to those of the model's own file."""
        added = {index: token for token, index in self.json(ADDED_FILE).items()}
        added |= {token["id"]: token["content"] for token in self.json(LIBRARY_FILE).get("added_tokens") or []}
        listed = self.settings.get("added_tokens_decoder") or {}
        if odd := [index for index in listed if not _INDEX.fullmatch(index)]:
            path = self.path / SETTINGS_FILE
            raise ModelError(f"{path} is damaged: it has no number for an added token, but {odd[0]!r:.20}")
        return added | {int(index): _content(token) for index, token in listed.items()}

    def library_content(self) -> tuple[Json, Path]:
        """What the `tokenizers` library reads, and where it is from: tokenizer.json, or vocab.json and merges.txt.

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
        content = _byte_level(ids, merges, added, bool(self.settings.get("add_prefix_space")))
        return content, self.path / PIECES_FILE


def own_end(path: Path) -> ConfigError:
    """What to say to someone who gives an end token for a model that has its own."""
    return ConfigError(f"{path} has an end mark of its own: --end-token is for language models from elsewhere")


def content_ids(content: Json) -> dict[str, int]:
    """The ids of the tokens that the model of a tokenizer.json knows by itself."""
    vocabulary = content["model"]["vocab"]
    if isinstance(vocabulary, list):  # unigram: pieces with their scores
        return {piece: index for index, (piece, _) in enumerate(vocabulary)}
    return vocabulary


def first_added(content: Json) -> int | None:
    """The id of the special token that the last step of a tokenizer.json puts in front of a text, if it does."""
    last = content.get("post_processor") or {}
    for step in last.get("processors", [last]):
        found = None
        if step.get("type") == "TemplateProcessing":
            found = _first_of_template(step)
        elif step.get("type") in ("RobertaProcessing", "BertProcessing"):
            found = step.get("cls")
        if isinstance(found, list) and found and type(found[-1]) is int:
            return found[-1]
    return None


def _first_of_template(step: Json) -> Any:
    try:
        return step["special_tokens"][step["single"][0]["SpecialToken"]["id"]]["ids"]
    except (KeyError, IndexError, TypeError):  # a text is first, or the library refuses it
        return None


def unknown_id(content: Json) -> int | None:
    """The id that the model of a tokenizer.json gives to what it does not know."""
    model = content["model"]
    found = model.get("unk_id", content_ids(content).get(str(model.get("unk_token"))))
    return found if type(found) is int else None


def _byte_level(ids: Json, merges: list[list[str]], added: Mapping[int, str], prefix: bool) -> Json:
    """Byte-level BPE as GPT-2 has it (Radford et al. 2019), in the format of the library."""
    step = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": index, "content": added[index], **flags} for index in sorted(added)],
        "normalizer": None,
        "pre_tokenizer": step,
        "post_processor": None,
        "decoder": step,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": ids,
            "merges": merges,
        },
    }


def _content(token: Any) -> str | None:
    """The text of a token that is written as such or with settings of its own."""
    token = token.get("content") if isinstance(token, dict) else token
    return token if isinstance(token, str) else None
