"""Models in the directory layout of CTranslate2, out and in.

A directory has model.bin (see `toolkit.interop.ctranslate2_file`), config.json and the tokens as a JSON list, in
shared_vocabulary.json or for a language model vocabulary.json. Texts go in and out as lists of tokens: ours are what
`Tokenizer.piece` calls them. Our tokenizer lies beside; whoever uses the model with CTranslate2 encodes with it.

    ctranslate2.Translator(directory).translate_batch([["▁I", "▁am"]])
    ctranslate2.Generator(directory).generate_batch([["<s>", "▁Once"]], include_prompt_in_result=False)

A translator adds by itself what sources end with and outputs begin with; a generator reads prompts as they are given,
so that the begin mark is the caller's to put in front. With our own tokenizers, a source begins with a space (see
`toolkit.data.sentences.spaced`). The function is the same, and so are searches where they follow the same rules:

- Theirs end as ours do with `early_stopping=True`.
- Unless `min_decoding_length=0`, theirs write a token at least, and share out the probability of ending at once.
- Ours never write a control token nor <unk>; `suppress_sequences` and `disable_unk=True` say so, though a trained model
  hardly ever would.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.interop import ctranslate2_spec as spec
from toolkit.interop.ctranslate2_file import MODEL_FILE, Variables, VariableSource, quantised, write_variables
from toolkit.interop.hugging_face_files import OWN_ENTRY, Config, ForeignSettings, own_settings
from toolkit.interop.mapping import (
    OUTPUT,
    OUTPUT_BIAS,
    SOURCE,
    TARGET,
    read_entries,
    stacks,
    write_entries,
    written_waves,
)
from toolkit.interop.tokenizer_reading import (
    SENTENCEPIECE_FILES,
    SOURCE_FILE,
    TARGET_FILE,
    TokenizerDirectory,
    beginning,
    own_end,
    sentencepiece_tokenizer,
)
from toolkit.interop.tokenizer_writing import write_models
from toolkit.interop.vocabulary import Vocabulary, filled_model, in_own_order, with_own_begin
from toolkit.models.gpt import ABSENT, GPTConfig
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.models.storage import CONFIG_FILE, new_model, write_json
from toolkit.nn.module import Model
from toolkit.tokenization import Tokenizer, load_tokenizer
from toolkit.tokenization.foreign import ForeignSentencePieceTokenizer
from toolkit.tokenization.foreign_library import LibraryTokenizer
from toolkit.tokenization.special import BOS, EOS, UNK
from toolkit.tokenization.tokenizer import write_file
from toolkit.untrusted import VOCABULARY_BYTES, Items, Text, check, parse_json, read_bytes

_SHARED, _SOURCES, _TARGETS, _ALONE = "shared_vocabulary", "source_vocabulary", "target_vocabulary", "vocabulary"

_ENDS = ("json", "txt")  # older versions wrote one token on each line
_TOKENS = Items(Text())

# Sinusoidal positions have no end in ours, and are a table in theirs: as long as the sources that it reads by default.
_POSITIONS = 1024


def write(model: Model, tokenizer: Tokenizer, directory: Path, half: bool = False, int8: bool = False) -> None:
    """Write a model and its tokenizer into an existing directory; `half` stores float16, `int8` matrices so.

    SentencePiece models that a translator from elsewhere came with lie beside as what they were.

    Raises DataError where a file cannot be written.
    """
    tokens = distinct([tokenizer.piece(index) for index in range(tokenizer.vocab_size)])
    write_weights(model, tokens, directory, half, int8)
    tokenizer.save(directory)
    if isinstance(model, Seq2Seq) and isinstance(tokenizer, ForeignSentencePieceTokenizer):
        write_models(tokenizer, directory)


def write_weights(model: Model, tokens: Sequence[str], directory: Path, half: bool = False, int8: bool = False) -> None:
    """Write a model without a tokenizer.  tokens: what each id is called, all different.

    Raises ModelError where there are more or fewer tokens than the model has.
    """
    config = model.config
    if len(tokens) != config.vocab_size or len(set(tokens)) != len(tokens):
        raise ModelError(f"{len(set(tokens))} different tokens are given for a model of {config.vocab_size}")
    name = _SHARED if isinstance(model, Seq2Seq) else _ALONE
    write_file(directory, f"{name}.json", (json.dumps(list(tokens), ensure_ascii=False, indent=0) + "\n").encode())
    write_json(directory / CONFIG_FILE, _configuration(config, tokens))
    variables = _variables(model)
    write_variables(directory / MODEL_FILE, quantised(variables) if int8 else variables, half)


def _configuration(config: Config, tokens: Sequence[str]) -> dict[str, Any]:
    unk, bos, eos = tokens[UNK], tokens[BOS], tokens[EOS]
    found = {"unk_token": unk, "bos_token": bos, "eos_token": eos}
    found[OWN_ENTRY] = own_settings(config)
    if isinstance(config, GPTConfig):
        grouped = config.num_key_value_heads not in (0, config.num_heads)
        return found | {"layer_norm_epsilon": config.norm_eps, "multi_query_attention": grouped}
    found |= {"decoder_start_token": bos, "add_source_bos": False, "add_source_eos": True}
    return found | {"layer_norm_epsilon": spec.SEQ2SEQ_EPS, "multi_query_attention": False}


def _variables(model: Model) -> Variables:
    """Collect what goes into model.bin. An array of ours that has several names in theirs is stored once."""
    config, ours = with_own_begin(model.config, model.arrays())
    found, aliases = spec.numbers(config) | write_entries(ours, config, spec.entries), {}
    for table in spec.tables(config):
        first, *others = table.theirs
        found |= table.write(ours)
        aliases |= dict.fromkeys(others, first)
    if config.positions.startswith("sinusoidal"):
        first, *others = (spec.ENCODINGS.format(side=side) for side in reversed(stacks(config)))
        length = config.max_length if isinstance(config, GPTConfig) else max(_POSITIONS, config.max_length)
        found[first] = written_waves(config, length, model.parameter_count)
        aliases |= dict.fromkeys(others, first)
    return Variables(*(spec.SEQ2SEQ if isinstance(model, Seq2Seq) else spec.DECODER), found, aliases)


class StoredModel(NamedTuple):
    """A model as its directory has it, with ids of its own."""

    config: Config
    arrays: dict[str, Array]  # float32, by the names of our parameters
    tokens: list[str]
    vocabulary: Vocabulary  # which of its ids stand at which of ours, by the special tokens that it names
    of_sources: int = 0  # the last of the tokens, which only sources have, where they have a list of their own

    @property
    def notes(self) -> list[str]:
        """Say in sentences what the files leave open."""
        is_open = self.config.positions == "rotary" and self.vocabulary != Vocabulary.own(self.vocabulary.size)
        return [f"nothing says how long its texts may be: {self.config.max_length} tokens at most"] if is_open else []

    def by_ids(self) -> "StoredModel":
        """Lay it out for use by ids: a language model reads nothing in front of them, and only its end is special."""
        if not isinstance(self.config, GPTConfig) or self.vocabulary == Vocabulary.own(self.vocabulary.size):
            return self
        return self._replace(config=replace(self.config, begin=False), vocabulary=self.vocabulary.with_end_alone())

    def model(self, vocabulary: Vocabulary | None = None) -> Model:
        """Make the model in our layout.  vocabulary: that layout, if a tokenizer's files say more than the model's.

        Raises ModelError where arrays do not fit the config.
        """
        config, arrays = in_own_order(self.config, self.arrays, vocabulary or self.vocabulary)
        return filled_model(config, arrays, "the model")


def read(directory: Path, end_token: str | None = None) -> StoredModel:
    """Read a model of a published or an own directory, whatever type of numbers its weights are stored in.

    Two vocabularies become one. A tokenizer beside a language model decides if its texts begin with a token. Not
    everything is in a directory: rotary positions have no context, so 2,048 is taken, and 1,024 where positions are
    computed. Ours read sources with an end mark, as most models do; some (OpenNMT-py's) are trained without one, and
    nothing says so.

    end_token: what texts of a language model end with, whatever is said elsewhere.

    Raises ModelError for what is missing, damaged, or has no counterpart here, naming it, and ConfigError for an end
    token where none can be chosen.
    """
    own, source = ForeignSettings(directory), VariableSource(directory / MODEL_FILE)
    settings, translates = own.values, source.specification == spec.SEQ2SEQ[0]
    if source.specification not in (spec.SEQ2SEQ[0], spec.DECODER[0]):
        raise source.refusal(f"is a {source.specification}: {spec.SEQ2SEQ[0]} and {spec.DECODER[0]} are what is read")
    if translates and settings.get("add_source_bos"):
        raise ModelError(f"{own.path} puts a begin mark before every source: ours have an end mark only")
    if translates and settings.get("decoder_start_token", "<s>") is None:
        raise ModelError(f"{own.path} has no token that outputs begin with: every output needs one here")
    config, of_sources = spec.read_config(source, settings), 0
    arrays = _read_arrays(source, config)
    if translates and any((directory / f"{_SOURCES}.{end}").exists() for end in _ENDS):
        targets = read_tokens(directory, _TARGETS)
        tokens = _unite(arrays, read_tokens(directory, _SOURCES), targets, config, directory)
        of_sources = len(tokens) - len(targets)
        config = replace(config, vocab_size=len(tokens), output_bias=True)
    else:
        tokens = read_tokens(directory, _SHARED if translates else _ALONE)
    if len(tokens) != config.vocab_size:
        raise ModelError(f"{directory} has {len(tokens)} tokens and a model of {config.vocab_size}: copy it again")
    if end_token is not None and (own.is_own or not isinstance(config, GPTConfig)):
        raise own_end(directory)
    if own.is_own:
        config, vocabulary = own.with_own(config), Vocabulary.own(len(tokens))
    else:
        begin, first = (None, None) if translates else beginning(TokenizerDirectory(own, len(tokens)), tokens)
        vocabulary = _plan(source, settings, tokens, first)
        if begin is None:  # where a token ends and begins texts, it stands between them
            begin = vocabulary.rows[BOS] not in (-1, vocabulary.rows[EOS])
        if isinstance(config, GPTConfig):
            config = replace(config, begin=begin)
        if end_token is not None:
            vocabulary = _plan(source, settings | {"eos_token": end_token}, tokens, first)
    source.check_all_taken()
    if OUTPUT_BIAS in arrays:  # some forbid a token by -inf
        arrays[OUTPUT_BIAS] = np.maximum(arrays[OUTPUT_BIAS], np.float32(ABSENT))
    new_model(config).check_arrays(arrays, str(source.path))
    return StoredModel(config, arrays, tokens, vocabulary, of_sources)


def _unite(
    arrays: dict[str, Array], sources: Sequence[str], targets: Sequence[str], config: Seq2SeqConfig, directory: Path
) -> list[str]:
    """Make two vocabularies one: the tokens of targets, then those that sources alone have, which are never written.

    Changes the tables, (source or target size, D) -> (V, D), and the output bias, and returns the V tokens.
    """
    if config.tie == "all":  # equal tables, but not of equal tokens
        raise ModelError(f"{directory} has two vocabularies for one table of embeddings: copy it again")
    known = {token: index for index, token in enumerate(targets)}
    new = list(dict.fromkeys(token for token in sources if token not in known))
    known |= {token: len(targets) + index for index, token in enumerate(new)}
    table = np.zeros((len(targets) + len(new), config.d_model), np.float32)
    table[[known[token] for token in sources]] = arrays[SOURCE]
    arrays[SOURCE] = table
    for name in {TARGET, OUTPUT} & arrays.keys():
        arrays[name] = np.pad(arrays[name], ((0, len(new)), (0, 0)))
    bias = arrays.get(OUTPUT_BIAS, np.zeros(len(targets), np.float32))
    arrays[OUTPUT_BIAS] = np.pad(bias, (0, len(new)), constant_values=np.float32(ABSENT))
    return [*targets, *new]


def _read_arrays(source: VariableSource, config: Config) -> dict[str, Array]:
    arrays = {table.ours: table.read(source) for table in spec.tables(config)}
    arrays |= read_entries(source, config, spec.entries)
    turned = isinstance(config, GPTConfig) and spec.is_interleaved(source, config)
    for name, array in arrays.items():
        if name.endswith("positions.embedding.table"):
            arrays[name] = array[: config.max_length]
        elif turned and ".query_key_value." in name:
            arrays[name] = _in_halves(array, config)
    return arrays


def _in_halves(array: Array, config: GPTConfig) -> Array:
    """Reorder queries and keys, (..., D + 2·G·K): theirs turn neighbours, 2i and 2i + 1, ours i and i + K/2."""
    width = config.head_width
    turned = (config.num_heads + (config.num_key_value_heads or config.num_heads)) * width
    columns = np.arange(array.shape[-1])
    columns[:turned] = columns[:turned].reshape(-1, width // 2, 2).swapaxes(1, 2).reshape(-1)
    return array[..., columns]


def _plan(source: VariableSource, settings: dict[str, Any], tokens: list[str], first: int | None = None) -> Vocabulary:
    """Find the special tokens of a model from elsewhere, by what its settings call them.

    first: the id that texts begin with, if a tokenizer says it.
    """
    ids = {token: index for index, token in reversed(list(enumerate(tokens)))}
    unk, bos, eos = (settings.get(f"{name}_token", usual) for name, usual in _SPECIAL.items())
    if source.specification == spec.SEQ2SEQ[0]:
        bos = settings.get("decoder_start_token", "<s>")
    found = {"unk": ids.get(str(unk)), "bos": ids.get(str(bos)), "eos": ids.get(str(eos))}
    if first is not None:
        found["bos"] = first
    if source.number("decoder/start_from_zero_embedding", 0):
        found["bos"] = None  # a row of zeros
    elif source.specification == spec.SEQ2SEQ[0] and found["bos"] is None:
        raise ModelError(f"{source.path.parent} has no token {bos!r}, which its outputs begin with")
    if found["eos"] is None:
        raise ModelError(f"{source.path.parent} has no token {eos!r}, which its texts end with")
    found["pad"] = next((ids[token] for token in _PADDING if token in ids), None)
    return Vocabulary.plan(len(tokens), **found, origin=source.path.parent)


_SPECIAL = {"unk": "<unk>", "bos": "<s>", "eos": "</s>"}  # and what they are called where nothing is said
_PADDING = ("<pad>", "<blank>", "[PAD]")


def distinct(tokens: Sequence[str]) -> list[str]:
    """Rename tokens that are called like another, since CTranslate2 knows them by their names.

    The end mark keeps its name, where an imported model has one token for several purposes; of others the first does.
    """
    taken = set(tokens)
    found: dict[str, int] = {}
    for index in sorted(range(len(tokens)), key=lambda index: index != EOS):
        name, end = tokens[index], ""
        while name in found or (end and name in taken):
            name, end = f"<|{index}{end}|>", f"{end}_"
        found[name] = index
    return sorted(found, key=found.__getitem__)


def read_tokens(directory: Path, name: str) -> list[str]:
    """Read one of the lists of tokens.  Raises ModelError where it is missing or damaged."""
    for path in (directory / f"{name}.{end}" for end in _ENDS):
        try:
            content = read_bytes(path, VOCABULARY_BYTES)
            if path.suffix == ".txt":
                return content.decode().removesuffix("\n").split("\n")
            return check(parse_json(content), _TOKENS)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ModelError(f"{path} cannot be read: {error.strerror}") from None
        except ValueError:
            raise ModelError(f"{path} is damaged: it is not a list of tokens in UTF-8") from None
    raise ModelError(f"{directory} is not a whole CTranslate2 model: it has no {name}.json")


def pieces_tokenizer(directory: Path, tokens: Sequence[str], vocabulary: Vocabulary) -> Tokenizer:
    """Read the tokenizer beside a model, whose tokens are known already.

    tokens: (foreign size,). Raises ModelError where there is none, where it is damaged, or where the library that it
    needs is not installed.
    """
    if vocabulary == Vocabulary.own(vocabulary.size):
        return load_tokenizer(directory)
    for names in ((TARGET_FILE, SOURCE_FILE), *((name,) for name in SENTENCEPIECE_FILES)):
        if all((directory / name).is_file() for name in names):
            return sentencepiece_tokenizer(tokens, vocabulary, *(directory / name for name in names))
    content, origin = TokenizerDirectory(ForeignSettings(directory), len(tokens)).library_content()
    return LibraryTokenizer(content, vocabulary.rows, origin)
