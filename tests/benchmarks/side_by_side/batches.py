"""The batches of a training row as both sides read them; nothing of the toolkit is imported here."""

import json
from pathlib import Path

import numpy as np

PAD, BOS, EOS = 0, 2, 3


class Batches:
    """What `write_workload` left, read again by either side; batch i is that of update i."""

    def __init__(self, directory: Path):
        settings = json.loads((directory / "workload.json").read_text(encoding="utf-8"))
        self.kind, self.model, self.smoothing = settings["kind"], settings["model"], settings["smoothing"]
        with np.load(directory / "batches.npz") as arrays:
            self.arrays = dict(arrays)

    def starts(self, update: int) -> np.ndarray:
        """Where the windows of a language model's batch begin in the stream."""
        starts = self.arrays["starts"]
        return starts[update % len(starts)]

    def ragged(self, name: str) -> list[np.ndarray]:
        return np.split(self.arrays[f"{name}_values"], self.arrays[f"{name}_ends"][:-1])
