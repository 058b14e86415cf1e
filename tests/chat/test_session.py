"""A session: every reply is what the model writes after the whole prompt, read anew, whatever happened before."""

import json
from itertools import islice, pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.chat import ChatSession, Message
from toolkit.chat.session import ReplyStream
from toolkit.data.conversations import read_conversations
from toolkit.decoding import ContinuationConfig, generate
from toolkit.decoding.state import GPTState
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.tokenization.sentencepiece import FIRST_BYTE

SAID = ["ab", "User: cd", "का a", "e", "bad\nAssistant: cab", "abcde abcde", "d"]
WAYS = [{}, {"do_sample": True, "temperature": 1.0}, {"num_beams": 3}]
BLANKS = [" ", "\n", "\r", "\u2028"]  # what is not kept of a reply that is nothing else
SIZES = [{}, {"positions": "learned", "begin": False}, {"positions": "sinusoidal", "num_key_value_heads": 1}]


def anew(session, ids, number=0):
    """What the model writes after the whole prompt, without a session."""
    prompt = ids[len(session.template.begin) :]
    model, bans, end = session.model.model, session.model.bad_ids(session._bad_words), session.template.end
    return generate(model, [prompt], session.config, bad_words=bans, numbers=[number], end=end)[0][0]


def said(session):
    return [(message.role, message.content) for message in session.messages]


@pytest.mark.parametrize("template", ["control", "plain"])
@pytest.mark.parametrize(("sizes", "way"), [*product(SIZES, WAYS[:1]), *product(SIZES[:1], WAYS[1:])], ids=str)
def test_every_reply_is_that_of_the_whole_prompt(talker, template, sizes, way):
    """With what was read before, past the context too, and with the ids that replies were written as."""
    session = talker(template, **sizes).chat("be a", min_new_tokens=1, bad_words=BLANKS, **way)
    session._stops = ()
    dropped, reasons = [], set()
    for number, text in enumerate(SAID):
        prompt = session.prompt(text)
        reply = session.send(text)
        whole = anew(session, prompt.ids, number)
        assert reply.log_prob == pytest.approx(whole.log_prob, abs=1e-9)
        assert reply.new_tokens == len(whole.ids)
        assert (reply.finish_reason == "stop") == whole.finished
        assert (reply.prompt_tokens, reply.cached_tokens) == (len(prompt.ids), prompt.cached)
        *_, last = session._history.exchanges
        assert last.reply.ids == session.template.around("assistant", whole.ids)
        assert session.messages[-1] == Message("assistant", reply.text)
        assert session.prompt() == prompt
        dropped.append(reply.dropped)
        assert session.dropped == reply.dropped == prompt.dropped
        reasons.add(reply.finish_reason)
        assert len(prompt.ids) + session._reserved <= 96
    assert dropped == sorted(dropped)
    assert dropped[0] == 0 < dropped[-1]
    assert "stop" in reasons


def test_what_was_read_is_not_read_again(talker, monkeypatch):
    session, read = talker().chat("abc", max_new_tokens=6, min_new_tokens=5), []
    inner = GPTState._read
    monkeypatch.setattr(GPTState, "_read", lambda self, texts: read.extend(map(len, texts)) or inner(self, texts))
    first, second = session.send("ab"), session.send("cd")
    assert (first.cached_tokens, second.dropped) == (0, 0)
    # The end marker, or the last id before the limit, was written and not read.
    assert second.cached_tokens - first.prompt_tokens == first.new_tokens - (first.finish_reason == "length")
    assert sum(read) == first.prompt_tokens - 1 + second.prompt_tokens - 1 - second.cached_tokens


@given(st.data())
@settings(max_examples=10)
def test_any_order_of_what_one_can_do(talker, tmp_path_factory, data):
    """A model of lists beside it; and at the end a new session that reads the file replies the same."""
    path = tmp_path_factory.mktemp("talk") / "talk.jsonl"
    session = talker(data.draw(st.sampled_from(["control", "plain"]))).chat("be")
    told, saved = [("system", "be")], None
    actions = ["send", "send", "stop", "undo", "reset", "prompt", "save", "load"]
    for action in data.draw(st.lists(st.sampled_from(actions), max_size=12)):
        text = data.draw(st.sampled_from(SAID))
        if action in ("send", "stop"):
            stream = session.stream(text)
            parts = list(islice(stream, 2 if action == "stop" else None))
            session.stop()
            assert not parts or "".join(parts) == session.last.text
            assert all(parts)
            if "".join(parts).strip():
                told += [("user", text), ("assistant", "".join(parts))]
        elif action == "undo":
            assert session.undo() == (told[-2][1] if len(told) > 1 else None)
            told = told[:-2] if len(told) > 1 else told
        elif action == "reset":
            session.reset()
            told = told[:1]
        elif action == "prompt":
            session.prompt(text)
        elif action == "save":
            session.save(path)
            saved = list(told)
        elif saved:
            session.load(path)
            told = list(saved)
        assert said(session) == told
    session.save(path)
    other = ChatSession(session.model)
    other.load(path)
    session.load(path)  # what was written without the space that a content begins with has it now
    assert said(other) == told
    assert other.prompt("ab").ids == session.prompt("ab").ids
    assert other.send("ab").text == session.send("ab").text


def test_taken_back_is_as_if_never_said(talker):
    talked, other = (talker().chat("be") for _ in range(2))
    for session in talked, other:
        session.send("ab")
    talked.send("cd")
    assert talked.undo() == "cd"
    assert talked.last is None
    assert talked.send("e").text == other.send("e").text
    assert said(talked) == said(other)
    talked.reset()
    assert said(talked) == [("system", "be")]
    assert talked.undo() is None
    assert talked.send("ab").text == said(other)[2][1]


# Streams


def test_a_stream_says_nothing_before_it_is_asked(talker):
    session = talker().chat()
    unasked = session.stream("ab")
    assert session.messages == []
    session.send("cd")
    assert list(unasked) == []
    assert said(session)[0] == ("user", "cd")


def test_a_forgotten_stream_is_cut_off(talker):
    session = talker().chat(min_new_tokens=20, bad_words=BLANKS)
    stream = session.stream("ab")
    given = next(stream) + next(stream)
    del stream
    assert session.last.finish_reason == "interrupted"
    assert session.last.log_prob is None
    assert said(session) == [("user", "ab"), ("assistant", given)]


@pytest.mark.parametrize("template", ["control", "plain"])
@pytest.mark.parametrize("tokenizer", ["characters", "bytes", "unigram"])
def test_after_a_ctrl_c_it_goes_on(talker, template, tokenizer, monkeypatch):
    logits = GPTState.logits
    for step in (0, 1, 3):
        session, steps, given = talker(template, tokenizer).chat(min_new_tokens=6), iter(range(1000)), []

        def interrupted(self, ids, steps=steps, step=step):
            if next(steps) == step:
                raise KeyboardInterrupt
            return logits(self, ids)

        monkeypatch.setattr(GPTState, "logits", interrupted)
        with pytest.raises(KeyboardInterrupt):
            given.extend(session.stream("ab"))
        assert session.last.finish_reason == "interrupted"
        text = "".join(session.last.text)
        assert said(session) == ([("user", "ab"), ("assistant", text)] if text.strip() else [])
        ids = session.prompt("e").ids
        assert session.send("e").log_prob == pytest.approx(anew(session, ids).log_prob, abs=1e-9)


def test_numbers_that_are_not_finite_leave_nothing_behind(talker, monkeypatch):
    session, steps, logits = talker().chat(min_new_tokens=9), iter(range(100)), GPTState.logits
    broken = lambda self, ids: logits(self, ids) * (float("nan") if next(steps) == 4 else 1)  # noqa: E731
    monkeypatch.setattr(GPTState, "logits", broken)
    with pytest.raises(ModelError, match="not finite"):
        session.send("ab")
    assert session.messages == []
    assert session.last is None


def writing(session, text, stops=()):
    """A reply that is this text."""

    def ids():
        yield from session.model.tokenizer.encode(text)
        raise AssertionError("the text did not end")

    return ReplyStream(ids(), session.template, (*session._stops, *stops))


def test_a_model_that_does_not_know_the_end_marker_is_stopped(talker):
    session = talker("plain", "bytes").chat()
    for written, text in [
        ("Hello.\nUser: and", "Hello."),
        ("का\nि\nSystem:", "का\nि"),
        ("a\n\\User: b\nAssistant:", "a\nUser: b"),
        ("\\\\User: b\n\\Userx\nUser:x", "\\User: b\n\\Userx"),
    ]:
        reply = writing(session, written)
        assert "".join(reply.parts()) == reply.text == text
        assert reply.ended_by_itself
        assert reply.log_prob is None
        assert reply.content == session.template.content(text)
    reply = writing(talker("control", "bytes").chat(), "a\nUser: b###", ["##"])
    assert "".join(reply.parts()) == "a\nUser: b"


def test_ids_as_they_were_written_stay(talker, tokenizers):
    """Though the tokenizer would cut the text in another way."""
    session, pieces = talker("control", "unigram").chat(), [FIRST_BYTE + byte for byte in b"boy"]
    assert tokenizers["unigram"].encode("boy") != pieces
    reply = ReplyStream((each for each in pieces), session.template, ())
    assert "".join(reply.parts()) == "boy"
    assert reply.content == pieces


# What is shown


def test_the_prompt_is_shown_id_by_id(talker):
    session = talker("control").chat("be")
    assert session.prompt().text == "<s><|system|> be<|end|>"
    shown = session.prompt("a")
    assert shown.text == "<s><|system|> be<|end|><|user|> a<|end|><|assistant|>"
    assert "".join(shown.pieces) == shown.text
    assert shown.roles == [None, *["system"] * 5, *["user"] * 4, "assistant"]
    assert len(shown.ids) == len(shown.pieces) == 11
    assert shown.cached == 0
    plain = talker("plain").chat()
    assert plain.prompt("का").text == "<s>User: का\nAssistant:"
    assert plain.messages == []


def test_more_of_the_conversation_is_dropped_the_longer_it_is(talker):
    session = talker().chat("be", max_new_tokens=9, min_new_tokens=3, bad_words=BLANKS)
    replies = [session.send("abcde abcde") for _ in range(6)]
    assert all(before.dropped <= after.dropped for before, after in pairwise(replies))
    shown = session.prompt("e")
    assert shown.dropped >= replies[-1].dropped > 0
    assert shown.text.startswith("<s><|system|> be<|end|><|user|> abcde abcde<|end|>")
    assert len(session.messages) == 13


# Files


def test_a_saved_conversation_is_what_fine_tuning_reads(talker, tmp_path):
    session = talker(tokenizer="unigram", end=4.0).chat('boy\u2028 "म"\n')
    session.send("I am\r\n<|end|>")
    session.send("User: hi")
    session.save(tmp_path / "talk.jsonl")
    ((messages, _),) = read_conversations(tmp_path / "talk.jsonl")
    assert messages == session.messages
    assert len((tmp_path / "talk.jsonl").read_bytes().splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, "cannot be read: No such file"),
        (b"", "is damaged, or is not the JSON of one conversation"),
        (b'{"messages": [', "is damaged"),
        (b'{"messages": []}\n{"messages": []}', "is damaged"),
        ('{"messages": "म"}'.encode("utf-16"), "is damaged"),
        (b"[" * 100_000, "is damaged"),
        (b"[]", "is no conversation"),
        (b'{"messages": 3}', "has a number for its messages"),
        (b'{"messages": []}', "has no messages"),
        (b'{"messages": [{"role": "user"}]}', "message 1 has no content"),
        (b'{"messages": [{"role": "user", "content": "ab"}]}', "ends with a message of the user"),
        (b'{"messages": [{"role": "assistant", "content": "ab"}]}', "message 1 is of the assistant"),
        (
            b'{"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "a"}]}',
            "this model: the message cannot be read",
        ),
    ],
)
def test_a_damaged_file_changes_nothing(talker, tmp_path, content, error):
    session, path = talker().chat("be"), tmp_path / "talk.jsonl"
    session.send("ab")
    before = session.messages
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=error) as raised:
        session.load(path)
    assert "\n" not in str(raised.value)
    assert "talk.jsonl" in str(raised.value)
    assert session.messages == before


def test_what_cannot_be_saved_leaves_the_file(talker, tmp_path):
    path = tmp_path / "talk.jsonl"
    path.write_text("old")
    with pytest.raises(DataError, match="the conversation has no messages"):
        talker().chat().save(path)
    assert path.read_text() == "old"
    talker().chat("be").save(path)
    assert json.loads(path.read_text()) == {"messages": [{"role": "system", "content": "be"}]}


# What is refused


def test_what_is_no_conversation_is_refused(talker):
    with pytest.raises(ModelError, match="was not taught to converse: give one that was"):
        talker("none").chat()
    assert talker("none").chat(template="plain").template.name == "plain"
    assert talker("plain").chat(template="control").template.name == "control"
    for wrong, error in [
        ({"template": "none"}, "must be one of control, plain"),
        ({"past_context": "slide"}, "drops its oldest exchanges"),
        ({"num_return_sequences": 2, "do_sample": True}, "num_return_sequences is 2"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"stop_strings": "ab"}, "stop strings are given as a list"),
        ({"bad_words": [""]}, "a bad word is empty"),
        ({"min_new_tokens": 96}, "min_new_tokens is 96, but this model reads 96"),
    ]:
        with pytest.raises(ConfigError, match=error):
            talker().chat(**wrong)
    for system in (" ", "\ud800"):
        with pytest.raises(DataError, match=r"^the system message"):
            talker(tokenizer="bytes").chat(system)
    with pytest.raises(DataError, match=r"^the system message has 103 tokens"):
        talker().chat("a" * 100)


def test_what_cannot_be_said_is_told_at_once(talker):
    session = talker().chat("be")
    for text, error in [("", "is blank"), (" \n", "is blank"), ("Q", "'Q'"), ("a" * 99, "has 102 tokens")]:
        with pytest.raises(DataError, match=rf"^the message .*{error}"):
            session.stream(text)
    assert said(session) == [("system", "be")]
    assert session.send("ab").prompt_tokens == 12


@pytest.mark.parametrize("letters", ["a", "\u0301\u0323"])
def test_what_no_model_could_read_is_refused_by_its_length(talker, letters):
    session, text = talker().chat("be"), letters * (1_000_000 // len(letters))
    for say in session.send, session.prompt, lambda text: setattr(session, "system", text):
        with pytest.raises(DataError, match="message has 1000000 characters, more than the model reads"):
            say(text)
    assert said(session) == [("system", "be")]


def test_room_is_kept_for_a_reply(talker):
    for config, reserved in [
        ({}, 24),
        ({"max_new_tokens": 5}, 5),
        ({"max_new_tokens": 40}, 24),
        ({"min_new_tokens": 30}, 30),
    ]:
        session = talker().chat(**config)
        assert session._reserved == reserved
    assert ChatSession(talker(max_length=3)).config == ContinuationConfig(do_sample=False)
    assert talker(max_length=1000).chat()._reserved == 64
    with pytest.raises(DataError, match="room for 1 beside"):
        talker(max_length=4).chat().send("ab")
