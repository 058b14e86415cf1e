"""Decoding with processors, for any model, as plainly as possible: lists, loops, the whole text again at every step."""

import numpy as np

from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, EOS


def window(text, context):
    """What a sliding model sees of a text: token by token, and half a context of it where the next would not fit."""
    seen = []
    for token in text:
        seen.append(token)
        if len(seen) > context:
            seen = seen[-max(context // 2, 1) :]
    return seen


def gpt_logits(model, prompt):
    """A function from the ids after `prompt` to the logits of the next one, (V,), without a cache."""

    def after(ids):
        text = [*([BOS] if model.config.begin else []), *prompt, *ids]
        seen = np.array(window(text, model.config.max_length))
        tape = Tape()
        return model.output.logits(model.read(seen, Rows(np.array([len(seen)])), tape), tape)[-1]

    return after


def log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


def processed(scores, history, config, bans):
    """Penalty, n-grams and bans on the scores (V,) of the token after `history`; then only what may be written."""
    scores = scores.astype(np.float64)
    for token in set(history):
        scores[token] *= config.repetition_penalty if scores[token] < 0 else 1 / config.repetition_penalty
    size = config.no_repeat_ngram_size
    for token in range(len(scores)):
        continued = [*history, token]
        if size and tuple(continued[-size:]) in ngrams(history, size):
            scores[token] = -np.inf
        if any(ends_with(continued, ban) for ban in bans):
            scores[token] = -np.inf
    scores[[token for token in range(16) if token != EOS]] = -np.inf
    return scores


def ngrams(ids, size):
    return {tuple(ids[begin : begin + size]) for begin in range(len(ids) - size + 1)}


def ends_with(ids, ending):
    return len(ids) >= len(ending) and list(ids[len(ids) - len(ending) :]) == list(ending)


def stuck(scores, own):
    """The end mark where nothing else is left."""
    if scores.max() == -np.inf:
        scores[EOS] = own[EOS]
    return scores


def greedy(after, history, limit, config, bans=()):
    """All tokens that are written, an end mark included, and their log-probabilities by the model."""
    ids, log_probs = [], []
    while len(ids) < limit and ids[-1:] != [EOS]:
        logits = after(ids)
        ids.append(int(stuck(processed(logits, [*history, *ids], config, bans), logits).argmax()))
        log_probs.append(log_softmax(logits)[ids[-1]])
    return ids, log_probs


def beam_search(after, history, limit, config, bans=()):
    """(score, tokens, log-probability by the model) of the best output, after all lengths have been tried."""
    live, finished = [((), 0.0, 0.0)], []
    for length in range(1, limit + 1):
        ranked = []
        for ids, score, own in live:
            table = log_softmax(after(list(ids)))
            scores = stuck(processed(table, [*history, *ids], config, bans), table)
            ranked += [
                ((*ids, token), score + scores[token], own + table[token])
                for token in np.flatnonzero(scores > -np.inf).tolist()
            ]
        ranked.sort(key=lambda each: -each[1])
        ended = [each for each in ranked[: config.num_beams] if each[0][-1] == EOS or length == limit]
        finished += [(score / length**config.length_penalty, ids, own) for ids, score, own in ended]
        live = [each for each in ranked if each[0][-1] != EOS][: config.num_beams]
    return max(finished)


def truncated_softmax(logits, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    """The distribution that sampling draws from, (V,); of equal tokens that do not all fit, the first ones stay."""
    allowed = sorted(range(len(logits)), key=lambda token: -logits[token])[: top_k or None]
    weights = {token: np.exp((float(logits[token]) - float(max(logits))) / temperature) for token in allowed}
    if top_p < 1:
        total, before, kept = sum(weights.values()), 0.0, {}
        for token in sorted(weights, key=lambda token: -weights[token]):
            if not kept or before < top_p * total:
                kept[token] = weights[token]
            before += weights[token]
        weights = kept
    weights = {token: weight for token, weight in weights.items() if weight >= min_p * max(weights.values())}
    result = np.zeros(len(logits))
    for token, weight in weights.items():
        result[token] = weight / sum(weights.values())
    return result
