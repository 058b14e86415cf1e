"""The files of a tokenizer beside a model in Hugging Face's format, for `AutoTokenizer.from_pretrained`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolkit.errors import ModelError
from toolkit.interop.chat_templates import chat_template, joining, mark_name
from toolkit.interop.hugging_face_files import Config
from toolkit.interop.multilingual import write_multilingual
from toolkit.interop.tokenizer_json import Json, around, first_added, own_content, pieces_content, special_token
from toolkit.interop.tokenizer_reading import (
    LIBRARY_FILE,
    NAMES_FILE,
    PIECES_FILE,
    SETTINGS_FILE,
    SOURCE_FILE,
    TARGET_FILE,
)
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.gpt import GPTConfig
from toolkit.models.storage import write_json
from toolkit.tokenization import IdTokenizer, SentencePieceTokenizer, Tokenizer
from toolkit.tokenization.foreign import ForeignSentencePieceTokenizer, ForeignTokenizer
from toolkit.tokenization.foreign_library import LibraryTokenizer
from toolkit.tokenization.special import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from toolkit.tokenization.tokenizer import write_file

_ROLES = {BOS: "bos_token", EOS: "eos_token", PAD: "pad_token", UNK: "unk_token"}

_FAST = {"tokenizer_class": "PreTrainedTokenizerFast"}

# The least number of tokens that a translator reads whose positions are computed (see `toolkit.translator`).
_LEAST_LENGTH = 1024


def write_tokenizer(tokenizer: Tokenizer, directory: Path, config: Config) -> None:
    """Write the files of a tokenizer into a directory that exists.

    Our own tokenizers give the same ids there, but for what `toolkit.interop.tokenizer_json` names. A SentencePiece
    model of ours lies beside as tokenizer.model, for those who use it by itself. Tokenizers that came from elsewhere go
    back into their old order, `Vocabulary(tokenizer.rows)`. Those with SentencePiece models are written as Marian's for
    a translator, and then, what looks like a special token in a text becomes one, and case is not ignored.

    Raises DataError where a file cannot be written.
    """
    if isinstance(tokenizer, IdTokenizer):  # there was none
        return
    if isinstance(tokenizer, ForeignTokenizer):
        _write_foreign(tokenizer, directory, config)
        return
    write_json(directory / LIBRARY_FILE, own_content(tokenizer, config))
    roles = {role: SPECIAL_TOKENS[index] for index, role in _ROLES.items()}
    settings = _FAST | _of_texts(config, dict(enumerate(SPECIAL_TOKENS)), SPECIAL_TOKENS)
    _write_settings(directory, roles, config, settings)
    if isinstance(tokenizer, SentencePieceTokenizer):
        tokenizer.save(directory)


def writes_template(tokenizer: Tokenizer, config: Config) -> bool:
    """True if the conversations of a model, if it has any, have the same ids as one text that they have here.

    A plain one has no special tokens between its parts, and who knows what another's tokenizer makes of both together.
    """
    is_plain = isinstance(config, GPTConfig) and config.template == "plain"
    return not (is_plain and isinstance(tokenizer, ForeignTokenizer))


def with_marks(tokenizer: ForeignTokenizer, marks: Sequence[int]) -> ForeignTokenizer:
    """Give a tokenizer tokens of its own for those of our special ids that it has none for, after all its others.

    Raises ModelError where the model has no rows for some of those others, so that none can come after.
    """
    new, rows = [mark for mark in marks if tokenizer.rows[mark] < 0], list(tokenizer.rows)
    first = tokenizer.next_id if isinstance(tokenizer, LibraryTokenizer) else max(rows) + 1
    if new and first > max(rows) + 1:
        raise ModelError(f"its tokenizer has {first} tokens and the model {max(rows) + 1}: no mark can be added")
    for index, mark in enumerate(new, start=first):
        rows[mark] = index
    if isinstance(tokenizer, ForeignSentencePieceTokenizer):
        return ForeignSentencePieceTokenizer(tokenizer.pieces, rows, *tokenizer.models)
    added = [special_token(rows[mark], mark_name(mark, tokenizer.tokens)) for mark in new]
    known = tokenizer.content.get("added_tokens") or []
    return LibraryTokenizer(tokenizer.content | {"added_tokens": [*known, *added]}, rows)


def _write_foreign(tokenizer: ForeignTokenizer, directory: Path, config: Config) -> None:
    """Write one that came from elsewhere: its ids are those that it came with."""
    if isinstance(config, GPTConfig) and not writes_template(tokenizer, config):
        config = replace(config, template="none")
    vocabulary = Vocabulary(tuple(tokenizer.rows))
    special = {index: foreign for index, foreign in enumerate(tokenizer.rows[: len(SPECIAL_TOKENS)]) if foreign >= 0}
    names = _with_old_names([tokenizer.pieces[index] for index in vocabulary.ours(range(vocabulary.foreign_size))])
    if isinstance(tokenizer, LibraryTokenizer):
        names = tokenizer.tokens
    called = {index: names[foreign] for index, foreign in special.items()}
    all_special = tokenizer.special_names if isinstance(tokenizer, LibraryTokenizer) else [*called.values()]
    settings = _FAST | _of_texts(config, called, all_special)
    if tokenizer.languages:
        settings = write_multilingual(tokenizer, names, directory)
    elif isinstance(tokenizer, LibraryTokenizer):
        content = _beginning(tokenizer.content, config, special.get(BOS), names)
        write_json(directory / LIBRARY_FILE, _joining(content, config, all_special))
    elif isinstance(tokenizer, ForeignSentencePieceTokenizer) and isinstance(config, GPTConfig):
        write_json(directory / LIBRARY_FILE, pieces_content(tokenizer.models[0], names, special, config))
    elif isinstance(tokenizer, ForeignSentencePieceTokenizer):
        write_models(tokenizer, directory)
        write_json(directory / PIECES_FILE, {name: index for index, name in enumerate(names)})
        settings = {"tokenizer_class": "MarianTokenizer"}
    roles = {role: names[special[index]] for index, role in _ROLES.items() if index in special}
    if tokenizer.languages:  # whose classes know what texts begin with
        del roles["bos_token"]
    _write_settings(directory, roles, config, settings)


def _with_old_names(names: Sequence[str]) -> list[str]:
    """Give special tokens back the names that they had, if ours of that name is not among them."""
    old = {name: name.rstrip("'") for name in names}
    return [old[name] if old[name] in SPECIAL_TOKENS and old[name] not in old else name for name in names]


def _beginning(content: Json, config: Config, begin: int | None, names: Sequence[str]) -> Json:
    """Put this id in front of a language model's texts in a tokenizer.json, if they begin with it."""
    if not isinstance(config, GPTConfig) or first_added(content) == (begin if config.begin else None):
        return content
    return content | {"post_processor": around([begin] if config.begin else [], [], names)}


def _joining(content: Json, config: Config, special: Sequence[str]) -> Json:
    """Make a tokenizer.json read what a chat template writes, where there will be one."""
    if not isinstance(config, GPTConfig) or config.template == "none":
        return content
    own = content.get("normalizer")
    steps = own["normalizers"] if own and own.get("type") == "Sequence" else [own] * bool(own)
    first = [joining(special), {"type": "NFC"}]
    if steps[:2] == first:  # an export that came back
        return content
    return content | {"normalizer": {"type": "Sequence", "normalizers": [*first, *steps]}}


def _of_texts(config: Config, tokens: Mapping[int, str], special: Sequence[str]) -> dict[str, Any]:
    """Give the settings that tell texts from special tokens: no text yields one, whatever it looks like.

    In a model that converses, that goes for the contents of its conversations. tokens: what our special ids are called
    there. special: the names of all special tokens.
    """
    if not isinstance(config, GPTConfig) or config.template == "none":
        return {"split_special_tokens": True}
    template = chat_template(config.template, config.begin, tokens, special)
    return {"split_special_tokens": False, "chat_template": template}


def write_models(tokenizer: ForeignSentencePieceTokenizer, directory: Path) -> None:
    """Write the SentencePiece models of a translator, as Marian's are called.  Raises DataError where that fails."""
    target, source = tokenizer.models
    write_file(directory, TARGET_FILE, target)
    write_file(directory, SOURCE_FILE, source or target)


def _write_settings(directory: Path, roles: dict[str, str], config: Config, settings: dict[str, Any]) -> None:
    is_gpt = isinstance(config, GPTConfig)
    longest = config.max_length if is_gpt or config.positions == "learned" else max(config.max_length, _LEAST_LENGTH)
    shared = {
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": longest,
        "padding_side": "left" if is_gpt else "right",  # a prompt is continued at its end
        "clean_up_tokenization_spaces": False,
    }
    write_json(directory / NAMES_FILE, roles)
    write_json(directory / SETTINGS_FILE, roles | settings | shared)
