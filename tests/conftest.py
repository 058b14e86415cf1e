"""What all tests share: memory full of NaN, one BLAS thread, a model small enough to make on the spot, the command."""

import gc
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from tests.outcome import Outcome
from tests.tokenization.traps import CORPUS
from toolkit.cli import main
from toolkit.decoding import config
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.models.storage import save_model
from toolkit.nn import memory
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer, Tokenizer

FRESH_SEED = config.fresh_seed

# No test measures which kernels are fastest on its machine, but those that ask for it.
os.environ["TOOLKIT_KERNELS"] = "fixed"

# A loaded machine is slow now and then: no test fails on a time.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

ENGLISH = ("I am a boy.", "I am a girl.", "She eats rice.", "He drinks water.", "This is my house.", "Where do you go?")
LETTERS = "SystemUserAssistant: \\\n\r\u2028abcdeकाखि।"
NEPALI = ("म केटा हुँ।", "म केटी हुँ।", "उनी भात खान्छिन्।", "ऊ पानी पिउँछ।", "यो मेरो घर हो।", "तपाईं कहाँ जानुहुन्छ?")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking through thousands of tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _strict_memory() -> Iterator[None]:
    """Lent memory is full of NaN: a result that was never written, or read too late, cannot look right."""
    memory.poison = True
    yield
    memory.poison = False


@pytest.fixture(scope="session", autouse=True)
def _interrupts() -> Iterator[None]:
    """Ctrl-C interrupts, as at a terminal, where the shell that runs the tests in its background has ignored it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def _nothing_waits_for_the_disk() -> Iterator[None]:
    """What is flushed to the disk must be open; the rest of it nobody sees in a test, and it takes long."""

    def fsync(descriptor: int) -> None:
        os.fstat(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


@pytest.fixture(scope="session", autouse=True)
def _seeds_that_nobody_gives() -> Iterator[None]:
    """Samples of every run of the tests are the same: in them a fresh seed is 0, unless `fresh_seeds` is asked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "fresh_seed", lambda: 0)
        yield


@pytest.fixture
def fresh_seeds(monkeypatch) -> None:
    """Where nobody gives a seed it is drawn, as outside of the tests."""
    monkeypatch.setattr(config, "fresh_seed", FRESH_SEED)


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def _make_model(directory: Path, **settings: object) -> Path:
    """Write a random English-Nepali model of one layer, with a tokenizer trained on a few sentences."""
    tokenizer = SentencePieceTokenizer.train([*ENGLISH, *NEPALI], vocab_size=400)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1}
    model = Seq2Seq(Seq2SeqConfig(vocab_size=tokenizer.vocab_size, **sizes, **settings))
    model.allocate()
    model.initialize(np.random.default_rng(0))
    directory.mkdir()
    tokenizer.save(directory)
    save_model(model, directory, {"command": "recipes/translation.py --seed 0", "test": {"bleu": 0.5}})
    return directory


@pytest.fixture(scope="session")
def make_model() -> Callable[..., Path]:
    """make_model(directory, **settings of Seq2SeqConfig) writes a model directory and returns it."""
    return _make_model


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory that translates nothing well, and everything alike. Not to be changed: copy it."""
    return _make_model(tmp_path_factory.mktemp("models") / "tiny")


def _make_gpt(directory: Path, tokenizer: Tokenizer | None = None, **settings: object) -> Path:
    """Write a random language model of one layer, by default with a tokenizer trained on a few sentences."""
    tokenizer = tokenizer or SentencePieceTokenizer.train([*ENGLISH, *NEPALI], vocab_size=400)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "layers": 1, "max_length": 32}
    model = GPT(GPTConfig(vocab_size=tokenizer.vocab_size, **{**sizes, **settings}))
    model.allocate()
    model.initialize(np.random.default_rng(0))
    model.vector *= 4  # of the small values that training begins with, all tokens would be equally probable
    directory.mkdir()
    tokenizer.save(directory)
    save_model(model, directory, {"command": "recipes/language_model.py --seed 0", "valid": {"loss": 0.5}})
    return directory


@pytest.fixture(scope="session")
def make_gpt() -> Callable[..., Path]:
    """make_gpt(directory, tokenizer, **settings of GPTConfig) writes a model directory and returns it."""
    return _make_gpt


@pytest.fixture(scope="session")
def tiny_gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of a language model that writes nonsense. Not to be changed: copy it."""
    return _make_gpt(tmp_path_factory.mktemp("models") / "tiny-gpt")


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command within this process."""

    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as leaving:  # how tyro ends after --help and after a wrong flag
            code = leaving.code
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def translate(run, tiny_model):
    """Run `toolkit translate` with the tiny model."""
    return lambda *arguments, **options: run("translate", "--model", tiny_model, *arguments, **options)


@pytest.fixture(scope="session")
def tokenizers():
    """Of all four kinds; that of characters knows LETTERS alone."""
    return {
        "unigram": SentencePieceTokenizer.train(CORPUS, 340),
        "bpe": SentencePieceTokenizer.train(CORPUS, 340, "bpe"),
        "characters": CharacterTokenizer.train([LETTERS]),
        "bytes": ByteTokenizer(),
    }


@pytest.fixture(scope="session")
def talker(tokenizers):
    """talker(template, tokenizer=..., end=..., seed=..., **settings of GPTConfig): a model that says anything.

    end: what the scores of both end markers have besides.
    """

    def make(template="control", tokenizer="characters", end=5.0, seed=0, **settings):
        tokenizer = tokenizers[tokenizer]
        sizes = {"d_model": 16, "num_heads": 4, "layers": 2, "d_ff": 32, "max_length": 96, "output_bias": True}
        config = {
            "vocab_size": tokenizer.vocab_size,
            "template": template,
            "num_key_value_heads": 2,
            **sizes,
            **settings,
        }
        model = GPT(GPTConfig(**config))
        model.allocate(np.float64)
        model.initialize(np.random.default_rng(seed))
        model.vector *= 6
        model.output.bias.data[[3, 7]] += end
        return LanguageModel(model, tokenizer)

    return make
