"""Forced beginnings, earliest and forced ends, with greedy search, beam search and sampling alike."""

import numpy as np
import pytest

from tests.decoding import reference
from toolkit.decoding import GenerationConfig, generate, score
from toolkit.errors import ConfigError, DataError
from toolkit.tokenization.special import EOS

LENGTHS = [3, 7, 0, 7, 5, 1]
PREFIXES = [[], [20, 21, 22], [16], [30, 17], [], [36, 36, 36, 36]]
WAYS = [{}, {"num_beams": 3, "num_return_sequences": 2}, {"do_sample": True, "num_return_sequences": 2}]


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("least", [0, 3])
def test_prefixes_and_earliest_ends_equal_the_plain_ones(random_model, make_sources, width, least, batch_size):
    model, sources = random_model(seed=5), make_sources(LENGTHS)
    config = GenerationConfig(max_new_tokens=6, min_new_tokens=least, num_beams=width)
    found = generate(model, sources, config, batch_size, PREFIXES)
    for source, prefix, (hypothesis,) in zip(sources, PREFIXES, found, strict=True):
        limit = len(prefix) + 6
        if width == 1:
            assert hypothesis.ids == reference.greedy(model, source, limit, prefix, least)
        else:
            score, ids, _ = reference.beam_search(model, source, limit, width, 1.0, prefix, least)
            assert hypothesis.ids == list(ids)
            assert hypothesis.score == pytest.approx(score, abs=1e-9)


@pytest.mark.parametrize("way", WAYS)
def test_outputs_begin_with_their_prefix_which_counts(random_model, make_sources, way):
    model, sources = random_model(), make_sources(LENGTHS)
    config = GenerationConfig(max_new_tokens=8, **way)
    for source, prefix, found in zip(sources, PREFIXES, generate(model, sources, config, 4, PREFIXES), strict=True):
        assert len(found) == config.num_return_sequences
        for each in found:
            assert each.ids[: len(prefix)] == prefix
            assert each.log_prob == pytest.approx(reference.log_prob_of(model, source, each.ids), abs=1e-9)
            assert len(each.ids) < len(prefix) + 8
        if not config.do_sample:
            assert len({tuple(each.ids) for each in found}) == len(found)


@pytest.mark.parametrize("way", WAYS)
def test_forcing_works_in_every_size_of_vocabulary(random_model, make_sources, way):
    """Where one token is left, the places of the others are filled up; what fills them is never read."""
    for size in (255, 257, 300, 600):
        model, sources = random_model(vocab_size=size), make_sources([4, 2], vocab_size=size)
        config = GenerationConfig(max_new_tokens=3, **way)
        for group in generate(model, sources, config, prefixes=[[size - 1, 20], [20]]):
            assert all(np.isfinite(each.log_prob) for each in group)


@pytest.mark.parametrize("way", WAYS)
def test_no_prefix_and_empty_prefixes_are_the_same(random_model, make_sources, way):
    model, sources = random_model(), make_sources(LENGTHS)
    config = GenerationConfig(max_new_tokens=8, **way)
    assert generate(model, sources, config) == generate(model, sources, config, prefixes=[[]] * len(sources))


@pytest.mark.parametrize("way", WAYS)
def test_a_forced_beginning_is_new_and_counts_nothing(random_model, make_sources, way):
    """It is in front of the prefix, and teacher forcing gives the same scores."""
    model, sources = random_model(), make_sources(LENGTHS)
    config = GenerationConfig(max_new_tokens=8, min_new_tokens=3, **way)
    found = generate(model, sources, config, 4, PREFIXES, forced_bos=25)
    longest = 0
    for source, prefix, group in zip(sources, PREFIXES, found, strict=True):
        for each in group:
            assert each.ids[: len(prefix) + 1] == [25, *prefix]
            assert each.token_log_probs[0] == 0
            assert len(prefix) + 3 <= len(each.ids) < len(prefix) + 8
            [scored] = score(model, [source], [each.ids], forced_bos=25)
            np.testing.assert_allclose(each.token_log_probs, scored.token_log_probs, atol=1e-9)
            assert each.score == pytest.approx(scored.score, abs=1e-9)
            longest = max(longest, len(each.ids) - len(prefix))
    assert longest == 7
    with pytest.raises(ConfigError, match="max_new_tokens is 1: it must be at least 2"):
        generate(model, sources, GenerationConfig(max_new_tokens=1), forced_bos=25)
    with pytest.raises(DataError, match="ids outside"):
        generate(model, sources, forced_bos=10**6)
    with pytest.raises(DataError, match="does not begin with the id 25"):
        score(model, sources[:1], [[20]], forced_bos=25)


def test_a_prefix_may_hold_what_is_never_written(random_model, make_sources):
    """Spare symbols can be taught to choose a language: they are forced, and never chosen."""
    model, sources = random_model(), make_sources([4, 2])
    for found in generate(model, sources, GenerationConfig(max_new_tokens=8, num_beams=2), prefixes=[[8], [8, 9]]):
        assert found[0].ids[0] == 8
        assert np.isfinite(found[0].log_prob)


@pytest.mark.parametrize("way", WAYS)
def test_no_output_ends_before_the_earliest_end(random_model, make_sources, way):
    model, sources = random_model(end=60.0), make_sources(LENGTHS)  # it would end at once
    for least in (0, 5):
        config = GenerationConfig(max_new_tokens=12, min_new_tokens=least, **way)
        found = generate(model, sources, config, prefixes=PREFIXES)
        for prefix, group in zip(PREFIXES, found, strict=True):
            assert min(len(each.ids) - len(prefix) for each in group) == least
    longer = GenerationConfig(min_new_tokens=45, **way)  # raises the limit that nobody has set
    assert min(len(each.ids) for group in generate(model, sources, longer) for each in group) == 45


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("forced_eos", ["scored", "free", "none"])
def test_ends_at_the_limit_count_as_they_should(random_model, make_sources, way, forced_eos):
    model, sources = random_model(), make_sources(LENGTHS)
    config = GenerationConfig(max_new_tokens=5, forced_eos=forced_eos, **way)
    found = [
        (source, each)
        for source, group in zip(sources, generate(model, sources, config), strict=True)
        for each in group
    ]
    assert not all(each.finished for _, each in found)
    for source, each in found:
        table = reference.log_probs_after(model, source, each.ids)
        parts = table[np.arange(len(each.ids) + 1), [*each.ids, EOS]].tolist()
        if not each.finished:
            assert len(each.ids) == (5 if forced_eos == "none" else 4)
            parts = {"scored": parts, "free": [*parts[:-1], 0.0], "none": parts[:-1]}[forced_eos]
        np.testing.assert_allclose(each.token_log_probs, parts, atol=1e-9)
        assert each.log_prob == pytest.approx(sum(parts), abs=1e-9)
        assert each.score == pytest.approx(each.log_prob / len(parts))


@pytest.mark.parametrize("way", WAYS)
def test_without_a_forced_eos_an_output_may_still_end_at_the_limit(random_model, way):
    settings = {"max_new_tokens": 5, "min_new_tokens": 4, **way}
    model = random_model(end=60.0)  # it ends as soon as it may
    for forced_eos, finished in (("none", True), ("scored", False)):
        (found,) = generate(model, [[20, 21]], GenerationConfig(forced_eos=forced_eos, **settings))
        assert [(len(each.ids), each.finished) for each in found] == [(4, finished)] * len(found)
        assert len(found[0].token_log_probs) == 5


def test_parts_of_an_input_give_the_samples_of_the_whole(random_model, make_sources):
    model, sources = random_model(), make_sources(LENGTHS * 2)
    config = GenerationConfig(do_sample=True, num_return_sequences=2)
    numbers = range(3, 3 + len(sources))
    whole = generate(model, sources, config, numbers=numbers)
    parts = [*generate(model, sources[:5], config, numbers=numbers[:5])]
    parts += generate(model, sources[5:], config, numbers=numbers[5:])
    assert [[each.ids for each in group] for group in whole] == [[each.ids for each in group] for group in parts]
    assert whole != generate(model, sources, config)


def test_what_leaves_no_room_or_is_no_text_is_refused(random_model):
    model = random_model()  # writes 64 tokens at most
    with pytest.raises(DataError, match="1 prefixes for 2 sentences"):
        generate(model, [[20], [20]], prefixes=[[20]])
    with pytest.raises(DataError, match="prefix of sentence 2 has 64 tokens"):
        generate(model, [[20], [20]], prefixes=[[20] * 63, [20] * 64])
    with pytest.raises(DataError, match="prefix of sentence 1 has 60 tokens"):
        generate(model, [[20]], GenerationConfig(min_new_tokens=4), prefixes=[[20] * 60])
    with pytest.raises(DataError, match="prefix of sentence 1 has ids outside"):
        generate(model, [[20]], prefixes=[[37]])
    with pytest.raises(DataError, match="prefix of sentence 1 has an end mark"):
        generate(model, [[20]], prefixes=[[20, EOS]])
    with pytest.raises(ConfigError, match="min_new_tokens is 64"):
        generate(model, [[20]], GenerationConfig(min_new_tokens=64))
    with pytest.raises(ConfigError, match="min_new_tokens is 5, but max_new_tokens 5"):
        GenerationConfig(min_new_tokens=5, max_new_tokens=5)
    assert GenerationConfig(min_new_tokens=5, max_new_tokens=5, forced_eos="none").shortest == 5
    (found,) = generate(model, [[20]], prefixes=[[20] * 63])
    assert found[0].ids == [20] * 63
