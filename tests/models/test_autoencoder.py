"""The encoder from vectors to vectors: its formulas written out, every gradient, and what the disk and the rest say."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import toolkit
from toolkit.errors import ConfigError, ModelError
from toolkit.explain.parameters import checked_gradients, unpacked
from toolkit.functional.positions import sinusoidal_positions
from toolkit.interop.exchange import export_model
from toolkit.models.autoencoder import AutoEncoder, AutoEncoderConfig
from toolkit.models.storage import load_model, new_model, save_model
from toolkit.nn.blocks import Block, Residual
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.training.checkpoint import average_models, tokenizer_files

SMALL = {"d_model": 8, "num_heads": 2, "d_ff": 12}
SWISH = {"num_heads": 1, "activation": "silu", "norm_position": "none", "bias": False, "positions": "none"}
OPTIONS = [
    dict(zip(("norm_position", "bias", "positions", "activation"), values, strict=True))
    for values in product(("post", "pre", "none"), (True, False), ("sinusoidal", "none"), ("relu", "silu"))
]
OTHERS = [SWISH, {"num_heads": 4, "layers": 1}, {"num_heads": 1, "layers": 3}, {"activation": "gelu"}]


def random_encoder(dtype: type = np.float64, **settings: object) -> AutoEncoder:
    rng = np.random.default_rng(1)
    model = AutoEncoder(AutoEncoderConfig(**{**SMALL, **settings}))
    model.allocate(dtype)
    for name, value in model.arrays().items():
        value[...] = rng.standard_normal(value.shape) * 0.4 + name.endswith("gain")
    return model


@pytest.mark.parametrize("options", [*OPTIONS, *OTHERS], ids=str)
def test_every_gradient_is_that_of_the_loss(options: dict) -> None:
    config = AutoEncoderConfig(**{**SMALL, **options})
    found = checked_gradients(config, np.random.default_rng(3))
    assert found.keys() == {"x", *unpacked(random_encoder(**options).arrays())}
    for name, measured in found.items():
        if name.endswith("key.bias"):  # no slope: what is left of the difference is the rounding of two large losses
            assert abs(measured.analytic) < 1e-12, (name, measured)
            assert abs(measured.numeric) < 1e-7, (name, measured)
        else:
            assert measured.is_right, (name, measured)
            assert abs(measured.analytic) > 1e-6, (name, measured)


def test_key_biases_have_no_gradient_and_all_else_has() -> None:
    """Softmax does not notice what is added to all scores of a query."""
    model, rows = random_encoder(), Rows(np.array([3, 5]))
    tape = Tape(model.views(np.zeros_like(model.vector)))
    y = model.forward(np.random.default_rng(0).standard_normal((8, 8)), rows, tape)
    model.backward(y.copy(), tape)
    assert tape.finished
    assert tape.gradients.keys() == set(model.parameters().values())
    for name, gradient in unpacked({n: tape.gradients[p] for n, p in model.parameters().items()}).items():
        if name.endswith("key.bias"):
            assert np.abs(gradient).max() < 1e-13
        else:
            assert np.abs(gradient).max() > 1e-3, name


@pytest.mark.parametrize("lost", ["residual", "block"])
def test_a_wrong_gradient_is_found(monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    if lost == "residual":
        monkeypatch.setattr(Residual, "joined", lambda _self, _dx, dbranch, _tape: dbranch)
    else:
        right = Block.backward
        monkeypatch.setattr(Block, "backward", lambda self, dx, tape: right(self, dx, tape) * 1.001)
    found = checked_gradients(AutoEncoderConfig(**SMALL, norm_position="none"), np.random.default_rng(3))
    assert not found["x"].is_right
    assert found["encoder.blocks.1.feed_forward.layer.down.weight"].is_right
    assert not found["encoder.blocks.0.feed_forward.layer.down.weight"].is_right


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_the_auto_encoder_of_000_written_out() -> None:
    model, x = random_encoder(), np.random.default_rng(2).standard_normal((5, 8))
    values, z = unpacked(model.arrays()), x + sinusoidal_positions(5, 8, dtype=np.float64)

    def norm(x: np.ndarray, prefix: str) -> np.ndarray:
        normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        return normal * values[f"{prefix}norm.gain"] + values[f"{prefix}norm.bias"]

    for layer in "encoder.blocks.0.", "encoder.blocks.1.":
        q, k, v = (
            z @ values[f"{layer}attention.layer.{name}.weight"] + values[f"{layer}attention.layer.{name}.bias"]
            for name in ("query", "key", "value")
        )
        heads = [softmax(q[:, h] @ k[:, h].T / np.sqrt(4)) @ v[:, h] for h in (slice(4), slice(4, 8))]
        attended = np.concatenate(heads, axis=1) @ values[f"{layer}attention.layer.output.weight"]
        z = norm(z + attended + values[f"{layer}attention.layer.output.bias"], f"{layer}attention.")
        hidden = np.maximum(
            0, z @ values[f"{layer}feed_forward.layer.up.weight"] + values[f"{layer}feed_forward.layer.up.bias"]
        )
        fed = hidden @ values[f"{layer}feed_forward.layer.down.weight"] + values[f"{layer}feed_forward.layer.down.bias"]
        z = norm(z + fed, f"{layer}feed_forward.")
    np.testing.assert_allclose(
        model.forward(x, Rows(np.array([5])), Tape()), norm(z, "encoder."), rtol=1e-10, atol=1e-12
    )


def test_the_transformer_of_003_and_its_list_of_gradients_written_out() -> None:
    """Z = A V, Z̃ = Z W_o + X, H = Z̃ W_1, Y = H σ(H) W_2 + Z̃, twice; and backwards from ∂L/∂Y = Y - Y_true."""
    model, rng = random_encoder(**SWISH), np.random.default_rng(2)
    x, target = rng.standard_normal((2, 5, 8))
    names = [f"attention.layer.{name}" for name in ("query", "key", "value", "output")]
    names += ["feed_forward.layer.up", "feed_forward.layer.down"]
    arrays = unpacked(model.arrays())
    weights = [[arrays[f"encoder.blocks.{layer}.{name}.weight"] for name in names] for layer in (0, 1)]
    y, saved = x, []
    for wq, wk, wv, wo, w1, w2 in weights:
        q, k, v = y @ wq, y @ wk, y @ wv
        a = softmax(q @ k.T / np.sqrt(8))
        residual = a @ v @ wo + y
        h = residual @ w1
        sigma = 1 / (1 + np.exp(-h))
        saved.append((y, q, k, v, a, residual, h, sigma))
        y = (h * sigma) @ w2 + residual
    expected, dy = {}, y - target
    for layer in (1, 0):
        (wq, wk, wv, wo, w1, w2), (x_in, q, k, v, a, residual, h, sigma) = weights[layer], saved[layer]
        dh = dy @ w2.T * (sigma + h * sigma * (1 - sigma))
        dresidual = dy + dh @ w1.T
        dz = dresidual @ wo.T
        da = dz @ v.T
        ds = a * (da - (da * a).sum(1, keepdims=True))
        dq, dk, dv = ds @ k / np.sqrt(8), ds.T @ q / np.sqrt(8), a.T @ dz
        gradients = x_in.T @ dq, x_in.T @ dk, x_in.T @ dv, (a @ v).T @ dresidual, residual.T @ dh, (h * sigma).T @ dy
        expected |= {f"encoder.blocks.{layer}.{name}.weight": g for name, g in zip(names, gradients, strict=True)}
        dy = dresidual + dq @ wq.T + dk @ wk.T + dv @ wv.T
    tape = Tape(model.views(np.zeros_like(model.vector)))
    found = model.forward(x, Rows(np.array([5])), tape)
    np.testing.assert_allclose(found, y, rtol=1e-10)
    np.testing.assert_allclose(model.backward(found - target, tape), dy, rtol=1e-10)
    gradients = unpacked({name: tape.gradients[p] for name, p in model.parameters().items()})
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("options", [{}, SWISH])
def test_a_sequence_becomes_the_same_alone_and_in_a_batch_and_stays_as_it_is(options: dict) -> None:
    model, lengths = random_encoder(**options), np.array([2, 4, 4, 1])
    x = np.random.default_rng(4).standard_normal((11, 8))
    kept = x.copy()
    together = model.forward(x, Rows(lengths), Tape())
    for end, length in zip(np.cumsum(lengths), lengths, strict=True):
        alone = model.forward(x[end - length : end], Rows(np.array([length])), Tape())
        np.testing.assert_allclose(together[end - length : end], alone, rtol=1e-10)
    np.testing.assert_array_equal(x, kept)


def test_both_founding_systems_have_the_parameters_that_their_documents_count() -> None:
    assert AutoEncoder(AutoEncoderConfig()).parameter_count == 100_096
    shapes = {p.shape for p in AutoEncoder(AutoEncoderConfig(**SWISH)).parameters().values()}
    assert shapes == {(64, 192), (64, 64), (64, 256), (256, 64)}  # weights of linear maps, and nothing else


@pytest.mark.parametrize("options", [{}, SWISH])
def test_saved_loaded_and_averaged_without_a_tokenizer(tmp_path: Path, options: dict) -> None:
    model = random_encoder(np.float32, **options)
    save_model(model, tmp_path)
    loaded = load_model(tmp_path)
    assert type(loaded) is type(new_model(model.config)) is AutoEncoder
    assert loaded.config == model.config
    np.testing.assert_array_equal(loaded.vector, model.vector)
    assert tokenizer_files(tmp_path) == {}
    np.testing.assert_array_equal(average_models([tmp_path, tmp_path]).vector, model.vector)


def test_what_reads_texts_says_that_this_does_not(tmp_path: Path, run) -> None:
    (tmp_path / "encoder").mkdir()
    save_model(random_encoder(np.float32), tmp_path / "encoder")
    with pytest.raises(ModelError, match="is an auto-encoder, which reads vectors and writes no text"):
        toolkit.load(tmp_path / "encoder")
    with pytest.raises(ModelError, match="is an auto-encoder, which no other library has"):
        export_model(tmp_path / "encoder", tmp_path / "exported")
    for verb in "translate", "generate":
        outcome = run(verb, "--model", tmp_path / "encoder", "a")
        assert outcome.code == 2
        assert "encoder is an auto-encoder" in outcome.err
    shown = run("info", tmp_path / "encoder")
    assert shown.code == 0
    for words in "kind        autoencoder", "tokenizer   none: it reads vectors", "d_ff":
        assert words in shown.out


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"d_model": 0}, "d_model is 0: it must be at least 1"),
        ({"layers": 0}, "layers is 0"),
        ({"num_heads": 3}, "d_model 64 cannot be divided into 3 heads"),
        ({"norm_position": "rms"}, "norm_position is 'rms': it must be one of pre, post, none"),
        ({"positions": "learned"}, "positions is 'learned'"),
        ({"activation": "swish"}, "activation is 'swish'"),
    ],
)
def test_settings_that_do_not_fit(settings: dict, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        AutoEncoderConfig(**settings)
