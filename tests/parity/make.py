"""The reference's answers for the parity tests: made once, kept beside this script, and compared live.

    python tests/parity/make.py            # make tests/parity/fixtures anew
    python tests/parity/make.py --check    # compare everything live, exported and shipped models included

Needs the `bench` extra. Small models in Hugging Face's format get random weights; transformers and PyTorch say what
they compute: logits, loss, gradients, and what their searches find. The tests then need neither.
"""

import argparse
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch
from transformers.utils import logging

from tests.parity import reference
from tests.parity.cases import CASES, EXPECTED, FIXTURES, Case
from toolkit.files import replaced_directory

VERSIONS = FIXTURES / "versions.json"


def make(name: str, case: Case) -> None:
    """Write a model and what the reference makes of it."""
    expected = reference.expectations(case)
    check_is_decided(name, case, expected)
    with replaced_directory(FIXTURES / name) as directory:
        reference.save(reference.build(case), case, directory)
        np.savez_compressed(directory / EXPECTED, **expected)


def check_is_decided(name: str, case: Case, expected: dict[str, np.ndarray]) -> None:
    """Raises SystemExit where rounding to float32 changes what a search finds, or all outputs end alike."""
    single = reference.searches(reference.build(case, torch.float32), case, expected)
    for search, exact, rounded in zip(case.compared, expected["ids"], single["ids"], strict=True):
        if not np.array_equal(exact, rounded):
            raise SystemExit(f"{name}: {search.settings} is a matter of rounding: take another seed")
    lengths = (expected["ids"][0, :, 0] >= 0).sum(axis=1)
    if len(set(lengths)) < 3:
        raise SystemExit(f"{name}: outputs have lengths {lengths}: take another seed")


def versions() -> dict[str, str]:
    """What the answers were made with."""
    packages = ("transformers", "torch", "tokenizers", "safetensors", "numpy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare live instead of writing")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="some of the small models")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if arguments.check:
        from tests.parity import live

        raise SystemExit(int(live.check(arguments.only) > 0))
    for name in arguments.only:
        make(name, CASES[name])
        print(f"{name}: {sum(file.stat().st_size for file in (FIXTURES / name).iterdir()):,} bytes")
    VERSIONS.write_text(json.dumps(versions(), indent=2) + "\n")


if __name__ == "__main__":
    main()
