"""Shards: the fixed parts of a batch, and the fixed tree over which their gradients are added.

Sums of floating-point numbers depend on their order. So that the parameters have the same bits however many workers
there are, the order does not: the gradients of shards are the leaves of a binary tree, and each node is the sum of the
two below it.

    0   1   2   3   4   5   6   7        with 3 workers: 0 1 2 | 3 4 5 | 6 7
     \\ /     \\ /     \\ /     \\ /
     0+1     2+3     4+5     6+7         a worker adds what it has both halves of: 0+1, 2 | 3, 4+5 | 6+7
       \\     /         \\     /           and the rest is added when all have their parts
       0…3             4…7

A worker has shards that follow each other. It holds the sums of few subtrees at a time, as a binary counter has few
digits: at most 1 + log₂ of its shards where their number is a power of two.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from toolkit.functional.arrays import BLOCK_ELEMENTS, Array


class Node(NamedTuple):
    """A node of the tree: its leaves are `count` shards, a power of two, from `first` on."""

    first: int
    count: int

    def is_left_of(self, other: "Node") -> bool:
        """Say if the two are the halves of a node."""
        return (
            self.count == other.count and self.first % (2 * self.count) == 0 and other.first == self.first + self.count
        )


def deal(shards: int, workers: int) -> list[range]:
    """Divide shards among workers, to each some that follow each other; the first has one at least."""
    bounds = [-(-shards * index // workers) for index in range(workers + 1)]
    return [range(*bounds[index : index + 2]) for index in range(workers)]


class Leaf(NamedTuple):
    """A shard of a worker: the buffer for its gradient, and buffers that are added up once it is there.

    These are in the order of the tree, the gradient's own last, which is the only one where there is nothing to add.
    The sum goes to the first.
    """

    buffer: int
    added: tuple[int, ...]


class Schedule:
    """The order in which a worker computes the gradients of its shards and adds them up.

    leaves: what is done for each shard. held: the sums that are there at the end, from left to right, each with its
    buffer. buffers: as many as are in use at a time; the first has the first of the sums.
    """

    def __init__(self, shards: range):
        self.leaves: list[Leaf] = []
        held: list[tuple[Node, int]] = []
        self.buffers = 0
        for shard in shards:
            used = [place for _, place in held]
            own = next(number for number in range(len(held) + 1) if number not in used)
            self.buffers = max(self.buffers, own + 1)
            held.append((Node(shard, 1), own))
            added = [own]
            # After the last one nothing is added: whoever reads the sums adds them on the way.
            while shard != shards[-1] and len(held) > 1 and held[-2][0].is_left_of(held[-1][0]):
                (left, place), (right, _) = held[-2:]
                held[-2:] = [(Node(left.first, left.count + right.count), place)]
                added.insert(0, place)
            self.leaves.append(Leaf(own, tuple(added)))
        self.held = held


def joined(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes that are left when halves have become wholes."""
    left: list[Node] = []
    for node in nodes:
        left.append(node)
        while len(left) > 1 and left[-2].is_left_of(left[-1]):
            left[-2:] = [Node(left[-2].first, 2 * left[-2].count)]
    return left


def add_from_right(vectors: Sequence[Array]) -> None:
    """Add vectors up, the last two first, into the first of them."""
    first, *between, last = vectors
    scratch = np.empty(BLOCK_ELEMENTS, first.dtype)
    for start in range(0, len(first), BLOCK_ELEMENTS):
        block = slice(start, start + BLOCK_ELEMENTS)
        total = last[block]
        for vector in reversed(between):
            total = np.add(vector[block], total, out=scratch[: len(total)])
        first[block] += total


class Adder:
    """Adds sums of subtrees up, block by block, so that every block is read from memory once.

    nodes: of the sums that are given, from left to right. A block has at most `BLOCK_ELEMENTS` elements.
    """

    def __init__(self, nodes: Sequence[Node], dtype: type = np.float32):
        self.nodes, self.left = list(nodes), joined(nodes)
        self._scratch = [np.empty(BLOCK_ELEMENTS, dtype) for _ in nodes]

    def add(self, blocks: Sequence[Array], whole: bool = False) -> list[Array]:
        """Add one block of each sum -> the blocks of the nodes that are left, the first in its own memory.

        whole: the nodes are the whole tree. Where the number of shards is no power of two, it lacks some leaves, and
        what is left is added from the right.
        """
        free, held = list(self._scratch), []
        for node, block in zip(self.nodes, blocks, strict=True):
            held.append((node, block, False))
            while len(held) > 1 and held[-2][0].is_left_of(held[-1][0]):
                self._add_last(held, free)
        while whole and len(held) > 1:
            self._add_last(held, free)
        return [block for _, block, _ in held]

    def _add_last(self, held: list[tuple[Node, Array, bool]], free: list[Array]) -> None:
        """Add the last two blocks: into the first of all, or scratch memory, which is in the cache."""
        right, left = held.pop(), held.pop()
        if not held:
            out, is_scratch = left[1], False
        elif right[2] or left[2]:
            out, is_scratch = (right if right[2] else left)[1], True
        else:
            out, is_scratch = free.pop()[: len(left[1])], True
        np.add(left[1], right[1], out=out)
        held.append((Node(left[0].first, left[0].count + right[0].count), out, is_scratch))
