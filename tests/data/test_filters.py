import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.filters import KINDS, PLACES, Filters, Finding, among, counted, seen_before, sentence, text_hashes
from toolkit.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "pair", "objection"),
    [
        ({}, ("a", "b" * 5000), None),
        ({}, ("a", "b" * 5001), "long"),
        ({"max_characters": 0}, ("a" * 9000, "b"), None),
        ({"max_characters": 3}, ("abcd", "b"), "long"),
        ({"min_characters": 2}, ("abc", "b"), "short"),
        ({"min_characters": 2}, ("ab", "bc"), None),
        ({"max_ratio": 2}, ("ab", "abcd"), None),
        ({"max_ratio": 2}, ("abcde", "ab"), "ratio"),
        ({"max_ratio": 1.5}, ("ab", "abcd"), "ratio"),
    ],
)
def test_lengths_and_ratios(settings, pair, objection):
    assert Filters(**settings).objection(*pair) == objection


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"empty": "keep"}, "filters.empty is 'keep': choose refuse or drop"),
        ({"duplicates": "refuse"}, "filters.duplicates"),
        ({"overlap": ""}, "filters.overlap"),
        ({"min_characters": -1}, "min_characters is -1"),
        ({"max_characters": -1}, "max_characters is -1"),
        ({"min_characters": 10, "max_characters": 9}, "no pair would be left"),
        ({"max_ratio": 0.5}, "max_ratio is 0.5"),
        ({"max_ratio": -1.0}, "max_ratio is -1"),
        ({"max_ratio": float("nan")}, "max_ratio is nan"),
    ],
)
def test_a_setting_out_of_range_is_refused(settings, words):
    with pytest.raises(ConfigError) as error:
        Filters(**settings)
    assert words in str(error.value)


def test_findings_name_the_first_places_and_count_all():
    finding, asked = Finding(), []
    for line in range(1000):
        finding.add(lambda line: asked.append(line) or f"a, line {line}", line)
    assert asked == list(range(PLACES))
    assert sentence(finding, "empty", {}) == (
        "1,000 pairs with a blank side are left out (a, line 0; a, line 1; a, line 2; ...)"
    )
    assert sentence(Finding(1, False, ["x"]), "duplicate", {}) == "1 pair equal to one before is kept (x)"


def test_every_kind_can_be_said():
    limits = {"min_characters": 3, "max_characters": 4, "max_ratio": 2.0, "max_tokens": 9}
    said = {counted(Finding(2), kind, limits) for kind in KINDS}
    assert len(said) == len(KINDS)
    assert "2 pairs with one side more than 2 times as long as the other" in said


# Duplicates

TEXTS = st.lists(st.binary(max_size=2))


@given(texts=TEXTS)
def test_what_was_seen_before_is_found(texts):
    assert seen_before(text_hashes(texts)).tolist() == [text in texts[:index] for index, text in enumerate(texts)]


@given(texts=TEXTS, others=TEXTS)
def test_what_is_among_others_is_found(texts, others):
    assert among(text_hashes(texts), text_hashes(others)).tolist() == [text in others for text in texts]


def test_hashes_are_spread_and_the_same_on_every_machine():
    hashes = text_hashes([b"a", b"b", b""])
    assert hashes.dtype == np.dtype("<u8")
    assert hex(int(hashes[0])) == "0x2f42665b399ef840"
    assert len({int(value) >> 48 for value in text_hashes(str(n).encode() for n in range(50))}) > 45
