"""Writing files and directories so that a name never points to half of anything, whatever interrupts the writing.

What is being written has a name like `.toolkit-NAME.RANDOM.tmp` until it is whole. After a `kill -9` such a name may
stay behind; `remove_leftovers` clears it away.
"""

import itertools
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from toolkit.errors import ConfigError, DataError

TEMPORARY, TEMPORARY_END = ".toolkit-", ".tmp"
_OLD = f"{TEMPORARY}old-"  # a directory that holds what is being replaced
_MOST_SHOWN = 40  # characters of NAME: with what stands around them they still make a name
_BELOW = 200  # bytes that are left for the names below a directory that is to be written


def cache_directory() -> Path:
    """Return the directory of what can be made anew: `$XDG_CACHE_HOME/toolkit`, or `~/.cache/toolkit`.

    A relative path in XDG_CACHE_HOME counts as none, as XDG's specification says.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / "toolkit"


@contextmanager
def atomic_writer(path: str | os.PathLike[str], durable: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing bytes that takes the name `path` only when the block has ended without an exception.

    The bytes go to a temporary name in the same directory, are flushed to the disk and renamed; until then, and
    after any failure, whatever `path` named before is untouched. When it returns, the new name is on the disk too.

    durable: False for what can be made anew: the disk is not waited for.

    Raises DataError if `path` cannot be written or names something other than a regular file.
    """
    temporary = None
    try:
        check_path(Path(path), below=0)
        target = Path(path).resolve()  # a link keeps being a link: the file it names is replaced
        temporary = target.with_name(f"{TEMPORARY}{secrets.token_hex(8)}{TEMPORARY_END}")
        if target.exists() and not target.is_file():  # renaming over /dev/null would replace the device itself
            raise DataError(f"{path} is not a regular file: give the name of a file to write")
        with temporary.open("xb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(target)
        if durable:
            flush_to_disk(target.parent)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raises DataError where `atomic_writer` would, before the work whose result is to be written."""
    with suppress(_NothingToWrite), atomic_writer(path):
        raise _NothingToWrite


class _NothingToWrite(Exception):  # noqa: N818  (nothing went wrong)
    pass


def check_path(path: Path, below: int = _BELOW) -> None:
    """Raises OSError where a path is longer than the system allows, with names below it, or is a link to itself."""
    with suppress(FileNotFoundError, NotADirectoryError):
        (path.absolute() / ("x" * below)).stat()


def check_new_directory(path: Path, flag: str) -> None:
    """Before long work whose result is a directory: nothing may be there that the result would replace.

    Raises ConfigError, naming the flag, where `path` names a file or a directory that is not empty, or where a file is
    in the way to it or none can be made there.
    """
    try:
        check_path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise ConfigError(f"{path} already exists: choose another {flag}, or remove it")
        if not path.name:
            raise ConfigError(f"{path} is where the command runs: give {flag} the name of a new directory")
        for parent in path.parents:
            if parent.exists() and not parent.is_dir():
                raise ConfigError(f"{path} cannot be written ({parent} is a file): choose another {flag}")
        parents = path.resolve().parents  # of a link, those of what it leads to
        nearest = next((parent for parent in parents if parent.exists()), path.parent)
        _temporary_directory(nearest / path.name, TEMPORARY).rmdir()
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror or error}): choose another {flag}") from error


class replaced_directory:  # noqa: N801  (a context manager, used like a function)
    """`with replaced_directory(path) as new:` fills a new directory and puts it in the place of `path` when done.

    The files are flushed to the disk before the rename; an error leaves the old directory as it was.

    Raises DataError where the directory or something in it cannot be written.
    """

    def __init__(self, path: Path, replaces: bool = True):
        self.called, self.path = path, path if replaces else path.resolve()  # a link keeps being a link
        self._replaces = replaces

    def __enter__(self) -> Path:
        try:
            if self._replaces and self.path.exists() and not self.path.is_dir():
                raise DataError(f"{self.called} is a file: give the name of a directory to write")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.new = _temporary_directory(self.path, _prefix(self.path))
        except OSError as error:
            raise DataError(f"{self.called} cannot be written: {error.strerror or error}") from error
        return self.new

    def __exit__(self, kind: type | None, error: BaseException | None, _: object) -> None:
        try:
            cause = self._disk_error(error)
            if kind is None:
                self.new.chmod(0o755)
                for path in (*self.new.rglob("*"), self.new):
                    flush_to_disk(path)
                self._put_in_place()
        except OSError as found:
            cause = found
        finally:
            shutil.rmtree(self.new, ignore_errors=True)
        if cause:
            raise DataError(f"{self.called} cannot be written: {cause.strerror or cause}") from cause

    def _disk_error(self, error: BaseException | None) -> OSError | None:
        """Find the failure to write within the block, whose message should not name what is temporary."""
        if isinstance(error, DataError) and str(self.new) in str(error):
            error = error.__cause__
        # An error of a file that is open already has a number, and no name.
        ours = isinstance(error, OSError) and error.errno
        return error if ours and str(error.filename or self.new).startswith(str(self.new)) else None

    def _put_in_place(self) -> None:
        if self._replaces and self.path.exists():
            old = _temporary_directory(self.path, _OLD)
            try:
                self.path.rename(old / self.path.name)
                self.new.rename(self.path)
                flush_to_disk(self.path.parent)
            finally:
                _clear(old)
            return
        try:
            self.new.rename(self.path)  # refused where there is anything but an empty directory
        except OSError:
            if self._replaces or not os.path.lexists(self.path):
                raise
            kept = self._keep_beside()
            raise DataError(
                f"{self.called} has come to be in the meantime and is not replaced: the result is in {kept}"
            ) from None
        flush_to_disk(self.path.parent)

    def _keep_beside(self) -> Path:
        """Give the directory the first free name beside the one that is taken."""
        names = (f"{self.path.name[:_MOST_SHOWN]}-{number}" for number in itertools.count(2))
        kept = next(path for path in map(self.path.with_name, names) if not os.path.lexists(path))
        try:
            self.new.rename(kept)
        except OSError:
            if os.path.lexists(kept):  # taken in this moment
                return self._keep_beside()
            raise
        return self.called.with_name(kept.name)


def new_directory(path: Path) -> replaced_directory:
    """`with new_directory(path) as new:` fills a new directory that takes the place of nothing, or of an empty one.

    Call `check_new_directory` before long work. Raises DataError as `replaced_directory` does, and where something has
    come to be at `path` meanwhile: what was written is then kept beside it, under a name that the sentence tells.
    """
    return replaced_directory(path, replaces=False)


def _prefix(path: Path) -> str:
    return f"{TEMPORARY}{path.name[:_MOST_SHOWN]}."


def _temporary_directory(beside: Path, prefix: str) -> Path:
    directory = beside.with_name(f"{prefix}{secrets.token_hex(8)}{TEMPORARY_END}")
    try:
        directory.mkdir(0o700)
    except BaseException:  # a signal, too, that comes when it is there already and nobody has its name yet
        with suppress(OSError):
            directory.rmdir()
        raise
    return directory


def remove_directory(path: Path) -> None:
    """Remove a directory, or a file: its name goes first, so that it never stands for half of what it was."""
    doomed = path.with_name(f"{_prefix(path)}{secrets.token_hex(8)}{TEMPORARY_END}")
    with suppress(OSError):
        path.rename(doomed)
        if doomed.is_dir():
            shutil.rmtree(doomed, ignore_errors=True)
        else:
            doomed.unlink()


def remove_leftovers(directory: Path, deep: bool = True) -> None:
    """Clear away what interrupted writing has left in a directory that nobody else is writing to, and below it if deep.

    What was moved aside to be replaced, and was not replaced yet, takes its place again.
    """
    pattern = f"{TEMPORARY}*{TEMPORARY_END}"
    for path in list(directory.rglob(pattern) if deep else directory.glob(pattern)):
        _clear(path)


def is_leftover(path: Path) -> bool:
    """Say if a name is that of something temporary."""
    return path.name.startswith(TEMPORARY) and path.name.endswith(TEMPORARY_END)


def _clear(path: Path) -> None:
    """Remove something temporary, and put back what it holds of a name that is free."""
    if path.is_dir() and not path.is_symlink():
        for kept in path.iterdir() if path.name.startswith(_OLD) else ():
            if not (path.parent / kept.name).exists():
                try:
                    kept.rename(path.parent / kept.name)
                except OSError:  # it stays where it is, hidden but whole
                    return
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def flush_to_disk(path: Path) -> None:
    """fsync a file or, where the system can, a directory."""
    is_directory = path.is_dir()
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        if is_directory:  # not every system opens them, and one may be written to without being readable
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError:
        if not is_directory:
            raise
    finally:
        os.close(descriptor)
