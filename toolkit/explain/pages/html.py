"""A page as one self-contained HTML document: no script, and nothing that a browser would fetch."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from toolkit.explain.pages.blocks import Bars, Block, Heat, Numbers, Page, Section, Table
from toolkit.explain.pages.html_blocks import block
from toolkit.explain.pages.html_parts import element, inline

_STYLE = Path(__file__).with_name("page.css")
_SIDE_BY_SIDE = (Numbers, Heat, Bars, Table)
_CONTENTS = 3  # as many sections as need no table of contents

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
# Were there anything to fetch or to run, the browser would refuse to. The icon is empty: without one it asks a server.
_HEAD = (
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
    '<meta name="color-scheme" content="light dark">',
    '<link rel="icon" href="data:,">',
)


def document(page: Page) -> str:
    """The HTML of a page, to be written in UTF-8. Every number shown has its full value in `data-value`."""
    title = element("title", inline(page.title, plain=True))
    head = element("head", *_HEAD, title, element("style", _STYLE.read_text(encoding="utf-8")), between="\n")
    sections = [_section(each, number) for number, each in enumerate(page.sections, start=1)]
    contents = [_contents(page)] if len(page.sections) > _CONTENTS else []
    main = element("main", _header(page), *sections, between="\n")
    body = element("body", *contents, main, Class="with-contents" if contents else None, between="\n")
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n{body}\n</html>\n'


def _header(page: Page) -> str:
    cut = [element("ul", *(element("li", inline(each)) for each in page.cut), Class="cut")] if page.cut else []
    return element("header", element("h1", inline(page.title)), element("p", inline(page.about), Class="about"), *cut)


def _contents(page: Page) -> str:
    links = (
        element("li", element("a", inline(section.title), href=f"#step-{number}"))
        for number, section in enumerate(page.sections, start=1)
    )
    return element("nav", element("ol", *links), aria_label="Contents")


def _section(section: Section, number: int) -> str:
    heading = element("h2", element("span", str(number), Class="number"), " ", inline(section.title))
    return element("section", heading, *_beside(section.blocks), id=f"step-{number}", between="\n")


def _beside(blocks: Sequence[Block]) -> Iterator[str]:
    """Blocks as HTML; those of one kind that follow each other stand beside each other, where there is room."""
    for kind, group in groupby(blocks, type):
        parts = [block(each) for each in group]
        yield from parts if len(parts) == 1 or kind not in _SIDE_BY_SIDE else [element("div", *parts, Class="beside")]
