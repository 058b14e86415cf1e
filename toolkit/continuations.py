"""What a continuation is made of: its text, its tokens, how probable they are, and why it ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolkit.decoding import ContinuationSettings, Hypothesis
from toolkit.tokenization import TextStream, Tokenizer
from toolkit.tokenization.special import EOS

PLACES = 6  # digits of log-probabilities and scores in JSON


class WritingSettings(ContinuationSettings, total=False):
    """The keywords of `LanguageModel.generate`, for editors and type checkers."""

    stop_strings: Sequence[str]
    bad_words: Sequence[str]
    batch_size: int


class ContinuationsSettings(WritingSettings, total=False):
    """Those of `LanguageModel.generate_n`."""

    num_return_sequences: int


@dataclass(frozen=True)
class Continuation:
    """What a model wrote after a prompt, and how probable it finds it.

    `log_prob` is the sum of the model's own log-probabilities of all tokens, whatever was reshaped or excluded in
    choosing them, and `score` that divided by the length penalty. The text ends in front of a stop string, whose
    tokens are among the others.
    """

    prompt: str
    text: str
    ids: list[int]  # of what was written, the end mark included where there is one
    tokens: list[str]  # how each id is shown
    token_log_probs: list[float]  # one for each of `tokens`
    log_prob: float
    score: float
    finish_reason: Literal["stop", "length"]  # the model's end mark or a stop string, or the limit

    def to_dict(self) -> dict[str, Any]:
        """Give what `toolkit generate --json` prints of it: probabilities to six digits."""
        return {
            "text": self.text,
            "finish_reason": self.finish_reason,
            "score": round(self.score, PLACES),
            "log_prob": round(self.log_prob, PLACES),
            "ids": self.ids,
            "tokens": self.tokens,
            "token_log_probs": [round(each, PLACES) for each in self.token_log_probs],
        }


def continuation(prompt: str, hypothesis: Hypothesis, tokenizer: Tokenizer, stops: Sequence[str]) -> Continuation:
    """A hypothesis with its text, up to the first stop string, and its tokens."""
    stream = TextStream(tokenizer, stops)
    text = "".join([*map(stream.push, hypothesis.ids), stream.flush()])
    ids = [*hypothesis.ids, EOS][: len(hypothesis.token_log_probs)]
    return Continuation(
        prompt,
        text,
        ids,
        [*map(tokenizer.piece, ids)],
        hypothesis.token_log_probs,
        hypothesis.log_prob,
        hypothesis.score,
        "stop" if hypothesis.finished or stream.stopped else "length",
    )
