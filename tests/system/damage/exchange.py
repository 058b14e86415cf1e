"""Models of other libraries that are damaged or have no counterpart, and ours that have none there."""

import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.interop.foreign_models import make_marian, put_into_shards
from tests.system.damage.models import header, smaller_tokenizer, spoil
from tests.system.damage.room import (
    Harm,
    Kind,
    arrays,
    both,
    change,
    cut,
    directory,
    edit,
    link,
    remove,
    write,
)
from toolkit.interop import export_model

IMPORT, SHARDS, OWN = "import marian new", "import shards new", "import theirs new"
CONFIG, WEIGHTS, GENERATION, TOKENS, SOURCE, TARGET, TOKENIZER = (
    f"marian/{name}"
    for name in (
        "config.json", "model.safetensors", "generation_config.json", "vocab.json", "source.spm", "target.spm",
        "tokenizer_config.json",
    )
)  # fmt: skip
INDEX, SHARD = "shards/model.safetensors.index.json", "shards/model-00002-of-00002.safetensors"
NOT_DOWNLOADED = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"


def furnish(room: Path, make_gpt: Callable[..., Path]) -> None:
    """Put models of other libraries beside ours: of somebody else, in shards, and our own exports."""
    make_marian(room / "marian", room / "model" / "tokenizer.model")
    export_model(room / "model", room / "theirs")
    export_model(make_gpt(room / "llama", norm="rms", activation="swiglu"), room / "shards")
    put_into_shards(room / "shards")
    make_gpt(room / "odd", norm="rms", activation="gelu", num_key_value_heads=1)


def setting(**values: Any) -> Harm:
    return edit(CONFIG, lambda config: config.update(values))


def tensor(name: str, how: Callable[[np.ndarray], np.ndarray]) -> Harm:
    return arrays(WEIGHTS, lambda values: values.update({name: np.ascontiguousarray(how(values[name]))}))


def token(**ids: Any) -> Harm:
    return edit(TOKENS, lambda values: values.update(ids))


def own_setting(**values: Any) -> Harm:
    return edit("theirs/config.json", lambda config: config["toolkit"].update(values))


HAS_NO = "which no model of this toolkit has"
SETTINGS: dict[str, tuple[Harm, str]] = {
    **{f"cut to {keep}": (cut(CONFIG, keep), "marian/config.json is damaged") for keep in (0, 1, 0.5)},
    "gone": (remove(CONFIG), "marian is not a model: it has no config.json"),
    "a directory": (directory(CONFIG), "marian/config.json cannot be read"),
    "a link to nothing": (link(CONFIG, "nowhere"), "marian"),
    "a list": (write(CONFIG, "[]"), "marian/config.json is damaged"),
    "in UTF-16": (change(CONFIG, lambda content: content.decode().encode("utf-16")), "config.json is damaged"),
    "nested without end": (write(CONFIG, "[" * 100_000), "config.json is damaged"),
    "empty": (write(CONFIG, "{}"), "does not say of what class the model is"),
    "of another class": (setting(architectures=["BertModel"]), "describes a BertModel: this toolkit reads"),
    "of a class in numbers": (
        setting(architectures=[1], model_type=2),
        "describes a 2: this toolkit reads",
    ),
    "of quantised weights": (setting(quantization_config={"bits": 4}), "describes quantised weights"),
    "of another activation": (setting(activation_function="mish"), "activation_function 'mish'"),
    "of norms in front": (setting(normalize_before=True), f"normalize_before true, {HAS_NO}: it must be false"),
    "of learned positions": (setting(static_position_embeddings=False), HAS_NO),
    "of unequal heads": (setting(decoder_attention_heads=1), f"decoder_attention_heads 1, {HAS_NO}: it must be 2"),
    "with a number as text": (setting(d_model="8"), 'd_model is "8", not a whole number'),
    "with a fraction": (setting(encoder_layers=1.5), "encoder_layers is 1.5, not a whole number"),
    "with true for a number": (setting(vocab_size=True), "vocab_size is true, not a whole number"),
    "with a list for a switch": (setting(scale_embedding=[]), "scale_embedding is [], not true or false"),
    "of no width": (setting(d_model=0), "d_model is 0, but must be at least 1"),
    "of another width": (setting(d_model=16), "it should be"),
    "of a width beyond all memory": (setting(d_model=10**12), "describes a larger model than the weights beside it"),
    "of thousands of layers": (setting(decoder_layers=99_999), "describes a larger model than the weights beside it"),
    "of a layer more": (setting(encoder_layers=2), "marian lacks model.encoder.layers.1."),
    "of a layer less": (setting(decoder_layers=1), "has no place for"),
    "of heads that do not divide the width": (
        setting(encoder_attention_heads=3, decoder_attention_heads=3),
        "describes a model that cannot be",
    ),
    "of a number of a hundred digits": (
        setting(vocab_size=10**100, decoder_vocab_size=10**100),
        "marian/config.json is damaged: it has a number of 101 digits",
    ),
    "of fewer tokens": (setting(vocab_size=50, decoder_vocab_size=50), "as token 50, but the model has only 50 tokens"),
    "of dropout that is not a number": (
        setting(dropout=float("nan")),
        "config.json is damaged: dropout is NaN, not a number",
    ),
    "of an end that no token has": (
        setting(eos_token_id=10**6),
        "marian: the id of </s> is 1000000, but",
    ),
    "of an end in words": (setting(eos_token_id="</s>"), "eos_token_id is"),
    "of a begin that is true": (setting(decoder_start_token_id=True), "decoder_start_token_id is true"),
    "of no begin": (setting(decoder_start_token_id=None), "has no decoder_start_token_id"),
    "with generation settings cut": (write(GENERATION, "{"), "generation_config.json is damaged"),
    "with generation settings in a list": (write(GENERATION, "[]"), "generation_config.json is damaged"),
    "with generation settings of no such token": (write(GENERATION, '{"eos_token_id": 9999}'), "the id of </s> is"),
}
STORED: dict[str, tuple[Harm, str]] = {
    **{f"cut to {keep}": (cut(WEIGHTS, keep), "model.safetensors is damaged") for keep in (0, 9, 0.05, 0.5, 0.999)},
    "gone": (remove(WEIGHTS), "marian has no weights: there is no model.safetensors, nor"),
    "a directory": (directory(WEIGHTS), "model.safetensors cannot be read"),
    "an endless supply of nothing": (link(WEIGHTS, "/dev/null"), "model.safetensors cannot be read: it is a pipe or"),
    "gone to zeros": (change(WEIGHTS, lambda content: bytes(len(content))), "model.safetensors"),
    "not downloaded": (write(WEIGHTS, NOT_DOWNLOADED), "is damaged or is not a safetensors file"),
    "a pickle of PyTorch": (
        both(remove(WEIGHTS), write("marian/pytorch_model.bin", pickle.dumps({"weight": [1.0]}))),
        "has its weights in pytorch_model.bin, which this toolkit does not open: convert them",
    ),
    "of TensorFlow": (both(remove(WEIGHTS), write("marian/tf_model.h5", "HDF")), "has its weights in tf_model.h5"),
    "a header that is a list": (header(lambda _: [], WEIGHTS), "model.safetensors is damaged"),
    "without arrays": (header(lambda _: {}, WEIGHTS), "it does not end where its tensors do"),
    "of four bits": (
        header(lambda values: values[max(values)].update(dtype="F4"), WEIGHTS),
        "is stored as F4: weights must be float32, float16 or bfloat16",
    ),
    "of more than the file": (
        header(lambda values: values[max(values)].update(data_offsets=[0, 10**9]), WEIGHTS),
        "model.safetensors is damaged",
    ),
    "of negative shapes": (
        header(lambda values: values[max(values)].update(shape=[-1, -8]), WEIGHTS),
        "model.safetensors is damaged",
    ),
    "NaN in one place": (tensor("model.shared.weight", spoil(np.nan)), "contains values that are not finite numbers"),
    "NaN in the bias of outputs": (tensor("final_logits_bias", spoil(np.nan)), "final_logits_bias is damaged"),
    "a table of whole numbers": (
        tensor("model.shared.weight", lambda table: table.astype(np.int32)),
        "is stored as I32: weights must be",
    ),
    "a table on its side": (tensor("model.shared.weight", lambda table: table.T), "by config.json it should be"),
    "a map of another shape": (
        tensor("model.encoder.layers.0.fc1.weight", lambda weight: weight[:-1]),
        "model.encoder.layers.0.fc1.weight has shape (11, 8), by config.json it should be (12, 8)",
    ),
    "a map of one dimension": (tensor("model.encoder.layers.0.fc1.weight", np.ravel), "has shape (96,)"),
    "a bias of outputs too short": (tensor("final_logits_bias", lambda bias: bias[:, 1:]), "a number for each token"),
    "an array too few": (
        arrays(WEIGHTS, lambda values: [values.pop("model.decoder.layers.0.fc1.bias"), None][1]),
        "marian lacks model.decoder.layers.0.fc1.bias",
    ),
    "an array too many": (
        arrays(WEIGHTS, lambda values: values.update({"model.adapter.weight": np.zeros(3, np.float32)})),
        "has no place for (1), such as model.adapter.weight",
    ),
    "positions that were learned": (
        arrays(
            WEIGHTS,
            lambda values: values.update({"model.encoder.embed_positions.weight": np.ones((4, 8), np.float32)}),
        ),
        "has learned positions, which a MarianMTModel cannot have",
    ),
}
IN_SHARDS: dict[str, tuple[Harm, str]] = {
    "one missing": (remove(SHARD), f"{SHARD} does not exist: copy the whole model again"),
    "one cut": (cut(SHARD, 0.7), f"{SHARD} is damaged"),
    "one not downloaded": (write(SHARD, NOT_DOWNLOADED), f"{SHARD} is damaged or is not a safetensors file"),
    "none in the index": (edit(INDEX, lambda index: index.update(weight_map={})), "larger model than the weights"),
    "no list in the index": (write(INDEX, "{}"), f"{INDEX} is damaged: it has no weight_map"),
    "an index cut": (cut(INDEX, 0.5), f"{INDEX} is damaged"),
    "an index that leads elsewhere": (
        edit(INDEX, lambda index: index["weight_map"].update(more="../llama/model.safetensors")),
        'weight_map.more is "../llama/model.safetensors", not the name of a file beside it',
    ),
    "an index that forgets one": (
        edit(INDEX, lambda index: {"weight_map": {"a": "model-00001-of-00002.safetensors"}}),
        "shards lacks model.",
    ),
}
WITH_TOKENS: dict[str, tuple[Harm, str]] = {
    "no tokens": (remove(TOKENS), "marian has no tokenizer that the toolkit can read: it looks for source.spm"),
    "tokens cut": (cut(TOKENS, 0.5), f"{TOKENS} is damaged"),
    "tokens in a list": (write(TOKENS, "[]"), f"{TOKENS} is damaged"),
    "tokens numbered in words": (
        token(more="seven"),
        f'{TOKENS} is damaged: more is "seven", not a whole number from 0',
    ),
    "tokens of a larger model": (token(more=5000), "as token 5000, but the model has only"),
    "tokens of another model": (write(TOKENS, '{"</s>": 0, "<unk>": 1, "x": 2}'), "has 3 tokens and the model"),
    "a source model that is gone": (remove(SOURCE), "marian has no tokenizer that the toolkit can read"),
    "a source model cut": (cut(SOURCE, 0.5), f"{SOURCE} is damaged: it holds no SentencePiece model"),
    "a target model of nothing": (write(TARGET, ""), f"{TARGET} is damaged: it holds no SentencePiece model"),
    "a target model that is a directory": (directory(TARGET), "no tokenizer that the toolkit can read"),
    "two vocabularies": (write(TOKENIZER, '{"separate_vocabs": true}'), "one vocabulary for sources and one for"),
    "tokenizer settings cut": (write(TOKENIZER, "{"), f"{TOKENIZER} is damaged"),
    "tokenizer settings in a list": (write(TOKENIZER, "[1]"), f"{TOKENIZER} is damaged"),
    "names of tokens cut": (write("marian/special_tokens_map.json", "{"), "special_tokens_map.json is damaged"),
    "added tokens in a list": (write("marian/added_tokens.json", "[]"), "added_tokens.json is damaged"),
}
OWN_EXPORT: dict[str, tuple[Harm, str]] = {
    "its length in words": (own_setting(max_length="long"), "'toolkit' has settings of a wrong type"),
    "its length below 1": (own_setting(max_length=-3), "theirs/config.json is damaged: "),
    "its tokenizer cut": (cut("theirs/tokenizer.model", 0.5), "theirs/tokenizer.model"),
    "its tokenizer of another size": (
        change("theirs/tokenizer.model", smaller_tokenizer),
        "theirs has a tokenizer of",
    ),
    "half a tokenizer": (
        both(remove("theirs/tokenizer.model"), remove("theirs/tokenizer.json"), write("theirs/vocab.json", "{}")),
        "theirs has no tokenizer that the toolkit can read",
    ),
}


def without_library() -> Any:
    """As if the optional library were not installed."""
    return patch.dict(sys.modules, {"tokenizers": None})


def kinds() -> Iterator[Kind]:
    groups = (
        (SETTINGS, IMPORT, "settings from elsewhere:"),
        (STORED, IMPORT, "weights from elsewhere:"),
        (IN_SHARDS, SHARDS, "shards from elsewhere:"),
        (WITH_TOKENS, IMPORT, "a tokenizer from elsewhere:"),
        (OWN_EXPORT, OWN, "our own export:"),
    )
    for group, command, what in groups:
        for name, (harm, says) in group.items():
            yield Kind(f"{what} {name}", command, says, harm)
    merges = both(remove(SOURCE), write("marian/merges.txt", "a b\n"))
    says = "marian/vocab.json needs the library tokenizers: pip install tokenizers"
    yield Kind("a tokenizer that needs a library", IMPORT, says, merges, disk=without_library)
