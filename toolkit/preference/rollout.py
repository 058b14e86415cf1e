"""Rolling out: a policy writes replies, and everything is found out about them that learning from them needs."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from toolkit.decoding import ContinuationConfig
from toolkit.decoding.generation import generate
from toolkit.errors import DataError
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.reward import ActorCritic
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.preference.examples import reply_batch
from toolkit.preference.policy import never_written, reply_log_probs
from toolkit.tokenization.special import BOS

# Replies that one worker writes together, and tokens that it reads together to score them.
_WRITTEN_AT_ONCE, _TOKENS_AT_ONCE = 64, 4096

# What replies are worth: (prompts, replies, memory) -> (B,) numbers. Both hold ids, replies with their end markers.
Score = Callable[[Sequence[Array], Sequence[Array], Pool], Array]


class Reply(NamedTuple):
    """What was written after a prompt."""

    ids: Array  # (T,), the end marker included where it was written
    ended: bool  # by its end marker, not by the length limit


class Episode(NamedTuple):
    """A reply as the policy wrote it, with what was thought of it then."""

    prompt: Array  # (P,) ids
    reply: Reply
    log_probs: Array  # (T,) of the policy
    reference: Array  # (T,) log-probabilities of the reference
    values: Array  # (T,) of the critic before each token was written
    score: float  # of the whole reply

    @property
    def divergence(self) -> float:
        """log π(reply) - log π_ref(reply): on average over replies the KL divergence from the reference."""
        return float((self.log_probs - self.reference).sum(dtype=np.float64))


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
    """One sample for every prompt, by temperature only: so that it comes from the distribution that is trained.

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
    """Raises DataError for prompts that a model of these settings cannot read, or not as it has learned to."""
    for number, prompt in enumerate(prompts, 1):
        if len(prompt) == 0 or (config.begin and prompt[0] != BOS):
            raise DataError(f"prompt {number} does not begin with the begin mark, which this model has learned to read")
        if not 0 <= min(prompt) <= max(prompt) < config.vocab_size:
            raise DataError(
                f"prompt {number} has ids outside the model's vocabulary of {config.vocab_size}: wrong tokenizer?"
            )


def episodes_of(
    model: ActorCritic,
    reference: GPT,
    score: Score,
    prompts: Sequence[Array],
    replies: Sequence[Reply],
    *,
    end: int,
    temperature: float,
    unfinished: float,
    memory: Pool,
) -> list[Episode]:
    """What policy, reference, critic and judge think of replies, in their order.

    end, temperature: with which the replies were sampled, and so with which both log-probabilities are taken.
    unfinished: the score of replies that did not end by themselves, whatever the judge says.
    """
    found, excluded = [None] * len(prompts), never_written(end)
    for chosen in together(prompts, replies):
        asked, given = [prompts[index] for index in chosen], [replies[index] for index in chosen]
        ids = [reply.ids for reply in given]
        batch, lengths = reply_batch(asked, ids), [len(each) for each in ids]
        each = [
            reply_log_probs(who, batch, Tape(memory=memory), temperature, excluded)[0]
            for who in (model.policy, reference)
        ]
        each.append(model.critic.values(batch.inputs, batch.rows, batch.scored, Tape(memory=memory)))
        parts = zip(*(np.split(array.copy(), np.cumsum(lengths)[:-1]) for array in each), strict=True)
        scores = score(asked, ids, memory)
        for index, prompt, reply, of_tokens, worth in zip(chosen, asked, given, parts, scores, strict=True):
            found[index] = Episode(prompt, reply, *of_tokens, float(worth) if reply.ended else unfinished)
    return found


def together(prompts: Sequence[Array], replies: Sequence[Reply]) -> list[list[int]]:
    """Texts of similar length together, as numbers, about `_TOKENS_AT_ONCE` tokens each time."""
    lengths = np.array([len(prompt) + len(reply.ids) for prompt, reply in zip(prompts, replies, strict=True)])
    order = np.argsort(lengths, kind="stable")
    groups = np.cumsum(lengths[order]) // _TOKENS_AT_ONCE
    return [order[groups == group].tolist() for group in np.unique(groups)]
