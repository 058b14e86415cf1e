"""Settings that config.json may write in several ways, and tables that are not what it says of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.checks import small_config, small_gpt_config
from tests.interop.foreign_models import edit
from toolkit.errors import ModelError
from toolkit.interop.hugging_face import HuggingFaceModel, read_hugging_face, write_hugging_face

LLAMA = {"norm": "rms", "activation": "swiglu", "max_length": 32}
GPT2_NAMES = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_positions": "max_position_embeddings",
}
SEQ2SEQ_NAMES = {
    "d_model": "hidden_size",
    "encoder_layers": "num_hidden_layers",
    "encoder_attention_heads": "num_attention_heads",
}


def change(directory: Path, **tensors: Any) -> None:
    path = directory / "model.safetensors"
    save_file(load_file(path) | {name.replace("__", "."): value for name, value in tensors.items()}, path)


@pytest.mark.parametrize(("config", "names"), [
    (small_gpt_config(positions="learned", bias=True), GPT2_NAMES),
    (small_config(norm_position="post", encoder_layers=3), SEQ2SEQ_NAMES),
    (small_config(norm_position="pre", encoder_layers=3), SEQ2SEQ_NAMES),
])  # fmt: skip
def test_other_names_of_settings(write, config, names):
    model, directory = write(config)
    for own, alias in names.items():
        edit(directory, **{own: None, alias: HuggingFaceModel(directory).settings.values[own]})
    back, _ = read_hugging_face(directory)
    assert (back.config.d_model, back.config.num_heads, back.config.max_length) == (
        config.d_model,
        config.num_heads,
        config.max_length,
    )
    assert back.arrays().keys() == model.arrays().keys()
    own, alias = next(iter(names.items()))
    edit(directory, **{own: 1})
    with pytest.raises(
        ModelError, match=f"has {own} 1 and {alias} {config.d_model}, which are two names of one setting"
    ):
        read_hugging_face(directory)


@pytest.mark.parametrize("section", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("kind", [{"rope_type": "default"}, {"type": "dynamic", "factor": 2.0}, {}])
def test_the_base_of_rotary_positions_where_the_section_has_it(write, section, kind):
    _, directory = write(small_gpt_config(**LLAMA))
    edit(directory, rope_theta=None, rope_parameters=None)
    edit(directory, **{section: kind | {"rope_theta": 77.0}})
    assert read_hugging_face(directory)[0].config.rotary_base == 77.0


@pytest.mark.parametrize(("settings", "length", "note"), [
    ({"sliding_window": 12}, 12, [
        "it attends to no more than 12 tokens (sliding_window): it reads at most 12 tokens here"
    ]),
    ({"sliding_window": 40}, 32, []),
    ({"rope_scaling": {"type": "dynamic", "factor": 4.0}}, 32, [
        "its rotary positions are stretched in longer texts (dynamic): it reads at most 32 tokens here"
    ]),
    ({"rope_scaling": {"rope_type": "dynamic", "factor": 4.0, "original_max_position_embeddings": 8}}, 8, [
        "its rotary positions are stretched in longer texts (dynamic): it reads at most 8 tokens here"
    ]),
])  # fmt: skip
@pytest.mark.parametrize("shape", [LLAMA, {"max_length": 32}])
def test_what_computes_the_same_in_short_texts_is_read_so_far(write, shape, settings, length, note):
    _, directory = write(small_gpt_config(**shape))
    edit(directory, toolkit=None, **settings)
    (directory / "generation_config.json").unlink()
    found = HuggingFaceModel(directory)
    assert found.read(found.vocabulary()).config.max_length == length
    assert found.notes == note


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float32])
def test_a_causal_mask_of_any_type_among_the_weights(write, dtype):
    model, directory = write(small_gpt_config(positions="learned", bias=True))
    mask = np.tril(np.ones((8, 8), dtype))[None, None]
    change(directory, transformer__h__0__attn__bias=mask, transformer__h__0__attn__masked_bias=mask[0, 0, 0, :1])
    np.testing.assert_array_equal(read_hugging_face(directory)[0].vector, model.vector)


@pytest.mark.parametrize(("config", "tensor", "tie", "ours"), [
    (small_gpt_config(positions="learned"), "lm_head.weight", False, "output.table"),
    (small_gpt_config(**LLAMA), "lm_head.weight", False, "output.table"),
    (small_gpt_config(), "lm_head.weight", False, "output.table"),
    (small_config(norm_position="post"), "lm_head.weight", "none", "output.table"),
    (small_config(norm_position="pre"), "lm_head.weight", "none", "output.table"),
    (small_config(norm_position="pre"), "model.encoder.embed_tokens.weight", "decoder", "source.embedding.table"),
    (small_config(norm_position="post", tie="decoder"), "lm_head.weight", "none", "output.table"),
])  # fmt: skip
def test_a_table_that_differs_from_the_one_that_it_should_be(write, config, tensor, tie, ours):
    """Nothing is dropped: the model has both, says so, and goes back with both."""
    model, directory = write(config)
    table = model.output.table.data * 2
    change(directory, **{tensor.replace(".", "__"): table})
    found = HuggingFaceModel(directory)
    back = found.read(found.vocabulary())
    assert back.config.tie == tie
    np.testing.assert_array_equal(back.arrays()[ours], table)
    (note,) = found.notes
    assert "is a table of its own, though" in note
    write_hugging_face(back, directory)
    assert HuggingFaceModel(directory).notes == []
    np.testing.assert_array_equal(load_file(directory / "model.safetensors")[tensor], table)


def test_a_table_that_has_no_place_is_refused(write):
    """A decoder with a table of its own, and no table to write from."""
    model, directory = write(small_config(norm_position="post"))
    change(directory, model__decoder__embed_tokens__weight=model.output.table.data * 2)
    with pytest.raises(ModelError, match=r"lacks lm_head\.weight"):
        read_hugging_face(directory)
