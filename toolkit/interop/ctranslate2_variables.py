"""The variables of a model.bin as a reader of models wants them: by any of their names, and each accounted for."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.interop.ctranslate2_file import dequantised, read_variables

# What changes nothing here: which attention is shown as alignment, how features that are refused would work, and what
# another variable says too.
_WITHOUT_EFFECT = {
    "alignment_layer",
    "alignment_heads",
    "alibi_use_positive_positions",
    "scale_alibi",
    "embeddings_merge",
    "multi_query_attention",
}
# What changes nothing where it is 0.
_SWITCHES = {"alibi", "layer_norm_use_residual", "start_from_zero_embedding"}


class Source:
    """Hands out variables and remembers which, so that nothing of a model is overlooked."""

    def __init__(self, path: Path):
        """Read the file.  Raises ModelError where it is missing, damaged, or of another version."""
        self.path = path
        self.specification, _, self._arrays, self._aliases = read_variables(path)
        self._taken: set[str] = set()

    def names(self) -> list[str]:
        return sorted({*self._arrays, *self._aliases})

    @property
    def size(self) -> int:
        """Numbers in all arrays together."""
        return sum(array.size for array in self._arrays.values())

    def has(self, name: str) -> bool:
        return name in self._arrays or name in self._aliases

    def add(self, name: str, array: Array) -> None:
        """Put in what the file leaves to a rule."""
        self._arrays[name] = array

    def take(self, name: str, needed: bool = True) -> Array | None:
        """A variable in float32, or None where it is missing and not needed.

        Raises ModelError where it is missing and needed, or damaged.
        """
        if not self.has(name):
            if needed:
                raise self.refusal(f"has no {name}, which every model of its kind has here")
            return None
        self._taken.add(name)
        try:
            return dequantised(self._arrays, self._aliases.get(name, name))
        except ModelError as error:
            raise ModelError(f"{self.path}: {error}") from None

    def number(self, name: str, default: float) -> float:
        """A single number, `default` where it is missing.  Raises ModelError where it is an array."""
        if not self.has(name):
            return default
        self._taken.add(name)
        array = self._arrays[self._aliases.get(name, name)]
        if array.size != 1 or not np.isfinite(array).all():
            raise self.refusal(f"is damaged: {name} is not a number")
        return array.item()

    def agreed(self, names: Iterable[str], default: float) -> float:
        """The number that several variables are.  Raises ModelError where they differ."""
        values = {name: self.number(name, default) for name in names}
        first = next(iter(values), "")
        for name, value in values.items():
            if value != values[first]:
                raise self.refusal(f"has {value:g} as {name} and {values[first]:g} as {first}: here they are one")
        return values.get(first, default)

    def is_same(self, first: str, second: str) -> bool:
        """Whether two names are one array: by an alias, or because all is equal."""
        if self._aliases.get(first, first) == self._aliases.get(second, second):
            self._taken |= {first, second}
            return True
        return np.array_equal(self.take(first), self.take(second))

    def is_stored_as(self, name: str, kind: str) -> bool:
        """Whether there is a variable of that name with numbers of that kind of NumPy: "f", "f2" or the like."""
        found = self._arrays.get(self._aliases.get(name, name))
        return found is not None and found.dtype.str[1:].startswith(kind)

    def check_all_taken(self) -> None:
        """Raises ModelError, naming it, where there is something that nobody asked for."""
        for name in self.names():
            last = name.rpartition("/")[2]
            is_scale = name.endswith("_scale") and name.removesuffix("_scale") in self._taken
            if name in self._taken or is_scale or last in _WITHOUT_EFFECT:
                continue
            if last not in _SWITCHES or self.number(name, 0):
                raise self.refusal(f"has {name}, for which this toolkit has no counterpart")

    def refusal(self, what: str) -> ModelError:
        return ModelError(f"{self.path} {what}")
