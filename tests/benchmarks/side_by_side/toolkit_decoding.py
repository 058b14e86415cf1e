"""The toolkit's side of the rows of decoding."""

from contextlib import suppress
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits

from toolkit.decoding import ContinuationConfig, GenerationConfig, Hypothesis, generate
from toolkit.decoding.generation import SharedDecoding
from toolkit.decoding.weights import PackedWeights
from toolkit.models.gpt import GPT
from toolkit.models.storage import load_model

from .search_work import LONGEST, SearchSide

with suppress(ImportError):
    import numkong  # noqa: F401, so that its memory counts as that of imports

_BATCH_SIZE = 64


class ToolkitDecoding(SearchSide):
    """`workers` processes of one thread each, or one of `threads`.

    Beam search ends by the rule of the others: with as many finished hypotheses as there are beams.
    """

    def __init__(self, directory: str, workers: int = 1, threads: int = 1, int8: bool = False):
        super().__init__(directory)
        threadpool_limits(threads, user_api="blas")
        self.model, self.packed = load_model(Path(directory) / "toolkit", int8=int8), PackedWeights()
        if int8:
            self.model.quantize()
        length = {"max_new_tokens": self.steps or LONGEST, "forced_eos": "none"}
        beams = {"num_beams": self.beams, "early_stopping": True} if self.beams > 1 else {}
        self.settings = beams | length | ({"min_new_tokens": self.steps} if self.steps else {})
        self.shared = SharedDecoding(self.model, f"{directory}/toolkit", workers) if workers > 1 else None

    def decode(self, texts: list[list[int]]) -> list[list[int]]:
        return [best.ids for best, *_ in self._search(texts)]

    def _search(self, texts: list[list[int]]) -> list[list[Hypothesis]]:
        if isinstance(self.model, GPT):
            return generate(self.model, texts, ContinuationConfig(do_sample=False, **self.settings))
        config = GenerationConfig(**self.settings)
        if self.shared:
            return self.shared.generate(texts, config, _BATCH_SIZE, None, range(len(texts)), ())
        return generate(self.model, texts, config, _BATCH_SIZE, packed=self.packed)


Int8Decoding = partial(ToolkitDecoding, int8=True)
