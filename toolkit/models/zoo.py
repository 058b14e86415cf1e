"""Finding a model: a directory, a training run, or one of those that come with the toolkit, by name."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from toolkit.errors import ModelError, ToolkitError
from toolkit.models.storage import CONFIG_FILE, model_directory

Found, Result = TypeVar("Found"), TypeVar("Result")

_MOST_REPLACED = 10  # so often another checkpoint may take the place of the one that is read


def find_model(path_or_name: str | os.PathLike[str]) -> Path:
    """The directory of a model: itself, the best checkpoint of a run, or a shipped one by its name.

    A directory at hand comes before a shipped model of the same name.

    Raises ModelError, with the names there are, where nothing is found.
    """
    path, shipped = Path(path_or_name), shipped_models()
    with suppress(OSError):  # of a name that is too long for a path
        for candidate in (path, shipped.get(str(path_or_name), path)):
            directory = model_directory(candidate)
            if directory != candidate or (directory / CONFIG_FILE).exists():
                return directory
        if path.is_dir():
            found = sorted(each for each in path.iterdir() if _holds_a_model(each))
            if found:
                raise ModelError(f"{path} is not a model, but has some in it: give one of them, such as {found[0]}")
            raise ModelError(f"{path} is not a model: it has no {CONFIG_FILE}")
    names = ", ".join(sorted(shipped)) or "none is shipped"
    raise ModelError(f"there is no model {str(path_or_name)!r}: give the path of a directory, or a name ({names})")


def read_model(path_or_name: str | os.PathLike[str], read: Callable[[Path], Result]) -> Result:
    """Find a model and read it; see `find_model` and `read_found`."""
    return read_found(lambda: find_model(path_or_name), read)


def read_found(find: Callable[[], Found], read: Callable[[Found], Result]) -> Result:
    """Read what `find` finds.

    A run that is being trained removes a checkpoint when there is a better one, also under whoever is reading it: where
    reading fails and something else is found by then, that is read.
    """
    found = find()
    for _ in range(_MOST_REPLACED):
        try:
            return read(found)
        except ToolkitError:
            before, found = found, find()
            if found == before:
                raise
    return read(found)


def shipped_models() -> dict[str, Path]:
    """The models that come with the toolkit: within the installed package, or beside it in a clone."""
    package = Path(__file__).parent.parent
    directory = package / "checkpoints"
    if not directory.is_dir():
        directory = package.parent / "checkpoints"
    if not directory.is_dir():
        return {}
    return {path.name: path for path in directory.iterdir() if _holds_a_model(path)}


def _holds_a_model(path: Path) -> bool:
    """True for a directory that is a model, or a run that has one."""
    return any((path / name).is_file() for name in (CONFIG_FILE, "best", "last"))
