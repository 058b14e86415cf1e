"""Files of preferences: every form gives the pairs that it says, and what says nothing is refused."""

import json
import math
import os
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.data.conversations import Message, messages_to_json
from toolkit.data.preferences import Preference, read_preferences
from toolkit.errors import DataError

TALK = [
    Message("system", "Be kind."),
    Message("user", "Hello!"),
    Message("assistant", "Hi."),
    Message("user", "Who are you?"),
]
PROMPT = messages_to_json(TALK)


def reply(text: str) -> list[dict]:
    return [{"role": "assistant", "content": text}]


@pytest.fixture
def write(tmp_path):
    def write(*objects):
        path = tmp_path / "p.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in objects))
        return path

    return write


def replies(path) -> list[tuple[str, str]]:
    return [(pair.chosen, pair.rejected) for pair in read_preferences(path)]


def refusal(path) -> str:
    """The sentence with which a file is refused, without its name."""
    with pytest.raises(DataError) as caught:
        list(read_preferences(path))
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}, ")
    assert "\n" not in sentence
    return sentence.removeprefix(f"{path}, ")


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": PROMPT, "chosen": "A model.", "rejected": "What?"},
        {"prompt": PROMPT, "chosen": reply("A model."), "rejected": reply("What?")},
        {"prompt": PROMPT, "chosen": reply("A model."), "rejected": "What?"},
        {"chosen": PROMPT + reply("A model."), "rejected": PROMPT + reply("What?")},
        {"prompt": PROMPT, "chosen": PROMPT + reply("A model."), "rejected": PROMPT + reply("What?")},
        {"prompt": PROMPT, "chosen": PROMPT + reply("A model."), "rejected": "What?"},
        {"prompt": PROMPT[:2], "chosen": PROMPT + reply("A model."), "rejected": PROMPT + reply("What?")},
        {"prompt": PROMPT, "ranking": ["A model.", "What?"]},
        {"prompt": PROMPT, "ranking": [reply("A model."), reply("What?")]},
        {"ranking": [PROMPT + reply("A model."), PROMPT + reply("What?")]},
        {"prompt": PROMPT, "completions": ["What?", "A model."], "scores": [-1, 0.5]},
        {"prompt": PROMPT, "completions": ["What?", "A model."], "ranks": [2, 1]},
        {"prompt": PROMPT, "ranking": None, "chosen": "A model.", "rejected": "What?", "id": 5},
    ],
)
def test_every_form_says_which_reply_is_better(write, fields):
    path = write(fields | {"kind": "social"}, fields)
    expected = Preference(tuple(TALK), "A model.", "What?", "social", f"{path}, line 1")
    other = expected._replace(kind="", place=f"{path}, line 2")
    assert list(read_preferences(path)) == [expected, other]


def test_a_prompt_of_text_is_one_message_of_the_user(write):
    path = write({"prompt": "User: Hi\nAssistant:", "chosen": "e\u0301", "rejected": "e"})
    assert list(read_preferences(path)) == [
        Preference((Message("user", "User: Hi\nAssistant:"),), "é", "e", "", f"{path}, line 1")
    ]


def test_a_ranking_of_three_is_three_pairs(write):
    path = write({"prompt": "a", "ranking": ["best", "second", "worst"]})
    assert replies(path) == [("best", "second"), ("best", "worst"), ("second", "worst")]


@given(st.lists(st.integers(-2, 2) | st.sampled_from([0.5, math.inf]), min_size=2, max_size=6))
@settings(max_examples=40)
def test_scores_and_ranks_give_all_pairs_that_are_not_ties(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("any") / "p.jsonl"
    texts = [f"reply {index}" for index in range(len(numbers))]
    number = dict(zip(texts, numbers, strict=True))
    for name, sign in ("scores", 1), ("ranks", -1):
        path.write_text(json.dumps({"prompt": "a", "completions": texts, name: numbers}))
        pairs = replies(path)
        assert all(sign * number[better] > sign * number[worse] for better, worse in pairs)
        assert len(set(pairs)) == len(pairs) == sum(x != y for x, y in combinations(numbers, 2))


def test_equal_replies_of_equal_rank_do_no_harm(write):
    path = write({"prompt": "a", "completions": ["x", "y", "x"], "scores": [1, 0, 1]})
    assert replies(path) == [("x", "y"), ("x", "y")]


def objects(**fields):
    return {"prompt": "a", **fields}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (objects(chosen="x"), "line 1 has no rejected, only prompt, chosen"),
        (objects(rejected="x"), "line 1 has no chosen, only prompt, rejected"),
        (objects(completion="x"), "line 1 has no preference, only prompt, completion: give chosen and rejected"),
        (objects(chosen="x", rejected="x"), "line 1, chosen and rejected are the same, so that neither is better"),
        (objects(chosen="é", rejected="e\u0301"), "line 1, chosen and rejected are the same"),
        (objects(chosen="", rejected="x"), "line 1, chosen, message 2 is blank"),
        (objects(chosen="x", rejected="\0"), "line 1, rejected, message 2 has a NUL"),
        (objects(chosen="x", rejected="\ud800"), "line 1, rejected, message 2 has half of a surrogate pair"),
        (objects(chosen="x", rejected=5), "line 1, rejected has a number for its messages"),
        (objects(chosen="x", rejected=[]), "line 1, rejected has no messages"),
        (objects(chosen=reply("x") * 2, rejected="y"), "line 1, chosen, message 3 is the second of the assistant"),
        (objects(chosen=PROMPT, rejected="y"), "line 1, chosen is a conversation that does not begin with the prompt"),
        ({"chosen": PROMPT, "rejected": PROMPT}, "line 1, chosen ends with a message of the user: a reply is of the"),
        ({"chosen": "x", "rejected": "y"}, "line 1, chosen is a reply, and there is no prompt"),
        ({"chosen": reply("x"), "rejected": "y"}, "line 1, chosen is a reply, and there is no prompt"),
        (
            {"chosen": PROMPT + reply("x"), "rejected": PROMPT[:2] + reply("y")},
            "line 1, rejected and chosen differ before their last message",
        ),
        (objects(prompt=PROMPT[:3], ranking=["x", "y"]), "line 1, prompt ends with a message of the assistant"),
        (objects(prompt=" ", ranking=["x", "y"]), "line 1, prompt, message 1 is blank"),
        (objects(ranking=["x"]), "line 1: ranking has 1 of the two or more replies"),
        (objects(ranking=[]), "line 1: ranking has 0 of the two or more replies"),
        (objects(ranking="xy"), "line 1: ranking is text: give a list of replies"),
        (objects(ranking=["x", "y", "x"]), "line 1, reply 1 and reply 3 are the same"),
        (objects(ranking=["x", "y"], kind=5), "line 1: kind is a number"),
        (objects(completions=["x", "y"]), "line 1 does not say which of its completions are better"),
        (objects(completions=["x", "y"], scores=[1]), "line 1 has 2 completions and 1 scores: give one for each"),
        (objects(completions=["x", "y"], ranks=[1, "2"]), "line 1: ranks is not a list of numbers"),
        (objects(completions=["x", "y"], ranks=[1, True]), "line 1: ranks is not a list of numbers"),
        (objects(completions=["x", "y"], scores=[1, math.nan]), "line 1: scores is not a list of numbers"),
        (objects(completions=["x", "y"], scores=1), "line 1: scores is not a list of numbers"),
        (objects(completions=["x", "x"], scores=[1, 2]), "line 1, reply 2 and reply 1 are the same"),
        ([], "line 1 is a list, not a JSON object"),
    ],
)
def test_what_says_nothing_is_told_with_its_line(write, fields, problem):
    if fields == []:
        path = write({"prompt": "a", "ranking": ["x", "y"]}, [])
        assert refusal(path).startswith(problem.replace("line 1", "line 2"))
    else:
        assert refusal(write(fields)).startswith(problem)


def test_pairs_are_read_as_they_are_asked_for(write):
    path = write({"prompt": "a", "ranking": ["x", "y"]}, {})
    pairs = read_preferences(path)
    assert next(pairs).chosen == "x"
    with pytest.raises(DataError, match=f"{os.sep}p.jsonl, line 2 has no preference, only nothing"):
        next(pairs)
