"""What the figures were measured on."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

PACKAGES = ("numpy", "torch", "transformers", "ctranslate2")


def describe(threads: int) -> dict:
    """Processor, cores, versions and what else the machine is doing."""
    blas = [each for each in threadpool_info() if each["user_api"] == "blas"]
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": threads,
        "system": platform.platform(),
        "load": [round(each, 2) for each in os.getloadavg()],
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "blas": [f"{each['internal_api']} {each['version']}" for each in blas],
        "simd": np.__config__.show(mode="dicts")["SIMD Extensions"].get("found", []),
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
