"""One step of AdamW in numbers, read from the toolkit's own optimizer as it moves a copy of the parameters.

The sections of the page on training that show the gradient, the step, what it did, and the founding documents' example.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from toolkit.explain.errata import erratum
from toolkit.explain.lesson import Lesson, TeacherForcing, teacher_forcing
from toolkit.functional.arrays import Array, row_blocks
from toolkit.functional.output_loss import output_loss
from toolkit.nn.module import Model
from toolkit.pages.blocks import Bars, Block, Formula, Numbers, Section, Table
from toolkit.training.optimizer import Adam, clip_scale, sum_of_squares

_MOST_BARS = 16
_STRAIGHT = 0.1  # how far the loss may be from what the slope tells, as a share of that

_MOMENTS = "m ← β₁ m + (1 − β₁) g\nv ← β₂ v + (1 − β₂) g²\nm̂ = m / (1 − β₁ᵗ)\nv̂ = v / (1 − β₂ᵗ)"
_RATES = {True: "the rate is that of the first update of a training", False: "the rate is the one that was given"}

# The founding document 004: the gradient of its example, the matrix that its text multiplies with, and its settings.
_GRADIENT = ((0.01, -0.02), (0.005, 0.01))
_WEIGHT = ((0.1, 0.3), (0.2, 0.7))
_ADAM, _RATE = Adam(beta1=0.9, beta2=0.999, eps=1e-8), 0.001


class Update(NamedTuple):
    """The first step of an optimizer whose moments are zeros.  Vectors are divided as the model's own."""

    optimizer: Adam
    learning_rate: float
    norm: float  # of the mean gradient over the tokens, before clipping
    clipping: float  # what clipping multiplies the gradient by
    gradient: Array  # the mean over the tokens, clipped: g
    moments: tuple[Array, Array]  # m and v after the step
    before: Array
    after: Array

    @property
    def slope(self) -> float:
        """Predict the change of the loss from its tangent: <∂L/∂θ, Δθ>, with the gradient before clipping."""
        total = 0.0
        for rows in row_blocks(len(self.after), 1):
            total += float(np.vdot(self.gradient[rows].astype(np.float64), self.after[rows] - self.before[rows]))
        return total / self.clipping


class Entry(NamedTuple):
    """One step in numbers, for one number of one parameter, or for an array that stands alone."""

    name: str  # "decoder.blocks.0.attention.layer.output.weight[3, 5]"
    gradient: float | Array  # g, with λ θ where decay is not decoupled
    m: float | Array
    v: float | Array
    m_hat: float | Array
    v_hat: float | Array
    step: float | Array  # lr · m̂ / (√v̂ + ε)
    decay: float  # lr · λ θ, where the parameter decays
    before: float | Array
    after: float | Array


def first_update(
    model: Model, gradient: Array, tokens: int, optimizer: Adam, learning_rate: float, clip: float
) -> Update:
    """Take one step, on a copy of the model's vector.

    gradient: of the summed loss of `tokens` tokens; it becomes that of the mean, clipped. clip: the largest norm
    of the mean gradient; 0 does not clip.
    """
    norm = math.sqrt(sum_of_squares(gradient)) / tokens
    clipping = clip_scale(norm, clip)
    after = model.vector.copy()
    moments = np.zeros_like(after), np.zeros_like(after)
    optimizer.update(after, gradient, moments, 1, learning_rate, clipping / tokens, model.decayed)
    gradient *= clipping / tokens
    return Update(optimizer, learning_rate, norm, clipping, gradient, moments, model.vector, after)


def with_values(model: Model, vector: Array) -> Model:
    """Make a model of the same shape with these values."""
    other = type(model)(model.config)
    other.allocate(vector.dtype.type, vector)
    return other


def entry(model: Model, update: Update, name: str, index: Sequence[int]) -> Entry:
    """Follow one number of the parameter of that name through the step; index: its place there."""
    parameter, place = model.parameters()[name], tuple(int(each) for each in index)

    def at(vector: Array) -> float:
        return float(model.views(vector)[parameter][place])

    adam, before, (m, v) = update.optimizer, at(update.before), map(at, update.moments)
    m_hat, v_hat = m / (1 - adam.beta1), v / (1 - adam.beta2)
    root = math.sqrt(v_hat + adam.eps) if adam.eps_inside else math.sqrt(v_hat) + adam.eps
    decay = adam.weight_decay * before if parameter.decay else 0.0
    gradient, after = at(update.gradient) + (0.0 if adam.decoupled else decay), at(update.after)
    step, decay = update.learning_rate * m_hat / root, update.learning_rate * decay if adam.decoupled else 0.0
    return Entry(f"{name}[{', '.join(map(str, place))}]", gradient, m, v, m_hat, v_hat, step, decay, before, after)


def largest(model: Model, update: Update, name: str, columns: slice = slice(None)) -> Entry:
    """Find the number of a parameter, perhaps within some columns of its last axis, with the largest gradient."""
    size = np.abs(model.views(update.gradient)[model.parameters()[name]][..., columns])
    *rest, last = np.unravel_index(size.argmax(), size.shape)
    return entry(model, update, name, (*rest, last + (columns.start or 0)))


def chosen_entries(model: Model, update: Update) -> list[Entry]:
    """Choose a few numbers, each with the largest gradient of its parameter: of the embedding, of the first and the
    last matrix and of one in the middle, of a gain, and of the biases of keys where there are any."""
    names = list(model.parameters())
    matrices = [name for name in names if name.endswith("weight")]
    chosen = [names[0], matrices[0], matrices[len(matrices) // 2], matrices[-1]]
    chosen += [name for name in names if name.endswith("gain")][:1]
    entries = [largest(model, update, name) for name in dict.fromkeys(chosen)]
    if keys := key_biases(model):
        entries.append(largest(model, update, *keys[0]))
    return entries


def key_biases(model: Model) -> list[tuple[str, slice]]:
    """Find the biases of keys, which no probability depends on: (parameter, the columns of it that they are).

    A bias of a key adds the same to all scores of a query, unless rotary positions turn it differently for every key.
    """
    if model.config.positions == "rotary":
        return []
    parameters = model.parameters()
    packed = [name.removesuffix("weight") for name in parameters if name.endswith("key_value.weight")]
    # Keys stand before values, and in self-attention behind queries.
    columns = {f"{name}bias": slice(*(0, *parameters[f"{name}weight"].splits)[-2:]) for name in packed}
    return [(name, own) for name, own in columns.items() if name in parameters]


class Part(NamedTuple):
    """The parameters of one part of a model."""

    name: str
    size: int  # numbers
    moved: int  # those whose gradient is not exactly zero
    norm: float  # of their mean gradient, before clipping


def parts_of(model: Model, update: Update) -> list[Part]:
    """Sum up the gradient of each part of the model: an embedding, an attention, a norm."""
    parts: dict[str, list[Array]] = {}
    views = model.views(update.gradient)
    for name, parameter in model.parameters().items():
        sub_layer, _, inside = name.partition(".layer.")  # "decoder.blocks.0.attention" of all that it holds
        part = sub_layer if inside else name.rpartition(".")[0] or name
        parts.setdefault(part, []).append(views[parameter])
    return [
        Part(
            name,
            sum(each.size for each in gradients),
            sum(np.count_nonzero(each) for each in gradients),
            math.sqrt(sum(float(np.vdot(each, each)) for each in gradients)) / update.clipping,
        )
        for name, gradients in parts.items()
    ]


def example_step(adam: Adam, values: Array, gradient: Array, learning_rate: float) -> Entry:
    """Take the first step of `adam` on these values, in float64.  Shapes: values and gradient alike, any."""
    after, g = np.array(values, float).reshape(-1), np.array(gradient, float).reshape(-1)
    m, v = np.zeros_like(after), np.zeros_like(after)
    adam.update(after, g, (m, v), 1, learning_rate, 1.0, 0)
    shape, before = np.shape(values), np.asarray(values, float)
    m, v, after = (each.reshape(shape) for each in (m, v, after))
    return Entry("", g, m, v, m / (1 - adam.beta1), v / (1 - adam.beta2), before - after, 0.0, before, after)


def gradient_section(taught: Lesson, update: Update) -> Section:
    """Show the gradient of every part of the model, and its norm before and after clipping."""
    model, clip = taught.model, taught.config.clip
    parts = parts_of(model, update)
    rows = [(each.name, f"{each.size:,}", f"{each.moved:,}", f"{each.norm:.2e}") for each in parts]
    moved, size = sum(each.moved for each in parts), sum(each.size for each in parts)
    rows.append(("all", f"{size:,}", f"{moved:,}", f"{update.norm:.4g}"))
    clipping = (
        f"clip = {clip:g}: g is multiplied by "
        + (f"clip / norm = {update.clipping:.4f}" if update.clipping < 1 else "1, for the norm is below the limit")
        if clip
        else "this model was trained without clipping"
    )
    keys = [abs(largest(model, update, *key).gradient) for key in key_biases(model)]
    return Section(
        "The gradient",
        "The backward pass of the same loss, divided by the number of tokens, as one vector over all parameters: "
        "every number of the model, how many of them have a gradient that is not exactly 0, and its norm.",
        Formula(f"g = ∂(mean loss)/∂θ\nnorm = √Σ g² = {update.norm:.4g}\n{clipping}"),
        Table(("part", "numbers", "with a gradient", "norm"), rows),
        _why_some_have_none(taught, moved, size),
        f"Of the biases of keys the largest |g| is {max(keys):.1e}, which is rounding: such a bias adds the same to "
        "all scores of a query, and softmax does not see it. Their true gradient is exactly 0."
        if keys
        else None,
    )


def _why_some_have_none(taught: Lesson, moved: int, size: int) -> str:
    text = f"{moved:,} of {size:,} numbers have a gradient ({100 * moved / size:.1f} %). "
    if moved == size:
        return text + "Even tokens that do not occur here have one: softmax takes from each what it gives to another."
    if getattr(taught.model.config, "activation", "") == "relu":
        text += "Hidden units that ReLU set to 0 for every token here have none. "
    if taught.model.config.positions == "learned":
        text += "Positions that this text does not reach have none. "
    tie = taught.model.config.tie
    if tie in (True, "all"):
        return text + "The embedding of every token has one, seen here or not, because the output scores use it too."
    return text + "Embeddings of tokens that are not read here have none, unless the output scores use them."


def step_section(taught: Lesson, update: Update, is_own: bool = True) -> Section:
    """Show a few entries, as `Adam.update` leaves them.  is_own: the learning rate is the training's."""
    adam, entries = update.optimizer, chosen_entries(taught.model, update)
    signs = [f"({letter})" for letter in "abcdefgh"[: len(entries)]]
    step = "lr · m̂ / √(v̂ + ε)" if adam.eps_inside else "lr · m̂ / (√v̂ + ε)"
    formula = f"{_MOMENTS}\nθ ← θ − {step} − lr · λ θ" if adam.decoupled else f"g ← g + λ θ\n{_MOMENTS}\nθ ← θ − {step}"
    settings = (
        f"β₁ = {adam.beta1:g}   β₂ = {adam.beta2:g}   ε = {adam.eps:g}   λ = {adam.weight_decay:g}   "
        f"lr = {update.learning_rate:g}\nt = 1, so m and v were 0"
    )
    rows = [(sign, *_named(taught, each)) for sign, each in zip(signs, entries, strict=True)]
    origin = "those of this model's training" if taught.is_known else "the toolkit's own: the model names no others"
    return Section(
        "One step of AdamW" if adam.decoupled else "One step of Adam",
        Formula(f"{formula}\n{settings}"),
        f"The settings are {origin}; {_RATES[is_own]}. A few numbers of the model, each the one with the largest "
        "gradient of its parameter; gains and biases have no decay:",
        Table(("", "number", ""), rows, (0, 1, 2)),
        Table(("", *signs), _lines(entries, step)),
        _about_size(entries, update),
    )


def _named(taught: Lesson, each: Entry) -> tuple[str, str]:
    """Name a number, and of one in the embedding of tokens, the token."""
    table, _, place = each.name.partition("[")
    if table != next(iter(taught.model.parameters())):
        return each.name, ""
    (token,) = taught.names(np.array([int(place.split(",")[0])]))
    return each.name, f"in the row of {token}"


def _lines(entries: list[Entry], step: str) -> list[tuple[str, ...]]:
    named = ("g", "m = (1 − β₁) g", "v = (1 − β₂) g²", "m̂ = m / (1 − β₁)", "v̂ = v / (1 − β₂)", step, "lr · λ θ")
    names = (*named, "θ before", "θ after")  # in the order of the fields of an entry, behind its name
    columns = zip(*(each[1:] for each in entries), strict=True)
    digits = [".3e"] * len(named) + [".7f"] * 2
    return [
        (name, *(format(value, form) for value in own)) for name, own, form in zip(names, columns, digits, strict=True)
    ]


def _about_size(entries: list[Entry], update: Update) -> str:
    noise = "bias" in entries[-1].name
    sizes = [abs(each.gradient) for each in (entries[:-1] if noise else entries)]
    text = (
        "At t = 1 the corrections undo (1 − β) exactly: m̂ = g and v̂ = g², so that m̂ / √v̂ is the sign of g. Every "
        f"number moves by about lr = {update.learning_rate:g}, however large its gradient: these go from "
        f"{min(sizes):.1e} to {max(sizes):.1e}. Clipping, which makes all of them smaller alike, changes nothing of "
        "that yet. Only where |g| comes near ε is the step shorter."
    )
    if noise:
        text += " The last one is a bias of a key, whose gradient is rounding; without ε it too would move by lr."
    return text


def outcome_section(taught: Lesson, before: TeacherForcing, update: Update) -> Section:
    """Show the loss of every token before and after the step, by a second pass."""
    after = teacher_forcing(with_values(taught.model, update.after), taught.batch, taught.prior)
    change = after.loss - before.loss
    names = taught.names(taught.batch.labels)[:_MOST_BARS]
    columns = {
        name: [math.exp(-loss) for loss in each.losses[:_MOST_BARS]]
        for name, each in (("p before", before), ("p after", after))
    }
    fell = int((after.losses < before.losses).sum())
    text = f"{fell} of {taught.tokens} tokens became more probable. "
    if abs(change - update.slope) <= _STRAIGHT * abs(update.slope):
        text += "The step is so short that the loss is nearly straight along it: the slope tells what it does."
    elif change < 0:
        text += "The loss fell, but not by what the slope tells: along a step of this length it is not straight."
    else:
        text += "The loss rose: at this learning rate the step is too long for the gradient to tell what it does."
    return Section(
        "What the step did",
        Formula(
            f"mean loss before  {before.loss:.6f}\n"
            f"mean loss after   {after.loss:.6f}    by a second pass, with the moved parameters\n"
            f"measured change  {change:+.6f}\n"
            f"Σ ∂L/∂θ · Δθ     {update.slope:+.6f}    what the slope predicts"
        ),
        Bars("probability of the right token", names, columns),
        text,
    )


def founding_section() -> Section:
    """Show the founding document 004's cross-entropy and Adam in numbers, by the toolkit; ε as in 003."""
    example = example_step(_ADAM, _WEIGHT, _GRADIENT, _RATE)
    arrays = (
        ("∇W_q", np.array(_GRADIENT), 3),
        ("m₁ = (1 − β₁) ∇W_q", example.m, 4),
        ("v₁ = (1 − β₂) (∇W_q)²", example.v, 1),
        ("m̂ = m₁ / (1 − β₁)", example.m_hat, 3),
        ("v̂ = v₁ / (1 − β₂)", example.v_hat, 1),
        ("α · m̂ / (√v̂ + ε)", example.step, 7),
        ("W_q after the step", example.after, 6),
    )
    return Section(
        "The founding documents' own numbers",
        Formula(
            f"L = −log P(right token)\n−log 0.1  = {cross_entropy(0.1):.3f}\n−log 0.85 = {cross_entropy(0.85):.3f}"
        ),
        erratum("cross_entropy"),
        erratum("no_end"),
        "Its example of Adam, β₁ = 0.9, β₂ = 0.999, α = 0.001, ε = 1e-8, t = 1, through the toolkit's "
        "optimizer on the W_q that its text multiplies with, [[0.1, 0.3], [0.2, 0.7]]:",
        *(Numbers(name, values, digits=digits) for name, values, digits in arrays),
        erratum("adam_moment"),
        "Every entry moves by α, whatever the size of its gradient: 0.02 no further than 0.005.",
        *_where_epsilon_stands(),
        erratum("weight_decay"),
    )


def cross_entropy(probability: float) -> float:
    """Compute -log p of a token with this probability, by the loss of the models."""
    logits = np.log([[probability, 1 - probability]])
    return output_loss(logits, np.eye(2), None, np.array([0]), want_gradients=False)[0].loss


def _where_epsilon_stands() -> list[Block]:
    gradients = np.array([10.0**-power for power in range(2, 9)])
    inside = Adam(_ADAM.beta1, _ADAM.beta2, _ADAM.eps, eps_inside=True)
    steps = [example_step(adam, np.zeros_like(gradients), gradients, _RATE).step / _RATE for adam in (_ADAM, inside)]
    rows = [(f"{g:.0e}", f"{a:.6f}", f"{b:.6f}") for g, a, b in zip(gradients, *steps, strict=True)]
    return [
        Formula("m̂ / (√v̂ + ε)    004, and Kingma and Ba\nm̂ / √(v̂ + ε)    003"),
        "The founding document 003 puts ε inside the root. With the same ε = 1e-8 it then begins to matter at "
        "gradients of √ε = 1e-4 instead of 1e-8; the first step, as a share of α:",
        Table(("g", "ε outside the root", "ε inside the root"), rows),
    ]
