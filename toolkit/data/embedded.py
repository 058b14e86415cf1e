"""The embedded corpora, which are not committed: a program writes each in seconds when it is first asked for.

The folder of a corpus holds its README.md, its program (`generate.py`), what is written by hand, and `SHA256SUMS`, the
checksums of what the program writes; see data/README.md. In a clone, and where it is installed with `pip install -e`,
that is `data/NAME`, and the files lie beside the program. A wheel carries the folders inside of the package, which may
belong to somebody else: there they are copied first, to `corpora-…` in `$XDG_CACHE_HOME/toolkit` (`~/.cache/toolkit`).
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, get_args

from toolkit.data.corpus import changed_file
from toolkit.display import tell
from toolkit.errors import ConfigError, DataError
from toolkit.files import TEMPORARY, TEMPORARY_END, cache_directory, remove_leftovers, replaced_directory

CorpusName = Literal["en_ne", "everyday", "stories", "chat"]

_SUMS = "SHA256SUMS"
_NEEDS: dict[str, tuple[CorpusName, ...]] = {"chat": ("en_ne",)}  # whose sentences its conversations translate
_PACKAGE = Path(__file__).resolve().parents[1]


def _programs() -> Path:
    """Find the folders of all corpora as they came: inside of an installed package, beside one in a clone."""
    packed = _PACKAGE / "corpora" / "data"
    return packed if packed.is_dir() else _PACKAGE.parent / "data"


def _corpora() -> Path:
    """Find the folders of all corpora that may be written to."""
    programs = _programs()
    sums = [programs / name / _SUMS for name in get_args(CorpusName)]
    if programs.parent == _PACKAGE.parent or not all(path.is_file() for path in sums):
        return programs
    version = hashlib.sha256(b"".join(path.read_bytes() for path in sums)).hexdigest()[:8]
    return cache_directory() / f"corpora-{version}" / "data"


CORPORA = _corpora()


def embedded(name: CorpusName, quiet: bool = False) -> Path:
    """Return the folder of an embedded corpus, whose files are made now if they are not there yet.

    Two processes that ask at once wait for each other, and what was interrupted leaves nothing behind. quiet: nothing
    is said on standard error while the files are made.

    Raises ConfigError where there is no such corpus, DataError where the folder cannot be written, and where a file is
    not the one whose checksum is listed.
    """
    if name not in get_args(CorpusName):
        raise ConfigError(f"there is no embedded corpus {name!r:.60}: choose one of {', '.join(get_args(CorpusName))}")
    folder = CORPORA / name
    if not folder.exists():
        _copy_programs()
    sums = _sums(folder)
    if not all((folder / file).exists() for file in sums):
        for other in _NEEDS.get(name, ()):
            embedded(other, quiet)
        try:
            with _one_at_a_time(folder):
                if not all((folder / file).exists() for file in sums):
                    _make(folder, sums, quiet)
        except OSError as error:
            raise DataError(f"{folder} cannot be written: {error.strerror or error}") from error
    if wrong := changed_file(folder, sums):
        raise DataError(f"{wrong} is not what its program wrote: delete it, to have it made again")
    return folder


def make_embedded(paths: Iterable[Path], quiet: bool = False) -> None:
    """Make those of these files that belong to embedded corpora and are not there yet; see `embedded` for errors."""
    for path in map(Path.absolute, paths):
        folder = path.parent
        ours = folder.parent == CORPORA and folder.name in get_args(CorpusName)
        if ours and not folder.exists():
            _copy_programs()
        if ours and path.name in _sums(folder):
            embedded(folder.name, quiet)


def _copy_programs() -> None:
    """Put the folders of an installed package where they may be written to."""
    if _programs() == CORPORA:
        return
    try:
        CORPORA.parent.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(CORPORA.parent):
            if not CORPORA.exists():
                with replaced_directory(CORPORA) as new:
                    shutil.copytree(_programs(), new, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise DataError(f"{CORPORA} cannot be written: {error.strerror or error}") from error


def _make(folder: Path, sums: dict[str, str], quiet: bool) -> None:
    """Run the program of a corpus, and put in place what it has written."""
    if not quiet:
        tell(f"writing the files of {folder}, once: this takes some seconds")
    remove_leftovers(folder, deep=False)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, suffix=TEMPORARY_END, dir=folder) as temporary:
        # By itself, and without installed packages (-S): nobody's `import data` is to find ours, nor ours another's.
        program = [sys.executable, "-S", "-m", f"data.{folder.name}.generate", "--out", temporary]
        settings = os.environ | {"PYTHONPATH": str(folder.parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
        ended = subprocess.run(program, cwd=folder.parents[1], env=settings, capture_output=True, check=False)
        if ended.returncode:
            reason = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise DataError(f"{folder / 'generate.py'} failed ({reason or f'exit code {ended.returncode}'})")
        if wrong := changed_file(Path(temporary), sums):
            raise DataError(
                f"{folder / 'generate.py'} wrote another {wrong.name} than {_SUMS} lists: if the program was changed, "
                f"accept that with `python -m data.{folder.name}.generate`"
            )
        for file in sums:
            (Path(temporary) / file).replace(folder / file)


def _sums(folder: Path) -> dict[str, str]:
    try:
        lines = (folder / _SUMS).read_text(encoding="ascii").splitlines()
        return {file: checksum for checksum, file in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError) as error:
        raise DataError(f"{folder / _SUMS} is missing or damaged: copy it again") from error


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Wait until no other process is within the block; where the system knows no such locks, all may be."""
    descriptor = None
    try:
        with suppress(ImportError, OSError):
            import fcntl

            descriptor = os.open(folder, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
