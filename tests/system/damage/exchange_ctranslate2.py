"""Models of CTranslate2 that are damaged, or of a kind that has no counterpart."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.system.damage.models import smaller_tokenizer
from tests.system.damage.room import Harm, Kind, both, change, cut, directory, edit, link, remove, write
from toolkit.interop import export_model
from toolkit.interop.ctranslate2_file import Variables, read_variables, write_variables

IMPORT, IMPORT_GPT, IMPORT_OWN = "import fast new", "import fast-gpt new", "import fast-own new"
MODEL, CONFIG, TOKENS, TOKENIZER = (
    f"fast/{name}" for name in ("model.bin", "config.json", "shared_vocabulary.json", "tokenizer.model")
)
WEIGHT = "encoder/layer_0/ffn/linear_0/weight"


def furnish(room: Path) -> None:
    """Put models for CTranslate2 into a room; of two, nothing says that they are ours."""
    for name, model in ("fast", "other"), ("fast-gpt", "gpt"), ("fast-own", "model"):
        export_model(room / model, room / name, "ctranslate2")
    for name in "fast", "fast-gpt":
        edit(f"{name}/config.json", lambda config: [config.pop("toolkit"), None][1])(room)


def variables(how: Callable[[dict[str, Any]], Any], model: str = MODEL) -> Harm:
    """The variables in model.bin are changed by `how`."""

    def harm(room: Path) -> None:
        found = read_variables(room / model)
        arrays = {name: array.copy() for name, array in found.arrays.items()}
        how(arrays)
        write_variables(room / model, Variables(found.specification, found.revision, arrays, found.aliases))

    return harm


def put(name: str, value: Any, model: str = MODEL) -> Harm:
    return variables(lambda arrays: arrays.update({name: value}), model)


def weight(how: Callable[[np.ndarray], Any]) -> Harm:
    return variables(lambda arrays: arrays.update({WEIGHT: how(arrays[WEIGHT])}))


def without(name: str) -> Harm:
    return variables(lambda arrays: arrays.pop(name))


def quantised(scale: float | None) -> Harm:
    """One map in whole numbers, with a scale for each of its rows, or none."""

    def how(arrays: dict[str, Any]) -> None:
        rows = len(arrays[WEIGHT])
        arrays[WEIGHT] = np.ones_like(arrays[WEIGHT], np.int8)
        arrays |= {} if scale is None else {f"{WEIGHT}_scale": np.full(rows, scale, np.float32)}

    return variables(how)


def setting(**values: Any) -> Harm:
    return edit(CONFIG, lambda config: config.update(values))


def tokens(how: Callable[[list[str]], Any]) -> Harm:
    return edit(TOKENS, how)


SHORT, FLAG = np.int16, np.int8
FILES: dict[str, tuple[Harm, str]] = {
    **{f"cut to {keep}": (cut(MODEL, keep), f"{MODEL} is damaged") for keep in (0, 3, 10, 0.1, 0.5, 0.999)},
    "with bytes too many": (change(MODEL, lambda content: content + b"more"), "does not end where it should"),
    "of the next version": (
        change(MODEL, lambda content: b"\7" + content[1:]),
        "has binary version 7, and version 6 is read: convert it again",
    ),
    "of text": (write(MODEL, "hello " * 100), "is damaged or is not a model of CTranslate2"),
    "gone to zeros": (change(MODEL, lambda content: bytes(len(content))), "is damaged or is not a model"),
    "that is a directory": (directory(MODEL), f"{MODEL} cannot be read"),
    "that leads nowhere": (link(MODEL, "nowhere"), "no model.bin of CTranslate2 is beside it"),
    "of speech": (
        change(MODEL, lambda content: content.replace(b"TransformerSpec", b"WhisperSpec1234")),
        "is a WhisperSpec1234: TransformerSpec and TransformerDecoderSpec are what is read",
    ),
    "of names that are no text": (change(MODEL, lambda content: content.replace(b"decoder", b"dec\xff\xfeer")), MODEL),
    "that is NaN in one place": (weight(lambda array: np.where(array == array.max(), np.nan, array)), "not finite"),
    "with a map less": (without(WEIGHT), f"has no {WEIGHT}"),
    "with a bias less": (without("decoder/layer_0/self_attention/layer_norm/gamma"), "layer_norm/gamma"),
    "with a map of another shape": (weight(lambda array: array[:-1]), "fast/model.bin"),
    "with a map on its side": (weight(lambda array: np.ascontiguousarray(array.T)), "fast/model.bin"),
    "with a map of one dimension": (weight(np.ravel), f"is damaged: {WEIGHT} is not a matrix"),
    "with a map that is a number": (put(WEIGHT, np.float32(1)), "is damaged"),
    "of something that ours has not": (put("decoder/adapter/weight", np.ones(3, np.float32)), "decoder/adapter"),
    "of whole numbers without a scale": (quantised(None), "scale"),
    "of whole numbers with a scale of nothing": (quantised(0.0), "scale"),
    "of whole numbers with a scale that is not a number": (quantised(float("nan")), "fast/model.bin"),
    "of no heads": (put("encoder/num_heads", SHORT(0)), "num_heads"),
    "of heads that do not divide the width": (
        both(put("encoder/num_heads", SHORT(3)), put("decoder/num_heads", SHORT(3))),
        "describes a model that cannot be",
    ),
    "of different heads": (put("encoder/num_heads", SHORT(4)), "here they are one"),
    "of heads in a list": (put("decoder/num_heads", np.ones(3, np.int16)), "decoder/num_heads is not a number"),
    "of another activation": (put("encoder/activation", FLAG(9)), "activation"),
    "of linear positions": (put("decoder/alibi", FLAG(1)), "has decoder/alibi, for which this toolkit has no"),
    "of embeddings scaled otherwise": (put("decoder/scale_embeddings", np.float32(3)), "multiplies embeddings by 3"),
}
BESIDE: dict[str, tuple[Harm, str]] = {
    "no settings": (remove(CONFIG), "fast is not a model: it has no config.json"),
    "settings cut": (cut(CONFIG, 0.5), f"{CONFIG} is damaged"),
    "settings in a list": (write(CONFIG, "[]"), f"{CONFIG} is damaged"),
    "a begin in front of sources": (setting(add_source_bos=True), "puts a begin mark before every source"),
    "no begin of outputs": (setting(decoder_start_token=None), "has no token that outputs begin with"),
    "a begin that no token is": (setting(decoder_start_token="<go>"), "has no token '<go>'"),
    "an end that no token is": (setting(eos_token="<stop>"), "has no token '<stop>', which its texts end with"),
    "an epsilon in words": (setting(layer_norm_epsilon="small"), 'layer_norm_epsilon is "small"'),
    "another epsilon": (setting(layer_norm_epsilon=0.1), "has layer norms with an epsilon other than"),
    "no tokens": (remove(TOKENS), "fast is not a whole CTranslate2 model: it has no shared_vocabulary.json"),
    "tokens cut": (cut(TOKENS, 0.5), f"{TOKENS} is damaged: it is not a list of tokens"),
    "tokens in an object": (write(TOKENS, "{}"), f"{TOKENS} is damaged"),
    "tokens in numbers": (write(TOKENS, json.dumps([1, 2])), f"{TOKENS} is damaged"),
    "tokens in Latin-1": (write(TOKENS, b'["caf\xe9"]'), f"{TOKENS} is damaged"),
    "a token too few": (tokens(lambda names: names[:-1]), "copy it again"),
    "a token too many": (tokens(lambda names: [*names, "more"]), "copy it again"),
    "half a tokenizer": (
        both(remove(TOKENIZER), write("fast/merges.txt", "a b\n")),
        "fast has no tokenizer that the toolkit can read",
    ),
    "a tokenizer cut": (cut(TOKENIZER, 0.5), f"{TOKENIZER} is damaged"),
    "a tokenizer of text": (write(TOKENIZER, "hello"), f"{TOKENIZER} is damaged"),
}
GPT_MODEL = "fast-gpt/model.bin"
LANGUAGE: dict[str, tuple[Harm, str]] = {
    "normed behind": (put("decoder/pre_norm", FLAG(0), GPT_MODEL), "has its norms after the sub-layers"),
    "scaled": (put("decoder/scale_embeddings", FLAG(1), GPT_MODEL), "scales its embeddings"),
    "turned in part": (
        put("decoder/layer_0/self_attention/rotary_dim", np.int32(2), GPT_MODEL),
        "turns only 2 of a head's 8 dimensions",
    ),
    "without tokens": (remove("fast-gpt/vocabulary.json"), "it has no vocabulary.json"),
}
OWN: dict[str, tuple[Harm, str]] = {
    "its settings in a list": (
        edit("fast-own/config.json", lambda config: config.update(toolkit=[])),
        "toolkit is [], not",
    ),
    "its length in words": (
        edit("fast-own/config.json", lambda config: config["toolkit"].update(max_length="long")),
        "fast-own/config.json is damaged: 'toolkit' has settings of a wrong type",
    ),
    "another tokenizer": (
        both(remove("fast-own/tokenizer.model"), write("fast-own/source.spm", "a")),
        "fast-own/tokenizer.model does not exist",
    ),
    "its tokenizer of another size": (
        change("fast-own/tokenizer.model", smaller_tokenizer),
        "fast-own has a tokenizer of",
    ),
}


def kinds() -> Iterator[Kind]:
    groups = (
        (FILES, IMPORT, "a model.bin"),
        (BESIDE, IMPORT, "beside a model.bin:"),
        (LANGUAGE, IMPORT_GPT, "a language model of CTranslate2"),
        (OWN, IMPORT_OWN, "our own model.bin:"),
    )
    for group, command, what in groups:
        for name, (harm, says) in group.items():
            yield Kind(f"{what} {name}", command, says, harm)
