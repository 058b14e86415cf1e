"""LibreTranslate's interface: POST /translate, /languages, /detect and /frontend/settings, as its clients know them."""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolkit.decoding import GenerationConfig
from toolkit.errors import ConfigError
from toolkit.outputs import Translation, distinct
from toolkit.serving.answers import computed, json_response
from toolkit.serving.connection import json_object, while_connected
from toolkit.serving.errors import ApiError, Limits
from toolkit.serving.fields import Reader, check_unicode, choice, flag, number, read_fields, text, texts, whole, wrong
from toolkit.serving.languages import Direction, Served, name_of
from toolkit.serving.markup import Markup
from toolkit.serving.translations import Work, detail

# What a client sends that is no form is told to it, not to the log.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)

_LARGEST = 2**63 - 1
_LONGEST_WORD = 256  # characters of a bad word
# Milliseconds without a key after which LibreTranslate's page, and ours, translate what has been typed.
_TYPING_PAUSE = 400

_MOST_FIELDS = 10_000
_LISTS = ("q", "prefix", "bad_words")  # of which a form may have several
_FLAGS = ("details", "do_sample", "split_sentences")
_DECODING = (
    *("num_beams", "length_penalty", "early_stopping", "do_sample", "temperature", "top_k", "top_p", "min_p"),
    *("repetition_penalty", "no_repeat_ngram_size", "seed"),
)
_SETTINGS = ("prefix", "bad_words", "split_sentences")


def _readers(limits: Limits) -> dict[str, Reader]:
    return {
        **dict.fromkeys(("source", "target", "api_key", "model"), text),
        "q": _some(limits.texts),
        "format": choice("text", "html"),
        "alternatives": whole(0, min(limits.beams, limits.n) - 1),
        "details": flag,
        "num_beams": whole(1, limits.beams),
        "length_penalty": number(-100.0, 100.0),
        "early_stopping": choice(True, False, "never", "settled"),
        "do_sample": flag,
        "temperature": number(0),
        "top_k": whole(0, _LARGEST),
        "top_p": number(0, 1.0),
        "min_p": number(0, 1.0),
        "repetition_penalty": number(0),
        "no_repeat_ngram_size": whole(0, _LARGEST),
        "seed": whole(0, _LARGEST),
        "max_tokens": whole(1, limits.tokens),
        "min_tokens": whole(0, limits.tokens),
        "prefix": _some(limits.texts),
        "bad_words": texts(limits.stops, _LONGEST_WORD),
        "split_sentences": flag,
        "max_wait": number(0, limits.wait),
    }


def _some(most: int) -> Reader:
    """Make a reader of a text, or of a list of up to `most` texts."""

    def read(value: Any, name: str) -> str | list[str]:
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise wrong(value, name, "text, or a list of texts")
        if len(found) > most:
            raise ApiError(400, f"Invalid request: {name} has {len(found)} texts, and the limit is {most}", param=name)
        check_unicode(found, name)
        return value

    return read


async def _fields(request: Request, readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Read the fields of a request: of its query, and of its body in JSON or as a form.  Raises ApiError.

    An object of JSON is taken for one even where it says that it is a form, as `curl -d` does.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    given = _typed(_pairs(request.scope["query_string"], "query"), readers)
    if kind == "multipart/form-data":
        async with request.form(max_fields=_MOST_FIELDS, max_part_size=request.app.state.limits.body) as form:
            given |= _typed(form.multi_items(), readers)
    elif kind == "application/x-www-form-urlencoded" and not (await request.body()).lstrip().startswith(b"{"):
        given |= _typed(_pairs(await request.body(), "form"), readers)
    elif await request.body():
        given |= await json_object(request)
    return read_fields(given, readers)


def _pairs(encoded: bytes, what: str) -> list[tuple[str, str]]:
    """Read what is encoded as forms are.  Letters may also stand there as they are, as `curl -d` sends them."""
    try:
        return parse_qsl(encoded.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except UnicodeDecodeError:
        raise ApiError(400, f"the {what} of the request is not UTF-8") from None
    except ValueError:
        raise ApiError(400, f"the {what} of the request has more than {_MOST_FIELDS} fields: divide it") from None


def _typed(items: Iterable[tuple[str, Any]], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Read the texts of a query or a form as what they stand for; an empty one, but for q, is not given."""
    found: dict[str, Any] = {}
    for name, value in items:
        if isinstance(value, UploadFile):
            raise ApiError(400, f"{name[:40]} is a file: give it as text", param=name[:40])
        if value == "" and name not in ("q", "prefix"):
            value = None
        elif name in _FLAGS or name == "early_stopping":
            value = {"true": True, "1": True, "false": False, "0": False}.get(value.lower(), value)
        elif name in readers and readers[name] is not text and name not in (*_LISTS, "format"):
            for number_of in (int, float):
                with suppress(ValueError):
                    value = number_of(value)
                    break
        if name in found and name not in _LISTS:
            raise ApiError(400, f"{name[:40]} is given twice", param=name[:40])
        if name in found:
            value = [*(found[name] if isinstance(found[name], list) else [found[name]]), value]
        found[name] = value
    return found


def _check_key(request: Request, given: Mapping[str, Any]) -> None:
    """Raise ApiError where keys are needed, and neither a header nor the request has one."""
    if not request.state.authorized and not request.app.state.keys.permits(given.get("api_key")):
        known = "Invalid API key" if given.get("api_key") else "an API key is needed: api_key, or Authorization: Bearer"
        raise ApiError(403, known, param="api_key")


def _require(given: Mapping[str, Any], name: str) -> Any:
    if name not in given:
        raise ApiError(400, f"Invalid request: missing {name} parameter", param=name)
    return given[name]


async def _translate(request: Request) -> Response:
    limits = request.app.state.limits
    given = await _fields(request, _readers(limits))
    _check_key(request, given)
    asked = _Asked(request, given)
    try:
        answer = await while_connected(request, asked.answer())
    finally:
        asked.note(request.state.log)
    return await computed(asked.length, json_response, answer)


class _Asked:
    """A request to translate: texts, between which languages, and how."""

    def __init__(self, request: Request, given: Mapping[str, Any]):
        """Raises ApiError for fields that are missing, or contradict each other."""
        limits: Limits = request.app.state.limits
        q, self._source, self._target = _require(given, "q"), _require(given, "source"), _require(given, "target")
        self._several, self._texts = isinstance(q, list), q if isinstance(q, list) else [q]
        self.length = sum(map(len, self._texts))
        if self.length > limits.characters:
            message = f"Invalid request: request ({self.length}) exceeds text limit ({limits.characters})"
            raise ApiError(400, message, param="q")
        self._html, self._details = given.get("format") == "html", given.get("details", False)
        if self._html and self._details:
            raise ApiError(400, "details are of plain text: leave them out, or format", param="details")
        self._served = Served(request.app.state.hosts, given.get("model"))
        self._alternatives, self._wait = given.get("alternatives", 0), given.get("max_wait", limits.wait)
        self._config = _config(given, self._alternatives)
        self._settings = {name: given[name] for name in _SETTINGS if name in given}
        if self._html and "prefix" in given:
            raise ApiError(400, "prefix is of plain text: leave it out, or format", param="prefix")
        if isinstance(given.get("prefix"), list) and len(given["prefix"]) != len(self._texts):
            message = f"prefix is a list of {len(given['prefix'])}, and q has {len(self._texts)}: give one for each"
            raise ApiError(400, message, param="prefix")
        self._works: list[Work] = []

    async def answer(self) -> dict[str, Any]:
        """Translate -> the answer."""
        detected = [self._served.detected(each) for each in self._texts] if self._source == "auto" else []
        sources = [each["language"] for each in detected] or [self._source] * len(self._texts)
        found: list[tuple[list[str], dict[str, Any]]] = [([each], {"translations": []}) for each in self._texts]
        for source in dict.fromkeys(sources):
            direction = self._served.between(source, self._target)
            places = [place for place, each in enumerate(sources) if each == source]
            if direction is not None:
                results = await self._translated(direction, places)
                for place, each in zip(places, results, strict=True):
                    found[place] = each
        if self._several and not self._texts:
            self._served.between(self._source, self._target)
        answer: dict[str, Any] = {"translatedText": [texts[0] for texts, _ in found]}
        if self._alternatives:
            answer["alternatives"] = [texts[1:] for texts, _ in found]
        if detected:
            answer["detectedLanguage"] = detected
        if self._details:
            answer["details"] = [each for _, each in found]
        return answer if self._several else {name: value[0] for name, value in answer.items()}

    async def _translated(self, direction: Direction, places: list[int]) -> list[tuple[list[str], dict[str, Any]]]:
        """Translate the texts of these numbers from one language -> their translations, and the details of them."""
        own = [self._texts[place] for place in places]
        settings = dict(self._settings)
        if isinstance(settings.get("prefix"), list):
            settings["prefix"] = [settings["prefix"][place] for place in places]
        pages = [await computed(len(each), Markup, each) for each in own] if self._html else []
        flat = [each for page in pages for each in page.texts] if self._html else own
        aligned = [each for page in pages for each in page.tagged] if self._html else [self._details] * len(own)
        work = Work(direction.host, direction.reader, flat, self._config, settings, aligned, self._wait)
        self._works.append(work)
        found = await work.run()
        if self._html:
            groups = iter(found)
            parts = [[*islice(groups, len(page.texts))] for page in pages]
            return [
                (await computed(len(text), self._pages, page, part), {})
                for text, page, part in zip(own, pages, parts, strict=True)
            ]
        return await computed(sum(map(len, own)), self._results, direction, work, found)

    def _results(
        self, direction: Direction, work: Work, found: list[list[Translation]]
    ) -> list[tuple[list[str], dict[str, Any]]]:
        """Give the translations of plain texts, and, where they are wanted, the details of them."""
        return [
            (self._texts_of(text, each), self._detail(direction, work, each) if self._details else {})
            for text, each in zip(work.texts, found, strict=True)
        ]

    def _texts_of(self, source: str, found: list[Translation]) -> list[str]:
        """List the translation of a text, and then others that differ from it; a blank text stays as it is."""
        texts = [each.text for each in distinct(found)] or [source]
        return texts[: self._alternatives + 1]

    def _pages(self, page: Markup, found: list[list[Translation]]) -> list[str]:
        """List the translations of a page: of the texts, the best, the next, and so on; what has no other keeps it."""
        most = max(map(len, found), default=1)
        groups = [[group[min(each, len(group) - 1)] for group in found] for each in range(most)]
        return [*dict.fromkeys(page.joined(group) for group in groups)][: self._alternatives + 1]

    def _detail(self, direction: Direction, work: Work, found: list[Translation]) -> dict[str, Any]:
        about = {"model": direction.host.name, "source": direction.source, "target": direction.target}
        seed = {"seed": work.config.seed} if work.config.samples else {}
        return {**about, **seed, "translations": [detail(each) for each in found]}

    def note(self, log: dict[str, Any]) -> None:
        """Note what came of it for the log and the metrics."""
        if not self._works:
            return
        log["model"] = self._works[0].host.name
        log["prompt_tokens"] = sum(work.prompt_tokens for work in self._works)
        log["new_tokens"] = sum(work.new_tokens for work in self._works)
        if (first := self._works[0].first) is not None:
            log["first_ms"], log["queue_ms"] = round(1000 * first, 3), round(1000 * (self._works[0].queued or 0), 3)


def _config(given: Mapping[str, Any], alternatives: int) -> GenerationConfig:
    """Make the settings of decoding: the library's, unless the request says others.  Raises ApiError."""
    settings = {name: given[name] for name in _DECODING if name in given}
    names = {"max_new_tokens": "max_tokens", "min_new_tokens": "min_tokens"}
    settings |= {name: given[field] for name, field in names.items() if field in given}
    draws = given.get("do_sample") and given.get("temperature") != 0
    if alternatives:
        settings["num_return_sequences"] = alternatives + 1
        if not draws:
            settings["num_beams"] = max(alternatives + 1, given.get("num_beams", 1))
    try:
        return GenerationConfig(**settings).seeded()
    except ConfigError as error:
        message = str(error)
        for name, field in names.items():
            message = message.replace(name, field)
        param = message.split(" ", 1)[0]
        raise ApiError(400, message, param=param if param in given else None) from None


async def _languages(request: Request) -> Response:
    """List the languages; what a client sends with it, as some do, changes nothing but a model that is named."""
    given = await _fields(request, {"api_key": text, "model": text})
    return json_response(Served(request.app.state.hosts, given.get("model")).listed())


async def _detect(request: Request) -> Response:
    limits = request.app.state.limits
    given = await _fields(request, {"q": _some(limits.texts), "api_key": text})
    _check_key(request, given)
    q = _require(given, "q")
    if sum(map(len, q)) > limits.characters:
        message = f"Invalid request: request ({sum(map(len, q))}) exceeds text limit ({limits.characters})"
        raise ApiError(400, message, param="q")
    served = Served(request.app.state.hosts)
    return json_response([served.detected(q)] if isinstance(q, str) else [[served.detected(each)] for each in q])


async def _frontend_settings(request: Request) -> Response:
    state = request.app.state
    targets = Served(state.hosts).targets()
    source = next((code for code, found in targets.items() if found), None)
    target = targets[source][0] if source else None
    return json_response(
        {
            "charLimit": state.limits.characters,
            "frontendTimeout": _TYPING_PAUSE,
            "apiKeys": bool(state.keys),
            "keyRequired": bool(state.keys),
            "suggestions": False,
            "filesTranslation": False,
            "supportedFilesFormat": [],
            "language": {"source": _code(source), "target": _code(target)},
        }
    )


def _code(code: str | None) -> dict[str, str] | None:
    return code and {"code": code, "name": name_of(code)}


def routes() -> list[Route]:
    """List the routes of LibreTranslate's interface."""
    return [
        Route("/translate", _translate, methods=["POST"]),
        Route("/languages", _languages, methods=["GET", "POST"]),
        Route("/detect", _detect, methods=["POST"]),
        Route("/frontend/settings", _frontend_settings, methods=["GET"]),
    ]
