"""Text comes out in whole letters, up to the first stop string, however ids and parts are cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tokenization.traps import CORPUS, TRAPS
from toolkit.errors import ConfigError
from toolkit.tokenization import (
    ByteTokenizer,
    CharacterTokenizer,
    Detokenizer,
    SentencePieceTokenizer,
    StopStrings,
    special,
)
from toolkit.tokenization.streaming import LONGEST_LETTER, last_letter

# What a reader takes for one letter. The joined ones are longer than a character, and longer than any piece of a
# tokenizer trained on CORPUS: vowel signs, conjuncts, nukta, the eyelash ra, emoji with their variations, flags.
QUICK = (*"aZé1०.।, \n“–₹", "न् ", "क्।")  # come out at once
SLOW = (
    *("क", "कि", "किं", "क्ष", "क्षि", "स्त्री", "ज़", "र्\u200dय", "क्\u200cष", "हुँ", "र्त्स्न्यं", "ऽ"),
    *(
        "👍",
        "👍🏽",
        "❤\ufe0f",
        "👩\u200d👩\u200d👧",
        "🏳\ufe0f\u200d🌈",
        "🇳🇵",
        "🇮🇳",
        "🏴\U000e0067\U000e0062\U000e007f",
        "‼\ufe0f",
    ),
    *("กำ", "กิ", "ক্ষ", "ക്ഷ", "שׁ", "한", "ᄒ\u119e", "葛\U000e0100", "漢"),
)
LETTERS = st.lists(st.sampled_from([*QUICK, *SLOW]), max_size=8)

TOKENIZERS = {
    "unigram": SentencePieceTokenizer.train(CORPUS, 400),
    "bpe": SentencePieceTokenizer.train(CORPUS, 400, "bpe"),
    "byte": ByteTokenizer(),
    "character": CharacterTokenizer.train([*CORPUS, *TRAPS, *QUICK, *SLOW]),
}


@pytest.fixture(params=sorted(TOKENIZERS), scope="module")
def tokenizer(request):
    return TOKENIZERS[request.param]


def some_ids(tokenizer):
    """Ids as a bad model may write them: any of them in any order, with many bytes, control ids and lost text."""
    size = tokenizer.vocab_size
    return st.one_of(st.integers(0, size - 1), st.integers(0, min(271, size - 1)), st.integers(0, 17))


@given(data=st.data())
def test_what_comes_out_is_what_decode_gives_for_any_ids(tokenizer, data):
    ids = data.draw(st.lists(some_ids(tokenizer), max_size=30))
    detokenizer = Detokenizer(tokenizer)
    assert "".join([*map(detokenizer.push, ids), detokenizer.flush()]) == tokenizer.decode(ids)
    again = [*map(detokenizer.push, np.array(ids, np.uint16)), detokenizer.flush()]
    assert "".join(again) == tokenizer.decode(ids), "NumPy's integers, after a flush"


@pytest.mark.parametrize("text", [*TRAPS, "".join(TRAPS), "".join(CORPUS), "".join(SLOW * 2)])
def test_every_trap_comes_out(tokenizer, text):
    ids = tokenizer.encode(text)
    framed = [special.BOS, *(index for one in ids for index in (one, special.PAD)), special.UNK, special.EOS]
    detokenizer = Detokenizer(tokenizer)
    assert "".join([*map(detokenizer.push, framed), detokenizer.flush()]) == tokenizer.decode(framed)


def ends_of(letters):
    """Where the text of the letters may be cut, from the front."""
    return {len("".join(letters[:count])) for count in range(len(letters) + 1)}


@given(letters=LETTERS)
def test_only_whole_letters_come_out(tokenizer, letters):
    text, detokenizer, length = "".join(letters), Detokenizer(tokenizer), 0
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    ends = ends_of(letters) | {length for length, letter in enumerate(text) if letter < "\u0590" or letter in "।०“–₹"}
    for index in ids:
        length += len(detokenizer.push(index))
        assert length in ends
    assert text[length:] == detokenizer.flush()


@given(letters=LETTERS)
def test_a_letter_comes_out_as_soon_as_the_next_one_begins(letters):
    tokenizer = TOKENIZERS["character"]
    detokenizer, released, begin = Detokenizer(tokenizer), 0, 0
    for letter in letters:
        for index in tokenizer.encode(letter):
            released += len(detokenizer.push(index))
            assert released >= begin
        begin += len(letter)
        assert letter in SLOW or released == begin


@pytest.mark.parametrize(
    "text", ["Once upon a time — “yes”, she said: 3 × 5 € …\n", "Привет, Ωμέγα!", "été ǆ e\u0331", "१२३। "]
)
def test_text_without_joined_letters_never_waits(text):
    tokenizer = CharacterTokenizer(set(text))
    detokenizer = Detokenizer(tokenizer)
    assert [detokenizer.push(index) for index in tokenizer.encode(text)] == list(text)


def test_a_devanagari_word_comes_out_letter_by_letter():
    text = "नमस्ते केटी "
    tokenizer = CharacterTokenizer(text)
    detokenizer = Detokenizer(tokenizer)
    pieces = [detokenizer.push(index) for index in tokenizer.encode(text)]
    assert [piece for piece in pieces if piece] == ["न", "म", "स्ते ", "के", "टी "]


def test_bytes_wait_until_they_are_a_character():
    tokenizer = ByteTokenizer()
    detokenizer = Detokenizer(tokenizer)
    assert [detokenizer.push(index) for index in tokenizer.encode("é")] == ["", "é"]
    assert [detokenizer.push(index) for index in tokenizer.encode("क")[:2]] == ["", ""]
    assert detokenizer.push(special.PAD) == ""
    assert detokenizer.push(16 + ord("a")) == "\ufffd\ufffda"  # what was begun did not become one


def test_flush_begins_another_text():
    detokenizer = Detokenizer(TOKENIZERS["byte"])
    for _ in range(2):
        for token in TOKENIZERS["byte"].encode("abक")[:-1]:
            detokenizer.push(token)
        assert detokenizer.flush() == "\ufffd\ufffd"
        assert detokenizer.flush() == ""


@pytest.mark.parametrize("mark", ["\u093f", "\u0301", "\u094d", "\u200d", "\ufe0f", "🇳", "👩\u200d", "क्", "ᄒ"])
def test_a_letter_without_end_is_let_out_in_parts(mark):
    tokenizer = CharacterTokenizer("क" + mark)
    detokenizer, released = Detokenizer(tokenizer), 0
    for count, index in enumerate(tokenizer.encode("क") + tokenizer.encode(mark) * 300, start=1):
        released += len(detokenizer.push(index))
        assert count - released <= 32
    assert released + len(detokenizer.flush()) == count


def test_ids_outside_the_vocabulary_are_refused(tokenizer):
    for beyond in (-1, tokenizer.vocab_size):
        with pytest.raises(IndexError):
            Detokenizer(tokenizer).push(beyond)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("", ""),
        ("abc", ""),
        ("कa", ""),
        ("क ", ""),
        ("कि।", ""),
        ("aक", "क"),
        ("नम", "म"),
        ("नमि", "मि"),
        ("नमिं", "मिं"),
        ("न क्", "क्"),
        ("न क्ष", "क्ष"),
        ("नर्\u200d", "र्\u200d"),
        ("नर्\u200dय", "र्\u200dय"),
        ("न क्\u200cष", "क्\u200cष"),
        ("स्त्री", "स्त्री"),
        ("क्ि म", "म"),
        ("किम", "म"),
        ("👍🏽", "👍🏽"),
        ("a👩\u200d👩", "👩\u200d👩"),
        ("👩👩", "👩"),
        ("🇳🇵", "🇳🇵"),
        ("🇳🇵🇮", "🇮"),
        ("🇳🇵🇮🇳", "🇮🇳"),
        ("क🇳🇵🇮", "🇮"),
        ("1\ufe0f", "1\ufe0f"),
        ("กำ", "กำ"),
        ("가", "가"),
        ("ᄒ\u1161\u11ab", "ᄒ\u1161\u11ab"),
        ("각가", "가"),
    ],
)
def test_the_last_letter_is_what_more_could_belong_to(text, held):
    assert text[last_letter(text) :] == held


def test_a_letter_without_end_counts_as_complete():
    assert last_letter("क" + "\u0951" * (LONGEST_LETTER - 2)) == 0
    assert last_letter("क" + "\u0951" * (LONGEST_LETTER - 1)) == LONGEST_LETTER
    assert last_letter("क" + "\u0951" * 100_000) == 100_001


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
