"""What tokens look like as bytes, and how bytes that are not UTF-8 become text: the same for every tokenizer.

A text is the lenient decoding of its tokens' bytes, put together: every byte that is no part of a character becomes
U+FFFD, one for each. This is how SentencePiece decodes byte pieces. 0xFF occurs nowhere in UTF-8, so an id that stands
for lost text has that as its bytes.
"""

import re

REPLACEMENT = "\ufffd"
LOST = b"\xff"  # the bytes of <unk>

_INVALID = re.compile("[\udc80-\udcff]")


def lenient_text(content: bytes) -> str:
    """UTF-8 with U+FFFD for each byte that is no part of a character."""
    return replace_invalid(content.decode("utf-8", "surrogateescape"))


def replace_invalid(text: str) -> str:
    """U+FFFD for each byte that decoding with "surrogateescape" has kept as half of a surrogate pair."""
    return text if text.isascii() else _INVALID.sub(REPLACEMENT, text)
