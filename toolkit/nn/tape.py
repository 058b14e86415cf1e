"""The tape: everything that changes during a pass.

Forward pushes what backward will need, backward pops it in the opposite order. The tape also holds the gradient
buffer, the memory that results are written to and the generator of dropout masks, so that modules hold none of them:
inference is the same code with a tape that keeps nothing, and workers differ only in their tapes.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from toolkit.functional.arrays import Array, Saved
from toolkit.functional.dropout import keep_mask
from toolkit.nn.memory import Pool
from toolkit.nn.module import Parameter
from toolkit.nn.recorder import Recorder


class Tape:
    """One pass through a model.

    With `gradients` (one array for every parameter, added to) the pass can be differentiated; without, nothing is
    kept. With `dropout` (a seeded bit generator) dropout is active; without, it does nothing. A `recorder` keeps copies
    of what modules show it on the way.
    """

    def __init__(
        self,
        gradients: Mapping[Parameter, Array] | None = None,
        dropout: np.random.SFC64 | None = None,
        memory: Pool | None = None,
        recorder: Recorder | None = None,
    ):
        self.gradients = gradients
        self.empty = (memory or Pool()).empty
        self._dropout = dropout
        self._recorder = recorder
        self._saved: list[tuple[Any, Saved]] = []

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

    def accumulate(self, parameter: Parameter, gradient: Array) -> None:
        """Add a contribution to a parameter's gradient; a shared parameter receives several, a fixed one none."""
        if parameter.trained:
            self.gradients[parameter] += gradient

    def add(self, x: Array, branch: Array) -> Array:
        """x + branch, written to the memory of `branch`, which must be the caller's own fresh result."""
        return np.add(x, branch, out=branch)

    def keep_mask(self, shape: tuple[int, ...], rate: float) -> tuple[Array | None, float]:
        """A dropout mask and its scale; (None, 1.0) where dropout does nothing."""
        if rate == 0 or self._dropout is None:
            return None, 1.0
        return keep_mask(self._dropout, shape, rate)
