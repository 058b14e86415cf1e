"""`explain attention`: one text through a trained model, number by number, read from one real pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.decoding.sampling import log_sum_exp
from toolkit.errors import ConfigError
from toolkit.explain.reading import (
    DEFAULT_PAIR,
    Reading,
    check_choice,
    default_text,
    read_text,
    read_translation,
    tokens_table,
    within,
)
from toolkit.functional.arrays import Array
from toolkit.language_model import LanguageModel
from toolkit.models.base import InputEmbedding
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.blocks import Block as Layer
from toolkit.nn.blocks import DecoderBlock, DecoderStack, Residual, Stack
from toolkit.nn.layers import FeedForward, GatedLinear, LayerNorm, LearnedPositions, Norm
from toolkit.nn.module import Module
from toolkit.pages.blocks import Bars, Block, Formula, Heat, Maps, Numbers, Page, Section, Table
from toolkit.pages.writing import labels, probability
from toolkit.translator import Translator

_CANDIDATES = 8  # tokens of a distribution that are shown


def attention_page(
    text_model: Translator | LanguageModel,
    text: str | None = None,
    target: str | None = None,
    layer: int = 1,
    head: int = 1,
) -> Page:
    """Follow one text through a model that `toolkit.load` has read.

    text: None is "I am a boy" for a translator, and the beginning of a story for a language model.
    target: for a translator, what the decoder reads; None is the model's own translation. layer, head: which are shown
    in full, from 1; a side of a translator that has fewer layers shows its last.

    Raises ConfigError for a layer or head that the model does not have and for a target that it does not read,
    DataError for a text that it cannot read.
    """
    model = text_model.model
    if target is not None and isinstance(model, GPT):
        raise ConfigError("a target is for a translator: a language model reads one text only")
    sides = _sides(model, layer)
    check_choice(max(len(side.stack.blocks) for side in sides), model.config.num_heads, layer, head)
    owners = {model.output}.union(*(side.owners() for side in sides))
    if isinstance(model, Seq2Seq):
        text = default_text(text_model.tokenizer.source, DEFAULT_PAIR[:1]) if text is None else text
        reading = read_translation(text_model, text, target, owners)
        written = "the model's own translation" if target is None else "the given target"
        intro = f"The encoder reads the source and its end mark; the decoder reads a begin mark and {written}."
        read = [(reading.source_words, reading.sources), (reading.words, reading.inputs)]
    else:
        reading = read_text(text_model, default_text(text_model.tokenizer) if text is None else text, owners)
        intro = "The model reads the text from left to right and says at every token what may come next."
        read = [(reading.words, reading.inputs)]
    walks = [_Walk(reading, side, words, head - 1) for side, (words, _) in zip(sides, read, strict=True)]
    sections = [Section("Tokens", intro, [tokens_table(words, ids) for words, ids in read])]
    for number, walk in enumerate(walks):
        shared = number > 0 and walk.side.input.embedding is walks[0].side.input.embedding
        sections += [*walk.input(int(shared)), *walk.layer(walks[0].words)]
        if number < len(walks) - 1:
            text = "What the encoder made of the source; the decoder attends to these rows."
            sections.append(Section("Memory", text, walk.last()))
    about = (
        f"Every number is read from one pass of a real model with {model.parameter_count:,} parameters: "
        f"{_shape(model)}. Shown in full: layer {layer}, head {head}."
    )
    return Page("Attention, step by step", about, [*sections, *walks[-1].output()], list(reading.cut))


@dataclass(frozen=True)
class _Side:
    """An encoder, a decoder, or all layers of a language model."""

    name: str
    input: InputEmbedding
    stack: Stack | DecoderStack
    number: int  # of the layer that is shown, from 1

    @property
    def block(self) -> Layer | DecoderBlock:
        """The layer that is shown."""
        return self.stack.blocks[self.number - 1]

    def owners(self) -> set[Module]:
        """Collect the modules that the page reads: other layers' maps would fill the memory."""
        owners = {*within(self.input), *within(self.block), self.stack.norm}
        for other in (self.stack.blocks[self.number - 2], self.stack.blocks[-1]):
            owners |= {other.feed_forward, other.feed_forward.norm}
        return owners - {None}


def _sides(model: Seq2Seq | GPT, layer: int) -> list[_Side]:
    if isinstance(model, GPT):
        parts = [("", model.trunk.input, model.trunk.decoder)]
    else:
        parts = [("Encoder, ", model.source, model.encoder), ("Decoder, ", model.target, model.decoder)]
    return [_Side(name, entry, stack, min(layer, len(stack.blocks))) for name, entry, stack in parts]


def _shape(model: Seq2Seq | GPT) -> str:
    config = model.config
    layers = f"{config.layers} layers" if isinstance(model, GPT) else f"{config.encoder_layers} encoder and "
    if isinstance(model, Seq2Seq):
        layers += f"{config.decoder_layers} decoder layers, {config.norm_position}-norm"
    return f"{layers}, D = {config.d_model}, H = {config.num_heads} heads, F = {config.d_ff}, V = {config.vocab_size}"


@dataclass(frozen=True)
class _Walk:
    """Makes the sections of one side: formulas, shapes, and the numbers that a real pass showed."""

    reading: Reading
    side: _Side
    words: Sequence[str]  # a label for each row
    head: int  # from 0

    def input(self, which: int) -> list[Section]:
        """Show embeddings and positions.  which: 1 for an embedding that both sides read, on the second."""
        embedding, positions = self.side.input.embedding, self.side.input.positions
        size, width = embedding.table.shape
        scale = f"{embedding.scale:.3f} · " if embedding.scale != 1 else ""
        formula = f"E = {scale}table[id]        table ({size}, {width}) → ({len(self.words)}, {width})"
        found = Numbers("E", self.reading.recorder.found(embedding, "output", which), self.words)
        sections = [Section(f"{self.side.name}embedding".capitalize(), Formula(formula), found)]
        if positions is None:
            return sections
        if isinstance(positions, LearnedPositions):
            shape = positions.embedding.table.shape
            formula = f"PE(t) = positions[t]        positions {shape}, learned like any weight"
        elif positions.layout == "halves":
            formula = "PE(t, i) = sin(t / 10000^(2i / D))        PE(t, D/2 + i) = cos(t / 10000^(2i / D))"
        else:
            formula = "PE(t, 2i) = sin(t / 10000^(2i / D))        PE(t, 2i + 1) = cos(t / 10000^(2i / D))"
        title = f"{self.side.name}positions".capitalize()
        text = "Attention by itself does not know the order of tokens: what tells it is added."
        numbers = self._numbers("PE", positions, "positions"), self._numbers("x", positions, "output")
        return [*sections, Section(title, text, Formula(f"{formula}\nx = E + PE"), numbers)]

    def layer(self, memory: Sequence[str]) -> list[Section]:
        """Show every step of the layer.  memory: labels for the rows that cross-attention reads."""
        number, block, sections = self.side.number, self.side.block, []
        if number > 1:
            text = f"What layer {number} is given: the rows after {number - 1} of {len(self.side.stack.blocks)} layers."
            before = self._after(self.side.stack.blocks[number - 2], "x")
            sections.append(self._section("What it reads", text, before))
        sections += self._residual(block.attention, self._attention(block.attention.layer, self.words))
        if isinstance(block, DecoderBlock):
            sections += self._residual(block.cross_attention, self._attention(block.cross_attention.layer, memory))
        return [*sections, *self._residual(block.feed_forward, [self._feed_forward(block.feed_forward.layer)])]

    def last(self) -> list[Block]:
        """Show what comes out of the stack."""
        blocks, norm = self.side.stack.blocks, self.side.stack.norm
        rows = self._after(blocks[-1], f"x after {len(blocks)} layer{'s' * (len(blocks) > 1)}")
        return [rows, *self._norm(norm)] if norm else [rows]

    def output(self) -> list[Section]:
        """Show the logits and what comes next."""
        model, words = self.reading.model, self.words
        logits = self._found(model.output, "logits")
        log_probs = logits - log_sum_exp(logits)[:, None]
        size, width = model.output.table.shape
        best = np.argsort(-log_probs[-1], kind="stable")[:_CANDIDATES]
        names = labels(self.reading.tokenizer, best)
        formula = f"logits = x tableᵀ{' + b' if model.output.bias else ''}"
        formula += f"        ({len(words)}, {width}) · ({width}, {size}) → ({len(words)}, {size})"
        tied = model.output.table is self.side.input.embedding.table
        table = "The table of the embedding once more" if tied else "A table of its own"
        return [
            Section(f"{self.side.name}output".capitalize(), self.last()),
            Section(
                "Logits",
                f"{table}: each row is compared with every token. The largest of the last row:",
                Formula(formula),
                Numbers("logits", logits[-1:, best], words[-1:], names),
            ),
            Section(
                "Next token",
                Formula("P(next = v) = exp(logit_v) / Σ_v' exp(logit_v')"),
                Bars(f"after {words[-1]}", names, {"probability": np.exp(log_probs[-1, best]).tolist()}),
                "All positions at once: what each row says comes next, and what did.",
                self._predictions(log_probs),
            ),
        ]

    def _predictions(self, log_probs: Array) -> Table:
        tokenizer, following = self.reading.tokenizer, self.reading.following
        best, came = log_probs.argmax(axis=1), labels(tokenizer, following) if len(following) else []
        rows = []
        for place, (word, likely) in enumerate(zip(self.words, labels(tokenizer, best), strict=True)):
            row = [word, likely, probability(np.exp(log_probs[place, best[place]])), "", ""]
            if place < len(came):
                row[3:] = came[place], probability(np.exp(log_probs[place, following[place]]))
            rows.append(row)
        return Table(("after", "most probable", "P", "came", "P"), rows, left=(0, 1, 3))

    def _residual(self, residual: Residual, layer: list[Section]) -> list[Section]:
        """Put the norm and the sum around the sections of a sub-layer."""
        before = [self._section("Norm before the sub-layer", self._norm(residual.norm))] if residual.pre_norm else []
        after = [self._section("Norm after the sum", self._norm(residual.norm))] if residual.post_norm else []
        total = self._section(
            "Residual",
            "What the sub-layer computed is added to what it was given: gradients pass the sum unchanged.",
            Formula("x ← x + branch        (T, D)"),
            self._numbers("x + branch", residual, "sum"),
        )
        return [*before, *layer, total, *after]

    def _attention(self, module: SelfAttention | CrossAttention, keys: Sequence[str]) -> list[Section]:
        """Show attention from queries to the mixture of heads.  keys: a label for each row that can be attended to."""
        crossing = isinstance(module, CrossAttention)
        hidden = None if crossing or not module.causal else np.triu(np.ones((len(self.words), len(keys)), bool), 1)
        title = "Cross-attention" if crossing else "Self-attention"
        name, width = f"{title}, head {self.head + 1}", module.head_dim
        scores = self._found(module, "scores")[0, self.head]
        weights = self._found(module, "probabilities")[0].swapaxes(-1, -2)
        context = self._found(module, "context").reshape(len(self.words), -1, width)[:, self.head]
        heats = [Heat(f"head {number}", each, self.words, keys, hidden) for number, each in enumerate(weights, start=1)]
        masked = []
        if hidden is not None:
            text = "A token must not see what comes after it, or predicting would be copying: those scores count as -∞."
            shown = Numbers("S + mask", np.where(hidden, -np.inf, scores), self.words, keys)
            masked.append(self._section(f"{name}: mask", text, Formula("S_ts = -∞ for s > t"), shown))
        shapes = f"({len(self.words)}, {width}) · ({width}, {len(keys)}) → ({len(self.words)}, {len(keys)})"
        (total, mixed), bias = module.output.weight.shape, " + b_O" if module.output.bias else ""
        return [
            self._section(f"{name}: queries, keys, values", *self._projections(module, keys)),
            self._section(
                f"{name}: scores",
                "How well each query (row) matches each key (column), scaled so that wide heads do not saturate "
                "softmax.",
                Formula(f"S = Q Kᵀ / √{width}        {shapes}"),
                Numbers("S", scores, self.words, keys),
            ),
            *masked,
            self._section(
                f"{name}: softmax",
                Formula("P_ts = exp(S_ts) / Σ_s' exp(S_ts')        every row sums to 1"),
                Numbers("P", weights[self.head], self.words, keys),
                Heat("P, as a map", weights[self.head], self.words, keys, hidden),
            ),
            self._section(
                f"{name}: context",
                "The average of the values, weighted by P.",
                Formula(f"context = P V        (T, S) · (S, {width}) → (T, {width})"),
                Numbers("context", context, self.words),
            ),
            self._section(
                f"{title}: all heads",
                "Each head has its own weights, P:",
                Maps(heats),
                "Their contexts stand side by side and are mixed by one more linear map:",
                Formula(
                    f"y = [context_1 | … | context_{module.num_heads}] W_O{bias}"
                    f"        (T, {total}) · ({total}, {mixed}) → (T, {mixed})"
                ),
                self._numbers("contexts", module, "context"),
                self._numbers("y", module.output, "output"),
            ),
        ]

    def _projections(self, module: SelfAttention | CrossAttention, keys: Sequence[str]) -> list[str | Block]:
        heads, width, groups = module.num_heads, module.head_dim, self._found(module, "key").shape[1]
        crossing = isinstance(module, CrossAttention)
        read = "the memory" if crossing else "x"
        text = f"Three linear maps, cut into {heads} heads of {width} numbers each."
        if crossing:
            text += " Queries come from the target, keys and values from what the encoder made of the source."
        if groups < heads:
            text += f" {heads // groups} heads of queries share each of the {groups} heads of keys and values."
        formula = f"Q = x W_Q        K, V = {read} W_K, {read} W_V"
        formula += f"        Q ({len(self.words)}, {heads}·{width})   K, V ({len(keys)}, {groups}·{width})"
        blocks = [text, Formula(formula)]
        if not crossing and module.rotary:
            if module.query_norm:
                norm = f"q ← gain · q / √(mean(q²) + {module.query_norm.eps:g})        and k, with gains of their own"
                blocks += ["The heads of queries and keys are given one length:", Formula(norm)]
                query = self._found(module.query_norm, "output")[:, self.head]
            else:
                query = self._found(module.query_key_value, "output")[:, : heads * width]
                query = query.reshape(len(query), heads, -1)[:, self.head]
            formula = "q_i, q_{i+K/2} → q_i cos θ - q_{i+K/2} sin θ, q_{i+K/2} cos θ + q_i sin θ        "
            config = self.reading.model.config
            formula += f"θ = t / {config.rotary_base:g}^(2i / K)"
            if config.rotary_scaling != "none":
                formula += f", stretched for longer texts ({config.rotary_scaling})"
            text = "Positions come in here: queries and keys are turned by angles that grow with the position t."
            blocks += [text, Numbers("Q before turning", query, self.words), Formula(formula)]
        group = self.head // (heads // groups)
        query, key, value = (self._found(module, kind) for kind in ("query", "key", "value"))
        blocks.append(Numbers("Q", query[:, self.head], self.words))
        return [*blocks, Numbers("K", key[:, group], keys), Numbers("V", value[:, group], keys)]

    def _feed_forward(self, module: FeedForward) -> Section:
        hidden, width = module.down.weight.shape
        inside, bias = module.up, " + b₁" if module.up.bias else ""
        if isinstance(inside, GatedLinear):
            formula = f"[g | u] = x W₁{bias}        h = silu(g) · u"
        else:
            formula = f"h = {inside.activation}(x W₁{bias})"
        formula += f"        (T, {width}) → (T, {hidden})"
        formula += f"\ny = h W₂{' + b₂' if module.down.bias else ''}        (T, {hidden}) → (T, {width})"
        numbers = self._numbers("h", inside, "output"), self._numbers("y", module.down, "output")
        return self._section("Feed-forward", "Every token by itself, with the same weights.", Formula(formula), numbers)

    def _norm(self, norm: Norm) -> list[Block]:
        if isinstance(norm, LayerNorm):
            formula = (
                f"y = gain · (x - mean(x)) / √(var(x) + {norm.eps:g}){' + bias' if norm.bias else ''}        (T, D)"
            )
        else:
            formula = f"y = gain · x / √(mean(x²) + {norm.eps:g})        (T, D)"
        return [Formula(formula), self._numbers("y", norm, "output")]

    def _after(self, block: Layer | DecoderBlock, name: str) -> Numbers:
        """Show what a block returned."""
        last = block.feed_forward
        return self._numbers(name, last.norm, "output") if last.post_norm else self._numbers(name, last, "sum")

    def _numbers(self, name: str, module: Module, kind: str) -> Numbers:
        return Numbers(name, self._found(module, kind), self.words)

    def _found(self, module: Module, name: str) -> Array:
        return self.reading.recorder.found(module, name)

    def _section(self, title: str, *blocks: str | Block | Sequence) -> Section:
        where = f"{self.side.name}layer {self.side.number}".capitalize()
        return Section(f"{where}: {title[0].lower()}{title[1:]}", *blocks)
