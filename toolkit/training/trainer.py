"""The training loop: updates, validation, checkpoints, and a clean way out at any moment."""

import math
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from toolkit.display import progress_bar, tell
from toolkit.errors import DivergenceError, ModelError
from toolkit.functional.output_loss import LossSums
from toolkit.functional.tuning import fixed_choice
from toolkit.nn.module import Model
from toolkit.process import Stopped, postponed
from toolkit.tokenization import Tokenizer
from toolkit.training.checkpoint import Checkpoint, TrainerState
from toolkit.training.config import TrainingConfig
from toolkit.training.optimizer import clip_scale, make_optimizer, make_schedule
from toolkit.training.run import Run
from toolkit.training.task import Evaluator, Share, Task
from toolkit.training.workers import Workers

_LOG_EVERY = 20  # updates between two lines of the log


class Trainer:
    """Trains one model on one task.

    build: makes the model without values. evaluator: scores a model on the validation set. run: where checkpoints go,
    with the tokenizer that belongs to the model (None: it reads no text). start: gives the model its values in place of
    random ones.
    """

    def __init__(
        self,
        build: Callable[[], Model],
        task: Task,
        config: TrainingConfig,
        run: Run,
        tokenizer: Tokenizer | None,
        evaluator: Evaluator | None = None,
        quiet: bool = False,
        start: Callable[[Model], None] | None = None,
    ):
        self.task, self.config, self.run, self.tokenizer = task, config, run, tokenizer
        self.evaluator, optimizer = evaluator or Evaluator(), make_optimizer(config)
        self.workers = Workers(build, task, optimizer, config.workers, config.ema, self.evaluator, config.parts)
        self.model = self.workers.model
        width = getattr(self.model.config, "d_model", 512)
        self.schedule = make_schedule(
            config.schedule, config.learning_rate, config.warmup, config.updates, config.final_learning_rate, width
        )
        self.state = TrainerState()
        self.interrupted = 0  # the signal that has asked for an end
        self._epoch_batches: tuple[int, Sequence] = (-1, [])
        self._quiet, self._start = quiet, start

    def __repr__(self) -> str:
        return f"<Trainer: {type(self.model).__name__}, update {self.state.update:,} of {self.config.updates:,}>"

    def train(self, saved: Checkpoint | None = None) -> TrainerState:
        """Train to the last update, or until validation stops improving, or until a signal; everything is saved then.

        The signals are Ctrl-C, and those for which the process has handlers (see `toolkit.process`); `interrupted` is
        the number of the one that came, and a second one is raised.

        saved: a checkpoint to continue from. Where the loss is no longer a number, the run goes back to the last
        checkpoint made at a validation (or to the beginning) and on with half the learning rate; the second time it
        raises DivergenceError. Raises DataError where a checkpoint cannot be written.
        """
        self._start_from(saved)
        with fixed_choice(), self.run.held(), postponed(self._stop), self.workers, self._bar() as bar:
            self.run.begin()
            if saved is not None:
                self.run.remove_old(self.config.keep)
                if saved.note:
                    self._say(bar, saved.note)
            while True:
                try:
                    self._advance(bar)
                    return self.state
                except DivergenceError as error:
                    self._roll_back(error, bar)
                    if self.interrupted:  # what it went back to is on the disk already
                        return self.state

    def _start_from(self, saved: Checkpoint | None) -> None:
        """Take the values of a checkpoint, or the initial ones."""
        shared = self.workers.shared
        if saved is None:
            if self._start:
                self._start(self.model)
            else:
                self.model.initialize(np.random.default_rng(self.config.seed))
            parameters, average, moments = self.model.vector, self.model.vector, (0.0, 0.0)
            self.state = TrainerState()
        else:
            # How texts are divided makes no difference here, and runs of older versions do not say it.
            configs = [{**vars(model.config), "split_sentences": None} for model in (saved.model, self.model)]
            if configs[0] != configs[1] or (saved.raw is None) != (shared.average is None):
                raise ModelError(f"{saved.directory} belongs to another run: its model has other settings")
            parameters, average, moments = saved.raw, saved.model.vector, saved.moments
            parameters = average if parameters is None else parameters
            self.state = saved.state
        self.model.vector[:] = parameters
        for own, moment in zip(shared.moments, moments, strict=True):
            own[:] = moment
        if shared.average is not None:
            shared.average[:] = average
        self.workers.spread()

    def _advance(self, bar: tqdm) -> None:
        """Make update after update, until there is a reason to stop."""
        while self.state.update < self.config.updates:
            if 0 < self.config.patience <= self.state.validations_without_gain:
                break
            if self.interrupted and self.may_stop():
                break
            self._update(bar)
            due = self.state.update % self.config.validate_every == 0
            if due or self.state.update == self.config.updates:
                self._validate(bar)
        if self.interrupted:
            self._save(is_best=False)

    def _roll_back(self, error: DivergenceError, bar: tqdm) -> None:
        """Go back to the last checkpoint made at a validation, once.  Raises the error the second time."""
        if self.state.rollbacks:
            self.run.log({"update": self.state.update + 1, "diverged": str(error)})
            good = self.run.steps()
            told = f"the last good checkpoint is {good[-1]}" if good else "there is no good checkpoint"
            raise DivergenceError(
                f"{error}, again with half the learning rate; {told}; try a lower learning rate or a longer warm-up"
            ) from None
        diverged = self.state.update
        self._start_from(self.run.roll_back())
        self.state.rollbacks += 1
        record = {"from": diverged, "to": self.state.update, "learning_rate_factor": 0.5**self.state.rollbacks}
        self.run.log({"update": self.state.update + 1, "rollback": record})
        bar.reset(self.config.updates)
        bar.update(self.state.update)
        where = f"update {self.state.update}" if self.state.update else "the beginning"
        self._say(bar, f"{error}: back to {where}, and on with half the learning rate")

    def _update(self, bar: tqdm) -> None:
        """Make one step of the optimizer, over `accumulation` batches and all workers."""
        started = time.perf_counter()
        state, config = self.state, self.config
        step = state.update + 1
        sums = self.workers.gradient(self._shares(step))
        norm = self.workers.reduce() / sums.tokens
        self._check_finite(step, math.isfinite(sums.loss) and math.isfinite(norm))
        self.workers.update(step, self._learning_rate(step), clip_scale(norm, config.clip) / sums.tokens)
        state.update = step
        state.tokens += sums.tokens
        seconds = time.perf_counter() - started
        state.seconds += seconds
        for name, value in {**sums._asdict(), "updates": 1, "gradient_norms": norm, "seconds": seconds}.items():
            state.averages[name] = state.averages.get(name, 0) + value
        if step % _LOG_EVERY == 0 or step == config.updates:
            self._log_metrics(step, bar)
        bar.update()

    def _check_finite(self, step: int, finite: bool) -> None:
        if not finite:
            raise DivergenceError(f"training diverged at update {step}: the loss is no longer a finite number")

    def _learning_rate(self, step: int) -> float:
        return self.schedule(step) * 0.5**self.state.rollbacks

    def _shares(self, step: int) -> list[list[tuple[Share, list[int]]]]:
        """Return for each part its share of each of the update's batches, with the seed of its dropout masks."""
        dealt = [self._divided(self._next_batch()) for _ in range(self.config.accumulation)]
        return [
            [(share, [self.config.seed, step, micro, index]) for micro, share in enumerate(own)]
            for index, own in enumerate(zip(*dealt, strict=True))
        ]

    def _divided(self, batch: Any) -> list[Any]:
        """Divide a batch into the parts that workers get."""
        divide = self.task.shards if self.config.parts else self.task.split
        return divide(batch, self.workers.parts)

    def _next_batch(self) -> Any:
        state = self.state
        while True:
            if self._epoch_batches[0] != state.epoch:
                self._epoch_batches = (state.epoch, self.epoch_batches(state.epoch))
            if state.batch < len(self._epoch_batches[1]):
                state.batch += 1
                return self._epoch_batches[1][state.batch - 1]
            state.epoch, state.batch = state.epoch + 1, 0

    def epoch_batches(self, epoch: int) -> Sequence:
        """Return the batches of an epoch; called when it begins."""
        return self.task.batches(epoch, self.config.tokens_per_batch, self.config.seed)

    def may_stop(self) -> bool:
        """Say if a run that is stopped now can be resumed with the same bits."""
        return True

    def validation_loss(self) -> LossSums:
        """Return unsmoothed sums over the validation set, divided among the workers."""
        batches = self.task.validation_batches(self.config.tokens_per_batch)
        dealt = (self._divided(each) for each in batches)
        return self.workers.evaluate(list(zip(*dealt, strict=True)))

    def _validate(self, bar: tqdm) -> None:
        with self.workers.averaged():
            sums = self.validation_loss()
            self._check_finite(self.state.update, math.isfinite(sums.negative_log_likelihood))
            evaluation = self.evaluator.result(self.workers.answers(self.evaluator.pieces()))
        scores = {**self.task.scores(sums), **evaluation.scores}
        state = self.state
        state.scores, state.validated = scores, state.update
        score = -scores["loss"] if self.config.best_by == "loss" else scores[self.config.best_by]
        is_best = state.best is None or score > state.best
        if is_best:
            state.best, state.best_update, state.validations_without_gain = score, state.update, 0
        else:
            state.validations_without_gain += 1
        self.run.log({"update": state.update, "epoch": state.epoch, "validation": scores})
        figures = "  ".join(f"{name} {value:.4g}" for name, value in scores.items() if isinstance(value, float))
        self._say(bar, f"update {state.update}: validation {figures}{'  (best so far)' if is_best else ''}")
        for line in evaluation.samples:
            self._say(bar, f"    {line}")
        self._save(is_best)

    def _save(self, is_best: bool) -> None:
        state, config, shared = self.state, self.config, self.workers.shared
        self.workers.collect()
        vectors = [each for each in (shared.parameters, *shared.moments, shared.average) if each is not None]
        self._check_finite(state.update, all(np.isfinite(vector).all() for vector in vectors))
        with self.workers.averaged() as raw:
            self.run.save(self.model, self.tokenizer, shared.moments, state, raw=raw, is_best=is_best, keep=config.keep)

    def _log_metrics(self, step: int, bar: tqdm) -> None:
        """Log means over the tokens (or what a task counts as such) since the last line."""
        sums = dict(self.state.averages)
        self.state.averages.clear()
        updates, norms, seconds, tokens = map(sums.pop, ("updates", "gradient_norms", "seconds", "tokens"))
        record = {name: value / tokens for name, value in sums.items()}
        record |= {"gradient_norm": norms / updates, "tokens_per_second": round(tokens / seconds, 1)}
        self.run.log(
            {"update": step, "epoch": self.state.epoch, "learning_rate": self._learning_rate(step), **record}
            | {"seconds": round(self.state.seconds, 3)}
        )
        bar.set_postfix_str(f"loss {record['loss']:.3f}, {record['tokens_per_second']:,.0f} tokens/s", refresh=False)

    def _say(self, bar: tqdm, line: str) -> None:
        bar.clear()
        if not self._quiet:
            tell(line)

    def _bar(self) -> tqdm:
        style = {"unit": "update", "dynamic_ncols": True, "smoothing": 0.05}
        return progress_bar(self._quiet, total=self.config.updates, initial=self.state.update, **style)

    def _stop(self, number: int) -> None:
        """Let a signal finish the update, save and leave; a second one leaves at once."""
        if self.interrupted:
            raise KeyboardInterrupt if number == signal.SIGINT else Stopped(number)
        self.interrupted = number
