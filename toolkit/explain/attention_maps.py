"""The maps of attention of a decoded text: read from one real pass, cut to what a page can show, averaged."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT, GPTBatch
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqBatch, translation_batch
from toolkit.nn.module import Module
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Recorder, Tape
from toolkit.pages.blocks import Heat, Maps, Section

MOST_TOKENS = 64  # rows and columns of a map that is shown
MOST_CELLS = 150_000  # of all maps of a page


@dataclass
class Attention:
    """The maps of all layers and heads, (L, H, T, S): [l, h, t, s] is how much of what row t takes comes from column s.

    hidden: (T, S), true where a mask forbids to look; last: a map that is too large shows its last rows and columns,
    not its first.
    """

    maps: Array
    rows: Sequence[str]
    columns: Sequence[str]
    hidden: Array | None = None
    last: bool = False

    def __post_init__(self) -> None:
        which = "last" if self.last else "first"
        sides = ((self.rows, "rows"), (self.columns, "columns"))
        self.cut = [  # a sentence on everything that no map shows
            f"Maps show the {which} {MOST_TOKENS} of {len(names)} {what}."
            for names, what in sides
            if len(names) > MOST_TOKENS
        ]
        shown = slice(-MOST_TOKENS, None) if self.last else slice(MOST_TOKENS)
        self.maps, self.rows, self.columns = self.maps[:, :, shown, shown], self.rows[shown], self.columns[shown]
        self.hidden = None if self.hidden is None else self.hidden[shown, shown]

    def averaged(self) -> Heat:
        """Show the mean over all layers and heads."""
        return self._heat("mean of all layers and heads", self.maps.mean(axis=(0, 1)))

    def by_head(self, title: str, layer: int | None, head: int | None) -> list[Section]:
        """Make a section for each layer with the maps of its heads, or those of one, counted from 1.

        A sentence on layers that are not shown is added to `cut`.
        """
        layers, heads = self.maps.shape[:2]
        chosen = list(range(1, layers + 1)) if layer is None else [layer]
        own = range(1, heads + 1) if head is None else [head]
        room = max(1, MOST_CELLS // (len(self.rows) * len(self.columns) * len(own)))
        if len(chosen) > room:
            missing = f"Each of layers {room + 1} to {layers} of {layers} has"
            if room + 1 == layers:
                missing = f"Layer {layers} of {layers} has"
            self.cut.append(f"{missing} no map of its own here, only a part in the average: --layer shows one.")
        sections = []
        for place in chosen[:room]:
            maps, mean = self.maps[place - 1], None
            if head is None and heads > 1:
                mean = self._heat(f"layer {place}, mean of its heads", maps.mean(axis=0))
            small = Maps([self._heat(f"layer {place}, head {each}", maps[each - 1]) for each in own])
            sections.append(Section(f"{title}, layer {place}", small, mean))
        return sections

    def _heat(self, name: str, values: Array) -> Heat:
        return Heat(name, values, list(self.rows), list(self.columns), self.hidden)


def cross_attention_maps(model: Seq2Seq, source: Sequence[int], target: Sequence[int]) -> Array:
    """Read a pair of ids without BOS and EOS -> maps (L, H, T + 1, S + 1).

    Row t belongs to the step that writes target token t, the last one to EOS.
    """
    batch = translation_batch([np.asarray(source, np.int64)], [np.asarray(target, np.int64)])
    return _maps(model, batch, [block.cross_attention.layer for block in model.decoder.blocks])


def self_attention_maps(model: GPT, ids: Sequence[int]) -> tuple[Array, Array]:
    """Read a text of a decoder-only model -> maps (L, H, T, T), and the cells that its causal mask hides, (T, T)."""
    tokens = np.asarray(ids, np.int64)
    batch = GPTBatch(tokens, tokens, Rows(np.array([len(tokens)])))  # no label is asked for
    maps = _maps(model, batch, [block.attention.layer for block in model.trunk.decoder.blocks])
    return maps, np.triu(np.ones((len(tokens), len(tokens)), bool), 1)


def _maps(model: Seq2Seq | GPT, batch: Seq2SeqBatch | GPTBatch, modules: Sequence[Module]) -> Array:
    recorder = Recorder(modules, ["probabilities"])
    model.forward(batch, Tape(recorder=recorder))
    return np.stack([recorder.attention_maps(module)[0] for module in modules])
