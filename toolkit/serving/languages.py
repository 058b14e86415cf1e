"""Languages that are served: which host translates from one to another, and in which one a text is, by its script."""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from toolkit.errors import ConfigError
from toolkit.serving.errors import ApiError
from toolkit.serving.host import Host
from toolkit.translator import Translator

# The languages that a script stands for where they are served, and how Unicode's names of its letters begin.
_SCRIPTS = {"ne": "DEVANAGARI", "en": "LATIN"}
_NAMES = {"en": "English", "ne": "Nepali"}
_SHORT = {"eng": "en", "npi": "ne", "nep": "ne"}
_MOST_LISTED = 12  # directions, in a sentence


class Direction(NamedTuple):
    """A translator for two languages, by the codes that it has for them."""

    host: Host
    reader: Translator
    source: str
    target: str


class Served:
    """The translators that are served, and between which languages they translate."""

    def __init__(self, hosts: Mapping[str, Host], model: str | None = None):
        """Raises ApiError for the name of a model that is not there, or translates nothing."""
        self._hosts = [host for host in hosts.values() if host.kind == "translator"]
        if model is not None:
            if model not in hosts:
                raise ApiError(400, f"there is no model {model[:60]!r}: there are {', '.join(hosts)}", param="model")
            if hosts[model] not in self._hosts:
                raise ApiError(400, f"the model {model} translates nothing", param="model")
            self._hosts = [hosts[model]]

    def directions(self) -> Iterator[tuple[list[str], list[str]]]:
        """Yield, for every host, the codes that it reads, and those that it writes."""
        for host in self._hosts:
            if known := host.reader.tokenizer.languages:
                yield sorted(known.ids), sorted(known.ids)
            elif len(host.languages) > 1:
                yield [host.languages[0]], [host.languages[1]]

    def targets(self) -> dict[str, list[str]]:
        """Give the languages that every one is translated to; of one that is only written, none."""
        found: dict[str, dict[str, None]] = {}
        for sources, targets in self.directions():
            for code in [*sources, *targets]:
                found.setdefault(code, {})
            for code in sources:
                found[code].update((each, None) for each in targets if each != code)
        return {code: [*targets] for code, targets in found.items()}

    def between(self, source: str, target: str) -> Direction | None:
        """Find who translates from one language to another; None where they are the same one.

        Raises ApiError for a language that is not served, and where nobody translates in that direction.
        """
        for host in self._hosts:
            reader = host.reader
            if known := reader.tokenizer.languages:
                try:
                    codes = known.code(source), known.code(target)
                except ConfigError:
                    continue
                if codes[0] == codes[1]:
                    return None
                return Direction(host, reader.between(*codes), *codes)
            if tuple(map(_short, host.languages[:2])) == (_short(source), _short(target)) or not host.languages:
                return Direction(host, reader, source, target)
        codes = {_short(code) for code in self.targets()}
        for name, code in ("source", source), ("target", target):
            if _short(code) not in codes:
                raise ApiError(400, f"{code[:40]} is not supported: {self._listed()}", param=name)
        if _short(source) == _short(target):
            return None
        raise ApiError(
            400,
            f"{target} is not available as a target language from {source}: {source} to {target} is not served here; "
            f"{self._listed()}",
            param="target",
        )

    def _listed(self) -> str:
        pairs = [f"{code} to {target}" for code, targets in self.targets().items() for target in targets]
        more = f", and {len(pairs) - _MOST_LISTED} more" if len(pairs) > _MOST_LISTED else ""
        return f"served are {', '.join(pairs[:_MOST_LISTED])}{more}" if pairs else "no translator is served"

    def detected(self, text: str) -> dict[str, Any]:
        """Say in which served language a text is, by its script, and which share of its letters that has, in percent.

        Of a text in no such script the confidence is 0, and the language the first that is served. Raises ApiError
        where none is.
        """
        codes = {_short(code): code for code in reversed(self.targets())}
        if not codes:
            raise ApiError(400, "no translator is served here")
        # With marks, which are half of what is written in Devanagari.
        letters = {each: count for each, count in Counter(text).items() if unicodedata.category(each)[0] in "LM"}
        counts = {
            codes[short]: sum(count for each, count in letters.items() if unicodedata.name(each, "").startswith(script))
            for short, script in _SCRIPTS.items()
            if short in codes
        }
        best = max(counts, key=lambda code: counts[code], default=None)
        if not best or not counts[best]:
            return {"confidence": 0.0, "language": next(iter(self.targets()))}
        return {"confidence": round(100 * counts[best] / sum(letters.values()), 1), "language": best}

    def listed(self) -> list[dict[str, Any]]:
        """List the languages as LibreTranslate does."""
        return [{"code": code, "name": name_of(code), "targets": found} for code, found in self.targets().items()]


def name_of(code: str) -> str:
    """Name a language in English; one that we do not know by its code."""
    return _NAMES.get(_short(code), code)


def _short(code: str) -> str:
    name = code.partition("_")[0].partition("-")[0]
    return _SHORT.get(name, name) if name in {*_SHORT, *_NAMES} else code
