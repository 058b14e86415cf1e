"""The bytes that each token of the `tokenizers` library adds to a text, from the decoder its file describes."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolkit.errors import ModelError
from toolkit.tokenization.pieces import SPACE_MARK

Json = dict[str, Any]
Part = str | bytes  # a token on its way: bytes once it is known which it stands for
Step = Callable[[str], Part]

_BYTE_NAME = re.compile("<0x([0-9A-Fa-f]{2})>")


def byte_characters() -> dict[int, str]:
    """How byte-level BPE writes each byte (Radford et al. 2019): as itself if that can be seen, else from U+0100 on."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {byte: chr(256 + index) for index, byte in enumerate(others)}


_BYTES = {character: byte for byte, character in byte_characters().items()}


def token_bytes(decoder: Json | None, origin: str | Path = "the tokenizer") -> Callable[[str], bytes]:
    """What turns a token into its bytes.  Raises ModelError for a decoder that does not work token by token.

    A space that a decoder removes from the beginning of a text stays: what continues a text begins with one.
    """
    steps = [_step(each, origin) for each in _each(decoder)]

    def surface(token: str) -> bytes:
        part: Part = token
        for step in steps:
            part = step(part) if isinstance(part, str) else part
        return part.encode() if isinstance(part, str) else part

    return surface


def _each(decoder: Json | None) -> list[Json]:
    """The steps of a decoder, up to that which puts all tokens together."""
    if decoder is None:
        return [{"type": "WordPiece", "prefix": ""}]
    if decoder.get("type") != "Sequence":
        return [decoder]
    steps: list[Json] = []
    for each in decoder.get("decoders", []):
        if each.get("type") == "Fuse":
            break
        steps += _each(each)
    return steps


def _step(decoder: Json, origin: str | Path) -> Step:
    kind, pattern = decoder.get("type"), decoder.get("pattern")
    if kind == "ByteLevel":
        return _byte_level
    if kind == "ByteFallback":
        return _byte_fallback
    if kind == "Fuse":
        return lambda token: token
    if kind == "Metaspace":
        mark = decoder.get("replacement", SPACE_MARK)
        return lambda token: token.replace(mark, " ")
    if kind == "Replace" and isinstance(pattern, dict) and isinstance(pattern.get("String"), str):
        return lambda token: token.replace(pattern["String"], decoder["content"])
    if kind == "WordPiece":
        prefix = decoder.get("prefix", "##")
        return lambda token: token.removeprefix(prefix) if prefix and token.startswith(prefix) else f" {token}"
    if kind == "BPEDecoder":
        suffix = decoder.get("suffix", "</w>")
        return lambda token: f"{token.removesuffix(suffix)} " if token.endswith(suffix) else token
    raise ModelError(f"{origin} shows its tokens by a decoder {kind!r:.60}, which cannot be done token by token")


def _byte_level(token: str) -> Part:
    if all(character in _BYTES for character in token):
        return bytes(_BYTES[character] for character in token)
    return token.encode()


def _byte_fallback(token: str) -> Part:
    name = _BYTE_NAME.fullmatch(token)
    return bytes([int(name[1], 16)]) if name else token
