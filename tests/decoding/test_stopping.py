"""Hugging Face's stopping rules against a plain search by the same rules, and against each other."""

import numpy as np
import pytest

from tests.decoding import reference
from toolkit.decoding import GenerationConfig, generate
from toolkit.decoding.beam import beam_search
from toolkit.decoding.logits_processors import Constraints
from toolkit.decoding.state import Seq2SeqState
from toolkit.nn.memory import Pool
from toolkit.tokenization.special import EOS

RULES = [True, False, "never", "settled"]


class CountingState(Seq2SeqState):
    steps = 0

    def logits(self, ids):
        self.steps += 1
        return super().logits(ids)


@pytest.mark.parametrize("rule", [True, False, "never"])
@pytest.mark.parametrize("forced_eos", ["scored", "free", "none"])
@pytest.mark.parametrize("power", [-1.0, 0.0, 1.5])
def test_the_rules_equal_the_plain_ones(random_model, make_sources, rule, forced_eos, power):
    """The same n-best list, found in the same number of steps."""
    model, width, limit = random_model(seed=5), 3, 6
    config = GenerationConfig(
        num_beams=width, num_return_sequences=2, early_stopping=rule, forced_eos=forced_eos, length_penalty=power
    )
    for source in make_sources([3, 5, 1]):
        session = CountingState(model, [source], Pool())
        constraints = Constraints(np.array([limit]), forced_eos=forced_eos)
        (found,) = beam_search(session, constraints, config)
        expected, steps = reference.hugging_face_beam_search(model, source, limit, width, power, rule, forced_eos)
        assert session.steps == steps
        for each, (score, tokens) in zip(found, expected[:2], strict=True):
            assert [*each.ids, EOS][: len(each.token_log_probs)] == list(tokens)
            assert each.score == pytest.approx(score, abs=1e-9)


def test_the_rules_differ_as_they_should(random_model, make_sources):
    """True stops first, "never" last; "settled" needs no more steps than "never" and returns what is at least as good
    as what True returns."""
    model, sources = random_model(seed=5), make_sources([3, 7, 0, 7, 5, 1, 9, 4])
    steps, scores = {}, {}
    for rule in RULES:
        config = GenerationConfig(num_beams=3, early_stopping=rule, max_new_tokens=12)
        sessions = [CountingState(model, [source], Pool()) for source in sources]
        found = [beam_search(session, Constraints(np.array([12])), config)[0][0] for session in sessions]
        steps[rule] = sum(session.steps for session in sessions)
        scores[rule] = [each.score for each in found]
    assert steps[True] < steps[False] < steps["never"]
    assert steps["settled"] < steps["never"]
    assert all(settled >= early for settled, early in zip(scores["settled"], scores[True], strict=True))


@pytest.mark.parametrize("rule", RULES)
def test_a_batch_equals_its_sentences_one_by_one(random_model, make_sources, rule):
    model, sources = random_model(seed=2), make_sources([3, 7, 0, 7, 5, 1])
    config = GenerationConfig(num_beams=4, num_return_sequences=4, early_stopping=rule, max_new_tokens=10)
    together, apart = generate(model, sources, config), generate(model, sources, config, batch_size=1)
    for left, right in zip(together, apart, strict=True):
        assert [each.ids for each in left] == [each.ids for each in right]
        scores = [each.score for each in left]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(each.ids) for each in left}) == len(left)
