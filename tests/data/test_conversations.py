"""Files of conversations: what is read of each form, and what is said of a file that cannot be read."""

import gzip
import json
import os
import tracemalloc
import unicodedata
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.data.conversations import (
    Message,
    Question,
    check_content,
    check_conversation,
    messages_from_json,
    messages_to_json,
    parse_messages,
    read_conversations,
    read_tests,
)
from toolkit.errors import DataError

U, A = {"role": "user", "content": "Hello!"}, {"role": "assistant", "content": "Hi."}
TALK = [Message("user", "Hello!"), Message("assistant", "Hi.")]
LINE = json.dumps({"messages": [U, A]})
QUESTION = '{"messages": [{"role": "user", "content": "a"}], "accept": '


@pytest.fixture
def write(tmp_path):
    def write(name: str, content) -> Path:
        """content: bytes, text, or a list of objects, one a line."""
        path = tmp_path / name
        if isinstance(content, list):
            content = "".join(json.dumps(one) + "\n" for one in content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def messages(path: Path) -> list[list[Message]]:
    return [conversation.messages for conversation in read_conversations(path)]


def refusal(path: Path, read=read_conversations) -> str:
    """The sentence with which a file is refused, without the directory's name."""
    with pytest.raises(DataError) as caught:
        list(read(path))
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert "\n" not in sentence
    return sentence.removeprefix(f"{path.parent}{os.sep}")


CONTENT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8).filter(str.strip)


@st.composite
def conversations(draw):
    contents = draw(st.lists(st.tuples(CONTENT, CONTENT), min_size=1, max_size=3))
    talk = [message for user, reply in contents for message in (Message("user", user), Message("assistant", reply))]
    system = draw(st.none() | CONTENT)
    return talk if system is None else [Message("system", system), *talk]


def in_form(form: str, talk: list[Message]) -> dict:
    plain = messages_to_json(talk)
    if form == "messages":
        return {"messages": plain, "prompt": 5}
    if form == "sharegpt":
        names = {"user": "human", "assistant": "gpt", "system": "system"}
        return {"conversations": [{"from": names[one.role], "value": one.content} for one in talk]}
    return {"prompt": plain[:-1], "completion": plain[-1:] if form == "completion" else talk[-1].content}


@given(
    talks=st.lists(conversations(), min_size=1, max_size=3),
    form=st.sampled_from(["messages", "sharegpt", "completion", "text"]),
    escaped=st.booleans(),
    name=st.sampled_from(["c.jsonl", "c.NDJSON", "c.json", "c.jsonl.gz", "list.json"]),
)
@settings(max_examples=40)
def test_conversations_survive_every_form_and_file(tmp_path_factory, talks, form, escaped, name):
    path = tmp_path_factory.mktemp("any") / name
    objects = [in_form(form, talk) for talk in talks]
    if name == "list.json":
        text = json.dumps(objects, ensure_ascii=escaped, indent=1)
    else:
        text = "".join(json.dumps(one, ensure_ascii=escaped) + "\n" for one in objects)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    expected = [[Message(one.role, unicodedata.normalize("NFC", one.content)) for one in talk] for talk in talks]
    assert messages(path) == expected
    unit = "row" if name == "list.json" else "line"
    places = [f"{path}, {unit} {number}" for number in range(1, len(talks) + 1)]
    assert [one.place for one in read_conversations(path)] == places


def test_a_prompt_of_text_is_one_message_whatever_it_looks_like(write):
    prompt = "User: Hi\nAssistant: Hello\nUser: Who are you?\nAssistant:"
    path = write("c.jsonl", [{"prompt": prompt, "completion": "A model."}])
    assert messages(path) == [[Message("user", prompt), Message("assistant", "A model.")]]


def test_a_completion_may_go_on_for_several_messages(write):
    path = write("c.jsonl", [{"prompt": "Hello!", "completion": [A, U, A]}])
    assert messages(path) == [TALK * 2]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_marks_and_line_ends_do_no_harm(write, mark, end, last):
    text = mark + end.join([LINE, LINE]) + end * last
    assert messages(write("c.jsonl", text)) == [TALK, TALK]


def test_parquet_holds_lists_of_messages(tmp_path):
    import pyarrow
    import pyarrow.parquet

    talk = [{**U, "weight": None}, {**A, "weight": 1}]
    columns = {"messages": [talk, None], "prompt": [None, "Hello!"], "completion": [None, "Hi."]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "c.parquet")
    assert messages(tmp_path / "c.parquet") == [TALK, TALK]
    talk[1]["weight"] = 0
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "c.parquet")
    assert refusal(tmp_path / "c.parquet").startswith("c.parquet, row 1, message 2 has weight 0")
    pyarrow.parquet.write_table(pyarrow.table({"messages": []}), tmp_path / "c.parquet")
    assert refusal(tmp_path / "c.parquet") == "c.parquet has no rows: it needs at least one"
    (tmp_path / "c.parquet").write_bytes(b"PAR1 and nothing of the kind")
    assert "c.parquet is cut off, or is not a Parquet file" in refusal(tmp_path / "c.parquet")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([{"messages": [U, A, U]}], "line 1 ends with a message of the user: only replies are learned"),
        ([{"messages": [{**U, "role": "system"}]}], "line 1 ends with a message of the system"),
        ([{"messages": [U, A]}, {"messages": [A]}], "line 2, message 1 is of the assistant"),
        ([{"messages": [{**U, "role": "system"}] * 2 + [U, A]}], "line 1, message 2 is a second system message"),
        ([{"messages": {}}], "line 1 has an object for its messages"),
        ([{"messages": []}], "line 1 has no messages"),
        ([{"messages": [U, {**A, "content": " "}]}], "line 1, message 2 is blank"),
        ([{"messages": [U, {**A, "content": "\0"}]}], "line 1, message 2 has a NUL"),
        ([{"messages": [U, {**A, "content": "\ud800"}]}], "line 1, message 2 has half of a surrogate pair"),
        ([{"messages": [U, {"role": "assistant"}]}], "line 1, message 2 has no content"),
        ([{"messages": [U, {**A, "role": "function"}]}], "line 1, message 2 has the role 'function'"),
        ([{"messages": [U, {**A, "weight": 0}]}], "line 1, message 2 has weight 0: every reply is learned alike"),
        ([{"messages": [U, {**A, "train": False}]}], "line 1, message 2 has train False"),
        ([{"conversations": [{"from": "human"}]}], "line 1, message 1 has no content"),
        ([{"conversations": [{"from": "bing", "value": "a"}]}], "line 1, message 1 has the role 'bing'"),
        ([{"conversations": [{"from": [], "value": "a"}]}], "line 1, message 1 has a list for its role"),
        ([{"conversations": "a"}], "line 1 has text for its messages"),
        ([{"prompt": "a"}], "line 1 has no conversation, only prompt: give messages, or prompt and completion"),
        ([{"prompt": "a", "completion": None}], "line 1 has no conversation, only prompt"),
        ([{}], "line 1 has no conversation, only nothing"),
        ([{"prompt": "", "completion": "a"}], "line 1, prompt, message 1 is blank"),
        ([{"prompt": "a", "completion": " "}], "line 1, message 2 is blank"),
        ([{"prompt": 5, "completion": "a"}], "line 1, prompt has a number for its messages"),
        ([{"prompt": [U, A], "completion": "a"}], "line 1, prompt ends with a message of the assistant"),
        ([{"prompt": [U], "completion": [U]}], "line 1, message 2 is the second of the user in a row"),
        ([{"prompt": [U], "completion": [5]}], "line 1, message 2 is a number"),
        ([{"prompt": [U], "completion": []}], "line 1 ends with a message of the user"),
        ([{"prompt": [U], "completion": [{**A, "weight": 0}]}], "line 1, completion, message 1 has weight 0"),
        (["a"], "line 1 is text, not a JSON object"),
        ([None], "line 1 is null, not a JSON object"),
        ("{}x", "line 1 is not JSON (column 3: extra data): write one object a line"),
        (f"{LINE}\n\n{LINE}\n", "line 2 is empty: write one object a line"),
        (f"{LINE}\n{{", "line 2 is not JSON"),
        (f"{LINE}\n".encode() + b'{"a": "\xe9"}\n', "line 2 is not UTF-8"),
        ('{"a": ' + "[" * 90_000, "line 1 is not JSON (nested too deeply)"),
        ('{"a": ' + "1" * 5000 + "}", "line 1 is not JSON (it has a number of 5000 digits)"),
        (f"[{LINE}, 5]", "row 2 is a number, not a JSON object"),
        (f"[{LINE},\n{{]", "line 2 is not JSON"),
        ("[]", "holds an empty list"),
        ("[" * 90_000, "is not JSON (nested too deeply)"),
        ("", "is empty"),
        (LINE.encode("utf-16"), "is UTF-16"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(write, content, problem):
    sentence = refusal(write("c.jsonl", content))
    assert problem in sentence
    assert sentence.startswith(("c.jsonl, ", "c.jsonl is", "c.jsonl holds"))


def test_files_that_are_none_are_refused(write, tmp_path):
    assert refusal(tmp_path / "none.jsonl") == "none.jsonl does not exist: check the path"
    assert "ends in .jsonl, .ndjson, .json, .parquet" in refusal(write("c.csv", LINE))
    assert "is cut off, damaged or" in refusal(write("c.jsonl.gz", gzip.compress(LINE.encode() * 99)[:-9]))
    (tmp_path / "d.jsonl").mkdir()
    assert "is a directory" in refusal(tmp_path / "d.jsonl")
    os.mkfifo(tmp_path / "p.jsonl")
    assert "is a pipe or a device" in refusal(tmp_path / "p.jsonl")


def test_lines_are_read_as_they_are_asked_for(tmp_path):
    long = json.dumps({"messages": [U, {**A, "content": "Hi. " * 5000}]}) + "\n"
    path = tmp_path / "c.jsonl"
    path.write_text(long * 1000 + "not JSON")
    tracemalloc.start()
    for _ in islice(read_conversations(path), 1000):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 3  # a megabyte is read at a time


def test_questions_have_right_replies(write):
    fields = {"messages": [U], "kind": "social", "accept": ["Hi.", "e\u0301"]}
    path = write(
        "t.jsonl", [fields, {"messages": [U, A, U], "accept": ["Hi."], "contains": ["e\u0301"], "most_letters": 9}]
    )
    assert list(read_tests(path)) == [
        Question((TALK[0],), "social", ("Hi.", "é"), f"{path}, line 1"),
        Question((*TALK, TALK[0]), "", ("Hi.",), f"{path}, line 2", ("é",), 9),
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"messages": []}', "line 1 has no messages"),
        ('{"kind": "a"}', "line 1 has no messages, only kind: write it, or delete the object"),
        (f'{LINE[:-1]}, "accept": ["a"]}}', "line 1 ends with a message of the assistant: a prompt ends"),
        (QUESTION.removesuffix(', "accept": ') + "}", "line 1 has no accept, only messages"),
        (QUESTION + "[]}", "line 1: accept is not a list of replies that count as right"),
        (QUESTION + '"a"}', "line 1: accept is not a list"),
        (QUESTION + '["a", 5]}', "line 1: accept is not a list"),
        (QUESTION + '[" "]}', "line 1: accept is not a list"),
        (QUESTION + '["a"], "kind": 5}', "line 1: kind is a number: give text"),
        (QUESTION + '["a"], "contains": "Sita"}', "line 1: contains is not a list of texts"),
        (QUESTION + '["a"], "most_letters": 0}', "line 1: most_letters is 0: give a whole number"),
    ],
)
def test_a_question_that_is_none_is_told_with_its_line(write, line, problem):
    assert f"t.jsonl, {problem}" in refusal(write("t.jsonl", line), read_tests)


# Messages

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
