"""The training loop: updates, validation, checkpoints, and a clean way out at any moment."""

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from toolkit.errors import DivergenceError
from toolkit.functional.output_loss import LossSums
from toolkit.nn.module import Model
from toolkit.tokenization import Tokenizer
from toolkit.training.config import TrainingConfig
from toolkit.training.optimizer import Adam, clip_scale
from toolkit.training.run import Run, Saved
from toolkit.training.schedule import make_schedule
from toolkit.training.workers import Workers

_LOG_EVERY = 20  # updates between two lines of the log


class Evaluation(NamedTuple):
    """What an evaluation found: figures (more is better, except the loss), and lines to show."""

    scores: dict[str, Any]
    samples: list[str]


@dataclass
class Progress:
    """Where a run stands; saved with every checkpoint."""

    update: int = 0
    epoch: int = 0
    batch: int = 0  # batches of this epoch that are done
    best: float | None = None  # the best validation score so far
    best_update: int = 0
    validations_without_gain: int = 0
    seconds: float = 0.0  # spent in updates
    tokens: int = 0
    scores: dict[str, Any] = field(default_factory=dict)  # of the last validation


class Trainer:
    """Trains one model on one task.

    build: makes the model without values. task: see `Workers`; also gives batches and splits them. evaluate: scores
    a model on the validation set (it may decode; training itself knows no decoder). run: where checkpoints go, with
    the tokenizer that belongs to the model.
    """

    def __init__(
        self,
        build: Callable[[], Model],
        task: Any,
        config: TrainingConfig,
        run: Run,
        tokenizer: Tokenizer,
        evaluate: Callable[[Model], Evaluation],
        quiet: bool = False,
    ):
        self.task, self.config, self.run, self.tokenizer, self.evaluate = task, config, run, tokenizer, evaluate
        optimizer = Adam(
            config.beta1, config.beta2, config.eps, config.weight_decay, decoupled=config.optimizer == "adamw"
        )
        self.workers = Workers(build, task, optimizer, config.workers)
        self.model = self.workers.model
        width = getattr(self.model.config, "width", 512)
        self.schedule = make_schedule(
            config.schedule, config.learning_rate, config.warmup, config.updates, config.final_learning_rate, width
        )
        self.progress = Progress()
        self.interrupted = False
        self._epoch_batches: tuple[int, list] = (-1, [])
        self._show = not quiet and sys.stderr.isatty()
        self._quiet = quiet
        self._averages = _Averages()

    def train(self, saved: Saved | None = None) -> Progress:
        """Train to the last update, or until validation stops improving, or until Ctrl-C; everything is saved then.

        saved: a checkpoint to continue from. Raises DivergenceError where the loss is no longer a number.
        """
        if saved is None:
            self.model.initialize(np.random.default_rng(self.config.seed))
        else:
            self.model.vector[:] = saved.model.vector
            for own, moment in zip(self.workers.shared.moments, saved.moments, strict=True):
                own[:] = moment
            self.progress = Progress(**saved.state)
        with self.workers, self._interruptible(), self._bar() as bar:
            while self.progress.update < self.config.updates and not self.interrupted and not self._out_of_patience():
                self._update(bar)
                due = self.progress.update % self.config.validate_every == 0
                if due or self.progress.update == self.config.updates:
                    self._validate(bar)
            if self.interrupted:
                self._save(is_best=False)
        return self.progress

    def _update(self, bar: tqdm) -> None:
        """One step of the optimizer, over `accumulation` batches and all workers."""
        started = time.perf_counter()
        progress, config = self.progress, self.config
        step = progress.update + 1
        sums = self.workers.gradient(self._shares(step))
        norm = self.workers.reduce() / sums.tokens
        self._check_finite(step, math.isfinite(sums.loss) and math.isfinite(norm))
        self.workers.update(step, self.schedule(step), clip_scale(norm, config.clip) / sums.tokens)
        progress.update = step
        progress.tokens += sums.tokens
        seconds = time.perf_counter() - started
        progress.seconds += seconds
        self._averages.add(sums, norm, seconds)
        if step % _LOG_EVERY == 0 or step == config.updates:
            self._log_averages(step, bar)
        bar.update()

    def _check_finite(self, step: int, finite: bool) -> None:
        if not finite:
            raise DivergenceError(
                f"training diverged at update {step}: the loss is no longer a finite number; "
                f"the last good checkpoint is in {self.run.path}; try a lower learning rate or a longer warm-up"
            )

    def _shares(self, step: int) -> list[list[tuple[Any, list[int]]]]:
        """For each worker, its share of each of the update's batches, with the seed of its dropout masks."""
        shares: list[list] = [[] for _ in range(self.workers.count)]
        for micro in range(self.config.accumulation):
            for index, share in enumerate(self.task.split(self._next_batch(), self.workers.count)):
                shares[index].append((share, [self.config.seed, step, micro, index]))
        return shares

    def _next_batch(self) -> Any:
        progress = self.progress
        batches = self._batches_of(progress.epoch)
        while progress.batch >= len(batches):
            progress.epoch, progress.batch = progress.epoch + 1, 0
            batches = self._batches_of(progress.epoch)
        progress.batch += 1
        return batches[progress.batch - 1]

    def _batches_of(self, epoch: int) -> list:
        if self._epoch_batches[0] != epoch:
            batches = self.task.batches(epoch, self.config.tokens_per_batch, self.config.seed)
            self._epoch_batches = (epoch, batches)
        return self._epoch_batches[1]

    def validation_loss(self) -> LossSums:
        """Unsmoothed sums over the validation set, divided among the workers."""
        shares: list[list] = [[] for _ in range(self.workers.count)]
        for batch in self.task.validation_batches(self.config.tokens_per_batch):
            for index, share in enumerate(self.task.split(batch, self.workers.count)):
                shares[index].append(share)
        return self.workers.evaluate(shares)

    def _validate(self, bar: tqdm) -> None:
        sums = self.validation_loss()
        loss = sums.negative_log_likelihood / sums.tokens
        self._check_finite(self.progress.update, math.isfinite(loss))
        evaluation = self.evaluate(self.model)
        scores = {"loss": loss, "perplexity": math.exp(min(loss, 700)), **evaluation.scores}
        progress = self.progress
        progress.scores = scores
        score = -scores["loss"] if self.config.best_by == "loss" else scores[self.config.best_by]
        is_best = progress.best is None or score > progress.best
        if is_best:
            progress.best, progress.best_update, progress.validations_without_gain = score, progress.update, 0
        else:
            progress.validations_without_gain += 1
        self.run.log({"update": progress.update, "epoch": progress.epoch, "validation": scores})
        figures = "  ".join(f"{name} {value:.4g}" for name, value in scores.items() if isinstance(value, float))
        self._say(bar, f"update {progress.update}: validation {figures}{'  (best so far)' if is_best else ''}")
        for line in evaluation.samples:
            self._say(bar, f"    {line}")
        self._save(is_best)

    def _save(self, is_best: bool) -> None:
        progress = self.progress
        self._check_finite(progress.update, bool(np.isfinite(self.model.vector).all()))
        metrics = {"update": progress.update, "validation": progress.scores}
        self.run.save(self.model, self.tokenizer, self.workers.shared.moments, asdict(progress), metrics, is_best)

    def _log_averages(self, step: int, bar: tqdm) -> None:
        record = self._averages.take()
        self.run.log(
            {"update": step, "epoch": self.progress.epoch, "learning_rate": self.schedule(step), **record}
            | {"seconds": round(self.progress.seconds, 3)}
        )
        bar.set_postfix_str(f"loss {record['loss']:.3f}, {record['tokens_per_second']:,.0f} tokens/s", refresh=False)

    def _out_of_patience(self) -> bool:
        return 0 < self.config.patience <= self.progress.validations_without_gain

    def _say(self, bar: tqdm, line: str) -> None:
        if self._show:
            bar.clear()
        if not self._quiet:
            print(line, file=sys.stderr, flush=True)

    def _bar(self) -> tqdm:
        tqdm.monitor_interval = 0  # its thread would be forked with the workers
        return tqdm(
            total=self.config.updates,
            initial=self.progress.update,
            unit="update",
            disable=not self._show,
            dynamic_ncols=True,
            smoothing=0.05,
        )

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C finishes the update, saves and leaves; a second Ctrl-C leaves at once."""

        def stop(*_: Any) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


class _Averages:
    """Training figures since the last line of the log."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._sums, self._norms, self._seconds = LossSums(0.0, 0.0, 0), [], 0.0

    def add(self, sums: LossSums, norm: float, seconds: float) -> None:
        self._sums = LossSums(*(a + b for a, b in zip(self._sums, sums, strict=True)))
        self._norms.append(norm)
        self._seconds += seconds

    def take(self) -> dict[str, float]:
        sums, norms, seconds = self._sums, self._norms, self._seconds
        self._clear()
        return {
            "loss": sums.loss / sums.tokens,
            "negative_log_likelihood": sums.negative_log_likelihood / sums.tokens,
            "gradient_norm": sum(norms) / len(norms),
            "tokens_per_second": round(sums.tokens / seconds, 1),
        }
