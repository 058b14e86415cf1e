"""A reply while it is written: ids come, text that is certain goes."""

from collections.abc import Generator, Iterator, Sequence

from toolkit.chat.template import Template
from toolkit.continuations import StoppedText
from toolkit.decoding import Hypothesis


class Writing:
    """The content of a reply, part by part, whole letters, up to the first stop string.

    Whenever the reading of it stops, `text` is what has been given of it.
    """

    def __init__(self, ids: Generator[int, None, Hypothesis], template: Template, stops: Sequence[str]):
        self.ids: list[int] = []  # all that was written, without the end marker
        self.text = ""
        self._written = ""  # the text before the template has read it
        self._source, self._template = ids, template
        self._stopped, self._reading = StoppedText(template.tokenizer, stops), template.reading()
        self._hypothesis: Hypothesis | None = None

    def parts(self) -> Iterator[str]:
        """The text, whenever there is more of it."""
        while not self._stopped.stopped:
            try:
                token = next(self._source)
            except StopIteration as last:
                self._hypothesis = last.value
                break
            self.ids.append(token)
            yield from self._given(self._stopped.push(token))
        self._source.close()
        yield from self._given(self._stopped.flush(), at_end=True)

    def _given(self, written: str, at_end: bool = False) -> Iterator[str]:
        self._written += written
        part = self._reading.push(written) + (self._reading.flush() if at_end else "")
        if part:
            self.text += part
            yield part

    @property
    def ended_by_itself(self) -> bool:
        """Whether the model, or a stop string, ended it."""
        return self._stopped.stopped or (self._hypothesis is not None and self._hypothesis.finished)

    @property
    def log_prob(self) -> float | None:
        """The model's log-probability of all ids and the end marker; None where the model was not let go on."""
        return self._hypothesis and self._hypothesis.log_prob

    @property
    def content(self) -> list[int]:
        """The ids of the text: those that were written, where they are this text and no more."""
        if self._template.tokenizer.decode(self.ids) == self._written:
            return self.ids
        return self._template.content(self.text)
