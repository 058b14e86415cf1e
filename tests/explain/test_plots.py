"""Pictures: maps of weights as SVG and PNG, training curves; what is in them, not how they look."""

import builtins
import struct
import unicodedata
import xml.etree.ElementTree as ElementTree
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.explain.run_logs import training, validation, write_log
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.explain import drawing
from toolkit.explain.blocks import Heat, Maps, Page, Section, Text
from toolkit.explain.curves import LIKELIHOOD, CurvePicture, color, is_logarithmic, panels
from toolkit.explain.logs import AXES, find_logs, read_log
from toolkit.explain.pictures import page_picture, picture
from toolkit.explain.tiny_png import png_bytes

SVG = "{http://www.w3.org/2000/svg}"
ROWS = ("म", "केटा", "हुँ।", "विद्यार्थी", "कि\u0928\u093c", "</s>")
COLUMNS = ("␣i", "␣am", '␣"a" & b', "␣boy", "<s>")


def heat(name: str = "layer 0, head 1", **changes: object) -> Heat:
    values = np.random.default_rng(0).dirichlet(np.ones(len(COLUMNS)), len(ROWS)).astype(np.float32)
    return Heat(**{"name": name, "values": values, "rows": ROWS, "columns": COLUMNS, **changes})


def texts(svg: str) -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def cells(svg: str) -> list[tuple[str, str]]:
    """What is said of each cell, and its colour."""
    shapes = [each for each in ElementTree.fromstring(svg).iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    return [(each.find(f"{SVG}title").text, each.get("fill")) for each in shapes]


def png_size(content: bytes) -> tuple[int, int]:
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", content[16:24])


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


# Training curves.


def test_all_numbers_of_a_log_are_series(tmp_path: Path) -> None:
    rollout = {"update": 1, "epoch": 0, "rollout": {"reward": 0.5}}
    mixed = validation(20, signature="nrefs:1", best=True, odd=None)
    log = read_log(write_log(tmp_path / "a", training(10, own_figure=3), mixed, training(20), rollout), "a")
    names = {
        ("training", name) for name in ("learning_rate", "loss", "gradient_norm", "tokens_per_second", "own_figure")
    }
    assert log.series.keys() == names | {
        ("validation", "validation_loss"),
        ("validation", "chrf"),
        ("rollout", "reward"),
    }
    assert log.series["training", "loss"].updates.tolist() == [10, 20]
    assert log.series["training", "loss"].values.tolist() == [0.5, 0.25]
    assert log.series["training", "own_figure"].values.tolist() == [3]


def test_the_axes(tmp_path: Path) -> None:
    log = read_log(write_log(tmp_path / "a", training(10), training(20), validation(15)), "a")
    updates = np.array([0.0, 10, 15, 20])
    assert {axis: log.at(updates, axis).tolist() for axis in AXES} == {
        "updates": [0, 10, 15, 20],
        "tokens": [0, 1000, 1500, 2000],
        "seconds": [0, 20, 30, 40],
    }


def test_a_line_that_is_being_written_is_left_out_and_a_damaged_one_told(tmp_path: Path) -> None:
    whole = read_log(write_log(tmp_path / "a", training(10)), "run")
    cut = read_log(write_log(tmp_path / "b", training(10), rest='{"update": 20, "lo'), "run")
    assert cut.series.keys() == whole.series.keys()
    assert len(cut.series["training", "loss"].values) == 1
    for number, rest in enumerate(
        ('{"upda\n', "7\n", '{"update": "x"}\n', "\udcff\n".encode("utf-8", "replace").decode())
    ):
        run = write_log(tmp_path / f"c{number}", training(10), rest=rest)
        with pytest.raises(DataError, match=r"log\.jsonl, line 2 is damaged"):
            read_log(run, "run")


def test_what_is_not_finite_is_a_gap(tmp_path: Path) -> None:
    log = read_log(write_log(tmp_path / "a", training(10, loss=float("nan")), training(20, loss=float("inf"))), "a")
    assert np.isnan(log.series["training", "loss"].values).all()


def test_rollbacks_and_divergence(tmp_path: Path) -> None:
    back = {"update": 11, "rollback": {"from": 17, "to": 10, "learning_rate_factor": 0.5}}
    log = read_log(write_log(tmp_path / "a", training(10), back, {"update": 15, "diverged": "no number"}), "a")
    assert (log.rollbacks, log.diverged) == ([(17, 10)], 15)


def test_validation_stands_beside_the_same_quantity(tmp_path: Path) -> None:
    smoothed = [training(10, negative_log_likelihood=0.3), validation(10, perplexity=2.0)]
    equal = [training(10, negative_log_likelihood=0.5), validation(10, perplexity=2.0)]
    logs = [read_log(write_log(tmp_path / name, *lines), name) for name, lines in (("s", smoothed), ("e", equal))]
    for chosen, metric in ((logs, LIKELIHOOD), (logs[1:], "loss")):
        holding = [panel.metric for panel in panels(chosen) if ("validation" in {part for _, part, _ in panel.lines})]
        assert holding == [metric, "perplexity", "chrf"]
    assert LIKELIHOOD not in {panel.metric for panel in panels(logs[1:])}
    assert [part for _, part, _ in panels(logs, ["loss"])[0].lines] == ["training", "validation"] * 2


def test_metrics_are_drawn_in_the_order_asked_for(tmp_path: Path) -> None:
    logs = [read_log(write_log(tmp_path / "a", training(10), validation(10)), "a")]
    assert [panel.metric for panel in panels(logs, ["chrf", "loss", "chrf"])] == ["chrf", "loss"]
    with pytest.raises(ConfigError, match="no metric 'los' in these logs: choose from loss, chrf, learning_rate"):
        panels(logs, ["los"])


def test_names_tell_runs_apart(tmp_path: Path) -> None:
    for name in ("one/seed-1", "one/seed-2", "two/seed-1"):
        write_log(tmp_path / name, training(10))
    (tmp_path / "one" / "new").mkdir()
    (tmp_path / "one" / "new" / "settings.json").write_text("{}")
    logs, empty = find_logs([tmp_path / "one", tmp_path / "two"])
    assert [log.name for log in logs] == [str(tmp_path / "one/seed-1"), "seed-2", str(tmp_path / "two/seed-1")]
    assert empty == [str(tmp_path / "one/new")]
    assert [log.name for log in find_logs([tmp_path / "two/seed-1"])[0]] == ["seed-1"]
    with pytest.raises(ModelError, match="new has no figures in its log"):
        find_logs([tmp_path / "one", tmp_path / "one/new"])


def test_which_axes_are_logarithmic() -> None:
    falling = np.array([7.0, 0.1])
    assert is_logarithmic("value_loss", falling)
    assert not is_logarithmic("chrf", falling)
    assert not is_logarithmic("loss", np.array([2.0, 1.0]))
    assert not is_logarithmic("loss", np.array([7.0, 0.0]))


def test_colours_differ() -> None:
    pytest.importorskip("matplotlib")
    for count in (10, 30):
        assert len({color(number, count) for number in range(count)}) == count


def test_curves_hold_the_values_of_the_log(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    back = {"update": 11, "rollback": {"from": 17, "to": 10, "learning_rate_factor": 0.5}}
    run = write_log(tmp_path / "_प्रयोग $x_1$", training(10), validation(10), back, training(20), validation(20))
    other = write_log(tmp_path / "b", training(10), {"update": 12, "diverged": "no number"})
    logs, _ = find_logs([run, other])
    curves = CurvePicture(logs)
    axes = curves.figure().axes[0]
    lines = [line for line in axes.lines if len(line.get_xdata()) and line.get_transform() == axes.transData]
    assert [line.get_xydata().tolist() for line in lines] == [
        [[10, 0.5], [20, 0.25]],
        [[10, 0.6], [20, 0.3]],
        [[10, 0.5]],
    ]
    assert len({line.get_color() for line in lines}) == 2
    svg = curves.svg
    written = texts(svg)
    assert {"_प्रयोग $x_1$", "b", "training", "validation", "loss", "chrF", "updates", "diverged"} <= set(written)
    assert "back from update 17 to 10" in written


def test_a_picture_of_curves_is_the_same_every_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    curves = CurvePicture([read_log(write_log(tmp_path / "a", training(10), training(20)), "a")], ["loss"])
    assert curves.svg == curves.svg
    width, height = curves.figure().get_size_inches()
    assert png_size(curves.png()) == (int(width * 192), int(height * 192))
