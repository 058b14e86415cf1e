"""Where a model is: in a directory, in a training run, or on the shelf of those that come with the toolkit."""

import os
from contextlib import suppress
from pathlib import Path

from toolkit.errors import ModelError
from toolkit.models.storage import CONFIG_FILE, model_directory


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
            raise ModelError(f"{path} is not a model: it has no {CONFIG_FILE}")
    names = ", ".join(sorted(shipped)) or "none is shipped"
    raise ModelError(f"there is no model {str(path_or_name)!r}: give the path of a directory, or a name ({names})")


def shipped_models() -> dict[str, Path]:
    """The models that come with the toolkit: within the installed package, or beside it in a clone."""
    package = Path(__file__).parent.parent
    shelf = package / "checkpoints"
    if not shelf.is_dir():
        shelf = package.parent / "checkpoints"
    if not shelf.is_dir():
        return {}
    return {path.name: path for path in shelf.iterdir() if path.is_dir() and not path.name.startswith(".")}
