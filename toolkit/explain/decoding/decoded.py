"""One text, decoded as ever, with all that was considered on the way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolkit.decoding import ContinuationConfig, GenerationConfig, Hypothesis, generate
from toolkit.decoding.hypothesis import Observer
from toolkit.errors import ConfigError
from toolkit.explain.decoding.beam_tree import BeamTree, Node, choices, greedy_tree, written
from toolkit.explain.decoding.choices import Choice, Choices
from toolkit.language_model import LanguageModel
from toolkit.translator import Translator


@dataclass(frozen=True)
class Decoded:
    """What a search found, best first, and how it came to the best."""

    found: list[Hypothesis]
    steps: list[Choice]  # of the best one: its tokens, one by one
    root: Node | None  # of the tree of everything that was ranked; samples grow none
    ended: list[tuple[list[int], float, float]]  # tokens, log-probability, score of each complete output, best first

    @property
    def tokens(self) -> list[int]:
        """What was written, the end mark too where there is one."""
        return written(self.found[0])


def decoded_source(translator: Translator, source: Sequence[int], config: GenerationConfig, count: int) -> Decoded:
    """The translation of one source of ids.  count: how many candidates of every step are looked at.

    Where several are asked for, the search gives all that its beams find, as that of the translator does.
    """
    if config.num_return_sequences > 1 and not config.samples:
        config = replace(config, num_return_sequences=config.num_beams)
    return _decoded(
        translator, config, count, lambda watch, config: generate(translator.model, [source], config, observer=watch)
    )


def decoded_prompt(model: LanguageModel, prompt: Sequence[int], config: ContinuationConfig, count: int) -> Decoded:
    """The continuation of one prompt of ids.  count: how many candidates of every step are looked at."""
    return _decoded(model, config, count, lambda watch, config: generate(model.model, [prompt], config, observer=watch))


def _decoded(
    owner: Translator | LanguageModel,
    config: GenerationConfig,
    count: int,
    search: Callable[[Observer, GenerationConfig], list[list[Hypothesis]]],
) -> Decoded:
    if count < 1:
        raise ConfigError(f"candidates is {count}: it must be at least 1")
    watch = BeamTree(count) if config.num_beams > 1 else Choices(count)
    with owner.arithmetic():
        found = search(watch, config)[0]
    owner.check_finite([each.log_prob for each in found] or [np.nan])
    if isinstance(watch, Choices):
        steps = watch.of(written(found[0]))
        root = None if config.samples else greedy_tree(steps, found[0])
        return Decoded(found, steps, root, [(written(each), each.log_prob, each.score) for each in found])
    way = watch.choose(found[0])
    return Decoded(found, choices(way, count), watch.root, watch.ended(config.length_penalty))
