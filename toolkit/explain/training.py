"""The page on training: teacher forcing on one pair, the loss of every token, one step of AdamW in numbers."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from toolkit.explain.adam import first_update, founding_section, gradient_section, outcome_section, step_section
from toolkit.explain.lesson import Lesson, TeacherForcing, gradient_of, lesson, step_by_step, teacher_forcing
from toolkit.explain.reading import check_finite
from toolkit.functional.attention import causal_mask
from toolkit.language_model import LanguageModel
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.pages.blocks import Formula, Heat, Page, Section, Table
from toolkit.tokenization.special import EOS
from toolkit.training.optimizer import Muon, make_optimizer, make_schedule
from toolkit.translator import Translator

_MOST_TOKENS = 48  # rows of a table
_MOST_SQUARES = 24  # rows of a map


def training_page(
    owner: Translator | LanguageModel,
    texts: Sequence[str] = (),
    metrics: Mapping[str, Any] | None = None,
    learning_rate: float | None = None,
) -> Page:
    """Show what one pair (for a translator) or one text (for a language model) teaches, by numbers of a real pass.

    metrics: what the model's directory says of its training (`read_metrics`). learning_rate: of the step; by default
    that of the first update of the model's training. The model itself is not changed.

    Raises what `lesson` raises, and ModelError where the model computes numbers that are not finite.
    """
    taught = lesson(owner, texts, metrics or {})
    with owner.arithmetic(threads=1):
        pass_ = teacher_forcing(taught.model, taught.batch, taught.prior)
        check_finite(pass_.losses)
        optimizer, rate = make_optimizer(taught.config), first_rate(taught) if learning_rate is None else learning_rate
        if isinstance(optimizer, Muon):
            optimizer = optimizer.adam  # which moves what is no linear map
        sums, gradient = gradient_of(taught.model, taught.batch)
        update = first_update(taught.model, gradient, sums.tokens, optimizer, rate, taught.config.clip)
        sections = [
            _shift_section(taught),
            _loss_section(taught, pass_, sums.loss),
            *([_smoothing_section(taught, pass_)] if taught.config.label_smoothing else []),
            _parallel_section(taught, pass_),
            gradient_section(taught, update),
            step_section(taught, update, is_own=learning_rate is None),
            outcome_section(taught, pass_, update),
            founding_section(),
        ]
    return Page("One step of training", _about(taught), sections, [*taught.cut, *_not_shown(taught)])


def _about(taught: Lesson) -> str:
    what = "one pair of sentences" if taught.is_pair else "one text"
    name = "Adam" if taught.config.optimizer == "adam" else "AdamW"
    without = "This model was trained with dropout; here nothing is dropped, and every pass gives the same numbers. "
    if not any(value for name, value in vars(taught.model.config).items() if name.endswith("_dropout")):
        without = ""
    return (
        f"What a model learns from {what}: the right tokens are read and asked for, all at once, the loss of each is "
        f"taken, its derivative runs back through the model, and {name} moves the parameters. {without}"
        "The model on the disk is not changed."
    )


def _not_shown(taught: Lesson) -> list[str]:
    count = taught.tokens
    found = []
    if taught.config.optimizer == "muon":
        found.append("This model's training moved its linear maps by Muon; the step shown here moves them by AdamW.")
    if count > _MOST_TOKENS:
        found.append(f"Tables show the first {_MOST_TOKENS} of {count} tokens; sums and means are of all.")
    if count > _MOST_SQUARES:
        found.append(f"The map of attention shows the first {_MOST_SQUARES} of {count} tokens.")
    return found


def first_rate(taught: Lesson) -> float:
    """Compute the learning rate of the first update of the model's training."""
    config = taught.config
    return make_schedule(
        config.schedule,
        config.learning_rate,
        config.warmup,
        config.updates,
        config.final_learning_rate,
        taught.model.config.d_model,
    )(1)


def _shift_section(taught: Lesson) -> Section:
    batch = taught.batch
    if taught.is_pair:
        names = taught.names(batch.sources)
        shifted = [
            f"The encoder reads the source, {len(names)} tokens with its end mark: {' '.join(names)}",
            Formula("input = <s> + target\nlabel = target + </s>"),
        ]
    else:
        shifted = [Formula("input = all tokens but the last\nlabel = all tokens but the first")]
    has_end = taught.tokens and batch.labels[-1] == EOS
    end = "The last label is the end mark: without it nothing would teach the model to stop." if has_end else ""
    read, said = taught.columns(batch.inputs, batch.labels)
    rows = [(str(t), a, "→", b) for t, (a, b) in enumerate(zip(read, said, strict=True))]
    return Section(
        "Teacher forcing: the target, shifted by one",
        shifted,
        Table(("t", "the model reads", "", "and is to say"), rows[:_MOST_TOKENS], (1, 2, 3)),
        "Each label is the next row's input: the model is given the right token to go on from, whatever it would have "
        f"said itself. That is teacher forcing. {end}",
    )


def _loss_section(taught: Lesson, pass_: TeacherForcing, total: float) -> Section:
    count = taught.tokens
    wanted, best = taught.columns(taught.batch.labels, pass_.best)
    rows = [
        (
            str(t),
            wanted[t],
            f"{math.exp(-loss):.4f}",
            f"{loss:.4f}",
            best[t],
            f"{pass_.best_probabilities[t]:.4f}",
            "right" if pass_.best[t] == taught.batch.labels[t] else "wrong",
        )
        for t, loss in enumerate(pass_.losses)
    ][:_MOST_TOKENS]
    header = ("t", "right token", "p", "−log p", "most probable", "its p", "the model is")
    given = ", source" if taught.is_pair else ""
    right = int((pass_.best == taught.batch.labels).sum())
    perplexity = f"{math.exp(pass_.loss):.4f}" if pass_.loss < 50 else "more than 10²¹"
    return Section(
        "The loss of every token",
        Formula(f"p_t    = softmax(logits_t)[label_t]\nloss_t = −log p(label_t | inputs up to t{given})"),
        Table(header, rows, (1, 4, 6)),
        Formula(
            f"sum  = Σ_t loss_t = {pass_.losses.sum():.4f}    (model.loss gives {total:.4f})\n"
            f"mean = sum / {count} = {pass_.loss:.4f}\n"
            f"perplexity = exp(mean) = {perplexity}"
        ),
        f"The most probable token is the right one at {right} of {count} positions. A loss of 0 would be "
        f"certainty; a model that knows nothing has log {len(taught.prior)} = "
        f"{math.log(len(taught.prior)):.3f} at every position.",
    )


def _smoothing_section(taught: Lesson, pass_: TeacherForcing) -> Section:
    smoothing, prior = taught.config.label_smoothing, taught.prior
    others = int(np.count_nonzero(prior))
    each = smoothing / others
    own = 1 - smoothing + each
    least = -own * math.log(own) - (others - 1) * each * math.log(each)
    real = taught.model.loss(taught.batch, Tape(memory=Pool()), smoothing, prior)
    smoothed = (1 - smoothing) * pass_.losses - smoothing * pass_.mean_log_probs
    return Section(
        "Label smoothing",
        f"This model was trained with label_smoothing {smoothing}: the target of a position is not the right "
        f"token alone, but a distribution. Here the rest is spread over all {others} tokens of text and the "
        "end mark; training takes those that occur in its corpus.",
        Formula(
            f"q(right token) = 1 − ε + ε/{others} = {own:.5f}\n"
            f"q(any other)   = ε/{others} = {each:.2e}\n"
            "loss_t = (1 − ε) · (−log p_t) + ε · (−mean log p over those tokens)\n"
            f"sum = {smoothed.sum():.4f}    (model.loss with smoothing gives {real.loss:.4f})"
        ),
        f"No prediction has a smoothed loss below the entropy of q, {least:.4f} a token, and p = q = {own:.4f} "
        f"reaches it. So a token that the model knows by heart keeps a plain loss of about −log {own:.4f} = "
        f"{-math.log(own):.4f}, and is never driven to p = 1. What follows differentiates the plain loss.",
    )


def _parallel_section(taught: Lesson, pass_: TeacherForcing) -> Section:
    single = step_by_step(taught.model, taught.batch)
    apart = np.abs(single - pass_.losses)
    names, count = taught.names(taught.batch.labels), min(taught.tokens, _MOST_SQUARES)
    rows = [
        (str(t), names[t], f"{pass_.losses[t]:.6f}", f"{single[t]:.6f}", f"{apart[t]:.1e}")
        for t in range(taught.tokens)
    ][:_MOST_TOKENS]
    read = taught.names(taught.batch.inputs)[:count]
    hidden = causal_mask(count, count)[0, 0].T == 0
    return Section(
        "Why all positions may be scored at once",
        "All positions are scored in one pass, though each label is the input of the next row: the causal mask keeps "
        "every row from what comes after it, so that no row can copy its answer.",
        Heat(
            "first layer that reads the target: self-attention, mean of its heads",
            pass_.attention[:count, :count],
            read,
            read,
            hidden,
            "Row t takes from the columns up to t. What is masked has weight 0.",
        ),
        "The same tokens once more, one at a time over the KV cache, as decoding reads them:",
        Table(("t", "label", "−log p, all at once", "−log p, step by step", "apart"), rows, (1,)),
        f"The largest difference is {apart.max():.1e}, the rounding of float32: one pass over T tokens is T steps of "
        "decoding. `toolkit explain parallel` times both.",
    )
