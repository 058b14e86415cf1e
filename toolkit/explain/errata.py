"""The known errors of the founding documents (errata.toml), with what the toolkit computes instead.

The printed figures are facts about the documents; every other number is computed by the toolkit's own modules.
"""

import math
import tomllib
from collections.abc import Collection
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

from toolkit.explain import worked_model as example
from toolkit.functional.arrays import Array
from toolkit.functional.attention import scaled_scores, softmax_over_keys
from toolkit.functional.norms import layer_norm, layer_norm_backward
from toolkit.functional.positions import sinusoidal_positions
from toolkit.models.autoencoder import AutoEncoder, AutoEncoderConfig
from toolkit.models.seq2seq import translation_batch
from toolkit.nn.tape import Recorder, Tape
from toolkit.pages.blocks import Erratum
from toolkit.proof import central_difference
from toolkit.proof.wrong import layer_norm_of_document_000
from toolkit.tokenization.special import BOS, EOS
from toolkit.training.optimizer import Adam

# What the document 004 prints and goes on with.
X = np.array([[1.0, 1.0], [0.841, 1.540], [1.909, 0.584]])
WEIGHTS = np.array([[0.268, 0.351, 0.380], [0.312, 0.470, 0.218], [0.309, 0.242, 0.449]])
MEMORY = np.array([[1.288, 1.030], [1.201, 1.178], [1.485, 0.989]])
FIRST_QUERY, SECOND_QUERY = np.array([[1.0, 1.5]]), np.array([[1.4, 1.2]])
SECOND_DOTS, SECOND_WEIGHTS = np.array([3.060, 3.243, 3.486]), np.array([0.26, 0.30, 0.44])
GRADIENT = np.array([0.01, -0.02, 0.005, 0.01])
SMALL_QUERY, SMALL_KEYS = [[0.1, 0.2]], [[0.2, 0.3], [0.0, 0.1], [-0.1, 0.2]]

_NAMES = {BOS: "<sos>", EOS: "<eos>"}
_FIELDS = ("document", "place", "printed", "computed", "why")


def erratum(key: str) -> Erratum:
    """Fill in one of them.  Raises KeyError for one that is not known."""
    written = _Figures()
    return Erratum(*(written.format(_claims()[key][field], **_quantities()) for field in _FIELDS))


def errata(without: Collection[str] = ()) -> dict[str, Erratum]:
    """Fill in all of them, by key, the documents in order.  without: keys to leave out."""
    found = {key: erratum(key) for key in _claims() if key not in without}
    return dict(sorted(found.items(), key=lambda item: item[1].document))


class _Figures(Formatter):
    """Writes arrays as documents print them; what follows the colon is the number of decimals."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, np.ndarray):
            return shown(value, int(format_spec or 3))
        return " ".join(value) if isinstance(value, list) else format(value, format_spec)


def shown(values: Array, digits: int = 3) -> str:
    """Write numbers as a document prints them: "(1.288, 1.030)", rows one after the other."""
    values = np.asarray(values)
    if values.ndim > 1:
        return ", ".join(shown(row, digits) for row in values)
    return f"({', '.join(f'{value:.{digits}f}' for value in values)})"


def softmax(scores: Array) -> Array:
    """Apply the toolkit's softmax to one row, (S,) -> (S,)."""
    by_key = np.array(scores, np.float64).reshape(1, 1, -1, 1)
    softmax_over_keys(by_key, None)
    return by_key.reshape(-1)


@cache
def _claims() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@cache
def _quantities() -> dict[str, Any]:
    """Compute all quantities of the table, by name."""
    constants = {name: value for name, value in globals().items() if name.isupper()}
    return constants | _of_models() | _of_training() | _of_worked_example()


def _of_models() -> dict[str, Any]:
    """Compute what 000 and 001 say of parameters and gradients, 002 of the mask, 003 of the scale."""
    model, mse = AutoEncoder(AutoEncoderConfig()), 0.0043
    generator = np.random.default_rng(0)
    x, dy, gain, bias, direction = (generator.standard_normal((1, 8)) for _ in range(5))
    printed, computed = (
        float(np.vdot(backward(dy.copy(), layer_norm(x, gain[0], bias[0])[1])[0], direction))
        for backward in (layer_norm_of_document_000, layer_norm_backward)
    )
    slope = central_difference(lambda: float(np.vdot(layer_norm(x, gain[0], bias[0])[0], dy)), x, direction, 1e-6)
    rows = np.ones((1, 1, 4, 16))
    return {
        "last_norm": sum(math.prod(each.shape) for each in model.encoder.norm.parameters().values()),
        "parameters": model.parameter_count,
        "arrays": len(model.parameters()),
        "off_by_print": abs(printed - slope),
        "off_by_toolkit": abs(computed - slope),
        "width": model.config.d_model,
        "mse": mse,
        "token_error": math.sqrt(model.config.d_model * mse),
        "finite": _hidden_weights(-1e9),
        "infinite": _hidden_weights(-np.inf),
        "finite_alone": _hidden_weights(-1e9, own=True),
        "infinite_alone": _hidden_weights(-np.inf, own=True),
        "divisor": 16 / scaled_scores(rows, rows)[0, 0, 0, 0],
    }


def _hidden_weights(mask: float, own: bool = False) -> Array:
    """Compute the weights of two keys with score 0, the second hidden, with `own` the first too."""
    scores = np.zeros((1, 1, 2, 1))
    scores[:, :, 0 if own else 1 :] += mask
    with np.errstate(invalid="ignore"):
        softmax_over_keys(scores, None)
    return scores.reshape(-1)


def _of_training() -> dict[str, Any]:
    """Compute what 003 and 004 say of teacher forcing and Adam: words as training batches them, steps taken."""
    inputs, labels = _teacher_forcing(["म", "केटा", "हुँ"])
    moments = np.zeros(4), np.zeros(4)
    Adam(0.9, 0.999, 1e-8).update(np.zeros(4), GRADIENT, moments, 1, 0.001, 1.0, 0)
    decayed = {}
    for is_decoupled in (True, False):
        decayed[is_decoupled] = np.array([2.0])
        adam, nothing = Adam(0.9, 0.999, 1e-8, 0.2, is_decoupled), (np.zeros(1), np.zeros(1))
        adam.update(decayed[is_decoupled], np.zeros(1), nothing, 1, 0.1, 1.0, 1)
    return {
        "inputs": inputs,
        "labels": labels,
        "first_inputs": _teacher_forcing(["म"])[0],
        "adam_moment": moments[1],
        "last_moment": f"{moments[1][3]:.0e}".replace("e-0", "e-"),
        "decoupled": decayed[True],
        "coupled": decayed[False],
        "cross_entropy": -math.log(0.85),
    }


def _teacher_forcing(words: list[str]) -> tuple[list[str], list[str]]:
    """Batch words as training does -> (what a decoder reads, what it is to say)."""
    first = max(_NAMES) + 1
    batch = translation_batch([np.array([first])], [np.arange(first, first + len(words))])
    names = {**_NAMES, **dict(enumerate(words, first))}
    return [names[int(each)] for each in batch.inputs], [names[int(each)] for each in batch.labels]


def _of_worked_example() -> dict[str, Any]:
    """Repeat the arithmetic of 004, by attention with identity weights over the rows that it prints."""
    encoder, small = example.self_attended(X), example.cross_attended(SMALL_QUERY, SMALL_KEYS)
    exponentials, positions = np.exp(encoder.scores[0]), sinusoidal_positions(2, 2, dtype=np.float64)
    module, recorder, gradient = example.later_attention(), Recorder(), example.later_gradients()[0]
    example.later_pass(module, Tape(recorder=recorder))
    asked: dict[str, example.Attended] = {}
    for name, query in (("first", FIRST_QUERY), ("second", SECOND_QUERY)):
        asked |= {
            name: example.cross_attended(query, encoder.context),
            f"{name}_of_print": example.cross_attended(query, MEMORY),
        }
    return {
        **asked,
        "encoder": encoder,
        "exponentials": exponentials,
        "exponentials_sum": exponentials.sum(),
        "sum_of_weights": WEIGHTS[0].sum(),
        "contexts_of_weights": WEIGHTS @ X,
        "softmax_of_print": softmax(SECOND_DOTS),
        "context_of_print": SECOND_WEIGHTS @ MEMORY,
        "sos": np.array(example.TARGET["<sos>"]) + positions[0],
        "second_word": np.array([0.8, 1.1]) + positions[1],
        "positions_of_four": sinusoidal_positions(2, 4, dtype=np.float64),
        "small": small,
        "softmax_of_small": softmax(small.dots[0]),
        "later_query": recorder.found(module, "query")[:, 0],
        "later_gradient": gradient,
        "off_by_backward": np.abs(gradient - example.later_differences()).max(),
    }
