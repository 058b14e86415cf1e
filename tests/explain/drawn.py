"""The contents of a picture."""

import struct
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    """All that is written in an SVG."""
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def cells(svg: str) -> list[tuple[str, str]]:
    """Read what is said of each cell, and its colour."""
    shapes = [each for each in ElementTree.fromstring(svg).iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    return [(each.find(f"{SVG}title").text, each.get("fill")) for each in shapes]


def png_size(content: bytes) -> tuple[int, int]:
    """Width and height, as the header of a PNG has them."""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", content[16:24])
