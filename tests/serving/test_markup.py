"""HTML that is translated: texts without tags, tags where the alignment has them, and never broken markup."""

import re
import sys
from html import unescape
from html.parser import HTMLParser

import pytest

pytest.importorskip("starlette")
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.outputs import Translation
from toolkit.serving.markup import Markup

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]


def translated(text, order=None):
    """Make a translation whose words are those of the source in capitals, in another order, by their numbers."""
    words = text.split()
    order = range(len(words)) if order is None else order
    found = " ".join(words[each].upper() for each in order)
    pairs = [(source, target) for target, source in enumerate(order)]
    return Translation(found, 0.0, 0.0, True, [], [], [], alignment=pairs)


def whole(page, *orders):
    markup = Markup(page)
    orders = orders or [None] * len(markup.texts)
    return markup.joined([translated(text, order) for text, order in zip(markup.texts, orders, strict=True)])


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("<p>I am a <b>boy</b>.</p>", ["I am a boy."]),
        ("<p>one</p> <p>two\n three</p>", ["one", "two three"]),
        ("one<br>two", ["one", "two"]),
        ("<ul><li>one<li>two</ul>", ["one", "two"]),
        ("<pre>one\n  two</pre>", ["one\n  two"]),
        ("one <!-- no -->two", ["one two"]),
        ("a &lt; b &amp;&eacute;&#2350;", ["a < b &éम"]),
        ("5 < 6 and 7<8", ["5 < 6 and 7<8"]),
        ("one <code>x = 1</code>, two", ["one, two"]),
        ("one <img> .two", ["one .two"]),
        ('<p translate="no">no</p>one <i class="a notranslate">no <i>no</i></i> two', ["one two"]),
        ("<script>var a = '<p>no</p>'</script><style>p > a {}</style><textarea>no<b></textarea>", []),
        ("<title>one</title> &nbsp; <img alt='no'>", ["one"]),
        ("<P>one<BR/>two</P>", ["one", "two"]),
        ("<x id=1>one</x> two", ["one two"]),
        ("<script>no", []),
        ("one <b", ["one <b"]),
        ("<a title='>'>one</a>", ["one"]),
        ("", []),
    ],
)
def test_texts_are_what_a_reader_reads(page, texts):
    assert Markup(page).texts == texts


@pytest.mark.parametrize(
    ("page", "order", "expected"),
    [
        ("one <b>two</b> three", [2, 1, 0], "THREE <b>TWO</b> ONE"),
        ("one <b>two</b> three", [1, 0, 2], "<b>TWO</b> ONE THREE"),
        (
            "<b>one two</b> three",
            [0, 2, 1],
            "<b>ONE THREE TWO</b>",
        ),  # one run, which holds more of its words than of others
        ("one <a href='?a&amp;b'>two <i>three</i></a> four", [2, 1, 3, 0], None),
        ("one <b>two</b>.", [1, 0], "<b>TWO</b>. ONE"),
        ("one “<b>two</b>”.", [0, 1], "ONE “<b>TWO</b>”."),
        ("one <b>two.</b>", [0, 1], "ONE <b>TWO.</b>"),
        ("one <img src=a> two", [1, 0], "TWO ONE <img src=a>"),
        ("one <code>x</code>, two", [0, 1], "ONE, <code>x</code> TWO"),
        ("<b><i>one</i></b>", [0], "<b><i>ONE</i></b>"),
        ("one <b></b>two", [0, 1], "ONE<b></b> TWO"),
        ("one <b>two</b> three", [0, 2], "ONE<b></b> THREE"),  # the word has not been translated
        ("\n one <b>two</b> ", [0, 1], "\n ONE <b>TWO</b> "),
        ("one & two", [0, 1, 2], "ONE &amp; TWO"),
        ("<b>one two</b> three four five", [0, 2, 3, 4, 1], "<b>ONE</b> THREE FOUR FIVE TWO"),
        ("one</b> two <i>three", [2, 1, 0], "</b>THREE TWO ONE<i>"),  # begun before, and ended later
        ("one</b> two <i>three", [0, 1, 2], "ONE</b> TWO <i>THREE"),
    ],
)
def test_tags_stand_around_the_words_that_theirs_became(page, order, expected):
    if expected is None:
        expected = "<a href='?a&amp;b'><i>THREE</i> TWO</a> FOUR ONE"
    assert whole(page, order) == expected


def test_what_is_no_text_stays_letter_by_letter():
    page = (
        "<!DOCTYPE html>\n<html><head><meta charset=utf-8><style> p>a{} </style><!-- a -- b --></head>"
        "<body class='x y'  ><hr/><?php 1 ?><IMG SRC=x onerror=\"a > b\">\n</body></html>\n"
    )
    markup = Markup(page)
    assert (markup.texts, markup.joined([])) == ([], page)


def test_an_element_over_several_texts_is_opened_and_closed_once():
    assert whole("<b>one<br>two</b> three") == "<b>ONE<br>TWO</b> THREE"
    assert whole("<i>one<p>two <b>three</b></p></i>") == "<i>ONE<p>TWO <b>THREE</b></p></i>"


def test_alignment_is_needed_only_where_something_begins_within():
    markup = Markup("<p><b>one two</b></p><p>one <b>two</b></p><p>one</p><p>one <img></p>")
    assert markup.tagged == [False, True, False, False]


class Nesting(HTMLParser):
    """Checks that tags are nested, and collects them and the text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(page)
        self.close()
        assert self.open == [], page

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(attrs)))
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def nodes(children):
    tag = st.sampled_from(["b", "i", "a", "p", "div", "li", "code", "span"])
    return st.builds(
        lambda name, number, inner: f'<{name} id="{number}">{"".join(inner)}</{name}>',
        tag,
        st.integers(0, 99),
        st.lists(children, max_size=4),
    )


PIECES = st.sampled_from(
    [*WORDS, " ", " ", "\n", ".", ", ", "<br>", "<img>", "<!-- c -->", "&amp;", "&lt;", "“", "मेरो"]
)
PAGES = st.lists(st.recursive(PIECES, nodes, max_leaves=12), max_size=6).map("".join)


@given(PAGES, st.randoms(use_true_random=False))
def test_well_formed_markup_stays_well_formed_with_all_its_tags(page, random):
    markup, found = Markup(page), []
    for text in markup.texts:
        count = len(text.split())
        order = [random.randrange(count) for _ in range(random.randint(1, count + 2))]
        found.append(translated(text, order))
    written = markup.joined(found)
    before, after = Nesting(page), Nesting(written)
    assert sorted(before.tags) == sorted(after.tags)
    for text in found:
        assert all(word in after.text for word in re.findall(r"\w+", text.text))
    if not markup.texts:
        assert written == page


@given(PAGES.filter(lambda page: "<code" not in page))
def test_a_translation_that_is_its_source_gives_the_page_back(page):
    page = page.replace("<", " <").replace(">", "> ")  # a word that a tag cuts has it in front or behind
    before, after = Nesting(page), Nesting(whole(page))
    assert (before.tags, "".join(before.text.upper().split())) == (after.tags, "".join(after.text.upper().split()))


@given(st.text(alphabet="<>/!-?=\"' abp&;#[", max_size=60))
def test_whatever_is_given_nothing_is_lost_but_spaces(page):
    markup = Markup(page)
    written = markup.joined([translated(text) for text in markup.texts])
    assert sorted(re.sub(r"\s", "", unescape(written)).lower()) == sorted(re.sub(r"\s", "", unescape(page)).lower())


@pytest.mark.parametrize("part", ["<", "<a ", "<!--", "<a b='", "</", "<a/", '<a "', "<?", "<script>", "<b>a</b> "])
def test_long_pages_are_read_in_a_moment(part):
    """Of these, the standard library's parser takes minutes: nobody would wait for this test."""
    page = part * (50_000 // len(part))
    assert whole(page).upper().count("A") == page.upper().count("A")


def test_the_work_of_many_elements_grows_as_they_do():
    def calls(count):
        markup, events = Markup("<b>one</b> two <i>three <img></i> " * count), []
        found = [translated(text, range(len(text.split()))[::-1]) for text in markup.texts]
        sys.setprofile(lambda *event: events.append(event))
        try:
            markup.joined(found)
        finally:
            sys.setprofile(None)
        return len(events)

    assert calls(400) < 12 * calls(50)  # not 64 times as many


def test_elements_that_are_nested_too_deep_are_refused():
    assert whole("<b>" * 100 + "one") == "<b>" * 100 + "ONE"
    for page in ("<b>" * 101, "one" + "</b>" * 101, "</b>" * 10_000):
        with pytest.raises(DataError, match="100 elements"):
            Markup(page)
