"""In a notebook objects show themselves: what is in them, escaped, in its theme, with nothing to fetch."""

import base64
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import toolkit
from tests.pages.samples import TRICKY, page
from tests.pages.test_html import FETCHING, REFERENCES, Tree
from toolkit.display import progress_bar
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.outputs import Continuation, Translation
from toolkit.pages.blocks import Bars, Curves, Table, Text
from toolkit.training.run import Run


def shown(thing):
    """Read what a notebook is given, as a tree."""
    [around] = Tree(thing._repr_html_()).root.children
    assert around.attributes["class"] == "toolkit-shown"
    return around


def translation(**more):
    return Translation("म जान्छु।", -0.5, -0.5, True, [5, 6, 2], ["▁म", "▁जान्छु।", "</s>"], np.log([0.5, 0.8, 1]), **more)


def rows(tree):
    return [[cell.text for cell in row.children] for row in tree.all("tr")]


def test_each_block_shows_itself_and_fetches_nothing():
    blocks = [block for section in page().sections for block in section.blocks]
    assert len({type(block) for block in blocks}) == 11
    for block in (*blocks, page()):
        tree = shown(block)
        # A notebook that is not trusted shows neither SVG nor what a style sheet draws: pictures carry their data.
        assert not {each.name for each in tree.all()} & (FETCHING - {"img"} | {"svg"})
        sources = [each.attributes[name] for each in tree.all() for name in each.attributes if name in REFERENCES]
        assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert "<script" not in page()._repr_html_()


def test_a_model_lists_every_parameter_once_and_blocks_that_are_alike_together():
    model = GPT(GPTConfig(vocab_size=40, d_model=8, layers=3, num_heads=2, d_ff=16, bias=True))
    model.allocate()
    header, *lines, last = rows(shown(model))
    assert header == ["module", "parameters", "numbers", "share"]
    *counts, total = (int(line[2].replace(",", "")) for line in (*lines, last))
    assert sum(counts) == total == model.parameter_count
    [up] = [line for line in lines if line[0].endswith("feed_forward.layer.up")]
    assert up[:3] == ["trunk.decoder.blocks.0…2.feed_forward.layer.up", "weight (8, 16), bias (16,)", "432"]


def test_a_translation_shows_its_tokens_and_where_they_look():
    tree = shown(translation())
    assert [each.text for each in tree.all("th")] == ["␣म", "␣जान्छु।", "</s>"]
    assert tree.values == pytest.approx([0.5, 0.8, 1])
    assert not [*tree.all("img")]
    looks = shown(translation(attention=np.full((3, 2), 0.5), source_tokens=["▁go", "</s>"]))
    [map_drawn] = looks.all("img", "map")
    svg = base64.b64decode(map_drawn.attributes["src"].removeprefix("data:image/svg+xml;base64,")).decode()
    assert "␣जान्छु।" in svg
    assert "0.50" in svg


def test_a_long_continuation_is_cut_and_says_so():
    long = Continuation(TRICKY, TRICKY, [5] * 50, [TRICKY] * 50, [-1.0] * 50, -50.0, -1.0, "length")
    tree = shown(long)
    assert len([*tree.all("th")]) == 40
    assert "10 more tokens are not shown." in "".join(each.text for each in tree.all(kind="note"))


def test_a_run_shows_its_curves_once_it_has_any(tmp_path):
    run = Run(tmp_path, {})
    assert not [*shown(run).all("img")]
    for update in (1, 2, 3):
        run.log({"update": update, "loss": 3 / update, "seconds": update, "tokens_per_second": 10})
    run.results = ["chrF 50"]
    tree = shown(run)
    assert len([*tree.all("img")]) == 1
    assert "chrF 50" in "".join(each.text for each in tree.all("code"))


def test_the_style_holds_within_and_follows_the_theme():
    html = Text("one")._repr_html_()
    [style] = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert style.startswith(".toolkit-shown{")
    assert not re.findall(":root|@import|prefers-color-scheme", style)
    # Two rules stand at the top: the light one, and that of dark themes. All others are within them.
    depth, tops, start = 0, [], 0
    for place, character in enumerate(style):
        depth += (character == "{") - (character == "}")
        if character == "}" and depth == 0:
            tops.append(style[start : place + 1].partition("{")[0])
            start = place + 1
    assert start == len(style)
    assert tops == [".toolkit-shown", ':is([data-jp-theme-light="false"], .vscode-dark, [theme="dark"]) .toolkit-shown']


def test_what_models_show_has_no_path_of_the_machine():
    assert "/" not in "".join(each.text for each in shown(toolkit.load("en-ne-small")).all("p"))


def test_a_bar_is_a_widget_in_a_notebook_and_hidden_where_nobody_wants_it(monkeypatch, capsys):
    assert progress_bar(False, total=3).disable  # standard error is no terminal here
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))
    assert not progress_bar(False, total=3, leave=False).disable
    assert progress_bar(True, total=3).disable
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    assert progress_bar(False, total=3).disable  # IPython in a terminal without one


def test_pictures_of_ones_own_are_blocks():
    assert [each.text for each in shown(Bars("next", ["a", "b"], {"p": [0.9, 0.1]})).all("th")] == ["a", "b"]
    assert len([*shown(Curves("loss", {"right": ([1, 2], [2.0, 1.0])})).all("img")]) >= 1
    assert rows(shown(Table(("a", "b"), [("1", "2")]))) == [["a", "b"], ["1", "2"]]
