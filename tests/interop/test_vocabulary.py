"""The ids of a model from elsewhere become ours, and none is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import ModelError
from toolkit.interop.vocabulary import ABSENT, Vocabulary
from toolkit.tokenization.special import BOS, EOS, PAD, SPECIAL_TOKENS, UNK

SIZE = 12
IDS = st.none() | st.integers(0, SIZE - 1)
plans = st.builds(Vocabulary.plan, st.just(SIZE), IDS, IDS, IDS, IDS)


@given(plans)
def test_every_foreign_token_is_written_by_one_id_of_ours(vocabulary):
    written = [ours for ours in range(vocabulary.size) if ours not in vocabulary.aliases]
    assert sorted(vocabulary.foreign(written)) == list(range(SIZE))
    assert vocabulary.ours(vocabulary.foreign(written)) == written
    assert vocabulary.foreign(vocabulary.ours(range(SIZE))) == list(range(SIZE))


@given(IDS, IDS, IDS, IDS)
def test_special_tokens_stand_where_our_decoders_look_for_them(pad, unk, bos, eos):
    vocabulary = Vocabulary.plan(SIZE, pad, unk, bos, eos)
    absent = [-1 if each is None else each for each in (pad, unk, bos, eos)]
    assert vocabulary.foreign([PAD, UNK, BOS, EOS]) == absent
    ordinary = vocabulary.rows[len(SPECIAL_TOKENS) :]
    assert list(ordinary) == sorted(set(range(SIZE)) - {pad, unk, bos, eos})
    if eos is not None:
        assert vocabulary.ours([eos]) == [EOS]


def test_of_several_names_of_one_token_the_end_is_written_first():
    marian, gpt2 = Vocabulary.plan(9, 8, 1, 8, 0), Vocabulary.plan(9, None, 8, 8, 8)
    assert (marian.ours([8]), BOS in marian.aliases, PAD in marian.aliases) == ([PAD], True, False)
    assert (gpt2.ours([8]), {PAD, UNK, BOS} <= set(gpt2.aliases), EOS in gpt2.aliases) == ([EOS], True, False)
    assert Vocabulary.plan(9, None, 4, 4, None).ours([4]) == [UNK]


@given(plans)
def test_probabilities_are_those_of_the_foreign_model(vocabulary):
    rng = np.random.default_rng(0)
    table, bias, x = rng.standard_normal((SIZE, 4)), rng.standard_normal(SIZE), rng.standard_normal(4)
    foreign = np.exp(table @ x + bias)
    ours = np.exp(vocabulary.read_table(table) @ x + vocabulary.read_bias(bias))
    assert (ours[list(vocabulary.aliases)] == 0).all()
    np.testing.assert_allclose(ours[vocabulary.ours(range(SIZE))] / ours.sum(), foreign / foreign.sum(), rtol=1e-12)


def test_what_is_written_to_the_disk_in_half_precision_is_the_same():
    assert float(np.float16(ABSENT)) == ABSENT
    assert np.exp(np.float32(ABSENT)) == 0


def test_a_model_of_ours_comes_back_as_it_was():
    own = Vocabulary.own(40)
    table = np.random.default_rng(0).standard_normal((40, 3))
    assert own.aliases == ()
    assert own.read_bias(None) is None
    assert own.ours([0, 3, 39]) == own.foreign([0, 3, 39]) == [0, 3, 39]
    np.testing.assert_array_equal(own.read_table(table), table)


@pytest.mark.parametrize("eos", [-1, 12, 50256])
def test_a_special_token_outside_the_vocabulary(eos):
    with pytest.raises(ModelError, match=f"id of </s> is {eos}, but the model has 12 tokens"):
        Vocabulary.plan(SIZE, 0, 1, 2, eos)
