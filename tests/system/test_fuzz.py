"""A small part of what `fuzz.py` does."""

import subprocess
import sys
from pathlib import Path


def test_damaged_files_raise_nothing_but_errors_of_ours() -> None:
    program = Path(__file__).with_name("fuzz.py")
    done = subprocess.run(
        [sys.executable, str(program), "--cases", "400", "--seed", "11"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "400 cases of seed 11" in done.stdout
    assert "0 failed" in done.stdout
