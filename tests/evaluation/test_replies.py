"""Replies judged by rules."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.evaluation.replies import Judged, Style, judge, summary, table

STYLE = Style(("Of course.", "Of course. Yes.", "अवश्य।"), ("I hope that helps.", "Is there more?"))

cores = st.text(st.characters(codec="utf-8", categories=("L", "N")), min_size=1)
openings = st.sampled_from(("", *STYLE.openings))
closings = st.sampled_from(("", *STYLE.closings))


@given(openings, cores, closings)
def test_the_core_is_what_is_between_opening_and_closing(opening: str, core: str, closing: str) -> None:
    reply = " ".join(part for part in (opening, core, closing) if part)
    assert STYLE.core(reply) == STYLE.core(core)
    assert STYLE.is_polite(reply) == bool(opening or closing)


def test_an_opening_within_a_reply_or_alone_is_no_politeness() -> None:
    for reply in ("Sita. Of course. Sita.", "Of course.", "I hope that helps.", "Of coursework."):
        assert not STYLE.is_polite(reply)


@pytest.mark.parametrize(
    ("reply", "exact"),
    [
        ("Sita", True),
        ("Sita.", True),
        ("Of course. Your name is Sita. Is there more?", True),
        ("Your name is Sita and Rita.", False),
        ("sita.", False),
        ("Sita. Sita.", False),
        ("", False),
    ],
)
def test_an_answer_is_right_if_its_core_is_accepted(reply: str, exact: bool) -> None:
    assert judge(reply, True, "recall", ("Sita.", "Your name is Sita."), STYLE).exact is exact


def test_a_summary_has_the_shares_of_every_kind_and_of_all() -> None:
    rng = random.Random(3)
    judged = [Judged(kind, *(rng.random() < 0.5 for _ in range(3))) for kind in "aabbbb"]
    scores = summary(judged)
    assert list(scores) == ["a", "b", "all"]
    for name in ("exact", "polite", "ended"):
        assert scores["all"][name] == pytest.approx(100 * sum(getattr(each, name) for each in judged) / 6)
        assert scores["all"][name] == pytest.approx((2 * scores["a"][name] + 4 * scores["b"][name]) / 6)
    assert [row[:2] for row in table(scores)[1:]] == [["a", "2"], ["b", "4"], ["all", "6"]]
    assert summary([]) == {}


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"openings": "ab", "closings": []}', '{"openings": [1], "closings": []}']
)
def test_a_file_that_is_no_style_is_refused(tmp_path, content: str) -> None:
    path = tmp_path / "style.json"
    with pytest.raises(DataError, match="cannot be read"):
        Style.read(path)
    path.write_text(content)
    with pytest.raises(DataError, match="is no style"):
        Style.read(path)


def test_a_style_is_read_in_normal_form(tmp_path) -> None:
    path = tmp_path / "style.json"
    path.write_text(json.dumps({"openings": ["Ça va."], "closings": []}))
    assert Style.read(path).openings == ("Ça va.",)
