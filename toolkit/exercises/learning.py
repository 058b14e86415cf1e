"""Exercises on learning: what is to be predicted, and how a gradient moves the parameters."""

import math

import numpy as np

from toolkit.exercises.exercise import Arguments, Exercise, Mistake
from toolkit.training.optimizer import Adam, clip_scale, make_schedule, sum_of_squares

B, T, N, K = 3, 6, 12, 3


def text_and_marks(rng: np.random.Generator) -> Arguments:
    """Ids, and two marks that are not always the same."""
    begin, end = rng.permutation(4)[:2]
    return rng.integers(4, 30, T), int(begin), int(end)


def teacher_forcing(ids, begin, end):
    return np.concatenate(([begin], ids)), np.concatenate((ids, [end]))


TEACHER_FORCING = Exercise(
    "teacher_forcing", "What is read, and what is to be predicted", teacher_forcing, text_and_marks,
    ("inputs", "labels"),
    (
        "At place t the model has read inputs[0..t], and is to predict labels[t]: the token that comes next.",
        "A text of T tokens has T + 1 predictions: its first token after the mark of the beginning, and after its "
        "last token the end.",
        "inputs = begin, id_1, …, id_T and labels = id_1, …, id_T, end: np.concatenate(([begin], ids)), and so on.",
    ),
    "toolkit/models/seq2seq.py: translation_batch; toolkit/plain.py: seq2seq_loss",
    (
        Mistake(lambda ids, begin, end: (np.append(begin, ids), np.append(begin, ids)),
            "the labels are not shifted: each is the token just read, and the model would learn to copy"),
        Mistake(lambda ids, begin, end: (np.append(ids, end), np.append(begin, ids)),
            "the shift goes the wrong way: every label is the token before what was read; it must be the one after"),
        Mistake(lambda ids, begin, end: (np.append(begin, ids[:-1]), ids.copy()),
            "the end is missing: no label says where a text ends, and the model would never stop writing"),
        Mistake(lambda ids, begin, end: (ids[:-1].copy(), ids[1:].copy()),
            "both marks are missing: nobody learns how a text begins (its first token is no label), nor where it ends"),
        Mistake(lambda ids, begin, end: (np.concatenate(([begin], ids, [end])), np.concatenate((ids, [end, end]))),
            "the end is read as well: what comes after it is not to be predicted; there are T + 1 places, not T + 2"),
        Mistake(lambda ids, begin, end: (np.append(end, ids), np.append(ids, begin)),
            "the marks have changed places: inputs start with begin, labels stop with end"),
    ),
)  # fmt: skip


def padded_losses(rng: np.random.Generator) -> Arguments:
    """Losses of texts of different lengths; those of padding are numbers too."""
    lengths = rng.permutation([2, 4, T])
    return rng.gamma(2.0, 1.0, (B, T)), np.arange(T) < lengths[:, None]


MEAN_OVER_TOKENS = Exercise(
    "mean_over_tokens", "The loss of a batch with padding", lambda losses, mask: losses[mask].mean(), padded_losses,
    ("loss",),
    (
        "Every real token counts the same, in whichever row it stands; padding is in neither sum nor number.",
        "The sum of the losses where the mask is true, divided by the number of places where it is: Σ losses · mask / "
        "Σ mask.",
    ),
    "toolkit/training/task.py: scores; toolkit/functional/output_loss.py: sums, which are divided once",
    (
        Mistake(lambda losses, mask: losses.mean(), "padding counts as well: the mask says what is a real token"),
        Mistake(lambda losses, mask: (losses * mask).mean(),
            "padding is left out of the sum, but not of what it is divided by: divide by the number of real tokens"),
        Mistake(lambda losses, mask: ((losses * mask).sum(axis=1) / mask.sum(axis=1)).mean(),
            "it is the mean of the rows' means: a token of a short text would count more than one of a long text"),
        Mistake(lambda losses, mask: (losses * mask).sum() / len(losses),
            "it is divided by the number of texts: that is the loss of a text, and long ones would rule the gradient"),
        Mistake(lambda losses, mask: losses[~mask].mean(), "the mask is upside down: it is true for real tokens"),
    ),
    {"B": B, "T": T},
)  # fmt: skip


def long_or_short_gradients(rng: np.random.Generator) -> Arguments:
    """Gradients with a limit that is either far below their norm or above it."""
    gradients = [30 * rng.standard_normal(shape) for shape in ((3, 4), (4,), (2, 2))]
    norm = math.sqrt(sum(float((each**2).sum()) for each in gradients))
    return gradients, float(norm * rng.choice([0.1, 1.5]) * rng.uniform(1, 1.2))


def clip_gradients(gradients, limit):
    norm = math.sqrt(sum(sum_of_squares(each.ravel()) for each in gradients))
    return [each * clip_scale(norm, limit) for each in gradients], norm


def _norm(gradients):
    return clip_gradients(gradients, 0)[1]


CLIP_GRADIENTS = Exercise(
    "clip_gradients", "A limit for the length of a step", clip_gradients, long_or_short_gradients,
    ("gradients", "norm"),
    (
        "All arrays together are one long vector. It keeps its direction: one number multiplies them all.",
        "What is short enough stays as it is. The norm that you return is that before clipping: it goes into the log.",
        "norm = √(Σ over all arrays and entries g²); every array times min(1, limit / norm).",
    ),
    "toolkit/training/optimizer.py: clip_scale, sum_of_squares; toolkit/training/trainer.py: _update",
    (
        Mistake(lambda given, limit: ([clip_gradients([each], limit)[0][0] for each in given], _norm(given)),
            "every array is clipped by its own norm, which turns the direction: take the norm of all together"),
        Mistake(lambda gradients, limit: ([np.clip(each, -limit, limit) for each in gradients], _norm(gradients)),
            "the entries are clipped one by one, which turns the direction: the limit is for the norm of all together"),
        Mistake(lambda gradients, limit: ([each * (limit / _norm(gradients)) for each in gradients], _norm(gradients)),
            "short gradients are made longer: where the norm is below the limit they stay (a factor of at most 1)"),
        Mistake(lambda gradients, limit: (clip_gradients(gradients, limit)[0], min(_norm(gradients), limit)),
            "the norm is the one after clipping: return the one before it, which tells how steep it was"),
        Mistake(lambda given, limit: (clip_gradients(given, limit / _norm(given))[0], _norm(given) ** 2),
            "the root is missing: that is the norm squared"),
    ),
    calls=16,
)  # fmt: skip


def _state(rng: np.random.Generator) -> Arguments:
    """Parameters and their moments in the midst of training: a third of the gradients is tiny, a third is next to 0."""
    sizes = np.repeat([1.0, 1e-4, 1e-8], N // 3)
    x, gradient, m, v = rng.standard_normal((4, N))
    return x, sizes * gradient, 0.3 * sizes * m, 0.1 * (sizes * v) ** 2, int(rng.integers(2, 20)), 0.01


def with_decay(rng: np.random.Generator) -> Arguments:
    return *_state(rng), 0.1


def adamw_step(x, gradient, m, v, step, rate, decay):
    x, m, v = x.copy(), m.copy(), v.copy()
    Adam(0.9, 0.999, 1e-8, decay).update(x, gradient, (m, v), step, rate, 1.0, len(x))
    return x, m, v


def adam_step(x, gradient, m, v, step, rate):
    return adamw_step(x, gradient, m, v, step, rate, 0.0)


def _corrected(m, v, step):
    return m / (1 - 0.9**step), v / (1 - 0.999**step)


def _adam(change, first=0.1):
    """Make a wrong Adam: change(m, v, and both corrected) is what x loses, but for the rate."""

    def adam(x, gradient, m, v, step, rate):
        m, v = 0.9 * m + first * gradient, 0.999 * v + 0.001 * gradient**2
        return x - rate * change(m, v, *_corrected(m, v, step)), m, v

    return adam


def corrected_moments_kept(x, gradient, m, v, step, rate):
    x, m, v = adam_step(x, gradient, m, v, step, rate)
    return x, *_corrected(m, v, step)


ADAM_STEP = Exercise(
    "adam_step", "One step of Adam", adam_step, _state, ("x", "m", "v"),
    (
        "m is a running mean of the gradients, v one of their squares: 0.9 of the old one and 0.1 of the new, or "
        "0.999 and 0.001.",
        "Both began as zeros and are too small at first. Divided by 1 - beta ** step they are means of what has come "
        "so far; these serve for this step only, and m and v are kept as they are.",
        "m = 0.9 m + 0.1 g; v = 0.999 v + 0.001 g²; x = x - rate · (m / (1 - 0.9ᵗ)) / (√(v / (1 - 0.999ᵗ)) + 1e-8).",
    ),
    "toolkit/training/optimizer.py: Adam; toolkit/plain.py: adam",
    (
        Mistake(_adam(lambda m, v, mean, square: m / (np.sqrt(v) + 1e-8)),
            "the bias correction is missing: m and v began as 0, and are to be divided by 1 - beta ** step"),
        Mistake(_adam(lambda m, v, mean, square: mean / np.sqrt(square + 1e-8)),
            "eps stands inside the root, where 1e-8 is as much as 1e-4 outside: small gradients would hardly move x"),
        Mistake(_adam(lambda m, v, mean, square: mean * np.sqrt(v / square) / (np.sqrt(v) + 1e-8)),
            "eps is added to the root of v before the bias correction: correct v first, take the root, then add eps"),
        Mistake(corrected_moments_kept,
            "m and v are returned with the bias correction, which the next step would make once more"),
        Mistake(_adam(lambda m, v, mean, square: mean / (np.sqrt(square) + 1e-8), first=1.0),
            "m takes the whole new gradient: it is a mean, and the new gradient counts 1 - beta1 in it"),
        Mistake(_adam(lambda m, v, mean, square: -mean / (np.sqrt(square) + 1e-8)),
            "the sign is the opposite: this climbs; the step is taken from x"),
    ),
    {"N": N}, points=2,
)  # fmt: skip


def _decayed(new):
    """Make a wrong AdamW: new(x as Adam moves it, x before, corrected v, rate, decay)."""

    def adamw(x, gradient, m, v, step, rate, decay):
        moved, m, v = adam_step(x, gradient, m, v, step, rate)
        return new(moved, x, _corrected(m, v, step)[1], rate, decay), m, v

    return adamw


ADAMW_STEP = Exercise(
    "adamw_step", "Weight decay", adamw_step, with_decay, ("x", "m", "v"),
    (
        "Decoupled: the gradient, m and v know nothing of it. Beside Adam's step, x goes a little towards 0.",
        "How far it goes depends on the x before the step, on the decay, and on the rate.",
        "x = (1 - rate · decay) x - rate · (what Adam divides): Adam's step, and rate · decay · (old x) taken away.",
    ),
    "toolkit/training/optimizer.py: Adam",
    (
        Mistake(lambda x, gradient, m, v, *others: adam_step(x, gradient + others[-1] * x, m, v, *others[:-1]),
            "the decay is part of the gradient (Adam with L2), goes into m and v and is divided by the root, so that "
            "weights with large gradients hardly shrink: AdamW keeps it apart"),
        Mistake(_decayed(lambda moved, x, v, rate, decay: moved - decay * x),
            "the decay is to be multiplied by the rate: x would shrink by a tenth in every step, whatever the rate is"),
        Mistake(_decayed(lambda moved, x, v, rate, decay: moved * (1 - rate * decay)),
            "Adam's step is shrunk as well: the decay takes rate · decay of the x before the step"),
        Mistake(_decayed(lambda moved, x, v, rate, decay: moved + rate * decay * x),
            "the sign is the opposite: the weights grow; a decay is taken away"),
        Mistake(_decayed(lambda moved, x, v, rate, decay: moved - rate * decay * x / (np.sqrt(v) + 1e-8)),
            "the decay is divided by the root of v like the gradient: all weights must shrink by the same factor"),
        Mistake(_decayed(lambda moved, x, v, rate, decay: moved), "there is no decay: that is Adam's step alone"),
    ),
    {"N": N},
)  # fmt: skip


def some_update(rng: np.random.Generator) -> Arguments:
    """An update of a run, and often one where the schedule bends; some runs have no warm-up."""
    updates, warmup = int(rng.integers(40, 80)), int(rng.integers(6, 20)) * int(rng.random() < 0.8)
    bends = [1, max(warmup // 2, 1), max(warmup, 1), warmup + 1, updates - 1, updates, updates + updates // 3]
    peak = float(10 ** rng.uniform(-3, -2))
    return int(rng.choice(bends)), updates, warmup, peak, float(peak * rng.uniform(0.05, 0.3))


def learning_rate(step, updates, warmup, peak, final):
    return make_schedule("cosine", peak, warmup, updates, final)(step)


def _wave(progress, peak, final, most=1.0):
    return final + (peak - final) * 0.5 * (1 + math.cos(math.pi * min(progress, most)))


def _schedule(fall=_wave, rise=lambda step, warmup: step / warmup, counted_from=1):
    """Make a wrong schedule; counted_from: where the fall begins, as a multiple of the warm-up."""

    def schedule(step, updates, warmup, peak, final):
        begin = counted_from * warmup
        return peak * rise(step, warmup) if step < warmup else fall((step - begin) / (updates - begin), peak, final)

    return schedule


LEARNING_RATE = Exercise(
    "learning_rate", "Warm-up and cosine", learning_rate, some_update, ("rate",),
    (
        "Before update `warmup`: the straight line from 0 that reaches peak there. From then on: the cosine.",
        "How far the fall has come, from 0 to 1, is counted from the end of the warm-up: (step - warmup) / (updates - "
        "warmup), and 1 at the most.",
        "peak · step / warmup where step < warmup, then final + (peak - final) · (1 + cos(π · progress)) / 2.",
    ),
    "toolkit/training/optimizer.py: make_schedule",
    (
        Mistake(_schedule(counted_from=0),
            "the fall is counted from the beginning, so the rate jumps at the end of the warm-up: count from there"),
        Mistake(_schedule(lambda progress, peak, final: _wave(progress, peak, 0.0)),
            "the fall ends at 0: it is to end at `final`"),
        Mistake(_schedule(lambda progress, peak, final: final + _wave(progress, peak, 0.0)),
            "the fall begins at peak + final: what falls is the difference, peak - final"),
        Mistake(_schedule(lambda progress, peak, final: _wave(progress, peak, final, most=2.0)),
            "after the last update the rate rises again, as a cosine does: let the progress be 1 at the most"),
        Mistake(_schedule(rise=lambda step, warmup: (step - 1) / warmup),
            "the steps are counted from 1: with step - 1 the first update has the rate 0, and does nothing"),
        Mistake(_schedule(rise=lambda step, warmup: 1.0),
            "there is no warm-up: before update `warmup` the rate rises in a straight line from 0 to the peak"),
    ),
    calls=60,
)  # fmt: skip


def gradients_of_means(rng: np.random.Generator) -> Arguments:
    counts = rng.permutation(20)[:K] + 1
    return list(rng.standard_normal((K, 4, 5))), [int(each) for each in counts]


def accumulate(gradients, counts):
    return sum(each * count for each, count in zip(gradients, counts, strict=True)) / sum(counts)


ACCUMULATE = Exercise(
    "accumulate", "A batch in parts", accumulate, gradients_of_means, ("gradient",),
    (
        "The gradient of a mean over n tokens is 1/n of a sum: times n it is the sum again, and sums may be added.",
        "Σ_i n_i g_i / Σ_i n_i: a micro-batch counts as much as it has tokens.",
    ),
    "toolkit/training/task.py: loss (gradients are sums); toolkit/training/trainer.py: _update (divided once)",
    (
        Mistake(lambda gradients, counts: sum(gradients) / len(gradients),
            "it is the mean of the means: a token of a small micro-batch would count more than one of a large one"),
        Mistake(lambda gradients, counts: sum(gradients),
            "the means are added up as if they were sums: the more micro-batches, the longer the gradient would be"),
        Mistake(lambda gradients, counts: accumulate(gradients, counts) * sum(counts),
            "that is the gradient of the sum of all losses: divide by the number of all tokens"),
        Mistake(lambda gradients, counts: accumulate(gradients, counts) * sum(counts) / len(counts),
            "divide by the number of tokens of all micro-batches, not by the number of micro-batches"),
        Mistake(lambda gradients, counts: sum(each / count for each, count in zip(gradients, counts, strict=True)),
            "the gradients are of means, divided by their tokens already: multiply, then divide once by all"),
    ),
    {"k": K},
)  # fmt: skip


LEARNING = (
    TEACHER_FORCING, MEAN_OVER_TOKENS, CLIP_GRADIENTS, ADAM_STEP, ADAMW_STEP, LEARNING_RATE, ACCUMULATE,
)  # fmt: skip
