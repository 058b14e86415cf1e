"""Classes of transformers: the base of their tables, the settings of config.json, and what they differ in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.errors import ModelError
from toolkit.interop.hugging_face_files import Config, ForeignSettings, ForeignWeights
from toolkit.interop.mapping import Entry, Table, Tensors
from toolkit.models.seq2seq import Seq2SeqConfig

# Activations that we have, by their names in transformers; the first name of each is the one that is written.
_ACTIVATIONS = {
    "relu": ("relu",),
    "gelu": ("gelu", "gelu_python"),
    "gelu_tanh": ("gelu_pytorch_tanh", "gelu_new", "gelu_python_tanh", "gelu_fast", "gelu_accurate"),
    "silu": ("silu", "swish"),
}


@dataclass(frozen=True)
class Setting:
    """An entry of config.json that is a field of our config; one without `ours` is written only.

    default: the value where config.json has none, of the type that it must have, or a function of the fields found so
    far. A whole number must be at least 1. same: other entries, which must be there with the same value or not at all.
    value: what is written, or a function of our config that gives it; the field, if there is one and no function.
    """

    theirs: str
    ours: str | None = None
    default: Any = None
    same: tuple[str, ...] = ()
    value: Any = None

    def read(self, settings: ForeignSettings, found: Mapping[str, Any]) -> dict[str, Any]:
        """Give our fields.  Raises ModelError for a value of another type, and for an activation that we have not."""
        if self.ours is None:
            return {}
        default = self.default(found) if callable(self.default) else self.default
        value = settings.count(self.theirs, default) if type(default) is int else settings.get(self.theirs, default)
        for name in self.same:
            settings.expect(name, value)
        if self.ours == "activation":
            ours = {name: each for each, names in _ACTIVATIONS.items() for name in names}
            if value not in ours:
                what = f"{settings.path} has {self.theirs} {value!r}"
                raise ModelError(f"{what}: this toolkit has no such activation, only {', '.join(ours)}")
            value = ours[value]
        return {self.ours: value}

    def write(self, config: Config) -> dict[str, Any]:
        """Give their entries."""
        value = self.value if self.ours is None else getattr(config, self.ours)
        value = self.value(config) if callable(self.value) else value
        if self.ours == "activation":
            value = _ACTIVATIONS[value][0]
        return dict.fromkeys((self.theirs, *self.same), value)


class Architecture:
    """One class of transformers.  Most of a subclass is data."""

    name: ClassVar[str]
    model_type: ClassVar[str]
    config_class: ClassVar[type]
    prefix: ClassVar[str] = ""  # of the names of its tensors, where files may leave it out
    begins_texts: ClassVar[bool] = True  # its texts usually begin with their begin token
    output_bias: ClassVar[str | None] = None  # the tensor that is added to the scores of tokens
    redundant: ClassVar[tuple[str, ...]] = ()  # ends of the names of tensors that say nothing
    padding: ClassVar[int | None] = None  # the id of padding, if it must have a certain one

    has: ClassVar[set[str]]  # features, as `features` calls them, that its models may have
    needs: ClassVar[Mapping[str, Any]] = {}  # fields of our config, with the only values that its models can have
    fields: ClassVar[Mapping[str, Any]] = {}  # others that no setting says; what may be written, `has` decides
    settings: ClassVar[tuple[Setting, ...]]  # of config.json, in the order in which they are written
    expected: ClassVar[Mapping[str, tuple[Any, ...]]] = {}  # settings that have one of these values if any
    aliases: ClassVar[Mapping[str, str]] = {}  # other names of settings, which config.json may use

    tensors: ClassVar[Tensors]
    tables: ClassVar[Mapping[Any, tuple[Table, ...]]]  # by `config.tie`

    def read_config(self, settings: ForeignSettings, weights: ForeignWeights) -> Config:
        """Give our settings for a model of theirs, its vocabulary as it is there.

        Raises ModelError for settings without a counterpart.
        """
        for name, allowed in self.expected.items():
            settings.expect(name, *allowed)
        found = {**self.fields, **self.needs}
        for each in self.settings:
            found |= each.read(settings, found)
        return self.config_class(**found | self.derived(settings, weights, found))

    def derived(self, settings: ForeignSettings, weights: ForeignWeights, found: Mapping[str, Any]) -> dict[str, Any]:
        """Give the fields of our config that follow from more than one setting.  Raises ModelError as `read_config`."""
        raise NotImplementedError

    def notes(self, settings: ForeignSettings, weights: ForeignWeights, config: Config) -> list[str]:
        """Say in sentences where the model here differs from its config.json."""
        return []

    def entries(self, config: Config, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Entry]:
        """Yield all but the tables of tokens.  shapes: of our parameters."""
        return self.tensors.entries(config, shapes)

    def check_unread(self, weights: ForeignWeights, config: Config) -> None:
        """Raises ModelError for tensors that were not read, unless they say nothing that is not known anyway."""
        unknown = [name for name in sorted(weights.unread) if not self.is_redundant(name, weights, config)]
        if unknown:
            raise ModelError(
                f"{weights.where(unknown[0])} has tensors that a {self.name} of this toolkit has no place for "
                f"({len(unknown)}), such as {unknown[0]}"
            )

    def is_redundant(self, name: str, weights: ForeignWeights, config: Config) -> bool:
        return name.endswith(self.redundant)


def features(config: Config) -> list[str]:
    """Name what a model has that classes of transformers differ in."""
    if isinstance(config, Seq2SeqConfig):
        found = [f"{config.norm_position}-norm", f"{config.positions} positions"]
        return found + ["output_bias"] * config.output_bias
    found = [f"{config.positions} positions", "RMSNorm" if config.norm == "rms" else "LayerNorm", config.activation]
    groups = config.num_key_value_heads or config.num_heads
    if config.num_heads > 1:
        shared = "grouped queries" if groups < config.num_heads else "keys for each head"
        found.append("one head of keys" if groups == 1 else shared)
    if config.has_bias("attention_input"):
        alone = "biases of queries, keys and values alone"
        found.append("biases of attention" if config.has_bias("attention") else alone)
    found += ["biases of feed-forward networks"] * config.has_bias("feed_forward")
    found += ["norms of queries and keys"] * config.qk_norm
    found += ["heads of another width"] * (config.head_dim * config.num_heads not in (0, config.d_model))
    if config.positions == "rotary":
        found += [f"{config.rotary_scaling} frequencies"] * (config.rotary_scaling != "none")
        is_sharp = config.rotary_attention_factor != 1 and config.rotary_scaling != "yarn"
        found += [f"rotary_attention_factor {config.rotary_attention_factor}"] * is_sharp
    return found + ["output_bias"] * config.output_bias


def missing(architecture: Architecture, config: Config) -> list[str]:
    """Name what a model has that no model of the class has."""
    others = [name for name, value in architecture.needs.items() if getattr(config, name) != value]
    wrong = [feature for feature in features(config) if feature not in architecture.has]
    return wrong + [f"{name} {getattr(config, name)}" for name in others]
