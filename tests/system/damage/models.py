"""Model directories that are damaged, foreign or put together from several."""

import json
import pickle
import struct
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from safetensors.numpy import save

from tests.system.damage.room import Harm, Kind, arrays, both, change, copy, cut, directory, edit, link, remove, write
from tests.system.damage.texts import zipped

CONFIG, WEIGHTS, TOKENIZER, METRICS = (
    f"model/{name}" for name in ("config.json", "model.safetensors", "tokenizer.model", "metrics.json")
)
READERS = [
    "translate --max-new-tokens 2 --model model hello",
    "translate --max-new-tokens 2 --output old.txt --file lines.en --model model",
    "score --source lines.en --target lines.ne --model model",
    "info model",
    "info --json model",
]


def setting(**values: Any) -> Harm:
    return edit(CONFIG, lambda config: config["model"].update(values))


def top(**values: Any) -> Harm:
    return edit(CONFIG, lambda config: config.update(values))


def tensors(how: Callable[[dict[str, np.ndarray]], Any]) -> Harm:
    return arrays(WEIGHTS, how)


def one(how: Callable[[np.ndarray], np.ndarray]) -> Harm:
    """One of the arrays is another one."""
    return tensors(lambda values: values.update({min(values): np.ascontiguousarray(how(values[min(values)]))}))


def spoil(number: float) -> Callable[[np.ndarray], np.ndarray]:
    def how(values: np.ndarray) -> np.ndarray:
        values.flat[3] = number
        return values

    return how


def header(how: Callable[[dict[str, Any]], Any], name: str = WEIGHTS) -> Harm:
    """The header of the weights is changed by `how`, or is what it returns; its length is right."""

    def rewritten(content: bytes) -> bytes:
        (length,) = struct.unpack("<Q", content[:8])
        values = json.loads(content[8 : 8 + length])
        changed = how(values)
        text = (
            json.dumps(values if changed is None else changed).encode() if not isinstance(changed, bytes) else changed
        )
        return struct.pack("<Q", len(text)) + text + content[8 + length :]

    return change(name, rewritten)


def length(number: int) -> Harm:
    return change(WEIGHTS, lambda content: struct.pack("<Q", number) + content[8:])


def entry(**values: Any) -> Harm:
    return header(lambda header: header[min(header)].update(values))


def foreign_tokenizer(_: bytes) -> bytes:
    """A SentencePiece model with the settings that the library has by itself."""
    import io

    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["I am a boy", "She eats rice"]), model_writer=model, vocab_size=18, minloglevel=2
    )
    return model.getvalue()


def smaller_tokenizer(_: bytes) -> bytes:
    from toolkit.tokenization import SentencePieceTokenizer

    return SentencePieceTokenizer.train(["ab c"], 300)._model


MARIAN = {"architectures": ["MarianMTModel"], "d_model": 512, "model_type": "marian", "vocab_size": 58101}

KINDS: dict[str, Harm] = {
    **{f"config.json cut to {keep}": cut(CONFIG, keep) for keep in (0, 1, 0.3, 0.99)},
    "no config.json": remove(CONFIG),
    "config.json is a directory": directory(CONFIG),
    "config.json leads nowhere": link(CONFIG, "nowhere"),
    "config.json leads to itself": link(CONFIG, "config.json"),
    "config.json is a list": write(CONFIG, "[]"),
    "config.json is a number": write(CONFIG, "1"),
    "config.json is null": write(CONFIG, "null"),
    "config.json is a text": write(CONFIG, '"config"'),
    "config.json is YAML": write(CONFIG, "format: 1\nkind: seq2seq\n"),
    "config.json has comments": change(CONFIG, lambda content: b"// mine\n" + content),
    "config.json has a comma too many": change(CONFIG, lambda content: content.rstrip(b"}\n ") + b",}}"),
    "config.json is UTF-16": change(CONFIG, lambda content: content.decode().encode("utf-16")),
    "config.json begins with a byte order mark": change(CONFIG, lambda content: b"\xef\xbb\xbf" + content),
    "config.json is Latin-1": write(CONFIG, b'{"kind": "caf\xe9"}'),
    "config.json is nested without end": write(CONFIG, "[" * 100_000),
    "config.json is gone to zeros": change(CONFIG, lambda content: bytes(len(content))),
    "config.json of Marian": write(CONFIG, json.dumps(MARIAN)),
    "another format": top(format=4),
    "a format in words": top(format="one"),
    "no format": edit(CONFIG, lambda config: [config.pop("format"), None][1]),
    "another kind of model": top(kind="toaster"),
    "a kind that is a list": top(kind=["seq2seq"]),
    "no settings": top(model=None),
    "settings in a list": top(model=[1, 2]),
    "an unknown setting": setting(colour="red"),
    "a setting without a name": edit(CONFIG, lambda config: config["model"].update({"": 1})),
    "a number in words": setting(d_model="sixteen"),
    "a number as text": setting(d_model="16"),
    "a fraction for a whole number": setting(d_model=16.5),
    "a point in a whole number": setting(encoder_layers=1.0),
    "true for a number": setting(encoder_layers=True),
    "one for true": setting(bias=1),
    "null for a number": setting(d_ff=None),
    "a list for a choice": setting(activation=["relu"]),
    "an activation that there is not": setting(activation="swishy"),
    "a norm that there is not": setting(norm_position="middle"),
    "other positions than the weights": setting(positions="learned"),
    "other tables than the weights": setting(tie="none"),
    "other biases than the weights": setting(bias=False),
    "no layers": setting(encoder_layers=0),
    "fewer layers than none": setting(decoder_layers=-1),
    "a layer more than the weights": setting(encoder_layers=2),
    "thousands of layers": setting(encoder_layers=9_999),
    "heads that do not divide the width": setting(num_heads=3),
    "wider than the weights": setting(d_model=32),
    "wider than any memory": setting(d_model=10**12),
    "longer than any memory": setting(max_length=10**12, positions="learned"),
    "a number of a hundred digits": setting(vocab_size=10**100),
    "dropout that is not a number": setting(residual_dropout=float("nan")),
    "dropout that never ends": setting(residual_dropout=float("inf")),
    "dropout of everything": setting(residual_dropout=1.0),
    "a vocabulary of another size": setting(vocab_size=390),
    **{f"model.safetensors cut to {keep}": cut(WEIGHTS, keep) for keep in (0, 4, 8, 9, 0.05, 0.5, 0.999)},
    "no model.safetensors": remove(WEIGHTS),
    "model.safetensors is a directory": directory(WEIGHTS),
    "model.safetensors is an endless supply of nothing": link(WEIGHTS, "/dev/null"),
    "model.safetensors has bytes too many": change(WEIGHTS, lambda content: content + b"more"),
    "model.safetensors is gone to zeros": change(WEIGHTS, lambda content: bytes(len(content))),
    "model.safetensors is text": write(WEIGHTS, "hello " * 100),
    "model.safetensors is a page of a web server": write(WEIGHTS, "<!DOCTYPE html><html>not found</html>"),
    "model.safetensors points to large file storage": write(WEIGHTS, "version https://git-lfs.github.com/spec/v1\n"),
    "model.safetensors is a pickle": write(WEIGHTS, pickle.dumps({"weight": [1.0]})),
    "model.safetensors is a zip archive, as those of PyTorch": write(WEIGHTS, zipped()),
    "a header of no length": length(0),
    "a header longer than the file": length(10**6),
    "a header longer than any file": length(2**63),
    "a header a byte too short": change(WEIGHTS, lambda content: bytes([content[0] - 1]) + content[1:]),
    "a header that is not JSON": header(lambda _: b"hello world     "),
    "a header that is a list": header(lambda _: []),
    "a header without arrays": header(lambda _: {}),
    "a header that is not UTF-8": header(lambda _: b'{"\xff\xfe": 1}     '),
    "a header nested without end": header(lambda _: b"[" * 10_000),
    "an array of a type that there is not": entry(dtype="F33"),
    "an array of another type than its bytes": entry(dtype="F64"),
    "an array of brain floats": entry(dtype="BF16"),
    "an array of a negative shape": entry(shape=[-1, 16]),
    "an array of a shape that is too large": entry(shape=[2**40, 2**40]),
    "an array of a shape in words": entry(shape="16"),
    "an array beyond the end": entry(data_offsets=[0, 10**9]),
    "an array that ends before it begins": entry(data_offsets=[64, 0]),
    "arrays that overlap": entry(data_offsets=[4, 68]),
    "an array without a type": header(lambda header: [header[min(header)].pop("dtype"), None][1]),
    "an array that is NaN in one place": one(spoil(np.nan)),
    "an array that is infinite in one place": one(spoil(np.inf)),
    "an array that is infinite the other way": one(spoil(-np.inf)),
    "an array of whole numbers": one(lambda values: values.astype(np.int32)),
    "an array of bytes": one(lambda values: values.astype(np.uint8)),
    "an array of true and false": one(lambda values: values > 0),
    "an array of another shape": one(lambda values: values[:-1]),
    "an array without entries": one(lambda values: values[:0]),
    "an array with a dimension more": one(lambda values: values[None]),
    "a matrix on its side": tensors(lambda values: {name: np.ascontiguousarray(v.T) for name, v in values.items()}),
    "an array too few": tensors(lambda values: [values.popitem(), None][1]),
    "an array too many": tensors(lambda values: values.update(more=np.zeros(3, np.float32))),
    "an array of another name": tensors(lambda values: values.update(new=values.pop(min(values)))),
    "arrays of another project": write(WEIGHTS, save({"model.shared.weight": np.zeros((3, 3), np.float32)})),
    **{f"tokenizer.model cut to {keep}": cut(TOKENIZER, keep) for keep in (0, 1, 0.1, 0.5, 0.9)},
    "no tokenizer.model": remove(TOKENIZER),
    "tokenizer.model is a directory": directory(TOKENIZER),
    "tokenizer.model is text": write(TOKENIZER, "hello " * 100),
    "tokenizer.model is JSON, as those of Hugging Face": write(
        TOKENIZER, '{"version": "1.0", "model": {"type": "BPE"}}'
    ),
    "tokenizer.model is gone to zeros": change(TOKENIZER, lambda content: bytes(len(content))),
    "a tokenizer from elsewhere": change(TOKENIZER, foreign_tokenizer),
    "a tokenizer of another size": change(TOKENIZER, smaller_tokenizer),
    "a directory without anything": both(remove(CONFIG), remove(WEIGHTS), remove(TOKENIZER), remove(METRICS)),
    "a file for a directory": write("model", "a model"),
}


def scaled(factor: float) -> Harm:
    """Weights that are finite, and what is computed with them is not."""
    return tensors(lambda values: {name: value * np.float32(factor) for name, value in values.items()})


OVERFLOW = {
    "weights that overflow": ("translate --max-new-tokens 2 --model model hello", scaled(1e15)),
    "weights that overflow, with beams": (
        "translate --num-beams 3 --max-new-tokens 2 --model model hello",
        scaled(1e15),
    ),
    "weights that overflow, sampled": ("translate --do-sample --max-new-tokens 2 --model model hello", scaled(1e15)),
    "weights that overflow, scored": ("score --source lines.en --target lines.ne --model model", scaled(1e15)),
}
INFO = {
    "metrics.json is cut": cut(METRICS, 0.5),
    "metrics.json is a list": write(METRICS, "[]"),
    "metrics.json is a directory": directory(METRICS),
    "metrics.json is nested without end": write(METRICS, "[" * 100_000),
}


SMALL = "small/model.safetensors"
MATRIX, TABLE = "encoder.blocks.0.attention.layer.output.weight", "source.embedding.table"


def stored(**values: Callable[[dict[str, np.ndarray]], Any]) -> Harm:
    return arrays(SMALL, lambda tensors: tensors.update({name: how(tensors) for name, how in values.items()}))


def lost(name: str) -> Harm:
    return arrays(SMALL, lambda tensors: [tensors.pop(name), None][1])


IN_INT8: dict[str, tuple[Harm, str]] = {
    "integers without scales": (lost(f"{MATRIX}.scales"), f"{MATRIX} has no scales that fit its integers"),
    "scales without integers": (lost(MATRIX), f"{MATRIX} is missing"),
    "scales of nothing": (stored(**{"new.scales": lambda _: np.ones((1, 3), np.float32)}), "new.scales"),
    "scales of rows for those of columns": (
        stored(**{f"{MATRIX}.scales": lambda tensors: np.ascontiguousarray(tensors[f"{MATRIX}.scales"].T)}),
        "no scales that fit",
    ),
    "scales that are not finite": (
        stored(**{f"{TABLE}.scales": lambda tensors: tensors[f"{TABLE}.scales"] * np.float32(np.nan)}),
        "no scales that fit",
    ),
    "scales below 0": (
        stored(**{f"{TABLE}.scales": lambda tensors: -tensors[f"{TABLE}.scales"]}),
        "no scales that fit",
    ),
    "scales that are integers": (
        stored(**{f"{TABLE}.scales": lambda tensors: tensors[f"{TABLE}.scales"].astype(np.int8)}),
        "no scales that fit",
    ),
    "integers of another shape": (stored(**{TABLE: lambda tensors: tensors[TABLE][:-1].copy()}), "another shape"),
    "integers for a bias": (
        stored(**{MATRIX.replace("weight", "bias"): lambda _: np.ones(16, np.int8)}),
        "not finite floating-point numbers",
    ),
    "floats of half precision": (
        stored(**{MATRIX: lambda tensors: tensors[MATRIX].astype(np.float16)}),
        "is stored as F16",
    ),
    "a model in int8 that says it is none": (edit("small/config.json", lambda config: config.update(format=2)), "I8"),
    "a model that says it is in int8": (copy(SMALL, WEIGHTS), "small"),
    "an int8 model cut short": (cut(SMALL, 0.9), "does not end where its tensors do"),
}


IN_INT8_READERS = "translate --max-new-tokens 2 --model small hello", "info small"


def kinds() -> Iterator[Kind]:
    for number, (name, (harm, says)) in enumerate(IN_INT8.items() if find_spec("numkong") else ()):
        yield Kind(name, IN_INT8_READERS[number % 2], says, harm, needs="model")
    for number, (name, harm) in enumerate(KINDS.items()):
        yield Kind(name, READERS[number % len(READERS)], "model", harm)
    for name, (command, harm) in OVERFLOW.items():
        yield Kind(name, command, "model computes numbers that are not finite", harm)
    for name, harm in INFO.items():
        yield Kind(name, "info model", "metrics.json", harm)
