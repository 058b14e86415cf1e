import unicodedata

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolkit.tokenization.subword_training import (
    MAX_LINE_BYTES,
    MAX_LINE_CHARACTERS,
    reservoir,
    training_lines,
    with_open_word_ends,
)


@given(text=st.text(st.sampled_from("ab \n▁▅\0é"), max_size=40).map(lambda text: text * 100))
def test_only_reserved_characters_are_lost(text):
    lines = list(training_lines([text]))
    assert "".join(lines) == text.translate({ord(character): None for character in "▁▅\0"})
    assert all(0 < len(line.encode()) <= MAX_LINE_BYTES for line in lines)


def test_long_lines_are_cut_before_a_space_where_there_is_one():
    text = "four" + " four" * 999
    lines = list(training_lines([text]))
    assert "".join(lines) == text
    assert len(lines) == 5
    assert all(line.startswith(" four") for line in lines[1:])
    assert [len(line) for line in training_lines(["x" * 2500])] == [MAX_LINE_CHARACTERS, MAX_LINE_CHARACTERS, 500]


def test_lines_are_normalised():
    assert list(training_lines(["e\u0301", ""])) == [unicodedata.normalize("NFC", "e\u0301")]


def test_a_stream_that_fits_is_kept_in_order():
    lines = [str(number) for number in range(10)]
    assert reservoir(iter(lines), 10, np.random.default_rng(0)) == lines
    assert reservoir(iter(lines), 50, np.random.default_rng(0)) == lines


def test_every_line_is_equally_likely_to_stay():
    lines, size, rounds = [str(number) for number in range(40)], 10, 2000
    rng = np.random.default_rng(0)
    counts = np.zeros(len(lines))
    for _ in range(rounds):
        kept = reservoir(iter(lines), size, rng)
        assert len(set(kept)) == size
        counts[[int(line) for line in kept]] += 1
    # Each count is binomial(2000, 1/4): mean 500, standard deviation 19.4. Five of them is far beyond chance.
    assert abs(counts - 500).max() < 5 * 19.4


@given(lines=st.lists(st.text(st.sampled_from("ab .।म\u200dि\n"))), seed=st.integers(0, 100))
def test_cutting_at_word_ends_loses_nothing(lines, seed):
    cut = list(with_open_word_ends(lines, np.random.default_rng(seed)))
    assert "".join(cut) == "".join(lines)


def test_words_are_cut_after_every_second_one():
    seen = {tuple(with_open_word_ends(["I do, I do."], np.random.default_rng(seed))) for seed in range(20)}
    assert seen == {("I", " do, I", " do."), ("I do", ", I do", ".")}
