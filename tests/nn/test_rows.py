import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.functional.attention import causal_mask
from toolkit.nn import rows as rows_module
from toolkit.nn.rows import Rows, causal_mask_with_past

lengths_of_sequences = st.lists(st.integers(1, 9), min_size=1, max_size=20)


@st.composite
def rows_with_memory(draw) -> Rows:
    """Sequences in groups; each group has a memory of its own, and the memories stand in any order."""
    groups = draw(st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=3), min_size=1, max_size=12))
    memories = draw(st.lists(st.integers(1, 40), min_size=len(groups), max_size=len(groups) + 2))
    order = draw(st.permutations(range(len(memories))))
    owners = [order[group] for group, members in enumerate(groups) for _ in members]
    lengths = np.array([length for group in groups for length in group])
    return Rows(lengths, memory=Rows(np.array(memories)), memory_of=np.array(owners))


@settings(deadline=None)
@given(lengths_of_sequences)
def test_rows_know_their_sequences_and_positions(lengths: list[int]) -> None:
    rows = Rows(np.array(lengths))
    assert rows.total == sum(lengths)
    assert rows.longest == max(lengths)
    assert rows.sequence_of.tolist() == [b for b, length in enumerate(lengths) for _ in range(length)]
    assert rows.positions.tolist() == [position for length in lengths for position in range(length)]
    assert [rows.sequence_of[start] for start in rows.starts] == list(range(len(lengths)))
    assert (rows.positions[rows.starts] == 0).all()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), min_size=1, max_size=9))
def test_a_past_moves_the_positions(pairs: list[tuple[int, int]]) -> None:
    lengths, past = np.array(pairs).T
    rows = Rows(lengths, past=past)
    assert rows.positions.tolist() == [before + t for length, before in pairs for t in range(length)]
    assert rows.longest == (lengths + past).max()


@settings(deadline=None)
@given(lengths_of_sequences, st.sampled_from([1 << 14, 60]))
def test_spans_cover_every_row_once(lengths: list[int], scores: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "_SPAN_SCORES", scores)
        spans = Rows(np.array(lengths)).spans
    row = sequence = 0
    for span in spans:
        assert (span.rows.start, span.sequences.start) == (row, sequence)
        row, sequence = span.rows.stop, span.sequences.stop
        assert lengths[span.sequences] == [span.length] * span.count
        assert span.rows.stop - span.rows.start == span.count * span.length
        assert span.count == 1 or span.count * span.length**2 <= scores
    assert (row, sequence) == (sum(lengths), len(lengths))


def test_equal_lengths_are_one_span() -> None:
    spans = Rows(np.array([3, 3, 3, 5, 5, 3])).spans
    assert [(span.count, span.length) for span in spans] == [(3, 3), (2, 5), (1, 3)]


@settings(deadline=None)
@given(rows_with_memory(), st.sampled_from([1 << 14, 60]), st.sampled_from([64, 0]))
def test_cross_spans_give_every_row_its_memory(rows: Rows, scores: int, padding: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "_SPAN_SCORES", scores)
        patch.setattr(rows_module, "_PADDING_WORTH_A_SPAN", padding)
        cross_spans = rows.cross_spans
    row = 0
    for span, keys, real in cross_spans:
        assert span.rows.start == row
        assert keys.shape[0] == span.count
        kept = np.ones(keys.shape, bool) if real is None else real
        assert kept.any(axis=1).all()
        assert not kept.all() or real is None
        assert (~kept).sum() <= padding
        assert span.count == 1 or span.count * span.length * keys.shape[1] <= scores
        assert keys.max() < rows.memory.total  # padding too can be looked up
        for piece in range(span.count):
            for _ in range(span.length):
                memory = rows.memory_of[rows.sequence_of[row]]
                begin = rows.memory.starts[memory]
                expected = list(range(begin, begin + rows.memory.lengths[memory]))
                assert keys[piece, kept[piece]].tolist() == expected
                row += 1
    assert row == rows.total


@settings(deadline=None)
@given(rows_with_memory())
def test_memory_spans_are_pieces_of_equally_many_rows(rows: Rows) -> None:
    owners, lengths = rows.memory_pieces
    assert lengths.sum() == rows.total
    assert np.repeat(owners, lengths).tolist() == rows.memory_of[rows.sequence_of].tolist()
    pieces = [length for span in rows.memory_spans for length in [span.length] * span.count]
    assert pieces == lengths.tolist()
    assert [span.rows.start for span in rows.memory_spans][1:] == [span.rows.stop for span in rows.memory_spans][:-1]


def test_sequences_that_share_a_memory_stand_together() -> None:
    rows = Rows(np.array([1, 1, 1]), memory=Rows(np.array([2, 2])), memory_of=np.array([0, 1, 0]))
    with pytest.raises(ValueError, match="next to each other"):
        _ = rows.cross_spans


def test_causal_mask_with_past() -> None:
    past = np.array([0, 3, 2])
    mask = causal_mask_with_past(past, 2, 5)
    assert mask.shape == (3, 1, 5, 2)
    for b, s, t in np.ndindex(3, 5, 2):
        assert mask[b, 0, s, t] == (s <= past[b] + t)
    np.testing.assert_array_equal(causal_mask_with_past(np.array([0]), 4, 4), causal_mask(4, 4))
