"""Translation on a host: the sentences of texts are requests of their own, and make one answer, as in the library."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from toolkit.decoding import GenerationConfig, Hypothesis
from toolkit.decoding.continuous import Request
from toolkit.outputs import Translation
from toolkit.serving.answers import computed
from toolkit.serving.errors import ApiError
from toolkit.serving.host import Host
from toolkit.serving.stream import Busy
from toolkit.translation_reader import Prepared
from toolkit.translator import Translator, searching_again, widened

# Sentences of one request that are with the engine at a time: the others wait here, and fill no queue.
_TOGETHER = 16
# Of a request that has one with the engine, others are sent while fewer than these wait there, of whichever request:
# so those with many sentences together leave room in the queue for those with one.
_WAITING = 8
# Seconds after which it looks again.
_PAUSE = 0.02
# Pairs whose attention is asked for at once, and samples or beams of a sentence count each.
_PAIRS = 64


@dataclass
class Work:
    """Texts that a host translates, all by the same settings.

    reader: of the host, for the languages that are meant. config: seeded. settings: those of
    `TranslationReader.prepared`.
    """

    host: Host
    reader: Translator
    texts: Sequence[str]
    config: GenerationConfig
    settings: Mapping[str, Any]
    aligned: Sequence[bool]  # which texts need attention and alignment
    wait: float
    prompt_tokens: int = 0
    new_tokens: int = 0
    queued: float | None = None  # seconds that the first sentence has waited
    first: float | None = None  # and until it had a token

    async def run(self) -> list[list[Translation]]:
        """Translate -> of every text, its translations, best first.  Where a sentence fails, so does all of it."""
        self.config = _possible(self.config, self.reader.model.config.max_length)
        length = sum(map(len, self.texts))
        prepared = await computed(length, self._prepared)
        self.prompt_tokens = sum(map(len, prepared.sentences))
        found = await self._found(prepared, widened(self.config))
        self.reader.check_found(found)
        found = self.reader.completed(prepared, found, {})
        if lost := [] if self.config.samples else self.reader.lost(prepared, found):
            again = await self._found(prepared.only(lost), searching_again(self.config))
            found = self.reader.completed(prepared, found, dict(zip(lost, again, strict=True)))
        self.new_tokens = sum(len(each.token_log_probs) for group in found for each in group)
        groups = await computed(length, self.reader.candidates, prepared, found, self.config)
        if any(self.aligned):
            groups = await self._aligned(prepared, groups)
        return await computed(length, prepared.chosen, groups, self.config)

    def _prepared(self) -> Prepared:
        names = (lambda number: f"text {number}") if len(self.texts) > 1 else lambda _: "the text"
        return self.reader.prepared(self.texts, self.config, names, **self.settings)

    async def _found(self, prepared: Prepared, config: GenerationConfig) -> list[list[Hypothesis]]:
        """Have every sentence translated, several at a time, in their order."""
        found: dict[int, list[Hypothesis]] = {}
        asked: set[int] = set()
        left = list(reversed(range(len(prepared.sentences))))

        async def work() -> None:
            while left:
                if asked and self.host.waiting >= _WAITING:
                    await asyncio.sleep(_PAUSE)
                    continue
                place = left.pop()
                asked.add(place)
                request = Request(
                    0,
                    prepared.sentences[place],
                    config,
                    prepared.numbers[place],
                    () if prepared.prefixes is None else prepared.prefixes[place],
                    prepared.language,
                    prepared.bad_ids,
                )
                try:
                    found[place] = await self._one(request)
                except Busy:
                    if not found and len(asked) == 1:
                        raise
                    left.append(place)  # some are done, or have their place, which this one may get
                    asked.discard(place)
                    await asyncio.sleep(_PAUSE)
                asked.discard(place)

        tasks = [asyncio.create_task(work()) for _ in range(min(_TOGETHER, len(left)))]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*tasks, return_exceptions=True)
        return [found[place] for place in range(len(prepared.sentences))]

    async def _one(self, request: Request) -> list[Hypothesis]:
        hypotheses: list[Hypothesis] = []
        async with self.host.submit(request, self.wait, reader=self.reader) as stream:
            async for news in stream:
                hypotheses = news.hypotheses or hypotheses
        if self.first is None and stream.first is not None and stream.sent is not None:
            self.first, self.queued = stream.first - stream.submitted, stream.sent - stream.submitted
        return hypotheses

    async def _aligned(self, prepared: Prepared, groups: list[list[Translation]]) -> list[list[Translation]]:
        """Add attention and alignment to the translations of the sentences of those texts that need them."""
        needed = [need for need, source in zip(self.aligned, prepared.sources, strict=True) for _ in source.ids]
        chosen = [
            (place, number)
            for place, (need, group) in enumerate(zip(needed, groups, strict=True))
            for number in range(len(group) if need else 0)
        ]
        groups = [[*group] for group in groups]
        for begin in range(0, len(chosen), _PAIRS):
            some = chosen[begin : begin + _PAIRS]
            sources = [prepared.sentences[place] for place, _ in some]
            targets = [groups[place][number] for place, number in some]
            pairs = list(zip(sources, self.reader.target_ids(targets), strict=True))
            maps = await self.host.attention(pairs, reader=self.reader)
            for (place, number), each in zip(some, self.reader.aligned(sources, targets, maps), strict=True):
                groups[place][number] = each
        return groups


def _possible(config: GenerationConfig, most: int) -> GenerationConfig:
    """Cut what may be written to what the model can write.  Raises ApiError where more than that must be."""
    if config.min_new_tokens > most:
        message = f"min_tokens is {config.min_new_tokens}: this model writes at most {most} tokens"
        raise ApiError(400, message, param="min_tokens")
    return config if (config.max_new_tokens or 0) <= most else replace(config, max_new_tokens=most)


def detail(found: Translation) -> dict[str, Any]:
    """Give a translation with all that is known of it.

    probability: that it is right, where the model was calibrated; else that of a token, in the geometric mean.
    """
    if found.confidence:
        return {**found.to_dict(), "probability": round(found.confidence.sentence, 6), "calibrated": True}
    mean = math.fsum(found.token_log_probs) / max(len(found.token_log_probs), 1)
    return {**found.to_dict(), "probability": round(math.exp(mean), 6), "calibrated": False}
