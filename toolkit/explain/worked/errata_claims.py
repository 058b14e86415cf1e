"""Where the founding documents err in other things than arithmetic, each with a number that shows it."""

import math
from collections.abc import Callable

import numpy as np

from toolkit.data.collate import translation_batch
from toolkit.explain.pages.blocks import Erratum
from toolkit.explain.worked.example import TARGET
from toolkit.functional.arrays import Array
from toolkit.functional.attention import scaled_scores, softmax_over_keys
from toolkit.functional.layer_norm import layer_norm, layer_norm_backward
from toolkit.functional.positions import sinusoidal_positions
from toolkit.models.autoencoder import AutoEncoder, AutoEncoderConfig
from toolkit.proof import central_difference
from toolkit.proof.wrong import layer_norm_of_document_000
from toolkit.tokenization.special import BOS, EOS
from toolkit.training.optimizer import Adam

_NAMES = {BOS: "<sos>", EOS: "<eos>"}
_WORDS = ("म", "केटा", "हुँ")


def trained_parameters() -> Erratum:
    model = AutoEncoder(AutoEncoderConfig())
    last = sum(math.prod(each.shape) for each in model.norm.parameters().values())
    names = len(model.parameters())
    return Erratum(
        "000, 001",
        "the encoder that was trained",
        "all of it, every gradient derived by hand",
        f"{last} of {model.parameter_count:,} parameters are trained by the public code behind the documents",
        "It skips every gradient whose name matches no parameter. What is left is as large as the last norm's gain "
        "and bias, and its error says nothing about its backward pass. Here each of "
        f"{names} arrays must have its gradient.",
    )


def mean_gradient() -> Erratum:
    *slopes, difference = _slopes_of_norm()
    printed, computed = (abs(slope - difference) for slope in slopes)
    return Erratum(
        "000",
        "LayerNorm's backward, gradient of the mean",
        "g_μ = - g_x̂ / √(σ² + ε) + …",
        "g_μ = - Σ g_x̂ / √(σ² + ε) + …",
        "All entries of a row share the mean, so the first term too must be summed (the code behind the document "
        f"does). Along a random direction the printed formula is off a finite difference by {printed:.3f}, the "
        f"toolkit's by {computed:.0e}.",
    )


def _slopes_of_norm() -> tuple[float, float, float]:
    """The slope of a layer norm of one row, by the printed formula, by the toolkit, and by a finite difference."""
    generator = np.random.default_rng(0)
    x, dy, gain, bias, direction = (generator.standard_normal((1, 8)) for _ in range(5))
    slopes = [
        float(np.vdot(backward(dy.copy(), layer_norm(x, gain[0], bias[0])[1])[0], direction))
        for backward in (layer_norm_of_document_000, layer_norm_backward)
    ]
    difference = central_difference(lambda: float(np.vdot(layer_norm(x, gain[0], bias[0])[0], dy)), x, direction, 1e-6)
    return *slopes, difference


def token_error() -> Erratum:
    width, error = AutoEncoderConfig().width, 0.0043
    return Erratum(
        "000, 001",
        "error of a token beside the mean squared error of 0.0043",
        "‖y - target‖ ≈ 0.02",
        f"√({width} · {error}) = {math.sqrt(width * error):.3f}",
        f"A mean of {error} over {width} numbers makes rows that are off by that much (root mean square). One row may "
        "be better, but 0.02 tells nothing about the others.",
    )


def masked_scores() -> Erratum:
    finite, infinite = (_hidden_weights(value) for value in (-1e9, -np.inf))
    alone, nothing = (_hidden_weights(value, own=True)[0] for value in (-1e9, -np.inf))
    return Erratum(
        "002",
        "the causal mask",
        "a triangle of -inf, says its docstring",
        "ones, which are multiplied by -1e9 and added",
        f"After softmax -1e9 gives what is hidden a weight of {finite[1]:.3f}, and -∞ {infinite[1]:.3f}. They differ "
        f"where a row may see nothing: -1e9 then lets it look everywhere ({alone:.3f} each), -∞ gives {nothing}.",
    )


def _hidden_weights(mask: float, own: bool = False) -> Array:
    """Weights of two keys with score 0, the second hidden, with `own` the first too."""
    scores = np.zeros((1, 1, 2, 1))
    scores[:, :, 0 if own else 1 :] += mask
    with np.errstate(invalid="ignore"):
        softmax_over_keys(scores, None)
    return scores.reshape(-1)


def scale_of_heads() -> Erratum:
    width, heads = 64, 4
    rows = np.ones((1, 1, heads, width // heads))
    divisor = (width // heads) / scaled_scores(rows, rows)[0, 0, 0, 0]
    return Erratum(
        "003",
        "what scores are divided by",
        f"√d of the whole model: {math.sqrt(width):.0f} for d = {width}",
        f"√d of a head: {divisor:.0f} for d = {width} and {heads} heads",
        "With one head, as the document has, it is the same.",
    )


def weight_decay() -> Erratum:
    rate, decay, weight = 0.1, 0.2, 2.0
    moved = {}
    for decoupled in (True, False):
        vector = np.array([weight])
        moments = np.zeros(1), np.zeros(1)
        Adam(0.9, 0.999, 1e-8, decay, decoupled).update(vector, np.zeros(1), moments, 1, rate, 1.0, 1)
        moved[decoupled] = vector[0]
    return Erratum(
        "003",
        "what the factor (1 - λη) does",
        "L2 regularisation",
        "decoupled weight decay",
        f"With η = {rate}, λ = {decay} and no gradient, a weight of {weight} becomes {moved[True]:.3f}. L2 adds λW to "
        f"the gradient, which Adam then divides by its own size: {moved[False]:.3f}, whatever λ is.",
    )


def start_mark() -> Erratum:
    inputs, _ = _teacher_forcing(_WORDS[:1])
    return Erratum(
        "004",
        "what the decoder is fed in step 5",
        '["<eos>", "म"]',
        str(inputs).replace("'", '"'),
        "The mark at the beginning is meant; <eos> is what the decoder writes last.",
    )


def fed_its_answer() -> Erratum:
    inputs, labels = _teacher_forcing(_WORDS)
    first = np.add(TARGET["<sos>"], sinusoidal_positions(1, 2)[0])
    sos = ", ".join(f"{value:.1f}" for value in first)
    return Erratum(
        "004",
        "the decoder's input for the first word",
        f"(1.0, 1.5), which is म itself, to predict {labels[0]}",
        f"({sos}), which is {inputs[0]}",
        "Who is given the answer needs no model. Here the decoder reads the begin mark.",
    )


def no_end() -> Erratum:
    inputs, labels = _teacher_forcing(_WORDS)
    return Erratum(
        "004",
        "teacher forcing: what the decoder reads and is to say",
        "reads <BOS> म केटा, says म केटा हुँ",
        f"reads {' '.join(inputs)}, says {' '.join(labels)}",
        "Without <eos> among the labels it never learns to stop, though the same page waits for it.",
    )


def spelling() -> Erratum:
    return Erratum(
        "004",
        "I am (a) boy",
        "म केटा हूँ, म केटा छुँ, and बेटा (son) for केटा",
        " ".join(_WORDS),
        "The verb is हुँ, with a short u. A full sentence ends with a danda: म केटा हुँ।",
    )


def _teacher_forcing(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """What a decoder reads and what it is to say, as training has it."""
    first = max(_NAMES) + 1
    batch = translation_batch([np.array([first])], [np.arange(first, first + len(words))])
    names = {**_NAMES, **dict(enumerate(words, first))}
    return [names[int(each)] for each in batch.inputs], [names[int(each)] for each in batch.labels]


CLAIMS: dict[str, Callable[[], Erratum]] = {
    each.__name__: each
    for each in (
        trained_parameters,
        mean_gradient,
        token_error,
        masked_scores,
        scale_of_heads,
        weight_decay,
        start_mark,
        fed_its_answer,
        no_end,
        spelling,
    )
}
