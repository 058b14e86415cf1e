"""Models of transformers in its own format: what is written is read back as the same function, with the names that the
classes there have. That those classes compute the same is tested in tests/parity, against what they computed.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.checks import random_model, small_config, small_gpt_config
from tests.interop.foreign_models import edit
from toolkit.errors import ModelError
from toolkit.interop.hugging_face import HuggingFaceModel, read_hugging_face, write_hugging_face
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.gpt import ABSENT, text_batch
from toolkit.models.seq2seq import Seq2Seq, translation_batch
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, EOS, PAD
from toolkit.training.optimizer import Adam

SEQ2SEQ = [
    {"norm_position": "post"},
    {"norm_position": "pre", "positions": "sinusoidal_halves", "activation": "gelu"},
    {"norm_position": "post", "tie": "decoder", "bias": False, "output_bias": True},
    {"norm_position": "pre", "tie": "decoder", "activation": "silu", "scale_embedding": False, "ignore_case": True},
    {"norm_position": "post", "tie": "none", "activation": "gelu_tanh", "d_model": 9, "num_heads": 3},
    {"norm_position": "pre", "tie": "none", "bias": False, "split_sentences": False},
]
GPT2 = [
    {"positions": "learned", "bias": True, "activation": "gelu_tanh", "norm_eps": 0.01},
    {"positions": "learned", "tie": False, "begin": False},
    {"positions": "sinusoidal", "activation": "relu"},
    {"positions": "sinusoidal_halves", "bias": True},
]
LLAMA = [
    {"norm": "rms", "activation": "swiglu", "num_key_value_heads": 2, "norm_eps": 1e-3},
    {"norm": "rms", "activation": "swiglu", "bias": True, "tie": False, "rotary_base": 50.0},
]
STARCODER2 = [{"num_key_value_heads": 2, "bias": True, "norm_eps": 1e-3}, {"tie": False, "activation": "silu"}]
MODELS = [
    *((small_config(**settings), "MarianMTModel") for settings in SEQ2SEQ if settings["norm_position"] == "post"),
    *(
        (small_config(**settings), "PegasusForConditionalGeneration")
        for settings in SEQ2SEQ
        if settings["norm_position"] == "pre"
    ),
    *((small_gpt_config(**settings), "GPT2LMHeadModel") for settings in GPT2),
    *((small_gpt_config(**settings), "LlamaForCausalLM") for settings in LLAMA),
    *((small_gpt_config(**settings), "Starcoder2ForCausalLM") for settings in STARCODER2),
]
every_model = pytest.mark.parametrize(("config", "name"), MODELS, ids=lambda value: value if value is str else None)


def logits(model, source, target):
    """Scores of all tokens after each of `target`.  Shapes: ids (T,) -> (T, V)."""
    tape, rows = Tape(), Rows(np.array([len(target)]))
    if not isinstance(model, Seq2Seq):
        return model.output.logits(model.read(np.array(target), rows, tape), tape)
    memory_rows = Rows(np.array([len(source)]))
    memory = model.encode(np.array(source), memory_rows, tape)
    rows = Rows(np.array([len(target)]), memory=memory_rows, memory_of=np.array([0]))
    return model.output.logits(model.decode(np.array(target), memory, rows, tape), tape)


def rename(directory, name):
    """Write the weights anew, with `name` of every name; those of None are left out."""
    tensors = load_file(directory / "model.safetensors")
    save_file({new: value for old, value in tensors.items() if (new := name(old))}, directory / "model.safetensors")


# There and back


@every_model
def test_what_is_written_is_read_as_the_same_function(write, config, name):
    model, directory = write(config)
    assert json.loads((directory / "config.json").read_text())["architectures"] == [name]
    back, vocabulary = read_hugging_face(directory)
    assert vocabulary == Vocabulary.own(30)
    ids = [20, 21, 3], [2, 25, 16, 29]
    np.testing.assert_allclose(logits(back, *ids), logits(model, *ids), rtol=1e-4, atol=1e-4)
    kept = ("vocab_size", "max_length", "tie", "activation", "begin", "ignore_case", "scale_embedding", "norm_eps")
    kept += ("split_sentences",)
    assert [getattr(back.config, key, None) for key in kept] == [getattr(config, key, None) for key in kept]


@every_model
def test_a_second_time_nothing_changes(write, config, name):
    _, directory = write(config)
    first = {path.name: path.read_bytes() for path in directory.iterdir()}
    write_hugging_face(read_hugging_face(directory)[0], directory)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == first


@every_model
def test_an_imported_model_goes_back_as_it_came(write, config, name):
    """With the ids of another library, where the begin of a text is its end or its padding."""
    foreign = Vocabulary.plan(30, 29, None, 29, 0)
    model, directory = write(replace(config, output_bias=False))
    edit(directory, toolkit=None, pad_token_id=29, bos_token_id=29, decoder_start_token_id=29, eos_token_id=0)
    (directory / "generation_config.json").unlink()
    before = load_file(directory / "model.safetensors")
    imported, vocabulary = read_hugging_face(directory)
    assert (vocabulary, imported.config.vocab_size, imported.config.output_bias) == (foreign, 44, True)
    ids = [20, 21, 3], [25, 16, 28]
    found = logits(imported, *map(foreign.ours, ids))
    expected = logits(model, *ids)
    np.testing.assert_allclose(found[:, foreign.ours(range(30))], expected, rtol=1e-4, atol=1e-4)
    assert (found[:, list(foreign.aliases)] < ABSENT / 2).all()
    write_hugging_face(imported, directory, vocabulary)
    after = load_file(directory / "model.safetensors")
    assert before.keys() == after.keys()
    assert all((before[key] == after[key]).all() for key in before if "embed_positions" not in key)
    settings = json.loads((directory / "config.json").read_text())
    assert (settings["vocab_size"], settings["pad_token_id"], settings["eos_token_id"]) == (30, 29, 0)


@pytest.mark.parametrize("config", [small_config(norm_position="post"), small_gpt_config(positions="learned")])
def test_a_begin_that_was_taught_something_else_gets_a_row_of_its_own(config, tmp_path):
    """All rows are random here, also those that were one token's."""
    foreign = Vocabulary.plan(30, 29, None, 29, 0)
    rng = np.random.default_rng(0)
    model = random_model(replace(config, vocab_size=foreign.size, output_bias=True), rng, np.float32)
    model.arrays()["output.bias"][:] = foreign.read_bias(None)
    write_hugging_face(model, tmp_path, foreign)
    back, _ = read_hugging_face(tmp_path, foreign)
    assert back.config.tie in (False, "none")
    ids = [20, 21, EOS], [BOS, 25, 16]
    written = [each for each in range(44) if each not in foreign.aliases]
    np.testing.assert_allclose(logits(back, *ids)[:, written], logits(model, *ids)[:, written], rtol=1e-4, atol=1e-4)


@every_model
def test_training_leaves_what_import_added_alone(write, config, name):
    """No table is divided, no bias moves, and the model goes back as the class that it was."""
    _, directory = write(replace(config, output_bias=False))
    edit(directory, toolkit=None, pad_token_id=29, bos_token_id=29, decoder_start_token_id=29, eos_token_id=0)
    (directory / "generation_config.json").unlink()
    model, vocabulary = read_hugging_face(directory)
    assert model.parameter_count == sum(value.size for value in model.arrays().values()) - vocabulary.size
    before, rng = model.vector.copy(), np.random.default_rng(0)
    ids = [rng.integers(16, 44, 5).astype(np.int64) for _ in range(4)]
    batch = translation_batch(ids, ids) if isinstance(model, Seq2Seq) else text_batch([[BOS, *text] for text in ids])
    gradient, moments = np.zeros_like(before), (np.zeros_like(before), np.zeros_like(before))
    tape = Tape(model.views(gradient))
    model.loss(batch, tape)
    model.backward(tape)
    Adam(weight_decay=0.1).update(model.vector, gradient, moments, 1, 1e-2, 1.0, model.decayed)
    assert (model.vector != before).mean() > 0.3
    assert model.arrays()["output.bias"][list(vocabulary.aliases)].tolist() == [ABSENT] * 14
    tables = set(load_file(directory / "model.safetensors"))
    write_hugging_face(model, directory, vocabulary)
    assert json.loads((directory / "config.json").read_text())["architectures"] == [name]
    assert set(load_file(directory / "model.safetensors")) == tables


# What is in the files


def test_the_special_tokens_and_what_is_never_written(write):
    _, directory = write(small_config(norm_position="post"))
    settings = json.loads((directory / "config.json").read_text())
    generation = json.loads((directory / "generation_config.json").read_text())
    for found in (settings, generation):
        assert (found["pad_token_id"], found["bos_token_id"], found["eos_token_id"]) == (PAD, BOS, EOS)
        assert found["decoder_start_token_id"] == BOS
    assert settings["forced_eos_token_id"] is None
    assert generation["suppress_tokens"] == [0, 1, 2, *range(4, 16)]
    assert generation["max_length"] == 16


@pytest.mark.parametrize(("config", "shapes"), [
    (small_config(norm_position="post", bias=False), {
        "model.shared.weight": (30, 8), "final_logits_bias": (1, 30),
        "model.decoder.layers.1.encoder_attn.k_proj.weight": (8, 8), "model.encoder.layers.0.fc1.weight": (12, 8),
        "model.encoder.layers.0.fc1.bias": (12,), "model.decoder.layers.0.final_layer_norm.bias": (8,),
    }),
    (small_config(norm_position="pre", tie="decoder"), {
        "model.encoder.layer_norm.weight": (8,), "lm_head.weight": (30, 8), "model.shared.weight": (30, 8),
    }),
    (small_gpt_config(positions="learned"), {
        "transformer.wpe.weight": (8, 16), "transformer.h.1.attn.c_attn.weight": (16, 48),
        "transformer.h.0.mlp.c_fc.weight": (16, 12), "transformer.ln_f.bias": (16,),
    }),
    (small_gpt_config(norm="rms", activation="swiglu", num_key_value_heads=2, tie=False), {
        "model.layers.1.self_attn.k_proj.weight": (8, 16), "model.layers.0.mlp.gate_proj.weight": (12, 16),
        "model.layers.0.mlp.down_proj.weight": (16, 12), "model.norm.weight": (16,), "lm_head.weight": (30, 16),
    }),
    (small_gpt_config(), {
        "model.layers.1.mlp.c_fc.weight": (12, 16), "model.layers.1.input_layernorm.bias": (16,),
        "model.embed_tokens.weight": (30, 16),
    }),
])  # fmt: skip
def test_names_and_shapes_are_those_of_the_class(write, config, shapes):
    _, directory = write(config)
    tensors = load_file(directory / "model.safetensors")
    assert {name: tensors[name].shape for name in shapes} == shapes


def test_half_precision(write):
    config = small_gpt_config(positions="learned")
    model, directory = write(config, half=True)
    assert {value.dtype for value in load_file(directory / "model.safetensors").values()} == {np.dtype(np.float16)}
    assert json.loads((directory / "config.json").read_text())["dtype"] == "float16"
    back, _ = read_hugging_face(directory)
    for name, value in model.arrays().items():
        np.testing.assert_array_equal(back.arrays()[name], value.astype(np.float16).astype(np.float32))
    model.arrays()["trunk.decoder.norm.gain"][0] = 1e6
    with pytest.raises(ModelError, match="weights that are too large for float16"):
        write_hugging_face(model, directory, half=True)


# What other versions and authors write


def test_names_without_their_prefix_and_masks_among_the_weights(write):
    model, directory = write(small_gpt_config(positions="learned", bias=True))
    tensors = load_file(directory / "model.safetensors")
    tensors = {name.removeprefix("transformer."): value for name, value in tensors.items()}
    tensors |= {"h.0.attn.bias": np.ones((1, 1, 8, 8), np.float32), "h.0.attn.masked_bias": np.float32(-1e4)[None]}
    save_file(tensors, directory / "model.safetensors")
    back, _ = read_hugging_face(directory)
    np.testing.assert_array_equal(back.vector, model.vector)


def test_waves_among_the_weights_must_be_those_that_we_add(write):
    _, directory = write(small_config(norm_position="post"))
    edit(directory, toolkit=None, max_position_embeddings=16)
    (directory / "generation_config.json").unlink()
    tensors = load_file(directory / "model.safetensors")
    angles = np.arange(5)[:, None] / 10000 ** (np.arange(0, 8, 2) / 8)
    waves = np.concatenate((np.sin(angles), np.cos(angles)), axis=1).astype(np.float16)
    save_file(tensors | {"model.encoder.embed_positions.weight": waves}, directory / "model.safetensors")
    read_hugging_face(directory)
    save_file(tensors | {"model.encoder.embed_positions.weight": waves + 1}, directory / "model.safetensors")
    with pytest.raises(ModelError, match=r"embed_positions\.weight has learned positions"):
        read_hugging_face(directory)


def test_rotary_settings_of_both_versions(write):
    _, directory = write(small_gpt_config(norm="rms", activation="swiglu", rotary_base=77.0))
    for values in ({"rope_theta": 5.0, "rope_parameters": None}, {"rope_parameters": {"rope_theta": 5}}):
        edit(directory, **values)
        assert read_hugging_face(directory)[0].config.rotary_base == 5.0
    edit(directory, rope_theta=None, rope_scaling=None, rope_parameters={"rope_type": "default"})
    assert read_hugging_face(directory)[0].config.rotary_base == 10000.0


def test_biases_of_attention_alone(write):
    """Where only some maps have biases, the others get none to train, and it goes back so."""
    _, directory = write(small_gpt_config(norm="rms", activation="swiglu", bias=True))
    rename(directory, lambda name: None if "mlp" in name and name.endswith("bias") else name)
    edit(directory, mlp_bias=False)
    model, _ = read_hugging_face(directory)
    biases = {name.split(".")[-2] for name in model.arrays() if name.endswith("bias")}
    assert biases == {"query_key_value", "output"}
    before = load_file(directory / "model.safetensors")
    write_hugging_face(model, directory)
    after = load_file(directory / "model.safetensors")
    assert before.keys() == after.keys()


def test_tables_that_are_equal_though_not_tied(write):
    """Pegasus ties all tables or none: those of decoder and output, once tied, are found to be one again."""
    _, directory = write(small_config(norm_position="pre", tie="decoder"))
    assert read_hugging_face(directory)[0].config.tie == "decoder"
    tensors = load_file(directory / "model.safetensors")
    tensors["lm_head.weight"][3, 3] += 1
    save_file(tensors, directory / "model.safetensors")
    assert read_hugging_face(directory)[0].config.tie == "none"


def test_tokens_that_are_impossible_there_are_impossible_here(write):
    _, directory = write(small_config(norm_position="post"))
    tensors = load_file(directory / "model.safetensors")
    tensors["final_logits_bias"][0, [7, 20]] = -np.inf, 2.5
    save_file(tensors, directory / "model.safetensors")
    bias = read_hugging_face(directory)[0].arrays()["output.bias"]
    assert (bias[7], bias[20], bias[21]) == (ABSENT, 2.5, 0)


@pytest.mark.parametrize(("values", "begins"), [({}, True), ({"toolkit": None}, False)])
def test_whether_texts_begin_with_a_mark(write, values, begins):
    _, directory = write(small_gpt_config(positions="learned", begin=True))
    edit(directory, **values)
    (directory / "generation_config.json").unlink()
    assert read_hugging_face(directory)[0].config.begin == begins
    assert read_hugging_face(directory, begin=True)[0].config.begin


def test_the_ids_of_generation_come_first_and_of_several_ends_the_first(write):
    _, directory = write(small_gpt_config(norm="rms", activation="swiglu"))
    edit(directory, toolkit=None, eos_token_id=9, pad_token_id=-1, bos_token_id=4)
    (directory / "generation_config.json").write_text(json.dumps({"eos_token_id": [11, 12]}))
    found = HuggingFaceModel(directory)
    assert found.vocabulary().foreign([PAD, BOS, EOS]) == [-1, 4, 11]
    assert found.notes == ["it ends its texts with any of the tokens [11, 12], here with [11] only"]
