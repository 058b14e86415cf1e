"""One side as a process: `python -m side_by_side.serve MODULE CLASS` answers lines of JSON on its standard input.

The first line has the arguments of the class, every other one the name of a method and its arguments. What it prints
of itself, and what libraries print, goes to standard error.
"""

import importlib
import json
import os
import sys


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module, name = sys.argv[1:]
    made = getattr(importlib.import_module(f".{module}", __package__), name)
    print(json.dumps("imported"), file=answers, flush=True)
    served = None
    for line in sys.stdin:
        method, arguments = json.loads(line)
        if served is None:
            served = made(**arguments)
            answer = None
        else:
            answer = getattr(served, method)(**arguments)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    if "PMI_SIZE" in os.environ:  # under mpiexec, where the first rank is told what to do
        from toolkit import mpi

        mpi.led(main)
    else:
        main()
        os._exit(0)  # workers and threads need no farewell
