"""The sentences of mistakes: one line that steers nothing, and still says what to do, whatever names are in it."""

import copy
import json
import pickle
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.display import escaped, escaped_text, json_text, visible
from toolkit.errors import ConfigError, DataError, DivergenceError, ModelError, ToolkitError

ERRORS = st.sampled_from([ToolkitError, DataError, ConfigError, ModelError, DivergenceError])
STEERING = [*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"\u200e\u200f\u061c\u2028\u2029\ufeff\ud800\udfff"]
STEERING += [*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\U000e0001", "\U000e0041"]
HOSTILE = st.text(st.one_of(st.sampled_from(STEERING), st.characters()), max_size=80)
# What every script needs, joiners and marks among it.
HARMLESS = st.text(st.one_of(st.characters(exclude_categories=["C", "Zl", "Zp"]), st.sampled_from("\u200c\u200d")))


def is_steady(text, but=""):
    return not any(each in text for each in STEERING if each not in but)


@given(ERRORS, HOSTILE, st.integers(0, 2000))
def test_a_sentence_is_one_line_that_ends_with_what_to_do(error, name, repeated):
    told = str(error(f"{name * repeated} is wrong in {name}: write it anew"))
    assert is_steady(told)
    assert len(told) <= 500
    assert told.splitlines() == [told]
    assert told.endswith(": write it anew")
    assert str(error(told)) == told


@given(ERRORS, HARMLESS.filter(lambda text: len(text) <= 500))
def test_an_ordinary_sentence_stays_as_it_is(error, sentence):
    found = error(sentence)
    assert str(found) == sentence
    for other in pickle.loads(pickle.dumps(found)), copy.deepcopy(found):
        assert (type(other), str(other)) == (error, sentence)


@given(HARMLESS)
def test_what_steers_nothing_is_shown_as_it_is(text):
    assert escaped(text) == escaped_text(text) == visible(text) == text


@given(HOSTILE)
def test_what_is_shown_is_told_apart_from_what_is_not(text):
    assert is_steady(escaped(text))
    assert is_steady(escaped_text(text), but="\n\t")
    assert escaped_text(text).count("\n") == text.count("\n")
    assert [unicodedata.category(each) for each in visible(text)].count("Cc") == 0
    assert len(visible(text)) == len(text)


@given(
    st.recursive(
        HOSTILE | st.integers() | st.booleans() | st.none(),
        lambda part: st.lists(part) | st.dictionaries(HOSTILE, part),
    )
)
def test_json_is_one_line_that_means_the_same(value):
    text = json_text(value)
    assert is_steady(text)
    assert json.loads(text) == json.loads(json.dumps(value))


@pytest.mark.parametrize("value", ["\x9b31m", "\u202etxt.exe", "\U000e0041", "\u2028"])
def test_json_escapes_what_the_standard_library_leaves(value):
    assert value in json.dumps(value, ensure_ascii=False)
    assert json_text(value).isascii()
