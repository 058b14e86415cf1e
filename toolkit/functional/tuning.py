"""Choose by measurement the kernels that multiply few rows on this machine, once, and remember them in a file.

BLAS has no product for few rows that is fast everywhere. Of a cold matrix that lies transposed, one core of an AMD
EPYC reads 33 GB/s by `np.vecdot` and 13 by `np.matmul`, one of an Intel Xeon about as much by both; copies in tiles
halve the time of 16 rows where OpenBLAS knows small products (with AVX-512), and cost a tenth where it does not.

What is chosen is a small table, a `Choice`, measured in ten milliseconds when it is first wanted. It is kept in
`$XDG_CACHE_HOME/toolkit` (`~/.cache/toolkit`), in a file that is named after all that it depends on. With
TOOLKIT_KERNELS=fixed in the environment, and where the file cannot be written, it is a fixed one. Any choice gives the
same products, to rounding. A training run, which promises equal bits, takes the fixed one for what it decodes, and its
updates ask for none: products of many rows gain nothing from a choice.
"""

import json
import os
import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import cycle
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from toolkit.errors import ConfigError, ToolkitError
from toolkit.files import atomic_writer, cache_directory
from toolkit.functional.arrays import Array
from toolkit.functional.linear import Packed, product_calls
from toolkit.untrusted import open_regular

Name = TypeVar("Name", str, int)
Prepare = Callable[[Array, Array, Array], Callable[[], object]]  # of x, a matrix and where the result is to be

FEW = 3  # rows, up to which the reading of weights from memory takes longer than anything else
_VARIABLE = "TOOLKIT_KERNELS"
_VERSION = 1  # of the measurement
_LONGEST_FILE = 1000  # bytes, of which a choice takes fewer than a hundred
_DEPTH, _WIDTH = 256, 1024  # of the matrices that are multiplied: 1 MB
_MATRICES = {"memory": 12, "cache": 3}  # so many, which are read in turn
_SAMPLES = 9  # of each kernel
_GAIN = 0.95  # of the time of the fixed kernel: what takes longer is not chosen, so that noise chooses nothing


class Choice(NamedTuple):
    """The kernels for one row, for up to `FEW`, and the form of the copies that multiply more."""

    one: str  # "vecdot" or "matmul" of the matrix that lies transposed, or "rows": by a copy of it, row after row
    few: str  # "vecdot", or "packed"
    columns: int  # of a tile of the packed matrix (32 and 128 won nowhere); 0 for the whole of it, row after row


# For weights that come from memory, and for those that are still in the last cache.
FIXED = {"memory": Choice("vecdot", "vecdot", 64), "cache": Choice("matmul", "packed", 64)}
_KNOWN = {"one": ("vecdot", "matmul", "rows"), "few": ("vecdot", "packed"), "columns": (64, 0)}


@contextmanager
def fixed_choice() -> Iterator[None]:
    """Let this process, and those that it starts meanwhile, choose nothing by measurement."""
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = "fixed"
    try:
        yield
    finally:
        del os.environ[_VARIABLE]
        if before is not None:
            os.environ[_VARIABLE] = before


_adopted: dict[str, Choice] = {}


def adopt(choices: Mapping[str, Choice]) -> None:
    """Take over the choices of another process, by what weights are read from, so that both compute alike."""
    _adopted.update(choices)


def choose(source: str) -> Choice:
    """Return the choice for weights that a step reads from `source`: "memory", or "cache".

    Raises ConfigError where the environment asks for anything but the fixed one.
    """
    if source in _adopted:
        return _adopted[source]
    if given := os.environ.get(_VARIABLE):
        if given != "fixed":
            raise ConfigError(f"TOOLKIT_KERNELS is {given!r:.40}: it must be fixed, or not set")
        return FIXED[source]
    with suppress(ToolkitError, OSError, RuntimeError):  # the last where the user has no home
        return _read_or_measured(choice_file(source), source)
    return FIXED[source]


@cache
def _read_or_measured(path: Path, source: str) -> Choice:
    """Read the choice; measure and write it where it is missing, or something else.  Raises what writing raises."""
    choice = _read(path)
    if choice is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_writer(path, durable=False) as file:
            choice = _measured(_MATRICES[source], FIXED[source])
            file.write(json.dumps(choice._asdict()).encode())
    return choice


def choice_file(source: str) -> Path:
    """Name the file after processor, BLAS and its kernel, and the versions of NumPy and of the measurement."""
    name = "-".join((*machine(), np.__version__, source, str(_VERSION)))
    return cache_directory() / f"kernels-{re.sub(r'[^A-Za-z0-9.]+', '_', name)}.json"


@cache
def machine() -> tuple[str, str]:
    """Name the processor, and BLAS with its version and the kernel that it has chosen for the processor."""
    libraries = ThreadpoolController().select(user_api="blas").info()
    names = [f"{each['internal_api']} {each['version']} {each.get('architecture', '')}" for each in libraries]
    processor = platform.machine()
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as file:
        found = re.search(r"model name\s*:\s*(.+)", file.read(4096))
        processor = found[1] if found else processor
    return processor.strip(), " ".join(names).strip()


def _read(path: Path) -> Choice | None:
    """Read a choice; None where there is none, or something else."""
    with suppress(OSError, ValueError, RecursionError):
        with open_regular(path) as file:
            found = json.loads(file.read(_LONGEST_FILE))
        if isinstance(found, dict) and found.keys() == _KNOWN.keys():
            known = (type(found[name]) is type(values[0]) and found[name] in values for name, values in _KNOWN.items())
            return Choice(**found) if all(known) else None
    return None


def _measured(count: int, fixed: Choice) -> Choice:
    """Measure sixteen rows, as many as are few, and one, each kernel with one matrix after the other."""
    matrices = np.ones((count, _DEPTH * _WIDTH), np.float32)
    packed = {columns: partial(_packed, columns=columns) for columns in _KNOWN["columns"]}
    with ThreadpoolController().limit(limits=1, user_api="blas"):
        columns = _fastest(matrices, 16, packed, fixed.columns)
        few = _fastest(matrices, FEW, {"vecdot": _vecdot, "packed": packed[columns]}, fixed.few)
        one = _fastest(
            matrices, 1, {"vecdot": _with_bias(_vecdot), "matmul": _with_bias(_matmul), "rows": _rows}, fixed.one
        )
    return Choice(one, few, columns)


def _fastest(matrices: Array, rows: int, kernels: Mapping[Name, Prepare], fixed: Name) -> Name:
    """Return the name of the kernel that multiplies so many rows fastest; `fixed` where none is clearly faster."""
    x, y = np.ones((rows, _DEPTH), matrices.dtype), np.empty((rows, _WIDTH), matrices.dtype)
    times: dict[Name, list[float]] = {name: [] for name in kernels}
    for name, matrix, _ in zip(cycle(kernels), cycle(matrices), range(_SAMPLES * len(kernels)), strict=False):
        multiply = kernels[name](x, matrix, y)
        begin = time.perf_counter()
        multiply()
        times[name].append(time.perf_counter() - begin)
    medians = {name: float(np.median(found)) for name, found in times.items()}
    best = min(medians, key=medians.__getitem__)
    return best if medians[best] < _GAIN * medians[fixed] else fixed


def _vecdot(x: Array, matrix: Array, y: Array) -> Callable[[], object]:
    return partial(np.vecdot, matrix.reshape(_WIDTH, 1, _DEPTH), x, y.T)


def _matmul(x: Array, matrix: Array, y: Array) -> Callable[[], object]:
    return partial(np.matmul, x, matrix.reshape(_WIDTH, _DEPTH).T, y)


def _with_bias(prepare: Prepare) -> Prepare:
    """Add a bias, as one row is followed by where it is not multiplied by the bias too."""

    def prepared(x: Array, matrix: Array, y: Array) -> Callable[[], object]:
        multiply, bias = prepare(x, matrix, y), np.ones(y.shape[1], y.dtype)
        return lambda: (multiply(), np.add(y, bias, y))

    return prepared


def _rows(x: Array, matrix: Array, y: Array) -> Callable[[], object]:
    return partial(x[0].dot, matrix.reshape(_DEPTH, _WIDTH), y[0])


def _packed(x: Array, matrix: Array, y: Array, columns: int) -> Callable[[], object]:
    tiles = matrix.reshape(-1, _DEPTH, columns or _WIDTH)
    (call,) = product_calls(x, Packed(tiles, matrix[:0].reshape(_DEPTH, 0)), y)
    return call
