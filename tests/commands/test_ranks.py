"""Verbs that answer line by line on ranks of MPI: the bytes of one process, and errors in their turn."""

import json
from pathlib import Path

from tests.ranks import needs_mpi, on_ranks

SMALL = "import sys, toolkit.cli as cli, toolkit.commands.lines as lines; lines.WINDOW = 3; sys.exit(cli.main())"


@needs_mpi
def test_ranks_write_the_bytes_of_one_process_and_go_on_as_it_does(run, tiny_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"I am number {number}." for number in range(30)]
    flags = ("--model", str(tiny_model), "--file", "lines", "--json", "--do-sample", "--seed", "3", "--quiet")
    Path("lines").write_text("".join(f"{line}\n" for line in [*lines[:20], "xq " * 2000, *lines[21:]]))
    done = on_ranks(2, "-c", SMALL, "translate", *flags, "--output", "out")
    assert done.returncode == 2
    assert "lines, line 21 has 6,000 tokens" in done.stderr
    assert "the first 18 lines are in out.part: put that right and add --resume\n" in done.stderr
    assert json.loads(Path("out.part.json").read_bytes())["done"]["lines"] == 18
    Path("lines").write_text("".join(f"{line}\n" for line in lines))
    done = on_ranks(2, "-c", SMALL, "translate", *flags, "--output", "out", "--resume")
    assert done.returncode == 0, done.stderr
    monkeypatch.setattr("toolkit.commands.lines.WINDOW", 3)
    assert run("translate", *flags, "--output", "alone").code == 0
    assert Path("out").read_bytes() == Path("alone").read_bytes()
    assert sorted(path.name for path in Path().iterdir()) == ["alone", "lines", "out"]


@needs_mpi
def test_standard_output_of_ranks_is_in_order(tiny_model, tmp_path):
    (tmp_path / "lines").write_text("".join(f"I am number {number}.\n" for number in range(20)))
    flags = ("translate", "--model", str(tiny_model), "--file", str(tmp_path / "lines"), "--json")
    two, one = (on_ranks(count, "-c", SMALL, *flags, "--max-new-tokens", "4").stdout for count in (2, 1))
    assert [json.loads(line)["source"] for line in one.splitlines()] == (tmp_path / "lines").read_text().splitlines()
    assert two == one
