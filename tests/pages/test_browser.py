"""Pages in a real browser: they fetch nothing, show the library's numbers, and never scroll sideways."""

import json
import re
import shutil
import subprocess
from html import unescape

import numpy as np
import pytest

from tests.pages.samples import page
from toolkit.cli import parsed
from toolkit.pages.blocks import Heat, Maps, Numbers
from toolkit.pages.html import document

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
    [...figure.querySelectorAll("td[data-value], rect[data-value]")].map(cell => cell.dataset.value));
  const root = document.documentElement, wide = [...document.querySelectorAll("main *")].filter(each =>
    !each.closest(".scroll, pre, svg") && each.getBoundingClientRect().right > innerWidth + 1);
  const rows = [...document.querySelectorAll("th, td, .node, p, h1")];
  const name = location.pathname.match(/(\\w+)\\.html/)[1];
  parent.postMessage({name, inside: innerWidth, needed: root.scrollWidth,
    wide: wide.map(each => each.outerHTML.slice(0, 90)),
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
def pages(tiny_model, tiny_gpt):
    """Every kind of block, and a page of each topic of `toolkit explain`."""
    words = (
        ("attention",), ("attention", "I am a boy.", "--model", tiny_model), ("gradients", "rms_norm"),
        ("translate", "I am a boy.", "--model", tiny_model, "--num-beams", "2"),
        ("generate", "म केटा", "--model", tiny_gpt, "--max-new-tokens", "3"),
        ("training", "I am a boy.", "म केटा हुँ।", "--model", tiny_model),
        ("parallel", "She eats rice.", "--model", tiny_gpt, "--lengths", "4", "8"),
    )  # fmt: skip
    shown = {
        f"{topic}{index}": parsed([topic, *map(str, flags)], "toolkit explain").page()
        for index, (topic, *flags) in enumerate(words)
    }
    return {"blocks": page(), **shown}


@pytest.fixture(scope="module")
def seen(browser, pages, tmp_path_factory):
    """Open every page once: what the browser measures at each width, and the addresses that are asked for."""
    place = tmp_path_factory.mktemp("browser")
    documents = {name: document(each) for name, each in pages.items()}
    for name, text in documents.items():  # without the policy, so that a page would get what it asks for
        copy = re.sub("<meta http-equiv=.*?>", "", text).replace("</body>", f"{MEASURE}</body>")
        (place / f"{name}.html").write_text(copy, encoding="utf-8")
    image = '<img src="http://blocked.invalid/x.png"></body>'
    (place / "blocked.html").write_text(documents["blocks"].replace("</body>", image), encoding="utf-8")
    (place / "mistake.html").write_text(f'<img src="{MISTAKE}">', encoding="utf-8")
    frames = [*((name, NARROW) for name in pages), ("blocks", WIDE), ("blocked", WIDE), ("mistake", WIDE)]
    inside = (f'<iframe src="{name}.html" style="width:{width}px;height:700px"></iframe>' for name, width in frames)
    (place / "around.html").write_text(AROUND + "".join(inside), encoding="utf-8")
    log = place / "log.json"
    own = (f"--user-data-dir={place / 'profile'}", f"--log-net-log={log}", f"file://{place}/around.html")
    done = subprocess.run([browser, *FLAGS, *own], capture_output=True, encoding="utf-8", timeout=120)
    found = re.search('<pre id="found">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, f"the browser shows nothing: {done.stderr}"
    measured = {(each["name"], each["inside"]): each for each in json.loads(unescape(found[1]))}
    assert len(measured) == len(pages) + 1
    return measured, requests(log.read_text(encoding="utf-8"))


def requests(log):
    """The addresses that pages asked for, in a log of the browser's network; its own inquiries have no origin."""
    asked = [event["params"] for event in json.loads(log)["events"] if "initiator" in event.get("params", {})]
    return {each["url"] for each in asked if each["initiator"] != "not an origin"}


def test_nothing_is_requested(seen):
    _, asked = seen
    # The log does record a page that fetches something; the policy of ours would have stopped it.
    assert asked == {MISTAKE}


def test_no_page_scrolls_sideways(seen):
    for place, measured in seen[0].items():
        assert measured["needed"] <= measured["inside"], place
        assert measured["wide"] == [], place
    assert seen[0]["blocks", NARROW]["boxes"] > seen[0]["blocks", WIDE]["boxes"]  # those that scroll by themselves


def test_marks_above_and_below_letters_are_not_cut(seen):
    for (name, _), measured in seen[0].items():
        assert measured["cut"] == [], name


def test_the_numbers_are_the_librarys(seen, pages):
    count = 0
    for name, shown in pages.items():
        tables = [np.array(list(map(float, each))) for each in seen[0][name, NARROW]["table"]]
        for block in (each for section in shown.sections for each in section.blocks):
            for each in block.maps if isinstance(block, Maps) else [block]:
                if isinstance(each, Numbers | Heat):
                    rows, columns = (
                        (16, 12) if isinstance(each, Numbers) else (32, 32) if each is not block else (48, 48)
                    )
                    expected = np.atleast_2d(each.values)[:rows, :columns].ravel()
                    assert any(np.array_equal(table, expected, equal_nan=True) for table in tables), (name, each.name)
                    count += 1
    assert count > 100
