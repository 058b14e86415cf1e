"""Markup of texts to translate: HTML is divided into texts without tags, and gets its tags back around translations.

Block elements and line breaks end a text; inline tags do not: a text is translated as if it had none, and they stand
around the words that the alignment pairs with theirs. Scripts, styles, code, attributes, comments, and elements with
`translate="no"` stay as they are.
"""

import re
from collections.abc import Iterator, Sequence
from html import unescape
from typing import NamedTuple

from toolkit.errors import DataError
from toolkit.outputs import Translation
from toolkit.serving.placement import Element, Placement


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BLOCKS = _names(
    """address article aside blockquote body br button caption center col colgroup dd details dialog dir div dl dt
    fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li link
    main menu meta nav ol optgroup option p pre search section select summary table tbody td tfoot th thead title tr
    ul"""
)
_KEPT = _names(
    """audio canvas code embed iframe kbd math noscript object samp script style svg template textarea var
    video"""
)
_VOID = _names("area base br col embed hr img input link meta param source track wbr")

# In these, nothing is a tag but their end.
_RAW = _names("iframe script style textarea")

_TAG = re.compile(
    r"""<(?P<open>[a-z][^\s/>]*+)(?:[^>=]|=\s*+(?:"[^"]*+"|'[^']*+'|(?=[^"'])))*+>|</(?P<close>[a-z][^\s/>]*+)[^>]*+>|
    <!--(?:-?>|.*?(?:--!?>|\Z))|<[!?][^>]*+(?:>|\Z)""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE | re.ASCII,
)
_BEGUN_TAG = re.compile(r"</?[a-z]", re.IGNORECASE | re.ASCII)
_ATTRIBUTE = re.compile(r"""([^\s=/>"']+)\s*=\s*("[^"]*"|'[^']*'|[^\s>]+)""")
_SPACES = re.compile(r"(\s+)")
# Signs that no space stands before.
_GLUED = ".,;:!?…।)]}"
_DEEPEST = 100  # elements in each other


class _Piece(NamedTuple):
    """A piece of a page as it is written there: a tag, text, or what is neither.  All of them are the page."""

    kind: str  # open, close, text, other
    raw: str
    name: str = ""  # of the tag


def _pieces(page: str) -> Iterator[_Piece]:
    """Cut a page into pieces, in a time that grows as its length does, whatever it contains.

    The standard library's parser takes minutes for some pages of 100,000 characters, on the Pythons that we run on.
    """
    begin = look = 0
    while (place := page.find("<", look)) >= 0:
        found = _TAG.match(page, place)
        if found is None:
            if _BEGUN_TAG.match(page, place):
                break  # it does not end, and so no other does after it
            look = place + 1
            continue
        if begin < place:
            yield _Piece("text", page[begin:place])
        name, end = (found["open"] or found["close"] or "").lower(), found.end()
        kind = "open" if found["open"] else "close" if found["close"] else "other"
        if kind == "open" and name in _RAW:  # no tag is one within it, but its end
            closed = re.compile(rf"</{name}(?=[\s/>])[^>]*+>", re.IGNORECASE).search(page, end)
            kind, end = "other", closed.end() if closed else len(page)
        if found[0][:2] == "<!" and found[0][2:3] != "-":
            kind, name = "open", "html"  # <!DOCTYPE>: as a block
        yield _Piece(kind, page[place:end], name)
        begin = look = end
    if begin < len(page):
        yield _Piece("text", page[begin:])


def _is_kept(tag: str) -> bool:
    """Say if the author has written that an element is not translated."""
    if "translate" not in tag.lower():
        return False
    given = {name.lower(): value.strip("\"'").lower() for name, value in reversed(_ATTRIBUTE.findall(tag))}
    return given.get("translate") == "no" or "notranslate" in given.get("class", "").split()


def _check_depth(depth: int) -> None:
    if depth > _DEEPEST:
        raise DataError(f"the HTML has more than {_DEEPEST} elements in each other")


class _Text:
    """A text between two blocks of a page, and its elements; it is built piece by piece."""

    def __init__(self, preformatted: bool):
        self._preformatted = preformatted  # white space is written as it is
        self.raw = self.text = self.before = self.after = ""
        self._space = ""  # before the next word
        self._fresh: list[Element] = []  # atoms that no word has followed
        self._stack = [Element(0)]
        self._begun = 0  # elements that have begun before it

    root = property(lambda self: self._stack[0])

    def add(self, kind: str, raw: str, name: str = "") -> None:
        """Add a piece of the page: text, open, close or other."""
        if kind == "text":
            self._add_text(unescape(raw))
        elif kind == "close":
            self._close(raw, name)
        else:
            atom = kind != "open" or name in _VOID
            each = Element(len(self.text), raw, name=name, end=len(self.text), atom=atom)
            self._stack[-1].parts.append(each)
            if atom:
                each.spaced = bool(self._space), False
                self._fresh.append(each)
            else:
                _check_depth(len(self._stack))
                self._stack.append(each)
        self.raw += raw

    def _add_text(self, text: str) -> None:
        first, last = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        if not self.raw:
            self.before = first
        self.after = last  # unless something follows
        for part in filter(None, _SPACES.split(text)):
            if part.isspace():
                self._space = self._space + part if self._preformatted else " "
                for each in self._fresh:
                    each.spaced = each.spaced[0], True
                continue
            if self.text and not (self._fresh and part[0] in _GLUED and not any(map(str.isalnum, part))):
                self.text += self._space
            self.text += part
            self._space, self._fresh = "", []

    def _close(self, raw: str, name: str) -> None:
        place, root = len(self.text), self._stack[0]
        found = [number for number, each in enumerate(self._stack) if number and each.name == name]
        if found:
            for each in self._stack[found[-1] :]:
                each.end = place
            self._stack[found[-1]].closing = raw
            del self._stack[found[-1] :]
        elif len(self._stack) > 1:  # not well-formed
            self._stack[-1].parts.append(Element(place, raw, end=place, atom=True))
        else:  # it has begun before this text
            self._begun += 1
            _check_depth(self._begun)
            root.parts = [Element(0, "", raw, name, place, root.parts)]

    def finish(self) -> None:
        """Close what ends later."""
        for each in self._stack:
            each.end = len(self.text)
        del self._stack[1:]
        if not self.raw or not self.raw[-1:].isspace():
            self.after = ""

    @property
    def tagged(self) -> bool:
        """Tell if something begins or ends within the text, so that its place depends on the words."""
        waiting = [*self.root.parts]
        for each in waiting:
            if 0 < each.start < len(self.text) or 0 < each.end < len(self.text):
                return True
            waiting += each.parts
        return False

    def written(self, found: Translation) -> str:
        """Write the translation of the text with the elements in it."""
        return f"{self.before}{Placement(self.root, self.text, found).written()}{self.after}"


class Markup:
    """HTML as texts to translate, and what stands around them and in them.

    texts: in their order, without tags and entities. tagged: which of them need the alignment of their translation.
    """

    def __init__(self, page: str):
        """Raises DataError for elements that are nested too deep."""
        self._parts: list[str | _Text] = []
        self._divide(page)
        self._texts = [each for each in self._parts if isinstance(each, _Text)]
        self.texts, self.tagged = [each.text for each in self._texts], [each.tagged for each in self._texts]

    def joined(self, translations: Sequence[Translation]) -> str:
        """Write the page with these translations of its texts."""
        found = iter(translations)
        return "".join(each if isinstance(each, str) else each.written(next(found)) for each in self._parts)

    def _divide(self, page: str) -> None:
        text, depth, kept, begun, preformatted = _Text(False), 0, "", "", 0
        for kind, raw, name in _pieces(page):
            if depth:  # within what stays as it is
                depth += (kind == "open") - (kind == "close") if name == kept else 0
                begun += raw
                if not depth:
                    text.add("other", begun)
            elif kind == "open" and (name in _KEPT or _is_kept(raw)) and name not in _VOID:
                depth, kept, begun = 1, name, raw
            elif kind in ("open", "close") and name in _BLOCKS:
                if name == "pre":
                    preformatted = max(preformatted + (1 if kind == "open" else -1), 0)
                self._end(text)
                self._parts.append(raw)
                text = _Text(preformatted > 0)
            else:
                text.add(kind, raw, name)
        if depth:
            text.add("other", begun)
        self._end(text)

    def _end(self, text: _Text) -> None:
        text.finish()
        self._parts.append(text if text.text else text.raw)
