import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import ConfigError
from toolkit.tokenization import StopStrings

# Three letters only, so that stop strings occur, overlap, contain each other and begin without ending.
WORDS = st.text("abक", min_size=1, max_size=5)
STOPS = st.lists(WORDS, max_size=4)
PUSHES = st.lists(st.text("abक", max_size=5), max_size=12)


def streamed(stops, pushes):
    """What comes out of each push and of the end, and whether a stop string was reached, then and at last."""
    matcher = StopStrings(stops)
    steps = [matcher.push(text) for text in pushes]
    return [*steps, matcher.flush()]


@given(stops=STOPS, pushes=PUSHES)
def test_the_text_ends_where_the_first_stop_string_begins(stops, pushes):
    whole = "".join(pushes)
    begins = [whole.find(stop) for stop in stops if stop in whole]
    steps = streamed(stops, pushes)
    assert "".join(text for text, _ in steps) == whole[: min(begins, default=None)]
    assert steps[-1][1] is bool(begins)


@given(stops=STOPS, pushes=PUSHES)
def test_what_is_held_back_could_begin_a_stop_string(stops, pushes):
    matcher, arrived, released = StopStrings(stops), "", ""
    for push in pushes:
        text, reached = matcher.push(push)
        arrived, released = arrived + push, released + text
        held = arrived[len(released) :]
        assert reached or not held or any(stop.startswith(held) and stop != held for stop in stops)


@given(stop=WORDS, pushes=PUSHES)
def test_one_stop_string_is_reached_with_its_last_letter(stop, pushes):
    matcher, arrived = StopStrings([stop]), ""
    for letter in "".join(pushes):
        arrived += letter
        assert matcher.push(letter)[1] is (stop in arrived)


@given(stops=st.lists(WORDS, min_size=1, max_size=3), pushes=PUSHES, after=PUSHES)
def test_nothing_comes_after_a_stop_string(stops, pushes, after):
    matcher = StopStrings(stops)
    matcher.push("".join(pushes) + stops[0] + "z")  # with "z" no other stop string can still be open
    assert [matcher.push(text) for text in after] == [("", True)] * len(after)
    assert matcher.flush() == ("", True)


def test_of_two_that_overlap_the_one_that_begins_first_counts():
    assert streamed(["abcd", "bc"], "abcd") == [("", False)] * 3 + [("", True)] * 2
    assert streamed(["abcd", "bc"], "abcx") == [("", False)] * 3 + [("a", True), ("", True)]
    assert streamed(["abcd", "bc"], "abc") == [("", False)] * 3 + [("a", True)]


def test_of_two_that_begin_together_the_shorter_one_ends_the_text_sooner():
    assert streamed(["\n\nUser:", "\n\n"], ["Hi", "\n", "\n"]) == [
        ("Hi", False),
        ("", False),
        ("", True),
        ("", True),
    ]


def test_without_stop_strings_the_text_passes():
    assert streamed([], ["a", "", "b"]) == [("a", False), ("", False), ("b", False), ("", False)]


def test_stop_strings_are_put_into_normal_form():
    assert streamed(["cafe\u0301"], ["un caf", "é noir"])[1] == ("", True)
    assert streamed(["e"], ["é"])[0] == ("é", False)


def test_flush_and_reset_begin_another_text():
    matcher = StopStrings(["ab"])
    assert (matcher.push("xa"), matcher.flush()) == (("x", False), ("a", False))
    assert (matcher.push("b"), matcher.flush()) == (("b", False), ("", False))
    assert (matcher.push("ab"), matcher.flush()) == (("", True), ("", True))
    assert matcher.push("xa") == ("x", False)
    matcher.reset()
    assert matcher.push("b") == ("b", False)


@pytest.mark.parametrize("stops", [[""], ["a", ""]])
def test_an_empty_stop_string_is_refused(stops):
    with pytest.raises(ConfigError, match="a stop string is empty"):
        StopStrings(stops)


def test_a_text_in_the_place_of_a_list_is_refused():
    with pytest.raises(ConfigError, match=r"given as a list: \['END'\], not 'END'"):
        StopStrings("END")
