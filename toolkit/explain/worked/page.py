"""The founding document 004's example as a page: "I am boy" by hand, and where the document errs beside it."""

from collections.abc import Mapping, Sequence

import numpy as np

from toolkit.errors import DataError
from toolkit.explain.pages.blocks import Block, Formula, Heat, Numbers, Page, Section, Text
from toolkit.explain.reading import found
from toolkit.explain.worked.ends import document_queries, last_layers, later_example, next_word, small_example
from toolkit.explain.worked.errata import errata, erratum
from toolkit.explain.worked.errata_numbers import shown
from toolkit.explain.worked.example import SOURCE, TARGET, Worked, worked_pass
from toolkit.functional.arrays import Array
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.module import Module

EXAMPLE = "I am boy"
_MOST_WORDS = 64
_MOST_LETTERS = 40  # of a word that is not known
_MOST_TERMS = 4
_ABOUT = (
    "The founding document 004 translates “I am boy” into “म केटा हुँ” by hand: two numbers a token, one head, identity "
    "weights. Here its numbers go through the toolkit's own modules, and every figure is read from that pass. Where "
    "the document prints another one, both stand side by side."
)


def worked_page(text: str = EXAMPLE, target: str | None = None) -> Page:
    """The walk through the document's model, and all known errors of the founding documents.

    text: any sentence of I, am and boy. target: words of म केटा हुँ that the decoder reads after <sos>; None is म.
    Raises DataError for another word, and for a blank text.
    """
    cut: list[str] = []
    words = _known(text, SOURCE, "the text", cut)
    if not words:
        raise DataError("the text is blank: there is nothing to read")
    written = ["म"] if target is None else _known(target, TARGET, "the target", cut)
    worked = worked_pass(words, ["<sos>", *written])
    walk = _Walk(worked, is_example=words == EXAMPLE.split() and target is None)
    sections = [
        *walk.source(),
        *walk.encoder(),
        *walk.target(),
        *walk.decoder(),
        *walk.cross_attention(),
        document_queries(walk.beside),
        *last_layers(worked),
        *next_word(worked),
        *later_example(walk.beside),
        small_example(walk.beside),
    ]
    rest = list(errata(walk.placed).values())
    intro = "Whatever is wrong in the founding documents and is not on this page already, computed now by the toolkit."
    return Page(
        "Attention by hand",
        _ABOUT,
        [*sections, Section("Other known errors of the founding documents", [Text(intro), *rest])],
        cut,
    )


def _known(text: str, words: Mapping[str, tuple[float, float]], what: str, cut: list[str]) -> list[str]:
    given = text.split()
    for word in given:
        if word not in words:
            raise DataError(
                f"{what} of the worked example is made of {', '.join(words)}, without {word[:_MOST_LETTERS]!r}: choose "
                "a trained model for other texts, such as --model en-ne"
            )
    if len(given) > _MOST_WORDS:
        cut.append(f"{what.capitalize()} has {len(given)} words: the first {_MOST_WORDS} are read.")
    return given[:_MOST_WORDS]


class _Walk:
    """Sections of a worked pass; `placed` are the errata that stand in them."""

    def __init__(self, worked: Worked, is_example: bool):
        self.worked, self.is_example = worked, is_example
        self.placed: set[str] = set()

    def beside(self, *keys: str, always: bool = False) -> list[Block]:
        """Errata that belong here; those of the example's own figures only where they are on the page."""
        if not (self.is_example or always):
            return []
        self.placed.update(keys)
        return [erratum(key) for key in keys]

    def source(self) -> list[Section]:
        model, words = self.worked.model, self.worked.source
        return [
            Section(
                "Embedding",
                [
                    Text("Every word is a row of a table, which training would learn; these are given."),
                    Formula("E = table[id]        table (3, 2) → E (T, 2)"),
                    Numbers("E", self._found(model.source.embedding, "output"), words),
                ],
            ),
            Section(
                "Positions",
                [
                    Formula("PE(t, 2i) = sin(t / 10000^(2i / D))        PE(t, 2i + 1) = cos(t / 10000^(2i / D))"),
                    Numbers("PE", self._found(model.source.positions, "positions"), words),
                    Formula("x = E + PE        (T, 2)"),
                    Numbers("x", self._found(model.encoder, "query")[:, 0], words),
                    Text(
                        "From here on x is used as it is printed, with three decimals, as the document does: what "
                        "follows can be checked by hand. Unrounded, some third decimals are larger by one or two."
                    ),
                ],
            ),
        ]

    def encoder(self) -> list[Section]:
        words, module = self.worked.source, self.worked.model.encoder
        return [
            self._projections("Encoder", module, words, words),
            *self._scores("Encoder", module, words, words),
            *self._mixing("Encoder", module, words, words),
        ]

    def target(self) -> list[Section]:
        model, words = self.worked.model, self.worked.target
        return [
            Section(
                "Decoder: what it reads",
                [
                    Text("A begin mark and the words that are written already, again with their positions."),
                    Numbers("E", self._found(model.target.embedding, "output"), words),
                    Numbers("PE", self._found(model.target.positions, "positions"), words),
                    Numbers("x = E + PE", self._found(model.decoder, "query")[:, 0], words),
                    *self.beside("start_mark", "fed_its_answer", "mask_token"),
                ],
            )
        ]

    def decoder(self) -> list[Section]:
        words, module = self.worked.target, self.worked.model.decoder
        scores = self._found(module, "scores")[0, 0]
        hidden = np.triu(np.ones(scores.shape, bool), 1)
        weights = self._found(module, "probabilities")[0, 0].T
        return [
            Section(
                "Decoder: masked self-attention",
                [
                    Text("As in the encoder, Q = K = V = x. All steps are computed at once."),
                    Formula("S = Q Kᵀ / √2        (T, 2) · (2, T) → (T, T)"),
                    Numbers("S", scores, words, words),
                    Text("No word may see what comes after it: those scores count as -∞, and their weights are 0."),
                    Formula("S_ts = -∞ for s > t"),
                    Numbers("S + mask", np.where(hidden, -np.inf, scores), words, words),
                    Numbers("P = softmax(S + mask)", weights, words, words),
                    Heat("P, as a map", weights, words, words, hidden),
                    Text("The first word sees itself alone, and leaves as it came."),
                    Numbers("context = P V", self._found(module, "context"), words),
                ],
            )
        ]

    def cross_attention(self) -> list[Section]:
        sources, words, module = self.worked.source, self.worked.target, self.worked.model.cross_attention
        return [
            self._projections("Cross-attention", module, words, sources),
            *self._scores("Cross-attention", module, words, sources),
            *self._mixing("Cross-attention", module, words, sources),
        ]

    def _projections(
        self, where: str, module: SelfAttention | CrossAttention, words: Sequence[str], keys: Sequence[str]
    ) -> Section:
        crosses = isinstance(module, CrossAttention)
        text = "Queries ask, keys answer, values are what is handed over. All weights are the identity"
        text += ": the query is the decoder's row, keys and values are the encoder's output." if crosses else "."
        read = "memory" if crosses else "x"
        return Section(
            f"{where}: queries, keys, values",
            [
                Text(text),
                Formula(f"Q = x W_Q        K = {read} W_K        V = {read} W_V        W (2, 2)"),
                Numbers("Q", self._found(module, "query")[:, 0], words),
                Numbers("K", self._found(module, "key")[:, 0], keys),
                Numbers("V", self._found(module, "value")[:, 0], keys),
            ],
        )

    def _scores(
        self, where: str, module: SelfAttention | CrossAttention, words: Sequence[str], keys: Sequence[str]
    ) -> list[Section]:
        scores = self._found(module, "scores")[0, 0]
        is_encoder = isinstance(module, SelfAttention)
        products = self.beside("scores_row_2", "scores_row_3") if is_encoder else []
        scaled = self.beside("scaled_row_1", "scaled_rows_2_3") if is_encoder else []
        return [
            Section(
                f"{where}: products",
                [
                    Formula(f"Q Kᵀ        ({len(words)}, 2) · (2, {len(keys)}) → ({len(words)}, {len(keys)})"),
                    Numbers("Q Kᵀ", scores * module.head_width**0.5, words, keys),
                    *products,
                ],
            ),
            Section(
                f"{where}: scores",
                [
                    Text("Products of wide rows are large; divided by √K they stay where softmax still has a slope."),
                    Formula("S = Q Kᵀ / √2"),
                    Numbers("S", scores, words, keys),
                    Text("Nothing is masked here: every word sees all words of the source."),
                    *scaled,
                ],
            ),
        ]

    def _mixing(
        self, where: str, module: SelfAttention | CrossAttention, words: Sequence[str], keys: Sequence[str]
    ) -> list[Section]:
        weights = self._found(module, "probabilities")[0, 0].T
        context, is_encoder = self._found(module, "context"), isinstance(module, SelfAttention)
        wrong_weights = self.beside("exponentials_row_1", "weights_rows_2_3") if is_encoder else []
        wrong_contexts = self.beside("context_row_1", "context_rows_2_3") if is_encoder else []
        return [
            Section(
                f"{where}: softmax",
                [
                    Formula("P_ts = exp(S_ts) / Σ_s' exp(S_ts')        every row sums to 1"),
                    Numbers("P", weights, words, keys),
                    Heat("P, as a map", weights, words, keys),
                    *wrong_weights,
                ],
            ),
            Section(
                f"{where}: context",
                [
                    Text("The average of the values, weighted by P; in the first row:"),
                    Formula(_spelled_out(weights[0], self._found(module, "value")[:, 0], context[0])),
                    Numbers("context = P V", context, words),
                    *wrong_contexts,
                ],
            ),
            Section(
                f"{where}: heads",
                [
                    Text("Several heads would stand side by side here. There is one, and W_O is the identity."),
                    Formula("y = [context_1 | … | context_H] W_O        (T, 2) · (2, 2) → (T, 2)"),
                    Numbers("y", self._found(module.output, "output"), words),
                ],
            ),
        ]

    def _found(self, module: Module, name: str) -> Array:
        return found(self.worked.recorder, module, name)


def _spelled_out(weights: Array, values: Array, context: Array) -> str:
    """A weighted sum as it would be written by hand, of at most four terms."""
    terms = [
        f"{weight:.3f}·{shown(row)}" for weight, row in zip(weights[:_MOST_TERMS], values[:_MOST_TERMS], strict=True)
    ]
    return " + ".join(terms) + " + …" * (len(weights) > _MOST_TERMS) + f"\n= {shown(context)}"
