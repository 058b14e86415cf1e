"""Fields of a request: types, ranges, and names; null is as good as not given, and none is passed over in silence."""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from toolkit.data.objects import json_kind
from toolkit.display import meant
from toolkit.errors import DataError
from toolkit.serving.errors import ApiError
from toolkit.tokenization.normal_form import refuse_surrogates

# Takes a value and its name, and gives the value as the request's reader wants it.  Raises ApiError.
Reader = Callable[[Any, str], Any]

_SHOWN = 40  # characters of a value in a sentence


def read_fields(
    body: Mapping[str, Any],
    readers: Mapping[str, Reader],
    refused: Mapping[str, tuple[Collection[Any], str]] | None = None,
    within: str = "",
) -> dict[str, Any]:
    """Read an object -> the fields that are given, which null ones are not.

    refused: fields of the interface that exist elsewhere: the values that ask for nothing, and what to say of others.
    within: where the object stands, for the names of fields: "messages[0].".

    Raises ApiError for a field that is of neither, which it names with the nearest that exists, and for wrong values.
    """
    refused, given = refused or {}, {}
    for name, value in body.items():
        if name in readers:
            if value is not None:
                given[name] = readers[name](value, within + name)
        elif name not in refused:
            near = meant(name, readers)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(sorted(readers))}"
            raise ApiError(400, f"there is no field {within}{name[:_SHOWN]}: {hint}", param=within + name[:_SHOWN])
        elif value is not None and not any(type(each) is type(value) and each == value for each in refused[name][0]):
            raise ApiError(400, f"{within}{name} is {shown(value)}: {refused[name][1]}", param=within + name)
    return given


def require(given: Mapping[str, Any], name: str, what: str, within: str = "") -> Any:
    """Look up a field that must be given.  Raises ApiError, which says what it is, where it is not."""
    if name not in given:
        raise ApiError(400, f"{within}{name} is missing: give {what}", param=within + name)
    return given[name]


def shown(value: Any) -> str:
    """Write a value as JSON has it, cut short."""
    if isinstance(value, dict) or (isinstance(value, list) and len(value) > 8):
        return json_kind(value)
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def wrong(value: Any, name: str, must: str) -> ApiError:
    """Make the error for a value that must be something else."""
    return ApiError(400, f"{name} is {shown(value)}: it must be {must}", param=name)


def whole(least: int, most: int) -> Reader:
    """Make a reader of whole numbers from `least` to `most`."""

    def read(value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            raise wrong(value, name, "a whole number")
        return int(_within(value, name, least, most))

    return read


def number(least: float, most: float = math.inf) -> Reader:
    """Make a reader of finite numbers from `least` to `most`."""

    def read(value: Any, name: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise wrong(value, name, "a finite number")
        return float(_within(value, name, least, most))

    return read


def _within(value: float, name: str, least: float, most: float) -> float:
    if not least <= value <= most:
        must = f"at least {least:g}" if value < least else f"at most {most:g}" if isinstance(most, float) else ""
        raise wrong(value, name, must or f"at most {most}")
    return value


def flag(value: Any, name: str) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise wrong(value, name, "true or false")
    return value


def text(value: Any, name: str) -> str:
    """Read a text, which has no halves of surrogate pairs."""
    if not isinstance(value, str):
        raise wrong(value, name, "text")
    check_unicode([value], name)
    return value


def choice(*options: str | bool) -> Reader:
    """Make a reader of one of some words."""

    def read(value: Any, name: str) -> str | bool:
        if not any(type(each) is type(value) and each == value for each in options):
            raise wrong(value, name, f"one of {', '.join(json.dumps(each) for each in options)}")
        return value

    return read


def texts(most: int, longest: int, alone: bool = True) -> Reader:
    """Make a reader of lists of up to `most` texts of 1 to `longest` characters; alone: one without a list is one."""

    def read(value: Any, name: str) -> list[str]:
        found = [value] if alone and isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise wrong(value, name, "text, or a list of texts" if alone else "a list of texts")
        if len(found) > most:
            raise ApiError(400, f"{name} has {len(found)} texts: this server takes at most {most}", param=name)
        for each in found:
            if not 1 <= len(each) <= longest:
                raise ApiError(
                    400, f"a text of {name} has {len(each)} characters: it must have 1 to {longest}", param=name
                )
        check_unicode(found, name)
        return found

    return read


def ids(value: Any, name: str) -> list[int]:
    """Read a list of ids of tokens."""
    if not is_ids(value):
        raise wrong(value, name, "a list of ids, which are whole numbers from 0 on")
    return value


def is_ids(value: Any) -> bool:
    """Say if a value is a list of whole numbers from 0 on."""
    return isinstance(value, list) and all(type(each) is int and each >= 0 for each in value)


def check_unicode(values: Sequence[str], name: str) -> None:
    """Raise ApiError for half of a surrogate pair, which JSON can spell and no text has."""
    try:
        for each in values:
            each.encode()
    except UnicodeEncodeError as error:
        try:
            refuse_surrogates(values, error)
        except DataError as refusal:
            raise ApiError(400, f"{name}: {refusal}", param=name) from None
