"""From ids to text one by one, as a model writes them: only whole letters come out.

A token may end within a character (bytes) or within a letter (क without its vowel sign ि). Two stages hold such ends
back: bytes wait until they are a character, and the last letter waits until the next one begins (see `letters`).
"""

import codecs

from toolkit.tokenization.base import Tokenizer
from toolkit.tokenization.letters import last_letter
from toolkit.tokenization.surface import replace_invalid


class Detokenizer:
    """Incremental decoding: all that `push` gives, and then `flush`, is together `tokenizer.decode` of all ids.

    Work and memory per token are bounded, however long the text becomes. Text in Latin, Greek, Cyrillic or Armenian
    script never waits, nor do digits, spaces and punctuation; a letter of another script or a symbol comes out when the
    next token shows that it is whole. (A mark that follows a Latin letter comes out after it: normal form C has a code
    point for nearly every such pair.)
    """

    def __init__(self, tokenizer: Tokenizer):
        self._surface = tokenizer.surface
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._held = ""

    def push(self, token_id: int) -> str:
        """Take the next id; gives the text that is certain and whole now, often none. Raises IndexError as `decode`."""
        text = self._held + replace_invalid(self._decoder.decode(self._surface(token_id)))
        begin = last_letter(text)
        self._held = text[begin:]
        return text[:begin]

    def flush(self) -> str:
        """The text has ended: gives what was held back, and is ready for another text."""
        rest = self._held + replace_invalid(self._decoder.decode(b"", final=True))
        self._held = ""
        return rest
