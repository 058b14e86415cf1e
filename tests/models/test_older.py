"""Models and checkpoints of format 1: what they called parameters and settings, and how they lay in one vector."""

import json
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.checks import random_model, small_config, small_gpt_config
from toolkit.errors import ModelError
from toolkit.models import older
from toolkit.models.autoencoder import AutoEncoderConfig
from toolkit.models.reward import ActorCriticConfig, RewardConfig
from toolkit.models.storage import load_model, new_model, save_model
from toolkit.nn.module import Model
from toolkit.training.checkpoint import TrainerState, read_checkpoint, write_training
from toolkit.training.config import describe_changes

GPT_SETTINGS = asdict(small_gpt_config(positions="learned", bias=True, output_bias=True, tie=False, layers=1))
CONFIGS = {
    "seq2seq": small_config(tie="none", positions="learned", output_bias=True),
    "post-norm": small_config(norm_position="post"),
    "gpt": small_gpt_config(norm="rms", activation="swiglu", num_key_value_heads=2),
    "reward": RewardConfig(**GPT_SETTINGS),
    "actor-critic": ActorCriticConfig(**GPT_SETTINGS),
    "auto-encoder": AutoEncoderConfig(d_model=8, num_heads=2, d_ff=12),
}

# The parameters without weight decay of a model with one block on each side, in the order of its vector in format 1.
VECTOR = [
    "encoder.0.attention.query_key_value.bias",
    "encoder.0.attention.output.bias",
    "encoder.0.feed_forward.expand.bias",
    "encoder.0.feed_forward.contract.bias",
    "encoder.0.around_attention.norm.gain",
    "encoder.0.around_attention.norm.bias",
    "encoder.0.around_feed_forward.norm.gain",
    "encoder.0.around_feed_forward.norm.bias",
    "decoder.0.attention.query_key_value.bias",
    "decoder.0.attention.output.bias",
    "decoder.0.cross_attention.query.bias",
    "decoder.0.cross_attention.key_value.bias",
    "decoder.0.cross_attention.output.bias",
    "decoder.0.feed_forward.expand.bias",
    "decoder.0.feed_forward.contract.bias",
    "decoder.0.around_attention.norm.gain",
    "decoder.0.around_attention.norm.bias",
    "decoder.0.around_cross_attention.norm.gain",
    "decoder.0.around_cross_attention.norm.bias",
    "decoder.0.around_feed_forward.norm.gain",
    "decoder.0.around_feed_forward.norm.bias",
    "encoder_norm.gain",
    "encoder_norm.bias",
    "decoder_norm.gain",
    "decoder_norm.bias",
    "output_bias",
]


def name_before(name: str, kind: str) -> str:
    """Return what format 1 called a parameter."""
    stack = "layers" if kind == "autoencoder" else r"\1"
    for pattern, before in (
        (r"\.(attention|cross_attention|feed_forward)\.norm\.", r".around_\1.norm."),
        (r"\.layer\.up\.", ".expand."),
        (r"\.layer\.down\.", ".contract."),
        (r"\.layer\.", "."),
        (r"trunk\.decoder\.", "trunk."),
        (r"^(encoder|decoder)\.blocks", stack),
        (r"^encoder\.norm\.", "norm." if kind == "autoencoder" else "encoder_norm."),
        (r"^decoder\.norm\.", "decoder_norm."),
        (r"\boutput\.bias$", "output_bias"),
    ):
        name = name if name.endswith("attention.output.bias") else re.sub(pattern, before, name)
    return name


def write_before(model: Model, directory: Path) -> None:
    """Write a model as format 1 had it."""
    save_model(model, directory)
    config = json.loads((directory / "config.json").read_text())
    names = {"d_model": "width", "num_heads": "heads", "num_key_value_heads": "key_value_heads", "d_ff": "feed_forward"}
    names["norm_position"] = "norm"
    config |= {"format": 1, "model": {names.get(name, name): value for name, value in config["model"].items()}}
    (directory / "config.json").write_text(json.dumps(config))
    arrays = load_file(directory / "model.safetensors")
    save_file({name_before(name, model.kind): array for name, array in arrays.items()}, directory / "model.safetensors")


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def model(request: pytest.FixtureRequest) -> Model:
    return random_model(request.param, np.random.default_rng(0), np.float32)


def test_a_model_of_format_1_is_the_model_that_it_was(model: Model, tmp_path: Path) -> None:
    write_before(model, tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.config == model.config
    assert loaded.vector.tobytes() == model.vector.tobytes()


def test_a_setting_with_both_names_is_refused(tmp_path: Path) -> None:
    model = random_model(CONFIGS["gpt"], np.random.default_rng(0), np.float32)
    write_before(model, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["model"]["d_model"] = config["model"]["width"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="damaged or from another version"):
        load_model(tmp_path)


def test_the_order_of_the_vector_in_format_1() -> None:
    model = new_model(small_config(encoder_layers=1, decoder_layers=1, output_bias=True))
    names = {parameter: name for name, parameter in model.parameters().items()}
    ordered = older.order_in_vector(model)
    assert [names[each] for each in ordered if not each.decay] == [older.parameter_name(name) for name in VECTOR]
    decayed = [each for each in ordered if each.decay]
    assert decayed == ordered[: len(decayed)] == [each for each in model.parameters().values() if each.decay]


def test_a_checkpoint_of_format_1_continues_with_its_own_moments(model: Model, tmp_path: Path) -> None:
    """Moments lie in one vector, whose order was another."""
    moments = tuple(np.random.default_rng(1).standard_normal((2, len(model.vector))).astype(np.float32))
    for moment in moments:  # nothing is moved where there is no parameter
        used = np.zeros(len(moment), bool)
        for view in model.views(used).values():
            view[...] = True
        moment[~used] = 0
    write_training(tmp_path, model, moments, TrainerState(), moments[0])
    write_before(model, tmp_path)
    path, starts, begin = tmp_path / "training/moments.safetensors", dict(model.places()), 0
    vectors = load_file(path)
    before = {name: np.zeros_like(vector) for name, vector in vectors.items()}
    for parameter in older.order_in_vector(model):
        size = parameter.size
        for name, vector in vectors.items():
            before[name][begin : begin + size] = vector[starts[parameter] : starts[parameter] + size]
        begin += -(-size // 16) * 16  # every parameter begins at a cache line
    save_file(before, path)
    found = read_checkpoint(tmp_path)
    for moment, expected in zip((*found.moments, found.raw), (*moments, moments[0]), strict=True):
        np.testing.assert_array_equal(moment, expected)


def test_settings_of_a_run_are_compared_by_their_names_of_today() -> None:
    before = {"model": {"width": 8, "heads": 2, "feed_forward": 12, "norm": "post"}, "training": {"seed": 1}}
    today = {"model": {"d_model": 8, "num_heads": 2, "d_ff": 12, "norm_position": "post"}, "training": {"seed": 1}}
    assert describe_changes(before, today) == ""
    assert describe_changes({"model": {"norm": "rms"}}, {"model": {"norm": "rms"}}) == ""
    today["model"] |= {"rotary_scaling": "none", "rotary_factor": 1.0}  # added since, and as it was before by default
    assert describe_changes(before, today) == ""
    assert "model.rotary_factor: not set → 2.0" in describe_changes(before, {**before, "model": {"rotary_factor": 2.0}})
    today["model"]["d_model"] = 16
    assert "model.d_model: 8 → 16" in describe_changes(before, today)
