"""toolkit chat --json: one line out for every line in, whatever it was, and the conversation is the library's."""

import json
import subprocess
import sys

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.commands.conftest import MESSAGES, SHORT


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
