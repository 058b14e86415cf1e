"""Calls of `datasets`: quiet, streaming, leaving no files behind, and with its errors as one sentence."""

import glob
import os
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from toolkit.data.lines import opened
from toolkit.errors import DataError
from toolkit.untrusted import read_bytes

Batch = Mapping[str, list[Any]]

_SECONDS_TO_ANSWER = 10
_LONGEST_REASON = 200
_PARQUET = b"PAR1"
_CARD_BYTES = 1 << 21  # of a README.md


def parquet_batches(path: Path, size: int) -> Iterator[Batch]:
    """Yield the rows of a Parquet file, `size` at a time, as lists by column; failures are DataErrors."""
    with opened(path) as file:
        # The format has its name at either end: a file that was cut off is told from one that is damaged within.
        first, length = file.read(len(_PARQUET)), file.seek(0, os.SEEK_END)
        file.seek(max(0, length - len(_PARQUET)))
        if length < 2 * len(_PARQUET) or first != _PARQUET or file.read() != _PARQUET:
            raise DataError(f"{path} is cut off, or is not a Parquet file: copy it again, or write it anew")
    # A pattern that matches this file only: brackets in its name would otherwise be read as one.
    files = {"train": [glob.escape(str(path.resolve()))]}
    rows = _streamed(str(path), "parquet", data_files=files, batch_size=size)["train"]
    yield from batches_of(rows, str(path), size)


def load_split(name: str, config: str, split: str) -> Any:
    """Load a split as a `datasets.IterableDataset`; `name` is a directory in the Hub's layout or a name on the Hub.

    Raises DataError if there is no such dataset, configuration or split, if the Hub does not answer, where what a
    directory names is not within it (see `_check_inside`), and without the library.
    """
    directory = Path(name)
    if directory.is_dir():
        _check_inside(directory, name)
        splits = _streamed(name, str(directory.resolve()), name=config or None)
    else:
        _ask_hub(name)
        splits = _streamed(name, name, name=config or None)
    if split not in splits:
        there = ", ".join(str(one) for one in splits)
        raise DataError(f"{name} has no split {split}, only {there}: choose one with NAME:CONFIG:SPLIT")
    return splits[split]


def batches_of(dataset: Any, name: str, size: int) -> Iterator[Batch]:
    """Yield the rows of a `datasets.IterableDataset`, `size` at a time, as lists by column; failures are DataErrors."""
    batches, done = iter(dataset.iter(batch_size=size)), 0
    while True:
        try:
            batch = next(batches, None)
        except Exception as error:  # whatever a parser or the network may raise
            place = f"{name}, after row {done}" if done else name
            raise DataError(f"{place} cannot be read ({_sentence(error)}): is it damaged?") from error
        if batch is None:
            return
        yield batch
        done += len(next(iter(batch.values()), []))


def _imported(module: str, called: str) -> Any:
    """Import `datasets` or what comes with it. Raises DataError where it is not installed: nothing else needs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise DataError(f"{called} cannot be read without the library datasets: pip install datasets") from error


def _streamed(called: str, path: str, **options: Any) -> Any:
    import tempfile

    datasets, huggingface_hub = (_imported(module, called) for module in ("datasets", "huggingface_hub"))
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # it logs an error before it raises it
    huggingface_hub.logging.set_verbosity_error()
    # It would report every file that is read here to the Hub, which offline takes seconds besides.
    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False
    try:
        # Streaming stores no data; the lock that it takes all the same goes when it is done.
        with tempfile.TemporaryDirectory(prefix="toolkit-") as cache:
            splits = datasets.load_dataset(path, streaming=True, cache_dir=cache, **options)
        # Not decoded, or a column that says that it is of pictures would have them fetched from wherever it says.
        return {name: split.decode(False) if split.features else split for name, split in splits.items()}
    except Exception as error:
        raise DataError(
            f"{called} cannot be read as a dataset ({_sentence(error)}): check that it is whole, and its README.md"
        ) from error


def _check_inside(directory: Path, name: str) -> None:
    """Raise DataError where a directory's own settings, or links in it, name something outside of it, or no file.

    The contents of a directory from elsewhere decide what is read of it, and of nothing else.
    """
    read_card = _imported("huggingface_hub", name).RepoCard
    card, settings = directory / "README.md", directory / ".huggingface.yaml"
    for path in (path for path in (card, settings) if path.exists()):
        try:
            text = read_bytes(path, _CARD_BYTES).decode()
            block = text if path is card else f"---\n{text}\n---\n"
            values = read_card(block, ignore_metadata_errors=True).data.to_dict()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
        except Exception as error:  # whatever a parser of YAML may raise
            raise DataError(f"{path} does not begin with settings in YAML ({_sentence(error)}): correct it") from error
        for place in _places(values.get("configs"), path):
            if place.startswith(("/", "\\", "~")) or "://" in place or "::" in place or ".." in Path(place).parts:
                raise DataError(
                    f"{path} names data outside of {name} ({place!r:.60}): only what is in the directory is read; give "
                    "the other as --data"
                )
    root = directory.resolve()
    if root.parent.name == "snapshots":  # as the Hub's files are kept: each is a link to one beside the directory
        root = root.parents[1]
    for path in directory.rglob("*"):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
            raise DataError(f"{path} is a link that leads out of {name}: put a copy in its place")
        if not (path.is_file() or path.is_dir()):
            raise DataError(f"{path} is a pipe, a device or a link to nothing: remove it, or put a file in its place")


def _places(configs: Any, path: Path) -> Iterator[str]:
    """Yield the places of data that the settings of configurations name."""
    seen: set[int] = set()
    waiting = [
        config.get(name)
        for config in (configs if isinstance(configs, list) else [])
        for name in ("data_files", "data_dir")
        if isinstance(config, dict)
    ]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            if id(value) in seen:  # YAML may repeat a part by its name, and so a few lines may be a billion
                raise DataError(f"{path} repeats a part of its settings by a name: write it out")
            seen.add(id(value))
            waiting += value.values() if isinstance(value, dict) else value


def _ask_hub(name: str) -> None:
    """Raise DataError at once if the Hub has no such dataset or does not answer: `datasets` would try for long."""
    hub, errors = (_imported(module, name) for module in ("huggingface_hub", "huggingface_hub.errors"))
    try:
        hub.HfApi().dataset_info(name, timeout=_SECONDS_TO_ANSWER)
    except errors.RepositoryNotFoundError as error:
        raise DataError(
            f"{name} is neither a directory here nor a public dataset on the Hub: check the name"
        ) from error
    except Exception as error:  # of the library for HTTP, which differs between versions
        raise DataError(
            f"{name} is no directory here, and the Hub cannot be asked for it ({_sentence(error)}): "
            "check the name and the network"
        ) from error


def _sentence(error: Exception) -> str:
    """Shorten what a library says to one sentence, without the names of its classes, which mean nothing to a reader."""
    text = re.sub(r"\b\w+(Error|Exception): ", "", str(error)).replace("BuilderConfig", "the configuration")
    text = " ".join(text.split()) or "for a reason that is not told"
    return f"{text[:_LONGEST_REASON]}…" if len(text) > _LONGEST_REASON else text.rstrip(".")
