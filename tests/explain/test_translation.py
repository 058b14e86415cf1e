"""Pages on a translation: the search that is watched is the real one, and the page shows its numbers."""

import numpy as np
import pytest

from tests.checks import random_model, small_config
from toolkit import load
from toolkit.decoding import GenerationConfig, generate
from toolkit.errors import ConfigError, DataError
from toolkit.explain import decoding
from toolkit.explain.decoding import named, translation_page
from toolkit.explain.search import BeamTree, Choices, branch, greedy_tree, steps_of, written
from toolkit.models.seq2seq import translation_batch
from toolkit.nn.tape import Tape
from toolkit.pages.blocks import Bars, Formula, Heat, Maps, Table, Tree
from toolkit.tokenization.special import EOS

SIZE = 30  # of the vocabulary of the random models
SEARCHES = [
    {"num_beams": 2},
    {"num_beams": 4, "length_penalty": 0.0},
    {"num_beams": 5, "early_stopping": "never", "forced_eos": "none", "max_new_tokens": 9},
    {"num_beams": 3, "forced_eos": "free", "max_new_tokens": 6, "min_new_tokens": 4},
    {"num_beams": 3, "repetition_penalty": 1.7, "no_repeat_ngram_size": 2, "max_new_tokens": 12},
]
GREEDY = [{}, {"repetition_penalty": 1.5, "max_new_tokens": 9}]
SAMPLES = [{"do_sample": True, "seed": 3, "max_new_tokens": 9, "num_return_sequences": 3, "top_k": 7, "top_p": 0.9}]


@pytest.fixture(scope="module")
def models():
    """Random models whose outputs differ in length."""
    return [random_model(small_config(tie="none"), np.random.default_rng(seed)) for seed in range(3)]


@pytest.fixture(scope="module")
def translator():
    return load("en-ne-small")


def watched(model, config, count=SIZE, source=(17, 25, 20, 28)):
    """Search; gives what is found, and the observer that saw it."""
    watch = BeamTree(count) if config.num_beams > 1 else Choices(count)
    return generate(model, [source], config, observer=watch)[0], watch


@pytest.mark.parametrize("settings", [*SEARCHES, *GREEDY, *SAMPLES])
def test_watching_changes_nothing(models, settings):
    config = GenerationConfig(**settings)
    for model in models:
        assert watched(model, config)[0] == generate(model, [(17, 25, 20, 28)], config)[0]


@pytest.mark.parametrize("settings", SEARCHES)
def test_the_chosen_way_is_the_best_hypothesis(models, settings):
    config = GenerationConfig(**settings)
    for model in models:
        (best, *_), tree = watched(model, config)
        way = tree.choose(best)
        assert [node.token for node in way[1:]] == written(best)
        assert [node for node in tree.root.every() if node.state == "chosen"] == way
        for few, step in zip(steps_of(way, 2), steps_of(way, SIZE), strict=True):
            assert few.candidates == list(dict.fromkeys([*step.candidates[:2], step.token]))
        np.testing.assert_allclose(way[-1].log_prob, best.log_prob, rtol=1e-12)
        tokens, log_prob, score = tree.ended(config.length_penalty)[0]
        assert (tokens, score) == (written(best), best.score)
        np.testing.assert_allclose(log_prob, best.log_prob, rtol=1e-12)


@pytest.mark.parametrize("settings", SEARCHES)
def test_the_tree_holds_what_a_beam_may_hold(models, settings):
    config = GenerationConfig(**settings)
    width = config.num_beams
    for model in models:
        tree = watched(model, config)[1]
        nodes = list(tree.root.every())
        assert all(not node.children for node in nodes if node.state in ("dropped", "ended"))
        deepest = max(len(node.tokens) for node in nodes)
        assert all(node.state != "kept" for node in nodes if len(node.tokens) == deepest)
        for length in range(1, deepest + 1):
            level = [node for node in nodes if len(node.tokens) == length]
            assert sum(node.state == "kept" for node in level) <= width
            assert sum(node.state == "ended" for node in level) <= width
            assert len(level) <= 2 * width
            worst = min((node.score for node in level if node.state == "kept"), default=-np.inf)
            dropped = [node for node in level if node.state == "dropped" and node.token != EOS]
            if worst > -np.inf:  # the search went on: what was dropped is no better than what was kept
                assert all(node.score <= worst for node in dropped)


def test_the_best_ended_outputs_are_those_that_are_returned(models):
    config = GenerationConfig(num_beams=4, num_return_sequences=4)
    for model in models:
        found, tree = watched(model, config)
        ended = tree.ended(config.length_penalty)
        assert [(tokens, score) for tokens, _, score in ended[: len(found)]] == [
            (written(each), each.score) for each in found
        ]


@pytest.mark.parametrize("settings", [*SEARCHES, *GREEDY])
def test_candidates_have_the_probabilities_that_teacher_forcing_gives(models, settings):
    config = GenerationConfig(**settings)
    for model in models:
        (best, *_), watch = watched(model, config)
        steps = watch.of(written(best)) if config.num_beams == 1 else steps_of(watch.choose(best), SIZE)
        assert [step.token for step in steps] == written(best)
        batch = translation_batch([np.array([17, 25, 20, 28])], [np.array(best.ids)])
        tape = Tape()
        x = model.decode(batch.inputs, model.encode(batch.sources, batch.source_rows, tape), batch.rows, tape)
        raised = np.exp(model.output.logits(x, tape))
        expected = raised / raised.sum(axis=1, keepdims=True)
        for step, row in zip(steps, expected, strict=False):
            tokens, model_stage = step.candidates, step.stages["model"]
            np.testing.assert_allclose([model_stage.candidates[token] for token in tokens], row[tokens], rtol=1e-9)
            assert (np.diff(row[tokens]) <= 0).all()
            assert len(tokens) == SIZE
            assert abs(sum(model_stage.candidates.values()) - 1) < 1e-12
            assert model_stage.kept == SIZE
            assert step.token in step.stages["permitted"].candidates


def test_fewer_candidates_are_the_best_ones_and_what_was_taken(models):
    config = GenerationConfig(do_sample=True, top_k=0, temperature=2.0, max_new_tokens=9, seed=5)
    (best, *_), every_one = watched(models[0], config)
    few = watched(models[0], config, count=2)[1]
    assert [step.candidates for step in few.of(written(best))] == [
        list(dict.fromkeys([*step.candidates[:2], step.token])) for step in every_one.of(written(best))
    ]


def test_greedy_search_has_a_tree_too(models):
    for model in models:
        (best, *_), watch = watched(model, GenerationConfig(), count=3)
        nodes = list(greedy_tree(watch.of(written(best)), best).every())
        assert [node.token for node in nodes if node.state == "chosen"][1:] == written(best)
        for node in nodes:
            scores = [child.score for child in node.children]
            assert scores == sorted(scores, reverse=True)
            assert [child.state for child in node.children] == ["chosen", "dropped", "dropped"][: len(scores)]


def test_a_tree_that_is_too_large_loses_what_matters_least(models):
    (best, *_), tree = watched(models[0], GenerationConfig(num_beams=6, max_new_tokens=16), source=range(16, 26))
    way, nodes = tree.choose(best), list(tree.root.every())
    names = {token: str(token) for token in range(-1, SIZE)}
    for most in (1, len(way) + 3, len(nodes) // 2, len(nodes)):
        root, missing = branch(tree.root, names, most, 99)
        shown = list(branches(root))
        assert len(nodes) - missing == len(shown) == max(most, len(way))
        assert [each.label for each in shown if each.state == "chosen"] == [str(node.token) for node in way]
        lost = [node for node in nodes if node.state == "dropped"]
        if missing <= len(lost):
            assert sum(each.state == "dropped" for each in shown) == len(lost) - missing
    root, missing = branch(tree.root, names, 10**6, 3)
    assert len(list(branches(root))) == sum(len(node.tokens) <= 3 for node in nodes) == len(nodes) - missing


@pytest.mark.parametrize("settings", [{}, {"num_beams": 4}, {"num_beams": 4, "length_penalty": 0.2}])
def test_the_page_shows_the_translation_that_the_translator_gives(translator, settings):
    text = "Where is my book?"
    [[expected]] = translator.translate_n([text], alignments=True, **settings)
    page = translation_page(translator, text, GenerationConfig(**settings))
    assert expected.text in page.about
    assert page.cut == []
    blocks = blocks_of(page)
    assert [row[2] for row in only(blocks, Table)[1].rows] == [str(token) for token in expected.ids]
    assert only(blocks, Table)[1].rows[-1][4] == f"{expected.log_prob:.4f}"
    assert only(blocks, Formula)[0].text.endswith(f"= {expected.score:.4f}")
    averaged = only(blocks, Heat)[0]
    np.testing.assert_allclose(averaged.values, expected.attention, rtol=1e-5, atol=1e-7)
    maps = [each for block in only(blocks, Maps) for each in block.maps]
    assert len(maps) == len(translator.model.decoder.blocks) * translator.model.config.num_heads
    np.testing.assert_allclose(
        np.mean([each.values for each in maps], axis=0), expected.attention, rtol=1e-5, atol=1e-6
    )
    names = named(translator.tokenizer, expected.ids)
    way = [each.label for each in branches(only(blocks, Tree)[0].root) if each.state == "chosen"]
    assert way == ["(beginning)", *(names[token] for token in expected.ids)]
    bars = only(blocks, Bars)
    assert [each.labels[each.chosen[0]] for each in bars] == way[1:]
    taken = [each.columns["model"][each.chosen[0]] for each in bars]
    np.testing.assert_allclose(np.log(taken), expected.token_log_probs, rtol=1e-5, atol=1e-6)


def test_one_layer_and_one_head(translator):
    ids = translator.translate_n(["She eats rice."])[0][0].ids
    page = translation_page(translator, "She eats rice.", layer=1, head=2)
    [maps] = only(blocks_of(page), Maps)
    assert [each.name for each in maps.maps] == ["layer 1, head 2"]
    assert maps.maps[0].rows == page.sections[-2].blocks[1].rows
    assert len(maps.maps[0].rows) == len(ids)
    for wrong in ({"layer": 3}, {"head": 5}, {"layer": 0}):
        with pytest.raises(ConfigError, match="this model has"):
            translation_page(translator, "She eats rice.", **wrong)


def test_what_is_too_long_is_cut_and_the_page_says_so(make_model, tmp_path, monkeypatch):
    translator = load(make_model(tmp_path / "short", positions="learned", max_length=12))
    page = translation_page(translator, "I am a boy " * 9, GenerationConfig(num_beams=3))
    tokens = only(blocks_of(page), Table)[0].rows
    assert len(tokens) == 12
    assert any("the model reads the first 11" in each for each in page.cut)
    monkeypatch.setattr(decoding, "MOST_NODES", 20)
    monkeypatch.setattr(decoding, "MOST_STEPS", 5)
    monkeypatch.setattr(decoding, "MOST_STEPS", 5)
    page = translation_page(translator, "I am a boy.", GenerationConfig(num_beams=3, min_new_tokens=8))
    assert any("are not shown" in each for each in page.cut)
    assert any("first 5 steps" in each for each in page.cut)


def test_maps_that_are_too_large_are_cut_and_the_page_says_so(translator, monkeypatch):
    monkeypatch.setattr("toolkit.explain.attention_maps.MOST_TOKENS", 3)
    page = translation_page(translator, "Where is my book?")
    heat = only(blocks_of(page), Heat)[0]
    assert heat.values.shape == (3, 3)
    assert len(heat.rows) == len(heat.columns) == 3
    assert page.cut == ["Maps show the first 3 of 6 rows.", "Maps show the first 3 of 6 columns."]
    monkeypatch.setattr("toolkit.explain.attention_maps.MOST_CELLS", 40)
    page = translation_page(translator, "Where is my book?")
    assert len(only(blocks_of(page), Maps)) == 1
    assert page.cut[-1].startswith("Layer 2 of 2 has no map of its own")


def test_samples_and_several_outputs(translator):
    settings = {"do_sample": True, "seed": 4, "num_return_sequences": 3, "temperature": 1.5}
    [beams] = translator.translate_n(["Where is my book?"], num_beams=4, num_return_sequences=3)
    page = translation_page(translator, "Where is my book?", GenerationConfig(num_beams=4, num_return_sequences=3))
    [complete] = [section for section in page.sections if section.title == "What was complete"]
    assert {(each.text, f"{each.score:.4f}") for each in beams} <= {(row[1], row[4]) for row in complete.blocks[1].rows}
    [expected] = translator.translate_n(["Where is my book?"], **settings)
    page = translation_page(translator, "Where is my book?", GenerationConfig(**settings))
    assert expected[0].text in page.about
    assert not only(blocks_of(page), Tree)
    [samples] = [section for section in page.sections if section.title == "What was complete"]
    assert [row[4] for row in samples.blocks[1].rows] == [f"{each.score:.4f}" for each in expected]


@pytest.mark.parametrize(("text", "words"), [("", "blank"), ("  \n ", "blank"), ("* * *", "no word in it")])
def test_nothing_to_translate(translator, text, words):
    with pytest.raises(DataError, match=words):
        translation_page(translator, text)


def test_of_several_sentences_the_first_is_explained_and_the_page_says_so(translator):
    alone, first = (
        translation_page(translator, text) for text in ("She eats rice.", "1. She eats rice. Go home!\nNo.")
    )
    assert first.cut == ["The text has 3 sentences, and each is translated by itself: this is the first."]
    assert (first.about, first.sections[0]) == (alone.about, alone.sections[0])


def test_the_command(run, tiny_model, tmp_path):
    given = ("explain", "translate", "I am a boy.", "--model", tiny_model, "--num-beams", 2)
    shown = run(*given, "--max-new-tokens", 4)
    assert shown.code == 0
    assert "The beam as a tree" in shown.out
    assert "layer 1, head 2" in shown.out
    assert "head 2" not in run(*given, "--max-new-tokens", 4, "--layer", 1, "--head", 1, "--candidates", 1).out
    path = tmp_path / "page.html"
    assert run(*given, "--html", path).code == 0
    assert path.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("",), "the text is blank: there is nothing to translate"),
        (("a", "--layer", 2), "layer is 2: this model has layers 1 to 1"),
        (("a", "--candidates", 0), "candidates is 0: it must be at least 1"),
        (("a", "--num-beams", 0), "num_beams is 0: it must be at least 1"),
        ((), "text is missing (see toolkit explain translate --help)"),
    ],
)
def test_mistakes(run, tiny_model, tmp_path, words, sentence):
    page = tmp_path / "page.html"
    failed = run("explain", "translate", *words, "--model", tiny_model, "--html", page)
    assert failed.code == 2
    assert failed.err == f"toolkit: {sentence}\n"
    assert not page.exists()


def test_a_language_model_translates_nothing(run, tiny_gpt):
    failed = run("explain", "translate", "a", "--model", tiny_gpt)
    assert failed.code == 2
    assert "use toolkit explain generate" in failed.err


def blocks_of(page):
    return [block for section in page.sections for block in section.blocks]


def only(blocks, kind):
    return [block for block in blocks if isinstance(block, kind)]


def branches(root):
    return [root, *(each for below in root.branches for each in branches(below))]
