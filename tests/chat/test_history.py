"""What is sent: the system message, the newest message, and of the rest as much as fits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.chat import Message, make_template
from toolkit.chat.history import Exchange, History
from toolkit.errors import DataError
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer

LENGTHS = st.integers(1, 12)


def made(name, context, system, exchanges):
    """A history whose messages have contents of these lengths."""
    history = History(make_template(name, ByteTokenizer(), True), context)
    history.system = history.turn(Message("system", "s" * system)) if system else None
    for user, reply in exchanges:
        turns = history.turn(Message("user", "u" * user)), history.turn(Message("assistant", "a" * reply))
        history.exchanges.append(Exchange(*turns))
    return history


@given(
    st.sampled_from(["control", "plain"]),
    st.integers(20, 200),
    st.integers(0, 12),
    st.lists(st.tuples(LENGTHS, LENGTHS), max_size=8),
    LENGTHS,
    st.integers(1, 30),
)
@settings(max_examples=50)
def test_as_much_is_sent_as_fits(name, context, system, exchanges, user, reserve):
    history = made(name, context, system, exchanges)
    new, template = history.turn(Message("user", "n" * user)), history._template
    first = [history.system] if system else []
    size = lambda turns: 1 + sum(len(turn.ids) for turn in turns) + len(template.generation_prompt) + reserve  # noqa: E731
    if size([*first, new]) > context:
        with pytest.raises(DataError, match="shorten it"):
            history.sent(new, reserve)
        return
    sent = history.sent(new, reserve)
    kept = history.exchanges[sent.dropped :]
    assert sent.turns == [*first, *(turn for exchange in kept for turn in exchange), new]
    assert sent.ids == template.encode([turn.message for turn in sent.turns]).ids + template.generation_prompt
    assert len(sent.ids) + reserve <= context
    if sent.dropped:
        assert size([*sent.turns, *history.exchanges[sent.dropped - 1]]) > context
    assert len(history.messages) == len(first) + 2 * len(exchanges)
    assert [(role, len(part)) for role, part in sent.parts] == [
        (None, 1),
        *((turn.message.role, len(turn.ids)) for turn in sent.turns),
        ("assistant", len(template.generation_prompt)),
    ]


def test_an_exchange_is_dropped_when_there_is_one_id_too_few():
    """<s>, 6 + 6 + 6 and 3 + 3 + 6 ids of exchanges, 2 + 3 of the message, the opener and 10 for the reply."""
    dropped = []
    for context in range(15, 50):
        history = made("control", context, 0, [(6, 6), (3, 3)])
        dropped += [history.sent(history.turn(Message("user", "nn")), 10).dropped] if context >= 17 else []
    assert dropped == [2] * 12 + [1] * 18 + [0] * 3


def test_an_earlier_point_of_the_conversation():
    history = made("control", 60, 3, [(5, 5), (6, 6), (7, 7)])
    earlier = history.sent(history.exchanges[1].user, 10, history.exchanges[:1])
    assert [len(turn.message.content) for turn in earlier.turns] == [3, 5, 5, 6]
    assert history.sent(history.exchanges[1].user, 10).dropped > earlier.dropped == 0


def test_what_does_not_fit_is_told_in_a_sentence():
    history = made("control", 40, 0, [(4, 4)])
    with pytest.raises(DataError, match=r"^the message has 41 tokens, and the model has room for 28 beside its reply"):
        history.sent(history.turn(Message("user", "n" * 38)), 10)
    history = made("control", 40, 30, [])
    with pytest.raises(DataError, match=r"^the system message has 33 tokens, which leaves no room .* in the 40"):
        history.sent(history.turn(Message("user", "n")), 10)


def test_what_cannot_be_read_is_named():
    history = History(make_template("control", CharacterTokenizer("ab "), True), 40)
    with pytest.raises(DataError, match=r"^the message cannot be read: the character 'c'"):
        history.turn(Message("user", "abc"))
    with pytest.raises(DataError, match=r"^the system message cannot be read: the character 'c'"):
        history.turn(Message("system", "abc"))
