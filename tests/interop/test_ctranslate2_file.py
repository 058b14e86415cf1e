"""What a model.bin holds that no fixture has, and what is said of one that is damaged or foreign."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.checks import random_model, small_config, small_gpt_config
from tests.interop.test_ctranslate2 import FIXTURES, TOKENS
from toolkit.errors import ModelError
from toolkit.interop import import_model
from toolkit.interop.ctranslate2 import distinct, read, write_weights
from toolkit.interop.ctranslate2_file import Variables, dequantised, read_variables, write_variables
from toolkit.models.gpt import ABSENT, GPT
from toolkit.models.seq2seq import Seq2Seq

Arrays = dict[str, np.ndarray]


def change(directory: Path, edit: Callable[[Arrays], object], aliases: dict[str, str] | None = None) -> None:
    """Write model.bin again with other variables."""
    path = directory / "model.bin"
    variables = read_variables(path)
    arrays = dict(variables.arrays)
    edit(arrays)
    write_variables(path, variables._replace(arrays=arrays, aliases=variables.aliases | (aliases or {})))


def settings(directory: Path, **changes: object) -> None:
    path = directory / "config.json"
    found = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({name: value for name, value in found.items() if value != "leave out"}))


@pytest.fixture
def gpt(tmp_path: Path) -> tuple[GPT, Path]:
    config = small_gpt_config(positions="rotary", num_key_value_heads=2, bias=True)
    model = random_model(config, np.random.default_rng(0), np.float32)
    write_weights(model, TOKENS, tmp_path)
    return model, tmp_path


@pytest.fixture
def seq2seq(tmp_path: Path) -> tuple[Seq2Seq, Path]:
    model = random_model(small_config(tie="none"), np.random.default_rng(0), np.float32)
    write_weights(model, TOKENS, tmp_path)
    return model, tmp_path


def test_every_type_of_number_is_written_and_read(tmp_path: Path) -> None:
    arrays = {
        "a/float": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
        "number": np.float32(0.1),
        "switch": np.int8(-1),
        "short": np.arange(3, dtype=np.int16),
        "integer": np.int32(1 << 20),
    }
    write_variables(tmp_path / "whole.bin", Variables("Kind", 3, arrays, {"other": "a/float"}))
    found = read_variables(tmp_path / "whole.bin")
    assert found[:2] == ("Kind", 3)
    assert found.aliases == {"other": "a/float"}
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)
    write_variables(tmp_path / "half.bin", found, half=True)
    half = read_variables(tmp_path / "half.bin").arrays
    assert half["a/float"].dtype == np.float16
    assert half["number"].dtype == np.float32


def test_quantised_weights_are_divided_by_their_scale() -> None:
    rows = {"w": np.array([[127, -64], [1, 2]], np.int8), "w_scale": np.array([127, 0.5], np.float32)}
    np.testing.assert_allclose(dequantised(rows, "w"), [[1, -64 / 127], [2, 4]])
    whole = {"w": np.array([[1024, -512]], np.int16), "w_scale": np.float32(1024)}
    np.testing.assert_allclose(dequantised(whole, "w"), [[1, -0.5]])
    for wrong in ({}, {"w_scale": np.ones(3, np.float32)}, {"w_scale": np.zeros(2, np.float32)}):
        with pytest.raises(ModelError, match="scale"):
            dequantised({"w": rows["w"]} | wrong, "w")


def test_float16_is_refused_where_it_would_overflow(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="too large for float16"):
        write_variables(tmp_path / "b", Variables("", 1, {"w": np.full(3, 1e6, np.float32)}, {}), half=True)
    assert list(tmp_path.iterdir()) == []


def test_heads_that_turn_neighbours_are_put_in_halves(gpt: tuple[GPT, Path]) -> None:
    model, directory = gpt
    neighbours = np.array([0, 2, 1, 3])  # of a head of 4, whose halves are 0, 1 and 2, 3: it is its own inverse
    turned = (np.arange(24).reshape(-1, 4)[:, neighbours]).reshape(-1)  # four heads of queries and two of keys

    def interleave(arrays: Arrays) -> None:
        for index in range(2):
            name = f"decoder/layer_{index}/self_attention"
            arrays[f"{name}/rotary_interleave"] = np.int8(1)
            for part in ("weight", "bias"):
                array = arrays[f"{name}/linear_0/{part}"].copy()
                array[:24] = array[turned]
                arrays[f"{name}/linear_0/{part}"] = array

    change(directory, interleave)
    for name, value in read(directory).arrays.items():
        np.testing.assert_array_equal(value, model.arrays()[name], err_msg=name)


def test_positions_that_are_not_stored_follow_a_rule(seq2seq: tuple[Seq2Seq, Path]) -> None:
    _, directory = seq2seq
    path = directory / "model.bin"
    variables = read_variables(path)
    arrays = {name: value for name, value in variables.arrays.items() if not name.endswith("encodings")}
    write_variables(path, variables._replace(arrays=arrays, aliases={}))
    settings(directory, toolkit="leave out")
    reading = read(directory)
    assert (reading.config.positions, reading.config.max_length) == ("learned", 1024)
    rates = 10000.0 ** (-np.arange(4) / 3)
    for side in ("source", "target"):
        table = reading.arrays[f"{side}.positions.embedding.table"]
        np.testing.assert_allclose(table[:5, :4], np.sin(np.arange(1, 6)[:, None] * rates), atol=1e-6)
        np.testing.assert_allclose(table[:5, 4:], np.cos(np.arange(1, 6)[:, None] * rates), atol=1e-6)


def test_two_vocabularies_become_one(seq2seq: tuple[Seq2Seq, Path]) -> None:
    model, directory = seq2seq
    sources = [*TOKENS[:20], *(f"s{index}" for index in range(5))]
    table = np.random.default_rng(1).standard_normal((25, 8)).astype(np.float32)
    change(directory, lambda arrays: arrays.update({"encoder/embeddings_0/weight": table}))
    (directory / "shared_vocabulary.json").rename(directory / "target_vocabulary.json")
    (directory / "source_vocabulary.txt").write_text("\n".join(sources) + "\n")
    settings(directory, toolkit="leave out")
    reading = read(directory)
    assert reading.tokens == TOKENS + sources[20:]
    arrays = reading.arrays
    for index, token in enumerate(sources):
        np.testing.assert_array_equal(arrays["source.embedding.table"][reading.tokens.index(token)], table[index])
    np.testing.assert_array_equal(arrays["output.table"][:30], model.output.table.data)
    assert (arrays["output.bias"] == [0.0] * 30 + [ABSENT] * 5).all()
    notes = import_model(directory, directory / "own").notes
    assert notes[-1] == "its ids are the places in target_vocabulary; 5 tokens of source_vocabulary alone follow"


def test_the_context_of_a_window_is_the_window(gpt: tuple[GPT, Path]) -> None:
    _, directory = gpt
    settings(directory, toolkit="leave out")
    assert read(directory).config.max_length == 2048
    change(directory, lambda arrays: arrays.update({"decoder/sliding_window": np.int32(7)}))
    assert read(directory).config.max_length == 7


def test_equal_names_become_different_ones_and_others_stay() -> None:
    assert distinct(["a", "b", "c"]) == ["a", "b", "c"]
    named = distinct(["<s>", "e", "<|4|>", "e", "<s>", "<|4_|>"])
    assert named == ["<s>", "<|1|>", "<|4|>", "e", "<|4__|>", "<|4_|>"]  # 3 is the end mark


def added(name: str, value: object) -> Callable[[Path], None]:
    return lambda directory: change(directory, lambda arrays: arrays.update({name: np.asarray(value)}))


def added_to_all(name: str, value: object) -> Callable[[Path], None]:
    names = [f"decoder/layer_{layer}/self_attention/{name}" for layer in range(2)]
    return lambda directory: change(directory, lambda arrays: arrays.update(dict.fromkeys(names, np.asarray(value))))


def without(name: str) -> Callable[[Path], None]:
    return lambda directory: change(directory, lambda arrays: arrays.pop(name))


def text(name: str, content: str) -> Callable[[Path], None]:
    return lambda directory: (directory / name).write_text(content)


def with_settings(**changes: object) -> Callable[[Path], None]:
    return lambda directory: settings(directory, **changes)


def of_another_kind(directory: Path) -> None:
    path = directory / "model.bin"
    write_variables(path, read_variables(path)._replace(specification="WhisperSpec"))


GAIN, ATTENTION = np.ones(16, np.float32), "decoder/layer_0/self_attention"
REFUSED = {
    "no model": (lambda directory: (directory / "model.bin").unlink(), "it has no model.bin"),
    "no config": (lambda directory: (directory / "config.json").unlink(), "it has no config.json"),
    "no tokens": (lambda directory: (directory / "vocabulary.json").unlink(), "it has no vocabulary.json"),
    "tokens are numbers": (text("vocabulary.json", "[1, 2]"), "is not a list of tokens"),
    "tokens are cut": (text("vocabulary.json", '["<pad>", "<u'), "is not a list of tokens"),
    "too few tokens": (text("vocabulary.json", '["<pad>"]'), "has 1 tokens and a model of 30"),
    "another kind": (of_another_kind, "is a WhisperSpec: TransformerSpec and TransformerDecoderSpec"),
    "not written here, no end mark": (with_settings(toolkit="leave out", eos_token="</e>"), "no token '</e>'"),
    "damaged settings": (with_settings(toolkit={"begin": 1, "max_length": 8}), "of a wrong type"),
    "no length": (with_settings(toolkit={"begin": True, "max_length": 0}), "max_length is 0"),
    "epsilon is a word": (with_settings(layer_norm_epsilon="small"), 'layer_norm_epsilon is "small"'),
    "epsilon is negative": (with_settings(layer_norm_epsilon=-1), "norm_eps is -1"),
    "an array is missing": (without(f"{ATTENTION}/linear_1/weight"), f"has no {ATTENTION}/linear_1/weight"),
    "an array of another shape": (added(f"{ATTENTION}/linear_1/bias", np.ones(3, np.float32)), "has shape"),
    "not a number": (added(f"{ATTENTION}/linear_1/bias", np.full(16, np.nan, np.float32)), "not finite"),
    "a switch that is an array": (added("decoder/pre_norm", np.ones(3, np.int8)), "decoder/pre_norm is not a number"),
    "post-norm": (added("decoder/pre_norm", np.int8(0)), "norms after the sub-layers"),
    "no last norm": (without("decoder/layer_norm/gamma"), "has no decoder/layer_norm/gamma"),
    "scaled embeddings": (added("decoder/scale_embeddings", np.int8(1)), "scales its embeddings"),
    "embeddings times 3": (added("decoder/scale_embeddings", np.float32(3)), "multiplies embeddings by 3"),
    "another activation": (added("decoder/activation", np.int8(5)), "has activation 5"),
    "a gate of another": (
        added("decoder/layer_0/ffn/linear_0_noact/weight", np.ones((12, 16), np.float32)),
        "gates its feed-forward networks by gelu",
    ),
    "alibi": (added("decoder/alibi", np.int8(1)), "has decoder/alibi, for which"),
    "a norm of embeddings": (added("decoder/layernorm_embedding/gamma", GAIN), "has decoder/layernorm_embedding/gamma"),
    "a parallel residual": (added("decoder/layer_0/shared_layer_norm/gamma", GAIN), "shared_layer_norm/gamma, for"),
    "norms of queries alone": (added_to_all("q_norm/gamma", GAIN[:4]), "has no decoder/layer_0/self_attention/k_norm/"),
    "a scale of queries": (added(f"{ATTENTION}/queries_scale", np.float32(1)), "queries_scale, for which"),
    "a part is turned": (added(f"{ATTENTION}/rotary_dim", np.int32(2)), "as decoder/layer_0"),
    "scaled rotary positions": (
        added_to_all("rotary_scaling_type", np.int8(2)),
        "scales the frequencies of rotary positions in a way of which it does not say all",
    ),
    "waves of no length": (added_to_all("rotary_scaling_factor", np.float32(0)), "rotary_factor is 0.0"),
    "no heads": (added("decoder/num_heads", np.int16(0)), "has 0 heads"),
    "heads of another width": (added(f"{ATTENTION}/head_dim", np.int32(8)), "as decoder/layer_0"),
    "scaled outputs": (added("decoder/scale_outputs", np.float32(0.5)), "decoder/scale_outputs, for which"),
}


@pytest.mark.parametrize(("damage", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_counterpart_is_named(gpt: tuple[GPT, Path], damage: Callable[[Path], None], sentence: str) -> None:
    check_refusal(gpt[1], damage, sentence)


REFUSED_TRANSLATORS = {
    "sources with a begin mark": (with_settings(add_source_bos=True), "begin mark before every source"),
    "nothing to begin with": (with_settings(decoder_start_token=None), "no token that outputs begin with"),
    "an unknown beginning": (with_settings(toolkit="leave out", decoder_start_token="<go>"), "no token '<go>'"),
    "another epsilon": (with_settings(layer_norm_epsilon=1e-6), "epsilon other than 1e-05"),
    "norms of two kinds": (added("encoder/pre_norm", np.int8(0)), "here they are one"),
    "scales of two kinds": (added("encoder/scale_embeddings", np.int8(0)), "treated alike"),
    "grouped queries": (added(f"{ATTENTION}/num_heads_kv", np.int32(1)), "num_heads_kv, for which"),
    "relative positions": (
        added("encoder/layer_0/self_attention/relative_position_keys", np.ones((3, 4), np.float32)),
        "relative_position_keys, for which",
    ),
    "features of words": (
        added("encoder/embeddings_1/weight", np.ones((3, 8), np.float32)),
        "embeddings_1/weight, for",
    ),
}


@pytest.mark.parametrize(("damage", "sentence"), REFUSED_TRANSLATORS.values(), ids=REFUSED_TRANSLATORS)
def test_what_translators_cannot_have_is_named(
    seq2seq: tuple[Seq2Seq, Path], damage: Callable[[Path], None], sentence: str
) -> None:
    check_refusal(seq2seq[1], damage, sentence)


def check_refusal(directory: Path, damage: Callable[[Path], None], sentence: str) -> None:
    damage(directory)
    with pytest.raises(ModelError) as told:
        read(directory)
    assert sentence in str(told.value)
    assert "\n" not in str(told.value)
    assert not str(told.value).endswith(".")


def test_a_file_that_ends_early_or_goes_on_is_told_in_one_sentence(tmp_path: Path) -> None:
    directory = shutil.copytree(FIXTURES / "llama-bfloat16", tmp_path / "model")
    content = (directory / "model.bin").read_bytes()
    cuts = [*range(60), *range(60, len(content), 197), len(content) - 1]
    for damaged in [content[:end] for end in cuts] + [content + b"\0", b"\7" + content[1:], b"PK" + content]:
        (directory / "model.bin").write_bytes(damaged)
        with pytest.raises(ModelError, match=r"model\.bin (is damaged|has binary version)"):
            read(directory)


def test_every_byte_of_the_beginning_may_be_wrong(tmp_path: Path) -> None:
    directory = shutil.copytree(FIXTURES / "llama-bfloat16", tmp_path / "model")
    content = (directory / "model.bin").read_bytes()
    for place in range(0, 300, 3):
        for value in (0, 255):
            damaged = bytearray(content)
            damaged[place] = value
            (directory / "model.bin").write_bytes(damaged)
            with suppress(ModelError):  # and nothing else
                read(directory)


def test_halves_of_a_gate_of_different_shapes_are_refused(tmp_path: Path) -> None:
    directory = shutil.copytree(FIXTURES / "llama-bfloat16", tmp_path / "model")
    name = "decoder/layer_0/ffn/linear_0_noact/weight"
    change(directory, lambda arrays: arrays.update({name: arrays[name][:-1, :-1]}))
    with pytest.raises(ModelError, match=f"{name} has shape"):
        read(directory)
