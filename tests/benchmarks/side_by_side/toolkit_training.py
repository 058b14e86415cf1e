"""The toolkit's side of the training rows, and the ceiling: the same workers doing the matrix products alone."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from toolkit.data.batches import Example
from toolkit.functional.output_loss import LossSums
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.nn.memory import Pool
from toolkit.nn.module import Model
from toolkit.nn.tape import Tape
from toolkit.training import worker
from toolkit.training.exchange import Exchange
from toolkit.training.language import LanguageTask
from toolkit.training.optimizer import Adam, clip_scale
from toolkit.training.task import Share
from toolkit.training.translation import TranslationTask
from toolkit.training.workers import Workers

from .batches import Batches
from .recipe import RECIPE


class Link:
    """A simulated network: messages of a rank leave one after the other, at `bandwidth`, and come `latency` later."""

    def __init__(self, latency: float, bandwidth: float):
        self._latency, self._bandwidth, self._free = latency, bandwidth, 0.0

    def __call__(self, size: int) -> float:
        """Return the time at which a message of so many bytes comes."""
        self._free = max(self._free, time.monotonic()) + size / self._bandwidth
        return self._free + self._latency


class OnNetwork:
    """Makes a model, wherever that is called, and a network around it.

    link: latency and bytes a second of a rank. overlap: whether gradients leave while others are computed.
    """

    def __init__(self, build: Callable[[], Model], link: Sequence[float], overlap: bool):
        self._build, self._link, self._overlap = build, link, overlap

    def __call__(self) -> Model:
        Exchange.link = Link(*self._link)
        if not self._overlap:
            worker.BucketTape = lambda _owners, _complete, *rest, **named: Tape(*rest, **named)
        return self._build()


class ToolkitTraining:
    """Updates as the toolkit's trainer makes them, `threads` workers, or all ranks.

    shards: see `TrainingConfig`. link, overlap: see `OnNetwork`.
    """

    def __init__(self, directory: str, threads: int, shards: int = 0, link: Sequence[float] = (), overlap: bool = True):
        data = Batches(Path(directory))
        config = GPTConfig(**data.model) if data.kind == "gpt" else Seq2SeqConfig(**data.model)
        self.build = partial(GPT if data.kind == "gpt" else Seq2Seq, config)
        if link:
            self.build = OnNetwork(self.build, link, overlap)
        self.task, self.batch = (_language if data.kind == "gpt" else _translation)(data)
        self.shards = shards
        optimizer = Adam(RECIPE["beta1"], RECIPE["beta2"], RECIPE["eps"], RECIPE["weight_decay"])
        self.workers = self.start(optimizer, threads)
        with np.load(Path(directory) / "weights.npz") as arrays:
            self.workers.model.load_arrays(dict(arrays), directory)
        self.workers.spread()

    def start(self, optimizer: Adam, threads: int) -> Workers:
        return Workers(self.build, self.task, optimizer, threads, shards=self.shards).__enter__()

    def check(self) -> dict[str, float]:
        """Loss and gradient norm of the first update, without dropout."""
        model = self.workers.model
        gradient = np.zeros_like(model.vector)
        sums = self.task.loss(model, self.batch(0), Tape(model.views(gradient), memory=Pool()))
        return {"loss": sums.loss / sums.tokens, "gradient_norm": float(np.linalg.norm(gradient)) / sums.tokens}

    def run(self, first: int, steps: int) -> dict[str, float]:
        """Make `steps` updates, beginning with batch `first`."""
        tokens, loss, begin = 0, 0.0, time.perf_counter()
        for update in range(first, first + steps):
            sums = self.update(update)
            tokens, loss = tokens + sums.tokens, sums.loss / max(sums.tokens, 1)
        return {"seconds": time.perf_counter() - begin, "tokens": tokens, "loss": loss}

    def update(self, number: int) -> LossSums:
        workers = self.workers
        divide = self.task.shards if self.shards else self.task.split
        shares = divide(self.batch(number), workers.parts)
        sums = workers.gradient([[(share, [1, number, 0, index])] for index, share in enumerate(shares)])
        norm = workers.reduce() / sums.tokens
        workers.update(number + 1, RECIPE["learning_rate"], clip_scale(norm, RECIPE["clip"]) / sums.tokens)
        return sums


class Products(ToolkitTraining):
    """The products with weight matrices of the same updates, forward and backward, and nothing else."""

    def start(self, optimizer: Adam, threads: int) -> Workers:
        return Workers(self.build, _ProductsTask(), optimizer, threads).__enter__()

    def update(self, number: int) -> LossSums:
        shares = self.task.split(self.batch(number), self.workers.count)
        return self.workers.evaluate([[self._rows(share)] for share in shares])

    def _rows(self, share: Share) -> tuple[int, int]:
        """Rows of the targets and of the sources."""
        if isinstance(self.task, LanguageTask):
            return sum(self.task.sets["train"].span(number)[1] for number in share.numbers), 0
        examples = [self.task.examples["train"][index] for index in share.numbers]
        return sum(len(each.target) + 1 for each in examples), sum(len(each.source) + 1 for each in examples)


class _ProductsTask:
    """y = x W, dx = dy Wᵀ and dW = xᵀ dy for every linear map and the output table."""

    def __init__(self) -> None:
        self._kept: dict[str, np.ndarray] = {}

    def loss(self, model: Model, share: tuple[int, int], _tape: Tape) -> LossSums:
        targets, sources = share
        output = model.output.table
        for name, parameter in model.parameters().items():
            reads_source = name.startswith("encoder") or "cross_attention.layer.key_value" in name
            if parameter is output:
                self._three_products(targets, parameter.data.T)
            elif name.endswith(".weight"):
                self._three_products(sources if reads_source else targets, parameter.data)
        return LossSums(0.0, 0.0, targets)

    def _three_products(self, rows: int, weight: np.ndarray) -> None:
        x, dx = (self._array(name, rows, len(weight)) for name in ("x", "dx"))
        y, dy = (self._array(name, rows, weight.shape[1]) for name in ("y", "dy"))
        np.matmul(x, weight, out=y)
        np.matmul(dy, weight.T, out=dx)
        if weight.flags.c_contiguous:
            np.matmul(x.T, dy, out=self._array("dweight", *weight.shape))
        else:
            np.matmul(dy.T, x, out=self._array("dweight", *weight.shape[::-1]))

    def _array(self, name: str, rows: int, columns: int) -> np.ndarray:
        """Memory that is used again and again."""
        if self._kept.get(name, np.empty(0)).size < rows * columns:
            self._kept[name] = np.full(rows * columns, 0.5, np.float32)
        return self._kept[name][: rows * columns].reshape(rows, columns)


def _language(data: Batches) -> tuple[LanguageTask, Any]:
    store = SimpleNamespace(values=data.arrays["stream"])
    task = LanguageTask(store, store, data.model["max_length"], whole=False)
    return task, lambda update: Share("train", data.starts(update))


def _translation(data: Batches) -> tuple[TranslationTask, Any]:
    examples = [Example(*pair) for pair in zip(data.ragged("source"), data.ragged("target"), strict=True)]
    size, batches = data.model["vocab_size"], data.ragged("batch")
    task = TranslationTask(examples, examples[:1], size, data.smoothing)
    task.prior = np.full(size, 1 / size, np.float32)  # what PyTorch smooths towards
    return task, lambda update: Share("train", batches[update % len(batches)])
