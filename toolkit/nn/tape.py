"""The tape: everything that changes during a pass.

Forward pushes what backward will need, backward pops it in the opposite order. The tape also holds the gradient
buffer, the memory that results are written to and the generator of dropout masks, so that modules hold none of them:
inference is the same code with a tape that keeps nothing, and workers differ only in their tapes.

Modules show a recorder what they compute, and it keeps what was asked for: pictures of attention, alignments and worked
examples are made of such records, and never compute a second time what the model computes.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from toolkit.display import counted, short_repr
from toolkit.functional.arrays import Array, Saved
from toolkit.functional.dropout import keep_mask
from toolkit.nn.memory import Pool
from toolkit.nn.module import Module, Parameter
from toolkit.nn.rows import CrossSpan


class Record(NamedTuple):
    """One value that a module showed."""

    owner: Module
    name: str
    value: Array
    where: Any  # what part of the batch it belongs to, as the module says

    __repr__ = short_repr


class Recorder:
    """Copies of what some modules show during a pass, in order.

    The copy is necessary: modules write to lent memory, and in place, so an array is good only until the next
    operation. owners: the modules to listen to (None: all). names: the values to keep of them (None: all).
    """

    def __init__(self, owners: Collection[Module] | None = None, names: Collection[str] | None = None):
        self._owners = None if owners is None else set(owners)
        self._names = None if names is None else set(names)
        self.records: list[Record] = []

    def __repr__(self) -> str:
        return f"<Recorder: {counted(len(self.records), 'record')}>"

    def wants(self, owner: Module, name: str) -> bool:
        """True for a value that would be kept: others that only a recorder needs are not computed."""
        return (self._owners is None or owner in self._owners) and (self._names is None or name in self._names)

    def record(self, owner: Module, name: str, value: Array, where: Any = None) -> None:
        if self.wants(owner, name):
            self.records.append(Record(owner, name, value.copy(), where))

    def found(self, owner: Module, name: str, which: int = 0) -> Array:
        """Find what a module showed.  which: of several times, such as an embedding that both sides read.

        Raises LookupError where there is no such record.
        """
        values = [each.value for each in self.records if each.owner is owner and each.name == name]
        if not -len(values) <= which < len(values):
            shown = f"{type(owner).__name__} has shown {name!r} {len(values)} times"
            raise LookupError(f"{shown}: there is no number {which}")
        return values[which]

    def attention_maps(self, owner: Module) -> list[Array]:
        """Cut what an attention module showed into one map for each sequence, in their order: (H, T, S), where
        [h, t, s] is how much of what query t takes with head h comes from key s.

        Of several passes, one after the other. In a decoding step of a beam search the queries of a map are the beams
        of one sentence, and its keys include those beyond a shorter memory or past, with weight 0.
        """
        maps = []
        for record in self.records:
            if record.owner is owner and record.name == "probabilities":
                by_query = record.value.swapaxes(-1, -2)
                maps += [each[:, :, :length] for each, length in zip(by_query, _key_lengths(record), strict=True)]
        return maps


def _key_lengths(record: Record) -> Array:
    """Count the real keys of each sequence."""
    count, longest = len(record.value), record.value.shape[2]
    real = record.where.real if isinstance(record.where, CrossSpan) else None
    return np.full(count, longest) if real is None else real.sum(axis=1)


class Tape:
    """One pass through a model.

    With `gradients` (one array for every parameter, added to) the pass can be differentiated; without, nothing is
    kept. With `dropout` (a seeded bit generator) dropout is active; without, it does nothing. A `recorder` keeps copies
    of what modules show it on the way. unwritten: parameters whose gradients hold nothing yet: what comes first is
    written there, and takes the parameter out of the set, so that nothing need be filled with zeros before.
    """

    def __init__(
        self,
        gradients: Mapping[Parameter, Array] | None = None,
        dropout: "np.random.SFC64 | None" = None,
        memory: Pool | None = None,
        recorder: Recorder | None = None,
        unwritten: set[Parameter] | None = None,
    ):
        self.gradients = gradients
        self._unwritten = set() if unwritten is None else unwritten
        self.empty = (memory or Pool()).empty
        self._dropout = dropout
        self._recorder = recorder
        self._saved: list[tuple[Any, Saved]] = []

    def __repr__(self) -> str:
        return f"<Tape: {counted(len(self._saved), 'saved value') if self.keeps else 'keeps nothing'}>"

    @property
    def keeps(self) -> bool:
        """True where a backward pass may follow."""
        return self.gradients is not None

    def push(self, owner: Any, saved: Saved) -> None:
        """Keep `saved` for `owner`'s backward, if there will be one."""
        if self.gradients is not None:
            self._saved.append((owner, saved))

    def pop(self, owner: Any) -> Saved:
        """Return what `owner` pushed last.  Raises RuntimeError where backward does not mirror forward."""
        if not self._saved:
            raise RuntimeError(f"{type(owner).__name__} pops from an empty tape")
        pusher, saved = self._saved.pop()
        if pusher is not owner:
            raise RuntimeError(f"{type(owner).__name__} pops what {type(pusher).__name__} pushed")
        return saved

    def result(self, owner: Any, y: Array, saved: Saved) -> Array:
        """Keep `saved` for `owner`'s backward, show y as its "output", and return y."""
        if self.gradients is not None:
            self._saved.append((owner, saved))
        if self._recorder is not None:
            self._recorder.record(owner, "output", y)
        return y

    @property
    def recording(self) -> bool:
        """True where there is a recorder: values that only it needs are not computed without one."""
        return self._recorder is not None

    def records(self, owner: Any, name: str) -> bool:
        """True where there is a recorder that wants this value of `owner`."""
        return self._recorder is not None and self._recorder.wants(owner, name)

    def show(self, owner: Any, name: str, value: Array, where: Any = None) -> None:
        """Show a value to the recorder, if there is one. `where` says what part of the batch it belongs to."""
        if self._recorder is not None:
            self._recorder.record(owner, name, value, where)

    @property
    def finished(self) -> bool:
        """True where everything that was pushed has been popped."""
        return not self._saved

    def accumulate(self, parameter: Parameter | None, gradient: Array | None) -> None:
        """Add a contribution to a parameter's gradient; a shared parameter receives several, a fixed one none.

        parameter: None where a module goes without, such as a bias.
        """
        if parameter and parameter.trained:
            own = self.gradients[parameter]
            if parameter not in self._unwritten:
                own += gradient
                return
            self._unwritten.remove(parameter)
            if gradient is not own:
                own[...] = gradient

    def unwritten_gradient(self, parameter: Parameter) -> Array | None:
        """A parameter's gradient, for `accumulate` to get its next contribution in; None where it holds one."""
        return self.gradients[parameter] if parameter in self._unwritten else None

    def written_gradient(self, parameter: Parameter) -> Array:
        """A parameter's gradient, for its owner to add to: zeros where it held nothing."""
        if parameter in self._unwritten:
            self.accumulate(parameter, 0)
        return self.gradients[parameter]

    def add(self, x: Array, branch: Array) -> Array:
        """x + branch, written to the memory of `branch`, which must be the caller's own fresh result."""
        return np.add(x, branch, out=branch)

    def keep_mask(self, shape: tuple[int, ...], rate: float) -> tuple[Array | None, float]:
        """A dropout mask and its scale; (None, 1.0) where dropout does nothing."""
        if rate == 0 or self._dropout is None:
            return None, 1.0
        return keep_mask(self._dropout, shape, rate)
