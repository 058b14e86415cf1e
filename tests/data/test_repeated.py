import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data.filters import among, seen_before, text_hashes

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
