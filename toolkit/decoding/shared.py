"""Decoding by several processes that share the sentences, each with a core to itself."""

import weakref
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from threadpoolctl import ThreadpoolController

from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.generation import Texts, generate
from toolkit.decoding.hypothesis import Hypothesis
from toolkit.decoding.step import PackedWeights
from toolkit.models.seq2seq import Seq2Seq
from toolkit.models.storage import load_model
from toolkit.parallel import Processes


class SharedDecoding:
    """`generate` by `workers` processes, which are started once, with the model as it is then, and stay until `close`.

    where: the model's directory, from which it is read again on systems that do not fork.
    """

    def __init__(self, model: Seq2Seq, where: str, workers: int):
        self._workers = workers
        self._processes = Processes(_Share(model, where), workers)
        self.close = weakref.finalize(self, self._processes.close)

    def generate(
        self,
        sources: Texts,
        config: GenerationConfig,
        batch_size: int,
        prefixes: Texts | None,
        numbers: Sequence[int],
        bad_words: Texts,
    ) -> list[list[Hypothesis]]:
        shares = deal([len(source) for source in sources], self._workers)
        pieces = []
        for share in shares:
            begun = None if prefixes is None else [prefixes[index] for index in share]
            own = [sources[index] for index in share], config, batch_size, begun
            pieces.append((*own, [numbers[index] for index in share], bad_words))
        results: list[list[Hypothesis]] = [[] for _ in sources]
        for share, found in zip(shares, self._processes.in_order(pieces), strict=True):
            for index, hypotheses in zip(share, found, strict=True):
                results[index] = hypotheses
        return results


class _Share:
    """Decodes the share of one process."""

    def __init__(self, model: Seq2Seq, where: str):
        self._model, self._where, self._packed = model, where, PackedWeights()

    def __reduce__(self) -> tuple:
        return _read_again, (self._where,)

    def __call__(self, arguments: tuple) -> list[list[Hypothesis]]:
        with self._threads.limit(limits=1, user_api="blas"), np.errstate(all="ignore"):
            return generate(self._model, *arguments, packed=self._packed)

    @cached_property
    def _threads(self) -> ThreadpoolController:
        return ThreadpoolController()


def _read_again(where: str) -> _Share:
    return _Share(load_model(Path(where)), where)


def deal(lengths: Sequence[int], workers: int) -> list[list[int]]:
    """Deal the numbers of sentences to workers, to and fro by length, so that all have about as much; none gets []."""
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    to_and_fro = [*range(workers), *reversed(range(workers))]
    shares: list[list[int]] = [[] for _ in range(workers)]
    for place, index in enumerate(order):
        shares[to_and_fro[place % (2 * workers)]].append(index)
    return [share for share in shares if share]
