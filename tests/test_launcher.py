"""Under a launcher of ranks one process leads and tells; where something is amiss with it, one sentence says what."""

import subprocess
import sys

import pytest

from tests.ranks import ENVIRONMENT, needs_mpi, on_ranks
from toolkit import launcher
from toolkit.errors import ConfigError

ALIKE = ("1.0", "3.11", {"numpy": "2.4", "BLAS kernel": "Haswell"})
NAMES = "rank 0 on a", "rank 1 on b"


@pytest.fixture
def launched(monkeypatch, tmp_path):
    """launched(number, **variables): this process is one of two ranks, in an empty directory, without mpi4py."""

    def launch(number=0, **variables):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(launcher, "_tells", None)
        monkeypatch.setitem(sys.modules, "mpi4py", None)
        for name, value in ({"PMI_SIZE": 2, "PMI_RANK": number} | variables).items():
            monkeypatch.setenv(name, str(value))
        return tmp_path

    return launch


def test_outside_of_a_launcher_nothing_of_mpi_is_imported(tiny_model):
    program = (
        "import sys; sys.modules['mpi4py'] = None\n"
        "from toolkit.cli import main\n"
        f"main(['translate', '--model', {str(tiny_model)!r}, 'I am a boy.'])\n"
        "print(sys.modules['mpi4py'])"
    )
    plain = {name: value for name, value in ENVIRONMENT.items() if not name.startswith(("PMI", "OMPI_COMM"))}
    done = subprocess.run([sys.executable, "-c", program], env=plain, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("None\n")
    assert done.stderr == ""


@pytest.mark.parametrize("verb", [["train", "translation", "--run", "new"], ["translate", "a"], ["--help"]])
def test_without_mpi4py_the_first_rank_says_what_to_install_and_nothing_is_made(launched, run, verb):
    directory = launched()
    told = run(*verb)
    assert (told.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert "need mpi4py" in told.err
    assert "pip install mpi4py mpich" in told.err
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize(("in_machine", "tells"), [(0, True), (1, False)])
def test_without_mpi4py_the_first_rank_of_another_machine_tells_too(launched, run, in_machine, tells):
    launched(number=5, MPI_LOCALRANKID=in_machine)
    told = run("translate", "a")
    assert told.code == 2
    assert ("need mpi4py" in told.err) == tells


@pytest.mark.parametrize(("number", "tells"), [(0, True), (3, False)])
def test_processes_that_slurm_has_started_without_mpi_do_nothing(monkeypatch, run, number, tells):
    for name, value in {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": str(number)}.items():
        monkeypatch.setenv(name, value)
    told = run("translate", "a")
    assert (told.code, told.out) == (2, "")
    assert ("srun has started 4 processes" in told.err) == tells


def test_standard_input_is_not_read_under_a_launcher(launched):
    launcher.check_standard_input("a file")
    launched()
    with pytest.raises(ConfigError, match="standard input on as it is: give a file"):
        launcher.check_standard_input("a file")


def test_what_equal_bits_depend_on_is_compared(monkeypatch):
    own = launcher.fingerprint()
    assert launcher.compare([own, own], NAMES) == ""
    assert {"numpy", "BLAS", "BLAS kernel", "SIMD"} <= own[2].keys()
    other = (*ALIKE[:2], {**ALIKE[2], "BLAS kernel": "SkylakeX"})
    told = launcher.compare([ALIKE, other], NAMES)
    assert told.startswith("rank 0 on a has BLAS kernel Haswell, rank 1 on b has SkylakeX: ")
    with pytest.raises(ConfigError, match=r"rank 0 on a has toolkit 1.0 and Python 3.11, rank 1 on b has 1.1 and 3.11"):
        launcher.compare([ALIKE, ("1.1", *ALIKE[1:])], NAMES)


@needs_mpi
def test_a_mistake_is_told_once_with_its_exit_code():
    done = on_ranks(3, "-m", "toolkit", "translate", "--model", "nix", "a")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("there is no model 'nix'") == 1


@needs_mpi
def test_an_exception_of_any_rank_ends_all(tmp_path):
    """Not where rank 0 waits for ever for one that has gone."""
    script = tmp_path / "script.py"
    script.write_text(
        "from toolkit import mpi\n"
        "mpi.led(lambda: print('done', flush=True))\n"
        "if mpi.world().rank == 1: raise ValueError('mine')\n"
        "mpi.world().receive(1, 99)\n"
    )
    done = on_ranks(2, str(script))
    assert done.returncode == 1
    assert done.stdout == "done\n"
    assert "ValueError: mine" in done.stderr
