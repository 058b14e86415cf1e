"""Training with wrong gradients: a small real model with each in the right one's place, and what its curve shows."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from toolkit.functional import attention as functional_attention
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig, translation_batch
from toolkit.nn import attention, blocks, layers
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.pages.blocks import Curves, Section, Table
from toolkit.proof import wrong
from toolkit.proof.cases import SEQUENCE
from toolkit.tokenization.special import SPECIAL_TOKENS
from toolkit.training.optimizer import Adam, clip_scale, make_schedule, sum_of_squares

UPDATES, PAIRS = 250, 32
SYMBOLS = 12
LENGTH = SEQUENCE - 1  # symbols of a sequence; its end mark is one more row
_RATE, _WARMUP = 5e-3, 20

RIGHT = "right"
_MEAN_OF = 10  # updates that a point of a curve is the mean of, because every batch is another
_NEAR = 0.05  # of the loss of guessing: losses that differ by less count as equal

_TASK = (
    f"A sequence-to-sequence model of two layers on each side (D 32, 4 heads, F 64, norms after the residual sums and "
    f"ReLU, as in the founding documents 000 and 001) learns to write {LENGTH} random symbols of {SYMBOLS} backwards. "
    f"Every batch is {PAIRS} new pairs, so nothing can be learned by heart. It is trained by Adam with the right "
    f"gradients, and from the same initial values on the same batches with each wrong backward put in the right "
    f"one's place, where the model's own modules call it."
)
_LESSON = (
    "A falling curve is no proof of a gradient, and one that does not fall tells not where the fault is: the check "
    "does both, in milliseconds."
)


def residual_without_the_way_around(self, dx, dbranch, tape):
    """The lost residual: dx = norm_backward(f_backward(dy)), and nothing of dy itself."""
    return self.norm.backward(dbranch, tape) if self.pre_norm else dbranch


def residual_without_the_way_through(self, dx, dbranch, tape):
    """The other path lost: dx = dy. Sub-layers learn, but what lies below hears nothing of what they did with it."""
    if self.pre_norm:
        self.norm.backward(dbranch, tape)  # its gain and bias get their gradients, which are right
    return dx


class Trial(NamedTuple):
    """A wrong backward that is trained with, and where the modules look up the right one."""

    name: str
    backward: Callable
    places: Sequence[tuple[Any, str]]
    printed: str  # what the founding document 001 says comes of it; "" where it says nothing
    why: str


TRIALS = [
    Trial(
        "LayerNorm without mean and variance",
        wrong.layer_norm_without_its_averages,
        [(layers, "layer_norm_backward")],
        "Loss does not drop from 50",
        "A norm undoes every shift and stretch of its row, so a right gradient asks for none. This one does, and all "
        "that lies below is moved for nothing, further with every norm that it passes.",
    ),
    Trial(
        "softmax without its Jacobian",
        wrong.attention_without_the_jacobian_of_softmax,
        [(attention, "attention_backward"), (functional_attention, "attention_backward")],
        "Attention is completely broken",
        "What all scores of a query gain together moves no probability, so their gradients must add up to 0. Here they "
        "do not, and queries and keys are driven to no effect.",
    ),
    Trial(
        "residual, the way around lost",
        residual_without_the_way_around,
        [(blocks.Residual, "joined")],
        "Gradient vanishes → no training",
        "What lies below hears of the loss only through all sub-layers above it, one after the other.",
    ),
    Trial(
        "residual, the way through lost",
        residual_without_the_way_through,
        [(blocks.Residual, "joined")],
        "",
        "Every sub-layer is told what to add to the stream as if those above it took no notice of it.",
    ),
    Trial(
        "linear, the first sequence for the batch",
        wrong.linear_of_the_first_sequence,
        [(layers, "linear_backward")],
        "Shape error or gradient 100x larger",
        f"The gradient of one sequence of {PAIRS} points the right way on average, but it is much noisier: as if "
        "trained with batches of one pair, at a learning rate for larger ones.",
    ),
    Trial(
        "linear, means for sums",
        wrong.linear_with_means_for_sums,
        [(layers, "linear_backward")],
        "",
        "Adam divides a gradient by its own size, so that a factor that stays the same changes nothing, be it 100 or "
        "1 / 100. With plain gradient descent these weights would hardly move.",
    ),
]


@contextmanager
def swapped(trial: Trial | None) -> Iterator[None]:
    """Let the toolkit's modules differentiate with the wrong backward, within the block; None: with the right one.

    Raises AttributeError where there is nothing in the place.
    """
    places = trial.places if trial else []
    right = [getattr(owner, attribute) for owner, attribute in places]
    try:
        for owner, attribute in places:
            setattr(owner, attribute, trial.backward)
        yield
    finally:
        for (owner, attribute), backward in zip(places, right, strict=True):
            setattr(owner, attribute, backward)


def guessing() -> float:
    """Compute the loss of a guess that knows the length alone, in nats per token: the EOS costs nothing."""
    return LENGTH / SEQUENCE * math.log(SYMBOLS)


def losses(trial: Trial | None, seed: int = 0, updates: int = UPDATES) -> list[float]:
    """Train to write a sequence of random symbols backwards -> the loss of every update, in nats per token.

    Every batch is new, so that nothing can be learned by heart. trial: None trains with the right gradients. The same
    seed gives the same initial values and the same batches.
    """
    first = len(SPECIAL_TOKENS)
    # Two layers on each side, post-norm and ReLU as in the documents 000 and 001; without dropout.
    rates = dict.fromkeys(("embedding_dropout", "attention_dropout", "activation_dropout", "residual_dropout"), 0.0)
    sizes = {"d_model": 32, "num_heads": 4, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2}
    model = Seq2Seq(
        Seq2SeqConfig(vocab_size=first + SYMBOLS, norm_position="post", max_length=SEQUENCE, **sizes, **rates)
    )
    model.allocate()
    model.initialize(np.random.default_rng([seed, 0]))
    gradient, data = np.zeros_like(model.vector), np.random.default_rng([seed, 1])
    moments, memory, found = (np.zeros_like(gradient), np.zeros_like(gradient)), Pool(), []
    optimizer, schedule = Adam(), make_schedule("cosine", _RATE, _WARMUP, updates, _RATE / 10)
    with threadpool_limits(1, "blas"), swapped(trial):
        for update in range(1, updates + 1):
            gradient[:] = 0
            tape = Tape(model.views(gradient), memory=memory)
            symbols = data.integers(first, first + SYMBOLS, (PAIRS, LENGTH))
            sums = model.loss(translation_batch(list(symbols), list(symbols[:, ::-1])), tape)
            model.backward(tape)
            scale = clip_scale(math.sqrt(sum_of_squares(gradient)) / sums.tokens, 1.0) / sums.tokens
            optimizer.update(model.vector, gradient, moments, update, schedule(update), scale, model.decayed)
            found.append(sums.loss / sums.tokens)
    return found


def training_section(
    trials: Sequence[Trial],
    errors: Mapping[Callable, float],
    seed: int,
    updates: int,
    progress: Callable[[str], None],
) -> Section:
    """Train with the right gradients and with each of these wrong ones.  errors: what the check found of each."""
    found = {}
    for count, trial in enumerate([None, *trials], start=1):
        name = trial.name if trial else RIGHT
        progress(f"training with gradients {count} of {len(trials) + 1}: {name}")
        found[name] = losses(trial, seed, updates)
    lines = {name: curve(of) for name, of in found.items()}
    return Section(
        "What wrong gradients do to training",
        _TASK,
        f"Who guesses symbols, and knows where they end, has a loss of {guessing():.3f} nats per token.",
        _table(trials, errors, found),
        Curves(f"loss, mean of {_MEAN_OF} updates", lines, "updates", "nats per token"),
        [_sentence(trial, errors[trial.backward], found[trial.name], found[RIGHT]) for trial in trials],
        _LESSON,
    )


def curve(found: Sequence[float]) -> tuple[list[int], list[float]]:
    """Average every ten losses -> (the update of the last of each ten, the means)."""
    stops = list(range(_MEAN_OF, len(found) + 1, _MEAN_OF))
    return stops, [_mean(found, stop) for stop in stops]


def _table(trials: Sequence[Trial], errors: Mapping[Callable, float], found: Mapping[str, Sequence[float]]) -> Table:
    updates = len(found[RIGHT])
    points = [max(_MEAN_OF, updates * part // 4) for part in (1, 2, 3, 4)]
    header = ("gradients", "largest relative error", *(f"loss at {point}" for point in points))
    of = {RIGHT: "", **{trial.name: f"{errors[trial.backward]:.1e}" for trial in trials}}
    rows = [(name, error, *(f"{_mean(found[name], point):.3f}" for point in points)) for name, error in of.items()]
    return Table(header, rows)


def _sentence(trial: Trial, error: float, found: Sequence[float], right: Sequence[float]) -> str:
    last, best = _mean(found, len(found)), _mean(right, len(right))
    printed = f" The founding document 001 says of it: “{trial.printed}”." if trial.printed else ""
    return (
        f"{trial.name[0].upper()}{trial.name[1:]}: it {verdict(last, best)} (loss {last:.3f}, with the right gradients "
        f"{best:.3f}; the check finds an error of {error:.1e}).{printed} {trial.why}"
    )


def verdict(last: float, right: float) -> str:
    """Say in words how a last loss stands to that of the right gradients and to that of guessing."""
    near = _NEAR * guessing()
    if not np.isfinite(last):
        return "diverges"
    if last <= right + near:
        return "learns as well as with the right gradients, and yet it is wrong"
    return "is no better than guessing" if last >= guessing() - near else "learns, but worse"


def _mean(found: Sequence[float], update: int) -> float:
    return float(np.mean(found[max(0, update - _MEAN_OF) : update]))
