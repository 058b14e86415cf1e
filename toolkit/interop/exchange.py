"""Whole models, with their tokenizers, from other libraries and to them."""

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from toolkit.display import counted, short_repr
from toolkit.errors import ConfigError, ModelError
from toolkit.files import check_new_directory, new_directory
from toolkit.interop import ctranslate2
from toolkit.interop.chat_templates import marks_of
from toolkit.interop.ctranslate2_file import MODEL_FILE
from toolkit.interop.hugging_face import HuggingFaceModel, write_hugging_face
from toolkit.interop.multilingual import MULTILINGUAL, languages_of, read_multilingual
from toolkit.interop.tokenizer_reading import has_tokenizer, read_tokenizer
from toolkit.interop.tokenizer_writing import with_marks, write_tokenizer, writes_template
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.autoencoder import AutoEncoder
from toolkit.models.gpt import GPT
from toolkit.models.reward import ActorCritic, RewardModel
from toolkit.models.seq2seq import Seq2Seq
from toolkit.models.storage import (
    CONFIDENCE_FILE,
    CONFIG_FILE,
    holds_a_model,
    load_model,
    read_json,
    read_metrics,
    read_model,
    read_origin,
    save_model,
)
from toolkit.nn.module import Model
from toolkit.speller import NAMES, SPELLINGS
from toolkit.tokenization import IdTokenizer, SentencePieceTokenizer, Tokenizer, load_tokenizer
from toolkit.tokenization.foreign import ForeignTokenizer
from toolkit.tokenization.ids import shown_pieces
from toolkit.tokenization.special import ASSISTANT, BOS, END, EOS, PAD, SPECIAL_TOKENS, UNK

Format = Literal["hugging-face", "ctranslate2", "toolkit"]

_NO_TEMPLATE = (
    "no chat template is written: a plain one joins all messages to one text, of which this tokenizer, which is from "
    "elsewhere, need not make the tokens that it makes of each message"
)


_CARRIED = (
    "numbers, addresses and unknown words reach it as letters from U+E000 on, and are put back in what it writes: what "
    "carries them over (toolkit.tokenization.carrying) stays behind"
)


class Exchanged(NamedTuple):
    """Result of an exchange."""

    model: Model
    name: str  # what it is elsewhere, such as "MarianMTModel"
    notes: list[str]  # differences from the model that it was, in sentences

    __repr__ = short_repr


def import_model(
    source: str | os.PathLike[str], directory: str | os.PathLike[str], end_token: str | None = None
) -> Exchanged:
    """Make a model directory of ours out of one that transformers or CTranslate2 has written.

    Which of the two wrote it is found out from its files. Nothing is downloaded, and nothing is unpickled.
    end_token: the token that a language model ends its texts with, by its name there, where that is another than its
    files say: models that were trained on one stream often end a text with what the next one begins with.

    Raises ModelError where the source is damaged or has what the toolkit has not, ConfigError where the directory
    exists already, and for an end token where none can be chosen.
    """
    source, directory = Path(source), Path(directory)
    check_new_directory(directory, "DIRECTORY")
    model, tokenizer, name, notes, generation = _read(source, end_token)
    _check_sizes(model, tokenizer, source)
    command = ["toolkit", "import", str(source), str(directory), *(["--end-token", end_token] if end_token else [])]
    metrics = {"command": shlex.join(command), "imported_from": name}
    metrics |= {"generation": generation} if generation else {}
    with new_directory(directory) as new:
        save_model(model, new, metrics)
        tokenizer.save(new)
    return Exchanged(model, name, notes)


def export_model(
    model: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    to: Format | None = None,
    half: bool = False,
    dtype: Literal["float32", "int8"] = "float32",
) -> Exchanged:
    """Write a model of ours, given as `load` takes it, in the format of another library, its tokenizer too.

    to: "toolkit" is our own, None: that where dtype is "int8", and that of transformers where not. half: float16.
    dtype: "int8" stores matrices so, a quarter of the size. For transformers, an imported model gets back the order of
    tokens that it came with. Of what PPO has trained, only the language model leaves.

    Raises ModelError where the other library has no model that computes the same, which goes for reward models and
    auto-encoders too, ConfigError where the directory exists already, and for int8 where transformers is to read it or
    the library that multiplies so is missing.
    """
    if to not in (None, *get_args(Format)):
        raise ConfigError(f"to is {to!r}: it must be one of {', '.join(get_args(Format))}")
    if dtype not in ("float32", "int8"):
        raise ConfigError(f"dtype is {dtype!r:.40}: it must be float32 or int8")
    to = to or ("toolkit" if dtype == "int8" else "hugging-face")
    if dtype == "int8" and half:
        raise ConfigError("weights are stored in float16 or in int8: leave out --half, or --dtype int8")
    if dtype == "int8" and to == "hugging-face":
        raise ConfigError("transformers reads none of our int8: write --to toolkit or --to ctranslate2")
    directory = Path(directory)
    check_new_directory(directory, "DIRECTORY")
    loaded, tokenizer, notes, metrics = read_model(model, _read_ours)
    with new_directory(directory) as new:
        if to == "toolkit":
            if dtype == "int8":
                loaded.quantize()
                command = ["toolkit", "export", str(model), str(directory), "--dtype", dtype]
                metrics = read_model(model, read_origin) | {"command": shlex.join(command)}  # scores are of floats
            save_model(loaded, new, metrics, half)
            tokenizer.save(new)
            read_model(model, lambda source: _copy_beside(source, new))
            return Exchanged(loaded, f"a model of this toolkit in {'float16' if half else dtype}", notes)
        if tokenizer.carrier:
            notes = [*notes, _CARRIED]
        if to == "ctranslate2":
            ctranslate2.write(loaded, tokenizer, new, half, dtype == "int8")
            return Exchanged(loaded, _ctranslate2_name(loaded), notes + _how_to_tokenize(loaded, tokenizer))
        order = None
        if isinstance(tokenizer, ForeignTokenizer):
            if isinstance(loaded, GPT) and loaded.config.template == "control":
                tokenizer = with_marks(tokenizer, marks_of("control"))
            order = Vocabulary(tuple(tokenizer.rows))
        generation, came_as = metrics.get("generation"), metrics.get("imported_from")
        languages = tokenizer.languages
        target = languages.ids[languages.target] if languages and languages.target else None
        name = write_hugging_face(loaded, new, order, half, generation, came_as, target).name
        write_tokenizer(tokenizer, new, loaded.config)
        if not writes_template(tokenizer, loaded.config):
            notes = [*notes, _NO_TEMPLATE]
    return Exchanged(loaded, name, notes)


def _copy_beside(source: Path, new: Path) -> None:
    """Copy what else lies in the directory of a translator: its calibration, a list of spellings, a model of names."""
    for name in CONFIDENCE_FILE, SPELLINGS:
        if (source / name).is_file():
            shutil.copyfile(source / name, new / name)
    if holds_a_model(source / NAMES):
        shutil.copytree(source / NAMES, new / NAMES)


def _read_ours(directory: Path) -> tuple[Model, Tokenizer, list[str], dict[str, Any]]:
    """Read a model to export -> it, its tokenizer, notes, and what else is known of it."""
    model, notes = load_model(directory), []
    if isinstance(model, AutoEncoder):
        what = "an auto-encoder, which no other library has: only models of texts are exported"
        raise ModelError(f"{directory} is {what}")
    if isinstance(model, RewardModel):
        what = "a reward model, and there is no class that has its head: only what writes texts is exported"
        raise ModelError(f"{directory} is {what}")
    if isinstance(model, ActorCritic):
        model, notes = model.language_model(), ["the critic, which only PPO needs, is left out"]
    tokenizer = load_tokenizer(directory)
    _check_sizes(model, tokenizer, directory)
    return model, tokenizer, notes, read_metrics(directory)


class _Found(NamedTuple):
    """A model from elsewhere."""

    model: Model
    tokenizer: Tokenizer
    name: str  # of its class
    notes: list[str]
    generation: Mapping[str, Any]  # how its authors decode


def _read(source: Path, end_token: str | None) -> _Found:
    """Read a model of either library."""
    if (source / MODEL_FILE).exists():
        return _read_ctranslate2(source, end_token)
    if not source.is_dir():
        raise ModelError(
            f"{source} is not a directory: give one that transformers or CTranslate2 has written; nothing is downloaded"
        )
    if "format" in read_json(source / CONFIG_FILE):
        raise ConfigError(f"{source} is a model of this toolkit already: there is nothing to import")
    found = HuggingFaceModel(source, end_token is not None)
    is_multilingual = found.settings.values.get("model_type") == MULTILINGUAL and has_tokenizer(source)
    reads = read_multilingual if is_multilingual else read_tokenizer
    read = reads(found.settings, found.size, end_token)
    model = found.read(read.vocabulary, read.begin, read.template, read.tokenizer.languages)
    notes = found.notes + _ids_note(read.tokenizer) + _never_written(model, read.vocabulary, read.tokens)
    if read.has_other_template:
        notes.append("its chat template is not one of this toolkit's and stays behind: fine-tuning teaches one of ours")
    return _Found(model, read.tokenizer, found.architecture.name, notes, found.generation)


def _read_ctranslate2(source: Path, end_token: str | None) -> _Found:
    """Read a model of CTranslate2's; without a tokenizer beside it, it is used by ids."""
    reading = ctranslate2.read(source, end_token)
    vocabulary, tokens = reading.vocabulary, reading.tokens
    if has_tokenizer(source):
        tokenizer = ctranslate2.pieces_tokenizer(source, tokens, vocabulary)
        is_own = vocabulary == Vocabulary.own(vocabulary.size)  # with a tokenizer that knows its languages
        if not is_own and reading.config.positions == "sinusoidal_fairseq":
            languages = languages_of(tokens, vocabulary, source)
            tokenizer = tokenizer.with_languages(languages) if languages else tokenizer
    else:
        reading = reading.by_ids()
        vocabulary = reading.vocabulary
        tokenizer = IdTokenizer(vocabulary.rows, shown_pieces(vocabulary.rows, tokens))
    model = reading.model()
    notes = reading.notes + _ids_note(tokenizer) + _never_written(model, vocabulary, tokens)
    if isinstance(tokenizer, IdTokenizer) and reading.of_sources:
        count = counted(reading.of_sources, "token")
        notes.append(f"its ids are the places in target_vocabulary; {count} of source_vocabulary alone follow")
    return _Found(model, tokenizer, _ctranslate2_name(model), notes, {})


def _ids_note(tokenizer: Tokenizer) -> list[str]:
    """Note how a model without a tokenizer is used."""
    is_needed = isinstance(tokenizer, IdTokenizer)
    return ["it has no tokenizer beside it, and is used by ids: --ids, in place of text"] * is_needed


def _never_written(model: Model, vocabulary: Vocabulary, names: Sequence[str | None]) -> list[str]:
    """Note which tokens a language model from elsewhere does not write here.  names: of the foreign ids."""
    if not isinstance(model, GPT) or vocabulary == Vocabulary.own(vocabulary.size):
        return []
    begin, end = (vocabulary.rows[index] for index in (BOS, EOS))
    found = {vocabulary.rows[index] for index in (BOS, UNK, PAD)} - {-1, end}
    note = f"{', '.join(str(names[index]) for index in sorted(found))}: never written here"
    if begin in found:
        note += f"; if {names[begin]} stands between its texts, import it with --end-token '{names[begin]}'"
    return [note] if found else []


def _check_sizes(model: Model, tokenizer: Tokenizer, where: Path) -> None:
    """Raises ModelError where the tokenizer is another model's, or has nothing that could be written."""
    if tokenizer.vocab_size != model.config.vocab_size:
        raise ModelError(
            f"{where} has a tokenizer of {tokenizer.vocab_size} tokens and a model of {model.config.vocab_size}: "
            "copy both from one directory"
        )
    if tokenizer.vocab_size <= len(SPECIAL_TOKENS):
        raise ModelError(f"{where} has no tokens but special ones: a text needs others")


def _ctranslate2_name(model: Model) -> str:
    return "ctranslate2.Translator" if isinstance(model, Seq2Seq) else "ctranslate2.Generator"


def _how_to_tokenize(model: Model, tokenizer: Tokenizer) -> list[str]:
    """Note what CTranslate2, which is given tokens, leaves to its user."""
    if isinstance(tokenizer, IdTokenizer):
        name = tokenizer.piece(tokenizer.encode("1")[0])
        return [f"it has no tokenizer: a token is called as in its list of tokens, that of id 1 {name!r:.60}"]
    if not isinstance(model, Seq2Seq):
        notes = ["a prompt begins with the token <s>, which is yours to put there"] if model.config.begin else []
        if model.config.template == "control":
            names = (SPECIAL_TOKENS[index] for index in (ASSISTANT, END))
            notes.append("a reply is opened by the token {}, and ends with end_token='{}'".format(*names))
        return notes
    if tokenizer.languages:
        token = tokenizer.piece(next(iter(tokenizer.languages.ids.values())))
        return [
            f"a source begins with the token of its language, such as {token}, and with that of ' ' + text; "
            "target_prefix has the language to write"
        ]
    text = "text.lower()" if model.config.ignore_case else "text"
    if isinstance(tokenizer, SentencePieceTokenizer):
        return [f"a source begins with a space: its tokens are those of ' ' + {text}"]
    return [f"its tokens are those of {text}"] if model.config.ignore_case else []
