"""Who looked at whom while a text was written: the maps of all layers and heads, read from a real pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.data.collate import translation_batch
from toolkit.explain.pages.blocks import Block, Heat, Maps, Section, Text
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.attention import SelfAttention
from toolkit.nn.recorder import Recorder
from toolkit.nn.rows import Rows, causal_mask_with_past
from toolkit.nn.tape import Tape

MOST_TOKENS = 64  # rows and columns of a map that is shown
MOST_CELLS = 150_000  # of all maps of a page


@dataclass(frozen=True)
class Attention:
    """What is taken from where, (L, H, T, S): [l, h, t, s] is how much of what row t takes comes from column s."""

    maps: Array
    rows: Sequence[str]
    columns: Sequence[str]
    hidden: Array | None = None  # (T, S), true where a mask forbids to look
    last: bool = False  # whether a map that is too large shows its last rows and columns, not its first

    @property
    def shown(self) -> slice:
        """The rows and columns that a map shows."""
        return slice(-MOST_TOKENS, None) if self.last else slice(MOST_TOKENS)


def cross_attention_maps(model: Seq2Seq, source: Sequence[int], target: Sequence[int]) -> tuple[Array, Array]:
    """(L, H, T + 1, S + 1) for one pair of ids without marks, and the memory (S + 1, D).

    Row t belongs to the step that writes target token t, the last one to the end mark.
    """
    batch = translation_batch([np.asarray(source, np.int64)], [np.asarray(target, np.int64)])
    modules = [block.cross_attention.layer for block in model.decoder.blocks]
    recorder = Recorder(modules, ["probabilities"])
    tape = Tape(recorder=recorder)
    memory = model.encode(batch.sources, batch.source_rows, tape).copy()
    model.decode(batch.inputs, memory, batch.rows, tape)
    return np.stack([recorder.attention_maps(module)[0] for module in modules]), memory


def self_attention_maps(model: GPT, ids: Sequence[int]) -> tuple[Array, Array]:
    """(L, H, T, T) for one text of a decoder-only model, and what its causal mask hides, (T, T)."""
    modules: list[SelfAttention] = [block.attention.layer for block in model.trunk.decoder.blocks]
    recorder = Recorder(modules, ["probabilities"])
    model.read(np.asarray(ids, np.int64), Rows(np.array([len(ids)])), Tape(recorder=recorder))
    visible = causal_mask_with_past(np.zeros(1, np.int64), len(ids), len(ids))[0, 0].T
    return np.stack([recorder.attention_maps(module)[0] for module in modules]), ~visible


def averaged(attention: Attention, name: str, note: str = "") -> Heat:
    """The mean over all layers and heads."""
    return _heat(attention, name, attention.maps.mean(axis=(0, 1)), note)


def by_head(
    attention: Attention, title: str, layer: int | None = None, head: int | None = None
) -> tuple[list[Section], list[str]]:
    """A section for each layer with the maps of its heads, or those of one; and what is not shown, in sentences.

    layer, head: counted from 1.
    """
    layers, heads = attention.maps.shape[:2]
    chosen = list(range(1, layers + 1)) if layer is None else [layer]
    own = range(1, heads + 1) if head is None else [head]
    rows, columns = (len(names[attention.shown]) for names in (attention.rows, attention.columns))
    room = max(1, MOST_CELLS // (rows * columns * len(own)))
    cut = []
    if len(chosen) > room:
        missing = f"Each of layers {room + 1} to {layers} of {layers} has"
        if room + 1 == layers:
            missing = f"Layer {layers} of {layers} has"
        cut.append(f"{missing} no map of its own here, only a part in the average: --layer shows one.")
    sections = []
    for number in chosen[:room]:
        maps = [_heat(attention, f"layer {number}, head {each}", attention.maps[number - 1, each - 1]) for each in own]
        blocks: list[Block] = [Maps(maps)]
        if head is None and heads > 1:
            blocks.append(
                _heat(attention, f"layer {number}, mean of its heads", attention.maps[number - 1].mean(axis=0))
            )
        sections.append(Section(f"{title}, layer {number}", blocks))
    return sections, cut


def cut_maps(attention: Attention) -> list[str]:
    """What no map shows, in sentences."""
    which = "last" if attention.last else "first"
    return [
        f"Maps show the {which} {MOST_TOKENS} of {len(names)} {what}."
        for names, what in ((attention.rows, "rows"), (attention.columns, "columns"))
        if len(names) > MOST_TOKENS
    ]


def mask_section(attention: Attention) -> Section:
    """The causal mask, and the average of what it leaves."""
    text = (
        "A row may look at itself and at what stands before it, never at what is still to be written: the mask hides "
        "everything to the right of the diagonal. What remains of a row sums to 1."
    )
    return Section("The causal mask", [Text(text), averaged(attention, "mean of all layers and heads")])


def _heat(attention: Attention, name: str, values: Array, note: str = "") -> Heat:
    shown = attention.shown, attention.shown
    hidden = None if attention.hidden is None else attention.hidden[shown]
    rows, columns = (list(names[attention.shown]) for names in (attention.rows, attention.columns))
    return Heat(name, values[shown], rows, columns, hidden, note)
