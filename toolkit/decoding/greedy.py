"""Decoding with one sequence a sentence: greedy search, and the loop that it shares with sampling."""

from collections.abc import Callable

import numpy as np

from toolkit.decoding.distribution import forbid_control_tokens, log_sum_exp
from toolkit.decoding.hypothesis import Hypothesis, length_penalty
from toolkit.decoding.session import Session, fill_holes
from toolkit.functional.arrays import Array
from toolkit.tokenization.special import BOS, EOS

# Chooses the next tokens: logits (N, V), the sentence of each row (N,), the number of tokens so far -> ids (N,).
Choose = Callable[[Array, Array, int], Array]


def most_probable(logits: Array, _sentences: Array, _step: int) -> Array:
    """Greedy search: the order of logits is the order of probabilities, so nothing is normalised."""
    return logits.argmax(axis=1)


def follow(session: Session, limits: Array, penalty: float, choose: Choose = most_probable) -> list[Hypothesis]:
    """Extend every sentence's only sequence token by token until it ends; whoever has ended leaves the batch.

    limits: (B,) tokens that each sentence may have, end mark included; the last one is an end mark in any case.
    """
    count = len(limits)
    written = np.empty((count, limits.max(initial=0)), np.int64)
    lengths, log_probs = np.zeros(count, np.int64), np.zeros(count)
    sentences, last = np.arange(count), np.full(count, BOS)
    while len(sentences):
        step = int(lengths[sentences[0]])
        logits = session.logits(last)
        normalizers = log_sum_exp(logits)
        forbid_control_tokens(logits)
        last = choose(logits, sentences, step)
        last[limits[sentences] == step + 1] = EOS
        log_probs[sentences] += logits[np.arange(len(last)), last] - normalizers
        written[sentences, step] = last
        lengths[sentences] += 1
        live = last != EOS
        if not live.all():
            order = fill_holes(live)
            session.select(order, order)
            sentences, last = sentences[order], last[order]
    scores = log_probs / length_penalty(lengths, penalty)
    return [
        Hypothesis(ids[: length - 1].tolist(), float(score), float(log_prob), bool(length < limit))
        for ids, length, score, log_prob, limit in zip(written, lengths, scores, log_probs, limits, strict=True)
    ]
