"""Templates of sentences: what a plot file says, as a tree that the generator writes and the checker reads.

    {A} went to the (river|well) with {A.his} {x}.

`{A}` is a slot, `{A.his}` another form of what fills it, and `(river|well)` a choice, which may be empty or nested. One
tree serves both directions, so what the program writes and what the checker accepts cannot drift apart.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Slot:
    """A place for a form of a character or a thing: `{A.his}` is Slot("A", "his"), `{A}` is Slot("A", "name")."""

    variable: str
    form: str


@dataclass(frozen=True)
class Choice:
    options: tuple["Template", ...]


Template = tuple["str | Slot | Choice", ...]


@dataclass(frozen=True)
class Entity:
    """What fills a slot: a table of forms. A form that begins with a capital letter is the small one, capitalised."""

    forms: dict[str, str] = field(hash=False)

    @property
    def name(self) -> str:
        return self.forms["name"]

    def form(self, form: str) -> str:
        if form not in self.forms and form[0].isupper():
            word = self.form(form[0].lower() + form[1:])
            return word[0].upper() + word[1:]
        return self.forms[form]


def parse(text: str) -> Template:
    """Read a template; ValueError says where a bracket is missing."""
    template, end = _parse(text, 0)
    if end != len(text):
        raise ValueError(f"a bracket too many at {end} in {text!r}")
    return template


def _parse(text: str, start: int) -> tuple[Template, int]:
    """Read up to the end, or to the | or ) that ends the option this is in."""
    parts, position = [], start
    while position < len(text) and text[position] not in "|)":
        if text[position] == "{":
            end = text.index("}", position)
            variable, _, form = text[position + 1 : end].partition(".")
            parts.append(Slot(variable, form or "name"))
            position = end + 1
        elif text[position] == "(":
            choice, position = _parse_choice(text, position)
            parts.append(choice)
        else:
            plain = re.compile(r"[^{(|)]+").match(text, position)
            parts.append(plain.group())
            position = plain.end()
    return tuple(parts), position


def _parse_choice(text: str, start: int) -> tuple[Choice, int]:
    options, position = [], start
    while position < len(text) and text[position] in "(|":
        option, position = _parse(text, position + 1)
        options.append(option)
    if position == len(text):
        raise ValueError(f"a bracket is missing in {text!r}")
    return Choice(tuple(options)), position + 1


def write(template: Template, values: dict[str, Entity], rng) -> str:
    """One of the texts of a template, with its slots filled."""
    written = []
    for part in template:
        if isinstance(part, Slot):
            written.append(values[part.variable].form(part.form))
        elif isinstance(part, Choice):
            written.append(write(rng.choice(part.options), values, rng))
        else:
            written.append(part)
    return "".join(written)


def slots(template: Template) -> Iterable[Slot]:
    """The slots, in the order in which `pattern` captures them."""
    for part in template:
        if isinstance(part, Slot):
            yield part
        elif isinstance(part, Choice):
            for option in part.options:
                yield from slots(option)


MANY = 60  # forms of a slot: an expression of all of them would be slow


# Of many candidates, which are those of a plot and stay: (their id, a form) -> them, and the expression for the form.
EXPRESSIONS: dict[tuple[int, str], tuple[tuple[Entity, ...], str]] = {}


def any_of(candidates: tuple[Entity, ...], form: str) -> str:
    """A regular expression for a form of any of the candidates; where they are many, for all words of its shape."""
    key = id(candidates), form
    if key not in EXPRESSIONS or EXPRESSIONS[key][0] is not candidates:
        EXPRESSIONS[key] = candidates, _any_of({entity.form(form) for entity in candidates})
    return EXPRESSIONS[key][1]


def _any_of(forms: set[str]) -> str:
    if len(forms) <= MANY:
        return "|".join(map(re.escape, sorted(forms, key=lambda form: (-len(form), form))))
    least, most = min(form.count(" ") for form in forms), max(form.count(" ") for form in forms)
    return r"[A-Za-z-]+" + (rf"(?: [a-z-]+){{{least},{most}}}?" if most else "")


def pattern(template: Template, candidates: dict[str, tuple[Entity, ...]]) -> str:
    """A regular expression for all texts of a template; every slot is a group."""
    written = []
    for part in template:
        if isinstance(part, Slot):
            written.append(f"({any_of(candidates[part.variable], part.form)})")
        elif isinstance(part, Choice):
            written.append(f"(?:{'|'.join(pattern(option, candidates) for option in part.options)})")
        else:
            written.append(re.escape(part))
    return "".join(written)
