"""The page in a real browser, against a real server with the models that ship."""

import base64
import gzip
import json
import math
import re
import shutil
import subprocess
import sys
import time
from http.client import HTTPConnection
from importlib.util import find_spec
from urllib.parse import urlsplit

import pytest

from tests.house import CLONE
from tests.serving.browser import SHIFT, Browser, find_browser
from toolkit.data.conversations import read_conversations

PAGE = CLONE / "toolkit" / "serving" / "page.html"
TEXT, WORD, ORIGIN = "I bought a book yesterday.", "किताब", "book"
QUESTIONS = ("My name is Sita.", "What is my name?", 'How do you say "I am a boy" in Nepali?')
LINE, LATENCY = 20_000, 200  # bytes a second, milliseconds
WIDTHS = (320, 390, 768, 1400)
PARTS = ("translate", "chat", "stories")
CONTROLS = {"button", "textbox", "combobox", "listbox", "option", "link", "spinbutton", "checkbox", "meter", "region"}

# Seven bytes of a stream come at a time: letters of Devanagari, which have three, are cut everywhere, and so are lines.
SCATTER = """const given = fetch;
window.fetch = async (...words) => {
  const answer = await given(...words);
  if (!(answer.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) return answer;
  const scattered = new TransformStream({ transform(part, out) {
    for (let each = 0; each < part.length; each += 7) out.enqueue(part.subarray(each, each + 7));
  } });
  return new Response(answer.body.pipeThrough(scattered), answer);
};"""

# The least contrast of a text with what is behind it, of all that is seen (WCAG 2.2, 1.4.3).
CONTRAST = """(() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const paint = colors => {
    context.clearRect(0, 0, 1, 1);
    for (const color of colors) { context.fillStyle = color; context.fillRect(0, 0, 1, 1); }
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const linear = each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4;
  const light = rgb => rgb.reduce((sum, each, place) => sum + linear(each / 255) * [0.2126, 0.7152, 0.0722][place], 0);
  const texts = [...document.querySelectorAll("body *")].filter(node =>
    node.checkVisibility({ visibilityProperty: true })
    && [...node.childNodes].some(each => each.nodeType === 3 && each.data.trim())
    && !node.matches(":disabled, option, .unseen, .mirror, .mirror *, script, style"));
  const found = texts.map(node => {
    const behind = [];
    for (let each = node; each; each = each.parentElement) behind.unshift(getComputedStyle(each).backgroundColor);
    const [one, two] = [light(paint(behind)), light(paint([...behind, getComputedStyle(node).color]))];
    return [(Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05), node.outerHTML.slice(0, 100)];
  });
  return [texts.length, ...found.sort((one, two) => one[0] - two[0])[0]];
})()"""


@pytest.fixture(scope="module")
def browser(server, tmp_path_factory):
    """A browser that has kept nothing yet."""
    path = find_browser() or pytest.skip("no Chromium or Chrome is installed, so the page cannot be opened")
    browser = Browser(path, tmp_path_factory.mktemp("profile"))
    try:
        browser.send("Page.addScriptToEvaluateOnNewDocument", source=SCATTER)
        yield browser
    finally:
        browser.close()


@pytest.fixture
def page(browser, server):
    """The page, opened anew and with nothing remembered; what it must never do is looked at afterwards."""
    browser.events.clear()
    browser.size(1400, 900)
    browser.open(f"{server.address}/")
    browser.do("localStorage.clear()")
    browser.open(f"{server.address}/")
    browser.until("!document.querySelector('#translate').hidden")
    yield browser
    asked = {each["request"]["url"] for each in browser.told("Network.requestWillBeSent")}
    assert {url for url in asked if not url.startswith((f"{server.address}/", "data:", "blob:"))} == set()
    assert browser.told("Runtime.exceptionThrown") + browser.told("Log.entryAdded") == []
    assert browser.told("Runtime.consoleAPICalled") == []


def words(page, selector):
    """The text of an element, as it is there."""
    return page.do(f"document.querySelector({json.dumps(selector)}).textContent")


def go(page, part):
    page.do(f"location.hash = '#{part}'")
    page.until(f"!document.querySelector('#{part}').hidden")


def translated(page, text):
    """Type a text, and wait for its translation."""
    go(page, "translate")
    page.do("document.querySelector('#source').select()")
    page.type(text)
    quoted = json.dumps(json.dumps(text, ensure_ascii=False))  # as it stands in the call that is shown
    page.until(f"document.querySelector('#translate pre')?.textContent.includes({quoted})")
    return words(page, "#target")


def say(page, text):
    page.do("document.querySelector('#message').focus()")
    page.type(text)
    page.press("Enter")


def replies(page):
    """Wait for the end of a reply, and list all messages."""
    page.until("document.querySelector('#send').textContent == 'Send'")
    return page.do("[...document.querySelectorAll('.message .words')].map(each => each.textContent)")


def set_fields(page, part, **values):
    """Type into fields of settings."""
    for name, value in values.items():
        page.do(f"document.querySelector('#{part}-settings').open = true")
        page.do(f"document.querySelector('#{part}-settings [name={name}]').select()")
        page.type(str(value))


def wrote(page):
    """Have a story written to its end, and return the text of it."""
    page.click("#write")
    page.until("document.querySelector('#story-end').textContent")
    return words(page, "#story")


def give_file(page, selector, path):
    """Choose a file in a field for files."""
    root = page.send("DOM.getDocument")["root"]["nodeId"]
    node = page.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
    page.send("DOM.setFileInputFiles", files=[str(path)], nodeId=node)


def asked(server, path, body):
    """Ask the server itself."""
    status, answer, _ = server.ask(path, body)
    assert status == 200, answer
    return answer


def test_a_text_is_translated_while_it_is_typed(page, server):
    page.do("document.querySelector('#source').focus()")
    for word in TEXT.split(" "):
        page.type(word if word == "I" else f" {word}")
    page.until("document.querySelectorAll('.word').length == 5")
    body = {"q": TEXT, "source": "en", "target": "ne", "num_beams": 4, "alternatives": 3, "details": True}
    expected = asked(server, "/translate", body)["details"]["translations"]
    assert words(page, "#target") == expected[0]["text"]
    shown = page.do("[...document.querySelectorAll('.others button')].map(each => each.lastChild.textContent)")
    assert shown == [each["text"] for each in expected]
    assert len(shown) == 4
    assert page.do("document.querySelector('#target').lang") == "ne"
    assert page.do("document.querySelector('#source').lang") == "en"
    assert f"{expected[0]['probability']:.0%}".replace("%", " %") in words(page, "#sure")
    assert "uncalibrated" in words(page, "#sure")
    sent = [each for each in page.told("Network.requestWillBeSent") if each["request"]["url"].endswith("/translate")]
    assert len(sent) < len(TEXT.split(" "))  # not for every word
    page.click(".others li:nth-child(2) button")
    assert words(page, "#target") == expected[1]["text"]
    page.send("Browser.grantPermissions", permissions=["clipboardReadWrite"], origin=server.address)
    page.click("#copy")
    page.until("document.querySelector('#copy').textContent == 'Copied'")
    assert page.do("navigator.clipboard.readText()") == expected[1]["text"]


def test_a_text_in_another_script_is_told(page):
    translated(page, "म केटा हुँ।")
    assert words(page, "#count") == "This looks like Nepali, and is read as English."
    translated(page, TEXT)
    assert "characters" in words(page, "#count")


def test_an_older_request_is_given_up_when_more_is_typed(page):
    page.send("Fetch.enable", patterns=[{"urlPattern": "*/translate"}])  # where it stays
    try:
        page.do("document.querySelector('#source').focus()")
        page.type("I bought")
        older = page.take("Fetch.requestPaused")
        page.type(" a book")
        failed = page.take("Network.loadingFailed")
        assert (failed["requestId"], failed["canceled"]) == (older["networkId"], True)
    finally:
        page.send("Fetch.disable")
    page.until("document.querySelector('.word')")
    assert json.loads(older["request"]["postData"])["q"] == "I bought"


def test_the_origin_of_a_word_is_found_by_keyboard(page, server):
    text = translated(page, f"I am a boy. {TEXT}")
    place = text.split().index(WORD)
    page.press("Tab")
    while not page.do("document.activeElement.matches('#target [role=option]')"):
        page.press("Tab")
    for _ in range(place):
        page.press("ArrowRight")
    assert words(page, ":focus") == WORD
    body = {"q": f"I am a boy. {TEXT}", "source": "en", "target": "ne", "num_beams": 4, "details": True}
    part = asked(server, "/translate", body)["details"]["translations"][0]["segments"][1]
    row = part["attention"][part["tokens"].index(f"▁{WORD}")]
    share = row[part["source_tokens"].index(f"▁{ORIGIN}")]
    assert words(page, "#reading").startswith(f"{WORD} comes from {ORIGIN}, {100 * share:.0f} % of its attention")
    lit = "[...document.querySelectorAll('#mirror span')].map(each => [+each.style.getPropertyValue('--share'), each])"
    shares = page.do(f"{lit}.map(([share, each]) => [share, each.textContent])")
    assert max(shares) == [pytest.approx(share), ORIGIN]
    assert page.do("document.querySelector('#reading b').lang") == "ne"
    page.press("End")
    assert words(page, ":focus") == text.split()[-1]
    page.press("Home")
    assert words(page, ":focus") == text.split()[0]


def test_a_conversation_of_three_turns_goes_out_and_comes_back(page, server, tmp_path):
    go(page, "chat")
    messages = []
    for question in QUESTIONS:
        say(page, question)
        said = replies(page)
        assert said[:-1] == [*messages, question]
        messages = said
    assert "Sita" in messages[3]
    assert page.do("document.querySelector('.message:last-child .words span[lang=ne]').textContent").startswith("म")
    assert re.fullmatch(r"\d+ of 512 tokens\.", words(page, "#context"))

    page.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path), eventsEnabled=True)
    page.do("document.querySelector('#system').value = 'Be brief.'; document.querySelector('#system').oninput()")
    page.click("#export")
    page.take("Browser.downloadProgress", lambda told: told["state"] == "completed")
    file = tmp_path / "conversation.json"
    [conversation] = read_conversations(file)
    assert [each.content for each in conversation.messages] == ["Be brief.", *messages]
    assert [each.role for each in conversation.messages] == ["system", *["user", "assistant"] * 3]

    page.do("document.querySelector('#delete').click()")
    assert page.do("document.querySelectorAll('.message[data-role]').length") == 0
    give_file(page, "#file", file)
    page.until("document.querySelectorAll('.message[data-role]').length == 6")
    assert replies(page) == messages
    assert page.do("document.querySelector('#system').value") == "Be brief."


def test_what_does_not_fit_is_marked_as_not_sent(page, tmp_path):
    go(page, "chat")
    said = [
        {"role": ("user", "assistant")[each % 2], "content": f"Number {each} of my long list."} for each in range(80)
    ]
    (tmp_path / "long.json").write_text(json.dumps({"messages": said}), "utf-8")
    give_file(page, "#file", tmp_path / "long.json")
    page.until("document.querySelectorAll('.message[data-role]').length == 80")
    say(page, QUESTIONS[0])
    assert len(replies(page)) == 82
    left = page.do("document.querySelectorAll('.message.unsent').length")
    assert 0 < left < 80
    assert f"tokens. {left} earlier messages not sent" in words(page, "#context")
    used, most = map(int, re.match(r"(\d+) of (\d+) tokens", words(page, "#context")).groups())
    assert most / 2 < used <= most == 512


def test_replies_are_asked_for_again_and_messages_edited(page):
    go(page, "chat")
    for question in QUESTIONS[:2]:
        say(page, question)
        first = replies(page)
    page.do(
        "[...document.querySelectorAll('.message button')].findLast(each => each.textContent == 'Regenerate').click()"
    )
    again = replies(page)
    assert again[:3] == first[:3]
    assert again[3]
    assert "temperature 0.8" in words(page, ".message:last-child")
    page.do("[...document.querySelectorAll('.message button')].find(each => each.textContent == 'Edit').click()")
    page.do("document.activeElement.select()")
    page.type("My name is")
    page.press("Enter", SHIFT)  # begins a line, and sends nothing
    page.type("Zanubia.")
    page.press("Enter")
    edited = replies(page)
    assert edited[0] == "My name is\nZanubia."
    assert len(edited) == 2
    page.click("#undo")
    assert replies(page) == again


@pytest.fixture
def company(server):
    """Sixteen texts that the model of conversations writes meanwhile, so that a reply takes its time."""
    given = {"model": "chat", "prompt": "I", "n": 16, "min_tokens": 4096, "max_tokens": 4096, "past_context": "slide"}
    connection = HTTPConnection(urlsplit(server.address).netloc)
    connection.request("POST", "/v1/completions", json.dumps(given), {"Content-Type": "application/json"})
    until_running(server, 1)
    yield
    connection.close()
    until_running(server, 0)


def until_running(server, count):
    """Wait until the model of conversations writes so many requests."""
    while f'toolkit_running{{model="chat"}} {count}.0' not in server.ask("/metrics")[1]:
        time.sleep(0.01)


def test_stop_frees_the_place(page, server, company):
    go(page, "chat")
    set_fields(page, "chat", temperature=5, top_k=0, seed=9)  # which does not end by itself before 400 tokens
    say(page, QUESTIONS[0])
    page.until("document.querySelector('.message[data-role=assistant] .words')?.textContent.length > 20")
    assert words(page, "#send") == "Stop"
    page.click("#send")
    assert 20 < len(replies(page)[-1]) < 500
    until_running(server, 1)
    assert words(page, ".message:last-child").endswith("stopped")


def test_links_lead_to_the_explanation_of_what_is_shown(page, server):
    translated(page, TEXT)
    go(page, "chat")
    say(page, QUESTIONS[1])
    replies(page)
    go(page, "stories")
    set_fields(page, "story", max_tokens=3, seed=3)
    text = wrote(page)
    for part, told in (("translate", WORD), ("chat", "What"), ("stories", text.split()[-1])):
        status, document, headers = server.ask(
            page.do(f"document.querySelector('#explain-{part}').href").removeprefix(server.address)
        )
        assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8"), document
        assert told in document


def test_a_token_shows_what_else_it_might_have_been(page, server):
    go(page, "stories")
    set_fields(page, "story", seed=3, max_tokens=20)
    text = wrote(page)
    body = {
        "model": "stories",
        "prompt": "Once upon a time",
        "logprobs": 10,
        "temperature": 0.7,
        "seed": 3,
        "max_tokens": 20,
    }
    [choice] = asked(server, "/v1/completions", body)["choices"]
    assert text == choice["text"]
    page.click("#story .token:nth-child(3)")
    rows = "[...document.querySelectorAll('#distribution .bar')].map(each => +each.style.getPropertyValue('--share'))"
    expected = sorted((math.exp(each) for each in choice["logprobs"]["top_logprobs"][2].values()), reverse=True)
    assert page.do(rows)[: len(expected)] == pytest.approx(expected, abs=1e-4)
    assert sum(page.do(rows)) == pytest.approx(1, abs=2e-3)
    chosen = math.exp(choice["logprobs"]["token_logprobs"][2])
    assert page.do(
        "+document.querySelector('#distribution .chosen .bar').style.getPropertyValue('--share')"
    ) == pytest.approx(chosen, abs=1e-4)
    before = page.do(rows)
    page.press("ArrowRight")
    page.press("Enter")
    assert page.do(rows) != before


def test_what_is_shown_as_a_call_gives_what_is_shown(page, tmp_path):
    text = translated(page, TEXT)
    calls = "[...document.querySelectorAll('#translate pre')].map(each => each.textContent)"
    curl, python = page.do(calls)
    if shutil.which("curl"):
        done = subprocess.run(["sh", "-c", curl], capture_output=True, check=True)
        assert json.loads(done.stdout)["translatedText"] == text
    done = subprocess.run([sys.executable, "-c", python], capture_output=True, check=True, encoding="utf-8")
    assert done.stdout == f"{text}\n"
    if find_spec("openai"):
        go(page, "stories")
        set_fields(page, "story", max_tokens=8)
        text = wrote(page)
        _, python = page.do(calls.replace("translate", "stories"))
        done = subprocess.run([sys.executable, "-c", python], capture_output=True, check=True, encoding="utf-8")
        assert done.stdout == f"{text}\n"


def answered(browser, path, body, status=200):
    """Wait until the page asks for a path, answer in the place of the server, and return what was asked."""
    paused = browser.take("Fetch.requestPaused", lambda told: told["request"]["url"].endswith(path))
    headers = [{"name": "Content-Type", "value": "application/json"}]
    answer = {"responseCode": status, "body": base64.b64encode(json.dumps(body).encode()).decode()}
    browser.send("Fetch.fulfillRequest", requestId=paused["requestId"], responseHeaders=headers, **answer)
    return paused["request"]


@pytest.fixture
def other(browser, server):
    """A browser whose questions about models and texts to translate `answered` answers, as another server would."""
    browser.events.clear()
    browser.open(f"{server.address}/")
    browser.do("localStorage.clear()")
    names = ("*/v1/models", "*/languages", "*/translate")
    browser.send("Fetch.enable", patterns=[{"urlPattern": name} for name in names])
    browser.send("Page.navigate", url=f"{server.address}/?other")
    yield browser
    browser.send("Fetch.disable")


def test_a_key_is_asked_for_and_parts_without_a_model_are_not_there(other, server):
    models = asked(server, "/v1/models", None)
    models["data"] = [each for each in models["data"] if each["kind"] == "language-model"]
    refused = {"error": {"message": "a key is needed", "type": "authentication_error", "param": None, "code": None}}
    for key in (None, "wrong", "s3cret"):
        if key:
            other.until("document.activeElement.id == 'key-value' && !document.querySelector('#key').hidden")
            assert words(other, "#key p") == "A key is needed."
            other.do("document.querySelector('#key-value').select()")
            other.type(key)
            other.press("Enter")
        request = answered(other, "/v1/models", *((models,) if key == "s3cret" else (refused, 401)))
        assert request["headers"].get("Authorization") == (key and f"Bearer {key}")
        answered(other, "/languages", [])
    other.until("!document.querySelector('#stories').hidden")
    parts = "[...document.querySelectorAll('header nav a:not([hidden])')].map(each => each.textContent)"
    assert other.do(parts) == ["Stories"]


def test_both_directions_are_swapped_and_a_language_is_detected(other, server):
    [model] = [each for each in asked(server, "/v1/models", None)["data"] if each["id"] == "en-ne-small"]
    back = {**model, "id": "ne-en", "languages": ["ne", "en"]}
    answered(other, "/v1/models", {"object": "list", "data": [model, back]})
    names = {"en": "English", "ne": "Nepali"}
    answered(other, "/languages", [{"code": each, "name": names[each], "targets": ["en", "ne"]} for each in names])
    other.until("!document.querySelector('#translate').hidden")
    other.do("document.querySelector('#source').focus(); document.querySelector('#source').select()")
    other.type("म केटा हुँ।")
    english = {"text": "I am a boy.", "finished": True, "probability": 0.5, "calibrated": False}
    english |= {"tokens": ["▁I", "▁am", "▁a", "▁boy", ".", "</s>"], "token_log_probs": [-0.1] * 6}
    english |= {"source_tokens": ["▁म", "▁केटा", "▁हुँ", "।", "</s>"], "attention": [[0.1, 0.6, 0.1, 0.1, 0.1]] * 6}
    answer = {"translatedText": "I am a boy.", "details": {"translations": [english]}}
    detected = {"detectedLanguage": {"language": "ne", "confidence": 100}}
    body = json.loads(answered(other, "/translate", answer | detected)["postData"])
    assert (body["source"], body["target"]) == ("auto", "en")
    other.until("document.querySelectorAll('.word').length == 4")
    assert other.do("[document.querySelector('#source').lang, document.querySelector('#target').lang]") == ["ne", "en"]
    assert other.do("document.querySelector('#from').selectedOptions[0].text") == "Detect: Nepali"
    other.click("#swap")
    body = json.loads(answered(other, "/translate", answer)["postData"])
    assert (body["q"], body["source"], body["target"]) == ("I am a boy.", "en", "ne")


def test_it_is_small_and_usable_in_time_on_a_slow_line(page, server):
    page.events.clear()
    page.send("Network.setCacheDisabled", cacheDisabled=True)
    slow = {"offline": False, "latency": LATENCY, "downloadThroughput": LINE, "uploadThroughput": LINE}
    page.send("Network.emulateNetworkConditions", **slow)
    try:
        page.send("Page.navigate", url=f"{server.address}/?slow")
        page.until("location.search == '?slow' && document.querySelector('#translate')?.hidden === false")
    finally:
        free = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        page.send("Network.emulateNetworkConditions", **slow | free)
        page.send("Network.setCacheDisabled", cacheDisabled=False)
    loaded = {each["requestId"]: each for each in page.told("Network.loadingFinished")}
    document = next(each for each in page.told("Network.requestWillBeSent") if each["type"] == "Document")
    size = loaded[document["requestId"]]["encodedDataLength"]
    assert len(gzip.compress(PAGE.read_bytes())) <= size <= 30_000
    # The time of the line itself, from what went over it, as that of the machine is none of the page: first the page,
    # then what it asks for at once.
    seconds = sum(each["encodedDataLength"] for each in loaded.values()) / LINE + 2 * LATENCY / 1000
    assert seconds < 5


def test_everything_is_reached_by_keyboard_and_is_seen_to_be(page):
    controls = "[...document.querySelectorAll('a, button, input, select, textarea, summary')]"
    seen = f"{controls}.filter(each => each.checkVisibility() && !each.disabled && !each.matches('.skip'))"
    outlined = """(() => { const now = document.activeElement; return now === document.body ? null
        : [now, now.closest(".pane")].some(each => each && getComputedStyle(each).outlineStyle !== "none"
          && parseFloat(getComputedStyle(each).outlineWidth) >= 2); })()"""
    for part in PARTS:
        go(page, part)
        page.do(f"document.querySelectorAll('details').forEach(each => {{ each.open = true; }}); window.left = {seen}")
        expected = page.do("left.length")
        assert expected > 12
        page.do("document.activeElement.blur(); document.querySelector('.skip').focus()")
        for _ in range(2 * expected):
            page.press("Tab")
            if (shown := page.do(outlined)) is None:
                break
            assert shown, page.do("document.activeElement.outerHTML.slice(0, 100)")
            page.do("left = left.filter(each => each !== document.activeElement)")
        assert page.do("left.map(each => each.outerHTML.slice(0, 100))") == []


def test_pictures_names_contrast_and_room(page, tmp_path):
    filled = {
        "translate": lambda: translated(page, TEXT),
        "chat": lambda: (say(page, QUESTIONS[2]), replies(page)),
        "stories": lambda: wrote(page),
    }
    for part in PARTS:
        go(page, part)
        filled[part]()
        page.do("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        page.do(f"document.querySelector('#{part} [role=option]')?.click()")
        tree = page.send("Accessibility.getFullAXTree")["nodes"]
        seen = [each for each in tree if not each["ignored"] and each["role"]["value"] in CONTROLS]
        assert len(seen) > 12
        assert [each for each in seen if not each.get("name", {}).get("value", "").strip()] == []
        for dark in (False, True):
            for width in WIDTHS:
                page.size(width, 900, dark)
                assert page.do("document.documentElement.scrollWidth") <= width, (part, width)
            count, least, where = page.do(CONTRAST)
            assert count > 20
            assert least >= 4.5, (part, dark, where)
            for width in (390, 1400):
                page.size(width, 900, dark)
                page.size(width, page.do("document.documentElement.scrollHeight"), dark)  # a window as high as the page
                page.picture(tmp_path / f"{part}-{width}-{'dark' if dark else 'light'}.png")
        page.size(1400, 900)
