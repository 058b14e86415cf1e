"""A model of CTranslate2 by the variables in its model.bin: which are which of ours, and the config that they imply.

They are named as `ctranslate2.specs.transformer_spec` names them. There are no settings beside: a config follows from
shapes and single numbers; one that is missing has the value that CTranslate2's own code gives it (src/layers).
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from toolkit.errors import ConfigError, ModelError
from toolkit.functional.arrays import Array
from toolkit.functional.positions import sinusoidal_positions
from toolkit.interop.ctranslate2_file import VariableSource
from toolkit.interop.hugging_face_files import Config
from toolkit.interop.mapping import EMBEDDING, OUTPUT, OUTPUT_BIAS, SOURCE, TARGET, Entry, Table, Tensors, stacks
from toolkit.models.base import LAYOUTS
from toolkit.models.gpt import GPTConfig
from toolkit.models.seq2seq import Seq2SeqConfig
from toolkit.models.storage import is_larger
from toolkit.untrusted import Maybe, Number, UnfitError, check

_READ, _FROM, _WRITTEN = "decoder/embeddings/weight", "encoder/embeddings_0/weight", "decoder/projection/weight"
_BIAS, ENCODINGS = "decoder/projection/bias", "{side}/position_encodings/encodings"

# The order of what is fused (queries, keys, values), and of heads, is ours.
_TENSORS = Tensors(
    layer="{side}/layer_{layer}/",
    parts={
        "attention_norm": "self_attention/layer_norm",
        "query_norm": "self_attention/q_norm",
        "key_norm": "self_attention/k_norm",
        "attention_input": "self_attention/linear_0",
        "attention_output": "self_attention/linear_1",
        "cross_norm": "attention/layer_norm",
        "cross_query": "attention/linear_0",
        "cross_key_value": "attention/linear_1",
        "cross_output": "attention/linear_2",
        "feed_forward_norm": "ffn/layer_norm",
        "up": "ffn/linear_0",
        "down": "ffn/linear_1",
    },
    norm="{side}/layer_norm",
    map_ends=("/weight", "/bias"),
    norm_ends=("/gamma", "/beta"),
    optional_biases=True,
)
_GATED = replace(_TENSORS, parts={**_TENSORS.parts, "up": ("ffn/linear_0", "ffn/linear_0_noact")})

_TABLES: dict[Any, tuple[Table, ...]] = {  # by `config.tie`
    True: (Table(EMBEDDING, (_READ, _WRITTEN)),),
    False: (Table(EMBEDDING, (_READ,)), Table(OUTPUT, (_WRITTEN,))),
    "all": (Table(SOURCE, (_READ, _FROM, _WRITTEN)),),
    "decoder": (Table(TARGET, (_READ, _WRITTEN)), Table(SOURCE, (_FROM,))),
    "none": (Table(TARGET, (_READ,)), Table(SOURCE, (_FROM,)), Table(OUTPUT, (_WRITTEN,))),
}


def tables(config: Config) -> list[Table]:
    """List everything with a row for each token or position, and the output bias."""
    found = [*_TABLES[config.tie], *([Table(OUTPUT_BIAS, (_BIAS,))] if config.output_bias else [])]
    if config.positions == "learned":
        found += [Table(stack.positions, (ENCODINGS.format(side=side),)) for side, stack in stacks(config).items()]
    return found


def entries(config: Config, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Entry]:
    """Yield everything else.  Layer norms have biases there; an RMS norm is one that has none."""
    is_gpt = isinstance(config, GPTConfig)
    tensors = _GATED if config.activation == "swiglu" else _TENSORS
    return tensors.entries(config, shapes, biased=() if is_gpt and config.norm == "rms" else ("norm",))


SEQ2SEQ, DECODER = ("TransformerSpec", 7), ("TransformerDecoderSpec", 8)  # specifications, with their revisions

# Their numbers of the activations, as in their `common_spec.Activation`.
ACTIVATIONS = {"relu": 0, "gelu_tanh": 1, "silu": 2, "gelu": 3}
SEQ2SEQ_EPS = 1e-5  # of the layer norms in ours

# Nothing in the directory says how long a text may be where positions are computed.
_CONTEXT = 2048
_POSITIONS = 1024


def numbers(config: Config) -> dict[str, Array]:
    """Give what they store as single numbers.  Raises ModelError for frequencies that they have not."""
    if _has_other_frequencies(config):
        kind, factor = config.rotary_scaling, config.rotary_attention_factor
        raise ModelError(
            f"CTranslate2 has no rotary positions of rotary_scaling {kind} with rotary_attention_factor {factor:g}: "
            "only of none and linear, with 1"
        )
    flag, short, integer = np.int8, np.int16, np.int32
    is_gpt = isinstance(config, GPTConfig)
    shared = {
        "num_heads": short(config.num_heads),
        "pre_norm": flag(is_gpt or config.norm_position == "pre"),
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
        if config.num_key_value_heads not in (0, config.num_heads):
            found[f"{attention}/num_heads_kv"] = integer(config.num_key_value_heads)
        if config.head_dim:
            found[f"{attention}/head_dim"] = integer(config.head_dim)
        if config.positions == "rotary":
            found[f"{attention}/rotary_dim"] = integer(0)  # all of a head
            found[f"{attention}/rotary_interleave"] = flag(False)
            found[f"{attention}/rotary_base"] = np.float32(config.rotary_base)
        if config.positions == "rotary" and config.rotary_scaling != "none":
            found[f"{attention}/rotary_scaling_type"] = flag(_LINEAR)
            found[f"{attention}/rotary_scaling_factor"] = np.float32(config.rotary_factor)
    return found


_LINEAR = 0  # their number of the only scaling of frequencies that is the same there


def _has_other_frequencies(config: Config) -> bool:
    """True for a model whose positions nothing in model.bin can say."""
    if not isinstance(config, GPTConfig) or config.positions != "rotary":
        return False
    return config.rotary_scaling in ("llama3", "yarn") or config.rotary_attention_factor != 1


def read_config(source: VariableSource, settings: dict[str, Any]) -> Config:
    """Give the config of a model.  settings: of config.json.

    Raises ModelError, naming it, for what ours have no counterpart of.
    """
    is_gpt = source.specification == DECODER[0]
    sides = ("decoder",) if is_gpt else ("encoder", "decoder")
    size, width = _table(source, _READ)
    scales = {_scale(source, side, width) for side in sides}
    if len(scales) > 1:
        raise source.refusal("scales the embeddings of sources and targets differently: here they are treated alike")
    number = source.agreed([f"{side}/activation" for side in sides], 0)
    if number not in ACTIVATIONS.values():
        raise source.refusal(f"has activation {number:g} of CTranslate2's, which is none of {', '.join(ACTIVATIONS)}")
    is_pre = bool(source.agreed([f"{side}/pre_norm" for side in sides], 1))
    found = {
        "vocab_size": size,
        "d_model": width,
        "num_heads": int(source.agreed([f"{side}/num_heads" for side in sides], 8)),
        "d_ff": _shape(source, f"{sides[0]}/layer_0/ffn/linear_0/weight")[0],
        "activation": next(name for name, theirs in ACTIVATIONS.items() if theirs == number),
        "bias": bool(_biases(source)),
        "output_bias": _BIAS in source,
        **dict.fromkeys(_DROPOUTS, 0.0),
    }
    more = _of_gpt if is_gpt else _of_seq2seq
    found |= more(source, settings, found, is_pre, scales.pop())
    try:
        config = (GPTConfig if is_gpt else Seq2SeqConfig)(**found)
    except ConfigError as error:
        raise source.refusal(f"describes a model that cannot be: {error}") from None
    if is_larger(config, len(source.names()), source.size):
        raise source.refusal("is damaged: its numbers ask for a larger model than its arrays are")
    return config


def _of_seq2seq(
    source: VariableSource, settings: dict[str, Any], found: dict[str, Any], is_pre: bool, scales: bool
) -> dict[str, Any]:
    if not math.isclose(_epsilon(source, settings, SEQ2SEQ_EPS), SEQ2SEQ_EPS, rel_tol=1e-3):
        raise source.refusal(f"has layer norms with an epsilon other than {SEQ2SEQ_EPS:g}")
    tied = source.is_same(_READ, _WRITTEN)
    positions, length = _positions(source, ["encoder", "decoder"], found["d_model"])
    return {
        "encoder_layers": _layers(source, "encoder"),
        "decoder_layers": _layers(source, "decoder"),
        "norm_position": "pre" if is_pre else "post",
        "positions": positions,
        "max_length": length,
        "tie": "none" if not tied else "all" if source.is_same(_READ, _FROM) else "decoder",
        "scale_embedding": scales,
    }


def _of_gpt(
    source: VariableSource, settings: dict[str, Any], found: dict[str, Any], is_pre: bool, scales: bool
) -> dict[str, Any]:
    width, heads, layers = found["d_model"], found["num_heads"], _layers(source, "decoder")
    attentions = [f"decoder/layer_{index}/self_attention" for index in range(layers)]
    each = {name: int(source.agreed([f"{a}/{name}" for a in attentions], value)) for name, value in _EACH.items()}
    rms = "decoder/layer_norm/beta" not in source
    gated = "decoder/layer_0/ffn/linear_0_noact/weight" in source
    if not is_pre:
        raise source.refusal("has its norms after the sub-layers: language models have them in front here")
    if scales:
        raise source.refusal("scales its embeddings, which language models do not do here")
    if heads < 1 or (each["head_dim"] < 1 and width % heads):
        raise source.refusal(f"has {heads} heads that do not divide its {width} dimensions among them")
    head_dim = each["head_dim"] if each["head_dim"] > 0 else width // heads
    if each["rotary_dim"] not in (-1, 0, head_dim):
        raise source.refusal(f"turns only {each['rotary_dim']} of a head's {head_dim} dimensions by position")
    scaling = int(source.agreed([f"{a}/rotary_scaling_type" for a in attentions], -1))
    if scaling not in (-1, _LINEAR):
        raise source.refusal("scales the frequencies of rotary positions in a way of which it does not say all")
    if gated and found["activation"] != "silu":
        raise source.refusal(f"gates its feed-forward networks by {found['activation']}: only silu does that here")
    rotary = each["rotary_dim"] >= 0
    positions, length = ("rotary", _CONTEXT) if rotary else _positions(source, ["decoder"], width)
    biases = _biases(source)
    window = max(each["sliding_window"], int(source.number("decoder/sliding_window", 0)))
    return {
        "layers": layers,
        "num_key_value_heads": 0 if each["num_heads_kv"] in (-1, heads) else each["num_heads_kv"],
        "activation": "swiglu" if gated else found["activation"],
        "norm": "rms" if rms else "layer",
        "norm_eps": _epsilon(source, settings, 1e-6 if rms else 1e-5),
        "bias_in": "all" if len(biases) != 1 else biases.pop(),
        "positions": positions,
        "rotary_base": source.agreed([f"{a}/rotary_base" for a in attentions], 10000.0),
        "rotary_scaling": "none" if scaling < 0 else "linear",
        "rotary_factor": source.agreed([f"{a}/rotary_scaling_factor" for a in attentions], 1.0),
        "head_dim": 0 if head_dim * heads == width else head_dim,
        "qk_norm": "decoder/layer_0/self_attention/q_norm/gamma" in source,
        "max_length": min(length, window) if window > 0 else length,
        "tie": source.is_same(_READ, _WRITTEN),
    }


_DROPOUTS = ("embedding_dropout", "attention_dropout", "activation_dropout", "residual_dropout")
# Numbers that each attention has, and their values where they are missing.
_EACH = {"num_heads_kv": -1, "head_dim": -1, "sliding_window": 0, "rotary_dim": -1}


def is_interleaved(source: VariableSource, config: GPTConfig) -> bool:
    """True if rotary positions turn neighbours in a head together, 2i and 2i + 1, and not i and i + K/2."""
    names = [f"decoder/layer_{index}/self_attention/rotary_interleave" for index in range(config.layers)]
    return config.positions == "rotary" and bool(source.agreed(names, 1))


def _epsilon(source: VariableSource, settings: dict[str, Any], usual: float) -> float:
    try:
        value = check(settings.get("layer_norm_epsilon"), Maybe(Number()))
    except UnfitError as error:
        raise source.refusal(f"belongs to a damaged config.json: {error.within('layer_norm_epsilon')}") from None
    return usual if value is None else float(value)


def _table(source: VariableSource, name: str) -> tuple[int, int]:
    """Give the shape of a table of embeddings, to which all that is computed here is in proportion."""
    size, width = _shape(source, name)
    if not size or not 0 < width**2 <= source.size:  # the maps of a single attention are more than that
        raise source.refusal(f"is damaged: its other arrays are too small for {name} of shape {(size, width)}")
    return size, width


def _shape(source: VariableSource, name: str) -> tuple[int, int]:
    array = source.tensor(name)
    if array.ndim != 2:
        raise source.refusal(f"is damaged: {name} is not a matrix")
    return array.shape


def _layers(source: VariableSource, side: str) -> int:
    found = (re.match(rf"{side}/layer_([0-9]+)/", name) for name in source.names())
    return len({match[1] for match in found if match})


def _scale(source: VariableSource, side: str, width: int) -> bool:
    """True if embeddings are multiplied by √D: the file has a switch, or the factor itself."""
    name = f"{side}/scale_embeddings"
    value = source.number(name, 1)
    if not source.is_stored_as(name, "f"):
        return bool(value)
    for factor in (1.0, math.sqrt(width)):
        if math.isclose(value, factor, rel_tol=1e-3):
            return factor != 1
    raise source.refusal(f"multiplies embeddings by {value:g}: here it is the root of their width, or 1")


def _biases(source: VariableSource) -> set[str]:
    """Name the parts with biases, as `GPTConfig.bias_in` does: of those in layer norms, such as do something."""
    names = source.names()
    biases = [name for name in names if name.endswith("/bias") and name != _BIAS]
    of_both = any(name.endswith("self_attention/linear_1/bias") for name in biases)
    attention = "attention" if of_both else "attention_input"
    found = {"feed_forward" if "/ffn/" in name else attention for name in biases}
    return found | {"norms" for name in names if name.endswith("/beta") and source.tensor(name).any()}


def _positions(source: VariableSource, sides: list[str], width: int) -> tuple[str, int]:
    """Tell which positions are added to embeddings, and how many there are at least."""
    tables = []
    for side in sides:
        name = ENCODINGS.format(side=side)
        if name not in source:
            source.add(name, _computed_positions(_POSITIONS, width))
        tables.append(source.tensor(name))
        if tables[-1].ndim != 2 or tables[-1].shape[1] != width:
            raise source.refusal(f"is damaged: {name} is not a table of {width} columns")
    length = min(map(len, tables))
    near = 1e-3 if source.is_stored_as(ENCODINGS.format(side=sides[0]), "f2") else 1e-4
    for name, layout in LAYOUTS.items():
        if layout == "fairseq" and len(sides) == 1:  # which no language model has here
            continue
        waves = sinusoidal_positions(max(map(len, tables)), width, layout)
        if all(np.allclose(table, waves[: len(table)], rtol=0, atol=near) for table in tables):
            return name, length
    return "learned", length


def _computed_positions(length: int, width: int) -> Array:
    """Compute the positions of a model that stores none: counted from 1, and the longest wave is 20000π."""
    rates = np.exp(np.arange(width // 2) * (-math.log(10000.0) / max(width // 2 - 1, 1)))
    angles = (np.arange(length)[:, None] + 1) * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
