"""The smallest PNG file there is: pixels of eight bits a colour, nothing else."""

import base64
import struct
import zlib

import numpy as np

from toolkit.functional.arrays import Array


def png_bytes(pixels: Array) -> bytes:
    """Pixels as a PNG file (ISO 15948).  pixels: (height, width, 3), uint8."""
    height, width, _ = pixels.shape
    no_filter = np.zeros((height, 1), np.uint8)  # of each row, in front of it
    rows = np.concatenate([no_filter, pixels.reshape(height, 3 * width)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def data_address(pixels: Array) -> str:
    """The same as an address that holds its own content, for a page or an SVG."""
    return f"data:image/png;base64,{base64.b64encode(png_bytes(pixels)).decode()}"


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
