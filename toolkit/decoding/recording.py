"""Record a forward pass as a list of array operations, and replay it with other numbers.

`recorder_of` copies a tree of modules and replaces its leaves by others that record. The composites between them are
the model's own: their `forward`, run with a `Recording` as its tape, decides what is recorded, and in which order.
Known leaves have a form that is fast for few rows (`toolkit.decoding.step`); any other is recorded as one call of its
ordinary `forward`. Arithmetic of a composite is recorded ufunc by ufunc. Only leaves may read what differs from one
replay to the next and is no result of a recorded operation, such as positions.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.nn.memory import Pool
from toolkit.nn.module import Module, rebuilt
from toolkit.nn.tape import Tape

# Functions of NumPy that return views of their arguments, and compute nothing.
_VIEWS = {np.split, np.array_split, np.swapaxes, np.transpose, np.reshape, np.moveaxis, np.expand_dims, np.squeeze}


class Recording(Tape):
    """A tape of a pass without gradients that does each operation and notes it.

    Memory that it has lent is lent again as soon as the pass holds no array on it any more. The noted operations do not
    count as holders: a replay does them in the same order, so that each finds what it found.
    """

    def __init__(self, pool: Pool):
        super().__init__(memory=pool)
        self.plain = Tape(memory=pool)  # for leaves that are recorded as one call
        self._operations: list[Callable[[], object]] = []
        del self.empty  # for the method of that name
        self._free: dict[tuple, list[tuple[Array, Array]]] = {}

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Note a call that writes its results to some of its arguments, and do it."""
        self.note(partial(function, *map(plain, arguments)))

    def note(self, operation: Callable[[], object], done: bool = False) -> None:
        """Note an operation on plain arrays, and do it unless it is done."""
        self._operations.append(operation)
        if not done:
            operation()

    def __len__(self) -> int:
        return len(self._operations)

    def replay(self) -> None:
        """Do all operations again."""
        for operation in self._operations:
            operation()

    def add(self, x: Array, branch: Array) -> Array:
        self.call(np.add, x, branch, branch)
        return branch

    def empty(self, shape: tuple[int, ...], dtype: type = np.float32) -> "Traced":
        """Lend memory, as the tapes of ordinary passes do."""
        free = self._free.setdefault((shape, dtype), [])
        if not free:
            longer = self.plain.empty((math.prod(shape) + 1,), dtype)[...]
            longer[-1] = 1  # what is multiplied by a bias, where the rest is one row
            free.append((longer[:-1].reshape(shape), longer))
        memory = free.pop()
        array = memory[0].view(Traced)
        array.loan = self, free, memory
        return array


class Traced(np.ndarray):
    """An array on memory of a recording, or a view of one: ufuncs of it are recorded.

    Any other computation raises TypeError, at once or where its result is used.
    """

    loan: tuple[Recording, list, tuple[Array, Array]] | None = None  # of the array that was lent, not of its views
    pending: partial | None = None  # notes the operations that fill it, when its numbers are first asked for

    def __del__(self) -> None:
        if self.loan is not None:
            self.loan[1].append(self.loan[2])

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **settings: Any) -> Any:
        recording = next(_lent(x).loan[0] for x in (*inputs, *(out or ())) if isinstance(x, Traced))
        function = partial(getattr(ufunc, method), **settings)
        if out is None:
            found = function(*map(plain, inputs))
            if not isinstance(found, np.ndarray):
                raise TypeError(f"{ufunc.__name__} of a recorded array gives a number, which may differ in other steps")
            out = (recording.empty(found.shape, found.dtype.type),)
        recording.note(partial(function, *map(plain, inputs), out=tuple(map(plain, out))))
        return out[0]

    def __array_function__(self, function: Callable, types: Any, arguments: tuple, named: Mapping[str, Any]) -> Any:
        if function not in _VIEWS:
            raise TypeError(f"np.{function.__name__} of a recorded array cannot be recorded: put it into a leaf")
        return super().__array_function__(function, types, arguments, named)

    def __setitem__(self, key: Any, value: Any) -> None:
        _lent(self).loan[0].call(np.copyto, self[key], value)


def plain(x: Any) -> Any:
    """Return an array of a recording as an ordinary one, which does not keep its memory from being lent again."""
    if type(x) is not Traced:
        return x
    lent = _lent(x)
    if lent.pending is not None:
        fill, lent.pending = lent.pending, None
        fill()
    memory = lent.loan[2][0]
    if lent is x:
        return memory
    offset = x.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    return np.ndarray(x.shape, x.dtype, memory, offset, x.strides)


def with_one(x: Traced) -> Array | None:
    """Return a lent row with a 1 after its end, (D + 1,); None for a view of something lent."""
    return x.loan and x.loan[2][1]


def _lent(x: Traced) -> Traced:
    """Return the array that a recording lent, of which x is a view."""
    while x.loan is None:
        x = x.base
        if type(x) is not Traced:
            raise TypeError("an array was computed from a recorded one and not recorded: put that into a leaf")
    return x


class OneCall(Module):
    """Stands for any leaf: a replay calls its forward, and copies the result to its recorded place."""

    original: Module

    def forward(self, *arguments: Any) -> Array:
        *given, tape = arguments
        given = [plain(each) for each in given]
        forward, by_itself = self.original.forward, tape.plain
        found = forward(*given, by_itself)
        out = tape.empty(found.shape, found.dtype.type)
        place = plain(out)
        place[...] = found
        tape.note(lambda: np.copyto(place, forward(*given, by_itself)), done=True)
        return out


def recorder_of(module: Module, kinds: Mapping[type, type], prepare: Callable[[Module], None] | None = None) -> Module:
    """Copy a tree of modules, with some that record in place of others.

    kinds: the class that stands for a class of modules, by that class; `OneCall` for a module with no modules in it
    whose class is not among them. A copy has the attributes of its module, and the module itself as `original`.
    prepare: changes modules of a copy of the tree before, but not the parameters in them, which are the tree's own.
    """
    originals: dict[Module, Module] = {}
    if prepare is not None:
        module = rebuilt(module, type, originals)
        prepare(module)
    twin = rebuilt(module, lambda each: kinds.get(type(each)) or (type(each) if each.members() else OneCall), originals)
    for each, original in originals.items():
        each.original = original
    return twin
