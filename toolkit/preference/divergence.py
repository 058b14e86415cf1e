"""How far a language model has moved from another: the KL divergence of its replies, estimated by samples."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.preference.examples import reply_batch
from toolkit.preference.policy import never_written, reply_log_probs, sums_of_replies
from toolkit.preference.rollout import together, write_replies


class Divergence(NamedTuple):
    """Means over replies: of log π(reply) - log π_ref(reply), whose expectation is KL(π, π_ref), and of lengths."""

    kl: float  # nats a reply
    error: float  # standard error of `kl`
    length: float  # tokens a reply, end marker included


def divergence(
    model: GPT, reference: GPT, prompts: Sequence[Array], end: int, max_new_tokens: int, seed: int = 0
) -> Divergence:
    """Of one reply of `model` to each prompt, sampled at temperature 1.  prompts: ids, as `PPOTask` has them."""
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
