"""The outputs of a model: a translation or a continuation with its tokens, and how probable the model finds them."""

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal, NamedTuple

import numpy as np

from toolkit.confidence import Confidence, joined_confidence
from toolkit.data.sentence_boundaries import DividedText
from toolkit.data.sentences import sentence_text
from toolkit.decoding import Hypothesis
from toolkit.display import short_repr
from toolkit.functional.arrays import Array
from toolkit.pages.blocks import Bars, Block, Heat, Shown, Text
from toolkit.tokenization import Detokenizer, Tokenizer
from toolkit.tokenization.special import EOS

_PLACES = 6  # digits of log-probabilities and scores in JSON
_MOST_BARS = 40
_SHARES = 10_000  # attention is rounded to ten-thousandths there


@dataclass(frozen=True)
class Translation(Shown):
    """A translation, and how probable the model finds it.

    `log_prob` is the sum of the log-probabilities of all tokens, EOS included, and `score` that divided by the length
    penalty. Attention and alignment are there where they were asked for.

    `segments` is there where the text is not one sentence as a whole, and has each sentence with its own translation.
    The text is then what they give, with what stood between them; ids, tokens and log-probabilities are those of all,
    EOS after each; the score is the mean of theirs; `alignment` counts the words of the whole text, and attention is
    theirs alone.
    """

    text: str
    score: float
    log_prob: float
    finished: bool  # False where the length limit, not the model, ended it
    ids: list[int]  # EOS included where there is one
    tokens: list[str]  # how each id is shown
    token_log_probs: list[float]  # one for each of `tokens`
    source_tokens: list[str] | None = None  # EOS included
    attention: Array | None = None  # (tokens, source tokens): how far each token looks at each; rows sum to 1
    alignment: list[tuple[int, int]] | None = None  # (source word, target word), counted from 0
    segments: list["Segment"] | None = None
    confidence: Confidence | None = None  # that it is right, where the model was calibrated

    __repr__ = short_repr

    def to_dict(self) -> dict[str, Any]:
        """Give what `toolkit translate --json` prints of it: probabilities to six digits, attention to four."""
        record = _record(self, "text", "score", "log_prob", "finished")
        if self.confidence is not None:
            record |= self.confidence.to_dict()
        if self.attention is not None:
            record["source_tokens"] = self.source_tokens
            record["attention"] = rounded_rows(self.attention).tolist()
        if self.alignment is not None:
            record["alignment"] = self.alignment
        if self.segments is not None:
            record["segments"] = [each.to_dict() for each in self.segments]
        return record

    def _shown(self) -> list[Block]:
        """Show the text, how sure it is, the probability of every token, and the attention where it was asked for."""
        shown: list[Block] = [Text(self.text), _token_bars(self)]
        if self.confidence is not None:
            sure = "Sure" if self.confidence.sure else "Not sure"
            shown.insert(1, Text(f"{sure}: {self.confidence.sentence:.2f} that it is acceptable."))
        if self.attention is not None:
            columns = self.source_tokens or [""] * self.attention.shape[1]
            rows, columns = _visible_spaces(self.tokens), _visible_spaces(columns)
            shown.append(Heat("cross-attention, mean of layers and heads", self.attention, rows, columns))
        return shown

    def __eq__(self, other: object) -> bool:
        """Compare every field, and every number of the attention."""
        if not isinstance(other, Translation):
            return NotImplemented
        one, two = ({**vars(each), "attention": None} for each in (self, other))
        return one == two and np.array_equal(self.attention, other.attention)


class Segment(NamedTuple):
    """A sentence of a text, and its translation."""

    source: str
    start: int  # its place in the text, in characters; `end` is the place after it
    end: int
    translation: Translation

    __repr__ = short_repr

    def to_dict(self) -> dict[str, Any]:
        """Give what stands for it in the JSON of the whole."""
        return {"source": self.source, "start": self.start, "end": self.end, **self.translation.to_dict()}


def translation(hypothesis: Hypothesis, tokenizer: Tokenizer) -> Translation:
    """Add the text and the tokens to a hypothesis."""
    ids = [*hypothesis.ids, EOS][: len(hypothesis.token_log_probs)]
    text = sentence_text(tokenizer, hypothesis.ids)
    shown = hypothesis._replace(ids=tokenizer.shown_ids(ids))
    return Translation(text, tokens=[*map(tokenizer.piece, ids)], **shown._asdict())


def joined_translation(divided: DividedText, parts: Sequence[Translation]) -> Translation:
    """Join the translations of the sentences of a text; of a text that is one sentence as a whole, it is that one's."""
    if divided.is_whole:
        return parts[0]
    places = zip(divided.sentences, divided.spans, parts, strict=True)
    texts = [each.text for each in parts]
    text = divided.joined(texts)
    return Translation(
        text=text,
        score=math.fsum(each.score for each in parts) / max(len(parts), 1),
        log_prob=math.fsum(chain.from_iterable(each.token_log_probs for each in parts)),
        finished=all(each.finished for each in parts),
        ids=[*chain.from_iterable(each.ids for each in parts)],
        tokens=[*chain.from_iterable(each.tokens for each in parts)],
        token_log_probs=[*chain.from_iterable(each.token_log_probs for each in parts)],
        alignment=_joined_alignment(divided, texts, [each.alignment for each in parts]),
        segments=[Segment(sentence, *span, each) for sentence, span, each in places],
        confidence=joined_confidence([each.confidence for each in parts], len(text.split())),
    )


def _joined_alignment(
    divided: DividedText, texts: Sequence[str], alignments: Sequence[list[tuple[int, int]] | None]
) -> list[tuple[int, int]] | None:
    if not alignments or any(each is None for each in alignments):
        return None
    firsts = zip(_first_words(divided.parts()), _first_words(divided.parts(texts)), alignments, strict=True)
    return [(one + source, two + target) for one, two, pairs in firsts for source, target in pairs or ()]


def _first_words(parts: Sequence[str]) -> list[int]:
    """Number the word that each sentence among the parts of a text begins with or in, as splitting counts the words."""
    numbers, count, within = [], 0, False
    for part in parts:
        continued = within and not part[:1].isspace()
        numbers.append(count - continued)
        count += len(part.split()) - (continued and part != "")
        within = not part[-1].isspace() if part else within
    return numbers[1::2]


def best_translations(text: DividedText, groups: Sequence[Sequence[Translation]], count: int) -> list[Translation]:
    """Give the best translations of a text, of those that were found of its sentences; none of a blank one."""
    if not text.text.strip():
        return []
    return [*islice(distinct(joined_translation(text, parts) for parts in _combinations(groups)), count)]


def sampled_translations(text: DividedText, groups: Sequence[Sequence[Translation]], count: int) -> list[Translation]:
    """Give samples of a text, each of one sample of every sentence, the one of the largest score first.

    The samples of a sentence are sorted: the best of all together would not be one that was drawn. So the later
    sentences are taken in an order that says nothing about their scores.
    """
    if not text.text.strip():
        return []
    orders = [range(count), *(np.random.default_rng(place).permutation(count) for place in range(1, len(groups)))]
    parts = ([group[order[each]] for group, order in zip(groups, orders, strict=False)] for each in range(count))
    return sorted((joined_translation(text, part) for part in parts), key=lambda each: -each.score)


def _combinations(groups: Sequence[Sequence[Translation]]) -> Iterator[tuple[Translation, ...]]:
    """Yield the combinations of one translation from each group, by the sum of their scores, the largest first.

    The groups are sorted by score. Combinations are made as they are asked for: from each, those that take the next one
    of one group, which is no earlier group than the one that was changed last, so that each is made once.
    """

    def entry(places: tuple[int, ...], last: int) -> tuple[float, tuple[int, ...], int]:
        scores = (group[place].score for group, place in zip(groups, places, strict=True))
        return -math.fsum(scores), places, last

    if not all(groups):
        return
    waiting = [entry((0,) * len(groups), 0)]
    while waiting:
        _, places, last = heapq.heappop(waiting)
        yield tuple(group[place] for group, place in zip(groups, places, strict=True))
        for number in range(last, len(groups)):
            if places[number] + 1 < len(groups[number]):
                heapq.heappush(waiting, entry((*places[:number], places[number] + 1, *places[number + 1 :]), number))


def distinct(translations: Iterable[Translation]) -> Iterator[Translation]:
    """Yield the first translation of each text."""
    seen = set()
    for each in translations:
        if each.text not in seen:
            seen.add(each.text)
            yield each


def rounded_rows(rows: Array) -> Array:
    """Round rows that sum to 1 to ten-thousandths that still do: the largest remainders are rounded up.

    Shapes: (T, S) -> (T, S).
    """
    shares = rows.astype(np.float64) * _SHARES
    whole = np.floor(shares)
    left = np.rint(_SHARES - whole.sum(axis=1, keepdims=True))
    rank = np.argsort(np.argsort(whole - shares, axis=1, kind="stable"), axis=1)
    return (whole + (rank < left)) / _SHARES


@dataclass(frozen=True)
class Continuation(Shown):
    """A text that a model wrote after a prompt, and how probable it finds it.

    `log_prob` is the sum of the model's own log-probabilities of all tokens, whatever was reshaped or excluded in
    choosing them, and `score` that divided by the length penalty. The text ends in front of a stop string, whose
    tokens are among the others.
    """

    prompt: str
    text: str
    ids: list[int]  # of what was written, EOS included where there is one
    tokens: list[str]  # how each id is shown
    token_log_probs: list[float]  # one for each of `tokens`
    log_prob: float
    score: float
    finish_reason: Literal["stop", "length"]  # EOS or a stop string, or the limit

    __repr__ = short_repr

    def _shown(self) -> list[Block]:
        """Show the prompt with what follows it, and the probability of every token."""
        return [Text(f"{self.prompt} … {self.text}"), _token_bars(self)]

    def to_dict(self) -> dict[str, Any]:
        """Give what `toolkit generate --json` prints of it: probabilities to six digits."""
        return _record(self, "text", "finish_reason", "score", "log_prob")


def _visible_spaces(tokens: Sequence[str]) -> list[str]:
    return [token.replace("▁", "␣") for token in tokens]  # as pages write it


def _token_bars(output: Translation | Continuation) -> Bars:
    """Draw the probability of every token, up to a number that a reader still looks at."""
    tokens, left_out = _visible_spaces(output.tokens[:_MOST_BARS]), len(output.tokens) - _MOST_BARS
    shares = [math.exp(each) for each in output.token_log_probs[:_MOST_BARS]]
    note = f"{left_out} more tokens are not shown." if left_out > 0 else ""
    return Bars("p(token | what stands before it)", tokens, {"probability": shares}, note=note)


def _record(output: Translation | Continuation, *names: str) -> dict[str, Any]:
    """Give these fields by name, and the tokens with their probabilities."""
    given = {name: getattr(output, name) for name in (*names, "ids", "tokens")}
    rounded = {name: round(value, _PLACES) for name, value in given.items() if isinstance(value, float)}
    return given | rounded | {"token_log_probs": [round(each, _PLACES) for each in output.token_log_probs]}


def continuation(prompt: str, hypothesis: Hypothesis, tokenizer: Tokenizer, stops: Sequence[str]) -> Continuation:
    """Add the text, up to the first stop string, and the tokens to a hypothesis."""
    stopped = Detokenizer(tokenizer, stops)
    text = "".join([*map(stopped.push, hypothesis.ids), stopped.flush()])
    ids = [*hypothesis.ids, EOS][: len(hypothesis.token_log_probs)]
    reason = "stop" if hypothesis.finished or stopped.stopped else "length"
    probable = hypothesis.token_log_probs, hypothesis.log_prob, hypothesis.score
    return Continuation(prompt, text, tokenizer.shown_ids(ids), [*map(tokenizer.piece, ids)], *probable, reason)
