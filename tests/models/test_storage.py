import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.checks import random_model, small_config, small_gpt_config
from toolkit.errors import ConfigError, ModelError
from toolkit.models.storage import (
    load_model,
    model_directory,
    read_metrics,
    save_model,
)
from toolkit.nn.module import Model

CONFIGS = {
    "seq2seq": small_config(tie="decoder", positions="learned"),
    "gpt": small_gpt_config(tie=False, positions="rotary", num_key_value_heads=2, norm="rms", activation="swiglu"),
}


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def model(request: pytest.FixtureRequest) -> Model:
    return random_model(request.param, np.random.default_rng(0), np.float32)


@pytest.fixture
def saved(model: Model, tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    directory.mkdir()
    save_model(model, directory, {"test": {"chrf": 98.5}, "text": "केटा"})
    return directory


def test_what_is_saved_is_loaded_exactly(model: Model, saved: Path) -> None:
    loaded = load_model(saved)
    assert loaded.config == model.config
    assert loaded.vector.dtype == np.float32
    assert loaded.vector.tobytes() == model.vector.tobytes()
    assert read_metrics(saved) == {"test": {"chrf": 98.5}, "text": "केटा"}


def test_a_float64_model_for_checks(model: Model, saved: Path) -> None:
    loaded = load_model(saved, np.float64)
    for name, value in loaded.arrays().items():
        assert value.dtype == np.float64
        np.testing.assert_array_equal(value, model.arrays()[name])


def test_half_precision_takes_half_the_room(model: Model, saved: Path, tmp_path: Path) -> None:
    half = tmp_path / "half"
    half.mkdir()
    save_model(model, half, half=True)
    loaded = load_model(half)
    assert loaded.vector.dtype == np.float32
    for name, value in loaded.arrays().items():
        np.testing.assert_array_equal(value, model.arrays()[name].astype(np.float16))
    content = (half / "model.safetensors").read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    assert len(content) - header == 2 * model.parameter_count


def test_a_model_in_int8_is_stored_and_read_exactly(model: Model, tmp_path: Path, monkeypatch) -> None:
    """As it is with the library, in floats without; and nobody reads it who does not expect folded norms."""
    pytest.importorskip("numkong", reason="numkong, which multiplies in int8, is not installed")
    model.quantize()
    save_model(model, tmp_path)
    loaded = load_model(tmp_path, int8=True)
    monkeypatch.setitem(sys.modules, "numkong", None)
    floats = load_model(tmp_path, int8=False)
    matrices = [name for name, parameter in model.parameters().items() if parameter.quantized]
    assert len(matrices) > 8
    assert matrices == [name for name, parameter in loaded.parameters().items() if parameter.quantized]
    assert loaded.vector.tobytes() == model.vector.tobytes()
    for name, value in model.arrays().items():
        assert np.array_equal(np.asarray(loaded.arrays()[name]), np.asarray(value))
        assert np.array_equal(floats.arrays()[name], np.asarray(value))
    with pytest.raises(ModelError, match="is stored in int8, which is neither trained, averaged nor exported"):
        load_model(tmp_path)
    with pytest.raises(ConfigError, match="needs the library numkong"):
        load_model(tmp_path, int8=True)


def test_saving_twice_gives_the_same_bytes(model: Model, saved: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    save_model(model, again, read_metrics(saved))
    for file in saved.iterdir():
        assert file.read_bytes() == (again / file.name).read_bytes(), file.name


def test_no_metrics(saved: Path) -> None:
    (saved / "metrics.json").unlink()
    assert read_metrics(saved) == {}


def change_config(settings: dict | None = None, **changes) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        path = directory / "config.json"
        config = json.loads(path.read_text())
        config.update(changes)
        if isinstance(config["model"], dict):
            config["model"].update(settings or {})
        path.write_text(json.dumps(config))

    return change


def without_d_model(directory: Path) -> None:
    path = directory / "config.json"
    config = json.loads(path.read_text())
    del config["model"]["d_model"]  # the default does not fit the weights
    path.write_text(json.dumps(config))


def weights(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        path = directory / "model.safetensors"
        path.write_bytes(change(path.read_bytes()))

    return damage


def config_as_directory(directory: Path) -> None:
    (directory / "config.json").unlink()
    (directory / "config.json").mkdir()


DAMAGE = {
    "no config": lambda directory: (directory / "config.json").unlink(),
    "config is text": lambda directory: (directory / "config.json").write_text("d_model: 8"),
    "config is not UTF-8": lambda directory: (directory / "config.json").write_bytes(b'{"kind": "\xff"}'),
    "config is a list": lambda directory: (directory / "config.json").write_text("[1]"),
    "config is cut": lambda directory: (directory / "config.json").write_text('{"format": 1, "ki'),
    "config is a directory": config_as_directory,
    "another format": change_config(format=4),
    "no format": change_config(format=None),
    "another kind": change_config(kind="lstm"),
    "a kind that is a list": change_config(kind=["seq2seq"]),
    "an unknown setting": change_config(settings={"experts": 8}),
    "settings are a list": change_config(model=[1, 2]),
    "a setting of the wrong type": change_config(settings={"d_model": "8"}),
    "a width that is a fraction": change_config(settings={"d_model": 8.5}),
    "a width that is a float": change_config(settings={"d_model": 8.0}),
    "a width that is null": change_config(settings={"d_model": None}),
    "bias is a number": change_config(settings={"bias": 3}),
    "a setting out of range": change_config(settings={"num_heads": 3}),
    "another width": change_config(settings={"d_model": 32}),
    "a setting is missing": without_d_model,
    "no weights": lambda directory: (directory / "model.safetensors").unlink(),
    "empty weights": weights(lambda _: b""),
    "weights end early": weights(lambda content: content[:-10]),
    "weights are cut in the header": weights(lambda content: content[:50]),
    "weights are something else": weights(lambda _: b"PK\x03\x04" + bytes(1000)),
    "another model's weights": lambda directory: save_file({"w": np.ones(3)}, directory / "model.safetensors"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_model_is_told_in_one_sentence(saved: Path, damage: Callable[[Path], None]) -> None:
    damage(saved)
    with pytest.raises(ModelError) as told:
        load_model(saved)
    message = str(told.value)
    assert str(saved) in message
    assert "\n" not in message
    assert not message.endswith(".")


@pytest.mark.parametrize("name", ["vocab_size", "layers", "num_key_value_heads", "d_ff", "max_length"])
@pytest.mark.parametrize("positions", ["rotary", "learned"])
def test_a_damaged_digit_asks_for_no_memory(tmp_path: Path, name: str, positions: str) -> None:
    model = random_model(small_gpt_config(positions=positions), np.random.default_rng(0), np.float32)
    save_model(model, tmp_path)
    heads = {"num_heads": 1 << 40, "d_model": 1 << 45} if name == "num_key_value_heads" else {}
    change_config(settings={name: 1 << 40, **heads})(tmp_path)
    with pytest.raises(ModelError, match=r"larger model than|has shape|at most 1,048,576 tokens"):
        load_model(tmp_path)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a model: it is not a directory"):
        load_model(tmp_path / "nowhere")


def test_not_a_number_in_the_weights(model: Model, saved: Path) -> None:
    model.vector[0] = np.nan
    save_model(model, saved)
    with pytest.raises(ModelError, match=r"model\.safetensors: .* contains values that are not finite"):
        load_model(saved)


def test_a_run_means_its_best_else_its_last_checkpoint(saved: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    assert model_directory(saved) == saved
    (run / "last").write_text("step-2\n")
    assert model_directory(run) == run / "step-2"
    (run / "best").write_text("step-1\n")
    assert model_directory(str(run)) == run / "step-1"
