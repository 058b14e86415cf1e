"""The files of a model of transformers: config.json, generation_config.json, and weights as safetensors.

Types are checked, and nothing unknown is passed over. Decoders here begin with settings of their own. Those that a
model's authors decode with are named at import, with the flags that do the same, kept, and written again on export, if
they are a matter of taste, such as beams or a temperature. A rule on tokens that must or must not be written, whoever
decodes, is refused, unless it makes no difference here.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from toolkit.errors import ConfigError, ModelError
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPTConfig
from toolkit.models.seq2seq import Seq2SeqConfig
from toolkit.models.storage import CONFIG_FILE, WEIGHTS_FILE, read_json
from toolkit.tensors import DTYPES, Tensor, read_tensors, reading
from toolkit.untrusted import ANYTHING, LIKE, OBJECT, Record, Schema, Text, UnfitError, check, shown

Config = Seq2SeqConfig | GPTConfig

GENERATION_FILE = "generation_config.json"

# Where our export keeps the settings that the other library has no name for; it hands them on untouched.
OWN_ENTRY = "toolkit"
_OWN_SETTINGS = ("max_length", "ignore_case", "split_sentences", "begin", "template", "fixed_output_bias")

_ENCODER_DECODERS = ("marian", "pegasus", "m2m_100")  # by their model_type

T = TypeVar("T", int, float, bool, str)
LM_HEAD = "lm_head.weight"  # the output table in all classes


class ForeignSettings:
    """The settings of a directory.  Raises ModelError where there is no config.json, or where it is damaged."""

    def __init__(self, directory: Path):
        self.directory, self.path = directory, directory / CONFIG_FILE
        self.values = self.decoding = read_json(self.path)  # of older directories, config.json says both
        self.decoding_path = self.path
        if (directory / GENERATION_FILE).exists():
            self.decoding_path = directory / GENERATION_FILE
            self.decoding = read_json(self.decoding_path)

    def rename(self, aliases: Mapping[str, str]) -> None:
        """Take settings under other names of theirs.  Raises ModelError where the two say different things."""
        for alias, name in aliases.items():
            value, own = self.values.get(alias), self.values.get(name)
            if own is None and value is not None:
                self.values[name] = value
            elif value not in (None, own):
                raise ModelError(
                    f"{self.path} has {name} {shown(own)} and {alias} {shown(value)}, which are two "
                    "names of one setting: leave out the one that is wrong"
                )

    @property
    def architecture(self) -> str | None:
        """Class of the model, as `architectures` names it."""
        names = self.values.get("architectures")
        return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None

    @property
    def is_own(self) -> bool:
        """True if our export has written the model: its tokens are in our order."""
        return self.values.get(OWN_ENTRY) is not None

    def with_own(self, config: Config, **usual: Any) -> Config:
        """Set what no other library has in a config: as our export has left it, or as it usually is.

        Raises ModelError where they are damaged.
        """
        values = usual | self.section(OWN_ENTRY)
        known = {name: values[name] for name in _OWN_SETTINGS if hasattr(config, name) and name in values}
        if any(type(value) is not type(getattr(config, name)) for name, value in known.items()):
            raise ModelError(f"{self.path} is damaged: {OWN_ENTRY!r} has settings of a wrong type")
        try:
            return replace(config, **known)
        except ConfigError as error:
            raise ModelError(f"{self.path} is damaged: {error}") from None

    @property
    def is_encoder_decoder(self) -> bool:
        return bool(self.values.get("is_encoder_decoder")) or self.values.get("model_type") in _ENCODER_DECODERS

    def get(self, name: str, default: T) -> T:
        """Give a setting, of the type of its default, which stands for one that is missing or null."""
        value = self.values.get(name)
        return default if value is None else self.typed(name, value, default)

    def count(self, name: str, default: int) -> int:
        """Give a setting as `get` does, for numbers that cannot be below 1."""
        value = self.get(name, default)
        if value < 1:
            raise ModelError(f"{self.path} is damaged: {name} is {value}, but must be at least 1")
        return value

    def section(self, name: str) -> dict[str, Any]:
        """Give a setting that is an object of its own; empty where it is missing."""
        value = self.values.get(name)
        if value is None:
            return {}
        return self._checked(name, value, OBJECT)

    def special(self, role: str) -> int | None:
        """Give the id of the special token "pad", "unk", "bos" or "eos", of several the first.

        None where there is none, for which some models write a negative number. Raises ModelError where there is none
        for the outputs of an encoder-decoder to begin with.
        """
        starts = role == "bos" and self.is_encoder_decoder
        for name in ("decoder_start_token_id", "bos_token_id") if starts else (f"{role}_token_id",):
            ids = self.tokens(name)
            if ids and ids[0] >= 0:
                return ids[0]
        if starts:
            raise ModelError(f"{self.path} has no decoder_start_token_id: every output must begin with a token")
        return None

    def tokens(self, name: str) -> list[int]:
        """Give all the ids of a special token, generation_config.json's before config.json's."""
        value = self.decoding.get(name)
        value = self.values.get(name) if value is None else value
        several = value if isinstance(value, list) else [] if value is None else [value]
        return [self.typed(name, each, 0) for each in several]

    def expect(self, name: str, *allowed: Any) -> None:
        """Raises ModelError where a setting is given and is none of those that the toolkit has a counterpart for."""
        value = self.values.get(name)
        if name in self.values and not any(type(value) is type(each) and value == each for each in allowed):
            instead = " or ".join(map(shown, allowed))
            raise ModelError(
                f"{self.path} has {name} {shown(value)}, which no model of this toolkit has: it must be {instead}"
            )

    def typed(self, name: str, value: Any, default: T) -> T:
        """Give a value under this name, in the type of a default.  Raises ModelError for one of another type."""
        return type(default)(self._checked(name, value, LIKE[type(default)]))

    def _checked(self, name: str, value: Any, schema: Schema) -> Any:
        try:
            return check(value, schema)
        except UnfitError as error:
            raise ModelError(f"{self.path} is damaged: {error.within(name)}") from None


def own_settings(config: Config) -> dict[str, Any]:
    """Give what `ForeignSettings.with_own` reads, to be left as OWN_ENTRY."""
    return {name: getattr(config, name) for name in _OWN_SETTINGS if hasattr(config, name)}


# Settings with a flag here of the same name, and their values where nothing is said. early_stopping has no default:
# ours ends a search by a rule of its own.
_FLAGS: dict[str, Any] = {
    "num_beams": 1,
    "early_stopping": False,
    "length_penalty": 1.0,
    "do_sample": False,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "min_new_tokens": 0,
    "max_new_tokens": None,
    "num_return_sequences": 1,
}
# Lengths that count what an output begins with, too: the prompt, or the one token that every translation has.
_LENGTHS: dict[str, tuple[str, Any]] = {
    "min_length": ("--min-new-tokens", 0),
    "max_length": ("--max-new-tokens", 20),
}
# Settings that only sampling looks at, which is off unless it is asked for.
_SAMPLING = {"typical_p": 1.0, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0, "top_h": None}
# Settings that change every output and have no flag, with the values that do nothing.
_WITHOUT_COUNTERPART: dict[str, tuple[Any, ...]] = {
    "forced_decoder_ids": (),
    "sequence_bias": ({}, []),
    "encoder_repetition_penalty": (1.0,),
    "encoder_no_repeat_ngram_size": (0,),
    "exponential_decay_length_penalty": (),
    "guidance_scale": (1.0,),
    "stop_strings": ([], ""),
    "token_healing": (False,),
    "watermarking_config": (),
    "num_beam_groups": (1,),
    "penalty_alpha": (0.0,),
    "dola_layers": (),
    "force_words_ids": ([],),
    "constraints": ([],),
}
_FORCED_BEGIN, _FORCED_END = "forced_bos_token_id", "forced_eos_token_id"
_KEPT = (*_FLAGS, *_LENGTHS, *_SAMPLING, _FORCED_END)


def check_generation(
    settings: ForeignSettings, never_written: Collection[int], end: int | None, beginnings: Collection[int] = ()
) -> None:
    """Raises ModelError for what a model must or must not write and no search here knows of.

    never_written: foreign ids that no search here writes. end: the foreign id that ends an output. beginnings: those
    that an output may be made to begin with.
    """
    if settings.decoding.get(_FORCED_BEGIN) not in (None, *beginnings):
        raise _refusal(settings, _FORCED_BEGIN, "but here outputs are forced to begin with a language only")
    for name, idle in _WITHOUT_COUNTERPART.items():
        if settings.decoding.get(name) not in (None, *idle):
            raise _refusal(settings, name, "which decides what every output is, and which no search here knows")
    if settings.decoding.get(_FORCED_END) not in (None, end, [end]):
        raise _refusal(settings, _FORCED_END, "but here only the end mark is forced at the length limit")
    for name in ("suppress_tokens", "begin_suppress_tokens"):
        if not _are_ids(settings.decoding.get(name) or [], never_written):
            raise _refusal(settings, name, "which forbids tokens that are written here: --bad-words does so, by text")
    words = settings.decoding.get("bad_words_ids") or []
    if not isinstance(words, list) or not all(_are_ids(each, never_written) for each in words):
        raise _refusal(settings, "bad_words_ids", "which forbids words that are written here: --bad-words does so")


def generation_notes(settings: ForeignSettings) -> list[str]:
    """Say in a sentence, with our flags, how the authors decode where decoders here begin otherwise."""
    found = []
    flags = {name: (f"--{name.replace('_', '-')}", usual) for name, usual in _FLAGS.items()}
    for name, (flag, usual) in (flags | _LENGTHS).items():
        value = settings.decoding.get(name)
        if value in (None, usual) or not isinstance(value, bool | int | float | str):
            continue
        if name in _LENGTHS and not settings.is_encoder_decoder:
            found.append(f"{name} {value}, prompt included")
            continue
        value = value - 1 if name in _LENGTHS and type(value) is int else value
        if name == "do_sample":
            found += [flag] * (value is True and settings.is_encoder_decoder)  # language models do so anyway
            continue
        if name == "num_beams" and not settings.is_encoder_decoder:
            found.append("--no-do-sample")
        found.append(f"{flag} {value}")
    for name, usual in _SAMPLING.items():
        if settings.decoding.get(name) not in (None, usual):
            found.append(f"{name} {settings.decoding.get(name)!r:.20}, which has no flag here")
    return [f"its authors decode with {', '.join(found)}: no model here brings such settings along"] if found else []


def kept_generation(settings: Any) -> dict[str, Any]:
    """Take the settings of decoding that import keeps and export writes again: known names, each with one value."""
    found = settings if isinstance(settings, dict) else {}
    return {name: found[name] for name in _KEPT if isinstance(found.get(name), bool | int | float | str)}


def _refusal(settings: ForeignSettings, name: str, why: str) -> ModelError:
    value = f"{settings.decoding.get(name)!r:.60}"
    return ModelError(f"{settings.decoding_path} has {name} {value}, {why}: take it out to import the model without it")


def _are_ids(found: Any, allowed: Collection[int]) -> bool:
    """True for a list that has no other ids than these, and no sequence of several."""
    return isinstance(found, list) and all(type(each) is int and each in allowed for each in found)


INDEX_FILE = f"{WEIGHTS_FILE}.index.json"

# The names of tensors, and the file beside it that holds each.
_INDEX = Record(
    {"weight_map": Record(others=Text(255, r"[^/\\]*[^/\\.][^/\\]*", "the name of a file beside it"))},
    needed=("weight_map",),
    others=ANYTHING,
)

# Formats that can run code when they are opened, or that need the library they come from.
_OTHERS = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack", "model.ckpt.index")


class ForeignWeights(Mapping[str, Array]):
    """The tensors of a model directory by name, in safetensors files, as float32, each read when it is asked for.

    prefix: put before every name where no name begins with it, because some files leave it out. Names in `unread` have
    not been asked for.

    Raises ModelError where there are no weights, or they are damaged, quantised, or in another format.
    """

    def __init__(self, directory: Path, prefix: str = ""):
        self.directory = directory
        places: dict[str, tuple[Path, Tensor]] = {}
        for path in _files(directory):
            places |= {name: (path, tensor) for name, tensor in _tensors(path).items()}
        if prefix and not any(name.startswith(prefix) for name in places):
            places = {f"{prefix}{name}": place for name, place in places.items()}
        self._places = places
        self.unread = set(places)

    def __getitem__(self, name: str) -> Array:
        path, tensor = self._places[name]
        self.unread.discard(name)
        try:
            return tensor.read().astype(np.float32, copy=False)
        except UnfitError as error:
            raise ModelError(f"{path}: {name} {error.problem}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def shape(self, name: str) -> tuple[int, ...]:
        return self._places[name][1].shape

    def where(self, name: str) -> Path:
        """The file that holds a tensor, or would."""
        return self._places[name][0] if name in self._places else self.directory / WEIGHTS_FILE

    def tensor(self, name: str, shape: tuple[int, ...] | None = None, needed: bool = True) -> Array | None:
        """Give a tensor of this shape; None where it is missing and not needed.

        Raises ModelError where it is missing and needed, of another shape, or not finite.
        """
        where = self.where(name)
        if name not in self:
            if not needed:
                return None
            raise ModelError(f"{where.parent} lacks {name}, which a model of its kind has: copy the whole model again")
        if shape is not None and self.shape(name) != shape:
            raise ModelError(f"{where}: {name} has shape {self.shape(name)}, by config.json it should be {shape}")
        tensor = self[name]
        if not np.isfinite(tensor).all():
            raise ModelError(f"{where}: {name} contains values that are not finite numbers")
        return tensor

    def mark_read(self, names: Collection[str]) -> None:
        """Count tensors as read which say nothing that another has not said."""
        self.unread.difference_update(names)

    def are_equal(self, *names: str) -> bool:
        """True if those of these tables that there are have the same numbers."""
        first, *others = [name for name in names if name in self] or names[:1]
        return all(self.shape(name) == self.shape(first) and np.array_equal(self[name], self[first]) for name in others)

    @property
    def size(self) -> int:
        """Numbers in all tensors together that can be read."""
        return sum(math.prod(tensor.shape) for _, tensor in self._places.values() if tensor.dtype in DTYPES)


def _files(directory: Path) -> list[Path]:
    """List the files that hold the weights.  Raises ModelError where there are none that can be read."""
    if (directory / WEIGHTS_FILE).exists():
        return [directory / WEIGHTS_FILE]
    if (directory / INDEX_FILE).exists():
        names = read_json(directory / INDEX_FILE, schema=_INDEX)["weight_map"]
        return [directory / name for name in sorted(set(names.values()))]
    for name in _OTHERS:
        if (directory / name).exists():
            raise ModelError(
                f"{directory} has its weights in {name}, which this toolkit does not open: convert them to "
                f"{WEIGHTS_FILE} first, with from_pretrained and save_pretrained of transformers"
            )
    raise ModelError(f"{directory} has no weights: there is no {WEIGHTS_FILE}, nor {INDEX_FILE}")


def _tensors(path: Path) -> dict[str, Tensor]:
    with reading(path, f"{path} does not exist: copy the whole model again"):
        return read_tensors(path)


def untied_note(name: str, setting: str) -> str:
    """Say that two tables differ which the settings call one."""
    return f"{name} is a table of its own, though {setting} says otherwise: it is read as it is"
