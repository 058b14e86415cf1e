"""Documents whose first line is only read."""

import numpy as np
import pytest

from toolkit.data.store import RaggedStore
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.nn.tape import Tape
from toolkit.tokenization import CharacterTokenizer
from toolkit.tokenization.special import BOS, EOS
from toolkit.training.first_lines import FirstLineTask, line_breaks

TEXTS = ["ab\ncda", "abcd", "a\nb\nc", "\nab", "abcdabcd\nab", "d\n"]
LETTERS = CharacterTokenizer("abcd\n")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RaggedStore:
    items = [[BOS, *LETTERS.encode(text), EOS] for text in TEXTS]
    return RaggedStore.write(tmp_path_factory.mktemp("store") / "documents", items, np.uint16)


def predicted(task: FirstLineTask, number: int) -> list[int]:
    batch = task.batch("train", np.array([number]))
    return batch.labels[batch.scored].tolist()


def test_what_follows_the_first_line_is_predicted_and_its_end_mark(store: RaggedStore) -> None:
    task = FirstLineTask(store, store, 20, line_breaks(LETTERS))
    for number, text in enumerate(TEXTS):
        rest = text.split("\n", 1)[1] if "\n" in text else text
        assert predicted(task, number) == [*LETTERS.encode(rest), EOS], text
    together = task.batch("train", np.arange(len(TEXTS)))
    assert together.labels[together.scored].tolist() == [i for n in range(len(TEXTS)) for i in predicted(task, n)]


def test_a_first_line_longer_than_the_context_and_later_pieces_count_in_full(store: RaggedStore) -> None:
    task = FirstLineTask(store, store, 4, line_breaks(LETTERS))
    texts = task.texts["train"]
    long_one = [n for n in range(len(texts)) if store.offsets[4] <= texts.span(n)[0] < store.offsets[5]]
    ids = [*LETTERS.encode(TEXTS[4]), EOS]
    assert [predicted(task, number) for number in long_one] == [ids[0:4], ids[4:8], ids[8:12]]


def test_the_loss_is_that_of_the_predicted_tokens(store: RaggedStore) -> None:
    size = LETTERS.vocab_size
    model = GPT(GPTConfig(vocab_size=size, width=8, layers=1, heads=2, feed_forward=8, max_length=20))
    model.allocate(np.float64)
    model.vector[:] = np.random.default_rng(0).standard_normal(len(model.vector))
    task = FirstLineTask(store, store, 20, line_breaks(LETTERS))
    batch = task.validation_batches(1000)[0]
    sums = task.loss(model, batch, Tape())
    rows = task.batch("valid", batch.texts)
    tape = Tape()
    logits = model.logits(model.read(rows.inputs, rows.rows, tape), tape)
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert sums.tokens == len(rows.scored) < len(rows.labels)
    assert sums.loss == pytest.approx(-log_probs[rows.scored, rows.labels[rows.scored]].sum())
    assert task.evaluated(model) == {
        "loss": pytest.approx(sums.loss / sums.tokens),
        "perplexity": pytest.approx(np.exp(sums.loss / sums.tokens)),
    }
