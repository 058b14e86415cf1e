from hypothesis import given
from hypothesis import strategies as st

from toolkit.tokenization import pieces
from toolkit.tokenization.pieces import occurring

PIECES = st.sets(st.text("ab▁", min_size=1, max_size=4).filter(lambda piece: "▁" not in piece[1:]))


@given(names=PIECES, texts=st.lists(st.text("ab ", max_size=12)))
def test_what_occurs_is_found_and_nothing_else(names, texts):
    written = [text.replace(" ", "▁") for text in texts]
    assert occurring(names, texts) == {name for name in names if any(name in text for text in written)}


def test_a_real_mark_is_no_space():
    assert occurring({"▁", "▁a", "a", "b"}, ["b▁a"]) == {"a", "b"}


def test_words_are_forgotten_and_pieces_are_not(monkeypatch):
    monkeypatch.setattr(pieces, "_WORDS_REMEMBERED", 1)
    assert occurring({"a", "b", "c"}, ["a b", "c", "a"]) == {"a", "b", "c"}
