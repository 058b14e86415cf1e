"""What the figures were measured on."""

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from toolkit.functional.tuning import machine

PACKAGES = ("numpy", "numkong", "torch", "transformers", "ctranslate2")


def describe(threads: int) -> dict[str, Any]:
    """Processor, cores, BLAS with its kernel, versions and what else the machine is doing."""
    processor, blas = machine()
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "threads": threads,
        "system": platform.platform(),
        "load": [round(each, 2) for each in os.getloadavg()],
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "blas": blas,
        "simd": np.__config__.show(mode="dicts")["SIMD Extensions"].get("found", []),
    }


def in_words(described: Mapping[str, Any], loads: Sequence[float]) -> str:
    """The line above a table.  loads: processes that wanted a core in the minute before each row, or so."""
    named = ", ".join(f"{name} {value}" for name, value in described["versions"].items() if value)
    cores = f"{described['cores']} cores, of which {described['threads']} used"
    load = f"load {min(loads):.1f} to {max(loads):.1f}, its own included"
    return f"{described['processor']}, {cores}; {described['blas']}; {load}; {named}"


def _version(package: str) -> str | None:
    """None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
