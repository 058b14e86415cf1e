"""Maps of weights as SVG and PNG: what is in them, not how they look."""

import builtins
import struct
import unicodedata
import xml.etree.ElementTree as ElementTree
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.explain.drawn import SVG, cells, png_size, texts
from toolkit.errors import ConfigError, DataError
from toolkit.pages import drawing
from toolkit.pages.blocks import Heat, Maps, Page, Section, Text
from toolkit.pages.drawing import png_bytes
from toolkit.pages.maps import page_picture, picture

ROWS = ("म", "केटा", "हुँ।", "विद्यार्थी", "कि\u0928\u093c", "</s>")
COLUMNS = ("␣i", "␣am", '␣"a" & b', "␣boy", "<s>")


def heat(name: str = "layer 0, head 1", **changes: object) -> Heat:
    values = np.random.default_rng(0).dirichlet(np.ones(len(COLUMNS)), len(ROWS)).astype(np.float32)
    return Heat(**{"name": name, "values": values, "rows": ROWS, "columns": COLUMNS, **changes})


def test_every_cell_says_its_value_and_labels_are_text() -> None:
    shown = heat()
    svg = picture(shown).svg
    told = [words for words, _ in cells(svg)]
    expected = [(t, s) for t in range(len(ROWS)) for s in range(len(COLUMNS))]
    assert len(told) == len(expected)
    for words, (t, s) in zip(told, expected, strict=True):
        names, value = words.rsplit(": ", 1)
        assert names == f"{unicodedata.normalize('NFC', ROWS[t])} → {COLUMNS[s]}"
        assert float(value) == pytest.approx(shown.values[t, s], abs=5.1e-5)
    written = texts(svg)
    assert {*(unicodedata.normalize("NFC", name) for name in (*ROWS, *COLUMNS)), shown.name} <= set(written)
    numbers = Counter(f"{value:.2f}" for value in shown.values.flat)
    assert {number: written.count(number) for number in numbers} == numbers


def test_more_weight_is_darker_and_what_is_masked_is_grey() -> None:
    values = np.array([[0.0, 0.25, 0.5, 1.0]])
    hidden = np.array([[True, False, False, False]])
    (words, grey), *rest = cells(picture(Heat("", values, ["a"], list("wxyz"), hidden)).svg)
    assert words == "a → w: masked"
    assert len({grey[1:3], grey[3:5], grey[5:7]}) == 1
    brightness = [sum(bytes.fromhex(fill[1:])) for _, fill in rest]
    assert brightness == sorted(brightness, reverse=True)
    assert len(set(brightness)) == 3
    assert "masked" in texts(picture(Heat("", values, ["a"], list("wxyz"), hidden)).svg)
    assert "masked" not in texts(picture(Heat("", values, ["a"], list("wxyz"))).svg)


def test_maps_of_a_group_share_their_scale_and_groups_do_not() -> None:
    weak, strong = heat(values=np.full((6, 5), 0.1)), heat(values=np.full((6, 5), 0.8))
    together = [fill for _, fill in cells(picture(Maps([weak, strong])).svg)]
    apart = [fill for _, fill in cells(picture([weak, strong]).svg)]
    assert together[0] != together[-1]
    assert apart[0] == apart[-1] == together[-1]


def test_negative_values_have_colours_of_their_own() -> None:
    low, zero, high = (fill for _, fill in cells(picture(Heat("", np.array([[-2.0, 0, 2]]), "a", "xyz")).svg))
    assert bytes.fromhex(low[1:])[2] > bytes.fromhex(low[1:])[0]  # blue
    assert bytes.fromhex(high[1:])[0] > bytes.fromhex(high[1:])[2]  # red
    assert zero == "#f7f7f7"


def test_no_label_leaves_the_picture_and_no_map_covers_another() -> None:
    root = ElementTree.fromstring(picture([Maps([heat(f"head {n}") for n in range(7)]), heat()]).svg)
    width, height = float(root.get("width")), float(root.get("height"))
    for each in root.iter(f"{SVG}text"):
        assert 0 <= float(each.get("x")) <= width
        assert 0 <= float(each.get("y")) <= height
    frames = [
        tuple(float(each.get(name)) for name in ("x", "y", "width", "height"))
        for each in root.iter(f"{SVG}rect")
        if each.get("fill") == "none" and float(each.get("height")) > 9
    ]
    assert len(frames) == 8
    for n, (x, y, w, h) in enumerate(frames):
        assert x + w <= width
        assert y + h <= height
        assert all(x + w <= a or a + c <= x or y + h <= b or b + d <= y for a, b, c, d in frames[n + 1 :])


def test_a_large_map_is_made_of_pixels() -> None:
    names = [str(n) for n in range(120)]
    svg = picture(Heat("", np.random.default_rng(0).random((120, 120)), names, names)).svg
    assert not cells(svg)
    (image,) = ElementTree.fromstring(svg).iter(f"{SVG}image")
    assert image.get("href").startswith("data:image/png;base64,")
    assert texts(svg).count("119") == 2


def test_a_tiny_png_holds_its_pixels() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 5, 3)).astype(np.uint8)
    content = png_bytes(pixels)
    assert png_size(content) == (5, 3)
    start = content.index(b"IDAT") + 4
    rows = zlib.decompress(content[start : start + struct.unpack(">I", content[start - 8 : start - 4])[0]])
    assert np.array_equal(np.frombuffer(rows, np.uint8).reshape(3, 16)[:, 1:].reshape(3, 5, 3), pixels)


@pytest.mark.parametrize(
    "wrong", [heat(values=np.zeros((2, 2))), heat(values=np.zeros((0, 0)), rows=(), columns=()), []]
)
def test_what_cannot_be_drawn_is_told(wrong: Heat | list) -> None:
    with pytest.raises(ConfigError, match="map"):
        picture(wrong)


def test_the_maps_of_a_page() -> None:
    blocks = [Text("words"), heat("mean"), Maps([heat("one"), heat("two")])]
    page = Page("A page", "", [Section("first", blocks), Section("second", [heat("last")])])
    own = ("mean", "one", "two", "last", "first", "second")
    assert [name for name in texts(page_picture(page).svg) if name in own] == ["mean", "last", "first", "one", "two"]
    alike = Page("A page", "", [Section("first", [heat("P")]), Section("second", [heat("P")])])
    assert [name for name in texts(page_picture(alike).svg) if name in (*own, "P")] == ["first", "P", "second", "P"]
    with pytest.raises(ConfigError, match="no map of weights to draw in 'Empty'"):
        page_picture(Page("Empty", "", []))


def test_notebooks_see_the_svg() -> None:
    assert picture(heat())._repr_svg_() == picture(heat()).svg


def test_no_control_character_breaks_the_file() -> None:
    svg = picture(heat(rows=("\x00", "\x1b[0m", "\ud800", "\u200d", " a  b ", "]]>"))).svg
    assert {"\ufffd", "\ufffd[0m", " a  b ", "]]>"} <= set(texts(svg))


def test_save_goes_by_the_suffix(tmp_path: Path) -> None:
    picture(heat()).save(tmp_path / "map.SVG")
    assert (tmp_path / "map.SVG").read_text(encoding="utf-8") == picture(heat()).svg
    for name in ("map.pdf", "map", "png"):
        with pytest.raises(ConfigError, match=r"must end with \.png or \.svg"):
            picture(heat()).save(tmp_path / name)
    with pytest.raises(DataError, match="cannot be written"):
        picture(heat()).save(tmp_path / "nowhere" / "map.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["map.SVG"]


def test_png_has_twice_the_pixels_of_the_svg() -> None:
    pytest.importorskip("matplotlib")
    latin = picture(heat(rows=tuple("abcdef")))
    root = ElementTree.fromstring(latin.svg)
    assert png_size(latin.png()) == (2 * int(root.get("width")), 2 * int(root.get("height")))


def test_devanagari_in_a_png_needs_a_font(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(drawing, "devanagari_font", lambda: None)
    with pytest.raises(ConfigError, match="such as Noto Sans Devanagari"):
        picture(heat()).png()
    assert "विद्यार्थी" in texts(picture(heat()).svg)


def test_devanagari_letters_join_in_a_png() -> None:
    """The half form of a consonant is narrower than the consonant with its virama shown and the next one apart."""
    pytest.importorskip("matplotlib")
    if drawing.devanagari_font() is None:
        pytest.skip("no font here has Devanagari")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def width(text: str) -> float:
        figure = Figure()
        written = figure.text(0, 0, text, family=drawing.families(text), size=40)
        return written.get_window_extent(FigureCanvasAgg(figure).get_renderer()).width

    assert width("क्ष") < width("क्\u200cष")  # a zero-width non-joiner keeps them apart
    assert width("र्म") < width("रम")  # reph stands above
    picture(heat()).png()


@pytest.mark.parametrize("version", [None, (3, 10, 8)])
def test_without_matplotlib(version: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    class Old:
        __version_info__, __version__ = version, "3.10.8"

    def stub(name: str, *rest: object) -> object:
        if name == "matplotlib":
            if version is None:
                raise ImportError(name)
            return Old
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", stub)
    with pytest.raises(ConfigError, match=r"pip install 'matplotlib>=3\.11'"):
        picture(heat()).png()
    assert picture(heat()).svg
