"""Decoding written as plainly as possible: one sentence, the whole prefix again at every step, no cache."""

import numpy as np

from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, EOS


def logits_of(model, source, prefix):
    """(T, V) logits of the token after each of begin mark, prefix[0], ..., by teacher forcing."""
    tape = Tape()
    source_rows = Rows(np.array([len(source) + 1]))
    memory = model.encode(np.array([*source, EOS]), source_rows, tape)
    rows = Rows(np.array([len(prefix) + 1]), memory=source_rows, memory_of=np.array([0]))
    return model.output.logits(model.decode(np.array([BOS, *prefix]), memory, rows, tape), tape)


def logits_after(model, source):
    """A function from the ids written so far to the logits of the next one, (V,)."""
    return lambda ids: logits_of(model, source, ids)[-1]


def log_probs_after(model, source, prefix):
    """(T, V) log-probabilities of the token after each of begin mark, prefix[0], ..., by teacher forcing."""
    logits = logits_of(model, source, prefix).astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def log_prob_of(model, source, ids):
    """The log-probability of an output and its end mark."""
    table = log_probs_after(model, source, ids)
    return float(table[np.arange(len(ids) + 1), [*ids, EOS]].sum())


def ordinary(size):
    """The ids that may be written before the end."""
    return list(range(16, size))


def permitted(size, length, limit, prefix=(), least=0):
    """The ids that may be the token with this number, from 1, where `least` come between the prefix and the end."""
    if length <= len(prefix):
        return [prefix[length - 1]]
    if length == limit:
        return [EOS]
    return ordinary(size) if length <= len(prefix) + least else [EOS, *ordinary(size)]


def greedy(model, source, limit, prefix=(), least=0):
    """The ids that greedy search writes, at most limit - 1 before the end mark."""
    ids = []
    while True:
        table = log_probs_after(model, source, ids)[-1]
        choices = permitted(model.config.vocab_size, len(ids) + 1, limit, prefix, least)
        best = max(choices, key=lambda token: table[token])
        if best == EOS:
            return ids
        ids.append(best)


def every_output(model, source, limit):
    """All outputs of at most `limit` tokens, end mark included, with their log-probabilities."""
    outputs, prefixes = {}, [()]
    for _ in range(limit):
        for prefix in prefixes:
            outputs[prefix] = log_prob_of(model, source, list(prefix))
        prefixes = [(*prefix, token) for prefix in prefixes for token in ordinary(model.config.vocab_size)]
    return outputs


def beam_search(model, source, limit, width, power, prefix=(), least=0):
    """Textbook beam search: rank all continuations of all live beams, stop when no live one can become the best.

    Returns the best score, its ids and the number of steps.
    """
    live, finished = [((), 0.0)], []
    for length in range(1, limit + 1):
        ranked = []
        for ids, score in live:
            table = log_probs_after(model, source, list(ids))[-1]
            for token in permitted(model.config.vocab_size, length, limit, prefix, least):
                ranked.append((score + table[token], ids, token))
        ranked.sort(key=lambda each: -each[0])
        finished += [(score / length**power, ids) for score, ids, token in ranked[:width] if token == EOS]
        live = [((*ids, token), score) for score, ids, token in ranked if token != EOS][:width]
        best = max(finished, default=(-np.inf, ()))
        best_score_to_come = max(
            (live[0][1] / end**power for end in range(length + 1, limit + 1) if live), default=-np.inf
        )
        if best_score_to_come <= best[0]:
            break
    return *best, length


def hugging_face_beam_search(model, source, limit, width, power, rule, forced_eos):
    """Beam search with the three stopping rules of Hugging Face's `generate`, as its documentation and code have them.

    Returns (score, tokens) of the finished ones, best first, and the number of steps.
    """
    live, finished = [((), 0.0)], []
    for length in range(1, limit + 1):
        ranked = []
        for ids, score in live:
            table = log_probs_after(model, source, list(ids))[-1]
            if length == limit and forced_eos != "none":
                ranked.append((score + (table[EOS] if forced_eos == "scored" else 0), (*ids, EOS)))
            else:
                choices = [EOS, *ordinary(model.config.vocab_size)]
                ranked += [(score + table[token], (*ids, token)) for token in choices]
        ranked.sort(reverse=True)
        ended = [(score / length**power, ids) for score, ids in ranked[:width] if ids[-1] == EOS or length == limit]
        finished = sorted([*finished, *ended], reverse=True)[:width]
        live = [(ids, score) for score, ids in ranked if ids[-1] != EOS][:width]
        if len(finished) == width:
            to_come = live[0][1] / (limit if rule == "never" and power > 0 else length) ** power if live else -np.inf
            if rule is True or to_come <= finished[-1][0]:
                break
    return finished, length
