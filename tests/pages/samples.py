"""A page with every kind of block, whose numbers and labels are hard to show."""

import numpy as np

from toolkit.pages.blocks import (
    Bars,
    Branch,
    Code,
    Curves,
    Erratum,
    Formula,
    Heat,
    Maps,
    Numbers,
    Page,
    Section,
    Table,
    Text,
    Tree,
)

ENGLISH = ("<s>", "I", "␣am", "␣a", "␣boy", ".", "</s>")
NEPALI = ("<s>", "␣म", "␣केटा", "␣हुँ", "।", "</s>")
LONG = tuple(f"␣तपाईं{index}" for index in range(60))
TRICKY = '<script src="http://example.org/x.js">&amp;"\'</script>\x1b[31m'

CAUSAL = np.triu(np.ones((6, 6), bool), 1)


def weights(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Rows that add up to 1, (T, S) float32."""
    raised = np.exp(2 * rng.standard_normal((rows, columns)))
    return (raised / raised.sum(axis=1, keepdims=True)).astype(np.float32)


def beam() -> Tree:
    """A beam of every state, with a label that is markup."""
    end = Branch("</s>", -0.75, "chosen")
    way = Branch("␣म", -0.21, "chosen", [Branch("␣केटा", -0.5, "chosen", [end, Branch("।", -9.1, "dropped")])])
    return Tree(
        "Beam of 2", Branch("<s>", 0.0, "chosen", [way, Branch(TRICKY, -2.2, "kept", [Branch("", -3.1, "ended")])])
    )


def page() -> Page:
    """One section for each kind of block."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((6, 6)).astype(np.float32) * 3
    scores[0, 0] = -np.inf
    heads = [Heat(f"head {index}", weights(rng, 6, 7), NEPALI, ENGLISH) for index in range(5)]
    numbers = [
        Numbers("embedding", rng.standard_normal((20, 64)).astype(np.float32), LONG[:20], (), 3, "of 64 columns"),
        Numbers("PE(1)", np.array([0.841, 0.540, 0.010, 1.0]), (), ("sin", "cos", "sin", "cos"), 2),
        Numbers("v", np.array([1e-7, -2.5e-9, 0.0])),
        Numbers("ids", np.array([2, 345, 1234567])),
        Numbers("scores", np.array([[1.0, -np.inf], [-0.0001, np.nan]]), ("a", TRICKY), ("k1", "k2")),
    ]
    maps = [
        Heat("cross-attention", weights(rng, 6, 7), NEPALI, ENGLISH, None, "Each row adds up to 1"),
        Heat("scores", scores, NEPALI, NEPALI, CAUSAL),
        Heat("long", weights(rng, 60, 60), LONG, LONG),
    ]
    columns = {"model": (0.41, 0.22, 0.01), "top-k 2": (0.65, 0.35, None)}
    bars = [Bars("next", ("␣केटा", TRICKY, "</s>"), columns, (1,)), Bars("one", ("a", "b"), {"p": (0.6, 0.0)})]
    steps = np.arange(1, 1501)
    curves = [
        Curves(
            "loss", {"right": (steps, 3 * np.exp(-steps / 60)), "wrong": (steps, 3 - steps / 9000)}, "update", "loss"
        ),
        Curves("time", {"attention": ((16, 64, 1024), (1e-4, 0.0, 3e-2))}, "T", "seconds", True, True),
    ]
    return Page(
        f"Every block {TRICKY}",
        "म केटा हुँ। `code` & more",
        [
            Section(
                "Words",
                [
                    Text("One.\n\nतपाईं कहाँ जानुहुन्छ? " * 9),
                    Formula("y = x W        (N, D)"),
                    Code(f"f({TRICKY!r})", "a.py:1"),
                ],
            ),
            Section("Numbers", numbers),
            Section("Maps", [*maps, Maps(heads), Maps([Heat("h", weights(rng, 6, 6), NEPALI, NEPALI, CAUSAL)] * 2)]),
            Section("Bars", bars),
            Section("Tables", [Table(("pair", "error"), (("softmax", "1e-9"), (TRICKY, "no, because " * 20)))]),
            Section("Beam", [beam()]),
            Section("Curves", curves),
            Section("Errata", [Erratum("004", "scores of row 2", "2.41 <3", "2.381", "The product was added twice.")]),
        ],
        ["60 of 80 tokens are shown.", TRICKY],
    )
