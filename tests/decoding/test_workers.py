"""Several processes write what one writes."""

import multiprocessing

import pytest

from tests.conftest import ENGLISH
from toolkit import load, parallel
from toolkit.decoding.generation import deal
from toolkit.errors import ConfigError


@pytest.fixture
def translator(tiny_model):
    translator = load(tiny_model)
    yield translator
    translator.close()
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    "settings", [{}, {"num_beams": 3, "batch_size": 2}, {"do_sample": True, "seed": 3}, {"bad_words": ["a"]}]
)
def test_workers_change_nothing(translator, settings):
    texts = [*ENGLISH, "", "a b c d e f g", "I"]
    alone = translator.translate(texts, **settings, max_new_tokens=8)
    for workers in (2, 3, 2):
        assert translator.translate(texts, **settings, max_new_tokens=8, workers=workers) == alone
    prefixes = [f"ab{number}" for number in range(len(texts))]
    alone = translator.translate_n(texts, prefix=prefixes, **settings)
    shared = translator.translate_n(texts, prefix=prefixes, **settings, workers=2)
    for one, other in zip(alone, shared, strict=True):
        assert [each.ids for each in one] == [each.ids for each in other]
        assert [each.score for each in one] == pytest.approx([each.score for each in other], abs=1e-5)


def test_processes_stay(translator):
    translator.translate(ENGLISH, workers=2)
    first = {each.pid for each in multiprocessing.active_children()}
    translator.translate(ENGLISH, workers=2)
    assert {each.pid for each in multiprocessing.active_children()} == first
    assert len(first) == 2


def test_spawned_processes_read_the_model_again(translator, monkeypatch):
    monkeypatch.setattr(parallel, "START_METHOD", "spawn")
    assert translator.translate(ENGLISH[:2], workers=2) == translator.translate(ENGLISH[:2])


def test_no_worker_is_refused(translator):
    with pytest.raises(ConfigError, match="workers is 0"):
        translator.translate(ENGLISH, workers=0)


def test_what_is_wrong_is_told_and_the_next_call_works(translator):
    for _ in range(2):
        with pytest.raises(ConfigError, match="max_new_tokens is 1000"):
            translator.translate(ENGLISH, max_new_tokens=1000, workers=2)
    assert translator.translate(ENGLISH, workers=2) == translator.translate(ENGLISH)


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_all_workers_have_about_as_much(workers):
    lengths = [5, 1, 9, 9, 2, 4, 30, 8, 8, 8, 1]
    shares = deal(lengths, workers)
    assert sorted(index for share in shares for index in share) == list(range(len(lengths)))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert deal([3], workers) == [[0]]
    assert deal([], workers) == []
