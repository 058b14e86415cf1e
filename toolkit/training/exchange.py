"""Exchange between machines: gradients are added up, and parameters gathered, in slices.

Every rank has shards of the parameter vector which it moves (see `partition`). Of the gradients it gets, from each
other machine, the sums over that machine's parts of the batch, for its own shards only; adds them up with its own
machine's, over the tree; and sends the parameters that it has moved to the other machines. So a machine of N sends and
receives 2 (N - 1) / N of the vector in an update, which is the least there can be, and as much as a ring of machines
does (Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations", section 3), but
in one step each way. Ranks of a machine divide its messages among them.

The vector is cut into buckets. One is sent as soon as the last backward pass of this machine's ranks has gone by it, so
that it travels while the layers below are still being computed.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from toolkit.functional.arrays import BLOCK_ELEMENTS, Array, Saved
from toolkit.mpi import World
from toolkit.nn.module import Model, Module, Parameter
from toolkit.nn.tape import Tape
from toolkit.training.optimizer import Adam, Muon, Shard, gaps_between, maps_of, sum_of_squares
from toolkit.training.shards import Adder, Node

# A bucket has about so many elements, 1 MB; of a large model more, so that there are no more than so many buckets.
_BUCKET, _MOST_BUCKETS = 8 * BLOCK_ELEMENTS, 32
_GATHERED = 1 << 14  # the tag of parameters; gradients have the number of their bucket


def cut_into_buckets(model: Model, optimizer: Adam | Muon) -> list[slice]:
    """Cut the vector of a model into buckets, which begin where blocks or the optimizer's maps do."""
    size, maps = len(model.vector), maps_of(model, optimizer)
    wanted = max(_BUCKET, math.ceil(size / _MOST_BUCKETS))
    places = {shard.stretch.stop for shard in maps}
    for begin, end in gaps_between(maps, [slice(0, size)]):
        places |= {*range(begin, end, BLOCK_ELEMENTS), end}
    bounds = [0]
    for place in sorted(places):
        if place - bounds[-1] >= wanted or place == size > bounds[-1]:
            bounds.append(place)
    return [slice(*pair) for pair in pairwise(bounds)]


def blocks_of(stretch: slice) -> Iterator[slice]:
    """Yield the blocks of a stretch of the vector."""
    for start in range(stretch.start, stretch.stop, BLOCK_ELEMENTS):
        yield slice(start, min(start + BLOCK_ELEMENTS, stretch.stop))


class Sums(NamedTuple):
    """The sums of gradients before the exchange: the nodes of each machine, from left to right, and their values here.

    total: gets the whole sum; on the machine of the first node, the first of `held`.
    """

    nodes: Sequence[Sequence[Node]]
    held: Sequence[Array]
    total: Array


class Exchange:
    """The messages of one rank to those of other machines, update after update.

    shards: of all ranks, none of which crosses the end of a bucket. ready: (ranks of this machine, buckets) in memory
    that they share: the number of the last update for which a bucket was complete. fence: makes what other ranks have
    written there visible.

    link: gives, for a message of so many bytes that is sent now, the time (of `time.monotonic`) at which it leaves;
    a network is simulated by that.
    """

    link: Callable[[int], float] | None = None

    def __init__(
        self,
        here: World,
        buckets: Sequence[slice],
        shards: Sequence[Sequence[Shard]],
        sums: Sums,
        ready: Array,
        fence: Callable[[], None],
    ):
        self._here, self._comm, self._buckets, self._shards = here, here.comm.Dup(), buckets, shards
        self._machine, self._ready, self._fence = here.machine_of[here.rank], ready, fence
        self._first = [here.machine_of.index(machine) for machine in range(here.machines)]
        self._others = [machine for machine in range(here.machines) if machine != self._machine]
        elsewhere = [rank for rank, machine in enumerate(here.machine_of) if machine != self._machine]
        self._served = [rank for rank in elsewhere if self._partner(self._machine, rank) == here.rank]
        self._slices = {rank: self._by_bucket(rank) for rank in (here.rank, *self._served)}
        self._held, self._total, self._update = sums.held, sums.total, 0
        ready[here.machine.rank] = 0
        here.meanwhile = self.poll
        self._adders = [Adder(each) for each in sums.nodes]
        self._own = self._adders[self._machine]
        everything = sorted((node, i, k) for i, adder in enumerate(self._adders) for k, node in enumerate(adder.left))
        self._order = [(machine, number) for _, machine, number in everything]
        self._whole = Adder([node for node, *_ in everything])
        self._waiting: list[tuple[float, Array, int, int]] = []  # messages that a simulated network holds back
        self._sent: list[Any] = []
        self._unsent: set[int] = set()
        self._arriving: dict[tuple[int, int], tuple[Any, Array]] = {}  # by bucket and machine

    def begin(self) -> None:
        """Be ready to receive the gradients of an update."""
        self._update += 1
        self._unsent = set(range(len(self._buckets)))
        for bucket in self._unsent:
            size = sum(map(_size, self._slices[self._here.rank][bucket]))
            for machine in self._others:
                buffer = np.empty((len(self._adders[machine].left), size), np.float32)
                if buffer.size:
                    request = self._comm.Irecv(buffer, self._partner(machine, self._here.rank), bucket)
                    self._arriving[bucket, machine] = request, buffer

    def complete(self, bucket: int | None = None) -> None:
        """Note that this rank's gradients of a bucket, or of all, will change no more, and send what can be sent."""
        self._fence()
        self._ready[self._here.machine.rank, slice(None) if bucket is None else bucket] = self._update
        self.poll()

    def poll(self) -> None:
        """Send the buckets that have become complete on this machine, and let messages travel."""
        self._fence()
        for bucket in sorted(self._unsent):
            if (self._ready[:, bucket] >= self._update).all():
                self._unsent.remove(bucket)
                self._send_bucket(bucket)
        while self._waiting and self._waiting[0][0] <= time.monotonic():
            _, *message = self._waiting.pop(0)
            self._sent.append(self._comm.Isend(*message))
        self._sent = [each for each in self._sent if not each.Test()]

    def finish(self) -> list[float]:
        """Wait for all gradients and add them up over this rank's shards -> the sums of squares of their blocks."""
        squares = []
        for bucket in range(len(self._buckets)):
            awaited = [key for key in self._arriving if key[0] == bucket]
            arrived = {machine: self._arriving.pop((bucket, machine)) for _, machine in awaited}
            self._here.wait(lambda arrived=arrived: self._moved(request for request, _ in arrived.values()))
            squares += self._add_bucket(bucket, {machine: buffer for machine, (_, buffer) in arrived.items()})
        self._here.wait(self._is_sent)
        return squares

    def gather(self, vector: Array, machines: Sequence[int] | None = None) -> None:
        """Send this rank's shards of a vector to other machines, all or these, and take theirs."""
        own, arriving = self._packed(vector, self._here.rank), []
        machines = range(self._here.machines) if machines is None else machines
        for rank in self._served if self._machine in machines else ():
            buffer = np.empty(sum(_size(stretch) for stretch, _ in self._shards[rank]), vector.dtype)
            arriving.append((self._comm.Irecv(buffer, rank, _GATHERED), buffer, rank))
        for machine in self._others:
            if machine in machines:
                self._send(own, self._partner(machine, self._here.rank), _GATHERED)
        self._here.wait(lambda: self._moved(request for request, *_ in arriving) and self._is_sent())
        for _, buffer, rank in arriving:
            self._unpack(buffer, vector, rank)

    def scatter(self, vector: Array) -> None:
        """Give the ranks of other machines their shards of a vector that rank 0 has."""
        if self._here.rank == 0:
            for rank, machine in enumerate(self._here.machine_of):
                if machine:
                    self._send(self._packed(vector, rank), rank, _GATHERED)
        elif self._machine:
            buffer = self._packed(vector, self._here.rank)
            request = self._comm.Irecv(buffer, 0, _GATHERED)
            self._here.wait(request.Test)
            self._unpack(buffer, vector, self._here.rank)
        self._here.wait(self._is_sent)

    def copy(self, vector: Array) -> None:
        """Give all machines a vector that rank 0 has."""
        if self._here.rank == 0:
            for first in self._first[1:]:
                self._send(vector, first, _GATHERED)
        elif self._here.rank in self._first:
            request = self._comm.Irecv(vector, 0, _GATHERED)
            self._here.wait(request.Test)
        self._here.wait(self._is_sent)

    def free(self) -> None:
        """Leave the exchange, as all ranks do together."""
        self._here.meanwhile = None
        self._comm.Free()

    def _partner(self, machine: int, rank: int) -> int:
        """Return the rank of a machine that sends to a rank of another one, and receives from it."""
        first = self._first[machine]
        count = self._here.machine_of.count(machine)
        return first + (rank - self._first[self._here.machine_of[rank]]) % count

    def _by_bucket(self, rank: int) -> list[list[slice]]:
        """Return the shards of a rank within each bucket."""
        own = [stretch for stretch, _ in self._shards[rank]]
        return [[each for each in own if bucket.start <= each.start < bucket.stop] for bucket in self._buckets]

    def _send_bucket(self, bucket: int) -> None:
        """Add up this machine's gradients over the shards of others that this rank serves, and send them."""
        for rank in self._served:
            slices = self._slices[rank][bucket]
            message, begin = np.empty((len(self._own.left), sum(map(_size, slices))), np.float32), 0
            for block in (block for stretch in slices for block in blocks_of(stretch)):
                sums = self._own.add([vector[block] for vector in self._held])
                for row, each in zip(message, sums, strict=True):
                    row[begin : begin + len(each)] = each
                begin += _size(block)
            if message.size:
                self._send(message, rank, bucket)

    def _add_bucket(self, bucket: int, received: Mapping[int, Array]) -> Iterator[float]:
        """Add up what has come for a bucket, and this machine's own; yield the sums of squares of its blocks."""
        total, begin = self._total, 0
        for block in (block for stretch in self._slices[self._here.rank][bucket] for block in blocks_of(stretch)):
            sums = {self._machine: self._own.add([vector[block] for vector in self._held])}
            part = slice(begin, begin + _size(block))
            sums |= {machine: [row[part] for row in rows] for machine, rows in received.items()}
            [whole] = self._whole.add([sums[machine][number] for machine, number in self._order], whole=True)
            if self._order[0][0] != self._machine:
                total[block] = whole
            yield sum_of_squares(total[block])
            begin = part.stop

    def _send(self, message: Array, to: int, tag: int) -> None:
        if self.link is None:
            self._sent.append(self._comm.Isend(message, to, tag))
        else:
            self._waiting.append((self.link(message.nbytes), message, to, tag))

    def _moved(self, requests: Iterator[Any]) -> bool:
        """Let messages travel, and say if these have come."""
        self.poll()
        return all(request.Test() for request in requests)

    def _is_sent(self) -> bool:
        self.poll()
        return not (self._sent or self._waiting or self._unsent)

    def _packed(self, vector: Array, rank: int) -> Array:
        parts = [vector[stretch] for stretch, _ in self._shards[rank]]
        return np.concatenate(parts) if parts else np.empty(0, vector.dtype)

    def _unpack(self, packed: Array, vector: Array, rank: int) -> None:
        begin = 0
        for stretch, _ in self._shards[rank]:
            vector[stretch] = packed[begin : begin + _size(stretch)]
            begin += _size(stretch)


def _size(stretch: slice) -> int:
    return stretch.stop - stretch.start


class BucketTape(Tape):
    """A tape that tells which buckets of the gradient are complete, as backward goes down the layers.

    What a module has pushed first is the lowest of its entries. Backward mirrors forward: when an entry below that is
    popped, the module, and those within it, have added all that they ever will to their parameters' gradients.

    owners: the modules of the parameters of each bucket. complete: is called with the bucket's number.
    """

    def __init__(self, owners: Sequence[Sequence[Module]], complete: Callable[[int], None], *rest: Any, **named: Any):
        super().__init__(*rest, **named)
        self._owners, self._complete = owners, complete
        self._first: dict[Any, int] = {}  # by module
        self._order: list[tuple[int, int]] | None = None  # the lowest entries of buckets, with these; the next one last

    def push(self, owner: Any, saved: Saved) -> None:
        self._first.setdefault(owner, len(self._saved))
        super().push(owner, saved)

    def result(self, owner: Any, y: Array, saved: Saved) -> Array:
        self._first.setdefault(owner, len(self._saved))
        return super().result(owner, y, saved)

    def pop(self, owner: Any) -> Saved:
        saved = super().pop(owner)
        if self._order is None:
            lowest = [min((self._first.get(module, -1) for module in each), default=-1) for each in self._owners]
            self._order = sorted((low, bucket) for bucket, low in enumerate(lowest) if low > 0)
        while self._order and len(self._saved) < self._order[-1][0]:
            self._complete(self._order.pop()[1])
        return saved


def owners_of(model: Model, buckets: Sequence[slice]) -> list[list[Module]]:
    """Find for each bucket the modules whose backward adds to it, with those inside them."""
    modules: dict[Parameter, set[Module]] = {}

    def visit(module: Module) -> set[Module]:
        values = [value if isinstance(value, list) else [value] for value in vars(module).values()]
        members = [member for value in values for member in value]
        inside = {module}.union(*(visit(member) for member in members if isinstance(member, Module)))
        for parameter in (member for member in members if isinstance(member, Parameter)):
            modules.setdefault(parameter, set()).update(inside)
        return inside

    visit(model)
    return [list(set().union(*map(modules.get, each))) for each in parameters_in(model, buckets)]


def parameters_in(model: Model, buckets: Sequence[slice]) -> list[set[Parameter]]:
    """Find for each bucket the parameters of which it has something."""
    places = [(parameter, begin, begin + parameter.size) for parameter, begin in model.places()]
    return [{each for each, begin, end in places if begin < part.stop and end > part.start} for part in buckets]
