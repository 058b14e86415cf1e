"""GET /explain/TOPIC: the pages of `toolkit explain`, one at a time, and what is refused."""

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

pytest.importorskip("starlette")

from toolkit.serving.errors import Limits
from toolkit.serving.explanations import _NAMES, _readers

TEXT = "I am a boy."

# Of each field: values that are not taken.
FIELDS = {
    "text": ["", " ", "a\0b", "a" * 1001],
    "model": ["", "fr-de", "../x", "stories"],
    "num_beams": ["", "two", "0", "17", "1.5", "nan"],
    "length_penalty": ["", "x", "nan", "inf"],
    "repetition_penalty": ["", "x", "0"],
    "no_repeat_ngram_size": ["", "x", "-1"],
    "candidates": ["", "x", "0", "51"],
    "do_sample": ["", "yes"],
    "temperature": ["", "x", "-1", "nan"],
    "top_k": ["", "x", "-1"],
    "top_p": ["", "x", "2"],
    "min_p": ["", "x", "2"],
    "seed": ["", "x", "-1"],
    "source": ["zz"],  # the model has one direction
    "target": ["zz"],
    "layer": ["", "x", "0", "99"],
    "head": ["", "x", "0"],
    "max_tokens": ["", "x", "0", "65"],
}
SAMPLING = ("temperature", "top_k", "top_p", "min_p")


def ask(server, topic="translate", **query):
    return server.ask(f"/explain/{topic}?{urlencode({'text': TEXT} | query)}")


def refused(server, topic="translate", status=400, **query):
    found, answer, _ = ask(server, topic, **query)
    assert found == status, (query, answer)
    assert not re.search(r"Traceback|/.*/", answer["error"]["message"])
    return answer["error"]["message"]


def test_every_field_is_in_the_table():
    assert set(FIELDS) == set(_readers(Limits())) == {each for names in _NAMES.values() for each in names}


TOPICS = [("translate", "en-ne-small"), ("generate", "stories"), ("attention", "chat")]


@pytest.mark.parametrize(("topic", "model"), TOPICS)
def test_pages_are_those_of_the_command(server, topic, model):
    status, page, told = ask(server, topic, model=model)
    assert (status, told["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert page.endswith("</html>\n")
    assert "boy" in page
    # What its rule forbids is not in it: scripts, and anything to fetch.
    assert told["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    assert not re.findall(r"<script|<iframe|src=\"(?!data:)|@import|url\((?!data:)", page)
    assert told["referrer-policy"] == "no-referrer"


def test_settings_reach_the_page(server):
    """All at once, and a text that looks like a flag."""
    searched = {"num_beams": 3, "length_penalty": 0.5, "repetition_penalty": 1.5, "no_repeat_ngram_size": 2}
    places = {"candidates": 3, "layer": 1, "head": 1}
    status, page, _ = ask(server, text="--help", **searched, **places)
    assert (status, "--help" in page) == (200, True)
    drawn = dict.fromkeys(("temperature", "top_p", "min_p"), 0.5) | {"do_sample": "true", "top_k": 20}
    assert ask(server, "generate", **drawn, max_tokens=3)[1] != ask(server, "generate", **drawn, max_tokens=3)[1]
    assert ask(server, "generate", **drawn, max_tokens=3, seed=1)[0] == 200


@pytest.mark.parametrize("name", FIELDS)
def test_fields_are_refused_in_a_sentence(server, name):
    topic = "generate" if name == "max_tokens" else "translate"
    for value in FIELDS[name]:
        more = {"do_sample": "true"} if name in SAMPLING else {}
        status = 404 if name == "model" and value in ("", "fr-de", "../x") else 400
        refused(server, topic, status, **{**more, name: value})


def test_other_names_topics_and_models_are_refused(server):
    assert "did you mean num_beams?" in refused(server, num_beam=2)
    assert "max_tokens" in refused(server, max_tokens=3)  # of generate
    assert "did you mean attention?" in refused(server, "attentoin", 404)
    assert "explain/generate" in refused(server, model="stories")
    assert "explain/attention" in refused(server, "generate", model="chat")
    assert "text is missing" in server.ask("/explain/translate")[1]["error"]["message"]
    assert "given twice" in server.ask("/explain/translate?text=a&text=b")[1]["error"]["message"]
    assert server.ask("/explain/translate", {"text": TEXT})[0] == 405


def explaining(server):
    """Count the processes of the server that make pages."""
    found, number = 0, server.process.pid
    for child in Path(f"/proc/{number}/task/{number}/children").read_text("ascii").split():
        with suppress(OSError):  # it may have ended
            found += b"\0explain\0" in Path(f"/proc/{child}/cmdline").read_bytes()
    return found


def test_one_page_is_made_at_a_time_and_none_for_whoever_has_left(server):
    texts = [f"I have {number} books." for number in range(2)]
    with ThreadPoolExecutor(len(texts)) as pool:
        pending, most = [pool.submit(ask, server, text=text) for text in texts], 0
        while not all(each.done() for each in pending):
            most = max(most, explaining(server))
    assert (most, [each.result()[0] for each in pending]) == (1, [200] * 2)
    place = urlsplit(server.address)
    with socket.create_connection((place.hostname, place.port)) as client:
        client.sendall(f"GET /explain/attention?text={'a+' * 400} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
        while not explaining(server):
            pass
    while explaining(server):
        pass
    assert ask(server)[0] == 200
