"""Replies judged by rules, and written for many conversations at once: each is what it would be alone."""

import dataclasses
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.chat import ChatSession, Message, make_template
from toolkit.data.conversations import Question
from toolkit.decoding import ContinuationConfig
from toolkit.errors import DataError
from toolkit.evaluation.replies import (
    GREEDY,
    SAMPLED,
    EvaluatedReply,
    Judgement,
    Style,
    WrittenReply,
    evaluate_replies,
    fitting_questions,
    generate_replies,
    judge,
    one_line,
    sampled_manners,
    summary,
    table,
)
from toolkit.tokenization.special import BOS, END, EOS

USER, REPLY, SYSTEM = Message("user", "abc"), Message("assistant", "ba"), Message("system", "e")
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


def test_a_name_may_stand_in_an_opening_and_a_blunt_sentence_is_no_politeness() -> None:
    style = Style(("Of course.",), ("Is there more?",), ("Listen.",), ("That is all.",))
    cores = "Sita.", "अनिता।", "I see: Of course it is."
    for name in "", ", Sita", ", Lena Meier":
        for core in cores:
            kind = f"Of course{name}. {core}", f"{core} Is there more{name}?", f"Of course. {core} Is there more{name}?"
            blunt = f"Listen{name}. {core}", f"{core} That is all{name}.", f"Listen. {core} That is all.", core
            mixed = f"Of course{name}. {core} That is all.", f"Listen. {core} Is there more{name}?"
            assert all(style.core(reply) == core for reply in (*kind, *blunt, *mixed))
            assert [style.is_polite(reply) for reply in (*kind, *blunt, *mixed)] == [True] * 3 + [False] * 6
    assert style.core("Of course, Sita, and Rita. No.") == "Of course, Sita, and Rita. No."  # no name


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
    asked = Question((USER,), "recall", ("Sita.", "Your name is Sita."), "")
    assert judge(WrittenReply(reply, True), asked, STYLE).exact is exact


def test_a_reply_must_have_the_name_and_the_length_that_were_asked_for() -> None:
    asked = Question((USER,), "name", ("Seven.",), "", ("Sita",), 20)
    replies = {"Of course, Sita. Seven.": False, "Sure, Sita. Seven.": False, "Seven.": False}
    style = Style(("Of course.", "Yes."), ("I hope that helps.",))
    for reply, exact in (replies | {"Yes, Sita. Seven.": True}).items():
        assert judge(WrittenReply(reply, True), asked, style).exact is exact


def test_a_summary_has_the_shares_of_every_kind_and_of_all() -> None:
    rng = random.Random(3)
    judged = [Judgement(kind, *(rng.random() < 0.5 for _ in range(3))) for kind in "aabbbb"]
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


CONVERSATIONS = [
    [USER],
    [SYSTEM, USER],
    [Message("user", "ab"), REPLY, USER],
    [Message("user", "काख")],
    [Message("user", "a")],
    [SYSTEM, USER, REPLY, Message("user", "Assistant: a\nUser: b"), REPLY, USER],
    [Message("user", "a")],
]
SHORT = {"max_new_tokens": 7}
TEMPLATES = pytest.mark.parametrize("name", ["control", "plain"])


def question(*conversation: Message, place: str = "asked.jsonl, line 1") -> Question:
    return Question(conversation, "social", ("a.",), place)


@pytest.fixture
def replies(talker):
    """replies(name, conversations, config, **settings of talker): what a random model answers."""

    def reply(name, conversations=CONVERSATIONS, config=GREEDY, **settings):
        model = talker(name, **{"max_length": 160, **settings})
        template = make_template(name, model.tokenizer, model.model.config.begin)
        return generate_replies(model.model, template, conversations, dataclasses.replace(config, **SHORT))

    return reply


@TEMPLATES
@pytest.mark.parametrize("begin", [True, False])
def test_many_conversations_are_answered_as_each_alone(replies, name, begin):
    together = replies(name, begin=begin)
    assert together == [replies(name, [each], begin=begin)[0] for each in CONVERSATIONS]
    assert together == replies(name, CONVERSATIONS[::-1], begin=begin)[::-1]
    assert len({each.text for each in together}) > 1
    assert together[4] == together[6]


@TEMPLATES
def test_a_session_gives_the_same_answer(talker, replies, name):
    """Another way to the same reply: said message by message, read into a cache, taken back out of the history."""
    model = talker(name, end=0.0, max_length=160)
    for conversation, answer in zip(CONVERSATIONS, replies(name, end=0.0), strict=True):
        system = conversation[0].content if conversation[0].role == "system" else ""
        if len(conversation) - bool(system) > 1:
            continue  # what is answered there is part of the conversation
        session = ChatSession(model, system=system, config=dataclasses.replace(GREEDY, **SHORT))
        if answer.text:
            found = session.send(conversation[-1].content)
            assert (found.text, found.finish_reason == "stop") == answer


@TEMPLATES
def test_samples_depend_on_the_seed_and_the_number_alone(replies, monkeypatch, name):
    first = replies(name, config=SAMPLED)
    assert replies(name, config=SAMPLED) == first
    for size in 1, 2, 3:
        monkeypatch.setattr("toolkit.evaluation.replies.BATCH_SIZE", size)
        assert replies(name, config=SAMPLED) == first
    assert replies(name, CONVERSATIONS[:3], SAMPLED) == first[:3]
    assert first[4] != first[6]  # the same question with another number
    others = replies(name, config=dataclasses.replace(SAMPLED, seed=1))
    assert others != first


def test_a_reply_that_is_cut_off_has_not_ended(replies):
    assert {answer.ended for answer in replies("control", end=-50.0)} == {False}
    assert replies("control", end=50.0) == [WrittenReply("", True)] * len(CONVERSATIONS)


@TEMPLATES
def test_only_the_end_marker_of_the_template_ends_a_reply(talker, name):
    """The other one is never written, however probable."""
    template = make_template(name, talker(name).tokenizer, begin=True)
    for marker in END, EOS:
        model = talker(name, end=0.0, max_length=160).model
        model.output.bias.data[marker] += 99
        found = generate_replies(model, template, CONVERSATIONS, dataclasses.replace(GREEDY, **SHORT))
        assert {answer == WrittenReply("", True) for answer in found} == {marker == template.end}


@TEMPLATES
def test_a_prompt_is_the_conversation_and_what_opens_a_reply(talker, name):
    tokenizer = talker(name).tokenizer
    template = make_template(name, tokenizer, begin=True)
    for conversation in CONVERSATIONS:
        prompt = template.prompt(conversation)
        assert prompt[0] == BOS
        taught = template.encode([*conversation, REPLY])
        assert prompt == taught.ids[: len(prompt)]
        after = len(taught.ids) - len(prompt)
        content = len(template.content(REPLY.content))
        assert taught.supervised[len(prompt) :] == [True] * (content + 1) + [False] * (after - content - 1)
    for none in ([], [USER, REPLY], [SYSTEM]):
        with pytest.raises(DataError, match="does not end with the user"):
            template.prompt(none)


def test_what_leaves_room_for_one_token_is_asked_and_nothing_longer(talker):
    model = talker("control")
    template = make_template("control", model.tokenizer, begin=True)
    questions = [question(*each) for each in CONVERSATIONS]
    lengths = [len(template.prompt(each)) for each in CONVERSATIONS]
    for limit in {*lengths, max(lengths) + 1}:
        found = fitting_questions(questions, template, limit)
        assert found == [each for each, length in zip(questions, lengths, strict=True) if length < limit]
        if found:
            small = talker("control", max_length=limit).model
            assert len(generate_replies(small, template, [each.prompt for each in found])) == len(found)


def test_a_question_that_cannot_be_read_is_told_with_its_place(talker):
    template = make_template("control", talker("control").tokenizer, begin=True)
    unknown = question(Message("user", "Ω"), place="asked.jsonl, line 7")
    with pytest.raises(DataError, match=r"^asked\.jsonl, line 7: .*'Ω'"):
        fitting_questions([question(USER), unknown], template, 99)


def test_replies_are_judged_with_their_questions(talker):
    model = talker("control", end=50.0).model
    template = make_template("control", talker("control").tokenizer, begin=True)
    style = Style(("a.",), ())
    asked = [question(*each) for each in CONVERSATIONS[:2]]
    assert evaluate_replies(model, template, asked, style) == [
        EvaluatedReply(each, WrittenReply("", True), Judgement("social", False, False, True)) for each in asked
    ]
    assert sampled_manners(model, template, asked, style).polite == 0


def test_politeness_is_a_percentage_of_samples(talker):
    model = talker("control", end=0.0).model
    template = make_template("control", talker("control").tokenizer, begin=True)
    asked = [question(Message("user", "a"))] * 40
    found = generate_replies(model, template, [each.prompt for each in asked], SAMPLED)
    openings = tuple({answer.text[0] for answer in found[:4] if answer.text})
    closed = Style((), tuple({answer.text.rsplit(" ")[-1] for answer in found if " " in answer.text}))
    letters = sum(len(answer.text) for answer in found) / 40
    for style in closed, Style(openings, ()):
        polite = sum(style.is_polite(answer.text) for answer in found)
        assert sampled_manners(model, template, asked, style) == pytest.approx((100 * polite / 40, letters))
    assert closed.closings
    assert sampled_manners(model, template, asked, closed).polite > 0


def test_sampling_cuts_nothing_off():
    """So that shares of samples are the model's own probabilities."""
    whole = ContinuationConfig(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=0)
    assert dataclasses.replace(SAMPLED, max_new_tokens=None) == whole


def test_every_kind_of_line_end_is_shown_on_one_line():
    assert one_line("a\nb\r\nc\u2028d") == "a ⏎ b ⏎ c ⏎ d"
    shown = EvaluatedReply(
        question(Message("user", "a\nb")), WrittenReply("c\nd", True), Judgement("", True, True, True)
    ).shown()
    assert shown == ("a ⏎ b", "c ⏎ d")
