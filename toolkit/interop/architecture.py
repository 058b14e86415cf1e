"""What it takes to exchange models of one class: its settings and tensors, and ours, in both directions."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from toolkit.errors import ModelError
from toolkit.interop.entries import Entry, Table
from toolkit.interop.foreign_settings import ForeignSettings
from toolkit.interop.foreign_weights import ForeignWeights
from toolkit.models.gpt import GPTConfig
from toolkit.models.seq2seq import Seq2SeqConfig

Config = Seq2SeqConfig | GPTConfig


class Architecture:
    """One class of Hugging Face's transformers.  The subclasses are the tables; they hold nothing else."""

    name: ClassVar[str]
    model_type: ClassVar[str]
    vocab_size: ClassVar[int]  # where config.json does not say
    prefix: ClassVar[str] = ""  # of the names of its tensors, where files may leave it out
    config_class: ClassVar[type]
    output_bias: ClassVar[str | None] = None  # the tensor that is added to the scores of tokens
    begins_texts: ClassVar[bool] = True  # whether its texts usually begin with their begin token

    def read_config(self, settings: ForeignSettings, weights: ForeignWeights) -> Config:
        """Our settings for a model of theirs, its vocabulary as it is there.

        Raises ModelError for settings without a counterpart.
        """
        raise NotImplementedError

    def write_config(self, config: Config) -> dict[str, Any]:
        """Their settings for a model of ours, but for those that all classes share."""
        raise NotImplementedError

    def misfits(self, config: Config) -> list[str]:
        """What a model of ours has that this class has not, such as "rotary positions"; nothing where it fits."""
        raise NotImplementedError

    def tables(self, config: Config) -> Sequence[Table]:
        raise NotImplementedError

    def entries(self, config: Config) -> Iterator[Entry]:
        """Everything but what has a row for each token."""
        raise NotImplementedError

    def check_unread(self, weights: ForeignWeights, config: Config) -> None:
        """Raises ModelError for tensors that were not read, unless they say nothing that is not known anyway."""
        unknown = [name for name in sorted(weights.unread) if not self.is_redundant(name, weights, config)]
        if unknown:
            raise ModelError(
                f"{weights.where(unknown[0])} has tensors that a {self.name} of this toolkit has no place for "
                f"({len(unknown)}), such as {unknown[0]}"
            )

    def is_redundant(self, name: str, weights: ForeignWeights, config: Config) -> bool:
        return False


# What transformers calls the activations that we have; the first name of each is the one that is written.
_ACTIVATIONS = {
    "relu": ("relu",),
    "gelu": ("gelu", "gelu_python"),
    "gelu_tanh": ("gelu_pytorch_tanh", "gelu_new", "gelu_python_tanh", "gelu_fast", "gelu_accurate"),
    "silu": ("silu", "swish"),
}


def read_activation(settings: ForeignSettings, name: str, default: str) -> str:
    """Our name of an activation.  Raises ModelError for one that we have not."""
    theirs = settings.get(name, default)
    for ours, names in _ACTIVATIONS.items():
        if theirs in names:
            return ours
    known = ", ".join(each for names in _ACTIVATIONS.values() for each in names)
    raise ModelError(f"{settings.path} has {name} {theirs!r}: this toolkit has no such activation, only {known}")


def written_activation(ours: str) -> str:
    return _ACTIVATIONS[ours][0]
