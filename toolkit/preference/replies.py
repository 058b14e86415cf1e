"""Replies to prompts, as ids: rows that models read, their log-probabilities, writing them, and scoring them.

Ids are written as a model reads them: a prompt begins with the begin mark where the model knows one and ends with what
opens a reply, and a reply ends with its end marker (unless the length limit has cut it off). A chat template knows
these marks; nothing here does.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from toolkit.decoding import ContinuationConfig
from toolkit.decoding.generation import generate
from toolkit.display import short_repr
from toolkit.errors import DataError
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT, GPTBatch, GPTConfig
from toolkit.nn.memory import Pool
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, SPECIAL_TOKENS

# Replies that one worker writes together, and tokens that it reads together to score them.
_WRITTEN_AT_ONCE, _TOKENS_AT_ONCE = 64, 4096

# Rewards of replies: (prompts, replies, memory) -> (B,) numbers. Both hold ids, replies with their end markers.
Score = Callable[[Sequence[Array], Sequence[Array], Pool], Array]


class Reply(NamedTuple):
    """A text written after a prompt."""

    ids: Array  # (T,), the end marker included where it was written
    ended: bool  # by its end marker, not by the length limit

    __repr__ = short_repr


class Episode(NamedTuple):
    """A reply as the policy wrote it, with its log-probabilities, values and score at that time."""

    prompt: Array  # (P,) ids
    reply: Reply
    log_probs: Array  # (T,) of the policy
    reference: Array  # (T,) log-probabilities of the reference
    values: Array  # (T,) of the critic before each token was written
    score: float  # of the whole reply

    @property
    def divergence(self) -> float:
        """Return log π(reply) - log π_ref(reply): on average over replies the KL divergence from the reference."""
        return float((self.log_probs - self.reference).sum(dtype=np.float64))


def whole_texts(prompts: Sequence[Array], replies: Sequence[Array]) -> tuple[Array, Rows, Array]:
    """Join prompts with their replies -> ids (N,), their rows, and the last row of each text, (B,)."""
    rows = Rows(np.array([len(prompt) + len(reply) for prompt, reply in zip(prompts, replies, strict=True)]))
    parts = [part for pair in zip(prompts, replies, strict=True) for part in pair]
    return np.concatenate(parts).astype(np.int64), rows, rows.starts + rows.lengths - 1


def reply_batch(prompts: Sequence[Array], replies: Sequence[Array]) -> GPTBatch:
    """Make rows with teacher forcing of prompts with replies; those count that predict a token of a reply.

    The first of them is the last row of the prompt. Labels of rows that do not count are what follows there too.
    """
    ids, whole, last = whole_texts(prompts, replies)
    read = np.ones(len(ids), bool)
    read[last] = False
    predicted = np.ones(len(ids), bool)
    predicted[whole.starts] = False
    rows = Rows(whole.lengths - 1)
    replied = np.array([len(reply) for reply in replies])
    ends = rows.starts + rows.lengths
    scored = np.arange(replied.sum()) + np.repeat(ends - np.cumsum(replied), replied)
    return GPTBatch(ids[read], ids[predicted], rows, scored)


def never_written(end: int) -> Array:
    """List the ids that decoding never writes where `end` ends an output: all other special ones."""
    return np.setdiff1d(np.arange(len(SPECIAL_TOKENS)), [end])


def reply_log_probs(
    model: GPT, batch: GPTBatch, tape: Tape, temperature: float = 1.0, excluded: Array | None = None
) -> tuple[Array, Array]:
    """Compute the log-probabilities of the labels that count in a batch, and the entropies there: (M,) each.

    batch: of `reply_batch`.

    `model.backward` follows if the tape keeps. Only these rows are projected to the vocabulary; all others
    are only read. temperature, excluded: for replies that were sampled so; see `token_log_probs`.
    """
    x = model.trunk.forward(batch.inputs, batch.rows, tape, batch.scored)
    return model.output.log_probs(x, batch.labels[batch.scored], tape, temperature, excluded)


def sums_of_replies(values: Array, lengths: Sequence[int]) -> Array:
    """Add up consecutive stretches of these lengths, none of them empty.  Shapes: (M,) -> (B,)."""
    return np.add.reduceat(values, np.cumsum(lengths) - lengths)


def write_replies(
    model: GPT,
    prompts: Sequence[Array],
    end: int,
    *,
    temperature: float = 1.0,
    max_new_tokens: int | None = None,
    seed: int = 0,
    first: int = 0,
) -> list[Reply]:
    """Sample a reply to every prompt, by temperature only, so that it comes from the distribution that is trained.

    Control symbols other than `end` are never written, whatever little probability they have. first: the number of the
    first prompt; the seed and its number decide what is drawn for a prompt. Raises DataError as `check_prompts` does.
    """
    check_prompts(prompts, model.config)
    begin = int(model.config.begin)  # `generate` adds the mark itself
    config = ContinuationConfig(
        max_new_tokens=max_new_tokens, temperature=temperature, top_k=0, top_p=1.0, min_p=0.0, seed=seed
    )
    texts = [prompt[begin:].tolist() for prompt in prompts]
    found = generate(model, texts, config, _WRITTEN_AT_ONCE, numbers=range(first, first + len(texts)), end=end)
    return [
        Reply(np.array([*reply.ids, end] if reply.finished else reply.ids, np.int64), reply.finished)
        for (reply,) in found
    ]


def check_prompts(prompts: Sequence[Array], config: GPTConfig) -> None:
    """Raise DataError for prompts that a model of these settings cannot read, or not as it has learned to."""
    for number, prompt in enumerate(prompts, 1):
        if len(prompt) == 0 or (config.begin and prompt[0] != BOS):
            raise DataError(f"prompt {number} does not begin with the begin mark, which this model has learned to read")
        if not 0 <= min(prompt) <= max(prompt) < config.vocab_size:
            raise DataError(
                f"prompt {number} has ids outside the model's vocabulary of {config.vocab_size}: wrong tokenizer?"
            )


def together(prompts: Sequence[Array], replies: Sequence[Reply]) -> list[list[int]]:
    """Group texts of similar length, as numbers, of about `_TOKENS_AT_ONCE` tokens a group."""
    lengths = np.array([len(prompt) + len(reply.ids) for prompt, reply in zip(prompts, replies, strict=True)])
    order = np.argsort(lengths, kind="stable")
    groups = np.cumsum(lengths[order]) // _TOKENS_AT_ONCE
    return [order[groups == group].tolist() for group in np.unique(groups)]


class Divergence(NamedTuple):
    """Means over replies: of log π(reply) - log π_ref(reply), whose expectation is KL(π, π_ref), and of lengths."""

    kl: float  # nats a reply
    error: float  # standard error of `kl`
    length: float  # tokens a reply, end marker included


def divergence(
    model: GPT, reference: GPT, prompts: Sequence[Array], end: int, max_new_tokens: int, seed: int = 0
) -> Divergence:
    """Estimate how far a model has moved from another, by one reply to each prompt, sampled at temperature 1."""
    replies = write_replies(model, prompts, end, max_new_tokens=max_new_tokens, seed=seed)
    differences, memory, excluded = [], Pool(), never_written(end)
    for chosen in together(prompts, replies):
        ids = [replies[index].ids for index in chosen]
        batch = reply_batch([prompts[index] for index in chosen], ids)
        both = (reply_log_probs(who, batch, Tape(memory=memory), 1.0, excluded)[0] for who in (model, reference))
        differences.append(sums_of_replies(np.subtract(*both, dtype=np.float64), [len(each) for each in ids]))
    each = np.concatenate(differences)
    length = float(np.mean([len(reply.ids) for reply in replies]))
    return Divergence(float(each.mean()), float(each.std() / np.sqrt(len(each))), length)
