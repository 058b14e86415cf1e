"""The outputs of a model: a translation or a continuation with its tokens, and how probable the model finds them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from toolkit.data.sentences import sentence_text
from toolkit.decoding import Hypothesis
from toolkit.functional.arrays import Array
from toolkit.tokenization import Detokenizer, Tokenizer
from toolkit.tokenization.special import EOS

_PLACES = 6  # digits of log-probabilities and scores in JSON
_SHARES = 10_000  # attention is rounded to ten-thousandths there


@dataclass(frozen=True)
class Translation:
    """A translation, and how probable the model finds it.

    `log_prob` is the sum of the log-probabilities of all tokens, EOS included, and `score` that divided by the length
    penalty. Attention and alignment are there where they were asked for.
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

    def to_dict(self) -> dict[str, Any]:
        """Give what `toolkit translate --json` prints of it: probabilities to six digits, attention to four."""
        record = _record(self, "text", "score", "log_prob", "finished")
        if self.attention is not None:
            record["source_tokens"] = self.source_tokens
            record["attention"] = rounded_rows(self.attention).tolist()
            record["alignment"] = self.alignment
        return record

    def __eq__(self, other: object) -> bool:
        """Compare every field, and every number of the attention."""
        if not isinstance(other, Translation):
            return NotImplemented
        one, two = ({**vars(each), "attention": None} for each in (self, other))
        return one == two and np.array_equal(self.attention, other.attention)


def translation(hypothesis: Hypothesis, tokenizer: Tokenizer) -> Translation:
    """Add the text and the tokens to a hypothesis."""
    ids = [*hypothesis.ids, EOS][: len(hypothesis.token_log_probs)]
    text = sentence_text(tokenizer, hypothesis.ids)
    return Translation(text, tokens=[*map(tokenizer.piece, ids)], **hypothesis._replace(ids=ids)._asdict())


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
class Continuation:
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

    def to_dict(self) -> dict[str, Any]:
        """Give what `toolkit generate --json` prints of it: probabilities to six digits."""
        return _record(self, "text", "finish_reason", "score", "log_prob")


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
    return Continuation(prompt, text, ids, [*map(tokenizer.piece, ids)], *probable, reason)
