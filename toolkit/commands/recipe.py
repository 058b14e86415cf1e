"""How a recipe runs: flags from its dataclass, mistakes told in one sentence, a run that is begun or continued."""

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from toolkit import display
from toolkit.cli import reported
from toolkit.commands.flags import parse_flags
from toolkit.errors import ConfigError, ToolkitError
from toolkit.files import check_new_directory, new_directory
from toolkit.models.storage import save_model
from toolkit.nn.module import Model
from toolkit.process import Stopped
from toolkit.tokenization import Tokenizer
from toolkit.training.checkpoint import Checkpoint
from toolkit.training.run import Run
from toolkit.training.trainer import Trainer

T = TypeVar("T")


def run_recipe(
    defaults: type[T] | Callable[[Sequence[str]], T], main: Callable[[T], None], arguments: Sequence[str] | None = None
) -> None:
    """Read the flags of a recipe and call `main`; ends the process with the command line's exit codes.

    defaults: the recipe's class, or a function that gives an instance with the defaults for the words that were given.
    arguments: by default those of the process.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    program = sys.argv[0]

    def action() -> None:
        start = defaults if isinstance(defaults, type) else defaults(arguments)
        main(parse_flags(start, program, arguments))

    sys.exit(reported(action))


def words_after(flags: Sequence[str], arguments: Sequence[str]) -> dict[str, str]:
    """Of these flags, those that are among the arguments, each with the first word after it.

    Raises ConfigError where there is none: an empty list would mean what is embedded, and whoever gives the flag does
    not mean that.
    """
    words = [word for argument in arguments for word in argument.split("=", 1)]
    found = {flag: word for flag, word in pairwise([*words, ""]) if flag in flags}
    for flag, word in found.items():
        if not word or word.startswith("--"):
            raise ConfigError(f"{flag} needs a value")
    return found


def for_each_seed(recipe: Any, train: Callable[[Any], None]) -> None:
    """Call `train` once, or with --seeds once for each, in a run of its own below the recipe's."""
    for seed in recipe.seeds:
        run = recipe.run / f"seed-{seed}"
        begun = recipe.resume and run.is_dir()
        train(replace(recipe, run=run, resume=begun, seeds=(), training=replace(recipe.training, seed=seed)))
    if not recipe.seeds:
        train(recipe)


def check_results(seeds: Sequence[int], export: Path | None) -> None:
    """Raises ConfigError for what would otherwise be refused when hours of training are over."""
    if seeds and export:
        raise ConfigError("--export takes one model and --seeds trains several: export the best by a run of its own")
    if len({*seeds}) < len(seeds) or any(seed < 0 for seed in seeds):
        raise ConfigError(f"--seeds {' '.join(map(str, seeds))}: give different ones, none of them negative")
    if export:
        check_new_directory(export, "--export")


@contextmanager
def opened(path: Path, settings: dict[str, Any], resume: bool) -> Iterator[tuple[Run, Checkpoint | None]]:
    """A run, begun or continued, and the checkpoint that it continues from; no other process has it within the block.

    Raises ConfigError where another process is at work on it.
    """
    run = Run(path, settings, shlex.join(["python", *sys.argv]))
    with run.held(make=not resume):
        yield run, run.resume() if resume else run.create()


@contextmanager
def preparing(run: Run) -> Iterator[None]:
    """Get ready to train within the block: a new run whose data turn out to be wrong there leaves nothing behind."""
    try:
        yield
    except (ToolkitError, MemoryError):
        run.discard()
        raise


def carry_out(trainer: Trainer, saved: Checkpoint | None, quiet: bool) -> None:
    """Train, from a checkpoint or from the beginning, and say how it went.

    Raises Stopped where a signal ended it: what there is by then is saved.
    """
    state = trainer.train(saved)
    if trainer.interrupted:
        raise Stopped(trainer.interrupted, f"stopped at update {state.update}, go on with --resume")
    told = f"trained {state.update} updates in {state.seconds:.0f} s; best: update {state.best_update}"
    tell(quiet, told)


def export(directory: Path, model: Model, metrics: dict[str, Any], tokenizer: Tokenizer) -> None:
    """Write the model by itself in float16: only what a reader of it needs."""
    with new_directory(directory) as new:
        save_model(model, new, metrics, half=True)
        tokenizer.save(new)


def tell(quiet: bool, *lines: str) -> None:
    """Say something on the way, on standard error."""
    if not quiet:
        for line in lines:
            display.tell(line)
