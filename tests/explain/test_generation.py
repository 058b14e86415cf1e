"""Pages on a continuation: what was drawn is what the model writes, and each stage is what sampling used."""

import numpy as np
import pytest

from toolkit import load
from toolkit.decoding import ContinuationConfig, generate, sampling
from toolkit.errors import ConfigError, DataError
from toolkit.explain import attention_maps
from toolkit.explain.decoding import generation_page, prompt_ids
from toolkit.explain.search import BeamTree, Choices, steps_of, written
from toolkit.pages.blocks import Bars, Heat, Maps, Table, Tree
from toolkit.pages.writing import labels
from toolkit.tokenization.special import BOS

SAMPLES = [
    {},
    {"temperature": 1.3, "min_p": 0.0, "top_k": 0, "seed": 1},
    {"temperature": 1.0, "min_p": 0.0, "top_k": 0, "seed": 8},
    {"temperature": 1.4, "top_k": 6, "top_p": 0.8, "min_p": 0.15, "seed": 2},
    {"temperature": 2.0, "top_p": 0.95, "min_p": 0.0, "repetition_penalty": 1.5, "no_repeat_ngram_size": 2},
    {"temperature": 1.5, "min_new_tokens": 6, "forced_eos": "scored", "seed": 4},
    {"temperature": 1.5, "past_context": "slide", "max_new_tokens": 40, "seed": 5},
]
GREEDY = [{"temperature": 0.0}, {"do_sample": False, "repetition_penalty": 1.3}]
BEAMS = [{"do_sample": False, "num_beams": 3}, {"do_sample": False, "num_beams": 4, "repetition_penalty": 1.3}]
STAGES = {"top_k": lambda config, size: 0 < config.top_k < size, "top_p": lambda config, _: config.top_p < 1}
STAGES["min_p"] = lambda config, _: config.min_p > 0


@pytest.fixture(scope="module")
def model(tiny_gpt):
    return load(tiny_gpt)


@pytest.fixture(scope="module")
def stories():
    return load("stories")


def config_of(settings):
    return ContinuationConfig(**{"max_new_tokens": 9, **settings})


def watched(model, config, count=None, prompt="I am a"):
    """Continue a prompt; gives what is written, and the observer that saw it."""
    ids, count = model.tokenizer.encode(prompt), count or model.tokenizer.vocab_size
    watch = BeamTree(count) if config.num_beams > 1 else Choices(count)
    return generate(model.model, [ids], config, observer=watch)[0], watch


@pytest.mark.parametrize("settings", [*SAMPLES, *GREEDY, *BEAMS, {"num_return_sequences": 3, "temperature": 2.0}])
def test_watching_changes_nothing(model, settings):
    config = config_of(settings)
    found = watched(model, config)[0]
    assert found == generate(model.model, [model.tokenizer.encode("I am a")], config)[0]
    settings = {"max_new_tokens": 9, **settings}
    expected = model.generate_n(["I am a"], **settings)[0]
    assert [written(each) for each in found] == [each.ids for each in expected]


@pytest.mark.parametrize("settings", [*SAMPLES, *GREEDY])
def test_the_steps_are_those_of_the_output(model, settings):
    (best, *_), watch = watched(model, config_of(settings))
    steps = watch.of(written(best))
    taken = [step.stages["model"].candidates[step.token] for step in steps]
    np.testing.assert_allclose(np.log(taken), best.token_log_probs, rtol=1e-4, atol=1e-6)
    for step in steps:
        assert abs(sum(step.stages["model"].candidates.values()) - 1) < 1e-5


@pytest.mark.parametrize("settings", SAMPLES)
def test_the_last_stage_is_what_was_drawn_from(model, settings, monkeypatch):
    config, drawn = config_of(settings), []
    monkeypatch.setattr(sampling, "draw", recorded(sampling.draw, drawn))
    (best, *_), watch = watched(model, config)
    steps = watch.of(written(best))
    assert len(drawn) == len(steps) > 1
    expected = ["temperature", *(name for name, used in STAGES.items() if used(config, model.tokenizer.vocab_size))]
    for step, weights in zip(steps, drawn, strict=True):
        assert list(step.stages) == ["model", "permitted", *expected]
        last = step.stages[expected[-1]]
        assert abs(sum(last.candidates.values()) - 1) < 1e-12
        assert last.kept == len(last.candidates) == np.count_nonzero(weights)
        used = np.sort(weights[weights > 0]) / weights.sum()
        np.testing.assert_allclose(np.sort(list(last.candidates.values())), used, rtol=1e-12)
        assert step.token in last.candidates


@pytest.mark.parametrize("settings", SAMPLES)
def test_every_stage_is_made_of_the_one_before(model, settings):
    """Temperature raises what is permitted to a power; every other stage leaves out the least probable."""
    config = config_of(settings)
    (best, *_), watch = watched(model, config)
    for step in watch.of(written(best)):
        names, stages = list(step.stages), list(step.stages.values())
        raised = {token: each ** (1 / config.temperature) for token, each in stages[1].candidates.items()}
        for token, each in stages[2].candidates.items():
            assert abs(each - raised[token] / sum(raised.values())) < 1e-5
        for name, before, after in zip(names[3:], stages[2:], stages[3:], strict=False):
            assert after.candidates.keys() <= before.candidates.keys()
            kept = sum(before.candidates[token] for token in after.candidates)
            for token, each in after.candidates.items():
                assert abs(each - before.candidates[token] / kept) < 1e-12
            least = min(before.candidates[token] for token in after.candidates)
            lost = before.candidates.keys() - after.candidates.keys()
            assert all(before.candidates[token] <= least for token in lost)
            most = max(before.candidates.values())
            if name == "top_k":
                assert after.kept == min(config.top_k, before.kept)
            elif name == "top_p":
                assert kept >= config.top_p - 1e-12 > kept - least
            else:
                assert least >= config.min_p * most * (1 - 1e-12)
                assert all(before.candidates[token] < config.min_p * most for token in lost)


@pytest.mark.parametrize("settings", BEAMS)
def test_beams_of_a_language_model_are_a_tree(model, settings):
    config = config_of(settings)
    (best, *_), tree = watched(model, config)
    way = tree.choose(best)
    assert [node.token for node in way[1:]] == written(best) == [step.token for step in steps_of(way, 1)]
    assert all(len(node.children) <= 2 * config.num_beams for node in tree.root.every())


@pytest.mark.parametrize("settings", [{}, {"top_p": 0.9, "temperature": 1.2, "seed": 6}, {"temperature": 0.0}])
def test_the_page_shows_the_text_that_the_model_writes(stories, settings):
    settings = {"max_new_tokens": 6, **settings}
    [[expected]] = stories.generate_n(["The little dog"], **settings)
    page = generation_page(stories, "The little dog", ContinuationConfig(**settings), candidates=4)
    blocks = blocks_of(page)
    assert f"“{expected.text}”" in page.about
    assert [row[2] for row in only(blocks, Table)[1].rows] == [str(token) for token in expected.ids]
    assert only(blocks, Table)[1].rows[-1][4] == f"{expected.log_prob:.4f}"
    bars = only(blocks, Bars)
    names = labels(stories.tokenizer, expected.ids)
    assert [each.labels[each.chosen[0]].partition("#")[0] for each in bars] == [
        name.partition("#")[0] for name in names
    ]
    for each in bars:
        *before, last = each.columns.values()
        assert 4 <= len(each.labels) <= 5
        assert last[each.chosen[0]] is not None
        assert all(None not in column for column in before[:1])
    assert (len(only(blocks, Tree)) == 1) == (settings.get("temperature") == 0)
    columns = {
        0: ["model", "temperature 0.7", "top-k 50", "min-p 0.1"],
        1: ["model", "temperature 1.2", "top-k 50", "top-p 0.9", "min-p 0.1"],
    }
    if settings.get("temperature") != 0:
        assert list(bars[0].columns) == columns["top_p" in settings]


def test_what_is_not_permitted_has_a_column_where_it_matters(model, stories):
    config = ContinuationConfig(max_new_tokens=4, forced_eos="scored", temperature=2.0)
    bars = only(blocks_of(generation_page(model, "I am a", config, candidates=3)), Bars)
    assert all("permitted" in each.columns for each in bars)
    [forced] = [each for each in bars[-1].columns["permitted"] if each is not None]
    assert abs(forced - 1) < 1e-6
    free = only(blocks_of(generation_page(stories, "Once", config_of({}))), Bars)
    assert all("permitted" not in each.columns for each in free)


def test_attention_is_that_of_a_pass_over_all_that_was_read(stories):
    config = ContinuationConfig(max_new_tokens=4)
    page = generation_page(stories, "Once upon a time", config)
    [[written_ids]] = [[each.ids for each in stories.generate_n(["Once upon a time"], max_new_tokens=4)[0]]]
    read = [BOS, *stories.tokenizer.encode("Once upon a time"), *written_ids][:-1]
    blocks = blocks_of(page)
    mask, maps = only(blocks, Heat)[0], [each for block in only(blocks, Maps) for each in block.maps]
    assert list(mask.rows) == list(mask.columns) == labels(stories.tokenizer, read)
    shape = stories.model.config
    assert len(maps) == shape.layers * shape.num_heads
    for each in [mask, *maps]:
        assert (each.hidden == np.triu(np.ones((len(read), len(read)), bool), 1)).all()
        assert (each.values[each.hidden] == 0).all()
        np.testing.assert_allclose(each.values.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.mean([each.values for each in maps], axis=0), mask.values, rtol=1e-5, atol=1e-6)


def test_maps_do_not_depend_on_what_follows(model):
    ids = model.tokenizer.encode("I am a boy.")
    whole, hidden = attention_maps.self_attention_maps(model.model, ids)
    part, _ = attention_maps.self_attention_maps(model.model, ids[:-2])
    np.testing.assert_allclose(whole[:, :, :-2, :-2], part, rtol=1e-5, atol=1e-7)
    assert hidden.sum() == len(ids) * (len(ids) - 1) / 2


def test_a_long_prompt_loses_its_beginning_and_the_page_says_so(model):
    text, context = "I am a boy. " * 12, model.model.config.max_length
    whole = model.tokenizer.encode(text)
    ids, cut = prompt_ids(model, text, config_of({}))
    assert ids == whole[-(context - 1 - 9) :]
    page = generation_page(model, text, config_of({}))
    assert (
        page.cut
        == cut
        == [
            f"The prompt has {len(whole)} tokens and the context {context}, with what is written: the first "
            f"{len(whole) - len(ids)} are cut."
        ]
    )
    fits = model.tokenizer.decode(whole[: context - 2])
    assert len(prompt_ids(model, fits, config_of({}))[0]) == context - 2
    with pytest.raises(DataError, match="there is room for 0"):
        generation_page(
            model, text, config_of({"max_new_tokens": context, "min_new_tokens": context - 1, "forced_eos": "scored"})
        )


def test_a_context_that_slides_shows_its_last_window(model):
    context = model.model.config.max_length
    config = config_of({"past_context": "slide", "max_new_tokens": 40, "temperature": 1.5})
    page = generation_page(model, "I am a boy. " * 12, config)
    assert [each for each in page.cut if "The context slid" in each]
    assert len(only(blocks_of(page), Heat)[0].rows) <= context


def test_an_empty_prompt_lets_the_model_begin(stories):
    page = generation_page(stories, "", ContinuationConfig(max_new_tokens=2))
    assert only(blocks_of(page), Table)[0].rows == [("0", "<s>", str(BOS))]
    assert stories.generate("", max_new_tokens=2) in page.about


def test_large_maps_show_their_last_rows(stories, monkeypatch):
    monkeypatch.setattr(attention_maps, "MOST_TOKENS", 3)
    page = generation_page(stories, "Once upon a time", ContinuationConfig(max_new_tokens=2))
    mask = only(blocks_of(page), Heat)[0]
    assert mask.values.shape == mask.hidden.shape == (3, 3)
    assert [row[1] for row in only(blocks_of(page), Table)[0].rows][-2:] == list(mask.rows)[:2]
    assert "Maps show the last 3 of 6 rows." in page.cut


def test_one_layer_and_one_head(stories):
    page = generation_page(stories, "Once", ContinuationConfig(max_new_tokens=2), layer=2, head=5)
    [maps] = only(blocks_of(page), Maps)
    assert [each.name for each in maps.maps] == ["layer 2, head 5"]
    with pytest.raises(ConfigError, match="layers 1 to 4"):
        generation_page(stories, "Once", layer=5)


def test_the_command(run, tiny_gpt):
    given = ("I am a", "--model", tiny_gpt, "--max-new-tokens", 3, "--seed", 7, "--temperature", 1.4)
    shown = run("explain", "generate", *given, "--top-p", 0.9, "--candidates", 2)
    written = run("generate", *given, "--top-p", 0.9, "--only-new").out.removesuffix("\n")
    assert shown.code == 0
    assert f"“{written}”" in shown.out
    assert "temperature 1.4" in shown.out
    assert "top-p 0.9" in shown.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("a", "--layer", 2), "layer is 2: this model has layers 1 to 1"),
        (("a", "--head", -1), "head is -1: this model has heads 1 to 2"),
        (("a", "--candidates", 0), "candidates is 0: it must be at least 1"),
        (("a", "--top-p", 2), "top_p is 2.0: it must lie between 0 and 1"),
        ((), "text is missing (see toolkit explain generate --help)"),
    ],
)
def test_mistakes(run, tiny_gpt, words, sentence):
    assert run("explain", "generate", *words, "--model", tiny_gpt).sentence == f"toolkit: {sentence}\n"


def test_a_translator_continues_nothing(run, tiny_model):
    assert "use toolkit explain translate" in run("explain", "generate", "a", "--model", tiny_model).sentence


def recorded(draw, drawn):
    """`draw`, which also keeps the weights that it is given, one row a step."""

    def draw_and_keep(weights, uniform):
        drawn.append(weights[0].copy())
        return draw(weights, uniform)

    return draw_and_keep


def blocks_of(page):
    return [block for section in page.sections for block in section.blocks]


def only(blocks, kind):
    return [block for block in blocks if isinstance(block, kind)]
