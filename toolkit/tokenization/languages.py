"""The languages of a model that knows several: each has a token, which sources and translations begin with.

A source is [its language] + text, a translation [its language] + text (Fan et al. 2020, section 4.1, and NLLB Team et
al. 2022). Which of the languages one means is said by its code, such as npi_Deva, or shorter where that is clear.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from toolkit.errors import ConfigError
from toolkit.tokenization.special import FIRST_TOKEN
from toolkit.untrusted import Maybe, Record, Schema, Text, UnfitError, Whole

LANGUAGES: Schema = Record(
    {"ids": Record(others=Whole(FIRST_TOKEN, 2**31 - 1)), "source": Maybe(Text()), "target": Maybe(Text())},
    needed=("ids",),
)

# English and Nepali have two letters in some models and three in others (ISO 639-1, 639-3).
_SHORT = {"eng": "en", "npi": "ne", "nep": "ne"}


@dataclass(frozen=True)
class Languages:
    """The tokens of languages, by their codes, and which are meant where nothing is said.

    Raises UnfitError where two languages have one token, or one is meant that is not there.
    """

    ids: Mapping[str, int]
    source: str | None = None  # of what is read; None: it must be said
    target: str | None = None  # of what is written

    def __post_init__(self) -> None:
        if not self.ids or len(set(self.ids.values())) != len(self.ids):
            raise UnfitError("has languages without a token of their own")
        for code in (self.source, self.target):
            if code is not None and code not in self.ids:
                raise UnfitError(f"has no language {code!r:.60}, which it names")

    @classmethod
    def from_fields(cls, values: Mapping[str, Any] | None) -> "Languages | None":
        """Make them from what a tokenizer.json says, which `fields` has written; None where it says nothing."""
        return cls(**values) if values else None

    def fields(self) -> dict[str, Any]:
        """Give what `from_fields` takes."""
        return {"ids": dict(self.ids), "source": self.source, "target": self.target}

    def code(self, name: str) -> str:
        """Find the code that a name means: itself, or without its script ("npi"), or "en" and "ne" in every model.

        Raises ConfigError for one that is unknown, or could be several.
        """
        if name in self.ids:
            return name
        found = [code for code in self.ids if _short(code) == _short(name) and ("_" not in name or "_" not in code)]
        if len(found) == 1:
            return found[0]
        if found:
            raise ConfigError(f"language {name!r:.40} could be {_either(found)}: choose one")
        from difflib import get_close_matches  # here, because it is needed for mistakes only

        known = sorted(self.ids)
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {_listed(known)}"
        raise ConfigError(f"the model knows no language {name!r:.40}: {hint}")

    def between(self, source: str | None, target: str | None) -> "Languages":
        """Choose the source and the target, by any name; None leaves one as it is.  Raises ConfigError as `code`."""
        chosen = {"source": source, "target": target}
        return replace(self, **{side: self.code(name) for side, name in chosen.items() if name is not None})

    def token(self, side: Literal["source", "target"]) -> int:
        """Give the token of the language that is meant.  Raises ConfigError where none is."""
        code = getattr(self, side)
        if code is None:
            settings = [f"{each}_language" for each in ("source", "target") if getattr(self, each) is None]
            flags = " ".join(f"--{each.replace('_', '-')}" for each in settings)
            raise ConfigError(
                f"the model translates between {_listed(sorted(self.ids))}: say from which to which, by "
                f"{' and '.join(settings)} ({flags})"
            )
        return self.ids[code]


def _short(code: str) -> str:
    """Take a code without its script, in two letters if that is known: npi_Deva -> ne."""
    language = code.strip("_").split("_")[0].split("-")[0].lower()
    return _SHORT.get(language, language)


def _listed(codes: Collection[str]) -> str:
    """List some languages, and how many there are."""
    first = ", ".join([*codes][:6])
    return first if len(codes) <= 6 else f"{len(codes)} languages ({first}, …; toolkit info lists them)"


def _either(codes: list[str]) -> str:
    return f"{', '.join(codes[:-1])} or {codes[-1]}"
