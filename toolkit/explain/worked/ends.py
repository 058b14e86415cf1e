"""The end of the worked example, from context to word, and the document's later examples."""

from collections.abc import Callable

import numpy as np

from toolkit.decoding.sampling import log_sum_exp
from toolkit.explain.pages.blocks import Bars, Block, Formula, Numbers, Section, Text
from toolkit.explain.reading import found
from toolkit.explain.worked.errata_numbers import FIRST_QUERY, SECOND_QUERY, X, softmax
from toolkit.explain.worked.example import (
    LATER_D_OUTPUT,
    LATER_W_K,
    LATER_W_Q,
    LATER_W_V,
    LATER_X,
    TARGET,
    Worked,
    cross_attended,
    later_attention,
    later_gradients,
    later_pass,
    self_attended,
)
from toolkit.functional.arrays import Array
from toolkit.functional.positions import sinusoidal_positions
from toolkit.nn.module import Module
from toolkit.nn.recorder import Recorder
from toolkit.nn.tape import Tape

# Puts the errata of these keys on the page.
Beside = Callable[..., list[Block]]

_WORDS = ("I", "am", "boy")


def document_queries(beside: Beside) -> Section:
    """The two queries that the document itself asks the encoder's output."""
    memory = self_attended(X).context
    blocks: list[Block] = [
        Text(
            "The document asks with two queries of its own: (1.0, 1.5), which it feeds for the first word, and "
            "(1.4, 1.2), which it supposes for the second. This is what the toolkit's cross-attention answers."
        )
    ]
    for query, keys in ((FIRST_QUERY, ("cross_weights",)), (SECOND_QUERY, _SECOND)):
        attended = cross_attended(query, memory)
        name = f"({query[0, 0]}, {query[0, 1]})"
        rows = np.vstack([attended.dots, attended.scores, attended.weights])
        blocks += [
            Numbers(f"{name} asks", rows, ("products q·k", "scores, / √2", "weights"), _WORDS),
            Numbers("context", attended.context, (name,)),
            *beside(*keys, always=True),
        ]
    return Section("Cross-attention: the document's own queries", blocks)


_SECOND = ("second_dots", "second_weights", "second_context")


def last_layers(worked: Worked) -> list[Section]:
    """Feed-forward, residual and norm."""
    model, words = worked.model, worked.target

    def read(module: Module, name: str) -> Array:
        return found(worked.recorder, module, name)

    return [
        Section(
            "Feed-forward",
            [
                Text("Every row by itself; W₁ and W₂ are identities, and nothing is negative here."),
                Formula("h = relu(x W₁)        y = h W₂        (T, 2) → (T, 2) → (T, 2)"),
                Numbers("h", read(model.feed_forward.expand, "output"), words),
                Numbers("y", read(model.feed_forward.contract, "output"), words),
            ],
        ),
        Section(
            "Residual",
            [
                Text("What came in is added to what came out."),
                Formula("x + y        (T, 2)"),
                Numbers("x + y", read(model.around, "sum"), words),
            ],
        ),
        Section(
            "Norm",
            [
                Formula("z = gain · (x - mean(x)) / √(var(x) + 1e-05)"),
                Numbers("z", read(model.around.norm, "output"), words),
                Text("Of two numbers a norm leaves only which one is larger, as 1 and -1: real models are wider."),
            ],
        ),
    ]


def next_word(worked: Worked) -> list[Section]:
    """Logits, and the word that follows."""
    words, names = worked.target, list(TARGET)
    logits = found(worked.recorder, worked.model, "logits")
    probabilities = np.exp(logits - log_sum_exp(logits)[:, None])
    best = np.argsort(-probabilities[-1], kind="stable")
    return [
        Section(
            "Logits",
            [
                Text("Each row is compared with the row of every word. Rows but those of <sos> and म are ours."),
                Formula(f"logits = z tableᵀ        (T, 2) · (2, {len(TARGET)}) → (T, {len(TARGET)})"),
                Numbers("table", np.array(list(TARGET.values())), names),
                Numbers("logits", logits, words, names),
            ],
        ),
        Section(
            "Next word",
            [
                Formula("P(next = v) = exp(logit_v) / Σ_v' exp(logit_v')"),
                Numbers("P", probabilities, words, names),
                Bars(f"after {words[-1]}", [names[i] for i in best], {"probability": probabilities[-1, best].tolist()}),
                Text("Nobody trained these weights: the document supposes its 0.85 for म, no number leads there."),
            ],
        ),
    ]


def later_example(beside: Beside) -> list[Section]:
    """The example with weights that are no identities, and its gradient."""
    module, recorder = later_attention(), Recorder()
    output = later_pass(module, Tape(recorder=recorder))
    shown = {each.name: each.value for each in recorder.records if each.owner is module}
    gradients = later_gradients()
    forward = [
        Text("The same attention with weights that are to be learned."),
        Numbers("X", LATER_X, _WORDS),
        Formula("Q = X W_q        K = X W_k        V = X W_v        (3, 2) · (2, 2) → (3, 2)"),
        *(Numbers(name, each) for name, each in (("W_q", LATER_W_Q), ("W_k", LATER_W_K), ("W_v", LATER_W_V))),
        *(Numbers(kind[0].upper(), shown[kind][:, 0], _WORDS) for kind in ("query", "key", "value")),
        *beside("later_weights", always=True),
        Formula("S = Q Kᵀ / √2        P = softmax(S)        output = P V"),
        Numbers("S", shown["scores"][0, 0], _WORDS, _WORDS),
        Numbers("P", shown["probabilities"][0, 0].T, _WORDS, _WORDS),
        Numbers("output", output, _WORDS),
    ]
    slope = ", ".join(f"{value:g}" for value in LATER_D_OUTPUT)
    backward = [
        Text(
            f"The document lets ∂L/∂output be ({slope}). Given to the last word, boy, the toolkit's backward turns it "
            "into gradients of the three weights, each as large as its weight."
        ),
        Formula("\n".join(f"∂L/∂W_{each} = Xᵀ ∂L/∂{each.upper()}        (2, 3) · (3, 2) → (2, 2)" for each in "qkv")),
        *(Numbers(f"∂L/∂W_{name}", each, digits=4) for name, each in zip("qkv", gradients, strict=True)),
        *beside("gradient_of_w_q", "cross_entropy", "adam_moment", always=True),
    ]
    return [Section("The later example", forward), Section("The later example: its gradient", backward)]


def small_example(beside: Beside) -> Section:
    """The example with four numbers a token."""
    attended = cross_attended([[0.1, 0.2]], [[0.2, 0.3], [0.0, 0.1], [-0.1, 0.2]])
    rows = np.vstack([attended.dots, softmax(attended.dots[0]), attended.scores, attended.weights])
    names = ("products q·k", "their softmax", "scores, / √2", "weights")
    return Section(
        "The example with four numbers a token",
        [
            Numbers("PE", sinusoidal_positions(2, 4, dtype=np.float64), ("PE(0)", "PE(1)")),
            *beside("positions_of_four", always=True),
            Text("The third token asks the first three with q = (0.1, 0.2)."),
            Numbers("q asks", rows, names, ("token 1", "token 2", "token 3")),
            *beside("small_softmax", always=True),
        ],
    )
