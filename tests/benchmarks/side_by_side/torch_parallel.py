"""PyTorch's DistributedDataParallel over gloo: the same updates by processes of one thread each."""

import multiprocessing
import os
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from .torch_training import TorchTraining


class TorchParallel(TorchTraining):
    """The first of `threads` processes: it starts the others, which do what it does.

    Texts of a batch, which are sorted by length, are dealt in turn. DistributedDataParallel averages the gradients of
    processes while backward goes on, so each loss is weighed by its share of all tokens.
    """

    def __init__(self, directory: str, threads: int, number: int = 0, store: str = ""):
        self._others: list[Connection] = []
        if not number:
            store = str(Path(tempfile.mkdtemp(dir=directory)) / "gloo")
            self._start_others(directory, threads, store)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        files = distributed.FileStore(store, threads)
        distributed.init_process_group("gloo", store=files, rank=number, world_size=threads)
        super().__init__(directory, 1, compiled=False, texts=slice(number, None, threads))
        torch.manual_seed(1 + number)
        self._count, self.forward = threads, DistributedDataParallel(self.model)

    def _start_others(self, directory: str, threads: int, store: str) -> None:
        method = multiprocessing.get_context("spawn")  # a fork of a process that has threads may hang
        for number in range(1, threads):
            mine, theirs = method.Pipe()
            method.Process(target=_serve, args=(theirs, mine, directory, threads, number, store), daemon=True).start()
            self._others.append(mine)

    def _tell(self, *call: object) -> None:
        for each in self._others:
            each.send(call)

    def check(self) -> dict[str, float]:
        """Loss and gradient norm of the first update, without dropout, of all processes together."""
        self._tell("check")
        found = super().check()
        loss = torch.tensor(found["loss"])
        distributed.all_reduce(loss)
        return {**found, "loss": loss.item() / self._count}

    def run(self, first: int, steps: int) -> dict[str, float]:
        self._tell("run", first, steps)
        return super().run(first, steps)

    def loss(self, update: int) -> tuple[Tensor, int]:
        batch, own = self.batch(update)
        tokens = torch.tensor(own)
        distributed.all_reduce(tokens)
        everyone = int(tokens)
        return self.forward(*batch) * (own * self._count / everyone), everyone


def _serve(connection: Connection, other_end: Connection, *arguments: object) -> None:
    """Do what the first process does, until it goes away."""
    other_end.close()
    served = TorchParallel(*arguments)
    while True:
        try:
            name, *values = connection.recv()
        except EOFError:
            os._exit(0)  # gloo's threads need no farewell
        getattr(served, name)(*values)
