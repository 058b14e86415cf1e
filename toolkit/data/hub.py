"""How `datasets` is called: quietly, streaming, leaving no files behind, and with its errors as one sentence."""

import glob
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolkit.errors import DataError

Batch = Mapping[str, list[Any]]

_SECONDS_TO_ANSWER = 10
_LONGEST_REASON = 200


def load_file(builder: str, path: Path, **options: Any) -> Any:
    """Rows of a file as a `datasets.IterableDataset`; `builder` is one of its parsers: "csv", "parquet", ...

    Raises DataError for what `datasets` refuses.
    """
    # A pattern that matches this file only: brackets in its name would otherwise be read as one.
    files = {"train": [glob.escape(str(path.resolve()))]}
    return _streamed(str(path), builder, data_files=files, **options)["train"]


def load_split(name: str, config: str, split: str) -> Any:
    """Rows of a split as a `datasets.IterableDataset`; `name` is a directory in the Hub's layout or a name on the Hub.

    Raises DataError if there is no such dataset, configuration or split, or if the Hub does not answer.
    """
    directory = Path(name)
    if directory.is_dir():
        splits = _streamed(name, str(directory.resolve()), name=config or None)
    else:
        _ask_hub(name)
        splits = _streamed(name, name, name=config or None)
    if split not in splits:
        there = ", ".join(str(one) for one in splits)
        raise DataError(f"{name} has no split {split}, only {there}: choose one with NAME:CONFIG:SPLIT")
    return splits[split]


def batches_of(dataset: Any, name: str, size: int) -> Iterator[Batch]:
    """The rows of a `datasets.IterableDataset`, `size` at a time, as lists by column; what fails is a DataError."""
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


def _streamed(called: str, path: str, **options: Any) -> Any:
    """The splits of a dataset by name."""
    import datasets
    import huggingface_hub

    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # it logs an error before it raises it
    huggingface_hub.logging.set_verbosity_error()
    # It would report every file that is read here to the Hub, which offline takes seconds besides.
    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False
    try:
        # Streaming stores no data; the lock that it takes all the same goes when it is done.
        with tempfile.TemporaryDirectory(prefix="toolkit-") as cache:
            return datasets.load_dataset(path, streaming=True, cache_dir=cache, **options)
    except Exception as error:
        raise DataError(
            f"{called} cannot be read as a dataset ({_sentence(error)}): check that it is whole, and its README.md"
        ) from error


def _ask_hub(name: str) -> None:
    """Raise DataError at once if the Hub has no such dataset or does not answer: `datasets` would try for long."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        HfApi().dataset_info(name, timeout=_SECONDS_TO_ANSWER)
    except RepositoryNotFoundError as error:
        raise DataError(
            f"{name} is neither a directory here nor a public dataset on the Hub: check the name"
        ) from error
    except Exception as error:  # of the library for HTTP, which differs between versions
        raise DataError(
            f"{name} is no directory here, and the Hub cannot be asked for it ({_sentence(error)}): "
            "check the name and the network"
        ) from error


def _sentence(error: Exception) -> str:
    """What a library says, or its beginning; names of its classes mean nothing to a reader."""
    text = re.sub(r"\b\w+(Error|Exception): ", "", str(error)).replace("BuilderConfig", "the configuration")
    text = " ".join(text.split()) or "for a reason that is not told"
    return f"{text[:_LONGEST_REASON]}…" if len(text) > _LONGEST_REASON else text.rstrip(".")
