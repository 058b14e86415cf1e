"""toolkit chat: words and pipes are ways into one conversation, which is the library's."""

import json

import pytest

import toolkit
from tests.commands.conftest import MESSAGES, SHORT, one_line
from tests.outcome import Outcome
from toolkit.chat import ChatSession, Reply
from toolkit.decoding import ContinuationConfig


def test_words_and_lines_are_said_in_one_conversation(chat, session):
    expected = [one_line(session.send(message).text) for message in MESSAGES]
    text = "".join(f"{message}\n" for message in MESSAGES).encode()
    assert chat(*SHORT, *MESSAGES).lines == expected
    assert chat(*SHORT, stdin=text).lines == expected
    responses = [json.loads(line)["response"] for line in chat(*SHORT, "--json", *MESSAGES).lines]
    assert [*map(one_line, responses)] == expected
    assert chat(*SHORT, MESSAGES[0]).lines == expected[:1]
    assert chat(*SHORT, *MESSAGES * 4).err.startswith("(The first exchange no longer fits")
    assert chat(*SHORT, "--quiet", *MESSAGES * 4).err == ""


def test_an_empty_line_gives_an_empty_one_and_is_not_said(chat):
    assert (
        chat(*SHORT, stdin=b"a\n\n \t\nb\n").lines
        == [line for reply in chat(*SHORT, stdin=b"a\nb\n").lines for line in (reply, "", "")][:4]
    )
    assert chat(stdin=b"") == Outcome(0, "", "")


def test_a_line_that_begins_with_a_slash_is_a_message(chat, session):
    assert chat(*SHORT, stdin=b"/reset\n").lines == [one_line(session.send("/reset").text)]


def test_a_reply_of_several_lines_is_one_line_unless_it_is_the_only_one(chat, monkeypatch):
    parts = ["one\r\nt", "wo\nthree"]
    reply = Reply("".join(parts), "stop", 0, 3, 0, 3, -1.0)

    def stream(session, _):
        session.last = reply
        return iter(parts)

    monkeypatch.setattr(ChatSession, "stream", stream)
    assert chat("a", "b c").lines == ["one two three"] * 2
    assert chat("a").out == "one\r\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("flags", "given", "generation"),
    [
        (["--system", "He drinks water."], {"system": "He drinks water."}, {}),
        (["--template", "plain"], {"template": "plain"}, {}),
        (["--do-sample", "--seed", 3, "--temperature", 2.0], {}, {"do_sample": True, "seed": 3, "temperature": 2.0}),
        (["--num-beams", 3], {}, {"num_beams": 3}),
        (["--bad-words", "boy", "--stop-strings", "a"], {"bad_words": ["boy"], "stop_strings": ["a"]}, {}),
    ],
)
def test_flags_are_the_settings_of_the_library(chat, chatty, flags, given, generation):
    config = ContinuationConfig(**{"do_sample": False, "max_new_tokens": 6, **generation})
    session = ChatSession(toolkit.load(chatty), config=config, **given)
    assert chat(*SHORT, *flags, *MESSAGES).lines == [one_line(session.send(message).text) for message in MESSAGES]


def test_what_was_saved_goes_on_as_if_it_had_never_stopped(chat, tmp_path):
    whole = chat(*SHORT, "--system", "He drinks", *MESSAGES).lines
    file = tmp_path / "talk.json"
    assert chat(*SHORT, "--system", "He drinks", "--save", file, *MESSAGES[:2]).lines == whole[:2]
    assert chat(*SHORT, "--load", file, "--save", file, MESSAGES[2]).lines == whole[2:]
    contents = [message["content"] for message in json.loads(file.read_text(encoding="utf-8"))["messages"]]
    assert contents[:2] == ["He drinks", MESSAGES[0]]
    assert len(contents) == 7
    other = chat(*SHORT, "--load", file, "--system", "She", "--json", stdin=b'{"history": true}\n').lines
    assert [message["content"] for message in json.loads(other[0])["messages"]] == ["She", *contents[1:]]


def test_a_mistake_in_a_line_comes_after_the_replies_to_those_before(chat, tmp_path):
    outcome = chat(*SHORT, "--save", tmp_path / "talk", stdin=b"a\nb\n" + b"xq" * 99 + b"\nc\n")
    assert outcome.code == 2
    assert outcome.out.splitlines() == chat(*SHORT, stdin=b"a\nb\n").lines
    assert outcome.err.startswith("toolkit: standard input, line 3: the message has")
    assert len(json.loads((tmp_path / "talk").read_text(encoding="utf-8"))["messages"]) == 4
