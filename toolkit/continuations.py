"""The keywords of a language model's verbs, and the text of ids that come one by one."""

from collections.abc import Iterator, Sequence

from toolkit.decoding import ContinuationSettings
from toolkit.tokenization import Detokenizer, StopStrings, Tokenizer


class WritingSettings(ContinuationSettings, total=False):
    """The keywords of `LanguageModel.generate`, for editors and type checkers."""

    stop_strings: Sequence[str]
    bad_words: Sequence[str]
    batch_size: int


class ContinuationsSettings(WritingSettings, total=False):
    """Those of `LanguageModel.generate_n`."""

    num_return_sequences: int


class StoppedText:
    """The text of ids that come one by one: whole letters, up to the first stop string."""

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str]):
        self._letters, self._stops = Detokenizer(tokenizer), StopStrings(stops)
        self.stopped = False

    def push(self, token: int) -> str:
        """Take the next id; gives the text that is certain now, often none."""
        text, self.stopped = self._stops.push(self._letters.push(token))
        return text

    def ends_with(self, token: int) -> bool:
        """Take the next id; says whether the text ends with it."""
        self.push(token)
        return self.stopped

    def flush(self) -> str:
        """There are no more ids: gives the rest."""
        text, stopped = self._stops.push(self._letters.flush())
        rest, at_end = self._stops.flush()
        self.stopped |= stopped or at_end
        return text + rest


def text_of(ids: Iterator[int], text: StoppedText) -> Iterator[str]:
    """What is certain of the text, whenever there is more of it."""
    while not text.stopped:
        token = next(ids, None)
        if token is None:
            break
        if part := text.push(token):
            yield part
    if rest := text.flush():
        yield rest
