"""Conversations on the disk for fine-tuning: their ids, and which of these are to be learned.

A directory:

    corpus.json                                 what was read, and what it became
    train.ids.*, valid.ids.*                    stores of ids, a sequence for each conversation
    train.supervised.*, valid.supervised.*      beside every id 1 if it is learned, and otherwise 0
    checksums.json                              of all of these

It is made in one pass over the files, of which some hundred conversations are in memory at a time.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from toolkit.data.conversations import Conversation, read_conversations
from toolkit.data.corpus import PURPOSES, SPLIT_NAMES, SPLITS, Corpus, Split, check_share, finish_corpus, id_type
from toolkit.data.filters import PLACES, first_places
from toolkit.data.store import RaggedStore, RaggedWriter, chunks
from toolkit.display import counted, progress_bar
from toolkit.errors import ConfigError, DataError
from toolkit.files import replaced_directory
from toolkit.tokenization.chat_template import ChatTemplate, Encoded, Message

_TOGETHER = 256  # conversations that are written together


@dataclass
class TooLong:
    """Count of conversations that are too long, and of their dropped exchanges; places of the first ones."""

    conversations: int = 0
    exchanges: int = 0
    places: list[str] = field(default_factory=list)

    def add(self, exchanges: int, place: str) -> None:
        self.conversations += 1
        self.exchanges += exchanges
        if len(self.places) < PLACES:
            self.places.append(place)


class ConversationCorpus(Corpus):
    """Conversations as ids, in a directory; made by `build`, and made again from the disk by `open`."""

    def __init__(self, directory: Path):
        """Open a directory without comparing checksums; see `open`."""
        super().__init__(directory)
        self._ids = {split: RaggedStore(directory / f"{split}.ids") for split in SPLITS}
        self._supervised = {split: RaggedStore(directory / f"{split}.supervised") for split in SPLITS}

    @classmethod
    def build(
        cls,
        directory: Path,
        train: Sequence[Path],
        valid: Sequence[Path],
        template: ChatTemplate,
        max_length: int,
        valid_share: float = 0.05,
        seed: int = 0,
        quiet: bool = True,
    ) -> "ConversationCorpus":
        """Read all files and write a corpus in the place of `directory`, which stays as it was if that fails.

        valid: where there are none, one in 1 / `valid_share` training conversations, drawn with `seed`, is validated on
            instead of trained on.
        max_length: the most tokens that a model reads. As it predicts every token from those before, a conversation has
            one more at most: a longer one is shortened (see `truncate`), or left out; both are counted.
        quiet: no progress is shown on a terminal.

        Raises DataError for what `read_conversations` refuses, if nothing is left for one of the sets and if
        `directory` cannot be written; ConfigError for a length that is not positive, and for a share that is not above
        0 and at most a half.
        """
        if max_length < 1:
            raise ConfigError(f"max_length is {max_length}: a model reads at least one token")
        check_share(valid_share, "conversations")
        with replaced_directory(directory) as new:
            with _Builder(new, template, max_length) as builder:
                builder.read(valid, "valid", quiet)
                builder.read(train, "train", quiet, 0 if valid else round(1 / valid_share), seed)
            finish_corpus(new, builder.report(taken_out=not valid))
        return cls(directory)

    def ids(self, split: Split) -> RaggedStore:
        """Return the ids of a set, a sequence for each conversation; its last id is supervised."""
        return self._ids[split]

    def supervised(self, split: Split) -> RaggedStore:
        """Return, in the places of `ids`, 1 for an id that is to be learned and 0 for any other."""
        return self._supervised[split]

    def text_bytes(self, split: Split) -> int:
        """Count the bytes in UTF-8 of the replies that the supervised tokens of a set stand for; for bits per byte."""
        return self.report[split]["bytes"]

    def describe(self) -> list[str]:
        """Say what was read and what it became, in sentences."""
        lines = []
        for split, name in SPLIT_NAMES.items():
            part = self.report[split]
            taken = ", taken out of the training conversations" if part["taken_out"] else ""
            conversations = counted(part["conversations"], "conversation")
            lines.append(
                f"{name}: {conversations} of {counted(part['exchanges'], 'exchange')}, "
                f"{part['tokens']:,} tokens, {part['supervised']:,} of them to be learned{taken}"
            )
            for source in self._sources(split):
                lines.append(f"    {source['name']}: {counted(source['conversations'], 'conversation')}")
            for kind, words in _WORDS.items():
                found, exchanges, places = part[kind].values()
                if found:
                    what = words[found > 1].format(self.report["max_length"] + 1, counted(exchanges, "exchange"))
                    lines.append(f"    {counted(found, 'conversation')} {what} ({first_places(places, found)})")
        return lines


# For one conversation and for several.
_WORDS = {
    "shortened": (
        "of more than {} tokens has lost its oldest {}",
        "of more than {} tokens have lost their oldest exchanges, {} in all",
    ),
    "left_out": (
        "is left out, whose last exchange alone has more than {} tokens",
        "are left out, whose last exchanges alone have more than {} tokens",
    ),
}


@dataclass
class _Counts:
    """Counts of the conversations of a set. bytes: of the text of replies."""

    conversations: int = 0
    exchanges: int = 0
    tokens: int = 0
    supervised: int = 0
    bytes: int = 0
    shortened: TooLong = field(default_factory=TooLong)
    left_out: TooLong = field(default_factory=TooLong)


class _Builder(ExitStack):
    """Writes the stores of a corpus, as a context manager, and counts."""

    def __init__(self, directory: Path, template: ChatTemplate, max_length: int):
        super().__init__()
        self._template, self._max_length = template, max_length
        dtype = id_type(template.tokenizer.vocab_size)
        self._sources: list[dict[str, Any]] = []
        self._counts = {split: _Counts() for split in SPLITS}
        self._writers = {
            (split, kind): self.enter_context(RaggedWriter(directory / f"{split}.{kind}", numbers))
            for split in SPLITS
            for kind, numbers in (("ids", dtype), ("supervised", np.uint8))
        }

    def read(self, paths: Sequence[Path], split: Split, quiet: bool, one_in: int = 0, seed: int = 0) -> None:
        """Write the conversations of files; one of every `one_in`, if that is not 0, is validated on."""
        rng, draw = np.random.default_rng(seed), 0
        number = 0
        for together in chunks(self._reading(paths, split, quiet), _TOGETHER):
            parts: dict[Split, list[Conversation]] = {one: [] for one in SPLITS}
            for conversation in together:
                if one_in and number % one_in == 0:  # one of every block, so that all of a file is drawn from
                    draw = int(rng.integers(one_in))
                parts["valid" if one_in and number % one_in == draw else split].append(conversation)
                number += 1
            for one, conversations in parts.items():
                self._write(conversations, one)

    def _reading(self, paths: Sequence[Path], split: Split, quiet: bool) -> Iterator[Conversation]:
        hidden = quiet or not paths
        with progress_bar(hidden, desc="encoding", unit=" conversations", leave=False) as bar:
            for path in paths:
                count = 0
                for conversation in read_conversations(path):
                    yield conversation
                    bar.update()
                    count += 1
                self._sources.append({"name": str(path), "split": split, "conversations": count})

    def _write(self, conversations: Sequence[Conversation], split: Split) -> None:
        counts = self._counts[split]
        written: list[Truncated] = []
        found = truncate(conversations, self._template, self._max_length + 1)
        for (messages, place), one in zip(conversations, found, strict=True):
            exchanges = len(messages) // 2  # a system message makes the number odd
            if one is None:
                counts.left_out.add(exchanges, place)
                continue
            if one.dropped:
                counts.shortened.add(one.dropped, place)
            replies = messages[-1 : -2 * (exchanges - one.dropped) : -2]
            counts.bytes += sum(len(reply.content.encode()) for reply in replies)
            counts.exchanges += len(replies)
            written.append(one)
        counts.conversations += len(written)
        counts.tokens += sum(len(one.ids) for one in written)
        counts.supervised += sum(sum(one.supervised) for one in written)
        self._writers[split, "ids"].extend([one.ids for one in written])
        self._writers[split, "supervised"].extend([bytes(one.supervised) for one in written])

    def report(self, taken_out: bool) -> dict[str, Any]:
        """Report what was read, and what it became. Raises DataError where nothing is left of one of the sets."""
        for split, counts in self._counts.items():
            if not counts.conversations:
                longer = " that is short enough" if counts.left_out.conversations else ""
                what = "give more of them" if not longer else "cut them shorter, or take a model that reads more tokens"
                raise DataError(f"there is no conversation{longer} to {PURPOSES[split]} on: {what}")
        report = {"sources": self._sources, "template": self._template.name, "max_length": self._max_length}
        for split, counts in self._counts.items():
            report[split] = asdict(counts) | {"taken_out": taken_out and split == "valid"}
        return report


class Truncated(NamedTuple):
    """A conversation up to its last id that is learned; `dropped`: how many exchanges are not in it."""

    ids: Sequence[int]
    supervised: Sequence[bool]
    dropped: int


def truncate(conversations: Sequence[Conversation], template: ChatTemplate, most: int) -> list[Truncated | None]:
    """Encode conversations, and truncate each to at most `most` ids.

    Of a longer conversation the oldest exchanges are dropped, as few of them as possible, and the system message is
    kept; None stands for one of which not even the last exchange fits.

    Raises DataError, naming the place, for what the tokenizer cannot read.
    """
    try:
        whole = map(_trimmed, template.encode_many([messages for messages, _ in conversations]))
    except DataError:  # one by one, to say which
        for messages, place in conversations:
            try:
                template.encode(messages)
            except DataError as error:
                raise DataError(f"{place}: {error}") from error
        raise
    return [
        Truncated(*encoded, 0) if len(encoded[0]) <= most else _shortened(messages, template, most)
        for (messages, _), encoded in zip(conversations, whole, strict=True)
    ]


def _shortened(messages: Sequence[Message], template: ChatTemplate, most: int) -> Truncated | None:
    system = int(messages[0].role == "system")
    exchanges = (len(messages) - system) // 2

    def without(dropped: int) -> Encoded:
        return _trimmed(template.encode([*messages[:system], *messages[system + 2 * dropped :]]))

    dropped = 1 + bisect_left(range(1, exchanges), True, key=lambda number: len(without(number)[0]) <= most)
    return Truncated(*without(dropped), dropped) if dropped < exchanges else None


def _trimmed(encoded: Encoded) -> Encoded:
    ids, supervised = encoded
    end = len(supervised) - supervised[::-1].index(True)
    return ids[:end], supervised[:end]
