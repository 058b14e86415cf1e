"""The page on why attention is parallel and long-range, and a recurrent network is neither.

One pass over all positions stands beside one pass for each position: the same numbers, in another time.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.decoding.state import GPTState
from toolkit.errors import ConfigError, DataError
from toolkit.explain.gradients import source
from toolkit.explain.reading import check_finite, default_text, text_ids
from toolkit.explain.recurrence import WIDTH, reach, recurrence
from toolkit.functional.arrays import Array
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.nn.memory import Pool
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.pages.blocks import Curves, Formula, Page, Section, Table
from toolkit.pages.writing import labels
from toolkit.tokenization.special import BOS

LENGTHS = (16, 64, 256, 1024, 2048)
_LONGEST = 16384
_MOST_TOKENS = 48  # rows of a table

_DISTANCES = [1, 2, 4, 8, 16, 32, 64, 128, 256]
_RADII = (0.9, 1.0, 1.2, 1.5)
_LEAST_DRAWN = 1e-12  # what is below would make a curve of everything else a line at the top
_REPETITIONS = 3
_VOCABULARY = 64  # scores of tokens are not what is timed


def all_at_once(model: GPT, ids: Sequence[int], pool: Pool | None = None) -> Array:
    """Score every next token in one pass.  Shapes: (T,) -> (T, V)."""
    tape = Tape(memory=pool or Pool())
    return model.output.logits(model.read(np.asarray(ids), Rows(np.array([len(ids)])), tape), tape)


def one_at_a_time(model: GPT, ids: Sequence[int], pool: Pool | None = None) -> Array:
    """Score them as decoding does, a token at a time over the KV cache.  Shapes: (T,) -> (T, V)."""
    state = GPTState(model, [ids[:1]], pool or Pool(), new_tokens=len(ids))
    scores = np.empty((len(ids), model.config.vocab_size), model.vector.dtype)
    for step, token in enumerate(ids):
        scores[step] = state.logits(np.array([token]))[0]
    return scores


class Timing(NamedTuple):
    """The medians of some repetitions at one length, in seconds, on one core."""

    length: int
    apart: float  # the largest difference between the scores of the two ways
    at_once: float
    one_at_a_time: float
    recurrent: float
    at_once_products: int  # multiplications of the pass, each with an addition
    recurrent_products: int

    @property
    def speeds(self) -> tuple[float, float]:
        """Count billions of multiplications and additions a second -> (the block at once, the recurrent layer)."""
        return 2e-9 * self.at_once_products / self.at_once, 2e-9 * self.recurrent_products / self.recurrent


def block_model(longest: int, width: int = 128) -> GPT:
    """Make a language model of one block with random values, that reads up to `longest` tokens."""
    sizes = {"d_model": width, "layers": 1, "num_heads": 4, "d_ff": 4 * width}
    model = GPT(GPTConfig(vocab_size=_VOCABULARY, max_length=longest, **sizes))
    model.allocate()
    model.initialize(np.random.default_rng(0))
    return model


def timed(model: GPT, length: int) -> Timing:
    """Time both ways of reading a random text of that length, and a recurrent layer as wide as the model."""
    generator, pool, width = np.random.default_rng(length), Pool(), model.config.d_model
    ids = generator.integers(0, model.config.vocab_size, length)
    together, at_once = _timed(lambda: all_at_once(model, ids, pool))
    single, step_by_step = _timed(lambda: one_at_a_time(model, ids, pool))
    x = generator.standard_normal((1, length, width)).astype(np.float32)
    weight, recurrent = (generator.standard_normal((width, width)).astype(np.float32) / width**0.5 for _ in range(2))
    bias = np.zeros(width, np.float32)
    return Timing(
        length,
        float(np.abs(together - single).max()),
        at_once,
        step_by_step,
        _timed(lambda: recurrence(x, weight, recurrent, bias))[1],
        products_at_once(model.config, length),
        2 * length * width * width,
    )


def products_at_once(config: GPTConfig, length: int) -> int:
    """Count the multiplications of a block over T tokens, and of the output scores.

    The maps take T · 12 D² where F is 4 D, the scores and the contexts of causal attention half of 2 T² D.
    """
    width, hidden = config.d_model, config.d_ff
    maps = config.layers * (4 * width * width + 2 * width * hidden) + config.vocab_size * width
    return length * maps + config.layers * length * (length + 1) * width


def _timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """Call an action a few times -> (its result, the median of the times in seconds)."""
    seconds = []
    for _ in range(_REPETITIONS):
        started = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - started)
    return result, statistics.median(seconds)


def parallel_page(
    owner: LanguageModel,
    text: str = "",
    lengths: Sequence[int] = LENGTHS,
    each: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Page:
    """Read `text` both ways, time both over `lengths` beside a recurrent layer, and measure how far each reaches.

    each: what is put around the lengths while they are timed, to show progress.

    text: by default one of `DEFAULT_TEXTS`. Raises ConfigError for lengths that are none, and where none of those texts
    is for this model; DataError for a text without tokens or not Unicode; ModelError where the model computes what is
    not finite.
    """
    lengths = sorted(set(lengths))
    if not lengths or lengths[0] < 1 or lengths[-1] > _LONGEST:
        raise ConfigError(f"lengths are {', '.join(map(str, lengths)) or 'none'}: give some from 1 to {_LONGEST}")
    cut: list[str] = []
    begin, most = [BOS] * owner.model.config.begin, owner.model.config.max_length
    read = text_ids(owner.tokenizer, text or default_text(owner.tokenizer), most - len(begin), cut)
    if not read:
        raise DataError("the text has no tokens: there is nothing to read")
    ids = [*begin, *read]
    if len(ids) > _MOST_TOKENS:
        cut.append(f"The table of positions shows the first {_MOST_TOKENS}; the largest difference is of all.")
    model = block_model(lengths[-1])
    with owner.arithmetic(threads=1):
        sections = [
            _equal_section(owner, ids),
            _time_section([timed(model, length) for length in each(lengths)], model.config.d_model),
            _why_section(),
            _reach_section(reach(_DISTANCES, _RADII)),
        ]
    return Page(
        "Why attention is parallel and long-range",
        "A transformer reads all positions of a text in one pass, and each of them looks at every other directly. A "
        "recurrent network reads one position after the other, and what was far back has passed through every state in "
        "between. Both claims are measured here, on one core, with this toolkit's own passes.",
        sections,
        cut,
    )


def _equal_section(owner: LanguageModel, ids: list[int]) -> Section:
    together, single = all_at_once(owner.model, ids), one_at_a_time(owner.model, ids)
    check_finite(together)
    apart = np.abs(together - single).max(axis=1)
    best, other = together.argmax(axis=1), single.argmax(axis=1)
    names = labels(owner.tokenizer, [*ids, *best, *other])
    read, best_names, other_names = (names[len(ids) * part : len(ids) * (part + 1)] for part in range(3))
    rows = [
        (str(t), read[t], best_names[t], other_names[t], f"{apart[t]:.1e}") for t in range(min(len(ids), _MOST_TOKENS))
    ]
    size = float(np.abs(together).max())
    return Section(
        "All positions at once equal one at a time",
        f"The language model reads {len(ids)} tokens twice: in one pass, where the causal mask hides from "
        "every position what comes after it; and token by token over the KV cache, as it would in generating. "
        f"The scores of all {together.shape[1]} tokens as the next one, at every position:",
        Table(("t", "read", "next, all at once", "next, one at a time", "largest difference"), rows, (1, 2, 3)),
        f"No score differs by more than {apart.max():.1e}, where the largest is {size:.1f}: the rounding of "
        "float32, which adds in another order. This is why training reads whole texts: T predictions "
        "for one pass.",
    )


def _time_section(timings: Sequence[Timing], width: int) -> Section:
    lengths = [each.length for each in timings]
    seconds = [(each.at_once, each.one_at_a_time, each.recurrent) for each in timings]
    names = ("block, all at once", "block, one at a time", "recurrent layer")
    lines = {name: (lengths, column) for name, column in zip(names, zip(*seconds, strict=True), strict=True)}
    rows = [
        (
            str(each.length),
            *(f"{1e3 * taken:.2f}" for taken in own),
            f"{each.one_at_a_time / each.at_once:.1f}",
            *(f"{speed:.1f}" for speed in each.speeds),
            f"{each.apart:.0e}",
        )
        for each, own in zip(timings, seconds, strict=True)
    ]
    header = ("T", "at once", "one at a time", "recurrent", "ratio", "at once", "recurrent", "apart")
    return Section(
        "What it takes, by length",
        f"A block of attention and feed-forward, and a recurrent layer, both {width} wide with random values; "
        "medians of three runs with BLAS held to one thread. They differ from machine to machine and a little "
        "from run to run.",
        Curves("seconds to read T tokens", lines, "T, tokens", "seconds", log_x=True, log_y=True),
        "Milliseconds; how many times longer the block takes one at a time; billions of multiplications and "
        "additions a second; and how far the scores of the two ways are apart:",
        Table(header, rows, ()),
        _conclusion(timings[-1], width),
    )


def _conclusion(last: Timing, width: int) -> str:
    """Say what the figures of the greatest length show, for and against."""
    attention = last.length * (last.length + 1) * width
    block, recurrent = last.speeds
    less, share = last.at_once_products / last.recurrent_products, last.recurrent / last.at_once
    slower = "So on one core it is not the slower one" if share <= 1 else "Here it is the slower one even so"
    return (
        f"At T = {last.length} the block takes {last.one_at_a_time / last.at_once:.1f} times as long one at a time as "
        "at once: the same arithmetic, in T small products instead of one large one. The recurrent layer computes "
        f"{less:.0f} times less than the block and takes {share:.2g} of its time, at "
        f"{recurrent:.1f} instead of {block:.1f} billion operations a second. {slower}; "
        "what it cannot do is join its T steps, because h U needs the h before it: more cores, or a GPU, shorten the "
        "block's pass and not the recurrence. Nor is attention free: its own part grows with T², "
        f"{100 * attention / last.at_once_products:.0f} % of the block's products at T = {last.length}, where the "
        "recurrence grows with T. In generating, when each token waits for the one before, both go step by step."
    )


def _why_section() -> Section:
    rows = [("self-attention", "T² · D", "1", "1"), ("recurrent layer", "T · D²", "T", "T")]
    return Section(
        "Steps that wait for one another",
        Formula(
            "attention:   context = softmax(mask(Q Kᵀ / √K)) V    no row needs the result of another\n"
            "recurrence:  h_t = tanh(x_t W + h_{t−1} U + b)       row t needs the result of row t − 1"
        ),
        Table(("a layer", "products", "steps in a row", "longest path between two positions"), rows),
        "Vaswani et al. 2017, table 1. The recurrent layer of this page:",
        source(recurrence),
    )


def _reach_section(found: dict[str, list[float]]) -> Section:
    rows = [(str(d), *(f"{norms[at]:.1e}" for norms in found.values())) for at, d in enumerate(_DISTANCES)]
    drawn, steepest = {}, list(found.values())[-1]
    for name, norms in found.items():
        points = [(d, norm) for d, norm in zip(_DISTANCES, norms, strict=True) if norm >= _LEAST_DRAWN]
        drawn[name] = tuple(zip(*points, strict=True))
    return Section(
        "How much the last position depends on the first",
        f"One layer each, {WIDTH} wide, with random values as training begins with, over random inputs: a "
        "block of attention, and recurrent layers whose U has its largest eigenvalue at the radius. A backward "
        "pass for every entry of the last output, read at the first input, gives the whole Jacobian; its norm:",
        Formula("‖ ∂ output at T / ∂ input at 1 ‖\ndistance = T − 1"),
        Curves("the first input's part in the last output", drawn, "distance", "norm", log_x=True, log_y=True),
        Table(("distance", *found), rows, ()),
        _changes(found),
        "Attention falls like 1 / T: before training every position takes about an equal share from each of "
        "the T it sees. The path is one step whatever the distance, so training can give one far position "
        "nearly all of the weight. In the recurrence every step between multiplies by Uᵀ and by 1 − h² ≤ 1, so "
        "the gradient falls or grows exponentially. Up to radius 1 it vanishes; above, it grows, here to "
        f"{max(steepest):.2g} at distance {_DISTANCES[int(np.argmax(steepest))]}, until the states have grown "
        "too and tanh, flat by then, holds it down; with U larger still it explodes (Bengio, Simard and "
        f"Frasconi 1994). Points below {_LEAST_DRAWN:g} are in the table and not in the picture.",
    )


def _changes(found: dict[str, list[float]]) -> str:
    """Say by what factor each norm changes from the shortest distance to the longest."""
    changes = []
    for name, norms in found.items():
        falls = norms[-1] < norms[0]
        factor = norms[0] / norms[-1] if falls else norms[-1] / norms[0]
        changes.append(f"{name} {'falls' if falls else 'grows'} by a factor of {factor:.2g}")
    return f"From distance {_DISTANCES[0]} to {_DISTANCES[-1]}: {', '.join(changes)}."
