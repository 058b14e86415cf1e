"""The toolkit's side of the rows of decoding."""

import multiprocessing
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from threadpoolctl import threadpool_limits

from toolkit.decoding import ContinuationConfig, GenerationConfig, continue_prompts, generate
from toolkit.models.gpt import GPT
from toolkit.models.storage import load_model

from .search_work import SearchSide


class ToolkitDecoding(SearchSide):
    """`workers` processes of one thread each, or one of `threads`."""

    def __init__(self, directory: str, workers: int = 1, threads: int = 1):
        super().__init__(directory)
        threadpool_limits(threads, user_api="blas")
        self.model = load_model(Path(directory) / "toolkit")
        forced = {"max_new_tokens": self.steps, "min_new_tokens": self.steps or 0} if self.steps else {}
        forced |= {"forced_end": "none"} if self.steps else {}
        if isinstance(self.model, GPT):
            self.search = partial(continue_prompts, config=ContinuationConfig(do_sample=False, **forced))
        else:
            self.search = partial(generate, config=GenerationConfig(num_beams=self.beams, **forced))
        self.others = [self._fork() for _ in range(workers - 1)]

    def decode(self, texts: list[list[int]]) -> list[list[int]]:
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        mine, *others = (order[begin :: len(self.others) + 1] for begin in range(len(self.others) + 1))
        for connection, part in zip(self.others, others, strict=True):
            connection.send([texts[index] for index in part])
        found = dict(zip(mine, self._decode([texts[index] for index in mine]), strict=True))
        for connection, part in zip(self.others, others, strict=True):
            found |= dict(zip(part, connection.recv(), strict=True))
        return [found[index] for index in range(len(texts))]

    def _decode(self, texts: list[list[int]]) -> list[list[int]]:
        return [best.ids for best, *_ in self.search(self.model, texts)]

    def _fork(self) -> Connection:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        context.Process(target=self._serve, args=(theirs, ours), daemon=True).start()
        theirs.close()
        return ours

    def _serve(self, connection: Connection, other_end: Connection) -> None:
        other_end.close()
        try:
            while True:
                connection.send(self._decode(connection.recv()))
        except EOFError:
            return
