"""Memory that is lent, not allocated: a training step that has warmed up takes no fresh large arrays.

Fresh memory costs a page fault for every 4 kB, which is what makes careless NumPy slow. So large results are written
to blocks that a `Pool` lends. A block belongs to whoever holds an array on it: saved values keep theirs until the
pass that pushed them pops them, a temporary until its operation returns, and when the last array on a block is gone
the block is free again, and the most recently freed one, still in the cache, is lent first. Python's reference counts
say when that is, so no lifetime is written down anywhere and nothing can be freed too early.
"""

import itertools
import math
import mmap

import numpy as np

from toolkit.nn.module import aligned_zeros

# Smaller arrays come from the C heap, which recycles them without page faults.
_SMALLEST = 1 << 15

# Bytes that a `Reserve` takes at once. What is never touched takes no memory.
_RESERVED = 32 << 20

# A process that is forked must not write into its parent's blocks, which is what `mmap` does where it is not told.
_OWN = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}

# The test suite sets this: every block is then lent full of NaN, so that reading what was never written shows.
poison = False


class _Lease(np.ndarray):
    """The owner of a lent block: every array on the block refers to it, and with the last of them it goes."""

    block: tuple[list, mmap.mmap, int]

    def __del__(self) -> None:
        free, buffer, offset = self.block
        free.append((buffer, offset))


class Pool:
    """Blocks of memory by size. One per worker: it is not shared between threads or processes."""

    def __init__(self) -> None:
        self._free: dict[int, list[tuple[mmap.mmap, int]]] = {}
        self._stagger = itertools.cycle(range(0, 4096, 320))
        self.allocated = 0  # bytes taken from the system so far

    def __repr__(self) -> str:
        return f"<Pool: {self.allocated:,} bytes>"

    def empty(self, shape: tuple[int, ...], dtype: type = np.float32) -> np.ndarray:
        """An array of this shape with arbitrary contents."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        small = size < _SMALLEST
        array = np.empty(shape, dtype) if small else np.ndarray(shape, dtype, self._lend(_size_class(size)))
        if poison and array.dtype.kind == "f":
            array.fill(np.nan)
        return array

    def _lend(self, size: int) -> _Lease:
        free = self._free.setdefault(size, [])
        if not free:
            # Batches differ in size: a free block that is at most twice as large will do as well as a new one.
            larger = size
            while not free and (larger := _size_class(larger + 1)) <= 2 * size:
                free = self._free.get(larger, ())
            free = free or self._free[size]
        buffer, offset = free.pop() if free else self._allocate(size)
        lease = _Lease((size,), np.uint8, buffer, offset)
        lease.block = (free, buffer, offset)
        return lease

    def _allocate(self, size: int) -> tuple[mmap.mmap, int]:
        # Blocks that all begin at the same offset within a page compete for the same lines of the cache.
        self.allocated += size + 4096
        return mmap.mmap(-1, size + 4096, **_OWN), next(self._stagger)


class Reserve:
    """Memory for arrays that stay: in pieces so large that the system joins nearly all of their pages to huge ones."""

    def __init__(self) -> None:
        self._rest = np.empty(0, np.uint8)

    def empty(self, shape: tuple[int, ...], dtype: type = np.float32) -> np.ndarray:
        """An array of this shape with arbitrary contents, which begins on a cache line."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if len(self._rest) < size:
            self._rest = aligned_zeros(max(size, _RESERVED), np.uint8)
        array, self._rest = self._rest[:size], self._rest[size + -size % 64 :]
        return array.view(dtype).reshape(shape)


def _size_class(size: int) -> int:
    """Round up to an eighth of a power of two, so that batches of nearly the same size use the same blocks."""
    step = 1 << max(size.bit_length() - 4, 12)
    return -(-size // step) * step
