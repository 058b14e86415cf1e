"""Decoding with one sequence a sentence: greedy search, and the loop that it shares with sampling."""

from collections.abc import Callable

import numpy as np

from toolkit.decoding.constraints import Constraints
from toolkit.decoding.distribution import log_sum_exp
from toolkit.decoding.hypothesis import Hypothesis, hypothesis_of
from toolkit.decoding.session import Session, fill_holes
from toolkit.functional.arrays import Array
from toolkit.tokenization.special import BOS, EOS

# Chooses the next tokens: logits (N, V), the sentence of each row (N,), the number of tokens so far -> ids (N,).
Choose = Callable[[Array, Array, int], Array]


def most_probable(logits: Array, _sentences: Array, _step: int) -> Array:
    """Greedy search: the order of logits is the order of probabilities, so nothing is normalised."""
    return logits.argmax(axis=1)


def follow(
    session: Session, constraints: Constraints, penalty: float, choose: Choose = most_probable
) -> list[Hypothesis]:
    """Extend every sentence's only sequence token by token until it ends; whoever has ended leaves the batch."""
    count = len(constraints.limits)
    written = np.empty((count, constraints.longest), np.int64)
    log_probs = np.empty(written.shape)
    lengths, sentences, last = np.zeros(count, np.int64), np.arange(count), np.full(count, BOS)
    while len(sentences):
        step = int(lengths[sentences[0]])
        logits = session.logits(last)
        normalizers = log_sum_exp(logits)
        at_limit = constraints.impose(logits, normalizers, sentences, step)
        last = choose(logits, sentences, step)
        log_probs[sentences, step] = logits[np.arange(len(last)), last] - normalizers
        written[sentences, step] = last
        lengths[sentences] += 1
        live = (last != EOS) & ~at_limit
        if not live.all():
            order = fill_holes(live)
            session.select(order, order)
            sentences, last = sentences[order], last[order]
    finished = constraints.ended_by_itself(np.arange(count), lengths, written[np.arange(count), lengths - 1])
    most = lengths.max(initial=0)
    tokens, parts = written[:, :most].tolist(), log_probs[:, :most].tolist()
    return [
        _hypothesis(ids[:length], each[:length], penalty, by_itself)
        for ids, each, length, by_itself in zip(tokens, parts, lengths.tolist(), finished.tolist(), strict=True)
    ]


def _hypothesis(tokens: list[int], log_probs: list[float], penalty: float, finished: bool) -> Hypothesis:
    return hypothesis_of(tokens[:-1] if tokens[-1] == EOS else tokens, log_probs, penalty, finished)
