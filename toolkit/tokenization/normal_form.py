"""Text as every tokenizer takes it: Unicode normal form C, without halves of surrogate pairs."""

import re
import unicodedata
from collections.abc import Iterable

import numpy as np

from toolkit.errors import DataError

_SURROGATE = re.compile("[\ud800-\udfff]")


def normal_form(text: str) -> str:
    """The text in Unicode normal form C: letters that look alike are alike."""
    return unicodedata.normalize("NFC", text)


def utf8_bytes(text: str) -> np.ndarray:
    """The bytes of a text, (N,) uint8, as it stands. Raises DataError for a lone surrogate."""
    return np.frombuffer(_encoded(text, "utf-8"), np.uint8)


def code_points(text: str) -> np.ndarray:
    """The code points of a text, (N,) uint8 or uint32, as it stands. Raises DataError for a lone surrogate."""
    return utf8_bytes(text) if text.isascii() else np.frombuffer(_encoded(text, "utf-32-le"), "<u4")


def _encoded(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        refuse_surrogates([text], error)
        raise


def refuse_surrogates(texts: Iterable[str], cause: Exception) -> None:
    """An encoder reports only that a string cannot be converted: name the character that is to blame."""
    for text in texts:
        found = _SURROGATE.search(text)
        if found:
            raise DataError(
                f"character {found.start() + 1} of {text!r:.60} is half of a surrogate pair, which is not text: "
                "give the text in UTF-8"
            ) from cause
