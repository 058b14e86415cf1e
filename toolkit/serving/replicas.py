"""The processes of one model, and the queue of requests in front of them."""

import asyncio
import itertools
import math
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from toolkit.decoding.continuous import Request
from toolkit.display import counted, tell
from toolkit.errors import ToolkitError
from toolkit.functional.arrays import Array
from toolkit.serving.engine import Figures, Pairs, Settings
from toolkit.serving.model_process import DIED, ModelProcess
from toolkit.serving.stream import CLOSING, Busy, Died, Overdue, ServingError, Stream, Unavailable

# A process that ends so many seconds after it was ready, or before, and has served nobody, has ended at once; then the
# next is started after a pause, which doubles each time. After so many in a row nobody is let wait for it.
_AT_ONCE, _FIRST_PAUSE, _LONGEST_PAUSE, _HOPELESS = 10.0, 0.5, 30.0, 3
# Beside the sequences that a process writes, this part of them is sent to it in advance, so that it never waits.
_IN_ADVANCE = 8
# Of the running mean of the time that a request takes, the weight of the newest; and what a client is told at most.
_NEWEST, _LONGEST_RETRY = 0.1, 60


@dataclass(frozen=True)
class QueueLimits:
    """Limits of waiting: so many requests of a model, each for so many seconds where it does not say it itself."""

    max_queue: int = 64
    wait: float = 30.0


class Replicas:
    """Processes with the same weights.

    A request goes to the process with the least to do, and among equals to the one that has read the most of its
    prompt. It waits here until there is room for it, in the order in which requests came.
    """

    _keys = itertools.count()

    def __init__(self, settings: Settings, count: int, limits: QueueLimits):
        self._settings, self._count, self._limits = settings, count, limits
        self.processes: list[ModelProcess] = []  # that are ready
        self.waiting: deque[Stream] = deque()
        self.facts: dict[str, Any] = {}
        self.restarts = self._attending = 0
        self.problem = f"the model {settings.name} is being read"  # or why else there is no process, nor soon will be
        self._past = Figures()  # of processes that have ended
        self.closing = False  # nothing is taken any more
        self._keepers: list[asyncio.Task] = []
        self._ending: asyncio.Task | None = None
        self._timers: dict[Stream, asyncio.TimerHandle] = {}  # of all that wait
        self._mean = 0.0  # seconds that a request takes
        self._empty: asyncio.Future | None = None  # has a result as soon as no request is left

    async def start(self) -> None:
        """Start the processes, and wait until all are ready.  Raises what the first one of them raises."""
        begun = [asyncio.get_running_loop().create_future() for _ in range(self._count)]
        self._keepers = [asyncio.create_task(self._keep(each)) for each in begun]
        for future, keeper in zip(begun, self._keepers, strict=True):
            keeper.add_done_callback(partial(_told, future))
        try:
            await asyncio.gather(*begun)
        except BaseException:
            await self.close(0)
            raise

    @property
    def running(self) -> int:
        """Count the requests that were sent to a process and have not ended."""
        return sum(len(each.requests) for each in self.processes)

    @property
    def idle(self) -> bool:
        """True where nothing is asked for."""
        return not (self.running or self.waiting or self._attending)

    @property
    def figures(self) -> Figures:
        """Count what all processes have done, those included that have ended."""
        every = [self._past, *(each.figures for each in self.processes)]
        return Figures(*map(sum, zip(*every, strict=True)))

    def submit(self, request: Request, wait: float | None) -> Stream:
        """Take a request; see `Host.submit`."""
        if self.closing:
            raise Unavailable(CLOSING)
        if self.problem:
            raise Unavailable(self.problem, self._estimate())
        config = request.config and request.config.seeded()  # sent to a second process, it draws the same
        stream = Stream(replace(request, key=next(self._keys), config=config), self._leave)
        if (self.waiting or not self._free(stream)) and len(self.waiting) >= self._limits.max_queue:
            waiting = counted(len(self.waiting), "request")
            raise Busy(f"the server is busy, and {waiting} wait already: ask again later", self._estimate())
        wait = self._limits.wait if wait is None else wait
        self._await_place(stream, wait)
        self._dispatch()
        return stream

    async def attention(self, pairs: Pairs) -> list[Array]:
        """Compute `cross_attention` in the process with the least to do."""
        if not self.processes:
            raise Unavailable(self.problem or DIED, self._estimate())
        self._attending += 1
        try:
            return await _least(self.processes).attention(pairs)
        finally:
            self._attending -= 1
            self._dispatch()

    async def close(self, timeout: float) -> None:
        """Let requests end for so many seconds, tell the others that the server goes, and end the processes."""
        self.closing = True
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self.drained()
        for stream in [*self.waiting, *(stream for each in self.processes for stream in each.requests.values())]:
            stream.fail(Unavailable(f"{CLOSING}, and the request has not ended in time"))
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.waiting.clear()
        keepers, self._keepers = self._keepers, []
        for keeper in keepers:
            keeper.cancel()
        self._ending = self._ending or (keepers and asyncio.create_task(asyncio.wait(keepers)))
        if self._ending:  # by whoever has asked first: it ends also where that one is cancelled
            await asyncio.shield(self._ending)
        self._dispatch()  # tells another one who waits for the end

    async def drained(self) -> None:
        """Wait until there is no request."""
        while not self.idle:
            if self._empty is None or self._empty.done():
                self._empty = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._empty)

    def _await_place(self, stream: Stream, wait: float) -> None:
        self.waiting.append(stream)
        self._timers[stream] = asyncio.get_running_loop().call_later(wait, self._overdue, stream, wait)

    def _overdue(self, stream: Stream, wait: float) -> None:
        self._remove(stream)
        stream.fail(Overdue(f"the server is busy: the request has waited for {wait:g} s", self._estimate()))

    def _remove(self, stream: Stream) -> None:
        """Take a request out of the queue."""
        self.waiting.remove(stream)
        self._timers.pop(stream).cancel()
        self._dispatch()

    def _leave(self, stream: Stream) -> None:
        """Forget a request that was cancelled."""
        if stream in self._timers:
            self._remove(stream)
            return
        for each in self.processes:
            each.cancel(stream.request.key)

    def _gone(self, stream: Stream) -> None:
        """Note how long a request has taken, and send others in its place."""
        seconds = time.monotonic() - stream.sent
        self._mean += _NEWEST * (seconds - self._mean) if self._mean else seconds
        self._dispatch()

    def _dispatch(self) -> None:
        """Send what waits to processes that have room; called whenever something may have changed."""
        while self.waiting and (free := self._free(self.waiting[0])):
            stream = self.waiting.popleft()
            self._timers.pop(stream).cancel()
            stream.sent = time.monotonic()
            _least(free, stream.request.ids).add(stream)
        if self._empty is not None and self.idle and not self._empty.done():
            self._empty.set_result(None)

    def _free(self, stream: Stream) -> list[ModelProcess]:
        """List the processes that have room for a request: also for one that asks for more than all places."""
        most = self._settings.places + max(1, self._settings.places // _IN_ADVANCE)
        return [each for each in self.processes if not each.places or each.places + stream.places <= most]

    def _estimate(self) -> int:
        """Estimate in how many seconds it is of use to ask again."""
        places = self._settings.places * max(1, len(self.processes))
        return min(_LONGEST_RETRY, max(1, math.ceil(self._mean * (len(self.waiting) + 1) / places)))

    async def _keep(self, begun: asyncio.Future) -> None:
        """Keep one process running.  begun: is told when the first one is ready, or why it is not."""
        failures = 0
        while True:
            process = ModelProcess(self._settings, self._gone)
            try:
                await process.start()
                await process.ready
                if process.error is None:
                    ready = asyncio.get_running_loop().time()
                    self.facts, self.problem = process.facts, ""
                    self.processes.append(process)
                    if not begun.done():
                        begun.set_result(None)
                    self._dispatch()
                    await process.ended
                    lived = asyncio.get_running_loop().time() - ready
                    failures = 0 if process.served or lived > _AT_ONCE else failures
                self._mourn(process)
                code = await process.bury()
            except asyncio.CancelledError:
                self._strike(process)
                await process.close()
                raise
            if not begun.done():
                begun.set_exception(process.error)
                return
            self.restarts, failures = self.restarts + 1, failures + 1
            tell(f"toolkit: a process of {self._settings.name} has ended ({process.error or f'exit code {code}'})")
            await self._pause(failures, process.error)

    async def _pause(self, failures: int, error: Exception | None) -> None:
        """Wait before the next process is started; where it has no prospects, nobody waits for it."""
        if failures >= _HOPELESS and not self.processes:
            self.problem = f"the process of the model has ended {failures} times in a row"
            self.problem += f": {error}" if isinstance(error, ToolkitError) else ""
            for stream in [*self.waiting]:
                self._remove(stream)
                stream.fail(Unavailable(self.problem, self._estimate()))
        if failures > 1:
            await asyncio.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (failures - 2)))

    def _strike(self, process: ModelProcess) -> None:
        """Count a process no more, but what it has done."""
        if process in self.processes:
            self.processes.remove(process)
            self._past = Figures(*map(sum, zip(self._past, process.figures, strict=True)))

    def _mourn(self, process: ModelProcess) -> None:
        """Tell the requests that a process had begun, and send the others elsewhere, before all that wait."""
        self._strike(process)
        places, others = 0, []
        for stream in process.requests.values():
            is_first, places = not places, places + stream.places
            # What is sent in advance has not begun.
            if is_first or places <= self._settings.places or stream.first is not None:
                stream.fail(process.error if isinstance(process.error, ServingError) else Died(DIED, 1))
            else:
                others.append(stream)
        for stream in reversed(others):
            self._await_place(stream, self._limits.wait)
            self.waiting.rotate()
        self._dispatch()


def _told(begun: asyncio.Future, keeper: asyncio.Task) -> None:
    """Make a fault in a keeper one of whoever waits for its first process."""
    error = None if keeper.cancelled() else keeper.exception()
    if not begun.done():
        begun.set_exception(error or Unavailable(CLOSING))
    elif error is not None:
        raise error  # to the loop, which writes it to its log


def _least(processes: list[ModelProcess], ids: Sequence[int] = ()) -> ModelProcess:
    """Choose the process with the least to do, and among equals that which has read the most of a prompt."""
    least = min(each.places for each in processes)
    some = [each for each in processes if each.places == least]
    return max(some, key=lambda each: each.remembers(ids)) if len(some) > 1 else some[0]
