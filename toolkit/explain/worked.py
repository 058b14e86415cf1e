"""The founding document 004's example as a page: "I am boy" by hand, and where the document errs beside it."""

from collections.abc import Mapping, Sequence

import numpy as np

from toolkit.decoding.sampling import log_sum_exp
from toolkit.errors import DataError
from toolkit.explain import worked_model as example
from toolkit.explain.errata import (
    FIRST_QUERY,
    SECOND_QUERY,
    SMALL_KEYS,
    SMALL_QUERY,
    X,
    errata,
    erratum,
    shown,
    softmax,
)
from toolkit.functional.arrays import Array
from toolkit.functional.positions import sinusoidal_positions
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.module import Module
from toolkit.nn.tape import Recorder, Tape
from toolkit.pages.blocks import Bars, Block, Formula, Heat, Numbers, Page, Section

EXAMPLE = "I am boy"
_MOST_WORDS = 64
_MOST_LETTERS = 40  # of a word that is not known
_MOST_TERMS = 4
_WORDS, _KINDS = ("I", "am", "boy"), ("query", "key", "value")
_ABOUT = (
    "The founding document 004 translates “I am boy” into “म केटा हुँ” by hand: two numbers a token, one head, identity "
    "weights. Here its numbers go through the toolkit's own modules, and every figure is read from that pass. Where "
    "the document prints another one, both stand side by side."
)


def worked_page(text: str = EXAMPLE, target: str | None = None) -> Page:
    """Walk through the document's model, and list all known errors of the founding documents.

    text: any sentence of I, am and boy. target: words of म केटा हुँ that the decoder reads after <sos>; None is म.
    Raises DataError for another word, and for a blank text.
    """
    cut: list[str] = []
    words = _known(text, example.SOURCE, "the text", cut)
    if not words:
        raise DataError("the text is blank: there is nothing to read")
    written = ["म"] if target is None else _known(target, example.TARGET, "the target", cut)
    is_example = words == EXAMPLE.split() and target is None
    walk = _Walk(example.worked_pass(words, ["<sos>", *written]), is_example)
    sections = walk.sections()
    others = Section(
        "Other known errors of the founding documents",
        "Whatever is wrong in the founding documents and is not on this page already, computed now by the toolkit.",
        list(errata(walk.placed).values()),
    )
    return Page("Attention by hand", _ABOUT, [*sections, others], cut)


def _known(text: str, words: Mapping[str, tuple[float, float]], what: str, cut: list[str]) -> list[str]:
    given = text.split()
    for word in given:
        if word not in words:
            raise DataError(
                f"{what} of the worked example is made of {', '.join(words)}, without {word[:_MOST_LETTERS]!r}: leave "
                "out --documents for other texts"
            )
    if len(given) > _MOST_WORDS:
        cut.append(f"{what.capitalize()} has {len(given)} words: the first {_MOST_WORDS} are read.")
    return given[:_MOST_WORDS]


class _Walk:
    """Sections of a worked pass; `placed` are the errata that stand in them."""

    def __init__(self, worked: example.Worked, is_example: bool):
        self.worked, self.is_example = worked, is_example
        self.placed: set[str] = set()

    def sections(self) -> list[Section]:
        model, source, target = self.worked.model, self.worked.source, self.worked.target
        return [
            *self._source(),
            *self._attention("Encoder", model.encoder, source, source),
            self._target(),
            self._masked_attention(),
            *self._attention("Cross-attention", model.cross_attention, target, source),
            self._document_queries(),
            *self._last_layers(),
            *self._next_word(),
            *self._later_example(),
            self._small_example(),
        ]

    def _beside(self, *keys: str, always: bool = False) -> list[Block]:
        """Place errata that belong here; those of the example's own figures only where they are on the page."""
        if not (self.is_example or always):
            return []
        self.placed.update(keys)
        return [erratum(key) for key in keys]

    def _read(self, module: Module, name: str) -> Array:
        return self.worked.recorder.found(module, name)

    def _source(self) -> list[Section]:
        model, words = self.worked.model, self.worked.source
        return [
            Section(
                "Embedding",
                "Every word is a row of a table, which training would learn; these are given.",
                Formula("E = table[id]        table (3, 2) → E (T, 2)"),
                Numbers("E", self._read(model.source.embedding, "output"), words),
            ),
            Section(
                "Positions",
                Formula("PE(t, 2i) = sin(t / 10000^(2i / D))        PE(t, 2i + 1) = cos(t / 10000^(2i / D))"),
                Numbers("PE", self._read(model.source.positions, "positions"), words),
                Formula("x = E + PE        (T, 2)"),
                Numbers("x", self._read(model.encoder, "query")[:, 0], words),
                "From here on x is used as it is printed, with three decimals, as the document does: what follows can "
                "be checked by hand. Unrounded, some third decimals are larger by one or two.",
            ),
        ]

    def _target(self) -> Section:
        model, words = self.worked.model, self.worked.target
        return Section(
            "Decoder: what it reads",
            "A begin mark and the words that are written already, again with their positions.",
            Numbers("E", self._read(model.target.embedding, "output"), words),
            Numbers("PE", self._read(model.target.positions, "positions"), words),
            Numbers("x = E + PE", self._read(model.decoder, "query")[:, 0], words),
            self._beside("start_mark", "fed_its_answer", "mask_token"),
        )

    def _masked_attention(self) -> Section:
        words, module = self.worked.target, self.worked.model.decoder
        scores = self._read(module, "scores")[0, 0]
        hidden = np.triu(np.ones(scores.shape, bool), 1)
        weights = self._read(module, "probabilities")[0, 0].T
        return Section(
            "Decoder: masked self-attention",
            "As in the encoder, Q = K = V = x. All steps are computed at once.",
            Formula("S = Q Kᵀ / √2        (T, 2) · (2, T) → (T, T)"),
            Numbers("S", scores, words, words),
            "No word may see what comes after it: those scores count as -∞, and their weights are 0.",
            Formula("S_ts = -∞ for s > t"),
            Numbers("S + mask", np.where(hidden, -np.inf, scores), words, words),
            Numbers("P = softmax(S + mask)", weights, words, words),
            Heat("P, as a map", weights, words, words, hidden),
            "The first word sees itself alone, and leaves as it came.",
            Numbers("context = P V", self._read(module, "context"), words),
        )

    def _attention(
        self, where: str, module: SelfAttention | CrossAttention, words: Sequence[str], keys: Sequence[str]
    ) -> list[Section]:
        """Show attention without a mask; errata stand beside the encoder's."""
        is_encoder, read = isinstance(module, SelfAttention), "x" if isinstance(module, SelfAttention) else "memory"
        others = "." if is_encoder else ": the query is the decoder's row, keys and values are the encoder's output."
        scores, value = self._read(module, "scores")[0, 0], self._read(module, "value")[:, 0]
        weights, context = self._read(module, "probabilities")[0, 0].T, self._read(module, "context")

        def beside(*errata: str) -> list[Block]:
            return self._beside(*errata) if is_encoder else []

        return [
            Section(
                f"{where}: queries, keys, values",
                f"Queries ask, keys answer, values are what is handed over. All weights are the identity{others}",
                Formula(f"Q = x W_Q        K = {read} W_K        V = {read} W_V        W (2, 2)"),
                Numbers("Q", self._read(module, "query")[:, 0], words),
                Numbers("K", self._read(module, "key")[:, 0], keys),
                Numbers("V", value, keys),
            ),
            Section(
                f"{where}: products",
                Formula(f"Q Kᵀ        ({len(words)}, 2) · (2, {len(keys)}) → ({len(words)}, {len(keys)})"),
                Numbers("Q Kᵀ", scores * module.head_dim**0.5, words, keys),
                beside("scores_row_2", "scores_row_3"),
            ),
            Section(
                f"{where}: scores",
                "Products of wide rows are large; divided by √K they stay where softmax still has a slope.",
                Formula("S = Q Kᵀ / √2"),
                Numbers("S", scores, words, keys),
                "Nothing is masked here: every word sees all words of the source.",
                beside("scaled_row_1", "scaled_rows_2_3"),
            ),
            Section(
                f"{where}: softmax",
                Formula("P_ts = exp(S_ts) / Σ_s' exp(S_ts')        every row sums to 1"),
                Numbers("P", weights, words, keys),
                Heat("P, as a map", weights, words, keys),
                beside("exponentials_row_1", "weights_rows_2_3"),
            ),
            Section(
                f"{where}: context",
                "The average of the values, weighted by P; in the first row:",
                Formula(_spelled_out(weights[0], value, context[0])),
                Numbers("context = P V", context, words),
                beside("context_row_1", "context_rows_2_3"),
            ),
            Section(
                f"{where}: heads",
                "Several heads would stand side by side here. There is one, and W_O is the identity.",
                Formula("y = [context_1 | … | context_H] W_O        (T, 2) · (2, 2) → (T, 2)"),
                Numbers("y", self._read(module.output, "output"), words),
            ),
        ]

    def _document_queries(self) -> Section:
        """Ask the encoder's output the two queries that the document itself asks."""
        memory, asked = example.self_attended(X).context, []
        second = ("second_dots", "second_weights", "second_context")
        for query, keys in ((FIRST_QUERY, ("cross_weights",)), (SECOND_QUERY, second)):
            attended = example.cross_attended(query, memory)
            name = f"({query[0, 0]}, {query[0, 1]})"
            rows = np.vstack([attended.dots, attended.scores, attended.weights])
            asked += [
                Numbers(f"{name} asks", rows, ("products q·k", "scores, / √2", "weights"), _WORDS),
                Numbers("context", attended.context, (name,)),
                *self._beside(*keys, always=True),
            ]
        return Section(
            "Cross-attention: the document's own queries",
            "The document asks with two queries of its own: (1.0, 1.5), which it feeds for the first word, and (1.4, "
            "1.2), which it supposes for the second. This is what the toolkit's cross-attention answers.",
            asked,
        )

    def _last_layers(self) -> list[Section]:
        model, words = self.worked.model, self.worked.target
        return [
            Section(
                "Feed-forward",
                "Every row by itself; W₁ and W₂ are identities, and nothing is negative here.",
                Formula("h = relu(x W₁)        y = h W₂        (T, 2) → (T, 2) → (T, 2)"),
                Numbers("h", self._read(model.feed_forward.layer.up, "output"), words),
                Numbers("y", self._read(model.feed_forward.layer.down, "output"), words),
            ),
            Section(
                "Residual",
                "What came in is added to what came out.",
                Formula("x + y        (T, 2)"),
                Numbers("x + y", self._read(model.feed_forward, "sum"), words),
            ),
            Section(
                "Norm",
                Formula("z = gain · (x - mean(x)) / √(var(x) + 1e-05)"),
                Numbers("z", self._read(model.feed_forward.norm, "output"), words),
                "Of two numbers a norm leaves only which one is larger, as 1 and -1: real models are wider.",
            ),
        ]

    def _next_word(self) -> list[Section]:
        words, names = self.worked.target, list(example.TARGET)
        logits = self._read(self.worked.model, "logits")
        probabilities = np.exp(logits - log_sum_exp(logits)[:, None])
        best = np.argsort(-probabilities[-1], kind="stable")
        likely = {"probability": probabilities[-1, best].tolist()}
        return [
            Section(
                "Logits",
                "Each row is compared with the row of every word. Rows but those of <sos> and म are ours.",
                Formula(f"logits = z tableᵀ        (T, 2) · (2, {len(example.TARGET)}) → (T, {len(example.TARGET)})"),
                Numbers("table", np.array(list(example.TARGET.values())), names),
                Numbers("logits", logits, words, names),
            ),
            Section(
                "Next word",
                Formula("P(next = v) = exp(logit_v) / Σ_v' exp(logit_v')"),
                Numbers("P", probabilities, words, names),
                Bars(f"after {words[-1]}", [names[i] for i in best], likely),
                "Nobody trained these weights: the document supposes its 0.85 for म, no number leads there.",
            ),
        ]

    def _later_example(self) -> list[Section]:
        """Show the example with weights that are no identities, and its gradient."""
        module, recorder = example.later_attention(), Recorder()
        output = example.later_pass(module, Tape(recorder=recorder))
        gradients = zip("qkv", example.later_gradients(), strict=True)
        slope = ", ".join(f"{value:g}" for value in example.LATER_D_OUTPUT)
        weights = (("W_q", example.LATER_W_Q), ("W_k", example.LATER_W_K), ("W_v", example.LATER_W_V))
        return [
            Section(
                "The later example",
                "The same attention with weights that are to be learned.",
                Numbers("X", example.LATER_X, _WORDS),
                Formula("Q = X W_q        K = X W_k        V = X W_v        (3, 2) · (2, 2) → (3, 2)"),
                [Numbers(name, each) for name, each in weights],
                [Numbers(kind[0].upper(), recorder.found(module, kind)[:, 0], _WORDS) for kind in _KINDS],
                self._beside("later_weights", always=True),
                Formula("S = Q Kᵀ / √2        P = softmax(S)        output = P V"),
                Numbers("S", recorder.found(module, "scores")[0, 0], _WORDS, _WORDS),
                Numbers("P", recorder.found(module, "probabilities")[0, 0].T, _WORDS, _WORDS),
                Numbers("output", output, _WORDS),
            ),
            Section(
                "The later example: its gradient",
                f"The document lets ∂L/∂output be ({slope}). Given to the last word, boy, the toolkit's backward turns "
                "it into gradients of the three weights, each as large as its weight.",
                Formula(
                    "\n".join(f"∂L/∂W_{each} = Xᵀ ∂L/∂{each.upper()}        (2, 3) · (3, 2) → (2, 2)" for each in "qkv")
                ),
                [Numbers(f"∂L/∂W_{name}", each, digits=4) for name, each in gradients],
                self._beside("gradient_of_w_q", "cross_entropy", "adam_moment", always=True),
            ),
        ]

    def _small_example(self) -> Section:
        attended = example.cross_attended(SMALL_QUERY, SMALL_KEYS)
        rows = np.vstack([attended.dots, softmax(attended.dots[0]), attended.scores, attended.weights])
        names = ("products q·k", "their softmax", "scores, / √2", "weights")
        return Section(
            "The example with four numbers a token",
            Numbers("PE", sinusoidal_positions(2, 4, dtype=np.float64), ("PE(0)", "PE(1)")),
            self._beside("positions_of_four", always=True),
            "The third token asks the first three with q = (0.1, 0.2).",
            Numbers("q asks", rows, names, ("token 1", "token 2", "token 3")),
            self._beside("small_softmax", always=True),
        )


def _spelled_out(weights: Array, values: Array, context: Array) -> str:
    """Write a weighted sum as it would be written by hand, of at most four terms."""
    terms = [
        f"{weight:.3f}·{shown(row)}" for weight, row in zip(weights[:_MOST_TERMS], values[:_MOST_TERMS], strict=True)
    ]
    return " + ".join(terms) + " + …" * (len(weights) > _MOST_TERMS) + f"\n= {shown(context)}"
