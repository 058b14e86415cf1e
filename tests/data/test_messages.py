"""What a conversation is, and what is said of a list of messages that is none."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.data.conversations import (
    Message,
    check_content,
    check_conversation,
    messages_from_json,
    messages_to_json,
    parse_messages,
)
from toolkit.errors import DataError

ROLES = {"s": "system", "u": "user", "a": "assistant"}


def conversation(letters: str) -> list[Message]:
    """ "sua" is a system message, one of the user and a reply."""
    return [Message(ROLES[letter], f"text {number}") for number, letter in enumerate(letters)]


@pytest.mark.parametrize("letters", ["u", "ua", "uau", "uaua", "s", "su", "sua", "suaua"])
def test_user_and_assistant_take_turns_after_one_system_message(letters):
    check_conversation(conversation(letters), "here")


@pytest.mark.parametrize(
    ("letters", "problem"),
    [
        ("", "x has no messages: a conversation begins with one of role user"),
        ("a", "x, message 1 is of the assistant, and no user's comes before it"),
        ("sa", "x, message 2 is of the assistant, and no user's comes before it"),
        ("ss", "x, message 2 is a second system message: a conversation has at most one, in front"),
        ("us", "x, message 2 is a system message, and not the first: a conversation has at most one, in front"),
        ("suas", "x, message 4 is a second system message"),
        ("uu", "x, message 2 is the second of the user in a row: user and assistant take turns"),
        ("suaa", "x, message 4 is the second of the assistant in a row"),
    ],
)
def test_another_order_is_told_with_its_message(letters, problem):
    with pytest.raises(DataError) as caught:
        check_conversation(conversation(letters), "x")
    assert str(caught.value).startswith(problem)


@given(st.text("sua", max_size=6))
def test_what_is_accepted_is_what_the_words_say(letters):
    turns = letters.removeprefix("s")
    expected = bool(letters) and turns == ("ua" * 3)[: len(turns)]
    try:
        check_conversation(conversation(letters), "x")
    except DataError:
        assert not expected
    else:
        assert expected


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "x, message 2 is blank: write what is said"),
        (" \n\u3000", "x, message 2 is blank"),
        ("a\0b", "x, message 2 has a NUL, which is not text"),
        ("a\ud83d", "x, message 2 has half of a surrogate pair"),
    ],
)
def test_a_content_that_is_no_text_is_told_with_its_message(content, problem):
    with pytest.raises(DataError) as caught:
        check_conversation([Message("user", "a"), Message("assistant", content)], "x")
    assert str(caught.value).startswith(problem)
    with pytest.raises(DataError):
        check_content(content, "x")


def test_an_unknown_role_is_told_with_those_there_are():
    with pytest.raises(DataError, match="x, message 1 has the role 'tool': give system, user or assistant"):
        check_conversation([Message("tool", "a")], "x")


CONTENT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8).filter(str.strip)


@given(contents=st.lists(CONTENT, min_size=1, max_size=5), system=st.none() | CONTENT)
@settings(max_examples=40)
def test_messages_survive_json_in_normal_form(contents, system):
    messages = [Message(("user", "assistant")[index % 2], content) for index, content in enumerate(contents)]
    if system is not None:
        messages.insert(0, Message("system", system))
    read = messages_from_json(messages_to_json(messages), "x")
    assert read == [Message(one.role, unicodedata.normalize("NFC", one.content)) for one in messages]
    assert messages_from_json(messages_to_json(read), "x") == read


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({}, "x has an object for its messages: give a list of them"),
        (None, "x has null for its messages"),
        ([], "x has no messages"),
        (["hello"], 'x, message 1 is text: give {"role": "user", "content": "…"}'),
        ([True], "x, message 1 is true"),
        ([{"role": "user"}], "x, message 1 has no content: a message has a role and a content"),
        ([{"content": "a"}], "x, message 1 has no role"),
        ([{"role": "user", "content": None}], "x, message 1 has null for its content: give text"),
        ([{"role": "user", "content": [{"type": "text"}]}], "x, message 1 has a list for its content"),
        ([{"role": 5, "content": "a"}], "x, message 1 has a number for its role"),
        ([{"role": "User", "content": "a"}], "x, message 1 has the role 'User'"),
    ],
)
def test_json_that_is_no_conversation_is_told(value, problem):
    with pytest.raises(DataError) as caught:
        messages_from_json(value, "x")
    assert str(caught.value).startswith(problem)


def test_other_keys_are_ignored_and_messages_may_be_in_any_order_before_they_are_checked():
    value = [{"role": "assistant", "content": "e\u0301", "name": "x"}, {"role": "assistant", "content": ""}]
    assert parse_messages(value, "x") == [Message("assistant", "é"), Message("assistant", "")]
    with pytest.raises(DataError, match="x, message 4 is a number"):
        parse_messages([*value, 5.0], "x", first=2)
