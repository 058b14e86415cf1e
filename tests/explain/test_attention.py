"""The walk of one text through a trained model: the numbers on the page are those of the model."""

import numpy as np
import pytest

from tests.checks import random_model, small_config, small_gpt_config
from toolkit import load
from toolkit.cli import main
from toolkit.commands.explain import ExplainAttention
from toolkit.errors import ConfigError, DataError
from toolkit.explain.attention import attention_page
from toolkit.explain.reading import read_text, read_translation
from toolkit.language_model import LanguageModel
from toolkit.models.seq2seq import source_rows
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.pages.blocks import Bars, Heat, Maps, Numbers, Table
from toolkit.pages.html import document
from toolkit.pages.terminal import lines
from toolkit.tokenization import CharacterTokenizer
from toolkit.translator import Translator

LETTERS = "I amboyमकेटाहुँ।"


@pytest.fixture(scope="module")
def tokenizer():
    return CharacterTokenizer(LETTERS)


def translator(tokenizer, **settings):
    config = small_config(vocab_size=tokenizer.vocab_size, **settings)
    return Translator(random_model(config, np.random.default_rng(0), np.float32), tokenizer)


def language_model(tokenizer, **settings):
    config = small_gpt_config(vocab_size=tokenizer.vocab_size, **settings)
    return LanguageModel(random_model(config, np.random.default_rng(0), np.float32), tokenizer)


def numbers(page, title, name):
    [section] = [section for section in page.sections if section.title == title]
    return next(block for block in section.blocks if isinstance(block, Numbers) and block.name == name)


def blocks(page, kind):
    return [block for section in page.sections for block in section.blocks if isinstance(block, kind)]


def is_shown(page):
    """Both renderers take it."""
    assert len(lines(page, 100, False)) > 100
    assert document(page).startswith("<!")


TRANSLATORS = [
    {},
    {"norm_position": "post", "positions": "learned", "bias": False, "tie": "none", "output_bias": True},
    {"positions": "sinusoidal_halves", "scale_embedding": False, "encoder_layers": 2, "d_model": 12, "num_heads": 3},
]
MODELS = [
    {},
    {"num_key_value_heads": 2, "norm": "rms", "activation": "swiglu", "tie": False, "begin": False},
    {"positions": "learned", "bias": True, "output_bias": True, "d_model": 12, "num_heads": 2},
    {"qk_norm": True, "head_dim": 6, "num_key_value_heads": 2, "rotary_scaling": "linear", "rotary_factor": 2.0},
]


@pytest.mark.parametrize("settings", TRANSLATORS)
def test_the_numbers_of_a_translator_are_the_models_own(tokenizer, settings):
    own = translator(tokenizer, **settings)
    page = attention_page(own, "I am b", "म के", layer=2, head=2)
    is_shown(page)
    model = own.model
    ids, rows = source_rows([tokenizer.encode(" i am b" if model.config.ignore_case else " I am b")])
    memory = model.encode(ids, rows, Tape())
    last = "x after 1 layer" if model.config.encoder_layers == 1 else "x after 2 layers"
    shown = numbers(page, "Memory", "y" if model.config.norm_position == "pre" else last)
    np.testing.assert_array_equal(shown.values, memory)
    inputs = np.array([2, *tokenizer.encode(" म के")])
    target_rows = Rows(np.array([len(inputs)]), memory=rows, memory_of=np.array([0]))
    logits = model.output.logits(model.decode(inputs, memory, target_rows, Tape()), Tape())
    np.testing.assert_array_equal(numbers(page, "Logits", "logits").values[0], -np.sort(-logits[-1])[:8])
    [candidates] = blocks(page, Bars)
    exponentials = np.exp(logits[-1].astype(np.float64))
    np.testing.assert_allclose(
        candidates.columns["probability"], -np.sort(-exponentials)[:8] / exponentials.sum(), rtol=1e-4
    )


@pytest.mark.parametrize("settings", MODELS)
def test_the_numbers_of_a_language_model_are_the_models_own(tokenizer, settings):
    own = language_model(tokenizer, **settings)
    page = attention_page(own, "I am", layer=2, head=2)
    is_shown(page)
    ids = np.array([2] * own.model.config.begin + tokenizer.encode("I am"))
    tape = Tape()
    logits = own.model.output.logits(own.model.read(ids, Rows(np.array([len(ids)])), tape), tape)
    np.testing.assert_array_equal(numbers(page, "Logits", "logits").values[0], -np.sort(-logits[-1])[:8])
    before = "Layer 2: self-attention, head 2: queries, keys, values"
    group = 1 // (own.model.config.num_heads // (own.model.config.num_key_value_heads or own.model.config.num_heads))
    reading = read_text(own, "I am")
    attention = own.model.trunk.decoder.blocks[1].attention.layer
    np.testing.assert_array_equal(numbers(page, before, "Q").values, reading.recorder.found(attention, "query")[:, 1])
    np.testing.assert_array_equal(numbers(page, before, "K").values, reading.recorder.found(attention, "key")[:, group])
    assert (len(blocks(page, Maps)[0].maps), len(blocks(page, Maps))) == (own.model.config.num_heads, 1)
    turned = [each for each in blocks(page, Numbers) if each.name == "Q before turning"]
    assert bool(turned) == (own.model.config.positions == "rotary")


def test_the_shown_steps_follow_from_one_another(tokenizer):
    """The numbers under one heading give those under the next."""
    page = attention_page(translator(tokenizer), "I am boy", "मके", head=2)
    for where in ("Encoder, layer 1: self-attention", "Decoder, layer 1: cross-attention"):
        q, k, v = (numbers(page, f"{where}, head 2: queries, keys, values", each).values for each in "QKV")
        scores = numbers(page, f"{where}, head 2: scores", "S").values
        np.testing.assert_allclose(scores, q @ k.T / 4**0.5, atol=1e-5)
        weights = numbers(page, f"{where}, head 2: softmax", "P").values
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)
        context = numbers(page, f"{where}, head 2: context", "context").values
        np.testing.assert_allclose(context, weights @ v, atol=1e-5)
        joined = numbers(page, f"{where}: all heads", "contexts").values
        np.testing.assert_array_equal(joined[:, 4:], context)
    masked = numbers(page, "Decoder, layer 1: self-attention, head 2: mask", "S + mask").values
    assert np.isneginf(masked[np.triu_indices(len(masked), 1)]).all()
    assert np.isfinite(masked[np.tril_indices(len(masked))]).all()
    assert not any(": mask" in section.title for section in page.sections if "Encoder" in section.title)
    heat = next(each for each in blocks(page, Heat) if each.hidden is not None)
    assert not heat.values[heat.hidden].any()


def test_a_translator_reads_its_own_translation_unless_told(tokenizer):
    own = translator(tokenizer)
    [[best]] = own.translate_n(["I am"])
    reading = read_translation(own, "I am")
    assert reading.inputs[1:].tolist() == list(best.ids)[: len(reading.inputs) - 1]
    given = read_translation(own, "I am", "मम")
    assert tokenizer.decode(given.inputs) == " मम"
    assert given.following.tolist() == [*given.inputs[1:], 3]


def test_a_text_that_is_too_long_is_cut_and_the_page_says_so(tokenizer):
    page = attention_page(translator(tokenizer), "I am boy " * 100, "म " * 40)
    assert page.cut == [
        "The text has 900 tokens, of which the model reads the first 15.",
        "The target has 80 tokens, of which the model reads the first 15.",
    ]
    assert len(numbers(page, "Memory", "y").values) == 16
    page = attention_page(language_model(tokenizer), "I" * 100_000)
    assert page.cut == [
        "Of 100000 characters only the first 512 were tokenized.",
        "The text has 512 tokens, of which the model reads the first 7.",
    ]
    is_shown(page)


def test_what_cannot_be_read_or_shown_is_told_in_one_sentence(tokenizer, tiny_model, tiny_gpt):
    own, other = translator(tokenizer), language_model(tokenizer)
    with pytest.raises(DataError, match="blank"):
        attention_page(own, " \n")
    with pytest.raises(DataError, match="'☃'"):
        attention_page(own, "I ☃")
    for by_ids in (load(tiny_model, ids=True), load(tiny_gpt, ids=True)):
        with pytest.raises(ConfigError, match="the text is missing: give one"):
            attention_page(by_ids)
    with pytest.raises(DataError, match="cannot begin"):
        attention_page(language_model(tokenizer, begin=False), "")
    assert attention_page(other, "").sections  # which begins by itself
    for arguments, complaint in (
        ({"layer": 3}, "layer is 3: this model has layers 1 to 2"),
        ({"layer": 0}, "layer is 0"),
        ({"head": 5}, "head is 5: this model has heads 1 to 4"),
        ({"target": "म"}, "for a translator"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            attention_page(other, "I", **arguments)
    assert "Encoder, layer 1: scores" not in attention_page(own, "I", layer=2).sections  # the encoder has one layer


def test_ids_of_another_vocabulary_are_refused(tokenizer):
    with pytest.raises(DataError, match="vocabulary"):
        read_translation(translator(tokenizer), "I", [4000])
    with pytest.raises(DataError, match="vocabulary"):
        read_text(language_model(tokenizer), [-1])


def test_a_module_that_showed_nothing_is_told(tokenizer):
    own = language_model(tokenizer)
    reading = read_text(own, "I", owners=[own.model.output])
    assert {record.name for record in reading.recorder.records} == {"logits"}
    with pytest.raises(LookupError, match="0 times"):
        reading.recorder.found(own.model.trunk.decoder.norm, "output")


@pytest.mark.parametrize(("name", "text"), [("en-ne-small", "I am a boy."), ("stories", "Once upon a time")])
def test_shipped_models(name, text):
    page = ExplainAttention(text=text, model=name, layer=2, head=3).page()
    is_shown(page)
    assert not page.cut
    last = page.sections[-1].blocks[-1]
    assert isinstance(last, Table)
    if name == "en-ne-small":  # the translation is what the model finds most probable, step by step
        assert [row[1] for row in last.rows] == [row[3] for row in last.rows]
        assert [row[0] for row in last.rows][1:] == [row[3] for row in last.rows][:-1]
        assert load(name).translate(text) == "".join(row[3] for row in last.rows[:-1]).replace("␣", " ").strip()


def test_the_command(capsys, tmp_path):
    assert main(["explain", "attention"]) == 0
    page = capsys.readouterr().out
    assert "with 1,181,696 parameters" in page
    assert "Document" not in page  # nobody who asks for a sentence has the documents
    assert main(["explain", "attention", "I am a boy", "--model", "en-ne-small"]) == 0
    assert capsys.readouterr().out == page
    assert main(["explain", "attention", "--documents"]) == 0
    assert "(2.381, 3.079, 2.505)" in capsys.readouterr().out
    page = tmp_path / "page.html"
    given = ["--model", "en-ne-small", "--target", "म केटा हुँ", "--html", str(page)]
    assert main(["explain", "attention", "I am boy", *given]) == 0
    assert "केटा" in page.read_text("utf-8")
    capsys.readouterr()
    assert main(["explain", "attention", "--documents", "you"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
