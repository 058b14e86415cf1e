"""The time of an update on many machines, on paper: measured arithmetic and a network of given latency and bandwidth.

A message of n bytes takes latency + n / bandwidth (Hockney 1994, "The communication challenge for MPP": the model
with alpha and beta), and whoever sends or receives one works for `PER_MESSAGE` (o of Culler et al. 1993, "LogP").
A machine has one link, on which it sends and receives at once; the switch between machines is never full.

An update of a machine: gradients of its tokens, passes over memory to add them up and to move the parameters, and of
the exchange what is not hidden behind backward.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

ADAM_PASSES = 7  # over a vector: reads parameters, gradient and two moments, writes all but the gradient
BACKWARD = 2 / 3  # of the products of an update, two of three
BUCKET, MOST_BUCKETS = 1 << 18, 32  # parameters, in which gradients leave; see toolkit/training/exchange.py
PER_MESSAGE = 20e-6  # seconds of work for mpi4py's Isend or Irecv with its Test
CORES = 2  # ranks of a machine


class Network(NamedTuple):
    """A link of each machine: seconds until the first byte is there, and bytes a second each way."""

    title: str
    latency: float
    bandwidth: float


class Shape(NamedTuple):
    """A GPT with tied output table; length: of the texts."""

    title: str
    layers: int
    width: int
    vocabulary: int
    length: int

    @property
    def parameters(self) -> int:
        """Weights of matrices and table, which are almost all."""
        return self.layers * 12 * self.width**2 + self.vocabulary * self.width

    @property
    def flops(self) -> int:
        """Arithmetic of a token, forward and backward: 6 a weight, and causal attention.

        6 (12 L D² + V D) + 6 L D T (Kaplan et al. 2020, "Scaling laws for neural language models", section 2.1, with
        half of the square of scores, which is all that causal attention has).
        """
        return 6 * self.parameters + 6 * self.layers * self.width * self.length


class Cost(NamedTuple):
    """Seconds of one rank where all cores of a machine work: measured."""

    width: int  # of the model it was measured of
    flops: float  # a second, of a backward and forward pass with many tokens
    fixed: float  # a parameter, of a pass however few tokens it has
    adding: float  # a parameter and pass over memory, when gradients are added up
    moving: float  # a parameter and pass over memory, in the optimizer


class Update(NamedTuple):
    """Seconds of an update."""

    gradient: float
    memory: float  # adding gradients up, moving parameters, packing and unpacking messages
    exchange: float  # all of it
    exposed: float  # what of it nothing is computed behind

    @property
    def seconds(self) -> float:
        return self.gradient + self.memory + self.exposed


Collective = Callable[[int, float, Network, int], float]


def ring(machines: int, size: float, network: Network, buckets: int = 1) -> float:
    """Return the seconds of a reduce-scatter, or of an allgather, around a ring, of a vector of `size` bytes.

        (N - 1) latency + (N - 1) / N · size / bandwidth

    Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations"; both together
    move 2 (N - 1) / N of the vector, the least there can be.
    """
    startup = buckets * (machines - 1) * (network.latency + 2 * PER_MESSAGE)
    return startup + share(machines) * size / network.bandwidth


def halving(machines: int, size: float, network: Network, buckets: int = 1) -> float:
    """Return the same by recursive halving, or doubling: as many bytes as a ring in log2 N steps.

    Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations in MPICH", where it
    is Rabenseifner's. Between powers of two, the steps of the next one.
    """
    startup = buckets * math.ceil(math.log2(machines)) * (network.latency + 2 * PER_MESSAGE)
    return startup + share(machines) * size / network.bandwidth


def binomial(machines: int, size: float, network: Network, buckets: int = 1) -> float:
    """Return the same by a binomial tree of whole vectors, as a broadcast goes: log2 N (latency + size / bandwidth).

    Thakur, Rabenseifner and Gropp 2005.
    """
    steps = math.ceil(math.log2(machines))
    return steps * (buckets * (network.latency + 2 * PER_MESSAGE) + size / network.bandwidth)


def pairwise(machines: int, size: float, network: Network, buckets: int = 1) -> float:
    """Return the same as the toolkit does it: every machine sends to every other one its slice, all at once.

        latency + 2 (N - 1) buckets · work of a message + (N - 1) / N · size / bandwidth

    One latency, because messages do not wait for each other; but so many messages that each rank works on them for
    long where there are hundreds of machines. The ranks of a machine share its messages.
    """
    startup = network.latency + 2 * buckets * (machines - 1) * PER_MESSAGE if machines > 1 else 0.0
    return startup + share(machines) * size / network.bandwidth


COLLECTIVES: dict[str, Collective] = {"pairwise": pairwise, "ring": ring, "halving": halving, "binomial": binomial}


def share(machines: int) -> float:
    """Return what a machine sends of a vector that is reduced and scattered."""
    return (machines - 1) / machines


def update(
    shape: Shape,
    cost: Cost,
    network: Network,
    ranks: int,
    tokens: float,
    collective: Collective = pairwise,
    overlap: bool = True,
    parts: int = 1,
    cores: int = CORES,
    crowd: float = 1.0,
) -> Update:
    """Predict an update of `ranks` ranks, `cores` on a machine.

    tokens: of a rank, in an update. parts: backward passes that they are divided into (shards, or accumulation), of
    which the last one hides messages. crowd: ranks that share a core of the machine on which a cluster is pretended.
    """
    here = min(ranks, cores)
    machines = ranks / here
    bytes_ = 4 * shape.parameters
    passes = parts * cost.fixed * shape.parameters + tokens * shape.flops / cost.flops
    gradient = crowd * passes
    vector = shape.parameters / here  # of which this rank adds up, and sends or keeps, so much
    added = (here + 1) * vector + (machines - 1) * 2 * vector / machines
    memory = cost.adding * (added + 2 * share(machines) * vector) + cost.moving * ADAM_PASSES * vector / machines
    if machines == 1:
        return Update(gradient, crowd * memory, 0.0, 0.0)
    buckets = min(math.ceil(shape.parameters / BUCKET), MOST_BUCKETS) if overlap else 1
    reduced = collective(math.ceil(machines), bytes_, network, buckets)
    gathered = collective(math.ceil(machines), bytes_, network, 1)
    # What leaves when backward is over: the last bucket, and the table, which the lowest layer reads.
    last = max(1 / buckets, shape.vocabulary * shape.width / shape.parameters) if overlap else 1.0
    window = BACKWARD * gradient / parts if overlap else 0.0
    exposed = max(reduced - window, last * reduced) + gathered
    return Update(gradient, crowd * memory, reduced + gathered, exposed)


def speedup(shape: Shape, cost: Cost, network: Network, ranks: int, tokens: int, weak: bool, **named: bool) -> float:
    """Return how many times the tokens a second of one rank `ranks` ranks learn from.

    tokens: of a rank where scaling is weak, of all together where it is strong.
    """
    each = tokens if weak else tokens / ranks
    alone = update(shape, cost, network, 1, tokens).seconds
    return (ranks if weak else 1) * alone / update(shape, cost, network, ranks, each, **named).seconds


def tokens_needed(
    shape: Shape, cost: Cost, network: Network, ranks: int, efficiency: float = 0.9, **named: int
) -> float:
    """Return the tokens that a rank must have in an update to be as fast as `efficiency` of itself without network.

    A batch of these, on all ranks, is what data parallelism asks of training.
    """

    def is_enough(tokens: float) -> bool:
        found = update(shape, cost, network, ranks, tokens, **named)
        return found.seconds - found.exposed >= efficiency * found.seconds

    low, high = 1.0, 2.0
    while not is_enough(high):
        high *= 2
    while high - low > 0.01 * low:
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
