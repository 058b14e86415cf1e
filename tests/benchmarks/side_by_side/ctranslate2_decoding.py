"""CTranslate2's side of the rows of decoding."""

from functools import partial

import ctranslate2

from .search_work import LONGEST, SearchSide

_BATCH_SIZE = 64


class CTranslate2Decoding(SearchSide):
    """`workers` replicas of `threads` threads each; texts that come together are divided among the replicas."""

    def __init__(self, directory: str, workers: int = 1, threads: int = 1, compute_type: str = "float32"):
        super().__init__(directory)
        self.translator = ctranslate2.Translator(
            f"{directory}/theirs", inter_threads=workers, intra_threads=threads, compute_type=compute_type
        )
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.workers = workers
        self.settings = {"beam_size": self.beams, "return_scores": False, "disable_unk": True}
        self.settings["max_decoding_length"] = self.steps or LONGEST
        if self.steps:
            self.settings["min_decoding_length"] = self.steps

    def decode(self, texts: list[list[int]]) -> list[list[int]]:
        sources = [[self.tokens[index] for index in text] for text in texts]
        together = min(-(-len(texts) // self.workers), _BATCH_SIZE)
        found = self.translator.translate_batch(sources, max_batch_size=together, **self.settings)
        return [[self.ids[token] for token in each.hypotheses[0]] for each in found]


Int8Decoding = partial(CTranslate2Decoding, compute_type="int8")
