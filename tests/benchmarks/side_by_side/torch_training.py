"""PyTorch's side of the training rows: padded batches, fused AdamW, eager or compiled."""

import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .batches import BOS, EOS, PAD, Batches
from .recipe import RECIPE
from .torch_models import GPT, Seq2Seq, load_arrays


class TorchTraining:
    """Updates of the same model on the same batches, `threads` threads.  texts: which of a batch are taken."""

    def __init__(self, directory: str, threads: int, compiled: bool, texts: slice = slice(None)):
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        data = Batches(Path(directory))
        is_gpt = data.kind == "gpt"
        self.model = GPT(data.model) if is_gpt else Seq2Seq(data.model, data.smoothing)
        with np.load(Path(directory) / "weights.npz") as arrays:
            load_arrays(self.model, dict(arrays))
        self.batch = (_windows if is_gpt else _pairs)(data, texts)
        decayed = [[p for p in self.model.parameters() if (p.dim() > 1) == wanted] for wanted in (True, False)]
        groups = [{"params": decayed[0]}, {"params": decayed[1], "weight_decay": 0.0}]
        betas = RECIPE["beta1"], RECIPE["beta2"]
        rate, decay = RECIPE["learning_rate"], RECIPE["weight_decay"]
        self.optimizer = torch.optim.AdamW(
            [group for group in groups if group["params"]], rate, betas, RECIPE["eps"], decay, fused=True
        )
        self.forward = torch.compile(self.model, dynamic=None if is_gpt else True) if compiled else self.model

    def check(self) -> dict[str, float]:
        """Loss and gradient norm of the first update, without dropout."""
        self.model.eval()
        loss, _ = self.loss(0)
        loss.backward()
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.model.parameters()])
        self.optimizer.zero_grad()
        self.model.train()
        return {"loss": loss.item(), "gradient_norm": norm.item()}

    def run(self, first: int, steps: int) -> dict[str, float]:
        """Make `steps` updates, beginning with batch `first`."""
        tokens, last, begin = 0, 0.0, time.perf_counter()
        for update in range(first, first + steps):
            loss, real = self.loss(update)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), RECIPE["clip"])
            self.optimizer.step()
            self.optimizer.zero_grad()
            tokens, last = tokens + real, loss.item()
        return {"seconds": time.perf_counter() - begin, "tokens": tokens, "loss": last}

    def loss(self, update: int) -> tuple[Tensor, int]:
        """Compute the mean loss of a batch -> that, and its real tokens."""
        batch, real = self.batch(update)
        return self.forward(*batch), real


TorchEager = partial(TorchTraining, compiled=False)
TorchCompiled = partial(TorchTraining, compiled=True)


def _windows(data: Batches, texts: slice):
    stream, length = torch.from_numpy(data.arrays["stream"]).long(), data.model["max_length"]

    def batch(update: int) -> tuple[tuple[Tensor, ...], int]:
        places = torch.from_numpy(data.starts(update)[texts])[:, None] + torch.arange(length)
        return (stream[places], stream[places + 1]), places.numel()

    return batch


def _pairs(data: Batches, texts: slice):
    sources, targets, batches = (data.ragged(name) for name in ("source", "target", "batch"))

    def batch(update: int) -> tuple[tuple[Tensor | None, ...], int]:
        chosen = batches[update % len(batches)][texts]
        source, _ = _padded([np.append(sources[index], EOS) for index in chosen])
        inputs, real = _padded([np.insert(targets[index], 0, BOS) for index in chosen])
        labels = np.concatenate([np.append(targets[index], EOS) for index in chosen])
        shown = source != PAD
        visible = None if shown.all() else torch.from_numpy(shown)[:, None, None, :]
        tensors = (torch.from_numpy(each) for each in (source, inputs, labels))
        return (*tensors, visible, torch.from_numpy(np.flatnonzero(real))), len(labels)

    return batch


def _padded(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Shapes: -> ids (B, T) and (B, T) of bool, True where a token is."""
    lengths = np.array([len(row) for row in rows])
    real = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(real.shape, PAD, np.int64)
    ids[real] = np.concatenate(rows)
    return ids, real
