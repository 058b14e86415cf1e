"""toolkit chat through a pipe and in JSON lines: one line out for each line in; it talks as the library does."""

import json
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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


def ask(chat, *requests, flags=SHORT):
    """The code, the answers, and what was told at the end."""
    lines = [request if isinstance(request, bytes) else json.dumps(request).encode() for request in requests]
    outcome = chat("--json", *flags, stdin=b"".join(line + b"\n" for line in lines))
    return outcome.code, [json.loads(line) for line in outcome.out.splitlines()], outcome.err


def test_a_message_is_answered_with_all_that_a_reply_has(chat, session):
    code, answers, err = ask(chat, *({"message": message} for message in MESSAGES * 4))
    assert (code, err) == (0, "")
    names = ("finish_reason", "dropped", "prompt_tokens", "cached_tokens", "new_tokens")
    for answer, message in zip(answers, MESSAGES * 4, strict=True):
        reply = session.send(message)
        assert answer == {"response": reply.text, **{name: getattr(reply, name) for name in names}}
    assert answers[-1]["dropped"] > 0
    assert answers[1]["cached_tokens"] > 0


def test_every_request_has_its_answer(chat, session):
    requests = ["message", "history", "prompt", "undo", "undo", "system", "prompt", "reset", "history"]
    values = ["She", True, True, True, True, "He", "She", True, True]
    code, answers, _ = ask(chat, *({name: value} for name, value in zip(requests, values, strict=True)))
    reply, prompt = session.send("She"), session.prompt()
    said = [{"role": "user", "content": "She"}, {"role": "assistant", "content": reply.text}]
    assert code == 0
    assert answers[1] == {"messages": said, "dropped": 0}
    assert answers[2]["prompt"] == prompt.text == "<s><|user|> She<|end|><|assistant|>"
    assert (answers[2]["ids"], answers[2]["roles"], answers[2]["cached"]) == (prompt.ids, prompt.roles, 0)
    assert answers[3:6] == [{"undo": "She"}, {"undo": None}, {"system": "He"}]
    assert answers[6]["prompt"] == "<s><|system|> He<|end|><|user|> She<|end|><|assistant|>"
    assert answers[7:] == [{"reset": True}, {"messages": [{"role": "system", "content": "He"}], "dropped": 0}]


WRONG = {
    b"": "it is not JSON",
    b"hello": "it is not JSON",
    b'{"message": "a"': "it is not JSON",
    b"[" * 100_000: "it is not JSON",
    b'{"message": ' + b"9" * 5000 + b"}": "it is not JSON",
    b'"hello"': "it is text: give an object",
    b"[1]": "it is a list",
    b"{}": "it has 0 requests",
    b'{"message": "a", "undo": true}': "it has 2 requests",
    b'{"massage": "a"}': "there is no request 'massage': give one of message, undo",
    b'{"message": 3}': "message is a number: it must be text",
    b'{"message": null}': "message is null",
    b'{"message": " "}': "blank",
    b'{"message": "a\\u0000"}': "NUL",
    b'{"message": "\\ud800"}': "surrogate",
    b'{"message": "' + b"xq" * 99 + b'"}': "the message has 201 tokens",
    b'{"message": "caf\xe9"}': "it is not UTF-8 (byte 0xE9)",
    b'{"undo": 1}': "undo is a number: it must be true",
    b'{"reset": false}': "reset is false",
    b'{"system": "' + b"xq" * 99 + b'"}': "the system message has",
    b'{"prompt": 7}': "prompt is a number: it must be true or text",
}


def test_a_wrong_line_has_its_own_answer_and_the_conversation_goes_on(chat, session):
    code, answers, err = ask(chat, {"message": "She"}, *WRONG, {"message": "He"}, {"history": True})
    assert code == 2
    replies = [session.send(text).text for text in ("She", "He")]
    assert [answers[0]["response"], answers[-2]["response"]] == replies
    assert answers[-1]["messages"] == [{"role": each.role, "content": each.content} for each in session.messages]
    for answer, words in zip(answers[1:-2], WRONG.values(), strict=True):
        assert answer.keys() == {"error"}
        assert words in answer["error"]
    assert err.startswith(
        f"toolkit: {len(WRONG)} of {len(WRONG) + 3} requests could not be answered, the first is stand"
    )
    assert "line 2: it is not JSON" in err
    assert err.count("\n") == 1


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.binary(max_size=9).map(lambda line: line.replace(b"\n", b""))
        | st.dictionaries(
            st.sampled_from(["message", "undo", "system", "prompt", "x"]), st.text(max_size=5) | st.just(True)
        )
    )
)
def test_there_is_one_line_out_for_every_line_in(chat, requests):
    code, answers, err = ask(chat, *requests, flags=("--max-new-tokens", 2))
    assert len(answers) == len(requests)
    wrong = sum("error" in answer for answer in answers)
    assert code == (2 if wrong else 0)
    assert err.startswith(f"toolkit: {wrong} of {len(requests)} requests" if wrong else "")


def test_a_program_is_answered_before_it_asks_again(chatty):
    command = [sys.executable, "-m", "toolkit", "chat", "--model", str(chatty), "--json", "--max-new-tokens", "3"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        for text in MESSAGES[:2]:
            running.stdin.write(json.dumps({"message": text}).encode() + b"\n")
            running.stdin.flush()
            assert json.loads(running.stdout.readline())["new_tokens"] == 3
        running.stdin.close()
        assert running.wait() == 0
