"""Formats of models on disk that earlier versions wrote: what settings and parameters were called, and their order."""

import re
from typing import Any

from toolkit.nn.module import Model, Parameter

FORMATS = (1,)

# Names of settings in format 1, and those of today.
SETTINGS = {
    "width": "d_model",
    "heads": "num_heads",
    "key_value_heads": "num_key_value_heads",
    "feed_forward": "d_ff",
    "norm": "norm_position",
}
_KINDS_OF_NORM = ("layer", "rms")  # which `norm` still names

# Patterns of the names in format 1, applied one after the other, and what stands there now.
_PARAMETERS = (
    (r"^(encoder|decoder)\.(\d+)\.", r"\1.blocks.\2."),
    (r"^(encoder|decoder)_norm\.", r"\1.norm."),
    (r"\btrunk\.(blocks|norm)\.", r"trunk.decoder.\1."),
    (r"^layers\.(\d+)\.", r"encoder.blocks.\1."),  # of an auto-encoder
    (r"^norm\.", "encoder.norm."),
    (r"(blocks\.\d+\.)(attention|cross_attention|feed_forward)\.", r"\1\2.layer."),
    (r"\.around_(\w+)\.norm\.", r".\1.norm."),
    (r"\.layer\.expand\.", ".layer.up."),
    (r"\.layer\.contract\.", ".layer.down."),
    (r"\boutput_bias$", "output.bias"),
)

_IN_BLOCK = re.compile(r".*\b(encoder|decoder)\.blocks\.(\d+)\.\w+\.(norm|layer)\.")


def setting_name(name: str, value: Any) -> str:
    """Return the name of today of a setting by its name and value in format 1."""
    return name if name == "norm" and value in _KINDS_OF_NORM else SETTINGS.get(name, name)


def parameter_name(name: str) -> str:
    """Return the name of today of a parameter by its name in format 1."""
    for pattern, today in _PARAMETERS:
        name = re.sub(pattern, today, name)
    return name


def renamed_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Give the settings of a model of format 1 their names of today; one that has both names keeps the old one."""
    names = {name: setting_name(name, value) for name, value in settings.items()}
    return {name if names[name] in settings else names[name]: value for name, value in settings.items()}


def order_in_vector(model: Model) -> list[Parameter]:
    """Return the parameters of a model in the order in which format 1 had them in one vector.

    In a block, norms came after everything else; the last norms of stacks came after all blocks.
    """
    before = sorted(model.parameters().items(), key=lambda item: (not item[1].decay, *_place(*item)))
    return [parameter for _, parameter in before]


def _place(name: str, parameter: Parameter) -> tuple[bool, ...] | tuple[int, ...]:
    if parameter.decay:
        return ()
    found = _IN_BLOCK.match(name)
    inside = (found[1] == "decoder", int(found[2]), found[3] == "norm") if found else ()
    return name.startswith("critic."), found is None, *inside
