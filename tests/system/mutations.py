"""Damage by chance: bytes that are flipped, cut and put in, and values of JSON that no reader hopes for."""

import copy
import json
import random
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Mutation = Callable[[bytes, random.Random], bytes]

_RAW = "\ue000raw:"  # marks a text that becomes JSON as it stands

# What JSON can say, or almost.
_VALUES: tuple[Any, ...] = (
    *(None, True, False, "", "a", "\u0000", "\ud800", "\u202e\x1b[2J", "x" * 5_000, [], {}, [[]], [None], {"": 0}),
    *(
        0,
        1,
        -1,
        2,
        15,
        16,
        17,
        255,
        65_536,
        2**31 - 1,
        2**31,
        2**53,
        2**63 - 1,
        2**63,
        -(2**63),
        10**9,
        10**30,
        10**400,
    ),
    *(0.0, -0.0, 0.5, 1.0, -1.5, 1e-320, 1e15, 1e30, 1e300, "1", "-1", "0" * 5_000, "9" * 5_000, "../x", "/dev/zero"),
    *(f"{_RAW}{text}" for text in ("1e999", "-1e999", "NaN", "Infinity", "9" * 5_000, "1" + "0" * 400, "", "}", "'a'")),
    *(f"{_RAW}{'[' * depth}{']' * depth}" for depth in (63, 70, 1_000, 100_000)),
    *(f"{_RAW}{open_ * 900}1{close * 900}" for open_, close in (("[", "]"), ('{"a":', "}"))),
    *(list(range(20)), ["a"] * 20, [[0, 1]] * 3, {str(index): index for index in range(20)}),
)

_SNIPPETS = (
    *(
        b"\0",
        b"\xff",
        b"\x80",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\r",
        b"\r\n",
        b"\n",
        b"\n\n",
        b"\t",
        b'"',
    ),
    *(
        b",",
        b'""',
        b"'",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b"\x1b[2J",
        b"\xe2\x80\xae",
        b"\xcc\x81" * 300,
        b"<|end|>",
        b"<s>",
    ),
    *(
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
        b"\xff\xff\xff\x7f",
        b"a" * 3_000,
        b"\x1f\x8b",
        b"PK\x03\x04",
        b"PAR1",
        b" " * 300,
    ),
)


def bytes_of_any_file(content: bytes, rng: random.Random) -> bytes:
    """One to four changes of bytes, the front of the file as likely as all the rest."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        end = len(changed) if rng.random() < 0.5 else min(len(changed), 300)
        place = rng.randrange(end + 1)
        length = rng.choice((1, 1, 2, 4, 8, 60, 1_000))
        match rng.randrange(7):
            case 0 if changed:
                changed[min(place, len(changed) - 1)] ^= 1 << rng.randrange(8)
            case 1:
                changed[place : place + length] = rng.randbytes(min(length, len(changed) - place))
            case 2:
                changed[place : place + rng.choice((0, length))] = rng.choice(_SNIPPETS)
            case 3:
                del changed[place : place + length]
            case 4:
                changed[place:place] = changed[place : place + length] * rng.choice((1, 3))
            case 5:
                del changed[place:]
            case 6:
                changed[place : place + 4] = struct.pack("<I", rng.choice((0, 1, 2**16, 2**31, 2**32 - 1, 10**6)))
    return bytes(changed)


def values_of_json(content: bytes, rng: random.Random) -> bytes:
    """One to three values are others, are gone, or have another name."""
    value = json.loads(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        value = _changed(value, rng)
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    mark = json.dumps(_RAW)[1:-1]
    for marked in (_RAW, mark):
        while f'"{marked}' in text:
            before, _, rest = text.partition(f'"{marked}')
            raw, _, after = rest.partition('"')
            text = before + raw + after
    return text.encode("utf-8", "surrogatepass")


def _changed(value: Any, rng: random.Random) -> Any:
    inner = value if isinstance(value, dict | list) and value else None
    if inner is None or rng.random() < 0.05:
        alike = [each for each in _VALUES if type(each) is type(value) and not str(each).startswith(_RAW)]
        others = (_hostile(rng), [value], {"a": value}, str(value)[:99])
        return copy.deepcopy(rng.choice(alike if alike and rng.random() < 0.6 else others))
    key = rng.choice(list(inner)) if isinstance(inner, dict) else rng.randrange(len(inner))
    match rng.randrange(10):
        case 0:
            del inner[key]
        case 1 if isinstance(inner, dict):
            inner[rng.choice(("", "a", "\ud800", "toolkit", "9" * 5_000, "-1", "x" * 400))] = inner.pop(key)
        case 1 | 2:
            other = _hostile(rng)
            inner.update({str(other)[:99]: other}) if isinstance(inner, dict) else inner.insert(key, other)
        case 3 if type(inner[key]) in (int, float) and abs(inner[key]) < 1e300:
            inner[key] = rng.choice((-inner[key], inner[key] + 1, inner[key] - 1, float(inner[key]), str(inner[key])))
        case 4:
            inner[key] = copy.deepcopy(inner[rng.choice(list(inner))] if isinstance(inner, dict) else rng.choice(inner))
        case _:
            inner[key] = _changed(inner[key], rng)
    return inner


def _hostile(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(_VALUES))  # it may be damaged further


def lines_of_json(content: bytes, rng: random.Random) -> bytes:
    """As `values_of_json`, in one of the lines."""
    lines = content.splitlines(keepends=True)
    place = rng.randrange(len(lines))
    lines[place] = values_of_json(lines[place], rng) + b"\n"
    return b"".join(lines)


def header_of_tensors(content: bytes, rng: random.Random) -> bytes:
    """As `values_of_json`, in the header of a safetensors file, whose length is right, as a rule."""
    (length,) = struct.unpack("<Q", content[:8])
    header = values_of_json(content[8 : 8 + length], rng)
    size = rng.choice((len(header),) * 9 + (0, 2**63, len(header) + 1))
    return struct.pack("<Q", size) + header + content[8 + length :]


def forms_of_tensors(content: bytes, rng: random.Random) -> bytes:
    """A tensor of a safetensors file is of another type, shape or size, and the file a good one of its kind."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__", None)
    changed = rng.sample(sorted(header), min(len(header), rng.choice((1, 1, 2))))
    parts, end = [], 0
    for name in sorted(header, key=lambda name: header[name]["data_offsets"]):
        entry = header[name]
        first, last = entry["data_offsets"]
        part = content[8 + length + first : 8 + length + last]
        if name in changed:
            part = _form(entry, part, rng)
        entry["data_offsets"] = [end, end + len(part)]
        parts, end = [*parts, part], end + len(part)
    text = json.dumps(header if metadata is None else {"__metadata__": metadata, **header}).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def _form(entry: dict[str, Any], part: bytes, rng: random.Random) -> bytes:
    shape, size = entry["shape"], struct.calcsize("<e" if entry["dtype"] == "F16" else "<f")
    match rng.randrange(4):
        case 0:
            entry["dtype"], wide = rng.choice(
                (("BF16", 2), ("F16", 2), ("F64", 8), ("I64", 8), ("F8_E4M3", 1), ("BOOL", 1))
            )
            return (part * 2)[: len(part) // size * wide]
        case 1:
            entry["shape"] = rng.choice((shape[::-1], [*shape, 1], [len(part) // size], [1, *shape]))
            return part
        case 2:
            entry["shape"] = rng.choice(([0, *shape[1:]], [*shape[:-1], 0], [0, 10**6], [0, 2**60], []))
            return part[:size] if not entry["shape"] else b""
        case _:
            number = struct.pack("<f" if size == 4 else "<e", rng.choice((float("nan"), float("inf"), 0.0, -6e4)))
            return number + part[size:] if rng.random() < 0.5 else number * (len(part) // size)


def fields_of_protobuf(content: bytes, rng: random.Random) -> bytes:
    """A field of a SentencePiece model, or one within it, is gone, twice there, or another; all lengths are right."""
    fields = list(fields_of(content))
    # The settings are the last fields, and pieces are all the others.
    place = rng.choice((rng.randrange(len(fields)), rng.randrange(min(len(fields), 20)), -1, -2))
    number, kind, value = fields[place]
    match rng.randrange(6):
        case 0:
            del fields[place]
        case 1:
            fields.insert(rng.randrange(len(fields)), fields[place])
        case 2:
            fields[place] = number, kind, value[: rng.randrange(len(value) + 1)]
        case _ if kind == 2 and value:
            inner = list(fields_of(value))
            at = rng.randrange(len(inner))
            inner[at] = _field(inner[at], rng)
            fields[place] = number, kind, written_fields(inner if rng.random() < 0.8 else inner[:at])
    return written_fields(fields)


Field = tuple[int, int, bytes]  # number, kind, and the value: a number as its bytes


def _field(field: Field, rng: random.Random) -> Field:
    number, kind, value = field
    if kind == 2:
        texts = (
            b"",
            b"\xff\xfe",
            b"\xed\xa0\x80",
            b"a",
            b"<s>",
            b"\xe2\x96\x81",
            b"<0x0A>",
            b"\0",
            b"x" * 9_000,
            value + b"\xff",
        )
        return number, kind, rng.choice(texts)
    if kind == 5:
        return number, kind, struct.pack("<f", rng.choice((float("nan"), float("inf"), -float("inf"), 0.0, 1e38, -1.0)))
    return number, kind, rng.choice((b"\0", b"\1", b"\2", b"\3", b"\x7f", b"\xff" * 9 + b"\1", b"\xff\xff\xff\xff\x07"))


def fields_of(message: bytes) -> Iterator[Field]:
    """The fields of a message in the format of protocol buffers."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind, begin = key & 7, place
        if kind == 2:
            size, begin = _varint(message, place)
            place = begin + size
        else:
            place = _varint(message, place)[1] if kind == 0 else place + (4 if kind == 5 else 8)
        yield key >> 3, kind, message[begin:place]


def written_fields(fields: Iterable[Field]) -> bytes:
    """The message that has these fields."""
    return b"".join(map(_written, fields))


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while message[place] & 128:
        value |= (message[place] & 127) << shift
        place, shift = place + 1, shift + 7
    return value | message[place] << shift, place + 1


def _written(field: Field) -> bytes:
    number, kind, value = field
    return _number(number << 3 | kind) + (_number(len(value)) if kind == 2 else b"") + value


def _number(value: int) -> bytes:
    written = b""
    while value > 127:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])


def either(*mutations: Mutation) -> Mutation:
    return lambda content, rng: rng.choice(mutations)(content, rng)
