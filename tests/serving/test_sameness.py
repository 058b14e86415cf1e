"""Requests of all kinds, drawn at random and decoded together, give what each gives alone; `sameness` draws more."""

import numpy as np
import pytest

import toolkit
from tests.serving.borders import decoded_alone, explained, nearest_border
from tests.serving.sameness import in_a_batch
from toolkit.decoding import ContinuationConfig
from toolkit.decoding.continuous import Request


@pytest.mark.parametrize(("name", "seed"), [("stories", 1), ("en-ne-small", 2)])
def test_requests_that_are_decoded_together_give_what_they_give_alone(name, seed):
    found = in_a_batch(name, 14, seed)
    assert found.faults == []
    assert found.farthest < 1e-4
    assert len(found.rounded) < 3


@pytest.mark.parametrize(
    ("uniform", "settings", "distance", "kind"),
    [
        (0.3 + 1e-7, {}, 1e-7, "was drawn"),
        (0.7, {}, 0.1, "was drawn"),  # 0.8
        (0.2, {"top_k": 2}, np.log(0.3 / 0.2), "top-k"),  # 0.625 is farther away
        (0.1, {"top_p": 0.79}, 0.01, "top-p"),
        (0.1, {"min_p": 0.401}, 0.001, "min-p"),  # 0.2 / 0.5
    ],
)
def test_the_nearest_border_of_a_draw(uniform, settings, distance, kind):
    config = ContinuationConfig(**{"temperature": 1.0, "top_k": 0, "min_p": 0.0, **settings})
    found, words = nearest_border(np.log([0.3, 0.5, 0.2]), uniform, config)
    assert found == pytest.approx(distance)
    assert kind in words


def test_another_token_far_from_every_border_is_no_rounding(tiny_gpt):
    model = toolkit.load(tiny_gpt).model
    request = Request(0, [5, 6, 7], ContinuationConfig(max_new_tokens=6, seed=3, num_return_sequences=2), number=1)
    right = decoded_alone(model, request)
    changed = right[0]._replace(ids=[*right[0].ids[:2], right[0].ids[2] ^ 1, *right[0].ids[3:]])
    words, is_near = explained(model, request, [changed, right[1]])
    assert "token 2: " in words
    assert not is_near
