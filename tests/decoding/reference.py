"""Decoding written as plainly as possible: one sentence, the whole prefix again at every step, no cache."""

import numpy as np

from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, EOS


def log_probs_after(model, source, prefix):
    """(T, V) log-probabilities of the token after each of begin mark, prefix[0], ..., by teacher forcing."""
    tape = Tape()
    source_rows = Rows(np.array([len(source) + 1]))
    memory = model.encode(np.array([*source, EOS]), source_rows, tape)
    rows = Rows(np.array([len(prefix) + 1]), memory=source_rows, memory_of=np.array([0]))
    logits = model.logits(model.decode(np.array([BOS, *prefix]), memory, rows, tape), tape).astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def log_prob_of(model, source, ids):
    """The log-probability of an output and its end mark."""
    table = log_probs_after(model, source, ids)
    return float(table[np.arange(len(ids) + 1), [*ids, EOS]].sum())


def ordinary(size):
    """The ids that may be written before the end."""
    return list(range(16, size))


def greedy(model, source, limit):
    """The ids that greedy search writes, at most limit - 1 before the end mark."""
    ids = []
    permitted = [EOS, *ordinary(model.config.vocab_size)]
    while len(ids) < limit - 1:
        table = log_probs_after(model, source, ids)[-1]
        best = max(permitted, key=lambda token: table[token])
        if best == EOS:
            return ids
        ids.append(best)
    return ids


def every_output(model, source, limit):
    """All outputs of at most `limit` tokens, end mark included, with their log-probabilities."""
    outputs, prefixes = {}, [()]
    for _ in range(limit):
        for prefix in prefixes:
            outputs[prefix] = log_prob_of(model, source, list(prefix))
        prefixes = [(*prefix, token) for prefix in prefixes for token in ordinary(model.config.vocab_size)]
    return outputs


def beam_search(model, source, limit, width, power):
    """Textbook beam search: rank all continuations of all live beams, stop when no live one can become the best.

    Returns the best score, its ids and the number of steps.
    """
    live, finished = [((), 0.0)], []
    for length in range(1, limit + 1):
        ranked = []
        for prefix, score in live:
            table = log_probs_after(model, source, list(prefix))[-1]
            for token in [EOS] if length == limit else [EOS, *ordinary(model.config.vocab_size)]:
                ranked.append((score + table[token], prefix, token))
        ranked.sort(key=lambda each: -each[0])
        finished += [(score / length**power, prefix) for score, prefix, token in ranked[:width] if token == EOS]
        live = [((*prefix, token), score) for score, prefix, token in ranked if token != EOS][:width]
        best = max(finished, default=(-np.inf, ()))
        best_score_to_come = max(
            (live[0][1] / end**power for end in range(length + 1, limit + 1) if live), default=-np.inf
        )
        if best_score_to_come <= best[0]:
            break
    return *best, length
