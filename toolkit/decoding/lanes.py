"""Lanes of a continuous batch: the places of texts with equally many sequences, and one step for all of them."""

from collections.abc import Sequence

import numpy as np

from toolkit.decoding.cache import Cache
from toolkit.decoding.choosing import Searchers, Seat, Writers
from toolkit.decoding.slots import PART, PlacesCache, SlotCache
from toolkit.decoding.step import Step
from toolkit.decoding.weights import PackedWeights
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq, source_rows
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape

# What was read is kept for later prompts in more places than are written to, but not in more bytes than this.
_KEPT_BYTES = 64 << 20
# There is room for so much from the beginning, because it takes no memory before it is used, and copying it later would
# hold up all who write; and in a larger model, for so many entries of each place.
_ROOM_BYTES, _FIRST_ENTRIES = 256 << 20, 128
# Copying an entry takes as long as attending to so many, and texts go on for so many steps before others come or go.
_SWAP, _SOON = 4, 8


class Lane:
    """P places for texts with W sequences each, some of them taken by seats, and the seats that are being written.

    writing: places that may be taken at once. Where W is 1 and the model a GPT there are more of them, which keep what
    they hold for later prompts.
    """

    def __init__(self, model: Seq2Seq | GPT, width: int, writing: int, packed: PackedWeights, pool: Pool):
        config, dtype = model.config, model.output.table.data.dtype.type
        places, self._keeps = writing, isinstance(model, GPT) and width == 1
        heads = (getattr(config, "num_key_value_heads", 0) or config.num_heads) * config.head_width
        layers = config.layers if isinstance(model, GPT) else config.decoder_layers
        of_entry = 2 * heads * layers * np.dtype(dtype).itemsize
        if self._keeps:
            places += max(1, min(writing, _KEPT_BYTES // (of_entry * config.max_length)))
        most = width * config.max_length
        first = min(max(_FIRST_ENTRIES, _ROOM_BYTES // (places * of_entry)), most)
        self.cache = SlotCache(places, width, first, most, dtype)
        self._model, self._tape = model, Tape(memory=pool)
        self._step = Step(model, self.cache, packed, pool)
        self._seats: list[Seat | None] = [None] * places
        self._left, self._clock = np.zeros(places, np.int64), 0  # when a text left each place
        self._groups: dict[tuple, Writers | Searchers] = {}
        self._last = np.zeros((places, width), np.int64)
        self._changed = False  # since the last step, who takes part in it

    @property
    def groups(self) -> list[Writers | Searchers]:
        """Those who write, by the rules that hold for them."""
        return list(self._groups.values())

    @property
    def is_used(self) -> bool:
        """True where a text has a place."""
        return any(seat is not None for seat in self._seats)

    def take(self, seat: Seat) -> None:
        """Give the first free place to a seat, or a new one."""
        if None not in self._seats:
            self._add(1)
        seat.place = self._seats.index(None)
        self._seats[seat.place] = seat

    def _add(self, places: int) -> None:
        self._seats += [None] * places
        self._left = np.pad(self._left, (0, places))
        self._last = np.pad(self._last, ((0, places), (0, 0)))
        self.cache.make_places(len(self._seats))

    def begin(self, seat: Seat, text: Array, shares: bool) -> int:
        """Prepare the place of a seat for a text, which nobody writes to yet, and count the tokens that it holds.

        shares: whether what any place holds may be used; otherwise nothing is.
        """
        cache, place = self.cache, seat.place
        if not self._keeps:
            return 0
        common = cache.common_prefixes(text) if shares else np.zeros(len(self._seats), np.int64)
        origin, is_free = int(common.argmax()), np.array([each is None for each in self._seats])
        length = int(common[origin])
        is_free[place] = True
        if length and is_free[origin] and length == cache.held[origin]:  # the text goes on where that one ended
            if origin != place:
                cache.swap(place, origin)
                self._left[[place, origin]] = self._left[[origin, place]]
            return length
        is_free[origin] &= origin == place or not length
        free = np.flatnonzero(is_free)
        oldest = int(free[self._left[free].argmin()])
        if oldest != place:  # what was used last is kept
            cache.copy(place, oldest, int(cache.held[place]))
            self._left[oldest] = self._left[place]
        if origin != place:
            cache.copy(origin, place, length)
        cache.held[place] = cache.counts[place] = length
        return length

    def read(self, places: list[int], texts: list[Array]) -> list[Array]:
        """Read texts into places, after what these hold, and return the model's states after every id, (N, D) each."""
        rows = PlacesCache(self.cache, places).rows(np.array([len(ids) for ids in texts]))
        x = self._model.read(np.concatenate(texts), rows, self._tape)
        for place, ids in zip(places, texts, strict=True):
            self.cache.wrote(place, ids)
        return np.split(x, rows.starts[1:])

    def encode(self, sources: Sequence[Sequence[int]], places: list[int]) -> None:
        """Encode sources for these places, together."""
        ids, rows = source_rows(sources)
        memory = self._model.encode(ids, rows, self._tape)
        self.cache.remember(rows, places)
        for block in self._model.decoder.blocks:
            block.cross_attention.layer.remember(memory, self.cache, self._tape)

    def forget(self, place: int, kept: int) -> Array:
        """Empty a place, and return the last ids that it has read."""
        cache = self.cache
        tail = cache.tokens[place, 0, cache.counts[place] - kept : cache.counts[place]].copy()
        cache.held[place] = cache.counts[place] = 0
        return tail

    def read_again(self, seat: Seat, kept: int) -> None:
        """Empty the place of beams that are written, and read the last ids of each of them again."""
        cache, width, place = self.cache, self.cache.width, seat.place
        tails = cache.tokens[place, :, cache.counts[place] - kept : cache.counts[place]].copy()
        separate = Cache(width)
        lengths = np.full(width, kept)
        self._model.read(tails.reshape(-1), separate.rows(lengths), self._tape)
        separate.advance(lengths)
        cache.spread(place, separate)
        cache.tokens[place, :, :kept] = tails

    @staticmethod
    def rows(scores: Array, places: Array) -> Array:
        """Return the rows of some places, (B·W, V) of (n, W, V) or (B, V) of (n, V); of all in order no copy."""
        if len(places) < len(scores) or (places[:-1] > places[1:]).any():
            scores = scores[places]
        return scores.reshape(-1, scores.shape[-1])

    def join(self, seats: Sequence[Seat]) -> None:
        """Let seats write from the next step on: those of one text, the first of which has read it."""
        first, *others = (seat.place for seat in seats)
        for place in others:
            self.cache.copy(first, place, int(self.cache.held[first]))
        self.go_on(seats)

    def go_on(self, seats: Sequence[Seat]) -> None:
        """Let seats write from the next step on, each of which has read what it needs."""
        for seat in seats:
            self.cache.join(seat.place)
        rules = seats[0].rules
        if rules not in self._groups:
            self._groups[rules] = Writers() if self.cache.width == 1 else Searchers(self.cache)
        self._groups[rules].join(seats)
        self._changed = True

    def pause(self, key: int) -> None:
        """Let the seats of a request write no more, but keep their places."""
        for seat in self._seats:
            if seat is not None and seat.key == key:
                self.cache.leave(seat.place)
        for rules, group in list(self._groups.items()):
            group.leave(key)
            if not group.seats:
                del self._groups[rules]
        self._changed = True

    def leave(self, seats: Sequence[Seat], damaged: bool = False) -> None:
        """Free the places of seats, which no group has any more.  damaged: what they hold is not kept."""
        for seat in seats:
            self._seats[seat.place] = None
            self.cache.leave(seat.place)
            if damaged:
                self.cache.clear(seat.place)
            if not self._keeps:
                self.cache.held[seat.place] = self.cache.counts[seat.place] = 0
            self._clock += 1
            self._left[seat.place] = self._clock
        self._changed = True
        for rules, group in list(self._groups.items()):
            if not group.seats:
                del self._groups[rules]

    def logits(self) -> Array:
        """Read the last token of every sequence that is written, and score all tokens as the next one.

        Shapes: (n, W, V) of the first n places.
        """
        if self._changed:
            self._arrange()
        for group in self._groups.values():
            self._last[group.places] = group.last
        cache = self.cache
        ids = self._last[: cache.texts]
        cache.note(ids)
        return self._step.logits(ids.reshape(-1)).reshape(*ids.shape, -1)

    def _arrange(self) -> None:
        """Move those who write to the first places, where a step is then shorter, and the longest to the first parts of
        them, where the others need not go through as many entries."""
        cache, count = self.cache, np.count_nonzero(self.cache.active)
        while (highest := int(np.flatnonzero(cache.active)[-1])) >= cache.size_for(count):
            self._swap(int(cache.active.argmin()), highest)
        for begin in range(PART, cache.size_for(highest + 1), PART):
            self._sort(begin)
        cache.arrange(highest + 1)
        for group in self._groups.values():
            group.moved()
        self._changed = False

    def _sort(self, begin: int) -> None:
        """Swap the longest text of a part with the shortest of those before, if that soon saves more than it takes."""
        used = self.cache.held * self.cache.active
        part = used[begin : begin + PART]
        longest, shortest = begin + int(part.argmax()), int(used[:begin].argmin())
        rest = max(np.delete(part, longest - begin).max(initial=0), used[shortest])
        saved = len(part) * (used[longest] - rest)
        if _SOON * saved > _SWAP * (used[longest] + max(self.cache.held[shortest], used[shortest])):
            self._swap(shortest, longest)

    def _swap(self, one: int, other: int) -> None:
        if one == other:
            return
        self.cache.swap(one, other)
        for each in self._seats, self._left:
            each[one], each[other] = each[other], each[one]
        for place in (one, other):
            if self._seats[place] is not None:
                self._seats[place].place = place
