"""Which arrays of ours are which variables of CTranslate2: one table for both directions.

Theirs are named as `ctranslate2.specs.transformer_spec` names them. A part writes its arrays as their variables, and
reads them back. Their linear maps are (outputs, inputs), ours (inputs, outputs); the order of what is fused (queries,
keys, values) and of heads is the same.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.interop.foreign_settings import Config
from toolkit.models.gpt import GPTConfig
from toolkit.models.seq2seq import Seq2SeqConfig

Arrays = dict[str, Array]
# Hands out a variable by its name in float32, or None where it may be missing and is.
Take = Callable[[str, bool], Array | None]


class Table(NamedTuple):
    """One array as it is: embeddings, learned positions, the output bias."""

    ours: str
    theirs: str

    def write(self, arrays: Mapping[str, Array]) -> Arrays:
        return {self.theirs: arrays[self.ours]}

    def read(self, take: Take) -> Arrays:
        return {self.ours: take(self.theirs, True)}


class Linear(NamedTuple):
    """x W + b; a bias that only ours has is 0 in theirs, and the other way round."""

    ours: str
    theirs: str
    bias: bool

    def write(self, arrays: Mapping[str, Array]) -> Arrays:
        found = {f"{self.theirs}/weight": arrays[f"{self.ours}.weight"].T}
        if self.bias:
            found[f"{self.theirs}/bias"] = arrays[f"{self.ours}.bias"]
        return found

    def read(self, take: Take) -> Arrays:
        weight = take(f"{self.theirs}/weight", True)
        found = {f"{self.ours}.weight": weight.T}
        if self.bias:
            bias = take(f"{self.theirs}/bias", False)
            found[f"{self.ours}.bias"] = np.zeros(len(weight), np.float32) if bias is None else bias
        return found


class Gated(NamedTuple):
    """The two maps of a gated activation, which are one of ours: [g | u] = x W + b."""

    ours: str
    theirs: str
    bias: bool

    @property
    def _names(self) -> tuple[str, ...]:
        return ("weight", "bias") if self.bias else ("weight",)

    def _halves(self) -> list[Linear]:
        return [Linear(half, self.theirs + end, self.bias) for half, end in (("g", ""), ("u", "_noact"))]

    def write(self, arrays: Mapping[str, Array]) -> Arrays:
        found: Arrays = {}
        split = {name: np.split(arrays[f"{self.ours}.{name}"], 2, axis=-1) for name in self._names}
        for index, half in enumerate(self._halves()):
            found |= half.write({f"{half.ours}.{name}": parts[index] for name, parts in split.items()})
        return found

    def read(self, take: Take) -> Arrays:
        gate, up = self._halves()
        halves = gate.read(take) | up.read(take)
        return {
            f"{self.ours}.{name}": np.concatenate([halves[f"g.{name}"], halves[f"u.{name}"]], axis=-1)
            for name in self._names
        }


class Norm(NamedTuple):
    """A layer norm or, as theirs are where they have no beta, an RMS norm."""

    ours: str
    theirs: str
    bias: bool
    rms: bool = False

    def write(self, arrays: Mapping[str, Array]) -> Arrays:
        gain = arrays[f"{self.ours}.gain"]
        found = {f"{self.theirs}/gamma": gain}
        if not self.rms:
            found[f"{self.theirs}/beta"] = arrays[f"{self.ours}.bias"] if self.bias else np.zeros_like(gain)
        return found

    def read(self, take: Take) -> Arrays:
        found = {f"{self.ours}.gain": take(f"{self.theirs}/gamma", True)}
        if not self.rms:
            beta = take(f"{self.theirs}/beta", True)
            found |= {f"{self.ours}.bias": beta} if self.bias else {}
        return found


Part = Table | Linear | Gated | Norm


def parts(config: Config) -> Iterator[Part]:
    """All parts of a model. A table that has several names in theirs occurs several times, under one name in ours."""
    yield from _gpt(config) if isinstance(config, GPTConfig) else _seq2seq(config)
    if config.output_bias:
        yield Table("output_bias", "decoder/projection/bias")


def _seq2seq(config: Seq2SeqConfig) -> Iterator[Part]:
    source = "source.embedding.table"
    target = source if config.tie == "all" else "target.embedding.table"
    yield Table(target, "decoder/embeddings/weight")
    yield Table(source, "encoder/embeddings_0/weight")
    yield Table("output.table" if config.tie == "none" else target, "decoder/projection/weight")
    for side, ours, count in (
        ("encoder", "source", config.encoder_layers),
        ("decoder", "target", config.decoder_layers),
    ):
        if config.positions == "learned":
            yield Table(f"{ours}.positions.embedding.table", f"{side}/position_encodings/encodings")
        for index in range(count):
            yield from _block(f"{side}.{index}", f"{side}/layer_{index}", config)
            if side == "decoder":
                yield from _cross_attention(f"{side}.{index}", f"{side}/layer_{index}/attention", config.bias)
        if config.norm == "pre":
            yield Norm(f"{side}_norm", f"{side}/layer_norm", config.bias)


def _gpt(config: GPTConfig) -> Iterator[Part]:
    embedding = "trunk.input.embedding.table"
    yield Table(embedding, "decoder/embeddings/weight")
    yield Table(embedding if config.tie else "output.table", "decoder/projection/weight")
    if config.positions == "learned":
        yield Table("trunk.input.positions.embedding.table", "decoder/position_encodings/encodings")
    for index in range(config.layers):
        yield from _block(f"trunk.blocks.{index}", f"decoder/layer_{index}", config, config.norm == "rms")
    yield Norm("trunk.norm", "decoder/layer_norm", config.has_bias("norms"), config.norm == "rms")


def _block(ours: str, theirs: str, config: Config, rms: bool = False) -> Iterator[Part]:
    """Self-attention and feed-forward network, with their norms."""
    attention, feed_forward, norms = f"{theirs}/self_attention", f"{theirs}/ffn", config.has_bias("norms")
    bias = config.has_bias("attention")
    yield Norm(f"{ours}.around_attention.norm", f"{attention}/layer_norm", norms, rms)
    yield Linear(f"{ours}.attention.query_key_value", f"{attention}/linear_0", bias)
    yield Linear(f"{ours}.attention.output", f"{attention}/linear_1", bias)
    bias, expand = config.has_bias("feed_forward"), Gated if config.activation == "swiglu" else Linear
    yield Norm(f"{ours}.around_feed_forward.norm", f"{feed_forward}/layer_norm", norms, rms)
    yield expand(f"{ours}.feed_forward.expand", f"{feed_forward}/linear_0", bias)
    yield Linear(f"{ours}.feed_forward.contract", f"{feed_forward}/linear_1", bias)


def _cross_attention(ours: str, theirs: str, bias: bool) -> Iterator[Part]:
    yield Norm(f"{ours}.around_cross_attention.norm", f"{theirs}/layer_norm", bias)
    for index, name in enumerate(("query", "key_value", "output")):
        yield Linear(f"{ours}.cross_attention.{name}", f"{theirs}/linear_{index}", bias)
