"""One batch of outputs, by the search that the settings ask for: greedy, beams, or samples."""

from collections.abc import Callable, Sequence

from toolkit.decoding.beam import beam_search
from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.constraints import Constraints
from toolkit.decoding.hypothesis import Hypothesis
from toolkit.decoding.observer import Observer
from toolkit.decoding.sampling import Sampler
from toolkit.decoding.session import Session
from toolkit.decoding.writer import Watcher, Writer, follow
from toolkit.errors import ConfigError


def sequences_each(config: GenerationConfig) -> int:
    """With how many sequences decoding begins for each text: as many as samples are wanted, otherwise one."""
    return config.num_return_sequences if config.samples else 1


def make_writer(
    session: Session,
    constraints: Constraints,
    config: GenerationConfig,
    numbers: Sequence[int],
    observer: Observer | None = None,
) -> Writer:
    """Greedy search or sampling of `sequences_each` outputs for every text.

    numbers: of the texts. Every sample has its own generator, seeded by the seed, its text and its place among them.
    """
    if not config.samples:
        return Writer(session, constraints, config.length_penalty, observer=observer)
    keys = [(config.seed, number, sample) for number in numbers for sample in range(config.num_return_sequences)]
    return Writer(session, constraints, config.length_penalty, Sampler(config, keys, observer), observer)


def decode(
    session: Session,
    constraints: Constraints,
    config: GenerationConfig,
    numbers: Sequence[int],
    watch: Callable[[], Watcher] | None = None,
    observer: Observer | None = None,
) -> list[list[Hypothesis]]:
    """The hypotheses for every text of a session, best first; `watch` makes a watcher for each sequence.

    observer: is told what is considered on the way, which changes nothing.
    """
    check_watch(config, watch)
    if config.num_beams > 1:
        return beam_search(session, constraints, config, observer)
    writer, count = make_writer(session, constraints, config, numbers, observer), sequences_each(config)
    watchers = None if watch is None else [watch() for _ in constraints.limits]
    outputs = follow(writer, watchers)
    groups = (outputs[begin : begin + count] for begin in range(0, len(outputs), count))
    return [sorted(group, key=lambda hypothesis: -hypothesis.score) for group in groups]


def check_watch(config: GenerationConfig, watch: Callable[[], Watcher] | None) -> None:
    """Raises ConfigError where beams, whose outputs change to the end, should be watched."""
    if watch is not None and config.num_beams > 1:
        raise ConfigError(f"num_beams is {config.num_beams}, but beam search knows no stop strings: leave out one")
