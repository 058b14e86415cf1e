"""Texts for next-token prediction: what is predicted, how often, and that a seed decides the rest."""

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks import random_model, small_gpt_config
from toolkit.data.store import RaggedStore
from toolkit.errors import ConfigError, DataError
from toolkit.functional.output_loss import LossSums, output_loss
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.nn.tape import Tape
from toolkit.proof import central_difference
from toolkit.tokenization import CharacterTokenizer
from toolkit.tokenization.special import BOS, EOS
from toolkit.training.language import Documents, FirstLineMask, LanguageTask, ReplyMask, Windows
from toolkit.training.task import Share

LENGTHS = [5, 2, 0, 9, 1, 17, 3, 8]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RaggedStore:
    """Documents in which every token is another one, so that a token says where it stands."""
    ends = np.cumsum(LENGTHS)
    items = [range(end - length, end) for end, length in zip(ends, LENGTHS, strict=True)]
    return RaggedStore.write(tmp_path_factory.mktemp("store") / "documents", items, np.uint16)


def predicted(texts: Windows | Documents, batches) -> list[int]:
    """The places in the stream of all tokens that are predicted."""
    spans = [texts.span(number) for batch in batches for number in batch]
    return [place for begin, length in spans for place in range(begin + 1, begin + length + 1)]


@given(st.integers(2, 60), st.integers(1, 70), st.integers(1, 100))
def test_a_pass_over_windows_predicts_every_token_but_the_first_once(size: int, length: int, budget: int) -> None:
    windows = Windows(np.arange(size), length)
    assert predicted(windows, windows.in_order(budget)) == list(range(1, size))


@pytest.mark.parametrize("length", [1, 4, 8, 16, 100])
def test_a_pass_over_documents_predicts_all_of_each_but_its_first_token(store: RaggedStore, length: int) -> None:
    begins = {int(offset) for offset, size in zip(store.offsets, LENGTHS, strict=False) if size}
    documents = Documents(store, length)
    for batches in (documents.in_order(10), documents.batches(10, np.random.default_rng(3))):
        assert sorted(predicted(documents, batches)) == [n for n in range(len(store.values)) if n not in begins]
    assert documents.lengths.min() >= 1
    assert documents.lengths.max() <= length


def test_no_text_has_parts_of_two_documents(store: RaggedStore) -> None:
    document_of = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    documents = Documents(store, 4)
    for number in range(len(documents)):
        begin, length = documents.span(number)
        assert len(set(document_of[begin : begin + length + 1])) == 1


def test_drawn_windows_are_full_and_everywhere() -> None:
    windows = Windows(np.arange(40), 8)
    batches = windows.batches(24, np.random.default_rng(5))
    assert len(batches) == 40 // 24
    assert {len(batch) for batch in batches} == {3}
    many = Windows(np.arange(40), 8).batches(8_000, np.random.default_rng(5))[0]
    assert set(many.tolist()) == set(range(32)), "every place at which a full window begins, and no other"
    with pytest.raises(IndexError):
        batches[len(batches)]


@pytest.mark.parametrize(("texts", "parts"), [(8, 16), (12, 8), (1, 2), (5, 4), (0, 4)])
def test_shards_that_stand_side_by_side_have_no_more_texts_than_others(texts: int, parts: int) -> None:
    """A worker gets neighbours: half of the shards has half of the texts, and a quarter a quarter."""
    sizes = [len(part) for part in Windows(np.arange(99), 8).shards(np.arange(texts), parts)]
    while len(sizes) > 1:
        assert sum(sizes) == texts
        assert max(sizes) - min(sizes) <= 1
        sizes = [left + right for left, right in zip(sizes[::2], sizes[1::2], strict=True)]


@pytest.mark.parametrize("whole", [True, False])
def test_the_seed_and_the_epoch_decide_the_batches(store: RaggedStore, whole: bool) -> None:
    task = LanguageTask(store, store, 4, whole)

    def batches(epoch: int, seed: int) -> list[list[int]]:
        return [batch.numbers.tolist() for batch in task.batches(epoch, 8, seed)]

    assert batches(0, 1) == batches(0, 1)
    assert batches(0, 1) != batches(1, 1)
    assert batches(0, 1) != batches(0, 2)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_shares_are_the_batch(store: RaggedStore, whole: bool, parts: int) -> None:
    task = LanguageTask(store, store, 4, whole)
    batch = task.batches(0, 20, 1)[0]
    shares = task.split(batch, parts)
    assert len(shares) == parts
    assert sorted(np.concatenate([share.numbers for share in shares])) == sorted(batch.numbers)
    assert {share.name for share in shares} == {"train"}


@pytest.mark.parametrize("whole", [True, False])
def test_another_process_gets_the_same_task_and_not_the_tokens(tmp_path: Path, whole: bool) -> None:
    store = RaggedStore.write(tmp_path / "long", [range(5000)] * 20, np.uint16)
    task = LanguageTask(store, store, 100, whole, valid_bytes=7)
    pickled = pickle.dumps(task)
    assert len(pickled) < 2000
    again = pickle.loads(pickled)
    assert again.valid_bytes == 7
    for batch, same in zip(task.batches(0, 1000, 1), again.batches(0, 1000, 1), strict=True):
        np.testing.assert_array_equal(batch.numbers, same.numbers)


def model_of(vocab_size: int, length: int = 8) -> GPT:
    model = GPT(GPTConfig(vocab_size=vocab_size, d_model=8, layers=1, num_heads=2, d_ff=8, max_length=length))
    model.allocate()
    model.initialize(np.random.default_rng(0))
    return model


def test_a_share_is_predicted_from_what_stands_before_it(store: RaggedStore) -> None:
    """The loss of a batch is that of its texts, each read by itself."""
    model, task = model_of(len(store.values)), LanguageTask(store, store, 6)
    batch = task.validation_batches(1000)[0]
    together = task.loss(model, batch, Tape())
    alone = [task.loss(model, Share("valid", np.array([number])), Tape()) for number in batch.numbers]
    assert together.tokens == sum(each.tokens for each in alone) == sum(max(0, length - 1) for length in LENGTHS)
    assert together.loss == pytest.approx(sum(each.loss for each in alone), rel=1e-5)
    assert task.loss(model, Share("valid", batch.numbers[:0]), Tape()) == LossSums(0.0, 0.0, 0)


def test_a_full_pass_does_not_depend_on_the_budget(store: RaggedStore) -> None:
    model, task = model_of(len(store.values)), LanguageTask(store, store, 6, valid_bytes=90)
    scores = task.evaluated(model)
    again = [task.loss(model, batch, Tape()) for batch in task.validation_batches(1)]
    total = sum(each.negative_log_likelihood for each in again)
    assert scores["loss"] == pytest.approx(total / sum(each.tokens for each in again), rel=1e-5)
    assert scores["perplexity"] == pytest.approx(math.exp(scores["loss"]))
    assert scores["bits_per_byte"] == pytest.approx(total / math.log(2) / 90, rel=1e-5)


def test_smoothing_is_for_training_only(store: RaggedStore) -> None:
    size = len(store.values)
    model, task = model_of(size), LanguageTask(store, store, 6, smoothing=0.3, vocab_size=size)
    numbers = task.validation_batches(1000)[0].numbers
    sums = {name: task.loss(model, Share(name, numbers), Tape()) for name in ("train", "valid")}
    assert sums["valid"].loss == sums["valid"].negative_log_likelihood == sums["train"].negative_log_likelihood
    assert sums["train"].loss != sums["valid"].loss


def test_what_has_nothing_to_predict_is_refused(tmp_path: Path, store: RaggedStore) -> None:
    empty = RaggedStore.write(tmp_path / "empty", [[1], [], [2]], np.uint16)
    with pytest.raises(DataError, match="nothing to predict"):
        Documents(empty, 4)
    with pytest.raises(DataError, match="nothing to predict"):
        Windows(np.arange(1), 4)
    with pytest.raises(ConfigError, match="vocabulary"):
        LanguageTask(store, store, 4, smoothing=0.1)


SIZES = (9, 4, 17, 2, 9, 12)
CONTEXT = 16


@pytest.fixture(scope="module")
def conversations() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Ids of conversations, and flags: some of their tokens, but never the first, and always one."""
    rng = np.random.default_rng(5)
    ids = [rng.integers(0, 30, length) for length in SIZES]
    flags = [rng.random(length) < 0.4 for length in SIZES]
    for each in flags:
        each[0], each[-1] = False, True
    return ids, flags


@pytest.fixture(scope="module")
def chats(conversations, tmp_path_factory: pytest.TempPathFactory) -> LanguageTask:
    ids, flags = conversations
    room = tmp_path_factory.mktemp("stores")
    tokens = RaggedStore.write(room / "ids", ids, np.uint16)
    supervised = RaggedStore.write(room / "supervised", flags, np.uint8)
    return LanguageTask(tokens, tokens, CONTEXT, mask=ReplyMask(supervised, supervised))


@pytest.fixture(scope="module")
def model():
    config = small_gpt_config(max_length=CONTEXT, positions="learned")
    return random_model(config, np.random.default_rng(2))


def loss_and_gradient(model, chats, numbers) -> tuple[tuple, np.ndarray]:
    vector = np.zeros_like(model.vector)
    tape = Tape(model.views(vector))
    sums = chats.loss(model, Share("train", np.array(numbers)), tape)
    assert tape.finished
    return sums, vector


@given(st.permutations(range(len(SIZES))).flatmap(lambda order: st.integers(1, 6).map(lambda n: order[:n])))
def test_the_loss_of_a_batch_is_that_of_its_conversations_one_by_one(chats, model, numbers) -> None:
    together, gradient = loss_and_gradient(model, chats, numbers)
    alone = [loss_and_gradient(model, chats, [number]) for number in numbers]
    np.testing.assert_allclose(together, np.sum([sums for sums, _ in alone], axis=0), rtol=1e-12)
    np.testing.assert_allclose(gradient, np.sum([each for _, each in alone], axis=0), rtol=1e-9, atol=1e-12)


def test_the_gradient_is_the_slope_of_the_loss(chats, model) -> None:
    share = Share("train", np.arange(len(SIZES)))
    _, gradient = loss_and_gradient(model, chats, share.numbers)
    rng = np.random.default_rng(4)
    for _ in range(4):
        direction = rng.standard_normal(len(model.vector))
        slope = central_difference(lambda: chats.loss(model, share, Tape()).loss, model.vector, direction, 1e-6)
        assert float(gradient @ direction) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("number", range(len(SIZES)))
def test_exactly_the_supervised_tokens_are_predicted(chats, model, conversations, number: int) -> None:
    ids, flags = (part[number] for part in conversations)
    batch = chats.batch(Share("train", np.array([number])))
    assert (batch.scored + 1).tolist() == np.flatnonzero(flags).tolist()
    assert batch.labels[batch.scored].tolist() == ids[flags].tolist()
    tape = Tape()
    x = model.read(batch.inputs, batch.rows, tape)[np.flatnonzero(flags) - 1]
    wanted, _ = output_loss(x, model.output.table.data, None, ids[flags])
    sums, _ = loss_and_gradient(model, chats, [number])
    assert sums.tokens == flags.sum()
    assert sums.loss == pytest.approx(wanted.loss, rel=1e-12)


def test_a_pass_counts_every_supervised_token_once(chats, conversations, model) -> None:
    counted = [chats.loss(model, share, Tape()).tokens for share in chats.validation_batches(1)]
    assert sum(counted) == sum(flags.sum() for flags in conversations[1])


def test_what_is_only_read_has_an_effect_on_replies_and_none_on_the_count(chats, model, conversations) -> None:
    flags = conversations[1][2]
    first = int(np.flatnonzero(flags)[0])
    assert first > 1
    batch = chats.batch(Share("train", np.array([2])))
    before = model.loss(batch, Tape())
    batch.inputs[0] = (batch.inputs[0] + 1) % 30
    after = model.loss(batch, Tape())
    assert after.tokens == before.tokens
    assert after.loss != before.loss


TEXTS = ["ab\ncda", "abcd", "a\nb\nc", "\nab", "abcdabcd\nab", "d\n"]
LETTERS = CharacterTokenizer("abcd\n")


@pytest.fixture(scope="module")
def poems(tmp_path_factory: pytest.TempPathFactory) -> RaggedStore:
    items = [[BOS, *LETTERS.encode(text), EOS] for text in TEXTS]
    return RaggedStore.write(tmp_path_factory.mktemp("store") / "documents", items, np.uint16)


def counted(task: LanguageTask, number: int) -> list[int]:
    batch = task.batch(Share("train", np.array([number])))
    return batch.labels[batch.scored].tolist()


def test_what_follows_the_first_line_is_predicted_and_its_end_mark(poems: RaggedStore) -> None:
    task = LanguageTask(poems, poems, 20, mask=FirstLineMask(LETTERS))
    for number, text in enumerate(TEXTS):
        rest = text.split("\n", 1)[1] if "\n" in text else text
        assert counted(task, number) == [*LETTERS.encode(rest), EOS], text
    together = task.batch(Share("train", np.arange(len(TEXTS))))
    assert together.labels[together.scored].tolist() == [i for n in range(len(TEXTS)) for i in counted(task, n)]


def test_a_first_line_longer_than_the_context_and_later_pieces_count_in_full(poems: RaggedStore) -> None:
    task = LanguageTask(poems, poems, 4, mask=FirstLineMask(LETTERS))
    texts = task.sets["train"]
    long_one = [n for n in range(len(texts)) if poems.offsets[4] <= texts.span(n)[0] < poems.offsets[5]]
    ids = [*LETTERS.encode(TEXTS[4]), EOS]
    assert [counted(task, number) for number in long_one] == [ids[0:4], ids[4:8], ids[8:12]]


def test_the_loss_is_that_of_the_predicted_tokens(poems: RaggedStore) -> None:
    size = LETTERS.vocab_size
    model = GPT(GPTConfig(vocab_size=size, d_model=8, layers=1, num_heads=2, d_ff=8, max_length=20))
    model.allocate(np.float64)
    model.vector[:] = np.random.default_rng(0).standard_normal(len(model.vector))
    task = LanguageTask(poems, poems, 20, mask=FirstLineMask(LETTERS))
    batch = task.validation_batches(1000)[0]
    sums = task.loss(model, batch, Tape())
    rows = task.batch(batch)
    tape = Tape()
    logits = model.output.logits(model.read(rows.inputs, rows.rows, tape), tape)
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert sums.tokens == len(rows.scored) < len(rows.labels)
    assert sums.loss == pytest.approx(-log_probs[rows.scored, rows.labels[rows.scored]].sum())
    assert task.evaluated(model) == {
        "loss": pytest.approx(sums.loss / sums.tokens),
        "perplexity": pytest.approx(np.exp(sums.loss / sums.tokens)),
    }
