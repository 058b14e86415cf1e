"""The steps of a block, each with its formula, its shapes and the numbers that a real pass showed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.explain.pages.blocks import Block, Formula, Heat, Maps, Numbers, Section, Text
from toolkit.explain.reading import Reading
from toolkit.functional.arrays import Array
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.blocks import Residual
from toolkit.nn.layers import FeedForward, GatedLinear, LayerNorm, Norm


@dataclass(frozen=True)
class Steps:
    """Makes the sections of one block."""

    reading: Reading
    where: str  # "Encoder, layer 1"
    words: Sequence[str]  # a label for each row
    head: int  # from 0

    def residual(self, residual: Residual, *layer: Section) -> list[Section]:
        """The sections of a sub-layer, and what is around it."""
        return [*self._enter(residual), *layer, *self._leave(residual)]

    def _enter(self, residual: Residual) -> list[Section]:
        """The norm in front of a sub-layer, where it stands there."""
        return self._norm(residual.norm, "Norm before the sub-layer") if residual.norm and residual.pre_norm else []

    def _leave(self, residual: Residual) -> list[Section]:
        """The sum around a sub-layer, and the norm behind it."""
        total = self._numbers("x + branch", residual, "sum")
        text = "What the sub-layer computed is added to what it was given: gradients pass the sum unchanged."
        section = self._section("Residual", Text(text), Formula("x ← x + branch        (T, D)"), total)
        after = self._norm(residual.norm, "Norm after the sum") if residual.norm and not residual.pre_norm else []
        return [section, *after]

    def attention(self, module: SelfAttention | CrossAttention, keys: Sequence[str]) -> list[Section]:
        """keys: a label for each row that can be attended to."""
        causal = isinstance(module, SelfAttention) and module.causal
        hidden = np.triu(np.ones((len(self.words), len(keys)), bool), 1) if causal else None
        title = "Cross-attention" if isinstance(module, CrossAttention) else "Self-attention"
        name = f"{title}, head {self.head + 1}"
        sections = [self._projections(module, keys, name), self._scores(module, keys, name)]
        if hidden is not None:
            sections.append(self._mask(module, keys, hidden, name))
        return [
            *sections,
            self._weights(module, keys, hidden, name),
            self._context(module, name),
            self._heads(module, keys, hidden, title),
        ]

    def feed_forward(self, module: FeedForward) -> Section:
        hidden, width = module.down.weight.shape
        inside, bias = module.up, " + b₁" if module.up.bias else ""
        if isinstance(inside, GatedLinear):
            formula = f"[g | u] = x W₁{bias}        h = silu(g) · u"
        else:
            formula = f"h = {inside.activation}(x W₁{bias})"
        formula += f"        (T, {width}) → (T, {hidden})"
        formula += f"\ny = h W₂{' + b₂' if module.down.bias else ''}        (T, {hidden}) → (T, {width})"
        return self._section(
            "Feed-forward",
            Text("Every token by itself, with the same weights."),
            Formula(formula),
            self._numbers("h", inside, "output"),
            self._numbers("y", module.down, "output"),
        )

    def _projections(self, module: SelfAttention | CrossAttention, keys: Sequence[str], name: str) -> Section:
        heads, width = module.heads, module.head_width
        groups = self._found(module, "key").shape[1]
        read = "x" if isinstance(module, SelfAttention) else "the memory"
        text = f"Three linear maps, cut into {heads} heads of {width} numbers each."
        if isinstance(module, CrossAttention):
            text += " Queries come from the target, keys and values from what the encoder made of the source."
        if groups < heads:
            text += f" {heads // groups} heads of queries share each of the {groups} heads of keys and values."
        formula = f"Q = x W_Q        K, V = {read} W_K, {read} W_V"
        formula += f"        Q ({len(self.words)}, {heads}·{width})   K, V ({len(keys)}, {groups}·{width})"
        blocks: list[Block] = [Text(text), Formula(formula)]
        if isinstance(module, SelfAttention) and module.rotary:
            blocks += self._before_turning(module)
        group = self.head // (heads // groups)
        for letter, kind, rows, index in (
            ("Q", "query", self.words, self.head),
            ("K", "key", keys, group),
            ("V", "value", keys, group),
        ):
            blocks.append(Numbers(letter, self._found(module, kind)[:, index], rows))
        return self._section(f"{name}: queries, keys, values", *blocks)

    def _before_turning(self, module: SelfAttention) -> list[Block]:
        query = self._found(module.query_key_value, "output")[:, : module.heads * module.head_width]
        query = query.reshape(len(query), module.heads, -1)[:, self.head]
        formula = "q_i, q_{i+K/2} → q_i cos θ - q_{i+K/2} sin θ, q_{i+K/2} cos θ + q_i sin θ        "
        formula += f"θ = t / {module.rotary.base:g}^(2i / K)"
        text = "Positions come in here: queries and keys are turned by angles that grow with the position t."
        return [Text(text), Numbers("Q before turning", query, self.words), Formula(formula)]

    def _scores(self, module: SelfAttention | CrossAttention, keys: Sequence[str], name: str) -> Section:
        width = module.head_width
        formula = f"S = Q Kᵀ / √{width}        ({len(self.words)}, {width}) · ({width}, {len(keys)}) → "
        formula += f"({len(self.words)}, {len(keys)})"
        text = "How well each query (row) matches each key (column), scaled so that wide heads do not saturate softmax."
        values = self._found(module, "scores")[0, self.head]
        return self._section(f"{name}: scores", Text(text), Formula(formula), Numbers("S", values, self.words, keys))

    def _mask(self, module: SelfAttention, keys: Sequence[str], hidden: Array, name: str) -> Section:
        masked = np.where(hidden, -np.inf, self._found(module, "scores")[0, self.head])
        text = "A token must not see what comes after it, or predicting would be copying: those scores count as -∞."
        formula = "S_ts = -∞ for s > t"
        return self._section(
            f"{name}: mask", Text(text), Formula(formula), Numbers("S + mask", masked, self.words, keys)
        )

    def _weights(self, module, keys: Sequence[str], hidden: Array | None, name: str) -> Section:
        weights = self._found(module, "probabilities")[0, self.head].T
        formula = "P_ts = exp(S_ts) / Σ_s' exp(S_ts')        every row sums to 1"
        return self._section(
            f"{name}: softmax",
            Formula(formula),
            Numbers("P", weights, self.words, keys),
            Heat("P, as a map", weights, self.words, keys, hidden),
        )

    def _context(self, module, name: str) -> Section:
        width = module.head_width
        context = self._found(module, "context").reshape(len(self.words), -1, width)[:, self.head]
        text = "The average of the values, weighted by P."
        formula = f"context = P V        (T, S) · (S, {width}) → (T, {width})"
        return self._section(f"{name}: context", Text(text), Formula(formula), Numbers("context", context, self.words))

    def _heads(self, module, keys: Sequence[str], hidden: Array | None, title: str) -> Section:
        maps = self._found(module, "probabilities")[0].swapaxes(-1, -2)
        heats = [Heat(f"head {number}", each, self.words, keys, hidden) for number, each in enumerate(maps, start=1)]
        total = module.heads * module.head_width
        formula = f"y = [context_1 | … | context_{module.heads}] W_O"
        formula += f"{' + b_O' if module.output.bias else ''}        (T, {total}) · ({total}, {total}) → (T, {total})"
        return self._section(
            f"{title}: all heads",
            Text("Each head has its own weights, P:"),
            Maps(heats),
            Text("Their contexts stand side by side and are mixed by one more linear map:"),
            Formula(formula),
            self._numbers("contexts", module, "context"),
            self._numbers("y", module.output, "output"),
        )

    def _norm(self, norm: Norm, title: str) -> list[Section]:
        return [self._section(title, *norm_blocks(self.reading, norm, self.words))]

    def _numbers(self, name: str, module, kind: str) -> Numbers:
        return Numbers(name, self._found(module, kind), self.words)

    def _found(self, module, name: str) -> Array:
        return self.reading.found(module, name)

    def _section(self, title: str, *blocks: Block) -> Section:
        return Section(f"{self.where}: {title[0].lower()}{title[1:]}", blocks)


def norm_blocks(reading: Reading, norm: Norm, words: Sequence[str]) -> list[Block]:
    """A norm's formula and what it made of the rows."""
    if isinstance(norm, LayerNorm):
        formula = f"y = gain · (x - mean(x)) / √(var(x) + {norm.eps:g}){' + bias' if norm.bias else ''}        (T, D)"
    else:
        formula = f"y = gain · x / √(mean(x²) + {norm.eps:g})        (T, D)"
    return [Formula(formula), Numbers("y", reading.found(norm, "output"), words)]
