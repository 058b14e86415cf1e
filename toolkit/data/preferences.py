"""Better and worse replies to a prompt, in files of the usual formats.

An object (see `read_objects`) in one of these forms; a reply is text, or a list that holds its message:

    {"prompt": "…" or messages, "chosen": reply, "rejected": reply}
    {"chosen": messages, "rejected": messages}          two conversations that differ in their last message only
    {"prompt": …, "ranking": [reply, …]}                best first
    {"prompt": …, "completions": [reply, …], "scores": [number, …]}     the higher, the better
    {"prompt": …, "completions": [reply, …], "ranks": [number, …]}      the lower, the better

In each, replies may be whole conversations; then there need not be a prompt. "kind" may be text; what else the object
holds is ignored.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import isnan
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from toolkit.data.conversations import (
    Message,
    check_conversation,
    json_kind,
    listed_fields,
    parse_prompt,
    parse_reply,
    required,
    text_field,
)
from toolkit.data.objects import read_objects
from toolkit.errors import DataError


class Preference(NamedTuple):
    """A better and a worse reply to a prompt, which ends with a message of the user; place: "my.jsonl, line 3"."""

    prompt: tuple[Message, ...]
    chosen: str
    rejected: str
    kind: str
    place: str


def read_preferences(path: Path) -> Iterator[Preference]:
    """Read the rankings of a file, from the disk as they are asked for; contents in Unicode normal form C.

    Every better reply of a ranking is given beside every worse one; a chosen and a rejected reply are a ranking of two.

    Raises DataError, naming file and line, for what `read_objects` and `check_conversation` refuse, for another form,
    for fewer than two replies, for the same reply at two ranks, and for replies to different prompts.
    """
    for fields, place in read_objects(path):
        names, values, ranks = _given(fields, place)
        prompt = parse_prompt(fields["prompt"], f"{place}, prompt") if "prompt" in fields else None
        conversations = [_conversation(prompt, *named) for named in zip(values, names, strict=True)]
        _check_alike(conversations, names, place)
        replies = [conversation[-1].content for conversation in conversations]
        order = sorted(zip(ranks, replies, names, strict=True), key=itemgetter(0))  # stable: ties stay in their order
        _check_different(order, place)
        kind = text_field(fields, "kind", place)
        for (better, chosen, _), (worse, rejected, _) in combinations(order, 2):
            if better < worse:
                yield Preference(tuple(conversations[0][:-1]), chosen, rejected, kind, place)


def _given(fields: dict[str, Any], place: str) -> tuple[list[str], list[Any], list[int]]:
    """Return the names of the replies for sentences, the replies, and their ranks."""
    if "chosen" in fields or "rejected" in fields:
        both = ["chosen", "rejected"]
        return [f"{place}, {name}" for name in both], [required(fields, name, place) for name in both], [0, 1]
    name = next((name for name in ("ranking", "completions") if name in fields), None)
    if name is None:
        raise DataError(
            f"{place} has no preference, only {listed_fields(fields)}: give chosen and rejected, or a ranking"
        )
    values = fields[name]
    if not isinstance(values, list):
        raise DataError(f"{place}: {name} is {json_kind(values)}: give a list of replies")
    if len(values) < 2:
        raise DataError(f"{place}: {name} has {len(values)} of the two or more replies that can be compared")
    ranks = list(range(len(values))) if name == "ranking" else _ranks(fields, len(values), place)
    return [f"{place}, reply {number}" for number in range(1, len(values) + 1)], values, ranks


def _ranks(fields: dict[str, Any], count: int, place: str) -> list[int]:
    name = next((name for name in ("scores", "ranks") if name in fields), None)
    if name is None:
        raise DataError(f"{place} does not say which of its completions are better: give scores or ranks")
    numbers = fields[name]
    if not isinstance(numbers, list) or any(type(each) not in (int, float) or isnan(each) for each in numbers):
        raise DataError(f"{place}: {name} is not a list of numbers: give one for each of the {count} completions")
    if len(numbers) != count:
        raise DataError(f"{place} has {count} completions and {len(numbers)} {name}: give one for each")
    ordered = sorted(set(numbers), reverse=name == "scores")
    return [ordered.index(number) for number in numbers]


def _conversation(prompt: list[Message] | None, value: Any, where: str) -> list[Message]:
    """Join the prompt and a reply; a reply that is a whole conversation has to begin with the prompt."""
    messages = parse_reply(value, where, 1)
    if not messages:
        raise DataError(f"{where} has no messages: give a reply")
    whole = messages[0].role != "assistant"
    if not whole and prompt is None:
        raise DataError(f"{where} is a reply, and there is no prompt: add a prompt, or give whole conversations")
    if whole and prompt is not None and messages[: len(prompt)] != prompt:
        raise DataError(f"{where} is a conversation that does not begin with the prompt: leave out one of the two")
    conversation = messages if whole else (prompt or []) + messages
    check_conversation(conversation, where)
    if conversation[-1].role != "assistant":
        raise DataError(f"{where} ends with a message of the {conversation[-1].role}: a reply is of the assistant")
    return conversation


def _check_alike(conversations: Sequence[list[Message]], names: Sequence[str], place: str) -> None:
    for conversation, name in zip(conversations, names, strict=True):
        if conversation[:-1] != conversations[0][:-1]:
            other = names[0].removeprefix(f"{place}, ")
            raise DataError(f"{name} and {other} differ before their last message: only replies to the same compare")


def _check_different(replies: Sequence[tuple[int, str, str]], place: str) -> None:
    first: dict[str, tuple[int, str]] = {}
    for rank, reply, name in replies:
        before, better = first.setdefault(reply, (rank, name))
        if before != rank:
            worse = name.removeprefix(f"{place}, ")
            raise DataError(f"{better} and {worse} are the same, so that neither is better: change or delete one")
