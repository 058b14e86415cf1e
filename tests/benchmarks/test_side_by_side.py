"""The benchmark's own part: work is written and done as described, and figures become ratios.

What it compares with is not installed here; the programs themselves check that both sides compute the same.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.side_by_side.batches import Batches
from tests.benchmarks.side_by_side.machine import describe, in_words
from tests.benchmarks.side_by_side.rounds import figures, interleave, ratio
from tests.benchmarks.side_by_side.searches import MODELS, Search, write_search
from tests.benchmarks.side_by_side.side import Side
from tests.benchmarks.side_by_side.table import ctranslate2_table, lines_of, training_table
from tests.benchmarks.side_by_side.training import SIDES
from tests.benchmarks.side_by_side.workloads import Workload, write_workload
from toolkit.models.gpt import GPTConfig
from toolkit.models.seq2seq import Seq2SeqConfig

GPT = GPTConfig(
    vocab_size=30, d_model=16, layers=1, num_heads=2, d_ff=32, positions="learned", bias=False, max_length=8
)
SMALL = {"d_model": 16, "num_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "max_length": 32}
PAIRS = [(f"a cat sees {word}s and a {word}", f"{word} {word} one two") for word in ("dog", "house", "tree") * 30]


def run_in_turn(names: list[str], directory: Path, steps: int) -> tuple[list[dict], dict]:
    """What the first loss of every side is, and what its turns gave."""
    sides = {name: Side(*SIDES[name]) for name in names}
    try:
        for side in sides.values():
            side.start(directory=str(directory), threads=2)
        first = [side.call("check") for side in sides.values()]
        rounds, _ = interleave(sides, lambda side, number: side.call("run", first=number, steps=steps), 2)
        assert all(side.peak_memory("run", first=0, steps=1) > 0 for side in sides.values())
    finally:
        for side in sides.values():
            side.close()
    return first, rounds


def test_windows_are_learned_from(tmp_path: Path) -> None:
    """Both of our sides see the same tokens, and a loss near that of a model that knows nothing."""
    assert write_workload(Workload("row", "a row", GPT, batch=4, steps=1), [], tmp_path) == {"tokens": 32}
    (first, _), rounds = run_in_turn(["toolkit", "products"], tmp_path, steps=3)
    assert first["loss"] == pytest.approx(np.log(30), rel=0.05)
    assert [each["tokens"] for own in rounds.values() for each in own] == [3 * 32] * 4


def test_pairs_are_cut_into_the_same_batches_for_both(tmp_path: Path) -> None:
    """Real tokens are counted with their end marks, and padding is the share of a padded batch that is none."""
    config = Seq2SeqConfig(vocab_size=300, **SMALL)
    found = write_workload(Workload("row", "a row", config, batch=64, steps=1, smoothing=0.1), PAIRS, tmp_path)
    data = Batches(tmp_path)
    batches, targets = data.ragged("batch"), data.ragged("target")
    lengths = [[len(targets[index]) + 1 for index in batch] for batch in batches]
    real, padded = sum(map(sum, lengths)), sum(max(each) * len(each) for each in lengths)
    assert found["target_padding"] == pytest.approx(1 - real / padded)
    assert found["tokens"] == pytest.approx(real / len(batches))
    assert sorted(np.concatenate(batches)) == list(range(len(PAIRS)))
    _, rounds = run_in_turn(["toolkit"], tmp_path, steps=1)
    assert [each["tokens"] for each in rounds["toolkit"]] == [sum(each) for each in lengths[:2]]


@pytest.mark.parametrize("workers", [1, 2])
def test_outputs_have_the_steps_that_are_asked_for(tmp_path: Path, monkeypatch, workers: int) -> None:
    """Whatever is decoded where: as many tokens as steps, in the order of the texts, and none that is reserved."""
    monkeypatch.setitem(MODELS, "random", Seq2SeqConfig(vocab_size=60, **SMALL))
    search = Search("row", "a row", "random", texts=5, together=True, steps=7)
    found = write_search(search, tmp_path, transformers=False)
    side = Side("toolkit_decoding", "ToolkitDecoding")
    try:
        side.start(directory=str(tmp_path), workers=workers)
        outputs = side.call("check")
        assert side.call("run", times=2)["tokens"] == 2 * 5 * 7
    finally:
        side.close()
    assert [len(output) for output in outputs] == [7] * 5
    assert min(map(min, outputs)) >= 16
    assert 0 < found["streamed"] < 4 * found["parameters"]


def test_the_best_layout_of_each_side_counts() -> None:
    """Medians over the turns, ours against the better of theirs, and the range over rounds."""
    turns = {"toolkit": [10, 12, 11], "ctranslate2 1×2": [1, 1, 1], "ctranslate2 2×1": [5, 6, 22]}
    turns |= {"int8 2×1": [30] * 3, "own-int8": [24] * 3}
    row = figures({name: [{"tokens": 2 * each, "seconds": 2.0} for each in own] for name, own in turns.items()})
    found = ratio(row, "toolkit", "ctranslate2")
    assert (found["ours"], found["theirs"]) == ("toolkit", "ctranslate2 2×1")
    assert found["ratio"] == pytest.approx(11 / 6)
    assert found["range"] == pytest.approx([0.5, 2])
    row |= {"title": "a row", "parameters": 1.2e6, "same_outputs": dict.fromkeys(turns, 1.0), "idle": 0.0}
    floats, int8 = "11 | 6 (2×1) | 1.83 (0.50 to 2.00)", "24 | 30 | 0.80 (0.80 to 0.80)"
    assert ctranslate2_table([row])[-1] == f"| a row, 1.2M | {floats} | {int8} | 100% / 100% / 100% |"
    assert len(lines_of(row)) == 7


def test_a_side_that_was_left_out_leaves_a_gap() -> None:
    row = figures({"toolkit": [{"tokens": 1, "seconds": 1.0}]}) | {"title": "a row"}
    assert training_table([row])[-1].startswith("| a row | – |")
    assert training_table([]) == []


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--only", "decode-trained", "walk"], "--only walk: there is no such row; the rows are train-gpt-small, "),
        (["--only", "train-translation"], "--only train-translation: there is no such row without --pairs"),
        (["--skip", "walk"], "invalid choice: 'walk'"),
    ],
)
def test_rows_and_sides_that_there_are_not_are_refused(flags: list[str], sentence: str) -> None:
    program = Path(__file__).with_name("compare.py")
    done = subprocess.run([sys.executable, program, *flags], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_figures_name_what_they_were_measured_on() -> None:
    found = describe(2)
    told = in_words(found, [0.25, 1.75])
    for each in (found["processor"], found["blas"], f"numpy {np.__version__}", "load 0.2 to 1.8", "of which 2 used"):
        assert each in told
    assert "None" not in told
    assert set(found["versions"]) >= {"python", "numpy", "numkong", "torch", "transformers", "ctranslate2"}
    json.dumps(found)
