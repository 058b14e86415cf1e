"""The short form of same_bits.py, which is a program to run for longer: the recipe of a translator on few ranks."""

from pathlib import Path

import pytest

import toolkit
from tests.ranks import can_pretend_hosts, needs_mpi, on_ranks
from tests.system.kill_and_resume import differences

PAIRS = [(f"the {who} {does} .", f"{does} {who} the .") for who in ("cat", "dog", "hen") for does in ("sees", "eats")]
MODEL = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1}
MODEL |= {"vocab_size": 300, "embedding_dropout": 0.1, "residual_dropout": 0.1}
TRAINING = {"updates": 6, "validate_every": 3, "warmup": 2, "tokens_per_batch": 100, "accumulation": 2}
TRAINING |= {"ema": 0.5, "subword_alpha": 0.2, "clip": 0.1, "shards": 16}


def settings(room: Path, run: str, **training: int) -> dict[str, object]:
    here = {name: str(room / f"pairs.{name}") for name in ("source", "target")}
    given = {"model": MODEL, "training": {**TRAINING, **training}, "valid_lines": 40, "num_beams": 1, "quiet": True}
    return {**here, **given, "run": str(room / run)}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a corpus, and a run in one process."""
    room = tmp_path_factory.mktemp("same")
    for side, name in enumerate(("source", "target")):
        text = "".join(f"{pair[side]} {number}\n" for number in range(20) for pair in PAIRS)
        (room / f"pairs.{name}").write_text(text, "utf-8")
    toolkit.train("translation", **settings(room, "alone", workers=1))
    return room


@pytest.mark.parametrize("workers", [2, 3])
def test_processes_give_the_bits_of_one(workers: int, room: Path) -> None:
    run = toolkit.train("translation", **settings(room, f"processes-{workers}", workers=workers))
    assert differences(room / "alone", run.path) == []


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_give_the_bits_of_one_process(ranks: int, room: Path) -> None:
    given = settings(room, f"ranks-{ranks}")
    done = on_ranks(ranks, "-c", f"import toolkit; toolkit.train('translation', **{given})")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert differences(room / "alone", Path(given["run"])) == []


@needs_mpi
def test_machines_give_the_bits_of_one_process(room: Path) -> None:
    if not can_pretend_hosts():
        pytest.skip("this mpiexec is not MPICH's, which can pretend to have several hosts")
    model = {**MODEL, "d_model": 64, "d_ff": 256}
    toolkit.train("translation", **settings(room, "alone-64", workers=1) | {"model": model})
    given = settings(room, "machines") | {"model": model}
    small_buckets = "import toolkit.training.exchange as exchange; exchange._BUCKET = exchange.BLOCK_ELEMENTS"
    done = on_ranks(3, "-c", f"{small_buckets}; import toolkit; toolkit.train('translation', **{given})", hosts="a,b")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert differences(room / "alone-64", Path(given["run"])) == []
