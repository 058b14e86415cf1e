"""Models of Hugging Face's transformers in its own format: config.json and safetensors, in and out."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from toolkit.errors import ConfigError, ModelError
from toolkit.functional.arrays import Array
from toolkit.interop.architectures import Architecture, missing
from toolkit.interop.chat_templates import end_of
from toolkit.interop.encoder_decoders import M2M100, Marian, Pegasus
from toolkit.interop.hugging_face_files import (
    GENERATION_FILE,
    OWN_ENTRY,
    Config,
    ForeignSettings,
    ForeignWeights,
    check_generation,
    generation_notes,
    kept_generation,
    own_settings,
)
from toolkit.interop.language_models import GPT2, OPT, GPTBigCode
from toolkit.interop.mapping import (
    OUTPUT_BIAS,
    read_entries,
    with_written_positions,
    write_entries,
)
from toolkit.interop.rotary_models import Llama, Mistral, Phi3, Qwen2, Qwen3, Starcoder2
from toolkit.interop.vocabulary import Vocabulary, filled_model, in_foreign_order, in_own_order
from toolkit.models.gpt import ABSENT
from toolkit.models.seq2seq import Seq2SeqConfig
from toolkit.models.storage import CONFIG_FILE, WEIGHTS_FILE, is_larger, write_json
from toolkit.nn.module import Model
from toolkit.tokenization.languages import Languages
from toolkit.tokenization.special import BOS, EOS, PAD, SPECIAL_TOKENS

# Of several that compute what a model of ours does, export takes the first.
ARCHITECTURES: tuple[Architecture, ...] = (
    Marian(),
    Pegasus(),
    M2M100(),
    GPT2(),
    Llama(),
    Starcoder2(),
    GPTBigCode(),
    Qwen2(),
    Qwen3(),
    Mistral(),
    Phi3(),
    OPT(),
)

_NEAREST = 2  # classes whose lacks are told where none computes a model

# Waves have no end: ours are written so far at least that encoder-decoders there read what ours read.
_LEAST_POSITIONS = 1024


class HuggingFaceModel:
    """The model in a directory that `save_pretrained` has written, not read yet.

    has_other_end: its texts end with another token than its settings say.

    Raises ModelError where its settings are damaged or have no counterpart, and where its weights are missing, damaged
    or fewer than the settings ask for.
    """

    def __init__(self, directory: Path, has_other_end: bool = False):
        self._has_other_end = has_other_end
        self.settings = ForeignSettings(directory)
        self.architecture = architecture_of(self.settings)
        self.settings.rename(self.architecture.aliases)
        self._directory = directory
        self._weights = weights = ForeignWeights(directory, self.architecture.prefix)
        path = self.settings.path
        try:
            self._config = self.architecture.read_config(self.settings, weights)
        except ConfigError as error:
            raise ModelError(f"{path} describes a model that cannot be: {error}") from None
        # Damaged settings must not ask for more memory than the weights have.
        if is_larger(self._config, len(weights), weights.size):
            raise ModelError(f"{path} describes a larger model than the weights beside it: copy all of it again")

    @property
    def size(self) -> int:
        """Number of its tokens."""
        return self._config.vocab_size

    @property
    def notes(self) -> list[str]:
        """Differences from the model there, in sentences."""
        notes = self.architecture.notes(self.settings, self._weights, self._config)
        notes += [] if self.settings.is_own else generation_notes(self.settings)
        ends = [] if self._has_other_end else self.settings.tokens("eos_token_id")
        several = f"it ends its texts with any of the tokens {ends}, here with {ends[:1]} only"
        return notes + [several] * (len(ends) > 1)

    @property
    def generation(self) -> Mapping[str, Any]:
        """Its authors' settings of decoding, for `write_hugging_face`."""
        return {} if self.settings.is_own else kept_generation(self.settings.decoding)

    def vocabulary(self) -> Vocabulary:
        """Lay out its vocabulary by config.json and generation_config.json, which know no token for unknown text.

        Raises ModelError where an id is none of the model's, or one is missing that it cannot be without.
        """
        if self.settings.is_own:
            return Vocabulary.own(self.size)
        pad, bos, eos = (self.settings.special(role) for role in ("pad", "bos", "eos"))
        return Vocabulary.plan(self.size, pad, None, bos, eos, self._directory)

    def read(
        self,
        vocabulary: Vocabulary,
        begin: bool | None = None,
        template: str = "none",
        languages: Languages | None = None,
    ) -> Model:
        """Read the model in our layout; texts begin with no token that it has not.

        begin: as in `read_hugging_face`. template: of its conversations, where nothing that our export leaves says it.
        languages: those that outputs may be forced to begin with.

        Raises ModelError where weights do not fit, and for what it must or must not write that no search here knows of.
        """
        arrays = self._arrays()
        self.architecture.check_unread(self._weights, self._config)
        config, arrays = in_own_order(self._config, arrays, vocabulary)
        begin = (self.architecture.begins_texts if begin is None else begin) and vocabulary.rows[BOS] >= 0
        config = self.settings.with_own(config, begin=begin, template=template)
        if not self.settings.is_own:
            end = end_of(config)
            beginnings = vocabulary.foreign([*languages.ids.values()]) if languages else ()
            suppressed = _suppressed(vocabulary, end) or ()
            check_generation(self.settings, suppressed, _special_id(vocabulary, end), beginnings)
        return filled_model(config, arrays, str(self._directory))

    def _arrays(self) -> dict[str, Array]:
        """Read our parameters, tokens in the foreign order; an output bias only where it does something."""
        config, architecture, weights = self._config, self.architecture, self._weights
        shape = self.size, config.d_model
        arrays = {table.ours: table.read(weights, shape) for table in architecture.tables[config.tie]}
        if (name := architecture.output_bias) in weights:
            bias = weights[name]
            if bias.size != self.size or np.isnan(bias).any() or bias.max() == np.inf:
                raise ModelError(f"{weights.where(name)}: {name} is damaged: it should be a number for each token")
            if bias.any():  # no entry is below ABSENT
                arrays[OUTPUT_BIAS] = np.maximum(bias.reshape(self.size), np.float32(ABSENT))
        return arrays | read_entries(weights, config, architecture.entries)


def read_hugging_face(
    directory: Path, vocabulary: Vocabulary | None = None, begin: bool | None = None
) -> tuple[Model, Vocabulary]:
    """Read what `save_pretrained` has written -> the model in our layout of the vocabulary, and that layout.

    vocabulary: the layout, if the tokenizer's files say more than config.json. begin: texts of a language model begin
    with BOS; None: as our own export has it, or the class usually does.

    Raises ModelError where the model is damaged or has what the toolkit has not.
    """
    found = HuggingFaceModel(directory)
    vocabulary = vocabulary or found.vocabulary()
    return found.read(vocabulary, begin), vocabulary


def write_hugging_face(
    model: Model,
    directory: Path,
    vocabulary: Vocabulary | None = None,
    half: bool = False,
    generation: object = None,
    came_as: object = None,
    forced_bos: int | None = None,
) -> Architecture:
    """Write a model into an existing directory for `from_pretrained` -> the class that it is there.

    vocabulary: the layout that an imported model came with, which it gets back; None: ours, as it is. half: float16.
    generation: how to decode, as an imported model has brought it along. came_as: the name of the class that it was,
    which it is again if that computes it. forced_bos: what outputs begin with.

    Raises ModelError where no class computes what the model does, and for weights beyond the range of float16.
    """
    own_layout = Vocabulary.own(model.config.vocab_size)
    vocabulary = vocabulary or own_layout
    config, arrays = in_foreign_order(model.config, model.arrays(), vocabulary)
    config, arrays = with_written_positions(config, arrays)
    own = {}
    if vocabulary == own_layout:
        own = {OWN_ENTRY: own_settings(model.config)}
        if isinstance(config, Seq2SeqConfig):
            config = replace(config, max_length=max(config.max_length, _LEAST_POSITIONS))
    architecture = fitting_architecture(config, came_as)
    padding = _special_id(vocabulary, PAD)
    if architecture.padding not in (None, padding):
        where = "has no padding" if padding is None else f"has its padding at {padding}"
        raise ModelError(f"an {architecture.name} has token {architecture.padding} as padding, and this model {where}")
    dtype = np.float16 if half else np.float32
    (directory / WEIGHTS_FILE).write_bytes(_serialised(architecture, config, arrays, dtype))
    ids = {"pad": PAD, "bos": BOS, "eos": EOS} | ({"decoder_start": BOS} if isinstance(config, Seq2SeqConfig) else {})
    special = {f"{role}_token_id": _special_id(vocabulary, ours) for role, ours in ids.items()}
    settings = {
        "architectures": [architecture.name],
        "model_type": architecture.model_type,
        **{name: value for each in architecture.settings for name, value in each.write(config).items()},
        **special,
        "forced_eos_token_id": None,  # at the length limit, an output is cut off
        "dtype": np.dtype(dtype).name,
        "torch_dtype": np.dtype(dtype).name,  # its name before transformers 5
    }
    write_json(directory / CONFIG_FILE, settings | own)
    end = end_of(config)
    limits = {"max_length": model.config.max_length, "suppress_tokens": _suppressed(vocabulary, end)}
    special["eos_token_id"] = _special_id(vocabulary, end)
    if forced_bos is not None:
        special["forced_bos_token_id"] = vocabulary.rows[forced_bos]
    write_json(directory / GENERATION_FILE, special | limits | kept_generation(generation))
    return architecture


def architecture_of(settings: ForeignSettings) -> Architecture:
    """Find the class of a model from elsewhere.  Raises ModelError for one that the toolkit has no counterpart of."""
    if settings.values.get("quantization_config") is not None:
        raise ModelError(f"{settings.path} describes quantised weights: import the model as it was before")
    name, model_type = settings.architecture, settings.values.get("model_type")
    for architecture in ARCHITECTURES:
        if name == architecture.name or (name is None and model_type == architecture.model_type):
            return architecture
    if name is None and model_type is None:
        raise ModelError(
            f"{settings.path} does not say of what class the model is, and no model.bin of CTranslate2 is beside it: "
            "copy the whole model again"
        )
    known = ", ".join(architecture.name for architecture in ARCHITECTURES)
    raise ModelError(f"{settings.path} describes a {name or model_type}: this toolkit reads {known}")


def fitting_architecture(config: Config, first: object = None) -> Architecture:
    """Find the class that computes what a model of ours does.  first: the name of the one that is tried first.

    Raises ModelError where none does, with what the nearest lack.
    """
    found = []
    for architecture in sorted(ARCHITECTURES, key=lambda each: each.name != first):
        if isinstance(config, architecture.config_class):
            wrong = missing(architecture, config)
            if not wrong:
                return architecture
            found.append((architecture.name, wrong))
    nearest = sorted(found, key=lambda each: len(each[1]))[:_NEAREST]
    reasons = "; ".join(f"{name} has no {' and no '.join(wrong)}" for name, wrong in nearest)
    raise ModelError(f"no class of transformers computes what this model does: {reasons}")


def _serialised(architecture: Architecture, config: Config, arrays: Mapping[str, Array], dtype: type) -> bytes:
    """Write the bytes of a safetensors file; transformers reads only those that say that they are PyTorch's."""
    tensors = write_entries(arrays, config, architecture.entries)
    for table in architecture.tables[config.tie]:
        tensors |= table.write(arrays)
    if architecture.output_bias:
        bias = arrays.get(OUTPUT_BIAS)
        tensors[architecture.output_bias] = np.zeros((1, config.vocab_size)) if bias is None else bias[None]
    with np.errstate(over="ignore"):
        stored = {name: np.ascontiguousarray(value, dtype) for name, value in tensors.items()}
    if not all(np.isfinite(value).all() for value in stored.values()):
        raise ModelError("the model has weights that are too large for float16: export it in float32")
    return save(stored, {"format": "pt"})


def _special_id(vocabulary: Vocabulary, ours: int) -> int | None:
    return vocabulary.rows[ours] if vocabulary.rows[ours] >= 0 else None


def _suppressed(vocabulary: Vocabulary, end: int) -> list[int] | None:
    """List foreign ids that our searches never write: of all special tokens but that which ends an output."""
    reserved = {vocabulary.rows[ours] for ours in range(len(SPECIAL_TOKENS))} - {-1, vocabulary.rows[end]}
    return sorted(reserved) or None
