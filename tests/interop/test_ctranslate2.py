"""Models in the layout of CTranslate2.

The fixtures were made by CTranslate2's own converters, with what it says of some texts: see `ctranslate2_live.py`.
"""

import json
import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.checks import random_model, small_config, small_gpt_config
from toolkit.decoding import ContinuationConfig, GenerationConfig, generate, score
from toolkit.errors import ModelError
from toolkit.interop.ctranslate2 import StoredModel, read, write, write_weights
from toolkit.interop.ctranslate2_file import read_variables
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.gpt import ABSENT, GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization import ByteTokenizer, load_tokenizer
from toolkit.tokenization.special import BOS, EOS, SPECIAL_TOKENS

FIXTURES = Path(__file__).parent / "fixtures" / "ctranslate2"
TRANSLATORS = ["marian-int8", "marian-int16", "pegasus-float32", "pegasus-float16", "m2m100-float32"]
LANGUAGE_MODELS = [
    *("gpt2-float32", "llama-float32", "llama-bfloat16", "mistral-float16", "qwen2-float32", "qwen3-bfloat16"),
    *("opt-float32", "gpt_bigcode-float32"),
]
TOKENS = [*SPECIAL_TOKENS, *(f"t{index}" for index in range(16, 30))]

CONFIGS = {
    "post-norm": small_config(norm_position="post", tie="all", activation="silu"),
    "pre-norm": small_config(norm_position="pre", tie="decoder", activation="relu", positions="sinusoidal_halves"),
    "no bias": small_config(bias=False, tie="none", activation="gelu", positions="learned", scale_embedding=False),
    "output bias": small_config(
        output_bias=True, activation="gelu_tanh", ignore_case=True, split_sentences=False, max_length=2000
    ),
    "gpt": small_gpt_config(positions="learned", bias=True, norm_eps=1e-3),
    "gpt, no bias": small_gpt_config(bias=False, activation="relu", tie=False, output_bias=True, begin=False),
    "gated": small_gpt_config(activation="swiglu", norm="rms", num_key_value_heads=2, rotary_base=500.0),
    "heads of their own width": small_gpt_config(
        norm="rms",
        head_dim=6,
        qk_norm=True,
        bias=True,
        bias_in="attention_input",
        rotary_scaling="linear",
        rotary_factor=2.5,
    ),
    "gated, biases": small_gpt_config(activation="swiglu", bias=True, num_key_value_heads=1, positions="sinusoidal"),
}


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def model(request: pytest.FixtureRequest) -> Seq2Seq | GPT:
    return random_model(request.param, np.random.default_rng(0), np.float32)


def expected(name: str) -> dict[str, Any]:
    return json.loads((FIXTURES / name / "expected.json").read_text(encoding="utf-8"))


def ids(reading: StoredModel, tokens: list[str]) -> list[int]:
    return reading.vocabulary.ours(map(reading.tokens.index, tokens))


def tokens(reading: StoredModel, ours: list[int]) -> list[str]:
    return [reading.tokens[index] for index in reading.vocabulary.foreign(ours)]


def same_settings(one: Any, other: Any) -> bool:
    names = [field.name for field in fields(one) if not field.name.endswith("_dropout")]
    return all(getattr(one, name) == getattr(other, name) for name in names)


def log_probs(model: GPT, text: list[int]) -> np.ndarray:
    """Of every token but the first."""
    tape = Tape()
    logits = model.output.logits(model.read(np.array(text), Rows(np.array([len(text)])), tape), tape).astype(np.float64)
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return logits[np.arange(len(text) - 1), text[1:]]


@pytest.mark.parametrize("name", ["post-norm", "gpt", "gated"])
def test_a_model_written_in_int8_is_the_rounded_one(name: str, tmp_path: Path) -> None:
    """Every row by its own scale, the tables too; what CTranslate2 has several names for keeps them."""
    model = random_model(CONFIGS[name], np.random.default_rng(0), np.float32)
    write_weights(model, [f"t{index}" for index in range(model.config.vocab_size)], tmp_path, int8=True)
    _, _, arrays, aliases = read_variables(tmp_path / "model.bin")
    matrices = {name for name, array in arrays.items() if array.dtype == np.int8 and array.ndim}
    assert {f"{name}_scale" for name in matrices} == {name for name in arrays if name.endswith("_scale")}
    assert matrices == {name for name, array in arrays.items() if name.endswith("/weight") and array.ndim == 2}
    assert {f"{alias}_scale" for alias, of in aliases.items() if of in matrices} <= aliases.keys()
    ours, found = model.arrays(), read(tmp_path).arrays
    for name, value in ours.items():
        largest = np.abs(value).max(axis=1 if name.endswith("table") else 0, keepdims=True)
        assert (np.abs(found[name] - value) <= 0.501 * largest / 127).all() or value.ndim == 1


# Waves in float16 are read as exact ones.
@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_translator_of_theirs_gives_the_same_log_probabilities(name: str) -> None:
    reading, theirs = read(FIXTURES / name), expected(name)
    sources, targets = ([ids(reading, text) for text in theirs[key]] for key in ("sources", "targets"))
    for ours, log_probs in zip(score(reading.model(), sources, targets), theirs["log_probs"], strict=True):
        np.testing.assert_allclose(ours.token_log_probs, log_probs, atol=1e-2 if name.endswith("float16") else 1e-4)


@pytest.mark.parametrize("name", TRANSLATORS)
@pytest.mark.parametrize("beams", [1, 3])
def test_a_translator_of_theirs_writes_the_same_tokens(name: str, beams: int) -> None:
    reading, theirs = read(FIXTURES / name), expected(name)
    config = GenerationConfig(num_beams=beams, max_new_tokens=12, length_penalty=0.0, forced_eos="none")
    found = generate(reading.model(), [ids(reading, text) for text in theirs["sources"]], config)
    assert [tokens(reading, best.ids) for best, *_ in found] == theirs["outputs"][str(beams)]


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_language_model_of_theirs_gives_the_same_log_probabilities(name: str) -> None:
    reading, theirs = read(FIXTURES / name), expected(name)
    model = reading.model()
    for prompt, given in zip(theirs["prompts"], theirs["log_probs"], strict=True):
        np.testing.assert_allclose(log_probs(model, [BOS, *ids(reading, prompt)]), given, atol=1e-4)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_language_model_of_theirs_writes_the_same_tokens(name: str) -> None:
    reading, theirs = read(FIXTURES / name), expected(name)
    model = reading.model()
    model.config = replace(model.config, begin=True)  # as the prompts were read there
    config = ContinuationConfig(do_sample=False, max_new_tokens=12)
    found = generate(model, [ids(reading, text) for text in theirs["prompts"]], config)
    assert [tokens(reading, best.ids) for best, *_ in found] == theirs["outputs"]["1"]


@pytest.mark.parametrize("name", TRANSLATORS + LANGUAGE_MODELS)
def test_special_tokens_are_found(name: str) -> None:
    reading = read(FIXTURES / name)
    named = [reading.tokens[row] if row >= 0 else None for row in reading.vocabulary.rows[:4]]
    assert named == {
        "marian": [None, "<unk>", None, "</s>"],  # its outputs begin with zeros
        "pegasus": ["<pad>", "<unk>", "<pad>", "</s>"],
        "m2m100": ["<pad>", "<unk>", "</s>", "</s>"],
        "opt": ["<pad>", "</s>", "</s>", "</s>"],
        "llama": [None, "<unk>", "<s>", "</s>"],
        "mistral": [None, "<unk>", "<s>", "</s>"],
    }.get(name.partition("-")[0], [None, "<|endoftext|>", "<|endoftext|>", "<|endoftext|>"])
    if name in LANGUAGE_MODELS:
        assert reading.config.begin == name.startswith(("llama", "mistral"))


@pytest.mark.parametrize(
    ("name", "first"), [("mistral-float16", None), ("opt-float32", "</s>"), ("gpt2-float32", "w7")]
)
def test_a_tokenizer_beside_a_model_says_what_texts_begin_with(name: str, first: str | None, tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / name, tmp_path / "model")
    names = read(tmp_path / "model").tokens
    content: dict[str, Any] = {"model": {"vocab": {token: index for index, token in enumerate(names)}}}
    if first:
        special = {first: {"id": first, "ids": [names.index(first)], "tokens": [first]}}
        single = [{"SpecialToken": {"id": first, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
        content["post_processor"] = {"type": "TemplateProcessing", "single": single, "special_tokens": special}
    (tmp_path / "model" / "tokenizer.json").write_text(json.dumps(content))
    reading = read(tmp_path / "model")
    assert reading.config.begin == (first is not None)
    if first:
        assert reading.vocabulary.rows[BOS] == names.index(first)


@pytest.mark.parametrize("name", ["pegasus-float32", "pegasus-float16", "gpt2-float32", "llama-float32"])
def test_what_they_wrote_is_written_again(name: str, tmp_path: Path) -> None:
    reading = read(FIXTURES / name)
    model = reading.model(Vocabulary.own(len(reading.tokens)))
    write_weights(model, reading.tokens, tmp_path, half=name.endswith("16"))
    theirs, ours = (read_variables(directory / "model.bin") for directory in (FIXTURES / name, tmp_path))
    assert ours.specification == theirs.specification
    assert ours.revision == theirs.revision
    # They say that keys are not shared; ours say how far waves reach, so that longer sources can be read.
    known = {name for name in [*theirs.arrays, *theirs.aliases] if not name.endswith("/multi_query_attention")}
    assert {*ours.arrays, *ours.aliases} == known
    for variable in known:
        array, same = (found.arrays[found.aliases.get(variable, variable)] for found in (theirs, ours))
        if not variable.endswith(("scale_embeddings", "encodings")):
            assert same.dtype == array.dtype, variable
            np.testing.assert_array_equal(same, array, err_msg=variable)


def test_what_is_written_is_read_exactly(model: Seq2Seq | GPT, tmp_path: Path) -> None:
    write_weights(model, TOKENS, tmp_path)
    reading = read(tmp_path)
    assert same_settings(reading.config, model.config)
    assert reading.tokens == TOKENS
    assert reading.vocabulary == Vocabulary.own(30)
    assert reading.arrays.keys() == model.arrays().keys()
    for name, value in model.arrays().items():
        np.testing.assert_array_equal(reading.arrays[name], value, err_msg=name)
    assert reading.model().vector.tobytes() == model.vector.tobytes()


def test_half_precision_rounds_and_takes_half_the_room(model: Seq2Seq | GPT, tmp_path: Path) -> None:
    sizes = {}
    for half in (False, True):
        (tmp_path / str(half)).mkdir()
        write_weights(model, TOKENS, tmp_path / str(half), half)
        sizes[half] = (tmp_path / str(half) / "model.bin").stat().st_size
    reading = read(tmp_path / "True")
    assert reading.config.positions == model.config.positions
    for name, value in model.arrays().items():
        np.testing.assert_array_equal(reading.arrays[name], value.astype(np.float16), err_msg=name)
    assert sizes[True] < 0.75 * sizes[False]


@pytest.mark.parametrize("settings", [{"rotary_scaling": "yarn"}, {"rotary_attention_factor": 2.0}], ids=str)
def test_frequencies_that_model_bin_cannot_say_are_refused(settings: dict[str, Any], tmp_path: Path) -> None:
    model = random_model(small_gpt_config(**settings), np.random.default_rng(0), np.float32)
    with pytest.raises(ModelError, match=r"CTranslate2 has no rotary positions of rotary_scaling .*: only of none"):
        write_weights(model, TOKENS, tmp_path)


def test_tied_tables_are_stored_once(tmp_path: Path) -> None:
    write_weights(random_model(small_config(tie="all"), np.random.default_rng(0), np.float32), TOKENS, tmp_path)
    variables = read_variables(tmp_path / "model.bin")
    assert "decoder/embeddings/weight" in variables.arrays
    for name in ("encoder/embeddings_0/weight", "decoder/projection/weight"):
        assert variables.aliases[name] == "decoder/embeddings/weight"


def test_the_tokenizer_lies_beside(tmp_path: Path) -> None:
    tokenizer = ByteTokenizer()
    model = random_model(small_gpt_config(vocab_size=tokenizer.vocab_size), np.random.default_rng(0), np.float32)
    write(model, tokenizer, tmp_path)
    assert load_tokenizer(tmp_path).encode("केटा") == tokenizer.encode("केटा")
    reading = read(tmp_path)
    assert reading.tokens == [tokenizer.piece(index) for index in range(tokenizer.vocab_size)]
    settings = json.loads((tmp_path / "config.json").read_text())
    assert (settings["unk_token"], settings["bos_token"], settings["eos_token"]) == ("<unk>", "<s>", "</s>")


def test_reading_for_a_layout_puts_special_tokens_first_and_never_writes_an_alias() -> None:
    reading = read(FIXTURES / "pegasus-float32")
    model = reading.model()
    table, first = model.source.embedding.table.data, reading.arrays["source.embedding.table"]
    assert model.config.vocab_size == reading.vocabulary.size == len(SPECIAL_TOKENS) + 40 - 3
    np.testing.assert_array_equal(table[EOS], first[1])
    np.testing.assert_array_equal(table[16:], first[3:])
    assert (model.output.bias.data == ABSENT).sum() == 13  # twelve that are only ours, and the begin mark
    assert model.output.bias.data[BOS] == ABSENT
