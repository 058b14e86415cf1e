"""The one door by which files come in: what is opened, how much of it is read, and what may stand in it.

A file may be cut off, come from another program, or be made to do harm. So nothing is opened that is no file, nothing
is read before its size has been compared, and what was read is compared with a schema: types, ranges, lengths and
depth. Behind the door every value is what its reader takes it for.

    SHAPE = Record({"layers": Whole(1, 9_999), "tokens": Items(Text())}, others=ANYTHING)
    shape = check(parse_json(read_bytes(path, SETTINGS_BYTES)), SHAPE)

Whatever does not fit is an UnfitError, whatever cannot be read an OSError; both hold the words for a sentence, to which
the reader adds the name of the file and what to do.
"""

import errno
import json
import math
import mmap
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO

SETTINGS_BYTES = 1 << 24  # the most that a file of settings or figures may have
VOCABULARY_BYTES = 1 << 28  # the most that a tokenizer, or a list of tokens or tensors, may have
LOG_BYTES = 1 << 30  # the most that the log of a run may have
DEEPEST = 64  # lists and objects within each other
LARGEST = 2**63 - 1  # the largest whole number that a file may hold, and with its sign the smallest

_LONGEST_SHOWN = 60
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # JSON can spell it, and no text in UTF-8 has it

# Not to wait for whoever writes to a pipe, nor to take a terminal for our own.
_CAREFULLY = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class NotAFileError(OSError):
    """A pipe, a device or a socket where a file should be."""


class UnfitError(ValueError):
    """A fault in the content of a file, as a clause: `model.width is "a", not a whole number from 1 to 9`."""

    def __init__(self, problem: str, path: str = "it"):
        super().__init__(f"{path} {problem}")
        self.problem, self._path = problem, path

    def within(self, key: str | int) -> "UnfitError":
        """Return the same, of something that holds it under this key."""
        inner = "" if self._path == "it" else self._path if self._path.startswith("[") else f".{self._path}"
        return UnfitError(self.problem, (f"[{key}]" if isinstance(key, int) else f"{key:.60}") + inner)


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading bytes, without waiting.

    Raises OSError for what is missing or may not be read, IsADirectoryError, and NotAFileError for whatever else is no
    file.
    """
    if "\0" in os.fspath(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return open(path, "rb", opener=_opener)


def _opener(path: str, flags: int) -> int:
    refusal = NotAFileError(errno.EINVAL, "it is a pipe or a device, not a file", path)
    try:
        descriptor = os.open(path, flags | _CAREFULLY)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP):  # how a socket answers
            raise refusal from None
        raise
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # `open` refuses the latter
        return descriptor
    os.close(descriptor)
    raise refusal


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """Read a file.

    Raises OSError as `open_regular` does, and for more than `most` bytes, of which it reads none.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"it has {size:,} bytes, and a file of its kind has at most {most:,}", path)
        return file.read(size)


def map_bytes(path: str | os.PathLike[str]) -> mmap.mmap | bytes:
    """Map a file, which the system then reads where it is looked at.  Raises OSError as `open_regular` does."""
    with open_regular(path) as file:
        if not os.fstat(file.fileno()).st_size:  # nothing cannot be mapped
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def parse_json(content: bytes | str, endless: bool = False) -> Any:
    """Parse JSON in UTF-8.  NaN and infinities are numbers: `Number` is what refuses them.

    endless: whole numbers beyond 64 bits are infinite.

    Raises UnfitError for what is not JSON, for a whole number beyond 64 bits and for more than DEEPEST levels.
    """
    whole = _whole_or_endless if endless else _whole
    try:
        value = json.loads(content.decode("utf-8") if isinstance(content, bytes) else content, parse_int=whole)
    except UnfitError:
        raise
    except RecursionError:
        raise UnfitError("is nested too deeply") from None
    except ValueError as error:
        raise UnfitError("is not JSON") from error
    _check_depth(value)
    return value


def _whole(digits: str) -> int:
    if len(digits) > 20 or abs(int(digits)) > LARGEST:
        raise UnfitError(f"has a number of {len(digits)} digits")
    return int(digits)


def _whole_or_endless(digits: str) -> int | float:
    try:
        return _whole(digits)
    except UnfitError:
        return -math.inf if digits.startswith("-") else math.inf


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        inner = (each.values() if type(each) is dict else each for each in level if type(each) in (dict, list))
        level = [each for values in inner for each in values if type(each) in (dict, list)]
        if not level:
            return
    raise UnfitError("is nested too deeply")


class Schema:
    """The values that are allowed: those that a rule allows, and of which whatever they hold is allowed too.

    words: the same, for a sentence. rule: what a value must fulfil by itself. inside: gives what a value holds, by
    index or key, each with its own schema.
    """

    def __init__(
        self,
        words: str,
        rule: Callable[[Any], bool],
        inside: Callable[[Any], Iterable[tuple[str | int, Any, "Schema"]]] | None = None,
    ):
        self.words, self._rule, self._inside = words, rule, inside

    def check(self, value: Any) -> None:
        """Raises UnfitError for a value that is something else."""
        if not self._rule(value):
            raise UnfitError(f"is {shown(value)}, not {self.words}")
        for key, each, schema in self._inside(value) if self._inside else ():
            try:
                schema.check(each)
            except UnfitError as error:
                raise error.within(key) from None


def check(value: Any, schema: Schema) -> Any:
    """Return the value itself.  Raises UnfitError, naming the place, where it does not fit."""
    schema.check(value)
    return value


def shown(value: Any) -> str:
    """Write a value as it stands in a file, or its beginning."""
    if isinstance(value, str):
        value = value[: _LONGEST_SHOWN + 1]
    parts = json.JSONEncoder(ensure_ascii=False, default=str).iterencode(value)
    text = "".join(islice(parts, _LONGEST_SHOWN))
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


ANYTHING = Schema("anything", lambda value: True)
FLAG = Schema("true or false", lambda value: type(value) is bool)


class Whole(Schema):
    """A whole number within bounds, of which true and 1.0 are none."""

    def __init__(self, low: int = -LARGEST, high: int = LARGEST):
        within = f" from {low} to {high:,}" if high < LARGEST else f" of at least {low}" if low > -LARGEST else ""
        super().__init__(f"a whole number{within}", lambda value: type(value) is int and low <= value <= high)


class Number(Schema):
    """A number within bounds, whole or not; infinities and NaN are none."""

    def __init__(self, low: float = -math.inf, high: float = math.inf):
        super().__init__(
            "a number", lambda value: type(value) in (int, float) and math.isfinite(value) and low <= value <= high
        )


class Text(Schema):
    """A text of at most `most` characters that fits `pattern`; it never has half characters."""

    def __init__(self, most: int = LARGEST, pattern: str = "", words: str = "a text"):
        def fits(value: Any) -> bool:
            is_text = type(value) is str and len(value) <= most and not _HALF_CHARACTER.search(value)
            return is_text and (not pattern or bool(re.fullmatch(pattern, value)))

        super().__init__(words, fits)


# The schema of a value that stands for a default of this type.
LIKE = {int: Whole(), float: Number(), bool: FLAG, str: Text()}


class Maybe(Schema):
    """The schema, or null."""

    def __init__(self, schema: Schema):
        self._schema, self.words = schema, f"{schema.words} or null"

    def check(self, value: Any) -> None:
        if value is not None:
            self._schema.check(value)


class Either(Schema):
    """Values that fit one of two schemas."""

    def __init__(self, one: Schema, other: Schema):
        self._one, self._other, self.words = one, other, f"{one.words} or {other.words}"

    def check(self, value: Any) -> None:
        try:
            self._one.check(value)
        except UnfitError:
            self._other.check(value)


class Items(Schema):
    """A list of at most `most` items, each of which fits the schema."""

    def __init__(self, schema: Schema, most: int = LARGEST):
        super().__init__(
            "a list",
            lambda value: type(value) is list and len(value) <= most,
            lambda value: ((index, each, schema) for index, each in enumerate(value)),
        )


class Row(Schema):
    """A list of fixed length, each item of which fits the schema in its place."""

    def __init__(self, *schemas: Schema):
        super().__init__(
            f"a list of {len(schemas)}",
            lambda value: type(value) is list and len(value) == len(schemas),
            lambda value: zip(range(len(schemas)), value, schemas, strict=True),
        )


class Record(Schema):
    """An object, by its keys, which have no half characters.

    fields: what stands under these keys. needed: those that must be there. others: what stands under every other key;
    None where there may be none.
    """

    def __init__(
        self, fields: Mapping[str, Schema] | None = None, needed: Collection[str] = (), others: Schema | None = None
    ):
        super().__init__("an object", lambda value: type(value) is dict, self._members)
        self._fields, self._needed, self._others = fields or {}, needed, others

    def _members(self, value: dict[str, Any]) -> Iterator[tuple[str, Any, Schema]]:
        for key in self._needed:
            if key not in value:
                raise UnfitError(f"has no {key}")
        for key, each in value.items():
            schema = self._fields.get(key, self._others)
            if schema is None or _HALF_CHARACTER.search(key):
                raise UnfitError(f"has {key!r:.60}, which is unknown here")
            yield key, each, schema


OBJECT = Record(others=ANYTHING)
