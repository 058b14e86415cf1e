"""The files of a model of transformers: weights in several files and types, settings of decoding, and damaged ones."""

import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save, save_file

from tests.checks import small_config, small_gpt_config
from tests.interop.foreign_models import edit, make_marian
from toolkit.errors import ModelError
from toolkit.interop import export_model, import_model
from toolkit.interop.hugging_face import HuggingFaceModel
from toolkit.interop.hugging_face_files import ForeignWeights

TENSORS = {
    "a.weight": np.arange(6, dtype=np.float32).reshape(2, 3) / 3,
    "a.bias": np.array([1.5, -2.25], np.float32),
    "scalar": np.array(7.0, np.float32),
    "empty": np.zeros((0, 4), np.float32),
}


@pytest.fixture
def store(tmp_path):
    """Write tensors, or the bytes of a file, as model.safetensors -> what is read."""

    def store(content, prefix=""):
        path = tmp_path / "model.safetensors"
        path.write_bytes(content if isinstance(content, bytes) else save(content))
        return ForeignWeights(tmp_path, prefix)

    return store


def raw(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_type_is_read_as_float32(store, dtype):
    weights = store({name: value.astype(dtype) for name, value in TENSORS.items()})
    assert set(weights) == set(TENSORS)
    for name, value in TENSORS.items():
        assert weights[name].dtype == np.float32
        np.testing.assert_array_equal(weights[name], value.astype(dtype).astype(np.float32))
        assert weights.shape(name) == value.shape
    assert weights.size == 9


def test_bfloat16_is_the_upper_half_of_float32(store):
    values = np.array([1.0, -2.5, 3.140625, 1e30, 0.0], np.float32)
    upper = (values.view(np.uint32) >> 16).astype("<u2")
    header = {"x": {"dtype": "BF16", "shape": [5], "data_offsets": [0, 10]}, "__metadata__": {"format": "pt"}}
    found = store(raw(header, upper.tobytes()))["x"]
    np.testing.assert_allclose(found, values, rtol=2**-7)
    np.testing.assert_array_equal(found[[0, 1, 2, 4]], values[[0, 1, 2, 4]])


def test_weights_in_several_files(tmp_path):
    for number, name in enumerate(TENSORS):
        save_file({name: TENSORS[name]}, tmp_path / f"model-{number}.safetensors")
    index = {"weight_map": {name: f"model-{number}.safetensors" for number, name in enumerate(TENSORS)}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    weights = ForeignWeights(tmp_path)
    for name, value in TENSORS.items():
        np.testing.assert_array_equal(weights[name], value)
    assert weights.where("a.bias").name == "model-1.safetensors"
    (tmp_path / "model-1.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model-1\.safetensors does not exist: copy the whole model again"):
        ForeignWeights(tmp_path)


@pytest.mark.parametrize("index", [[], {}, {"weight_map": 3}, {"weight_map": {"a": 3}}, {"weight_map": {"a": "../b"}}])
def test_a_damaged_index(tmp_path, index):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match=r"model\.safetensors\.index\.json is damaged"):
        ForeignWeights(tmp_path)


def test_a_prefix_that_a_file_leaves_out(store):
    assert "whole.a.bias" in store(TENSORS, "whole.")
    assert "whole.a.bias" not in store(TENSORS, "a.")


def test_what_was_not_asked_for_is_known(store):
    weights = store(TENSORS)
    _ = weights["a.bias"], weights.shape("scalar"), "empty" in weights
    assert weights.unread == {"a.weight", "scalar", "empty"}


def test_other_formats_are_not_opened(tmp_path):
    with pytest.raises(ModelError, match=r"has no weights: there is no model\.safetensors"):
        ForeignWeights(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"never read")
    with pytest.raises(ModelError, match=r"weights in pytorch_model\.bin, which .* convert them to model\.safetensors"):
        ForeignWeights(tmp_path)


def test_quantised_weights(store):
    with pytest.raises(ModelError, match="a is stored as I8: weights must be float32, float16 or bfloat16"):
        store({"a": np.ones(3, np.int8)})["a"]


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
DAMAGED = {
    "nothing": b"",
    "half a length": b"\x10\x00",
    "a length beyond the file": struct.pack("<Q", 2**60) + b"{}",
    "no JSON": raw(b"{"),
    "no object": raw([]),
    "no entry": raw({"a": 3}),
    "no shape": raw({"a": {"dtype": "F32", "data_offsets": [0, 8]}}, bytes(8)),
    "cut off": raw({"a": ENTRY}, bytes(7)),
    "too few bytes": raw({"a": ENTRY | {"data_offsets": [0, 4]}}, bytes(8)),
    "backwards": raw({"a": ENTRY | {"data_offsets": [8, 0]}}, bytes(8)),
    "before the file": raw({"a": ENTRY | {"data_offsets": [-8, 0]}}, bytes(8)),
    "a negative shape": raw({"a": ENTRY | {"shape": [-1, -2]}}, bytes(8)),
    "a shape that overflows": raw({"a": ENTRY | {"shape": [2**33, 2**33]}}, bytes(8)),
    "a shape of words": raw({"a": ENTRY | {"shape": ["2"]}}, bytes(8)),
    "a type of no name": raw({"a": ENTRY | {"dtype": []}}, bytes(8)),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file(store, name):
    with pytest.raises(ModelError, match=r"model\.safetensors is damaged or is not a safetensors file"):
        store(DAMAGED[name])


IDS = {"pad_token_id": 29, "bos_token_id": 29, "decoder_start_token_id": 29, "eos_token_id": 0}
OPUS = {"num_beams": 4, "length_penalty": 0.6, "max_length": 64, "bad_words_ids": [[29]], "forced_eos_token_id": 0}
TASTE = {"do_sample": True, "temperature": 0.5, "top_k": 10, "max_length": 64, "no_repeat_ngram_size": 3}


def put(directory: Path, **values: Any) -> None:
    (directory / "generation_config.json").write_text(json.dumps(values))


@pytest.mark.parametrize(("config", "values", "words"), [
    (small_config(norm_position="post"), OPUS, "--num-beams 4, --length-penalty 0.6, --max-new-tokens 63"),
    (small_gpt_config(), TASTE, "--temperature 0.5, --top-k 10, --no-repeat-ngram-size 3, max_length 64, prompt"),
    (small_gpt_config(), {"num_beams": 2}, "--no-do-sample, --num-beams 2"),
    (small_config(norm_position="pre"), {"do_sample": True, "min_length": 5, "typical_p": 0.9}, "--do-sample, --min"),
])  # fmt: skip
@pytest.mark.parametrize("file", ["generation_config.json", "config.json"])
def test_matters_of_taste_are_named_with_our_flags(write, config, values, words, file):
    _, directory = write(config)
    edit(directory, toolkit=None, **IDS, **(values if file == "config.json" else {}))
    (directory / "generation_config.json").unlink()
    if file != "config.json":
        put(directory, **values)
    found = HuggingFaceModel(directory)
    found.read(found.vocabulary())
    (note,) = found.notes
    assert note.startswith(f"its authors decode with {words}")
    assert ("typical_p 0.9, which has no flag here" in note) == ("typical_p" in values)


@pytest.mark.parametrize("values", [
    {"forced_bos_token_id": 20},
    {"forced_eos_token_id": 20},
    {"suppress_tokens": [20]},
    {"suppress_tokens": [0]},
    {"begin_suppress_tokens": [29, 20]},
    {"bad_words_ids": [[29], [20, 21]]},
    {"bad_words_ids": 3},
    {"sequence_bias": [[[20], -1.0]]},
    {"encoder_no_repeat_ngram_size": 2},
    {"guidance_scale": 1.5},
    {"stop_strings": ["x"]},
    {"exponential_decay_length_penalty": [3, 1.1]},
])  # fmt: skip
def test_what_must_or_must_not_be_written_is_refused(write, values):
    _, directory = write(small_config(norm_position="post"))
    edit(directory, toolkit=None, **IDS)
    put(directory, **values)
    found = HuggingFaceModel(directory)
    (name,) = values
    with pytest.raises(ModelError, match=re.escape(f"generation_config.json has {name} ")):
        found.read(found.vocabulary())


def test_what_nothing_here_writes_anyway_may_be_forbidden(write):
    _, directory = write(small_config(norm_position="post"))
    edit(directory, toolkit=None, **IDS)
    put(directory, suppress_tokens=[29], bad_words_ids=[[29]], guidance_scale=1.0, sequence_bias={}, stop_strings=[])
    found = HuggingFaceModel(directory)
    found.read(found.vocabulary())
    assert found.notes == []


def test_they_are_written_again(tiny_model, tmp_path):
    marian = make_marian(tmp_path / "there", tiny_model / "tokenizer.model")
    put(marian, **OPUS | {"bad_words_ids": None})
    import_model(marian, tmp_path / "own")
    export_model(tmp_path / "own", tmp_path / "again")
    found = json.loads((tmp_path / "again" / "generation_config.json").read_text())
    wanted = {name: value for name, value in OPUS.items() if name != "bad_words_ids"}
    assert {name: found[name] for name in wanted} == wanted
    notes = import_model(tmp_path / "again", tmp_path / "own-again").notes
    assert notes == import_model(marian, tmp_path / "own-too").notes
