"""A row of decoding as all sides read it; nothing of the toolkit is imported here."""

import json
import time
from abc import ABC, abstractmethod
from pathlib import Path

LONGEST = 64  # tokens of outputs that end by themselves: no side writes more where one repeats itself for ever


class SearchSide(ABC):
    """Decodes the texts of a row, as often as it is told."""

    def __init__(self, directory: str):
        work = json.loads((Path(directory) / "search.json").read_text(encoding="utf-8"))
        self.beams, self.steps, self.texts, self.tokens = (work[n] for n in ("beams", "steps", "texts", "tokens"))
        self.batches = [self.texts] if work["together"] else [[text] for text in self.texts]

    @abstractmethod
    def decode(self, texts: list[list[int]]) -> list[list[int]]:
        """The ids of the best output of every text, without marks."""

    def check(self) -> list[list[int]]:
        """All outputs."""
        return [output for batch in self.batches for output in self.decode(batch)]

    def run(self, times: int) -> dict[str, float]:
        """Decode all texts so many times.  Tokens count end marks where the model wrote them."""
        begin = time.perf_counter()
        for _ in range(times):
            outputs = self.check()
        seconds = time.perf_counter() - begin
        tokens = sum(len(output) + (self.steps is None) for output in outputs)
        return {"seconds": seconds, "tokens": times * tokens}
