"""What the README shows in Python runs, and does what is said of it."""

import re
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def block_with(words):
    """The one block of Python that has these words."""
    (found,) = [each for each in re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.S) if words in each]
    return found


def test_a_training_loop_of_ones_own_learns(capsys):
    exec(block_with("model.backward(tape)"), {})
    losses = [float(line.split(": ")[1]) for line in capsys.readouterr().out.splitlines()]
    assert len(losses) == 10
    assert losses == sorted(losses, reverse=True)
    first, last = re.search(r"# (\S+) at first, (\S+) in the end", block_with("model.backward(tape)")).groups()
    assert (f"{losses[0]:.1f}", f"{losses[-1]:.1f}") == (first, last)
