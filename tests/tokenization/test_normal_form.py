"""Normal form C: what Unicode says, in time that does not grow with the square of a run of marks."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.tokenization.normal_form import is_normal_form, normal_form

# Every character that is a mark, becomes marks, or composes; some letters, and what is neither.
RAW = [chr(point) for point in range(0x30000) if not 0xD800 <= point < 0xE000]
TURNING = [each for each in RAW if unicodedata.combining(each) or unicodedata.normalize("NFD", each) != each]
CHARACTERS = st.sampled_from([*TURNING, *"aeक🙂-.\u200d\u034f \n\u0dd9\u0dcf\u0dca\u1100\u1161\u11a8"])
RUNS = st.builds("".join, st.lists(st.one_of(CHARACTERS, st.text("\u0301\u0323\u093c\u094d\u0f73\u0344", min_size=40))))
MANY = 20_000

RUNNING = {
    "marks above and below": "a" + "\u0301\u0323" * (MANY // 2),
    "viramas and nuktas": "क" + "\u094d\u093c" * (MANY // 2),
    "marks that come apart": "\u0f73" * (MANY // 2),
    "marks after what composes": "\u1ec7" + "\u0344\u0323" * (MANY // 3),
}


@given(RUNS)
def test_it_is_what_unicode_says(text):
    assert normal_form(text) == unicodedata.normalize("NFC", text)
    assert is_normal_form(text) == unicodedata.is_normalized("NFC", text)


def seconds(text):
    """The time of the processor that a text takes, the least of some."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        normal_form(text)
        taken.append(time.process_time() - start)
    return min(taken)


@pytest.mark.parametrize("text", RUNNING.values(), ids=RUNNING)
def test_marks_on_one_letter_take_little_longer_than_on_many(text):
    spread = "a".join(text[begin : begin + 10] for begin in range(0, len(text), 10))
    assert seconds(text) < 30 * seconds(spread)
