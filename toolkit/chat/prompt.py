"""What is sent to a model, made visible."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from toolkit.chat.history import Sent
from toolkit.data.messages import Role
from toolkit.decoding.state import common_prefix
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.special import CONTROL_IDS


@dataclass(frozen=True)
class Prompt:
    """What a model is told before it replies, id by id."""

    ids: list[int]  # the begin mark included
    pieces: list[str]  # how each id is shown
    roles: list[Role | None]  # whose message each belongs to; None for the begin mark
    text: str  # all of it, with control symbols as they are shown
    dropped: int  # how many of the oldest exchanges are left out
    cached: int  # how many of the first ids the model has read already


def shown(sent: Sent, tokenizer: Tokenizer, read: Sequence[int]) -> Prompt:
    """What is sent, as a person may look at it.  read: the ids that the model has read last."""
    ids, roles = sent.ids, [role for role, part in sent.parts for _ in part]
    pieces = [tokenizer.piece(token) for token in ids]
    return Prompt(ids, pieces, roles, visible_text(ids, tokenizer), sent.dropped, common_prefix(read, ids[:-1]))


def visible_text(ids: Iterable[int], tokenizer: Tokenizer) -> str:
    """The text of ids, control symbols included: <|user|>Hello<|end|>."""
    groups = groupby(ids, CONTROL_IDS.__contains__)
    return "".join(
        "".join(map(tokenizer.piece, group)) if is_control else tokenizer.decode(list(group))
        for is_control, group in groups
    )
