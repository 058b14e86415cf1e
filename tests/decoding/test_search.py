"""Greedy and beam search against plain references, and against each other."""

import numpy as np
import pytest

from tests.decoding import reference
from toolkit.decoding import GenerationConfig, generate, state, weights
from toolkit.decoding.beam import beam_search
from toolkit.decoding.logits_processors import Constraints
from toolkit.decoding.state import Seq2SeqState
from toolkit.decoding.step import PackedWeights, Step
from toolkit.nn.memory import Pool
from toolkit.tokenization.special import CONTROL_IDS, EOS, UNK

LENGTHS = [3, 7, 0, 7, 5, 1, 9, 4]
CONFIGS = [
    GenerationConfig(max_new_tokens=12),
    GenerationConfig(max_new_tokens=12, num_beams=4, num_return_sequences=3),
    GenerationConfig(max_new_tokens=9, num_beams=3, length_penalty=0.0),
    GenerationConfig(max_new_tokens=9, num_beams=2, length_penalty=-0.5, num_return_sequences=2),
]


class CountingState(Seq2SeqState):
    steps = 0

    def logits(self, ids):
        self.steps += 1
        return super().logits(ids)


def beams_of(model, sources, config):
    limits = np.full(len(sources), config.max_new_tokens)
    return beam_search(Seq2SeqState(model, sources, Pool()), Constraints(limits), config)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("positions", "norm", "seed"),
    [("sinusoidal", "pre", 1), ("sinusoidal", "post", 2), ("learned", "pre", 6), ("learned", "post", 5)],
)
def test_cached_greedy_equals_recomputing_every_prefix(random_model, make_sources, dtype, norm, positions, seed):
    model = random_model(dtype, seed, norm_position=norm, positions=positions)
    sources = make_sources(LENGTHS)
    found = generate(model, sources, GenerationConfig(max_new_tokens=12))
    assert [each[0].ids for each in found] == [reference.greedy(model, source, 12) for source in sources]
    assert len({len(each[0].ids) for each in found}) > 1  # sentences left the batch at different times


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("power", [-1.0, 0.0, 1.0, 2.0])
def test_beam_search_equals_the_plain_one(random_model, make_sources, width, power):
    """The same hypothesis, found in the same number of steps."""
    model, sources = random_model(seed=5), make_sources(LENGTHS)
    config = GenerationConfig(max_new_tokens=9, num_beams=width, length_penalty=power)
    steps_taken = set()
    for source in sources:
        session = CountingState(model, [source], Pool())
        ((found,),) = beam_search(session, Constraints(np.array([9])), config)
        score, ids, steps = reference.beam_search(model, source, 9, width, power)
        assert found.ids == list(ids)
        assert found.score == pytest.approx(score, abs=1e-9)
        assert session.steps == steps
        steps_taken.add(steps)
    assert power > 1 or min(steps_taken) < 9


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_batch_equals_its_sentences_one_by_one(random_model, make_sources, config, dtype):
    model, sources = random_model(dtype, seed=2), make_sources(LENGTHS * 2)
    together = generate(model, sources, config)
    for batch_size in (1, 5):
        for left, right in zip(together, generate(model, sources, config, batch_size), strict=True):
            assert [each.ids for each in left] == [each.ids for each in right]
            np.testing.assert_allclose([each.score for each in left], [each.score for each in right], atol=1e-5)


def test_output_is_in_input_order(random_model, make_sources):
    model, sources = random_model(), make_sources([2, 9, 5, 9, 1])
    config = GenerationConfig(max_new_tokens=12)
    forwards, backwards = generate(model, sources, config, 2), generate(model, sources[::-1], config, 2)
    assert [each[0].ids for each in forwards] == [each[0].ids for each in backwards[::-1]]
    assert len({tuple(each[0].ids) for each in forwards}) > 1


@pytest.mark.parametrize("power", [0.0, 1.0, -1.0])
@pytest.mark.parametrize("seed", [1, 2, 5])
def test_one_beam_is_greedy_search(random_model, make_sources, power, seed):
    model, sources = random_model(seed=seed), make_sources(LENGTHS)
    config = GenerationConfig(max_new_tokens=12, length_penalty=power)
    for beam, greedy in zip(beams_of(model, sources, config), generate(model, sources, config), strict=True):
        assert beam[0].ids == greedy[0].ids
        assert beam[0].finished == greedy[0].finished
        assert beam[0].score == pytest.approx(greedy[0].score, abs=1e-9)


@pytest.mark.parametrize("power", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_as_wide_as_the_space_finds_the_optimum(random_model, make_sources, power, seed):
    model, sources = random_model(seed=seed, vocab_size=19), make_sources([3, 5], vocab_size=19)
    config = GenerationConfig(max_new_tokens=4, num_beams=64, num_return_sequences=5, length_penalty=power)
    for source, found in zip(sources, generate(model, sources, config), strict=True):
        outputs = reference.every_output(model, source, 4)
        ranked = sorted(((log_prob / (len(ids) + 1) ** power, ids) for ids, log_prob in outputs.items()), reverse=True)
        assert [tuple(each.ids) for each in found] == [ids for _, ids in ranked[:5]]
        np.testing.assert_allclose([each.score for each in found], [score for score, _ in ranked[:5]], atol=1e-9)


def test_a_vocabulary_smaller_than_the_beam_gives_what_there_is(random_model, make_sources):
    model = random_model(vocab_size=17)  # one ordinary token: outputs are x, xx, xxx, ...
    config = GenerationConfig(max_new_tokens=3, num_beams=8, num_return_sequences=8)
    (found,) = generate(model, make_sources([2], vocab_size=17), config)
    assert sorted(each.ids for each in found) == [[], [16], [16, 16]]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-5)])
def test_scores_are_what_teacher_forcing_finds(random_model, make_sources, config, dtype, tolerance):
    model, sources = random_model(dtype, seed=2), make_sources(LENGTHS)
    for source, found in zip(sources, generate(model, sources, config), strict=True):
        assert len(found) == config.num_return_sequences
        for each in found:
            log_prob = reference.log_prob_of(model, source, each.ids)
            assert each.log_prob == pytest.approx(log_prob, abs=tolerance * (len(each.ids) + 1))
            assert each.score == pytest.approx(each.log_prob / (len(each.ids) + 1) ** config.length_penalty)


def test_scores_of_large_logits_do_not_overflow(random_model, make_sources):
    model, sources = random_model(np.float32, sharpness=100.0), make_sources(LENGTHS)
    for config in CONFIGS[:2]:
        for source, found in zip(sources, generate(model, sources, config), strict=True):
            log_prob = reference.log_prob_of(model, source, found[0].ids)
            assert found[0].log_prob == pytest.approx(log_prob, rel=1e-3, abs=1e-3)


def test_n_best_lists_are_sorted_and_distinct(random_model, make_sources):
    config = GenerationConfig(max_new_tokens=8, num_beams=6, num_return_sequences=6)
    for found in generate(random_model(), make_sources(LENGTHS), config):
        scores = [each.score for each in found]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(each.ids) for each in found}) == len(found) == 6


@pytest.mark.parametrize("width", [1, 4])
def test_the_end_is_forced_at_the_limit_and_flagged(random_model, make_sources, width):
    model, sources = random_model(), make_sources(LENGTHS)
    config = GenerationConfig(max_new_tokens=5, num_beams=width)
    found = [each[0] for each in generate(model, sources, config)]
    assert any(not each.finished for each in found)
    assert all(each.finished == (len(each.ids) < 4) for each in found)
    assert max(len(each.ids) for each in found) == 4


@pytest.mark.parametrize("width", [1, 3])
def test_every_sentence_has_its_own_limit(random_model, make_sources, width):
    model, sources = random_model(end=-30.0), make_sources([0, 2, 5, 30])
    config = GenerationConfig(num_beams=width)
    together = generate(model, sources, config)
    assert [len(found[0].ids) + 1 for found in together] == [20, 24, 30, 64]  # the last one is the model's own limit
    assert not any(found[0].finished for found in together)


@pytest.mark.parametrize("settings", [{}, {"num_beams": 4}, {"do_sample": True, "top_k": 0}])
def test_control_tokens_are_never_written(random_model, make_sources, settings):
    model, sources = random_model(), make_sources(LENGTHS)
    control = CONTROL_IDS - {EOS} | {UNK}
    model.output.table.data[sorted(control)] *= 10
    assert all(reference.log_probs_after(model, source, [])[-1].argmax() in control for source in sources)
    config = GenerationConfig(max_new_tokens=10, **settings)
    written = [each.ids for found in generate(model, sources, config) for each in found]
    assert not (control | {EOS}) & {token for ids in written for token in ids}
    assert any(written)


def test_no_sentences_and_empty_sentences(random_model):
    model = random_model()
    assert generate(model, []) == []
    assert len(generate(model, [[], []], GenerationConfig(num_beams=2))) == 2


@pytest.fixture
def recordings(monkeypatch):
    """A list that grows by the number of sequences of every step that is recorded."""
    recorded, record = [], Step._record
    monkeypatch.setattr(Step, "_record", lambda self, count: recorded.append(count) or record(self, count))
    return recorded


@pytest.mark.parametrize("settings", [{}, {"num_beams": 3}, {"do_sample": True, "seed": 1, "num_return_sequences": 2}])
def test_whoever_has_ended_leaves_the_batch_when_a_recording_pays(
    random_model, make_sources, recordings, settings, monkeypatch
):
    model, sources = random_model(), make_sources(LENGTHS * 2)
    config, found = GenerationConfig(max_new_tokens=12, **settings), []
    for price in (0, 20 * model.vector.size, 10**9):
        monkeypatch.setattr(state, "_RECORDING", price)
        found.append((generate(model, sources, config), recordings.copy()))
        recordings.clear()
    (at_once, most), (later, fewer), (never, least) = found
    for before, *others in zip(at_once, later, never, strict=True):
        for after in others:
            assert [each.ids for each in after] == [each.ids for each in before]
            np.testing.assert_allclose([each.score for each in after], [each.score for each in before], atol=1e-9)
    assert len(most) > len(fewer) > len(least) == 1
    assert most == sorted(most, reverse=True) or settings.get("num_beams")


def test_a_change_of_one_gain_or_bias_alone_is_seen(random_model, make_sources, monkeypatch):
    """They are folded into maps, and the step is recorded: nothing of that may outlive the model that it is of."""
    monkeypatch.setattr(weights, "_SAMPLE", 1)
    model, sources, config = random_model(), make_sources([4]), GenerationConfig(max_new_tokens=6)
    packed = PackedWeights()
    for parameter in model.decoder.parameters().values():
        if len(parameter.shape) == 1:
            generate(model, sources, config, packed=packed)
            parameter.data[0] += 0.5
            assert generate(model, sources, config, packed=packed) == generate(model, sources, config)


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_sentences_one_after_the_other_are_recorded_once(
    random_model, make_sources, recordings, monkeypatch, positions, beams
):
    """Until one needs more room than those before it, or the model has changed."""
    model, sources = random_model(positions=positions), make_sources([3, 12, 0, 7])
    monkeypatch.setattr(state, "_RECORDING", 3 * model.parameter_count)  # one sentence has less to spare, two have more
    config, packed = GenerationConfig(max_new_tokens=12, num_beams=beams, num_return_sequences=beams), PackedWeights()
    alone = [generate(model, [source], config)[0] for source in sources]
    del recordings[:]
    assert [generate(model, [source], config, packed=packed)[0] for source in sources] == alone
    assert generate(model, sources, config, batch_size=1, packed=packed) == alone
    assert len(recordings) == 1
    longer = GenerationConfig(max_new_tokens=40, num_beams=beams)
    assert generate(model, make_sources([45]), longer, packed=packed) == generate(model, make_sources([45]), longer)
    model.vector[:] *= 0.9
    assert generate(model, sources[:1], config, packed=packed) == generate(model, sources[:1], config)
