"""How the authors of a model from elsewhere decode with it, as generation_config.json says.

Decoders here begin with settings of their own. So what is only a matter of taste, such as beams or a temperature, is
named at import with the flags that do the same, kept, and written again on export. What a model must or must not write
whoever decodes is refused, unless nothing here writes it anyway.
"""

from collections.abc import Collection, Mapping
from typing import Any

from toolkit.errors import ModelError
from toolkit.interop.foreign_settings import ForeignSettings

# Settings with a flag here, by their names there, which in most cases is the same, and what they are if nothing is
# said. early_stopping has no default: ours ends a search by a rule of its own.
_FLAGS: dict[str, tuple[str, Any]] = {
    "num_beams": ("--num-beams", 1),
    "early_stopping": ("--early-stopping", False),
    "length_penalty": ("--length-penalty", 1.0),
    "do_sample": ("--do-sample", False),
    "temperature": ("--temperature", 1.0),
    "top_k": ("--top-k", 50),
    "top_p": ("--top-p", 1.0),
    "min_p": ("--min-p", 0.0),
    "repetition_penalty": ("--repetition-penalty", 1.0),
    "no_repeat_ngram_size": ("--no-repeat-ngram-size", 0),
    "min_new_tokens": ("--min-new-tokens", 0),
    "max_new_tokens": ("--max-new-tokens", None),
    "num_return_sequences": ("--num-return-sequences", 1),
}
# Lengths that count what an output begins with, too: the prompt, or the one token that every translation has.
_LENGTHS: dict[str, tuple[str, Any]] = {
    "min_length": ("--min-new-tokens", 0),
    "max_length": ("--max-new-tokens", 20),
}
# What only sampling, which is off unless it is asked for, looks at.
_SAMPLING = {"typical_p": 1.0, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0, "top_h": None}
# What changes every output and is not in any flag, with the values that do nothing.
_WITHOUT_COUNTERPART: dict[str, tuple[Any, ...]] = {
    "forced_bos_token_id": (),
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
_FORCED_END = "forced_eos_token_id"


def check_generation(settings: ForeignSettings, never_written: Collection[int], end: int | None) -> None:
    """Raises ModelError for what a model must or must not write and no search here knows of.

    never_written: foreign ids that no search here writes. end: the foreign id that ends an output.
    """
    for name, idle in _WITHOUT_COUNTERPART.items():
        if settings.generation(name) not in (None, *idle):
            raise _refusal(settings, name, "which decides what every output is, and which no search here knows")
    if settings.generation(_FORCED_END) not in (None, end, [end]):
        raise _refusal(settings, _FORCED_END, "but here only the end mark is forced at the length limit")
    for name in ("suppress_tokens", "begin_suppress_tokens"):
        if not _are_ids(settings.generation(name) or [], never_written):
            raise _refusal(settings, name, "which forbids tokens that are written here: --bad-words does so, by text")
    words = settings.generation("bad_words_ids") or []
    if not isinstance(words, list) or not all(_are_ids(each, never_written) for each in words):
        raise _refusal(settings, "bad_words_ids", "which forbids words that are written here: --bad-words does so")


def generation_notes(settings: ForeignSettings) -> list[str]:
    """How the authors decode where that is not how it begins here, in a sentence with our flags."""
    found = []
    for name, (flag, usual) in (_FLAGS | _LENGTHS).items():
        value = settings.generation(name)
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
        if settings.generation(name) not in (None, usual):
            found.append(f"{name} {settings.generation(name)!r:.20}, which has no flag here")
    return [f"its authors decode with {', '.join(found)}: no model here brings such settings along"] if found else []


def kept_generation(settings: ForeignSettings) -> dict[str, Any]:
    """What export writes again, by the names there."""
    names = (*_FLAGS, *_LENGTHS, *_SAMPLING, _FORCED_END)
    return exported_generation({name: settings.generation(name) for name in names})


def exported_generation(kept: Any) -> Mapping[str, Any]:
    """Of what import has kept, what can be written: no more than names that are known, each with one value."""
    names = {*_FLAGS, *_LENGTHS, *_SAMPLING, _FORCED_END}
    values = kept if isinstance(kept, dict) else {}
    return {
        name: value for name, value in values.items() if name in names and isinstance(value, bool | int | float | str)
    }


def _refusal(settings: ForeignSettings, name: str, why: str) -> ModelError:
    value = f"{settings.generation(name)!r:.60}"
    return ModelError(
        f"{settings.generation_path} has {name} {value}, {why}: take it out to import the model without it"
    )


def _are_ids(found: Any, allowed: Collection[int]) -> bool:
    """Whether a list has no other ids than these, and no sequence of several."""
    return isinstance(found, list) and all(type(each) is int and each in allowed for each in found)
