"""The part that all recipes share: settings, a run begun or continued, and the best model scored and exported."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from threadpoolctl import threadpool_limits

from toolkit import display
from toolkit.data.embedded import make_embedded
from toolkit.data.lines import digest_of_files, refuse_pipe
from toolkit.display import short_repr
from toolkit.errors import ConfigError, ToolkitError
from toolkit.files import check_new_directory, new_directory
from toolkit.functional.tuning import fixed_choice
from toolkit.models.reward import ActorCritic
from toolkit.models.storage import load_model, read_json, read_metrics, save_metrics, save_model
from toolkit.nn.module import Model
from toolkit.process import Stopped
from toolkit.tokenization import Tokenizer
from toolkit.training.checkpoint import Checkpoint
from toolkit.training.config import TrainingConfig
from toolkit.training.run import SETTINGS_FILE, Run
from toolkit.training.trainer import Trainer

# What is compared by its loss, and trained on labels as they are, begins with these settings.
BY_LOSS = TrainingConfig(eps=1e-8, label_smoothing=0.0, best_by="loss")
OF_LANGUAGE = replace(BY_LOSS, tokens_per_batch=1024, weight_decay=0.1, beta2=0.95)


@dataclass(frozen=True)
class Recipe:
    """Settings of all recipes; a recipe adds its own, `model` and `training` among them."""

    run: Path = Path("checkpoints/run")
    """Directory of the run: checkpoints, log and settings."""
    resume: bool = False
    """Continue the run where it stopped; with more --training.updates than before, from its end to that one."""
    seeds: tuple[int, ...] = ()
    """Train once with each of these seeds, in RUN/seed-1 and so on; `toolkit runs RUN` compares them."""
    config: Path | None = None
    """Settings that another run has written, RUN/settings.json, as the defaults of this one."""
    export: Path | None = None
    """Directory for the best model by itself: in float16, without what only training needs."""
    quiet: bool = False
    """Print results only."""

    deciding: ClassVar[tuple[str, ...]] = ()  # names of settings on which the defaults of others depend

    __repr__ = short_repr

    @classmethod
    def defaults(cls, given: Mapping[str, Any]) -> Self:
        """Give the defaults, for values of the deciding settings that were given."""
        return cls()

    def check(self) -> None:
        """Raise ConfigError for settings that do not fit together, before hours of training."""
        refuse(
            (
                self.seeds and self.export,
                "--export takes one model and --seeds trains several: export the best by a run of its own",
            ),
            (
                len({*self.seeds}) < len(self.seeds) or any(seed < 0 for seed in self.seeds),
                f"--seeds {' '.join(map(str, self.seeds))}: give different ones, none of them negative",
            ),
        )
        if self.export:
            check_new_directory(self.export, "--export")

    def languages(self) -> tuple[str, ...]:
        """Say in which languages the texts are, as far as the settings tell; of a translator, from which to which."""
        return ()

    def of_each_seed(self) -> Iterator[Self]:
        """Yield the recipe, or with --seeds one for each, in a run of its own below the recipe's."""
        if not self.seeds:
            yield self
        for seed in self.seeds:
            run = self.run / f"seed-{seed}"
            begun = self.resume and run.is_dir()
            yield replace(self, run=run, resume=begun, seeds=(), training=replace(self.training, seed=seed))

    def settings(self, data: Mapping[str, str], leave_out: Sequence[str] = (), **changed: Any) -> dict[str, Any]:
        """Return everything that decides the result, for the run to keep; `data` are digests of what is read."""
        left_out = {*OF_ONE_RUN, *leave_out}
        own = {name: value for name, value in asdict(self).items() if name not in left_out} | changed
        own["training"] = self.training.deciding
        own = {KEPT_AS.get(name, name): _plain(value) for name, value in own.items()}
        return own | {"data": dict(data)}

    def as_given(self, names: Mapping[str, Any]) -> dict[str, Any]:
        """Return these settings as plain values; of a group that was given as a mapping, what stands in it."""
        values = {}
        for name, given in names.items():
            value = getattr(self, name.partition(".")[0])
            inside = {each: getattr(value, each) for each in given} if isinstance(given, Mapping) else value
            values[name] = _plain(asdict(inside) if is_dataclass(inside) else inside)
        return values

    def make_ready(self, paths: Iterable[Path]) -> None:
        """Make those files that belong to an embedded corpus.  Raises DataError for what can be read only once."""
        make_embedded(paths, self.quiet)
        for path in paths:
            refuse_pipe(path)

    def digests(self, files: Mapping[str, Path], **models: Model) -> dict[str, str]:
        """Digest files, made ready first, and the values of models."""
        self.make_ready(files.values())
        digests = {name: digest_of_files([path]) for name, path in files.items()}
        digests |= {name: hashlib.sha256(model.vector).hexdigest() for name, model in models.items()}
        return {name: digest[:16] for name, digest in digests.items()}

    @contextmanager
    def opened(self, settings: dict[str, Any], command: str) -> Iterator[tuple[Run, Checkpoint | None]]:
        """Begin or continue the run, which no other process has within the block -> it, and where it continues from.

        command: what has asked for it, in the user's words; it stands in the metrics of checkpoints.
        A new run whose data turn out to be wrong before `fit` leaves nothing behind. Raises ConfigError where another
        process is at work on it.
        """
        run = Run(self.run, settings, command)
        self._tell_of_other_data(settings["data"])
        with run.held(make=not self.resume):
            try:
                yield run, run.resume() if self.resume else run.create()
            except (ToolkitError, MemoryError):
                run.discard()
                raise

    def fit(self, trainer: Trainer, saved: Checkpoint | None, *told: str, size: str = "") -> None:
        """Train, from a checkpoint or from the beginning; tell these lines before, and how it went after.

        Raises Stopped where a signal ended it: what there is by then is saved.
        """
        idle = trainer.workers.count - trainer.workers.parts
        if idle > 0:
            told = (*told, f"{idle} workers have nothing to do: --training.shards gives a batch more parts")
        self.tell(*told, f"{trainer.model.parameter_count:,} parameters{size}")
        state = trainer.train(saved)
        if trainer.interrupted:
            raise Stopped(trainer.interrupted, f"stopped at update {state.update}, go on with --resume")
        self.tell(f"trained {state.update} updates in {state.seconds:.0f} s; best: update {state.best_update}")

    def finish(
        self,
        run: Run,
        tokenizer: Tokenizer | None,
        score: Callable[[Model, dict[str, Any]], tuple[dict[str, Any], list[str]]],
    ) -> None:
        """Score the best checkpoint as it will be used, record the figures with it, export it, and keep lines to show.

        score: takes the model and its metrics so far, and gives what to add to these, and the lines.
        """
        directory = run.named("best")
        model, metrics = load_model(directory), read_metrics(directory)
        if isinstance(model, ActorCritic):
            model = model.language_model()
        if self.export:
            model.vector[:] = model.vector.astype(np.float16)  # the scores are then those of what is exported
        with fixed_choice(), threadpool_limits(1):  # or the last digits would depend on how many cores are free
            found, lines = score(model, metrics)
        metrics |= ({"languages": list(languages)} if (languages := self.languages()) else {}) | found
        save_metrics(directory, metrics)
        if self.export:
            with new_directory(self.export) as new:
                save_model(model, new, metrics, half=True)
                if tokenizer:
                    tokenizer.save(new)
        run.results = lines

    def _tell_of_other_data(self, now: Mapping[str, str]) -> None:
        """Tell of what is read and is not what `config` was written with: that the file cannot give back."""
        before = read_json(settings_file(self.config)).get("data") if self.config else now
        sides = (before, now) if isinstance(before, dict) else ()
        pairs = zip(sides, reversed(sides), strict=True)  # a file may lie elsewhere now, or have another name
        other = {name for side, there in pairs for name, digest in side.items() if digest not in there.values()}
        if other:
            self.tell(f"the data are not those of {self.config}: {', '.join(sorted(other))}")

    def tell(self, *lines: str) -> None:
        """Say something on the way, on standard error."""
        for line in () if self.quiet else lines:
            display.tell(line)


# Settings that say where and how a run is made, and not what it gives: settings.json has none of them.
OF_ONE_RUN = ("run", "resume", "seeds", "config", "export", "quiet")

KEPT_AS = {"data": "tables", "valid_data": "valid_tables"}  # "data" has the digests


def settings_file(path: Path) -> Path:
    """Find the settings that a run has written: the file itself, or that of a run."""
    return path / SETTINGS_FILE if path.is_dir() else path


def _plain(value: Any) -> Any:
    """Write paths as text."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def figures(scores: Mapping[str, float]) -> str:
    """Write scores as the end of a sentence."""
    return ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in scores.items())


def refuse(*mistakes: tuple[Any, str]) -> None:
    """Raise ConfigError with the first of these sentences whose condition holds."""
    for holds, sentence in mistakes:
        if holds:
            raise ConfigError(sentence)
