"""Elements of HTML as strings. What comes from a page is escaped here, and only here."""

import re
from collections.abc import Callable
from html import escape

from toolkit.display import visible
from toolkit.explain.pages.tokens import SPACE
from toolkit.explain.pages.writing import clipped

_LONGEST = 40  # cells of a label
# A minus before a number in a sentence; what is code or quoted stays as it is.
_MINUS = re.compile(r"(`[^`\n]+`|“[^”]*”)|(?<![^\s(=])-(?=\d)")
_EMPTY = ("br", "rect", "line", "polyline", "path", "circle")


def element(name: str, *content: str, between: str = "", **attributes: object) -> str:
    """An element around content that is HTML already. An attribute is left out if it is None; `Class` means class."""
    given = "".join(
        f' {("class" if key == "Class" else key).replace("_", "-")}="{escape(visible(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY and not content:
        return f"<{name}{given}/>"
    return f"<{name}{given}>{between}{between.join(content)}{between}</{name}>"


def text(content: object) -> str:
    """Text as HTML; line ends stay, other control characters are made visible."""
    return "\n".join(escape(visible(line)) for line in str(content).replace("\t", "    ").split("\n"))


def label(content: object) -> str:
    """What a row, a column or a node is called: cut where it is very long, the sign of a space paler than the rest."""
    return _pale(text(clipped(str(content), _LONGEST)))


def inline(content: str, plain: bool = False) -> str:
    """Text as HTML, with what stands between backticks set as code; plain: without them."""
    content = _MINUS.sub(lambda found: found[1] or "\u2212", content)
    if plain:
        return text(re.sub("`([^`\n]+)`", r"\1", content))
    return re.sub("`([^`\n]+)`", r"<code>\1</code>", _pale(text(content)))


def _pale(content: str) -> str:
    return content.replace(SPACE, f'<span class="space">{SPACE}</span>')


def value_of(number: float) -> str:
    """A number in full, for `data-value`: what float() reads back exactly."""
    return repr(number.item() if hasattr(number, "item") else number)


def number(value: float, figure: Callable[[float], str], name: str = "td", **attributes: object) -> str:
    """A number as it is read, with its full value beside it."""
    return element(name, signed(text(figure(value))), data_value=value_of(value), **attributes)


def signed(figure: str) -> str:
    """A number with a minus sign as wide as a digit."""
    return figure.replace("-", "\u2212")


def scroll(content: str, name: str) -> str:
    """A box that scrolls sideways where its content is too wide, also by keys."""
    return element("div", content, Class="scroll", tabindex=0, role="region", aria_label=name or "numbers")


def figure(name: str, *content: str, note: str = "", kind: str = "", shape: str = "") -> str:
    """A figure with its caption above and a note below."""
    shaped = " " + element("span", text(shape), Class="shape") if shape else ""
    caption = [element("figcaption", inline(name) + shaped)] if name or shape else []
    notes = [element("p", inline(note), Class="note")] if note else []
    return element("figure", *caption, *content, *notes, Class=kind or None)
