"""Sampling: filters on hand-made logits, sequences and their scores, independence of batch mates."""

import numpy as np
import pytest

from tests.decoding import reference
from toolkit.decoding import GenerationConfig, generate
from toolkit.decoding.sampling import draw, nucleus, top_k_tokens

LENGTHS = [3, 7, 0, 7, 5, 1]


@pytest.mark.parametrize("count", [1, 2, 5, 300, 999])
def test_top_k_keeps_exactly_k_of_the_largest(count):
    logits = np.random.default_rng(0).standard_normal((4, 999))
    tokens = top_k_tokens(logits, count)
    for row, kept in zip(logits, tokens, strict=True):
        assert len(set(kept.tolist())) == count
        np.testing.assert_array_equal(row[kept], np.sort(row)[::-1][:count])


def test_top_k_keeps_exactly_k_on_ties():
    logits = np.zeros((2, 700))
    logits[:, 650] = 1.0
    tokens = top_k_tokens(logits, 3)
    assert tokens.shape == (2, 3)
    assert all(len(set(row)) == 3 and 650 in row for row in tokens.tolist())


@pytest.mark.parametrize(
    ("mass", "kept"),
    [
        (0.0, [False, True, False, False]),
        (0.4, [False, True, False, False]),
        (0.5, [False, True, False, False]),  # the first token reaches 0.5: the sum before the second is not below it
        (0.51, [False, True, True, False]),  # 0.25 crosses
        (0.76, [True, True, True, False]),
        (0.9, [True, True, True, True]),
        (1.0, [True, True, True, True]),
    ],
)
def test_top_p_keeps_the_token_that_crosses(mass, kept):
    assert nucleus(np.array([[0.25, 1.0, 0.5, 0.25 - 1e-6]]), mass).tolist() == [kept]


def test_top_p_keeps_one_token_and_no_more_than_needed_on_ties():
    assert nucleus(np.ones((3, 8)), 0.0).sum(axis=1).tolist() == [1, 1, 1]
    assert nucleus(np.ones((3, 8)), 0.5).sum(axis=1).tolist() == [4, 4, 4]


def test_a_draw_inverts_the_cumulative_distribution():
    weights = np.array([[0.25, 0.5, 0.25]]).repeat(4, axis=0)
    assert draw(weights, np.array([0.0, 0.2499, 0.26, 0.9999])).tolist() == [0, 0, 1, 2]
    assert draw(np.array([[0.0, 3.0, 0.0]]), np.array([0.0])).tolist() == [1]


def test_sampled_sequences_have_the_models_frequencies(random_model, make_sources):
    model, (source,) = random_model(vocab_size=18, end=0.0, sharpness=1.0), make_sources([4], vocab_size=18)
    count = 3000
    config = GenerationConfig(max_new_tokens=3, do_sample=True, top_k=0, num_return_sequences=count)
    (samples,) = generate(model, [source], config)
    permitted, expected = [3, 16, 17], {}
    first = np.exp(reference.log_probs_after(model, source, [])[-1])[permitted]
    expected[()] = first[0] / first.sum()
    for index, token in enumerate(permitted[1:], 1):
        second = np.exp(reference.log_probs_after(model, source, [token])[-1])[permitted]
        expected[(token,)] = first[index] / first.sum() * second[0] / second.sum()
    for ids, probability in expected.items():
        frequency = np.mean([tuple(each.ids) == ids for each in samples])
        assert abs(frequency - probability) < 4 * np.sqrt(probability * (1 - probability) / count)


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, {"top_k": 1}, {"top_p": 0.0, "top_k": 0}])
def test_sampling_without_chance_is_greedy_search(random_model, make_sources, settings):
    model, sources = random_model(), make_sources(LENGTHS)
    sampled = generate(model, sources, GenerationConfig(max_new_tokens=10, do_sample=True, **settings))
    assert sampled == generate(model, sources, GenerationConfig(max_new_tokens=10))


def test_the_seed_decides(random_model, make_sources):
    model, sources = random_model(), make_sources(LENGTHS)
    runs = [generate(model, sources, GenerationConfig(do_sample=True, seed=seed)) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_equal_sentences_are_sampled_independently(random_model, make_sources):
    (source,) = make_sources([5])
    found = generate(random_model(), [source] * 6, GenerationConfig(do_sample=True))
    assert len({tuple(each[0].ids) for each in found}) > 1


def test_a_sample_does_not_depend_on_batch_mates(random_model, make_sources):
    model, sources = random_model(), make_sources(LENGTHS)
    config = GenerationConfig(do_sample=True, top_p=0.9, num_return_sequences=2)
    together = generate(model, sources, config)
    apart = generate(model, sources, config, batch_size=1)
    assert [[each.ids for each in found] for found in together] == [[each.ids for each in found] for found in apart]
    others = make_sources([9, 1, 4, 4, 8, 2], seed=9)
    mixed = generate(model, [sources[0], *others[1:]], config)
    assert [each.ids for each in mixed[0]] == [each.ids for each in together[0]]


def test_samples_are_scored_as_the_model_scores_them(random_model, make_sources):
    model, sources = random_model(), make_sources(LENGTHS)
    config = GenerationConfig(max_new_tokens=9, do_sample=True, temperature=0.7, top_k=5, num_return_sequences=3)
    for source, found in zip(sources, generate(model, sources, config), strict=True):
        assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
        for each in found:
            assert each.log_prob == pytest.approx(reference.log_prob_of(model, source, each.ids), abs=1e-9)
