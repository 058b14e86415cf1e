"""Sections of the page on training: the gradient, the step, what it did, and the founding documents' own example."""

import math

import numpy as np

from toolkit.explain.pages.blocks import Bars, Block, Formula, Numbers, Section, Table, Text
from toolkit.explain.training.adam_steps import (
    Entry,
    Update,
    chosen_entries,
    example_step,
    key_biases,
    largest,
    shares,
    with_values,
)
from toolkit.explain.training.lesson import Lesson
from toolkit.explain.training.teacher_forcing import Forced, forced
from toolkit.explain.worked.errata import erratum
from toolkit.functional.output_loss import output_loss
from toolkit.training.optimizer import Adam

_MOST_BARS = 16
_STRAIGHT = 0.1  # how far the loss may be from what the slope tells, as a share of that

_MOMENTS = "m ← β₁ m + (1 − β₁) g\nv ← β₂ v + (1 − β₂) g²\nm̂ = m / (1 − β₁ᵗ)\nv̂ = v / (1 − β₂ᵗ)"
_RATES = {True: "the rate is that of the first update of a training", False: "the rate is the one that was given"}

# The founding document 004: the gradient of its example, the matrix that its text multiplies with, and its settings.
_GRADIENT = ((0.01, -0.02), (0.005, 0.01))
_WEIGHT = ((0.1, 0.3), (0.2, 0.7))
_ADAM, _RATE = Adam(beta1=0.9, beta2=0.999, eps=1e-8), 0.001


def gradient_section(taught: Lesson, update: Update) -> Section:
    """What the backward pass gives every part of the model, and its norm before and after clipping."""
    model, clip = taught.model, taught.config.clip
    parts = shares(model, update)
    rows = [(each.name, f"{each.size:,}", f"{each.moved:,}", f"{each.norm:.2e}") for each in parts]
    moved, size = sum(each.moved for each in parts), sum(each.size for each in parts)
    rows.append(("all", f"{size:,}", f"{moved:,}", f"{update.norm:.4g}"))
    clipping = (
        f"clip = {clip:g}: g is multiplied by "
        + (f"clip / norm = {update.clipping:.4f}" if update.clipping < 1 else "1, for the norm is below the limit")
        if clip
        else "this model was trained without clipping"
    )
    blocks: list[Block] = [
        Text(
            "The backward pass of the same loss, divided by the number of tokens, as one vector over all parameters: "
            "every number of the model, how many of them have a gradient that is not exactly 0, and its norm."
        ),
        Formula(f"g = ∂(mean loss)/∂θ\nnorm = √Σ g² = {update.norm:.4g}\n{clipping}"),
        Table(("part", "numbers", "with a gradient", "norm"), rows),
        Text(_why_some_have_none(taught, moved, size)),
    ]
    if keys := key_biases(model):
        sizes = [abs(largest(model, update, *key).gradient) for key in keys]
        blocks.append(
            Text(
                f"Of the biases of keys the largest |g| is {max(sizes):.1e}, which is rounding: such a bias adds the "
                "same to all scores of a query, and softmax does not see it. Their true gradient is exactly 0."
            )
        )
    return Section("The gradient", blocks)


def _why_some_have_none(taught: Lesson, moved: int, size: int) -> str:
    told = f"{moved:,} of {size:,} numbers have a gradient ({100 * moved / size:.1f} %). "
    if moved == size:
        return told + "Even tokens that do not occur here have one: softmax takes from each what it gives to another."
    if getattr(taught.model.config, "activation", "") == "relu":
        told += "Hidden units that ReLU set to 0 for every token here have none. "
    if taught.model.config.positions == "learned":
        told += "Positions that this text does not reach have none. "
    tie = taught.model.config.tie
    if tie in (True, "all"):
        return told + "The embedding of every token has one, seen here or not, because the output scores use it too."
    return told + "Embeddings of tokens that are not read here have none, unless the output scores use them."


def step_section(taught: Lesson, update: Update, is_own: bool = True) -> Section:
    """The numbers of a few entries, as `Adam.update` leaves them.  is_own: the learning rate is the training's."""
    adam, entries = update.optimizer, chosen_entries(taught.model, update)
    signs = [f"({chr(ord('a') + index)})" for index in range(len(entries))]
    settings = (
        f"β₁ = {adam.beta1:g}   β₂ = {adam.beta2:g}   ε = {adam.eps:g}   λ = {adam.weight_decay:g}   "
        f"lr = {update.learning_rate:g}\nt = 1, so m and v were 0"
    )
    rows = [(sign, *_named(taught, each)) for sign, each in zip(signs, entries, strict=True)]
    origin = "those of this model's training" if taught.is_known else "the toolkit's own: the model names no others"
    return Section(
        "One step of AdamW" if adam.decoupled else "One step of Adam",
        [
            Formula(f"{_formula(adam)}\n{settings}"),
            Text(
                f"The settings are {origin}; {_RATES[is_own]}. A few numbers of the model, each the "
                "one with the largest gradient of its parameter; gains and biases have no "
                "decay:"
            ),
            Table(("", "number", ""), rows, (0, 1, 2)),
            Table(("", *signs), _lines(entries, _step(adam))),
            Text(_about_size(entries, update)),
        ],
    )


def _named(taught: Lesson, each: Entry) -> tuple[str, str]:
    """A number's name, and of one in the embedding of tokens, the token."""
    table, _, place = each.name.partition("[")
    if table != next(iter(taught.model.parameters())):
        return each.name, ""
    (token,) = taught.names(np.array([int(place.split(",")[0])]))
    return each.name, f"in the row of {token}"


def _formula(adam: Adam) -> str:
    if adam.decoupled:
        return f"{_MOMENTS}\nθ ← θ − {_step(adam)} − lr · λ θ"
    return f"g ← g + λ θ\n{_MOMENTS}\nθ ← θ − {_step(adam)}"


def _step(adam: Adam) -> str:
    return "lr · m̂ / √(v̂ + ε)" if adam.eps_inside else "lr · m̂ / (√v̂ + ε)"


def _lines(entries: list[Entry], step: str) -> list[tuple[str, ...]]:
    named = (
        ("g", "gradient"),
        ("m = (1 − β₁) g", "m"),
        ("v = (1 − β₂) g²", "v"),
        ("m̂ = m / (1 − β₁)", "m_hat"),
        ("v̂ = v / (1 − β₂)", "v_hat"),
        (step, "step"),
        ("lr · λ θ", "decay"),
    )
    rows = [(name, *(f"{getattr(each, field):.3e}" for each in entries)) for name, field in named]
    rows.append(("θ before", *(f"{each.before:.7f}" for each in entries)))
    rows.append(("θ after", *(f"{each.after:.7f}" for each in entries)))
    return rows


def _about_size(entries: list[Entry], update: Update) -> str:
    noise = "bias" in entries[-1].name
    sizes = [abs(each.gradient) for each in (entries[:-1] if noise else entries)]
    told = (
        "At t = 1 the corrections undo (1 − β) exactly: m̂ = g and v̂ = g², so that m̂ / √v̂ is the sign of g. Every "
        f"number moves by about lr = {update.learning_rate:g}, however large its gradient: these go from "
        f"{min(sizes):.1e} to {max(sizes):.1e}. Clipping, which makes all of them smaller alike, changes nothing of "
        "that yet. Only where |g| comes near ε is the step shorter."
    )
    if noise:
        told += " The last one is a bias of a key, whose gradient is rounding; without ε it too would move by lr."
    return told


def outcome_section(taught: Lesson, before: Forced, update: Update) -> Section:
    """The loss of every token before and after, by a second pass."""
    after = forced(with_values(taught.model, update.after), taught.batch, taught.prior)
    change = after.loss - before.loss
    names = taught.names(taught.batch.labels)[:_MOST_BARS]
    columns = {
        name: [math.exp(-loss) for loss in each.losses[:_MOST_BARS]]
        for name, each in (("p before", before), ("p after", after))
    }
    fell = int((after.losses < before.losses).sum())
    told = f"{fell} of {taught.tokens} tokens became more probable. "
    if abs(change - update.slope) <= _STRAIGHT * abs(update.slope):
        told += "The step is so short that the loss is nearly straight along it: the slope tells what it does."
    elif change < 0:
        told += "The loss fell, but not by what the slope tells: along a step of this length it is not straight."
    else:
        told += "The loss rose: at this learning rate the step is too long for the gradient to tell what it does."
    return Section(
        "What the step did",
        [
            Formula(
                f"mean loss before  {before.loss:.6f}\n"
                f"mean loss after   {after.loss:.6f}    by a second pass, with the moved parameters\n"
                f"measured change  {change:+.6f}\n"
                f"Σ ∂L/∂θ · Δθ     {update.slope:+.6f}    what the slope predicts"
            ),
            Bars("probability of the right token", names, columns),
            Text(told),
        ],
    )


def founding_section() -> Section:
    """The founding document 004's cross-entropy and Adam in numbers, computed by the toolkit; ε as in 003."""
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
        [
            Formula(
                f"L = −log P(right token)\n−log 0.1  = {cross_entropy(0.1):.3f}\n−log 0.85 = {cross_entropy(0.85):.3f}"
            ),
            erratum("cross_entropy"),
            erratum("no_end"),
            Text(
                "Its example of Adam, β₁ = 0.9, β₂ = 0.999, α = 0.001, ε = 1e-8, t = 1, through the toolkit's "
                "optimizer on the W_q that its text multiplies with, [[0.1, 0.3], [0.2, 0.7]]:"
            ),
            *(Numbers(name, values, digits=digits) for name, values, digits in arrays),
            erratum("adam_moment"),
            Text("Every entry moves by α, whatever the size of its gradient: 0.02 no further than 0.005."),
            *_where_epsilon_stands(),
            erratum("weight_decay"),
        ],
    )


def cross_entropy(probability: float) -> float:
    """-log p of a token with this probability, by the loss of the models."""
    logits = np.log([[probability, 1 - probability]])
    return output_loss(logits, np.eye(2), None, np.array([0]), want_gradients=False)[0].loss


def _where_epsilon_stands() -> list[Block]:
    gradients = np.array([10.0**-power for power in range(2, 9)])
    inside = Adam(_ADAM.beta1, _ADAM.beta2, _ADAM.eps, eps_inside=True)
    steps = [example_step(adam, np.zeros_like(gradients), gradients, _RATE).step / _RATE for adam in (_ADAM, inside)]
    rows = [(f"{g:.0e}", f"{a:.6f}", f"{b:.6f}") for g, a, b in zip(gradients, *steps, strict=True)]
    return [
        Formula("m̂ / (√v̂ + ε)    004, and Kingma and Ba\nm̂ / √(v̂ + ε)    003"),
        Text(
            "The founding document 003 puts ε inside the root. With the same ε = 1e-8 it then begins to matter at "
            "gradients of √ε = 1e-4 instead of 1e-8; the first step, as a share of α:"
        ),
        Table(("g", "ε outside the root", "ε inside the root"), rows),
    ]
