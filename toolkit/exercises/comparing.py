"""Compare what a learner's function returns with what is right, and say in words what is wrong with it."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np

from toolkit.functional.arrays import Array

TOLERANCE = 1e-7  # relative to the largest entry of the right array
_FEW = 3  # places that are named one by one
_NEARLY = 1e-3  # of the largest entry: what is nearer was meant to be right


def named_arrays(value: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the arrays and numbers of a result with their names; those of a dictionary have its keys behind a d.

    value: one result or a tuple of them; names: of these, in order.
    """
    values = value if isinstance(value, tuple) else (value,)
    for name, each in zip_longest(names[: len(values)], values, fillvalue=""):
        if isinstance(each, Mapping):
            yield from ((f"d{key}", part) for key, part in each.items())
        else:
            yield name, each


def same(found: Any, right: Any) -> bool:
    """Say if two results are of one shape and equal up to rounding; lists and texts have to be equal."""
    if isinstance(right, np.ndarray | float):
        if _is_of_ids(right) and np.asarray(found).dtype.kind == "f":
            return False
        found = _array(found)
        if found is None or found.shape != np.shape(right):
            return False
        size = max(float(np.abs(_finite(right)).max(initial=0.0)), 1e-3)
        with np.errstate(invalid="ignore"):
            near = (found == right) | (np.abs(found - right) <= TOLERANCE * size)
            return bool(np.all(near | (np.isnan(found) & np.isnan(right))))
    if isinstance(right, np.random.Generator):
        return True
    if isinstance(right, tuple | list):
        fits = isinstance(found, tuple | list) and len(found) == len(right)
        return fits and all(same(one, other) for one, other in zip(found, right, strict=True))
    if isinstance(right, Mapping):
        fits = isinstance(found, Mapping) and found.keys() == right.keys()
        return fits and all(same(found[key], right[key]) for key in right)
    return _plain(found) == right


def _is_of_ids(right: Any) -> bool:
    return isinstance(right, np.ndarray) and right.dtype.kind in "iu"


def differences(found: Any, right: Any, names: tuple[str, ...], sizes: Mapping[str, int]) -> list[str]:
    """Say what is wrong with each part of a result; nothing where all are right.

    names: of the parts, in order; sizes: letter -> size, such as {"T": 5, "D": 8}, to recognise a forgotten factor by.
    """
    if isinstance(right, tuple):
        count = len(found) if isinstance(found, tuple) else None
        if count != len(right):
            yours = f"yours are {count}" if count else f"yours is {_kind(found)}"
            return [f"the results have to be {listing(right, names)}, {len(right)} in this order; {yours}"]
        for number, (one, other) in enumerate(zip(found, right, strict=True), start=1):
            if isinstance(other, Mapping) and not isinstance(one, Mapping):
                keys = ", ".join(map(repr, other))
                return [f"result {number} must be a dictionary with {keys}; yours is {_kind(one)}"]
    elif isinstance(found, tuple) and isinstance(right, np.ndarray | float):
        return [f"one result is wanted, {names[0]}; yours are {len(found)}"]
    parts, missing = dict(named_arrays(found, names)), []
    if exchanged := _exchanged(parts, dict(named_arrays(right, names))):
        return [exchanged]
    for name, wanted in named_arrays(right, names):
        if name not in parts:
            missing.append(f"{name} is missing: its key is {name[1:]!r}")
        elif not same(parts[name], wanted):
            missing.append(difference(name, parts[name], wanted, sizes))
    return missing


def listing(right: tuple, names: tuple[str, ...]) -> str:
    """List what is wanted: the names of the results, and dictionaries with their keys."""
    parts = []
    for name, each in zip_longest(names[: len(right)], right, fillvalue=""):
        keys = ", ".join(map(repr, each)) if isinstance(each, Mapping) else ""
        parts.append(f"a dictionary with {keys}" if keys else name)
    return ", ".join(parts)


def _exchanged(found: Mapping[str, Any], right: Mapping[str, Any]) -> str:
    """Recognise two results that have changed places."""
    wrong = [name for name in right if name in found and not same(found[name], right[name])]
    if len(wrong) == 2 and all(same(found[one], right[other]) for one, other in (wrong, wrong[::-1])):
        return f"{wrong[0]} and {wrong[1]} have changed places: each is the other's"
    return ""


def difference(name: str, found: Any, right: Any, sizes: Mapping[str, int]) -> str:
    """Say what is wrong with one array, number or list: its shape, its sign, a factor, where, or a direction."""
    if not isinstance(right, np.ndarray | float):
        if found is None or (isinstance(found, np.ndarray) and isinstance(right, list)):
            return f"{name} is {_kind(found)}: it must be {'a list' if isinstance(right, list) else _short(right)}"
        if isinstance(found, list) and isinstance(right, list):
            return _of_lists(name, found, right, sizes)
        return f"{name} is {_short(found)}, it must be {_short(right)}"
    array = _array(found)
    if array is None:
        return f"{name} is {_kind(found)}: it must be {_wanted(right)}"
    if _is_of_ids(right) and np.asarray(found).dtype.kind == "f":
        return f"{name} has numbers of the type {np.asarray(found).dtype}: these are ids, which have to be integers"
    if array.shape != np.shape(right):
        turned = array.ndim == 2 and array.T.shape == np.shape(right)
        hint = ": it is turned, rows for columns" if turned else ""
        if not np.ndim(right):
            return f"{name} has the shape {array.shape}, it must be one number"
        return f"{name} has the shape {array.shape}, it must have {np.shape(right)}{hint}"
    if not np.isfinite(array).all() and np.isfinite(right).all():
        return f"{name} has entries that are not finite (nan or inf): a division by zero, or exp of a large number?"
    if not np.ndim(right):
        factor = _factor(array, np.asarray(right), sizes)  # of one number every other is some multiple
        factor = factor if "=" in factor or "sign" in factor else ""
        return f"{name} is {float(array):.6g}, it must be {float(right):.6g}{factor}"
    return f"{name} is wrong: {_what(array, np.asarray(right), sizes)}"


def _of_lists(name: str, found: list, right: list, sizes: Mapping[str, int]) -> str:
    """Compare two lists: their lengths, and the first arrays in them that differ."""
    if len(found) != len(right):
        return f"{name} has {len(found)} entries, it must have {len(right)}: {_short(right)}"
    wrong = next((place for place, each in enumerate(right) if not same(found[place], each)), 0)
    if isinstance(right[wrong], np.ndarray):
        return difference(f"{name}[{wrong}]", found[wrong], right[wrong], sizes)
    return f"{name} is {_short(found)}, it must be {_short(right)}"


def _what(found: Array, right: Array, sizes: Mapping[str, int]) -> str:
    with np.errstate(invalid="ignore"):  # a mask has -inf in both
        return _what_of_all(found, right, sizes)


def _what_of_all(found: Array, right: Array, sizes: Mapping[str, int]) -> str:
    if not found.any():
        return "it is zero everywhere"
    factor = _factor(found, right, sizes)
    if factor:
        return factor.removeprefix(", ")
    near = np.abs(_finite(found) - _finite(right)) <= TOLERANCE * max(np.abs(_finite(right)).max(), 1e-3)
    wrong = ~((found == right) | (near & np.isfinite(found) & np.isfinite(right)))
    gaps = np.where(wrong, np.nan_to_num(np.abs(found - right), nan=np.inf, posinf=np.inf), -1.0)
    place = tuple(int(each) for each in np.unravel_index(gaps.argmax(), right.shape))
    entry = f"at {list(place)} yours is {found[place]:.6g}, right is {right[place]:.6g}"
    if right.ndim == 2:
        rows, columns = np.flatnonzero(wrong.any(axis=1)), np.flatnonzero(wrong.any(axis=0))
        if len(rows) <= min(_FEW, len(right) - 1):
            return f"only in row{'s' * (len(rows) > 1)} {_listed(rows)}; {entry}"
        if len(columns) <= min(_FEW, right.shape[1] - 1):
            return f"only in column{'s' * (len(columns) > 1)} {_listed(columns)}; {entry}"
        gap = found - right
        if np.abs(gap - gap.mean(axis=1, keepdims=True)).max() <= TOLERANCE * np.abs(right).max():
            return (
                f"all entries of a row are off by the same amount, as if an average over the row were missing; {entry}"
            )
    if gaps.max() <= _NEARLY * np.abs(_finite(right)).max():
        return f"it is nearly right, and must be right up to rounding; {entry}"
    return entry + (_along(found, right) if np.isfinite(found).all() and np.isfinite(right).all() else "")


def _along(found: Array, right: Array) -> str:
    """Compare both along a constant direction, where that tells something: by the sum of all entries."""
    size = np.abs(right).max(initial=0.0)
    sums = [0.0 if abs(total) <= TOLERANCE * size else total for total in (float(found.sum()), float(right.sum()))]
    if abs(sums[0] - sums[1]) <= TOLERANCE * size:
        return ""
    return f"; the sum of all entries is {sums[0]:.6g}, it must be {sums[1]:.6g}"


def _factor(found: Array, right: Array, sizes: Mapping[str, int]) -> str:
    """Recognise a result that is right up to one number, and that number."""
    if not (np.isfinite(found).all() and np.isfinite(right).all() and right.any()):
        return ""
    factor = float(np.vdot(right, found) / np.vdot(right, right))
    if not factor or np.abs(found - factor * right).max() > 1e-6 * np.abs(found).max() or abs(factor - 1) < _NEARLY:
        return ""
    if abs(factor + 1) < 1e-6:
        return ", the sign is the opposite of the right one"
    known = {}
    for letter, size in sizes.items():
        known |= {letter: size, f"1/{letter}": 1 / size, f"√{letter}": size**0.5, f"1/√{letter}": size**-0.5}
    names = [name for name, size in known.items() if abs(abs(factor) / size - 1) < 1e-6]
    return f", it is the right one times {factor:.4g}{' = ' * bool(names)}{' or '.join(names)}"


def _array(value: Any) -> Array | None:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None
    return array if value is not None else None


def _finite(array: Array) -> Array:
    return np.nan_to_num(np.asarray(array, dtype=float), nan=0.0, posinf=0.0, neginf=0.0)


def _kind(value: Any) -> str:
    if value is None:
        return "None (is there a return?)"
    return "an array" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


def _wanted(right: Any) -> str:
    return f"an array of the shape {np.shape(right)}" if np.ndim(right) else "a number"


def _short(value: Any) -> str:
    text = repr(_readable(value))
    return text if len(text) <= 120 else text[:117] + "..."


def _readable(value: Any) -> Any:
    """Make numbers of NumPy's numbers, in lists and tuples too, of as many digits as tell them apart."""
    if isinstance(value, list | tuple):
        return type(value)(map(_readable, value))
    value = _plain(value)
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _listed(places: Array) -> str:
    return ", ".join(str(int(each)) for each in places)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
