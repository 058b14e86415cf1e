"""LibreTranslate's interface: every field, every form of a request, its clients, and the same translations as alone."""

import json
import math
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from urllib.parse import urlencode, urlsplit

import pytest

pytest.importorskip("starlette")

from toolkit import load_translator
from toolkit.serving.errors import ApiError, Limits
from toolkit.serving.languages import Served
from toolkit.serving.libretranslate import _readers
from toolkit.tokenization.languages import Languages

LEAST = {"q": "I am a boy.", "source": "en", "target": "ne"}
SEVERAL = ["I am a boy.", "", "She is here. He is there!\nGo.", "She is here."]
FORM = {"Content_Type": "application/x-www-form-urlencoded"}
NOT_WHOLE, NOT_A_NUMBER, NOT_A_FLAG = ["1", True, 1.5, [], {}], ["1", True, [], {}], [0, "true", [], {}]
NOT_TEXT = [1, True, [], {}]
HALF = json.loads('"\\ud800"')

# Of each field: values that are taken, values that are not.
FIELDS = {
    "q": (["I am.", "", [], ["I am.", ""]], [1, True, {}, [1], [None], HALF, ["a"] * 2001, "a" * 100_001]),
    "source": (["en", "auto", "ne"], [*NOT_TEXT, "zz", ""]),  # from ne to ne, nothing is to be done
    "target": (["ne", "en"], [*NOT_TEXT, "zz", "auto", ""]),
    "format": (["text", "html"], [*NOT_TEXT, "markdown"]),
    "alternatives": ([0, 2], [*NOT_WHOLE, -1, 16, 10_000]),
    "api_key": (["", "any"], NOT_TEXT),
    "model": (["en-ne-small"], [*NOT_TEXT, "stories", "fr-de"]),
    "details": ([True, False], NOT_A_FLAG),
    "num_beams": ([1, 3], [*NOT_WHOLE, 0, 17]),
    "length_penalty": ([0, 2.0], [*NOT_A_NUMBER, 101]),
    "early_stopping": (["settled"], [1, "sometimes", [], True]),  # true is of beams, and there is one
    "do_sample": ([True, False], NOT_A_FLAG),
    "temperature": ([1], [*NOT_A_NUMBER, -0.1, 0.5]),  # others are of sampling
    "top_k": ([0, 50], [*NOT_WHOLE, -1, 5]),
    "top_p": ([1], [*NOT_A_NUMBER, -0.1, 1.1, 0.5]),
    "min_p": ([0], [*NOT_A_NUMBER, -0.1, 1.1, 0.5]),
    "repetition_penalty": ([1.2], [*NOT_A_NUMBER, 0, -1]),
    "no_repeat_ngram_size": ([0, 2], [*NOT_WHOLE, -1]),
    "seed": ([0, 2**63 - 1], [*NOT_WHOLE, -1]),
    "max_tokens": ([1, 30], [*NOT_WHOLE, 0, 5000]),
    "min_tokens": ([0, 2], [*NOT_WHOLE, -1, 5000]),
    "prefix": (["म", "", ["म"]], [1, True, {}, [1], ["म", "म"], [], "म" * 5000]),
    "bad_words": ([[], "केटा", ["केटा"]], [1, True, {}, [1], [""], ["a"] * 17]),
    "split_sentences": ([True, False], NOT_A_FLAG),
    "max_wait": ([1, 30], [*NOT_A_NUMBER, -1, 31]),
}


@pytest.fixture(scope="module")
def translator():
    return load_translator("en-ne-small")


def refused(server, body, **headers):
    status, answer, told = server.ask("/translate", body, **headers)
    assert (status, set(answer)) == (400, {"error"}), (body, answer)
    assert (told["content-type"], "Traceback" in answer["error"]) == ("application/json", False)
    return answer["error"]


def test_every_field_is_in_the_table():
    assert set(FIELDS) == set(_readers(Limits()))


@pytest.mark.parametrize("name", FIELDS)
def test_fields_take_what_they_say_and_null_and_refuse_the_rest(server, name):
    right, wrong = FIELDS[name]
    for value in right:
        status, answer, _ = server.ask("/translate", LEAST | {name: value})
        assert status == 200, (value, answer)
        expected = list if name == "q" and isinstance(value, list) else str
        assert isinstance(answer["translatedText"], expected)
    for value in wrong:
        refused(server, LEAST | {name: value})
    if name in LEAST:
        assert refused(server, LEAST | {name: None}) == f"Invalid request: missing {name} parameter"
    else:
        assert server.ask("/translate", LEAST | {name: None})[1] == {"translatedText": "म केटा हुँ।"}


def test_a_field_that_there_is_not_is_named_with_the_nearest(server):
    assert refused(server, LEAST | {"alternative": 2}) == "there is no field alternative: did you mean alternatives?"
    form = urlencode(LEAST | {"temprature": "1"}).encode()
    assert "did you mean temperature?" in refused(server, form, **FORM)


def test_sentences_say_who_translates(server):
    served = "served are en to ne"
    assert refused(server, LEAST | {"source": "zz"}) == f"zz is not supported: {served}"
    back = refused(server, LEAST | {"source": "ne", "target": "en"})
    assert back.startswith("en is not available as a target language from ne")
    assert back.endswith(served)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff", b'{"q": 1e999}', b"[" * 5000, b'{"q": "a", "q": 1'], ids=repr
)
def test_bodies_that_are_no_object_are_refused(server, body):
    refused(server, body)
    assert server.ask("/detect", body)[0] == 400


def test_the_same_comes_of_json_forms_and_queries(server):
    expected = {"translatedText": "म केटा हुँ।"}
    typed = LEAST | {"num_beams": "2", "split_sentences": "true", "length_penalty": "0.5", "api_key": "", "seed": ""}
    raw = "&".join(f"{name}={value}" for name, value in (LEAST | {"prefix": "म"}).items()).replace(" ", "+").encode()
    parts = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in LEAST.items()
    )
    multipart = f"{parts}--x--\r\n".encode()
    assert server.ask("/translate", LEAST)[1] == expected
    for kind in ("text/plain", FORM["Content_Type"]):  # which curl says of all that it sends
        assert server.ask("/translate", json.dumps(LEAST).encode(), Content_Type=kind)[1] == expected
    assert server.ask("/translate", urlencode(typed).encode(), **FORM)[1] == expected
    assert server.ask("/translate", raw, **FORM)[1] == expected  # Devanagari that nobody has encoded, as of curl -d
    assert server.ask("/translate", multipart, Content_Type="multipart/form-data; boundary=x")[1] == expected
    assert server.ask(f"/translate?{urlencode(LEAST)}", b"")[1] == expected
    listed = urlencode([("q", "I am a boy."), ("q", ""), *list(LEAST.items())[1:]]).encode()
    assert server.ask("/translate", listed, **FORM)[1] == {"translatedText": ["म केटा हुँ।", ""]}


def test_forms_that_are_wrong_are_refused(server):
    for more in ({"num_beams": "two"}, {"num_beams": "1.5"}, {"details": "yes"}, {"alternatives": "1e4"}):
        refused(server, urlencode(LEAST | more).encode(), **FORM)
    assert "given twice" in refused(server, urlencode([*LEAST.items(), ("target", "ne")]).encode(), **FORM)
    assert "not UTF-8" in refused(server, b"q=\xff&source=en&target=ne", **FORM)
    assert "not UTF-8" in refused(server, b"q=%ff&source=en&target=ne", **FORM)
    assert "fields" in refused(server, b"&q=" * 11_000, **FORM)
    file = b'--x\r\nContent-Disposition: form-data; name="q"; filename="a.txt"\r\n\r\nI am.\r\n--x--\r\n'
    assert "is a file" in refused(server, file, Content_Type="multipart/form-data; boundary=x")
    refused(server, b"--y\r\n\r\n", Content_Type="multipart/form-data")
    refused(server, b"no form", Content_Type="multipart/form-data; boundary=x")  # the server's log stays empty


SETTINGS = [
    {},
    {"num_beams": 4, "length_penalty": 0.6},
    {"num_beams": 2, "split_sentences": False},
    {"prefix": "म", "bad_words": ["केटा"]},
    {"prefix": ["म", "म", "उनी", "ऊ"]},
    {"do_sample": True, "temperature": 0.8, "top_k": 0, "top_p": 0.9, "seed": 5},
    {"no_repeat_ngram_size": 2, "repetition_penalty": 1.3},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_translations_are_those_of_the_library(server, translator, settings):
    answer = server.ask("/translate", LEAST | {"q": SEVERAL} | settings)[1]
    assert answer == {"translatedText": translator.translate(SEVERAL, **settings)}


def test_lengths_are_those_of_the_library(server, translator):
    answer = server.ask("/translate", LEAST | {"max_tokens": 3, "min_tokens": 2})[1]
    assert answer["translatedText"] == translator.translate(LEAST["q"], max_new_tokens=3, min_new_tokens=2)
    assert server.ask("/translate", LEAST | {"max_tokens": 4096})[1] == {"translatedText": "म केटा हुँ।"}  # it has less
    assert refused(server, LEAST | {"min_tokens": 4000}) == "min_tokens is 4000: this model writes at most 256 tokens"


@pytest.mark.parametrize("settings", [{"num_beams": 4}, {"do_sample": True, "seed": 3, "temperature": 1.5}], ids=str)
def test_alternatives_and_details_are_those_of_the_library(server, translator, settings):
    answer = server.ask("/translate", LEAST | {"q": SEVERAL, "alternatives": 2, "details": True} | settings)[1]
    expected = translator.translate_n(SEVERAL, num_return_sequences=3, alignments=True, **settings)
    for text, others, detail, found in zip(
        answer["translatedText"], answer["alternatives"], answer["details"], expected, strict=True
    ):
        assert [each["text"] for each in detail["translations"]] == [each.text for each in found]
        assert [text, *others] == [*dict.fromkeys(each.text for each in found)] or (text, others, found) == ("", [], [])
        for given, each in zip(detail["translations"], found, strict=True):
            record = each.to_dict()
            assert given["ids"] == record["ids"]
            assert given["alignment"] == [list(pair) for pair in record["alignment"]]
            assert given["score"] == pytest.approx(record["score"], abs=1e-4)
            assert ("segments" in given, "attention" in given) == ("segments" in record, "attention" in record)
            mean = sum(record["token_log_probs"]) / len(record["token_log_probs"])
            assert given["probability"] == pytest.approx(math.exp(mean), abs=1e-4)
            assert given["calibrated"] is False
    assert ("seed" in answer["details"][0]) == ("seed" in settings)


def test_more_sentences_than_the_queue_holds_are_translated(server, translator):
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    many = [f"I have {one} books and {two} pens." for one in words for two in words] * 2
    assert server.ask("/translate", LEAST | {"q": many})[1]["translatedText"] == translator.translate(many)


def test_long_lists_leave_room_in_the_queue_for_others(server):
    many = LEAST | {"q": ["I have a dog and a big house."] * 60}  # ten of them are more than places and queue
    with ThreadPoolExecutor(10) as clients:
        lists, single = [clients.submit(server.ask, "/translate", many) for _ in range(10)], []
        while not all(each.done() for each in lists):
            single.append(server.ask("/translate", LEAST)[0])
    assert {each.result()[0] for each in lists} | set(single) == {200}


def test_auto_finds_each_text_by_its_script(server):
    body = {"q": ["I am a boy.", "म केटा हुँ।", "3 + 4", "नमस्ते hello"], "source": "auto", "target": "ne"}
    answer = server.ask("/translate", body)[1]
    assert answer["translatedText"][:2] == ["म केटा हुँ।", "म केटा हुँ।"]
    assert answer["detectedLanguage"] == [
        {"confidence": 100.0, "language": "en"},
        {"confidence": 100.0, "language": "ne"},
        {"confidence": 0.0, "language": "en"},
        {"confidence": 54.5, "language": "ne"},
    ]
    alone = server.ask("/translate", body | {"q": "म केटा हुँ।", "details": True, "alternatives": 1})[1]
    assert (alone["translatedText"], alone["alternatives"]) == ("म केटा हुँ।", [])
    assert alone["details"] == {"translations": []}
    assert "not available" in refused(server, body | {"target": "en"})  # one of them is Nepali


def test_languages_are_detected_among_those_that_are_served(server):
    assert server.ask("/detect", {"q": "Hello"})[1] == [{"confidence": 100.0, "language": "en"}]
    assert server.ask("/detect", "q=म".encode(), **FORM)[1] == [{"confidence": 100.0, "language": "ne"}]
    assert server.ask("/detect", {"q": "Привет"})[1] == [{"confidence": 0.0, "language": "en"}]
    for body in ({}, {"q": None}, {"q": 1}, {"q": "a", "source": "en"}, {"q": "a" * 100_001}):
        status, answer, _ = server.ask("/detect", body)
        assert (status, set(answer)) == (400, {"error"})


def test_languages_and_settings_are_told(server):
    expected = [
        {"code": "en", "name": "English", "targets": ["ne"]},
        {"code": "ne", "name": "Nepali", "targets": []},
    ]
    assert server.ask("/languages")[1] == server.ask("/languages", {})[1] == expected
    assert server.ask("/languages?model=en-ne-small")[1] == expected
    assert server.ask("/languages", {"model": "stories"})[0] == server.ask("/languages?source=en")[0] == 400
    settings = server.ask("/frontend/settings")[1]
    assert settings["language"] == {
        "source": {"code": "en", "name": "English"},
        "target": {"code": "ne", "name": "Nepali"},
    }
    assert (settings["charLimit"], settings["keyRequired"]) == (100_000, False)


def test_libretranslatepy_works(server):
    client = pytest.importorskip("libretranslatepy").LibreTranslateAPI(server.address, api_key="any")
    assert [each["code"] for each in client.languages()] == ["en", "ne"]  # GET with a body and a content type
    assert client.detect("म")[0]["language"] == "ne"
    assert client.translate("I am a boy.", "en", "ne") == "म केटा हुँ।"


def test_html_is_the_translation_without_tags_with_its_tags(server, translator):
    page = '<!DOCTYPE html><p>I am a <b class="x">boy</b>.</p>\n<script>if (a < b) go("I am.")</script>Tom &amp; I'
    answer = server.ask("/translate", LEAST | {"q": [page, "<br>"], "format": "html", "alternatives": 1})[1]
    boy, tom = translator.translate(["I am a boy.", "Tom & I"])
    script = '<script>if (a < b) go("I am.")</script>'
    for text in (answer["translatedText"][0], *answer["alternatives"][0]):
        assert text.startswith("<!DOCTYPE html><p>")
        assert '<b class="x">' in text
        assert f"</p>\n{script}" in text
    plain = server.ask("/translate", LEAST | {"q": page, "format": "html"})[1]["translatedText"]
    assert plain.replace('<b class="x">', "").replace("</b>", "") == (
        f"<!DOCTYPE html><p>{boy}</p>\n{script}{tom.replace('&', '&amp;')}"
    )
    assert answer["translatedText"][1] == "<br>"
    assert answer["alternatives"][1] == []
    assert "details" in refused(server, LEAST | {"format": "html", "details": True})
    assert "100 elements" in refused(server, LEAST | {"q": "<b>" * 200, "format": "html"})


class Reader:
    """Stands for the text side of a model that knows these languages."""

    def __init__(self, *codes):
        ids = {code: number for number, code in enumerate(codes, 10)}
        self.tokenizer = SimpleNamespace(languages=Languages(ids) if ids else None)

    def between(self, *codes):
        return codes


def hosts(**models):
    """Stand for the hosts of models: by two languages, or by a list of all that one knows."""
    found = {}
    for name, languages in models.items():
        reader = Reader(*languages) if isinstance(languages, list) else Reader()
        kind = "translator" if languages is not None else "chat"
        found[name] = SimpleNamespace(name=name, kind=kind, languages=list(languages or ()), reader=reader)
    return found


def test_languages_choose_the_model():
    many = ["eng_Latn", "npi_Deva", "fra_Latn"]
    served = hosts(one=("en", "ne"), back=("ne", "en"), other=("en", "ne"), many=many, chat=None)
    assert Served(served).between("en", "ne").host.name == "one"
    assert Served(served).between("ne", "en").host.name == "back"
    assert Served(served, "other").between("en", "ne").host.name == "other"
    direction = Served(served).between("fra_Latn", "ne")
    assert (direction.host.name, direction.reader) == ("many", ("fra_Latn", "npi_Deva"))
    assert Served(served, "many").between("en", "npi_Deva").reader == ("eng_Latn", "npi_Deva")
    assert Served(served, "many").between("ne", "npi_Deva") is None  # nothing is to be done
    assert Served(served).targets()["en"] == ["ne"]
    assert Served(served).targets()["fra_Latn"] == ["eng_Latn", "npi_Deva"]
    assert Served(served, "many").detected("नमस्ते") == {"confidence": 100.0, "language": "npi_Deva"}
    for source, target, sentence in [
        ("en", "fr", "fr is not supported"),
        ("de", "ne", "de is not supported"),
        ("de", "de", "de is not supported"),
    ]:
        with pytest.raises(ApiError, match=sentence):
            Served(hosts(one=("en", "ne"), chat=None)).between(source, target)
    for name, sentence in [("chat", "translates nothing"), ("two", "there is no model 'two'")]:
        with pytest.raises(ApiError, match=sentence):
            Served(served, name)
    nobody = Served(hosts(chat=None))
    assert nobody.listed() == []
    with pytest.raises(ApiError, match="no translator is served"):
        nobody.between("en", "ne")
    with pytest.raises(ApiError, match="no translator is served"):
        nobody.detected("a")


def figure(server, name):
    return float(re.search(rf'^{name}{{model="en-ne-small"}} (\S+)', server.ask("/metrics")[1], re.MULTILINE)[1])


def test_nothing_is_translated_for_a_client_that_has_left(server):
    many = ["I have a very big house and a small dog."] * 1000
    body, place = json.dumps(LEAST | {"q": many, "num_beams": 16}).encode(), urlsplit(server.address)
    before = figure(server, "toolkit_prompt_tokens_total")
    with socket.create_connection((place.hostname, place.port)) as client:
        head = f"POST /translate HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        while not figure(server, "toolkit_running"):
            pass
    while figure(server, "toolkit_running"):
        pass
    assert figure(server, "toolkit_prompt_tokens_total") - before < 10 * len(many) / 2  # ten tokens each
    assert server.ask("/translate", LEAST)[1] == {"translatedText": "म केटा हुँ।"}
