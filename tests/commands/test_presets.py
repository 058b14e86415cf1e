"""toolkit presets: every preset with its published size."""

import json

from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.presets import PRESETS


def test_every_preset_is_shown_with_its_size(run):
    lines = run("presets").lines
    assert [line.split()[0] for line in lines[1:]] == [*PRESETS]
    for line, config in zip(lines[1:], PRESETS.values(), strict=True):
        for shown in (f"{GPT(config).parameter_count:,}", config.positions, config.activation, str(config.max_length)):
            assert shown in line
    assert "124,439,808" in next(line for line in lines if line.startswith("gpt2 "))


def test_json_has_every_setting(run):
    facts = json.loads(run("presets", "--json").out)
    for name, config in PRESETS.items():
        count = facts[name].pop("parameters")
        assert GPTConfig(**facts[name]) == config
        assert count == GPT(config).parameter_count
