import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolkit.preference.examples import reply_batch, whole_texts

texts = st.lists(
    st.tuples(
        st.lists(st.integers(0, 99), min_size=1, max_size=6), st.lists(st.integers(0, 99), min_size=1, max_size=6)
    ),
    min_size=1,
    max_size=6,
)


@given(texts)
def test_the_rows_that_count_predict_exactly_the_replies(pairs: list) -> None:
    """Id by id: what a row has read, and what it is to predict."""
    prompts, replies = ([np.array(part) for part in side] for side in zip(*pairs, strict=True))
    batch = reply_batch(prompts, replies)
    expected = [(prompt + reply[:place], reply[place]) for prompt, reply in pairs for place in range(len(reply))]
    found = []
    for row in batch.scored:
        sequence = batch.rows.sequence_of[row]
        seen = batch.inputs[batch.rows.starts[sequence] : row + 1]
        found.append((seen.tolist(), int(batch.labels[row])))
    assert found == expected
    assert batch.rows.total == len(batch.inputs) == len(batch.labels)


@given(texts)
def test_whole_texts_end_at_their_last_token(pairs: list) -> None:
    prompts, replies = ([np.array(part) for part in side] for side in zip(*pairs, strict=True))
    ids, rows, last = whole_texts(prompts, replies)
    assert ids.tolist() == [token for prompt, reply in pairs for token in prompt + reply]
    assert ids[last].tolist() == [reply[-1] for _, reply in pairs]
    assert rows.sequence_of[last].tolist() == list(range(len(pairs)))
