"""The settings of a training run, and the difference between two sets of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args, get_origin

from toolkit import launcher, mpi
from toolkit.display import short_repr
from toolkit.errors import ConfigError
from toolkit.models import older
from toolkit.models.autoencoder import AutoEncoderConfig
from toolkit.models.gpt import GPTConfig
from toolkit.models.seq2seq import Seq2SeqConfig
from toolkit.parallel import available_cores

# Settings by their full names in earlier versions, as old runs have them, and what they are called now.
RENAMED = {
    "ppo.passes": "ppo.ppo_epochs",
    "ppo.beta": "ppo.kl_coef",
    "ppo.value_coefficient": "ppo.vf_coef",
    "ppo.discount": "ppo.gamma",
    "ppo.decay": "ppo.gae_lambda",
    "forced_end": "forced_eos",
} | {f"model.{before}": f"model.{now}" for before, now in older.SETTINGS.items()}
UPDATES = "training.updates"  # the one setting that a run may be resumed with another value of
_MODELS = AutoEncoderConfig, GPTConfig, Seq2SeqConfig
SHARDS = 8  # under MPI, where nobody says another number
_ABSENT = "not set"
_MOST_SHOWN = 6


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a training run."""

    updates: int = 1000  # steps of the optimizer
    tokens_per_batch: int = 2048  # real target tokens in a batch, over all workers
    accumulation: int = 1  # batches whose gradients are summed into one update
    optimizer: Literal["adamw", "adam", "muon"] = "adamw"  # muon: for linear maps, with AdamW for everything else
    learning_rate: float = 1e-3  # the highest; for noam, the factor of the paper's formula
    schedule: Literal["noam", "inverse_sqrt", "cosine", "constant"] = "cosine"
    warmup: int = 100  # updates over which the learning rate rises
    final_learning_rate: float = 0.0  # where cosine ends
    weight_decay: float = 0.01  # on matrices, embeddings included
    beta1: float = 0.9
    beta2: float = 0.98
    eps: float = 1e-9
    eps_inside: bool = False  # ε is added to Adam's second moment, under the root, and not to the root
    clip: float = 1.0  # largest norm of an update's gradient; 0 does not clip
    label_smoothing: float = 0.1
    subword_alpha: float = 0.0  # subword regularisation: 0.1-0.3 for unigram, dropout probability for BPE; 0 off
    ema: float = 0.0  # decay of an average of the weights, 0.999 or so, that is validated and stored; 0 off
    validate_every: int = 200  # updates
    patience: int = 0  # validations without a better score before training stops; 0 never stops early
    best_by: Literal["loss", "bleu", "chrf"] = "chrf"  # the validation score that chooses the best checkpoint
    keep: int = 1  # last checkpoints that are kept, beside the best
    seed: int = 1  # of initial values, data order and dropout
    workers: int = field(default_factory=lambda: min(available_cores(), 4))  # processes; under MPI, all ranks
    shards: int | Literal["ranks"] = field(default_factory=lambda: SHARDS if launcher.launched() else "ranks")
    """Parts that a batch is divided into, a power of two: with a number, no bit of the result depends on how many
    workers or ranks there are; with "ranks", each has one part. A number is slower (see toolkit/training/README.md)."""

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Raise ConfigError where a setting is out of range."""
        check_ranges(self, _RANGES)
        for each in fields(self):
            choices, value = get_args(each.type), getattr(self, each.name)
            if get_origin(each.type) is Literal and value not in choices:
                raise ConfigError(f"{each.name} is {value!r}: it must be one of {', '.join(choices)}")
        if self.shards != "ranks" and not (isinstance(self.shards, int) and self.shards.bit_count() == 1):
            raise ConfigError(f"shards is {self.shards!r}: it must be a power of two, such as {SHARDS}, or ranks")
        if mpi.leading():
            object.__setattr__(self, "workers", mpi.world().size)

    @property
    def parts(self) -> int:
        """The fixed number of parts of a batch; 0 for as many as there are workers."""
        return 0 if self.shards == "ranks" else self.shards

    @property
    def deciding(self) -> dict[str, Any]:
        """Those settings that decide the result."""
        return {name: value for name, value in vars(self).items() if name != ("workers" if self.parts else "shards")}


_RANGES = (
    ("updates tokens_per_batch accumulation validate_every keep workers", lambda x: x >= 1, "be at least 1"),
    ("warmup final_learning_rate weight_decay clip patience seed", lambda x: x >= 0, "not be negative"),
    ("beta1 beta2 label_smoothing subword_alpha ema", lambda x: 0 <= x < 1, "be at least 0 and below 1"),
    ("learning_rate eps", lambda x: x > 0, "be above 0"),
)


def check_ranges(config: Any, ranges: Sequence[tuple[str, Callable[[float], bool], str]]) -> None:
    """Raise ConfigError where a number is not finite or out of range.  ranges: (names, test, what a value must)."""
    for name, value in vars(config).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{name} is {value}: it must be a finite number")
    for names, fits, demand in ranges:
        for name in names.split():
            if not fits(getattr(config, name)):
                raise ConfigError(f"{name} is {getattr(config, name)}: it must {demand}")


def flat_settings(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Name settings in full: {"training": {"seed": 1}} becomes {"training.seed": 1}.  Old names become new ones."""
    flat = {}
    for key, value in settings.items():
        name = prefix + key
        flat |= flat_settings(value, f"{name}.") if isinstance(value, dict) else {_name_today(name, value): value}
    return flat


def _name_today(name: str, value: Any) -> str:
    if name.startswith("model."):
        return f"model.{older.setting_name(name.removeprefix('model.'), value)}"
    return RENAMED.get(name, name)


def _added(now: dict[str, Any]) -> dict[str, Any]:
    """Take the settings of a model that are at their defaults: what was added to them later began like that."""
    defaults = {(f"model.{each.name}", each.default) for kind in _MODELS for each in fields(kind)}
    return {name: value for name, value in now.items() if name.startswith("model.") and (name, value) in defaults}


def describe_changes(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Describe what differs between two sets of settings, as the end of a sentence; empty where nothing does.

    What is under "data" are digests of contents, whose values say nothing to a reader.
    """
    before, now = flat_settings(before), flat_settings(now)
    if any(name.startswith("model.") for name in before):
        before = _added(now) | before
    # A setting that an older version did not have is no change where it is empty or off, or of a model by default.
    names = sorted(before.keys() | now.keys())
    changed = [name for name in names if (before.get(name) or None) != (now.get(name) or None)]
    data = [name.removeprefix("data.") for name in changed if name.startswith("data.")]
    others = [name for name in changed if not name.startswith("data.")]
    shown = [f"{name}: {before.get(name, _ABSENT)} → {now.get(name, _ABSENT)}" for name in others[:_MOST_SHOWN]]
    if len(others) > _MOST_SHOWN:
        shown.append(f"and {len(others) - _MOST_SHOWN} more")
    parts = [f"other settings ({', '.join(shown)})"] if others else []
    parts += [f"other data (the data has changed since: {', '.join(data)})"] if data else []
    return " and ".join(parts)
