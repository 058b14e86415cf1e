"""The settings of a training run."""

import math
import os
from dataclasses import dataclass, field
from typing import Literal

from toolkit.errors import ConfigError
from toolkit.training.schedule import SCHEDULES


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained."""

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
    workers: int = field(default_factory=lambda: min(available_cores(), 4))  # processes; the results depend on it

    def __post_init__(self) -> None:
        """Raises ConfigError where a setting is out of range."""
        for name, value in vars(self).items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ConfigError(f"{name} is {value}: it must be a finite number")
        for name in ("updates", "tokens_per_batch", "accumulation", "validate_every", "keep", "workers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: it must be at least 1")
        for name in ("warmup", "final_learning_rate", "weight_decay", "clip", "patience", "seed"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} is {getattr(self, name)}: it must not be negative")
        for name in ("beta1", "beta2", "label_smoothing", "subword_alpha", "ema"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}: it must be at least 0 and below 1")
        for name in ("learning_rate", "eps"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} is {getattr(self, name)}: it must be above 0")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name} is {getattr(self, name)!r}: it must be one of {', '.join(choices)}")


_CHOICES = {"optimizer": ("adamw", "adam", "muon"), "schedule": SCHEDULES, "best_by": ("loss", "bleu", "chrf")}
