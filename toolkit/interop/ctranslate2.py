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

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.interop.ctranslate2_config import ACTIVATIONS, SEQ2SEQ_EPS, gpt_config, is_interleaved, seq2seq_config
from toolkit.interop.ctranslate2_file import MODEL_FILE, Variables, write_variables
from toolkit.interop.ctranslate2_parts import parts
from toolkit.interop.ctranslate2_tokens import ALONE, SHARED, SOURCE, TARGET, Union, distinct, read_tokens, write_tokens
from toolkit.interop.ctranslate2_variables import Source
from toolkit.interop.foreign_settings import OWN_ENTRY, Config, ForeignSettings, own_settings
from toolkit.interop.tokenizer_directory import own_end
from toolkit.interop.tokenizer_writing import write_models
from toolkit.interop.vocabulary import Vocabulary, in_own_order, with_own_begin
from toolkit.interop.written_positions import written_waves
from toolkit.models.gpt import ABSENT, GPTConfig
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.models.storage import CONFIG_FILE, new_model, write_json
from toolkit.nn.module import Model
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.foreign import ForeignSentencePieceTokenizer
from toolkit.tokenization.special import BOS, EOS, UNK

SEQ2SEQ, DECODER = ("TransformerSpec", 7), ("TransformerDecoderSpec", 8)  # specifications, with their revisions

# Sinusoidal positions have no end in ours, and are a table in theirs: as long as the sources that it reads by default.
_POSITIONS = 1024


def write(model: Model, tokenizer: Tokenizer, directory: Path, half: bool = False) -> None:
    """Write a model and its tokenizer into an existing directory; `half` stores float16.

    SentencePiece models that a translator from elsewhere came with lie beside as what they were.

    Raises DataError where a file cannot be written.
    """
    write_weights(model, distinct([tokenizer.piece(index) for index in range(tokenizer.vocab_size)]), directory, half)
    tokenizer.save(directory)
    if isinstance(model, Seq2Seq) and isinstance(tokenizer, ForeignSentencePieceTokenizer):
        write_models(tokenizer, directory)


def write_weights(model: Model, tokens: Sequence[str], directory: Path, half: bool = False) -> None:
    """As `write`, without a tokenizer.  tokens: what each id is called, all different.

    Raises ModelError where there are more or fewer tokens than the model has.
    """
    config = model.config
    if len(tokens) != config.vocab_size or len(set(tokens)) != len(tokens):
        raise ModelError(f"{len(set(tokens))} different tokens are given for a model of {config.vocab_size}")
    write_tokens(directory, SHARED if isinstance(model, Seq2Seq) else ALONE, tokens)
    write_json(directory / CONFIG_FILE, _configuration(config, tokens))
    write_variables(directory / MODEL_FILE, _variables(model), half)


def _configuration(config: Config, tokens: Sequence[str]) -> dict:
    """Their config.json."""
    unk, bos, eos = tokens[UNK], tokens[BOS], tokens[EOS]
    found = {"unk_token": unk, "bos_token": bos, "eos_token": eos}
    found[OWN_ENTRY] = own_settings(config)
    if isinstance(config, GPTConfig):
        grouped = config.key_value_heads not in (0, config.heads)
        return found | {"layer_norm_epsilon": config.norm_eps, "multi_query_attention": grouped}
    found |= {"decoder_start_token": bos, "add_source_bos": False, "add_source_eos": True}
    return found | {"layer_norm_epsilon": SEQ2SEQ_EPS, "multi_query_attention": False}


def _variables(model: Model) -> Variables:
    """Everything in model.bin. An array of ours that has several names in theirs is stored once."""
    config, ours = with_own_begin(model.config, model.arrays())
    found, aliases, written = _attributes(config), {}, {}
    for part in parts(config):
        if part.ours in written:
            aliases[part.theirs] = written[part.ours]
            continue
        written[part.ours] = part.theirs
        found |= part.write(ours)
    if config.positions.startswith("sinusoidal"):
        found["decoder/position_encodings/encodings"] = _encodings(config, model.parameter_count)
        if isinstance(config, Seq2SeqConfig):
            aliases["encoder/position_encodings/encodings"] = "decoder/position_encodings/encodings"
    return Variables(*(SEQ2SEQ if isinstance(model, Seq2Seq) else DECODER), found, aliases)


def _encodings(config: Config, size: int) -> Array:
    length = config.max_length if isinstance(config, GPTConfig) else max(_POSITIONS, config.max_length)
    return written_waves(config, length, size)


def _attributes(config: Config) -> dict[str, Array]:
    """What theirs stores as single numbers."""
    flag, short, integer = np.int8, np.int16, np.int32
    is_gpt = isinstance(config, GPTConfig)
    shared = {
        "num_heads": short(config.heads),
        "pre_norm": flag(is_gpt or config.norm == "pre"),
        "activation": flag(ACTIVATIONS["silu" if config.activation == "swiglu" else config.activation]),
        "scale_embeddings": flag(not is_gpt and config.scale_embedding),
    }
    found = {f"decoder/{name}": value for name, value in shared.items()}
    found |= {"decoder/alignment_layer": short(-1), "decoder/alignment_heads": short(1)}
    for name in ("alibi", "alibi_use_positive_positions", "scale_alibi", "start_from_zero_embedding"):
        found[f"decoder/{name}"] = flag(False)
    if not is_gpt:
        found |= {f"encoder/{name}": value for name, value in shared.items()}
        return found | {"encoder/embeddings_merge": flag(0)}
    for index in range(config.layers):
        attention = f"decoder/layer_{index}/self_attention"
        if config.key_value_heads not in (0, config.heads):
            found[f"{attention}/num_heads_kv"] = integer(config.key_value_heads)
        if config.positions == "rotary":
            found[f"{attention}/rotary_dim"] = integer(0)  # all of a head
            found[f"{attention}/rotary_interleave"] = flag(False)
            found[f"{attention}/rotary_base"] = np.float32(config.rotary_base)
    return found


class Reading(NamedTuple):
    """A model as its directory has it, with ids of its own."""

    config: Config
    arrays: dict[str, Array]  # float32, by the names of our parameters
    tokens: list[str]
    vocabulary: Vocabulary  # which of its ids stand at which of ours, by the special tokens that it names

    @property
    def notes(self) -> list[str]:
        """What the files leave open, in sentences."""
        is_open = self.config.positions == "rotary" and self.vocabulary != Vocabulary.own(self.vocabulary.size)
        return [f"nothing says how long its texts may be: {self.config.max_length} tokens at most"] if is_open else []

    def model(self, vocabulary: Vocabulary | None = None) -> Model:
        """The model in our layout.  vocabulary: that layout, if a tokenizer's files say more than the model's.

        Raises ModelError where arrays do not fit the config.
        """
        config, arrays = in_own_order(self.config, self.arrays, vocabulary or self.vocabulary)
        model = new_model(config)
        model.allocate()
        model.load_arrays(arrays, "the model")
        return model


def read(directory: Path, end_token: str | None = None) -> Reading:
    """Read a model of a published or an own directory, whatever type of numbers its weights are stored in.

    Two vocabularies become one (see `Union`). Not everything is in a directory: rotary positions have no context, so
    2,048 is taken, and 1,024 where positions are computed. Ours read sources with an end mark, as most models do; some
    (OpenNMT-py's) are trained without one, and nothing says so.

    end_token: what texts of a language model end with, whatever is said elsewhere.

    Raises ModelError for what is missing, damaged, or has no counterpart here, naming it, and ConfigError for an end
    token where none can be chosen.
    """
    own, source = ForeignSettings(directory), Source(directory / MODEL_FILE)
    settings = own.values
    if source.specification == SEQ2SEQ[0]:
        config, arrays, tokens = _read_seq2seq(directory, source, settings)
    elif source.specification == DECODER[0]:
        config = gpt_config(source, settings)
        arrays, tokens = _read_arrays(source, config), read_tokens(directory, ALONE)
    else:
        raise source.refusal(f"is a {source.specification}: {SEQ2SEQ[0]} and {DECODER[0]} are what is read")
    if len(tokens) != config.vocab_size:
        raise ModelError(f"{directory} has {len(tokens)} tokens and a model of {config.vocab_size}: copy it again")
    if end_token is not None and (own.is_own or not isinstance(config, GPTConfig)):
        raise own_end(directory)
    if own.is_own:
        config, vocabulary = own.with_own(config), Vocabulary.own(len(tokens))
    else:
        vocabulary = _plan(source, settings, tokens)
        if isinstance(config, GPTConfig):  # where a token ends and begins texts, it stands between them
            config = replace(config, begin=vocabulary.rows[BOS] not in (-1, vocabulary.rows[EOS]))
        if end_token is not None:
            vocabulary = _plan(source, settings | {"eos_token": end_token}, tokens)
    source.check_all_taken()
    if "output_bias" in arrays:  # some forbid a token by -inf
        arrays["output_bias"] = np.maximum(arrays["output_bias"], np.float32(ABSENT))
    new_model(config).check_arrays(arrays, str(source.path))
    return Reading(config, arrays, tokens, vocabulary)


def _read_seq2seq(
    directory: Path, source: Source, settings: dict[str, Any]
) -> tuple[Seq2SeqConfig, dict[str, Array], list[str]]:
    if settings.get("add_source_bos"):
        raise ModelError(f"{directory / CONFIG_FILE} puts a begin mark before every source: ours have an end mark only")
    if settings.get("decoder_start_token", "<s>") is None:
        raise ModelError(f"{directory / CONFIG_FILE} has no token that outputs begin with: every output needs one here")
    config = seq2seq_config(source, settings)
    arrays = _read_arrays(source, config)
    if not any((directory / f"{SOURCE}.{end}").exists() for end in ("json", "txt")):
        return config, arrays, read_tokens(directory, SHARED)
    union = Union(read_tokens(directory, SOURCE), read_tokens(directory, TARGET))
    if config.tie == "all":  # equal tables, but not of equal tokens
        raise ModelError(f"{directory} has two vocabularies for one table of embeddings: copy it again")
    arrays["source.embedding.table"] = union.source_table(arrays["source.embedding.table"])
    for name in {"target.embedding.table", "output.table"} & arrays.keys():
        arrays[name] = union.target_table(arrays[name])
    arrays["output_bias"] = union.output_bias(arrays.get("output_bias"))
    return replace(config, vocab_size=len(union.tokens), output_bias=True), arrays, union.tokens


def _read_arrays(source: Source, config: Config) -> dict[str, Array]:
    """Ours by their names."""
    arrays: dict[str, Array] = {}
    for part in parts(config):
        if part.ours not in arrays:
            arrays |= part.read(source.take)
    turned = isinstance(config, GPTConfig) and is_interleaved(source, config)
    for name, array in arrays.items():
        if name.endswith("positions.embedding.table"):
            arrays[name] = array[: config.max_length]
        elif turned and ".query_key_value." in name:
            arrays[name] = _in_halves(array, config)
    return arrays


def _in_halves(array: Array, config: GPTConfig) -> Array:
    """Turned are neighbours, 2i and 2i + 1, in theirs, and i and i + K/2 in ours.  Shapes: (..., D + 2·G·K)."""
    width = config.width // config.heads
    turned = config.width + (config.key_value_heads or config.heads) * width
    columns = np.arange(array.shape[-1])
    columns[:turned] = columns[:turned].reshape(-1, width // 2, 2).swapaxes(1, 2).reshape(-1)
    return array[..., columns]


def _plan(source: Source, settings: dict[str, Any], tokens: list[str]) -> Vocabulary:
    """The special tokens of a model from elsewhere, by what its settings call them."""
    ids = {token: index for index, token in reversed(list(enumerate(tokens)))}
    unk, bos, eos = (settings.get(f"{name}_token", usual) for name, usual in _SPECIAL.items())
    if source.specification == SEQ2SEQ[0]:
        bos = settings.get("decoder_start_token", "<s>")
    found = {"unk": ids.get(str(unk)), "bos": ids.get(str(bos)), "eos": ids.get(str(eos))}
    if source.number("decoder/start_from_zero_embedding", 0):
        found["bos"] = None  # a row of zeros
    elif source.specification == SEQ2SEQ[0] and found["bos"] is None:
        raise ModelError(f"{source.path.parent} has no token {bos!r}, which its outputs begin with")
    if found["eos"] is None:
        raise ModelError(f"{source.path.parent} has no token {eos!r}, which its texts end with")
    found["pad"] = next((ids[token] for token in _PADDING if token in ids), None)
    return Vocabulary.plan(len(tokens), **found, origin=source.path.parent)


_SPECIAL = {"unk": "<unk>", "bos": "<s>", "eos": "</s>"}  # and what they are called where nothing is said
_PADDING = ("<pad>", "<blank>", "[PAD]")
