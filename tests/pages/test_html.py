"""Pages as HTML: well formed, everything escaped, nothing to fetch, every number the block's."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pages.samples import CAUSAL, LONG, NEPALI, TRICKY, beam, page, weights
from toolkit.pages import html
from toolkit.pages.blocks import (
    Bars,
    Code,
    Curves,
    Erratum,
    Formula,
    Heat,
    Maps,
    Numbers,
    Page,
    Section,
    Table,
    Text,
)
from toolkit.pages.curves import COLORS
from toolkit.pages.html import document

EMPTY = {"meta", "link", "br", "img"}
FETCHING = {"script", "img", "iframe", "object", "embed", "base", "audio", "video", "source", "image", "use", "form"}
REFERENCES = {"src", "srcset", "href", "xlink:href", "action", "data", "poster", "background", "ping", "formaction"}


@dataclass
class Element:
    name: str
    attributes: dict[str, str]
    text: str = ""
    children: list["Element"] = field(default_factory=list)

    def all(self, name="", kind=""):
        """All elements inside of a name and a class."""
        for child in self.children:
            if name in ("", child.name) and (not kind or kind in child.attributes.get("class", "").split()):
                yield child
            yield from child.all(name, kind)

    @property
    def values(self):
        """The full values of all numbers inside."""
        return [float(each.attributes["data-value"]) for each in self.all() if "data-value" in each.attributes]


class Tree(HTMLParser):
    """Reads a document; fails where an element is not closed."""

    def __init__(self, text):
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]
        self.feed(text)
        self.close()
        assert self.open == [self.root]

    def handle_starttag(self, name, attributes):
        assert len(dict(attributes)) == len(attributes)
        self.open[-1].children.append(Element(name, {key: value or "" for key, value in attributes}))
        if name not in EMPTY:
            self.open.append(self.open[-1].children[-1])

    def handle_startendtag(self, name, attributes):
        self.handle_starttag(name, attributes)
        self.handle_endtag(name)

    def handle_endtag(self, name):
        assert self.open.pop().name == name

    def handle_data(self, data):
        for element in self.open:
            element.text += data


def read(page):
    return Tree(document(page)).root


def shown(*blocks):
    """The section of a page with these blocks."""
    return next(read(Page("t", "a", [Section("s", blocks)])).all("section"))


@pytest.fixture(scope="module")
def full():
    return read(page())


def test_a_document_is_whole_and_says_what_it_is(full):
    html = next(full.all("html"))
    assert html.attributes["lang"] == "en"
    heads = [each.attributes for each in full.all("meta")]
    assert {"charset": "utf-8"} in heads
    assert any(each.get("name") == "viewport" for each in heads)
    assert len(list(full.all("h1"))) == 1
    assert [each.text for each in full.all("h2")][:2] == ["1 Words", "2 Numbers"]
    places = {each.attributes["id"] for each in full.all("section")}
    assert {each.attributes["href"].removeprefix("#") for each in full.all("a")} == places
    assert "60 of 80 tokens are shown." in next(full.all("ul", "cut")).text


def test_nothing_is_fetched_or_run(full):
    names = {each.name for each in full.all()}
    assert not names & FETCHING
    for each in full.all():
        for key, value in each.attributes.items():
            assert key not in REFERENCES or value.startswith(("#", "data:")), (each.name, key, value)
            assert not key.startswith("on")
    styles = [each.text for each in full.all("style")] + [each.attributes.get("style", "") for each in full.all()]
    assert not re.search(r"url\s*\(|@import|@font-face|expression|src\s*:", "".join(styles), re.IGNORECASE)


def test_who_cannot_see_is_told(full):
    assert all("scope" in each.attributes for each in full.all("th"))
    for each in full.all("svg"):
        assert "aria-label" in each.attributes
    assert all("aria-label" in each.attributes for each in full.all("div", "scroll"))
    assert all(list(each.all("figcaption")) for each in full.all("figure", "small"))


@given(st.text(st.sampled_from("<>&\"'/=; aकाँ`\x1b\x00\ud800␣"), max_size=30).map(lambda text: f"<b onx='1'>{text}"))
@settings(max_examples=6)
def test_every_text_is_escaped(text):
    heat = Heat(text, np.eye(2), [text, text], [text, text], None, text)
    blocks = [
        Text(text), Formula(text), Code(text, text), Numbers(text, np.eye(2), [text] * 2, [text] * 2, 3, text), heat,
        Maps([heat]), Bars(text, [text, text], {text: (1, 2), "b": (None, 3)}, (1,), text), Table([text], [[text]]),
        beam(), Curves(text, {text: ((1, 2), (3, 4))}, text, text), Erratum(text, text, text, text, text),
    ]  # fmt: skip
    tree = read(Page(text, text, [Section(text, blocks)] * 4, [text]))
    assert not list(tree.all("b"))
    assert not list(tree.all("script"))
    assert len(list(tree.all("h1"))) == 1
    assert tree.text.count("<b onx='1'>") >= 4 * 20


def test_labels_that_are_markup_are_shown_as_they_are(full):
    assert TRICKY.replace("\x1b", "\ufffd") in next(full.all("h1")).text
    assert "<script src" in next(full.all("ul", "tree")).text


@given(st.integers(1, 20), st.integers(1, 16), st.integers(0, 6), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=20)
def test_numbers_are_those_of_the_array(rows, columns, digits, kind):
    values = (np.random.default_rng(rows).standard_normal((rows, columns)) * 50).astype(kind)
    figure = next(shown(Numbers("x", values, [f"r{index}" for index in range(rows)], (), digits)).all("figure"))
    kept = values[:16, :12]
    assert figure.values == kept.ravel().tolist()
    written = [each.text for each in figure.all("td") if "data-value" in each.attributes]
    assert [float(each.replace("−", "-")) for each in written] == [
        round(value, digits) for value in kept.ravel().tolist()
    ]
    assert f"({rows}, {columns})" in next(figure.all("figcaption")).text
    assert (f"{rows - 16} of {rows} rows are not shown." in figure.text) == (rows > 16)
    assert (f"{columns - 12} of {columns} columns are not shown." in figure.text) == (columns > 12)


def test_every_number_shown_is_the_full_one_rounded(full):
    seen = 0
    for each in full.all():
        shown = each.text.rpartition(": ")[2].replace("−", "-").replace("∞", "inf")
        if "data-value" in each.attributes and shown not in ("", "masked"):
            value, written = float(each.attributes["data-value"]), shown
            decimals = len(written.partition("e")[0].partition(".")[2])
            power = int(written.partition("e")[2] or 0)
            assert float(written) == pytest.approx(value, rel=1e-3, abs=0.501 * 10.0 ** (power - decimals), nan_ok=True)
            seen += 1
    assert seen > 300


def cells(element):
    """The cells of maps: their colours, and what is said of each."""
    return [(each.attributes["fill"], each.text) for each in element.all("rect") if each.text]


def test_a_map_has_every_weight_and_greys_what_is_hidden():
    values = weights(np.random.default_rng(0), 6, 6)
    section = shown(Heat("self", values, NEPALI, NEPALI, CAUSAL, "Rows add up to 1."))
    assert next(section.all("svg", "map")).values == values.ravel().tolist()
    said = cells(section)
    assert [text.endswith(": masked") for _, text in said] == CAUSAL.ravel().tolist()
    assert {fill for fill, text in said if text.endswith(": masked")} == {"#cdcdcd"}
    assert said[0][1] == f"<s> → <s>: {values[0, 0]:.4f}"
    numbers = [
        each.text for each in section.all("text") if each.attributes["text-anchor"] == "middle" and "." in each.text
    ]
    assert numbers == [f"{each:.2f}" for each in values[~CAUSAL].tolist()]
    assert "Rows add up to 1. Grey cells are hidden by the mask." in section.text


def test_maps_share_one_scale():
    heads = [Heat(name, share * np.eye(2), "ab", "ab") for name, share in (("one", 0.25), ("two", 1.0))]
    section = shown(Maps(heads))
    weak, strong = (cells(each) for each in section.all("svg", "map"))
    assert weak[0][0] not in (weak[1][0], strong[0][0])
    assert weak[1][0] == strong[1][0]
    assert [each.text for each in next(section.all("svg", "scale")).all("text")] == ["0", "1"]


def test_what_is_cut_is_said(full, monkeypatch):
    assert "12 of 60 rows are not shown. 12 of 60 columns are not shown." in full.text
    assert "Of 1500 points, one of every 3 is drawn." in full.text
    monkeypatch.setattr(html, "MOST_CELLS", 70)
    section = shown(Maps([Heat(f"head {index}", np.eye(5), LONG[:5], LONG[:5]) for index in range(4)]))
    assert len(list(section.all("svg", "map"))) == 2
    assert "2 of 4 maps are not shown." in section.text


def test_bars_mark_what_was_chosen_and_what_was_not_possible():
    rows = list(shown(Bars("next", ("a", "b"), {"p": (0.75, 0.25), "top-k": (1.0, None)}, (1,))).all("tr"))[1:]
    assert [each.values for each in rows] == [[0.75, 1.0], [0.25]]
    assert ["chosen" in each.attributes.get("class", "") for each in rows] == [False, True]
    assert "excluded" in rows[1].text
    assert [each.attributes["style"] for each in rows[0].all("span", "bar")] == ["--v:0.7500", "--v:1.0000"]


def test_a_probability_that_is_not_zero_does_not_read_so():
    first, second, third = shown(Bars("next", ("a", "b", "c"), {"p": (0.0004, 0.0005, 0.0)})).all("tr")
    texts = [next(each.all("span")) for each in (first, second, third)]
    assert [each.text for each in texts] == ["<0.001", "0.001", "0.000"]
    assert [float(each.attributes["data-value"]) for each in texts] == [0.0004, 0.0005, 0.0]


def test_a_minus_in_a_sentence_is_as_wide_as_a_digit_and_a_hyphen_stays():
    page = shown(Text("-1 or (-2.5): `--layer -3`, “-4”, top-5, past-key"), Formula("a - b, -∞, 1e-09, past-key"))
    assert "−1 or (−2.5): --layer -3, “-4”, top-5, past-key" in page.text
    assert "a − b, −∞, 1e−09, past-key" in page.text


def test_a_tree_shows_every_branch():
    nodes = list(next(shown(beam()).all("ul", "tree")).all("div", "node"))
    assert [each.values for each in nodes] == [[0.0], [-0.21], [-0.5], [-0.75], [-9.1], [-2.2], [-3.1]]
    states = [each.attributes["title"] for each in nodes]
    assert states == ["chosen", "chosen", "chosen", "chosen", "dropped", "kept", "ended"]


def test_a_curve_has_its_points_its_axes_and_its_values():
    section = shown(
        Curves("loss", {"right": ((0, 5, 10), (4.0, 0.0, 2.0)), "wrong": ((0, 10), (1, 3))}, "update", "loss")
    )
    drawn = [each for each in next(section.all("svg", "plot")).all("polyline") if each.attributes["stroke"] in COLORS]
    first, second = (each.attributes["points"].split() for each in drawn)
    points = [tuple(map(float, each.split(","))) for each in first]
    assert points[0][0] < points[1][0] < points[2][0]
    assert points[0][1] < points[2][1] < points[1][1]  # downward in SVG
    assert len(second) == 2
    assert {"0", "2", "4", "6", "8", "10"} <= {each.text for each in section.all("text")}
    assert next(section.all("details")).values == [0, 4, 5, 0, 10, 2, 0, 1, 10, 3]


def test_an_erratum_shows_both_figures():
    aside = next(shown(Erratum("004", "row 2", "2.41", "2.381", "A slip.")).all("aside"))
    assert [each.text for each in aside.all("dd")] == ["2.41", "2.381"]
    assert "Document 004 errs: row 2" in aside.text
