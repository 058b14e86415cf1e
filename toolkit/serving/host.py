"""A served model: its text side, which is read here, and the processes that hold its weights."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.api import Dtype, with_tokenizer
from toolkit.decoding.continuous import ContinuousBatch, Request
from toolkit.display import tell
from toolkit.errors import ModelError, ToolkitError
from toolkit.functional.arrays import Array
from toolkit.models.reward import ActorCritic
from toolkit.models.seq2seq import Seq2Seq
from toolkit.models.storage import CONFIG_FILE, WEIGHTS_FILE, described_model, find_model, read_metrics, read_model
from toolkit.serving.engine import Figures, Pairs, Settings
from toolkit.serving.replicas import QueueLimits, Replicas
from toolkit.serving.stream import CLOSING, ServingError, Stream, Unavailable
from toolkit.tokenization import IdTokenizer

if TYPE_CHECKING:
    from toolkit import LanguageModel, Translator

# Seconds that the processes of a model wait, without a request, for what may still be asked of it when there is a newer
# one: the attention of what it has just translated.
_GRACE = 5.0

# Of the files of a model: which they are, and whether they were written anew.
Identity = tuple


@dataclass
class Version:
    """A model as it is on the disk at some time: all but the weights, and the processes that have those."""

    directory: Path
    reader: "Translator | LanguageModel"
    kind: str
    languages: list[str]
    created: int
    facts: dict[str, Any]
    identity: Identity
    replicas: Replicas

    async def start(self) -> None:
        """Start the processes.  Raises ToolkitError where they cannot read the weights."""
        await self.replicas.start()
        self.facts |= self.replicas.facts


class Host:
    """One served model.

    reader: a Translator or LanguageModel whose model has no values; all that concerns texts. Whoever encodes with it
    gives it to `submit` too, for a reload may have changed it meanwhile. kind: translator, chat or language-model.
    languages: codes; two of a translator that has no others are from and to. created: seconds since 1970.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        *,
        dtype: Dtype = "auto",
        processes: int = 1,
        places: int = 32,
        piece: int = 64,
        max_queue: int = 64,
        wait: float = 30.0,
        watch: float | None = None,
        batch: Callable[..., ContinuousBatch] = ContinuousBatch,
    ):
        """Read all of a model but its weights.  Raises ModelError as `toolkit.load` does.

        path: a directory, a run, or the name of a shipped model. processes: with the weights, each with one BLAS thread
        where there are several. places: sequences that each of them writes at once; piece: tokens of a prompt that are
        read between two steps. max_queue: requests that wait for a place; wait: seconds that they do. watch: in so many
        seconds a new best checkpoint is looked for. batch: what decodes.
        """
        self.path, self.name = os.fspath(path), name or Path(path).name
        self._settings = {"name": self.name, "dtype": dtype, "places": places, "piece": piece, "batch": batch}
        self._settings["threads"] = 1 if processes > 1 else None
        self._count, self._limits, self._watch = processes, QueueLimits(max_queue, wait), watch
        self._version = self._read()
        self._others: list[Version] = []  # older ones, whose requests have not all ended, and one that is being read
        self._closing, self._reloading, self._tasks = False, asyncio.Lock(), set()
        self._past, self._past_restarts = Figures(), 0  # of processes that are no more

    reader = property(lambda self: self._version.reader)
    kind = property(lambda self: self._version.kind)
    languages = property(lambda self: self._version.languages)
    created = property(lambda self: self._version.created)
    facts = property(lambda self: self._version.facts)

    @property
    def ready(self) -> bool:
        """True where there is a process that takes requests."""
        return not self._closing and bool(self._version.replicas.processes)

    @property
    def problem(self) -> str:
        """The reason for not being ready, in a sentence; empty where it is."""
        if self.ready or self._closing:
            return CLOSING if self._closing else ""
        return self._version.replicas.problem or f"the process of {self.name} is being started again"

    @property
    def running(self) -> int:
        """Count the requests that a process has taken."""
        return sum(each.running for each in self._all())

    @property
    def waiting(self) -> int:
        """Count the requests that wait for a place."""
        return sum(len(each.waiting) for each in self._all())

    @property
    def restarts(self) -> int:
        """Count the processes that had to be started anew."""
        return self._past_restarts + sum(each.restarts for each in self._all())

    @property
    def figures(self) -> Figures:
        """Count what all processes have done since the start."""
        return Figures(*map(sum, zip(self._past, *(each.figures for each in self._all()), strict=True)))

    def pids(self) -> list[int]:
        """List the processes that are ready."""
        return [process.pid for each in self._all() for process in each.processes]

    async def start(self) -> None:
        """Start the processes, and wait until they have read the weights.  Raises ToolkitError where they cannot."""
        await self._version.start()
        if self._watch is not None:
            self._in_background(self._look(self._watch))

    def submit(
        self, request: Request, wait: float | None = None, reader: "Translator | LanguageModel | None" = None
    ) -> Stream:
        """Take a request, which gets a key of its own -> the news of it.

        wait: seconds that it may wait for a place; then the stream raises Overdue. None: as the host says. reader: by
        which it was encoded; None: the newest. Raises Busy where too many wait, and Unavailable where there is no
        process, nor will be soon.
        """
        return self._replicas(reader).submit(request, wait)

    async def attention(self, pairs: Pairs, reader: "Translator | LanguageModel | None" = None) -> list[Array]:
        """Compute `toolkit.decoding.cross_attention` of pairs of source and target, ids without BOS and EOS."""
        return await self._replicas(reader).attention(pairs)

    async def reload(self) -> None:
        """Read the best checkpoint as it is now: new requests go to new processes, and others end where they are.

        Raises ToolkitError or ServingError where that fails; the old ones go on then.
        """
        async with self._reloading:
            version = await asyncio.to_thread(self._read)
            if version.kind != self.kind:
                raise ModelError(f"{self.path} was a {self.kind} and is a {version.kind} now: start the server again")
            if self._closing:
                raise Unavailable(CLOSING)
            self._others.append(version)
            try:
                await version.start()
            except BaseException:
                self._others.remove(version)
                raise
            place = self._others.index(version)
            self._version, self._others[place] = version, self._version
            self._in_background(self._retire(self._others[place]))

    async def close(self, timeout: float) -> None:
        """Take no more requests, let those that there are end for so many seconds, and end all processes."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(each.close(timeout) for each in self._all()))

    def _all(self) -> list[Replicas]:
        return [each.replicas for each in (self._version, *self._others)]

    def _replicas(self, reader: "Translator | LanguageModel | None") -> Replicas:
        if self._closing:
            raise Unavailable(CLOSING)
        for each in (self._version, *self._others):
            if not each.replicas.closing and (reader is None or reader.model is each.reader.model):
                return each.replicas
        raise Unavailable(f"the model {self.name} was replaced by a newer one: ask again", 1)

    def _read(self) -> Version:
        """Read all of the model but its weights.  Raises ModelError where it is none, or reads no text."""
        return read_model(self.path, self._read_directory)

    def _read_directory(self, directory: Path) -> Version:
        identity = identity_of(directory)
        model = described_model(directory)[0]
        if isinstance(model, ActorCritic):  # which makes its language model of its values
            model.allocate()
        reader = with_tokenizer(model, directory, self.path)
        if isinstance(reader.tokenizer, IdTokenizer):
            raise ModelError(f"{self.path} has no tokenizer, so that it cannot be served: it reads ids and no texts")
        model, settings = reader.model, Settings(directory, **self._settings)
        chats = getattr(model.config, "template", "none") != "none"
        kind = "translator" if isinstance(model, Seq2Seq) else "chat" if chats else "language-model"
        created = int((directory / WEIGHTS_FILE).stat().st_mtime)
        facts = {
            "parameters": model.parameter_count,
            "dtype": settings.dtype,  # once it has been read: which one "auto" was
            "max_length": model.config.max_length,
            "checkpoint": directory.name,
        }
        replicas = Replicas(settings, self._count, self._limits)
        return Version(directory, reader, kind, _languages(reader, directory), created, facts, identity, replicas)

    async def _retire(self, version: Version) -> None:
        """End the processes of an older version when they have nothing to do any more."""
        replicas = version.replicas
        while True:
            await replicas.drained()
            await asyncio.sleep(_GRACE)
            if replicas.idle:
                break
        await replicas.close(0)
        self._past = Figures(*map(sum, zip(self._past, replicas.figures, strict=True)))
        self._past_restarts += replicas.restarts
        self._others.remove(version)

    async def _look(self, seconds: float) -> None:
        """Reload whenever there is another checkpoint, which two looks have found the same: it is whole then."""
        before = failed = None
        while True:
            await asyncio.sleep(seconds)
            with suppress(ToolkitError, OSError):
                now = identity_of(find_model(self.path))
                if now == before and now not in (self._version.identity, failed):
                    try:
                        await self.reload()
                    except (ToolkitError, ServingError) as error:
                        failed = now
                        tell(f"toolkit: {self.name} goes on as it was: {error}")
                before = now

    def _in_background(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def identity_of(directory: Path) -> Identity:
    """Say which model lies in a directory: it differs where another one is written there.  Raises OSError."""
    states = [(directory / name).stat() for name in (CONFIG_FILE, WEIGHTS_FILE)]
    return str(directory), *((each.st_ino, each.st_mtime_ns, each.st_size) for each in states)


def _languages(reader: "Translator | LanguageModel", directory: Path) -> list[str]:
    """List the languages that a model says it has."""
    if known := reader.tokenizer.languages:
        return [known.source, known.target] if known.source and known.target else sorted(known.ids)
    found = read_metrics(directory).get("languages", [])
    return found if isinstance(found, list) and all(isinstance(each, str) for each in found) else []
