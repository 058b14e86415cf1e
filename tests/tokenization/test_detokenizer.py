import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tokenization.traps import CORPUS, TRAPS
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, Detokenizer, SentencePieceTokenizer, special

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
