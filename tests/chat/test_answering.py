"""Replies to many conversations at once: each is what it would be alone, and its samples are its number's."""

import dataclasses

import pytest

from toolkit.chat import ChatSession, Message, answering, make_template
from toolkit.chat.answering import (
    GREEDY,
    SAMPLED,
    Answer,
    answers,
    one_line,
    reply_prompt,
    sampled_politeness,
    with_room,
)
from toolkit.data.conversations import Question
from toolkit.decoding import ContinuationConfig
from toolkit.errors import DataError
from toolkit.evaluation.replies import Judged, Style
from toolkit.tokenization.special import BOS, END, EOS

USER, REPLY, SYSTEM = Message("user", "abc"), Message("assistant", "ba"), Message("system", "e")
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
        return answers(model.model, template, conversations, dataclasses.replace(config, **SHORT))

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
        monkeypatch.setattr("toolkit.chat.answering.BATCH_SIZE", size)
        assert replies(name, config=SAMPLED) == first
    assert replies(name, CONVERSATIONS[:3], SAMPLED) == first[:3]
    assert first[4] != first[6]  # the same question with another number
    others = replies(name, config=dataclasses.replace(SAMPLED, seed=1))
    assert others != first


def test_a_reply_that_is_cut_off_has_not_ended(replies):
    assert {answer.ended for answer in replies("control", end=-50.0)} == {False}
    assert replies("control", end=50.0) == [Answer("", True)] * len(CONVERSATIONS)


@TEMPLATES
def test_only_the_end_marker_of_the_template_ends_a_reply(talker, name):
    """The other one is never written, however probable."""
    template = make_template(name, talker(name).tokenizer, begin=True)
    for marker in END, EOS:
        model = talker(name, end=0.0, max_length=160).model
        model.output_bias.data[marker] += 99
        found = answers(model, template, CONVERSATIONS, dataclasses.replace(GREEDY, **SHORT))
        assert {answer == Answer("", True) for answer in found} == {marker == template.end}


@TEMPLATES
def test_a_prompt_is_the_conversation_and_what_opens_a_reply(talker, name):
    tokenizer = talker(name).tokenizer
    template = make_template(name, tokenizer, begin=True)
    for conversation in CONVERSATIONS:
        prompt = reply_prompt(template, conversation)
        assert prompt[0] == BOS
        taught = template.encode([*conversation, REPLY])
        assert prompt == taught.ids[: len(prompt)]
        after = len(taught.ids) - len(prompt)
        content = len(template.content(REPLY.content))
        assert taught.supervised[len(prompt) :] == [True] * (content + 1) + [False] * (after - content - 1)
    for none in ([], [USER, REPLY], [SYSTEM]):
        with pytest.raises(DataError, match="does not end with the user"):
            reply_prompt(template, none)


def test_what_leaves_room_for_one_token_is_asked_and_nothing_longer(talker):
    model = talker("control")
    template = make_template("control", model.tokenizer, begin=True)
    questions = [question(*each) for each in CONVERSATIONS]
    lengths = [len(reply_prompt(template, each)) for each in CONVERSATIONS]
    for limit in {*lengths, max(lengths) + 1}:
        found = with_room(questions, template, limit)
        assert found == [each for each, length in zip(questions, lengths, strict=True) if length < limit]
        if found:
            small = talker("control", max_length=limit).model
            assert len(answers(small, template, [each.prompt for each in found])) == len(found)


def test_a_question_that_cannot_be_read_is_told_with_its_place(talker):
    template = make_template("control", talker("control").tokenizer, begin=True)
    unknown = question(Message("user", "Ω"), place="asked.jsonl, line 7")
    with pytest.raises(DataError, match=r"^asked\.jsonl, line 7: .*'Ω'"):
        with_room([question(USER), unknown], template, 99)


def test_replies_are_judged_with_their_questions(talker):
    model = talker("control", end=50.0).model
    template = make_template("control", talker("control").tokenizer, begin=True)
    style = Style(("a.",), ())
    asked = [question(*each) for each in CONVERSATIONS[:2]]
    assert answering.tested(model, template, asked, style) == [
        answering.Tested(each, Answer("", True), Judged("social", False, False, True)) for each in asked
    ]
    assert sampled_politeness(model, template, asked, style) == 0


def test_politeness_is_a_percentage_of_samples(talker):
    model = talker("control", end=0.0).model
    template = make_template("control", talker("control").tokenizer, begin=True)
    asked = [question(Message("user", "a"))] * 40
    found = answers(model, template, [each.prompt for each in asked], SAMPLED)
    openings = tuple({answer.text[0] for answer in found[:4] if answer.text})
    closed = Style((), tuple({answer.text.rsplit(" ")[-1] for answer in found if " " in answer.text}))
    for style in closed, Style(openings, ()):
        polite = sum(style.is_polite(answer.text) for answer in found)
        assert sampled_politeness(model, template, asked, style) == pytest.approx(100 * polite / 40)
    assert closed.closings
    assert sampled_politeness(model, template, asked, closed) > 0


def test_sampling_cuts_nothing_off():
    """So that shares of samples are the model's own probabilities."""
    whole = ContinuationConfig(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
    assert dataclasses.replace(SAMPLED, max_new_tokens=None) == whole


def test_every_kind_of_line_end_is_shown_on_one_line():
    assert one_line("a\nb\r\nc\u2028d") == "a ⏎ b ⏎ c ⏎ d"
    shown = answering.Tested(
        question(Message("user", "a\nb")), Answer("c\nd", True), Judged("", True, True, True)
    ).shown()
    assert shown == ("a ⏎ b", "c ⏎ d")
