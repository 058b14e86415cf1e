"""Texts as topics read them: as many of their tokens as fit, with a sentence on the rest; and texts of our own."""

import math
import re

from toolkit.data.sentences import sentence_ids
from toolkit.errors import ConfigError, DataError
from toolkit.text_model import CHARACTERS_OF_A_TOKEN
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.tokenizer import LOST

DEFAULT_PAIR = "I am a boy", "म केटा हुँ"
# As the embedded stories begin, in both languages.
DEFAULT_TEXTS = (
    "Long ago, a little boy named Bikash lived near a big forest.",
    "धेरै पहिलेको कुरा हो, एउटा गाउँमा हरि नाम गरेको एउटा केटा बस्थ्यो।",
)

_BYTE = re.compile("<0x[0-9A-F]{2}>")
_STRANGE = 1.5  # 1 is a text letter by letter, 2 one of ASCII byte by byte


def text_ids(tokenizer: Tokenizer, text: str, most: int, cut: list[str], what: str = "The text") -> list[int]:
    """The first `most` tokens of a text, without marks; `cut` gets a sentence for each thing that is left out.

    Raises DataError for a text that the tokenizer cannot read.
    """
    return _first(tokenizer.encode(_beginning(text, most, cut)), most, cut, what)


def source_ids(
    tokenizer: Tokenizer, text: str, most: int, cut: list[str], what: str = "The text", ignore_case: bool = False
) -> list[int]:
    """The same of a sentence, as a translator reads and writes them; none for a blank one."""
    [ids] = sentence_ids(tokenizer, [_beginning(text, most, cut)], ignore_case)
    return _first(ids, most, cut, what)


def default_text(tokenizer: Tokenizer) -> str:
    """The one of `DEFAULT_TEXTS` that the tokenizer knows best: whose letters it has, in the longest tokens.

    Raises ConfigError where it has the letters of none.
    """
    best = min(DEFAULT_TEXTS, key=lambda text: _strangeness(tokenizer, text))
    if _strangeness(tokenizer, best) > _STRANGE:
        raise ConfigError("the text is missing: give one, for this model writes neither English nor Nepali letters")
    return best


def _strangeness(tokenizer: Tokenizer, text: str) -> float:
    """Tokens for each character, single bytes counted twice; infinite where something is lost."""
    try:
        ids = tokenizer.encode(text)
    except DataError:
        return math.inf
    if any(tokenizer.surface(each) == LOST for each in ids):
        return math.inf
    return (len(ids) + sum(_BYTE.fullmatch(tokenizer.piece(each)) is not None for each in ids)) / len(text)


def _beginning(text: str, most: int, cut: list[str]) -> str:
    """The text, or as many of its characters as can make more than that many tokens."""
    characters = CHARACTERS_OF_A_TOKEN * (most + 1)
    if len(text) > characters:
        cut.append(f"Of {len(text)} characters only the first {characters} were tokenized.")
    return text[:characters]


def _first(ids: list[int], most: int, cut: list[str], what: str) -> list[int]:
    if len(ids) > most:
        cut.append(f"{what} has {len(ids)} tokens, of which the model reads the first {most}.")
    return ids[:most]
