"""Continuous batching: requests join a batch that is being decoded, and leave it, between two steps."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.generation import Texts, generate
from toolkit.decoding.hypothesis import Hypothesis
from toolkit.errors import ToolkitError
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.tokenization.special import EOS


@dataclass(frozen=True)
class Request:
    """A text to decode: what `generate` takes for one text, and what is to be told of it.

    config: seeded; None writes nothing, which is of use with score_prompt. number: as in `generate`. alternatives: how
    many of the most probable next tokens are told beside each that is written. score_prompt: the tokens of a GPT's
    prompt are told, too.
    """

    key: int  # names it among all that are in the batch
    ids: Sequence[int]  # of a prompt, without the BOS that the model reads by itself, or of a source, without EOS
    config: GenerationConfig | None
    number: int = 0
    prefix: Sequence[int] = ()
    forced_bos: int | None = None
    bad_words: Texts = ()
    end: int = EOS
    alternatives: int = 0
    score_prompt: bool = False


class Token(NamedTuple):
    """A token, and the model's own log-probability of it and of the most probable ones in its place, best first."""

    id: int
    log_prob: float | None  # None for the first token of all
    best: list[tuple[int, float]]


@dataclass
class Progress:
    """News of a request: at least one for each, and `hypotheses` or `error` in the last."""

    key: int
    written: list[tuple[int, Token]] = field(default_factory=list)  # (sample, token), EOS included; no beams
    prompt: list[Token] | None = None  # once, where it was asked for
    cached: int = 0  # how many tokens of the prompt were not read again; with the first news that has tokens
    hypotheses: list[Hypothesis] | None = None  # at the end, as `generate` gives them
    error: ToolkitError | None = None


class ContinuousBatch:
    """Requests that are decoded together, each as if it were alone.

    places: sequences that are written at once, at most; other requests wait for them in the order in which they came.
    piece: tokens of a prompt that are read between two steps.
    """

    def __init__(self, model: Seq2Seq | GPT, places: int = 32, piece: int = 64):
        self._model, self._waiting = model, []

    def add(self, request: Request) -> None:
        """Take a request.  Raises DataError and ConfigError as `generate`, at once, for one that cannot be decoded."""
        self._waiting.append(request)

    def cancel(self, key: int) -> None:
        """Forget a request; its places are free before the next step. Nothing more is told of it."""
        self._waiting = [each for each in self._waiting if each.key != key]

    @property
    def idle(self) -> bool:
        """True where there is nothing to do."""
        return not self._waiting

    def step(self) -> list[Progress]:
        """Read a piece of what is to be read, write a token of every sequence, and tell what has come of it."""
        # For now: one whole request after the other.
        each = self._waiting.pop(0)
        if each.config is None:
            return [Progress(each.key, hypotheses=[])]
        settings = {"forced_bos": each.forced_bos, "end": each.end, "bad_words": each.bad_words}
        prefixes = [each.prefix] if len(each.prefix) else None
        try:
            [found] = generate(
                self._model, [each.ids], each.config, prefixes=prefixes, numbers=[each.number], **settings
            )
        except ToolkitError as error:
            return [Progress(each.key, error=error)]
        written = []
        if each.config.num_beams == 1:
            for sample, hypothesis in enumerate(found):
                ids = [*hypothesis.ids, each.end][: len(hypothesis.token_log_probs)]
                written += [
                    (sample, Token(token, float(np.float32(log_prob)), [(token, log_prob)] * bool(each.alternatives)))
                    for token, log_prob in zip(ids, hypothesis.token_log_probs, strict=True)
                ]
        prompt = [Token(token, None, []) for token in each.ids] if each.score_prompt else None
        return [Progress(each.key, written, prompt, 0, found)]
