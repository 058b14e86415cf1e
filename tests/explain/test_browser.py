"""Pages in a real browser: they fetch nothing, show the library's numbers, and never scroll sideways."""

import json
import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest

from tests.explain.pages import page
from toolkit.explain.blocks import Heat, Maps, Numbers
from toolkit.explain.html import document

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NARROW, WIDE = 390, 1300
# Without a network, and without what a browser does on its own account.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-domain-reliability",
    "--no-default-browser-check", "--disable-default-apps", "--disable-breakpad", "--metrics-recording-only",
    "--proxy-server=127.0.0.1:9", "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=4000", "--dump-dom",
)  # fmt: skip
MISTAKE = "http://fetched.invalid/picture.png"

# What the browser made of a copy of the page, told to the page around it.
MEASURE = """<script>addEventListener("load", () => {
  const table = [...document.querySelectorAll("figure")].map(figure =>
    [...figure.querySelectorAll("td[data-value]")].map(cell => cell.dataset.value));
  const root = document.documentElement, wide = [...document.querySelectorAll("main *")].filter(each =>
    !each.closest(".scroll, pre, svg") && each.getBoundingClientRect().right > innerWidth + 1);
  const rows = [...document.querySelectorAll("th, td, .node, p, h1")];
  parent.postMessage({inside: innerWidth, needed: root.scrollWidth, wide: wide.map(each => each.outerHTML.slice(0, 90)),
    table, cut: rows.filter(each => each.scrollHeight > each.clientHeight + 1).map(each => each.outerHTML.slice(0, 90)),
    boxes: [...document.querySelectorAll(".scroll")].filter(each => each.scrollWidth > each.clientWidth).length}, "*");
});</script>"""
AROUND = """<!DOCTYPE html><meta charset="utf-8"><pre id="found"></pre><script>
  const found = [];
  addEventListener("message", event => {
    found.push(event.data); document.getElementById("found").textContent = JSON.stringify(found);
  });
</script>"""


@pytest.fixture(scope="module")
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    return path or pytest.skip("no Chromium or Chrome is installed, so no page can be opened")


@pytest.fixture(scope="module")
def seen(browser, tmp_path_factory):
    """What the browser measured at each width, and the addresses that it asked for: it is started once."""
    place = tmp_path_factory.mktemp("browser")
    text = document(page())
    (place / "page.html").write_text(text, encoding="utf-8")
    copy = re.sub("<meta http-equiv=.*?>", "", text).replace("</body>", f"{MEASURE}</body>")
    (place / "copy.html").write_text(copy, encoding="utf-8")
    (place / "mistake.html").write_text(f'<img src="{MISTAKE}">', encoding="utf-8")
    (place / "blocked.html").write_text(text.replace("</body>", '<img src="http://blocked.invalid/x.png"></body>'))
    frames = [("page", WIDE), ("copy", NARROW), ("copy", WIDE), ("mistake", 100), ("blocked", 100)]
    inside = "".join(
        f'<iframe src="{name}.html" style="width:{width}px;height:700px"></iframe>' for name, width in frames
    )
    (place / "around.html").write_text(AROUND + inside, encoding="utf-8")
    log = place / "log.json"
    command = [
        browser,
        *FLAGS,
        f"--user-data-dir={place / 'profile'}",
        f"--log-net-log={log}",
        f"file://{place}/around.html",
    ]
    dom = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60).stdout
    measured = json.loads(unescape(re.search('<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1]))
    return {each["inside"]: each for each in measured}, requests(log.read_text(encoding="utf-8"))


def requests(log):
    """The addresses that pages asked for, in a log of the browser's network; its own inquiries have no origin."""
    asked = [event["params"] for event in json.loads(log)["events"] if "initiator" in event.get("params", {})]
    return {each["url"] for each in asked if each["initiator"] != "not an origin"}


def test_nothing_is_requested(seen):
    _, asked = seen
    # The log does record a page that fetches something; the policy of ours would have stopped it.
    assert asked == {MISTAKE}


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_the_page_does_not_scroll_sideways(seen, width):
    measured = seen[0][width]
    assert measured["needed"] <= width
    assert measured["wide"] == []
    assert measured["boxes"] > 0  # what is too wide scrolls in its own box


def test_marks_above_and_below_letters_are_not_cut(seen):
    assert [each["cut"] for each in seen[0].values()] == [[], []]


def test_the_numbers_are_the_librarys(seen):
    tables = seen[0][NARROW]["table"]
    count = 0
    for block in (each for section in page().sections for each in section.blocks):
        for each in block.maps if isinstance(block, Maps) else [block]:
            if isinstance(each, Numbers | Heat):
                rows, columns = (16, 12) if isinstance(each, Numbers) else (48, 48)
                expected = np.atleast_2d(each.values)[:rows, :columns].ravel()
                assert any(_equal(table, expected) for table in tables), each.name
                count += 1
    assert count == 15


def _equal(shown, expected):
    return len(shown) == expected.size and np.array_equal(list(map(float, shown)), expected, equal_nan=True)
