"""Sentences as a translator reads and writes them."""

import re
from collections.abc import Iterable, Sequence

from toolkit.tokenization import Tokenizer
from toolkit.tokenization.normal_form import normal_form

_SPACE = re.compile(r"[ \t\r\n]+")


def tidy(text: str) -> str:
    """Unicode normal form C, without white space at the ends and with one space where there are several."""
    return _SPACE.sub(" ", normal_form(text)).strip()


def spaced(text: str, ignore_case: bool = False) -> str:
    """A sentence, tidied, with a space in front: a word is then the same token wherever in the sentence it stands.

    A blank text stays empty. `ignore_case` puts it in lower case, for sources in a small corpus: "The", "the" and
    "THE" are then one word to learn instead of three.
    """
    text = tidy(text)
    return f" {text.lower() if ignore_case else text}" if text else ""


def sentence_ids(tokenizer: Tokenizer, texts: Iterable[str], ignore_case: bool = False) -> list[list[int]]:
    """The ids of every sentence; none for a blank one."""
    return tokenizer.encode_batch([spaced(text, ignore_case) for text in texts])


def sentence_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The sentence that ids spell, tidied."""
    return tidy(tokenizer.decode(ids))
