"""Pages as text: no line is too wide, every number is the block's, colours add nothing but colours."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pages.samples import CAUSAL, ENGLISH, LONG, NEPALI, TRICKY, beam, page, weights
from toolkit.pages.blocks import (
    Bars,
    Branch,
    Curves,
    Formula,
    Heat,
    Maps,
    Numbers,
    Page,
    Section,
    Table,
    Text,
    Tree,
)
from toolkit.pages.terminal import NARROWEST, block_lines, lines
from toolkit.pages.writing import ELLIPSIS, cells, clipped, padded, paint, wrapped

STYLE = re.compile("\033\\[[0-9;]*m")
LETTERS = st.text(st.sampled_from("aI .␣कखमटाीुँ्ंि।界🙂\u200d\u0301\n\t\x1b"), max_size=24)


def text_of(block, width=100):
    return "\n".join(block_lines(block, width))


def numbers_in(line):
    return [float(each.replace("∞", "inf")) for each in re.findall(r"(?<!\S)-?(?:\d[\d.e+-]*|∞|nan)(?!\S)", line)]


@pytest.mark.parametrize(
    ("text", "width"), [("हुँ", 1), ("केटा", 3), ("छ।", 2), ("abc", 3), ("界", 2), ("é", 1), ("e\u0301", 1)]
)
def test_marks_take_no_cell(text, width):
    assert cells(text) == width


@given(LETTERS, st.integers(0, 12))
def test_what_is_clipped_fits_and_keeps_letters_whole(text, most):
    short = clipped(text, most)
    assert cells(short) <= most
    assert cells(padded(text, most)) == most
    if short != text and most:
        kept = short.removesuffix(ELLIPSIS)
        assert text.startswith(kept)
        assert not kept or cells(text[len(kept)]) or text[len(kept)] < " "  # what is left begins with no mark


@settings(max_examples=50)
@given(st.lists(LETTERS, max_size=8).map(" ".join), st.integers(4, 30))
def test_wrapping_loses_nothing_but_spaces(text, width):
    broken = wrapped(text, width, " ")
    assert all(cells(line) <= width for line in broken)
    shown = re.sub("[ \ufffd]", "", "".join(broken))
    assert shown == re.sub("[ \t\n\x1b]", "", text)


@given(st.lists(LETTERS, min_size=6, max_size=6), LETTERS, st.integers(1, 130))
@settings(max_examples=25)
def test_no_line_is_wider_than_the_terminal(names, name, width):
    rng = np.random.default_rng(0)
    heat = Heat(name, weights(rng, 6, 6), names, names, CAUSAL)
    tree = Branch(name, -1.0, "kept", [Branch(names[0], -1.5, "chosen", [Branch(names[1], -2.25, "dropped")])])
    for _ in range(12):
        tree = Branch(name, -1.0, "kept", [tree])
    blocks = [
        Text(name), Formula(name), Numbers(name, rng.standard_normal((6, 30)), names), heat, Maps([heat] * 5),
        replace(heat, values=heat.values - 9), Bars(name, names, {name: range(6), "b": [None] * 6}, (2,)),
        Table(names, [names[::-1]]), Tree(name, tree), Curves(name, {name: ((1, 2), (3.0, 5.0))}, name, name),
    ]  # fmt: skip
    for line in lines(Page(name, name, [Section(name, blocks)], [name]), width):
        assert cells(line) <= max(width, NARROWEST)


@pytest.mark.parametrize("width", [24, 60, 100])
def test_colours_add_nothing_but_colours(width):
    plain = lines(page(), width)
    assert [STYLE.sub("", line).rstrip() for line in lines(page(), width, color=True)] == [
        line.rstrip() for line in plain
    ]
    assert not re.search("[\x00-\x1f\x7f]", "".join(plain))  # a label steers no terminal
    assert any(STYLE.search(line) for line in block_lines(Heat("h", np.eye(2), "ab", "ab"), width, paint))


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 6), st.integers(0, 99))
@settings(max_examples=40)
def test_numbers_are_those_of_the_array(rows, columns, digits, seed):
    values = np.random.default_rng(seed).standard_normal((rows, columns)) * 100
    name, *shown = block_lines(Numbers("x", values, [f"row{index}" for index in range(rows)], (), digits), 400)
    assert name == f"x  ({rows}, {columns})"
    for row, line in zip(values[:16, :12], shown, strict=False):
        assert numbers_in(line) == pytest.approx(row, abs=0.5 * 10**-digits + 1e-9)
    assert (f"{rows - 16} of {rows} rows are not shown." in "".join(shown)) == (rows > 16)
    assert (f"{columns - 12} of {columns} columns are not shown." in "".join(shown)) == (columns > 12)


def test_small_numbers_keep_their_digits_and_none_are_called_so():
    assert numbers_in(text_of(Numbers("v", np.array([1e-7, -2.5e-9])))) == [1e-7, -2.5e-9]
    assert numbers_in(text_of(Numbers("v", np.array([1e7, 0.5])))) == [1e7, 0.5]
    assert "0.000" in text_of(Numbers("v", np.array([-0.0001, 1.0])))
    assert "-0.000" not in text_of(Numbers("v", np.array([-0.0001, 1.0])))
    assert text_of(Numbers("v", np.array([np.inf, -np.inf, np.nan, 1.0]))).split()[-4:] == ["∞", "-∞", "nan", "1.000"]
    assert text_of(Numbers("ids", np.array([True, False]))).split()[-2:] == ["1", "0"]


def test_a_map_shows_every_weight_and_hides_what_the_mask_hides():
    values = weights(np.random.default_rng(1), 6, 6)
    shown = block_lines(Heat("self", values, NEPALI, NEPALI, CAUSAL, "Rows add up to 1."), 100)
    for index, line in enumerate(shown[2:8]):
        assert numbers_in(line) == pytest.approx(values[index, : index + 1], abs=0.005001)
        assert line.split()[0] == NEPALI[index]
        assert line.count("·") == 5 - index
    assert [each.strip() for each in shown[8:]] == ["Rows add up to 1.", "· is hidden by the mask."]


def test_small_maps_stand_beside_each_other_in_hundredths():
    heads = [Heat(f"head {index}", weights(np.random.default_rng(index), 6, 7), NEPALI, ENGLISH) for index in range(3)]
    names, _, *rows = block_lines(Maps(heads), 100)
    assert names.split("  ") != [names]
    for index in range(6):
        expected = np.concatenate([100 * head.values[index] for head in heads])
        assert numbers_in(" ".join(rows[index].split()[1:])) == pytest.approx(expected, abs=0.50001)


def test_a_long_map_says_what_it_cuts():
    shown = text_of(Heat("long", weights(np.random.default_rng(0), 60, 60), LONG, LONG), 80)
    assert "20 of 60 rows are not shown." in shown
    assert re.search(r"\d+ of 60 columns are not shown\.", shown)


def test_bars_are_as_long_as_their_numbers():
    shown = block_lines(Bars("next", ("a", "b", "c"), {"p": (0.5, 0.25, None)}, (1,)), 80)
    assert [line.count("█") for line in shown[1:4]] == [40, 20, 0]
    assert [numbers_in(line) for line in shown[1:3]] == [[0.5], [0.25]]
    assert shown[2].startswith("★ b")
    assert "excluded" in shown[3]


def test_a_probability_that_is_not_zero_does_not_read_so():
    shown = block_lines(Bars("next", ("a", "b", "c"), {"p": (0.9996, 0.0004, 0.0)}), 80)
    assert [line.split()[1] for line in shown[1:4]] == ["1.000", "<0.001", "0.000"]


def test_a_tree_shows_what_became_of_every_branch():
    shown = block_lines(beam(), 80)
    assert shown[1:5] == ["★ <s>  0.000", "├ ★ ␣म  -0.210", "│ └ ★ ␣केटा  -0.500", "│   ├ ★ </s>  -0.750"]
    assert shown[5] == "│   └ ✗ ।  -9.100"
    assert shown[7] == "  └ ■ (nothing)  -3.100"
    assert TRICKY not in "".join(shown)  # it would change the colour
    assert TRICKY.replace("\x1b", "\ufffd") in shown[6]


def test_a_curve_begins_and_ends_where_its_numbers_do():
    shown = block_lines(Curves("loss", {"falling": ((1, 2, 3), (5.0, 4.0, 1.0))}, "update", "loss"), 60)
    plot = [line.split("│")[1] for line in shown if "│" in line]
    assert plot[0].startswith("*")
    assert plot[-1].endswith("*")
    assert (shown[-1].split()[0], shown[-1].split()[-1]) == ("1", "3")
    assert "(last 1)" in shown[1]
