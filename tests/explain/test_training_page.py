"""The page on training: it shows the numbers of the pass, and says what it leaves out."""

from html import unescape

import numpy as np
import pytest

from toolkit import load
from toolkit.errors import ConfigError, DataError
from toolkit.explain.adam import entry, first_update
from toolkit.explain.lesson import gradient_of, lesson, teacher_forcing, training_config
from toolkit.explain.reading import DEFAULT_TEXTS, default_text
from toolkit.explain.training import first_rate, training_page
from toolkit.nn.tape import Tape
from toolkit.pages.blocks import Bars, Formula, Heat, Table
from toolkit.pages.html import document
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer
from toolkit.training.optimizer import Adam

METRICS = {
    "settings": {"training": {"label_smoothing": 0.2, "beta1": 0.7, "warmup": 4, "learning_rate": 1e-3, "new": 1}}
}


def blocks_of(page, kind, title=""):
    return [
        each for section in page.sections if title in section.title for each in section.blocks if type(each) is kind
    ]


def test_the_page_of_a_pair_shows_the_numbers_of_its_pass(tiny_model):
    owner = load(tiny_model)
    before = owner.model.vector.copy()
    page = training_page(owner, ("I am a boy.", "म केटा हुँ।"), METRICS)
    np.testing.assert_array_equal(owner.model.vector, before)
    taught = lesson(owner, ("I am a boy.", "म केटा हुँ।"), METRICS)
    found = teacher_forcing(taught.model, taught.batch, taught.prior)
    (shift,), (table,) = blocks_of(page, Table, "Teacher"), blocks_of(page, Table, "loss of every")
    assert [row[1] for row in shift.rows[1:]] == [row[3] for row in shift.rows[:-1]]
    assert (shift.rows[0][1], shift.rows[-1][3]) == ("<s>", "</s>")
    assert [row[3] for row in table.rows] == [f"{loss:.4f}" for loss in found.losses]
    assert any(f"{taught.model.loss(taught.batch, Tape()).loss:.4f}" in each.text for each in blocks_of(page, Formula))
    (heat,) = blocks_of(page, Heat)
    np.testing.assert_array_equal(heat.hidden, np.triu(np.ones_like(heat.values), 1))
    (bars,) = blocks_of(page, Bars)
    assert np.less(bars.columns["p before"], bars.columns["p after"]).any()
    assert [each.title for each in page.sections].count("Label smoothing") == 1
    assert any("β₁ = 0.7" in each.text and "lr = 0.00025" in each.text for each in blocks_of(page, Formula))
    assert document(page)


def test_the_entries_shown_are_those_of_the_optimizer(tiny_gpt):
    owner = load(tiny_gpt)
    page = training_page(owner, ("He drinks water.",), METRICS, 1e-3)
    taught = lesson(owner, ("He drinks water.",), METRICS)
    sums, gradient = gradient_of(taught.model, taught.batch)
    optimizer = Adam(0.7, 0.98, 1e-9, 0.01)
    update = first_update(taught.model, gradient, sums.tokens, optimizer, 1e-3, 1.0)
    named, numbers = blocks_of(page, Table, "One step of AdamW")
    assert named.rows[0][2].startswith("in the row of")
    for column, (_, name, _) in enumerate(named.rows, start=1):
        name, _, place = name.removesuffix("]").partition("[")
        each = entry(taught.model, update, name, [int(index) for index in place.split(", ")])
        shown = {row[0]: row[column] for row in numbers.rows}
        assert shown["g"] == f"{each.gradient:.3e}"
        assert shown["v = (1 − β₂) g²"] == f"{each.v:.3e}"
        assert shown["θ after"] == f"{each.after:.7f}"


def test_what_is_not_read_or_shown_is_told(make_gpt, tmp_path):
    owner = load(make_gpt(tmp_path / "long", max_length=60))
    page = training_page(owner, ("She eats rice. " * 40,))
    assert len(page.cut) == 3
    assert page.cut[0].endswith("of which the model reads the first 60.")
    assert all(len(each.rows) <= 48 for each in blocks_of(page, Table))
    assert not training_page(owner, ("She eats rice.",)).cut


@pytest.mark.parametrize(
    ("rate", "told"),
    [(1e-4, "the slope tells what it does"), (3e-2, "not by what the slope tells"), (5.0, "The loss rose")],
)
def test_what_a_step_of_this_length_does_is_told(tiny_gpt, rate, told):
    page = training_page(load(tiny_gpt), ("She eats rice.",), {}, rate)
    assert any(told in each.text for each in page.sections[-2].blocks if hasattr(each, "text"))


def test_settings_are_those_of_the_training_where_they_are_told(tiny_model):
    owner = load(tiny_model)
    assert first_rate(lesson(owner, (), METRICS)) == pytest.approx(2.5e-4)
    assert training_config(METRICS).label_smoothing == 0.2
    for nothing in (
        {},
        {"settings": 3},
        {"settings": {"training": {"beta1": 7}}},
        {"settings": {"training": {"eps": ""}}},
    ):
        assert training_config(nothing) is None
        assert not lesson(owner, (), nothing).is_known


@pytest.mark.parametrize(
    ("texts", "error", "told"),
    [
        (("a",), ConfigError, "1 text is given"),
        (("a", "b", "c"), ConfigError, "3 texts are given"),
        ((" ", "b"), DataError, "the sentence is blank"),
        (("a", ""), DataError, "the translation is blank"),
        (("a", "\ud800"), DataError, "surrogate"),
    ],
)
def test_what_is_no_pair_is_refused(tiny_model, texts, error, told):
    with pytest.raises(error, match=told):
        lesson(load(tiny_model), texts, {})


def test_the_command(run, tiny_model, tiny_gpt, tmp_path):
    shown = run("explain", "training", "--model", tiny_gpt, "She eats rice.")
    assert shown.code == 0
    assert "One step of training" in shown.out
    file = tmp_path / "page.html"
    assert run("explain", "training", "--model", tiny_model, "--html", file).code == 0
    taught = lesson(load(tiny_model), (), {})
    assert all(name in unescape(file.read_text(encoding="utf-8")) for name in taught.names(taught.batch.labels))
    assert run("explain", "training", "--model", tiny_model, "--learning-rate", "0").code == 2
    assert run("explain", "training", "--model", tiny_gpt, "a", "b").code == 2


def test_the_formula_is_that_of_the_optimizer(tiny_gpt):
    owner = load(tiny_gpt)
    for settings, told in (
        ({}, "θ ← θ − lr · m̂ / (√v̂ + ε) − lr · λ θ"),
        ({"optimizer": "adam"}, "g ← g + λ θ"),
        ({"eps_inside": True}, "lr · m̂ / √(v̂ + ε)"),
        ({"clip": 0.0}, "without clipping"),
    ):
        page = training_page(owner, ("She eats rice.",), {"settings": {"training": settings}})
        assert any(told in each.text for each in blocks_of(page, Formula)[:-1])


def test_that_nothing_is_dropped_is_told(tiny_model, tiny_gpt):
    assert load(tiny_model).model.config.residual_dropout
    assert "trained with dropout" in training_page(load(tiny_model)).about
    assert "dropout" not in training_page(load(tiny_gpt)).about


def test_muon_is_not_passed_over(tiny_gpt):
    owner = load(tiny_gpt)
    for optimizer, told in (("muon", 1), ("adamw", 0)):
        page = training_page(owner, ("She eats rice.",), {"settings": {"training": {"optimizer": optimizer}}})
        assert sum("Muon" in each for each in page.cut) == told
        assert any(each.title == "One step of AdamW" for each in page.sections)


@pytest.mark.parametrize("train", [lambda texts: SentencePieceTokenizer.train(texts, 330), CharacterTokenizer.train])
@pytest.mark.parametrize("text", DEFAULT_TEXTS)
def test_our_own_text_is_one_whose_letters_the_model_has(train, text):
    assert default_text(train([text])) == text
    assert default_text(ByteTokenizer()) == DEFAULT_TEXTS[0]


def test_a_model_for_which_we_have_no_text_is_given_one():
    for strange in (SentencePieceTokenizer.train(["上下左右"] * 4, 300), CharacterTokenizer("上下左右")):
        with pytest.raises(ConfigError, match="the text is missing: give one"):
            default_text(strange)


def test_our_own_pair_is_turned_for_a_translator_that_is(tiny_model):
    owner = load(tiny_model)
    ways = [lesson(owner, (), {"settings": {"reverse": reverse}}).batch for reverse in (False, True)]
    assert ways[0].sources.tolist() == ways[1].labels.tolist()
    assert ways[0].labels.tolist() == ways[1].sources.tolist()


def test_a_model_without_marks_predicts_all_but_the_first(make_gpt, tmp_path):
    owner = load(make_gpt(tmp_path / "bare", begin=False))
    ids = owner.tokenizer.encode("She eats rice.")
    taught = lesson(owner, ("She eats rice.",), {})
    assert (taught.batch.inputs.tolist(), taught.batch.labels.tolist()) == (ids[:-1], ids[1:])
