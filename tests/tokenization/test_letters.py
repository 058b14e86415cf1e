import pytest

from toolkit.tokenization.letters import LONGEST_LETTER, last_letter


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
