"""The layout of a vocabulary: the ids of a model from elsewhere become ours, and ours its own again.

Our decoders know fixed ids for padding, unknown text, the begin and the end, and reserve some for chat (see
`toolkit.tokenization.special`). Other models have them elsewhere, or not at all. So reading a model moves the rows of
its tables: the special tokens come first, every other token after them in its old order.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.interop.hugging_face_files import Config
from toolkit.interop.mapping import OUTPUT, OUTPUT_BIAS, TABLES, TARGET, TIED
from toolkit.models.gpt import ABSENT, GPTConfig
from toolkit.models.storage import new_model
from toolkit.nn.module import Model
from toolkit.tokenization.special import BOS, EOS, PAD, SPECIAL_TOKENS, UNK, WRITTEN_FIRST


@dataclass(frozen=True)
class Vocabulary:
    """The foreign id that stands at each of ours.

    rows: (V,) the foreign id whose row each of our ids takes; -1 for a reserved token that the foreign model lacks.
    Every foreign id occurs, some of them twice: where a model begins its texts with the end token, say.
    """

    rows: tuple[int, ...]

    @classmethod
    def plan(
        cls,
        size: int,
        pad: int | None,
        unk: int | None,
        bos: int | None,
        eos: int | None,
        origin: str | os.PathLike[str] = "the model",
        marks: Mapping[int, int] | None = None,
    ) -> "Vocabulary":
        """Lay out a foreign model of `size` ids, from the ids of its special tokens, None where it has none.

        marks: the ids that it has for those of our special ids that only conversations have, where it has them.

        Raises ModelError, naming the `origin`, for a special token that is not one of the `size`.
        """
        special = {PAD: pad, UNK: unk, BOS: bos, EOS: eos, **(marks or {})}
        for ours, foreign in special.items():
            if foreign is not None and not 0 <= foreign < size:
                raise ModelError(
                    f"{origin}: the id of {SPECIAL_TOKENS[ours]} is {foreign}, but the model has {size} tokens: "
                    "configuration and weights belong to different models"
                )
        first = [special.get(ours) for ours in range(len(SPECIAL_TOKENS))]
        taken = set(first)
        others = (foreign for foreign in range(size) if foreign not in taken)
        return cls((*(-1 if foreign is None else foreign for foreign in first), *others))

    @classmethod
    def own(cls, size: int) -> "Vocabulary":
        """Lay out a model of ours that comes back: every id stays where it is."""
        return cls(tuple(range(size)))

    def with_end_alone(self, kept: Collection[int] = ()) -> "Vocabulary":
        """Lay out the same model with no special tokens but its end mark, and those of its foreign ids that are `kept`.

        All others are then tokens like any other, which may be written.
        """
        first = [row if ours == EOS or row in kept else -1 for ours, row in enumerate(self.rows[: len(SPECIAL_TOKENS)])]
        return Vocabulary((*first, *sorted({*self.rows} - {*first, -1})))

    @property
    def size(self) -> int:
        """V, the number of our ids."""
        return len(self.rows)

    @property
    def foreign_size(self) -> int:
        """Number of ids of the foreign model."""
        return self.size - len(self.aliases)

    @cached_property
    def aliases(self) -> tuple[int, ...]:
        """Our ids that must never be written: the foreign model lacks them, or another of ours is the same token."""
        written, aliases = set(), []
        order = (*WRITTEN_FIRST, *(ours for ours in range(self.size) if ours not in WRITTEN_FIRST))
        for ours in order:
            if self.rows[ours] < 0 or self.rows[ours] in written:
                aliases.append(ours)
            written.add(self.rows[ours])
        return tuple(sorted(aliases))

    @cached_property
    def _ours(self) -> Array:
        """Our id for each foreign one, (foreign size,): that which is written, not its aliases."""
        aliases = set(self.aliases)
        ours = np.empty(self.foreign_size, np.int64)
        for our_id, foreign in enumerate(self.rows):
            if our_id not in aliases:
                ours[foreign] = our_id
        return ours

    @property
    def begin_row(self) -> int:
        """Our id of the token that texts begin with: BOS, unless that is only another name of it."""
        return self.ours([self.rows[BOS]])[0] if self.rows[BOS] >= 0 else BOS

    def ours(self, foreign_ids: Iterable[int]) -> list[int]:
        """Give our ids of foreign ones."""
        return [int(self._ours[foreign]) for foreign in foreign_ids]

    def foreign(self, our_ids: Sequence[int]) -> list[int]:
        """Give the foreign ids of ours; -1 for a reserved token that the foreign model lacks."""
        return [self.rows[ours] for ours in our_ids]

    def read_table(self, table: Array) -> Array:
        """Put a table into our order, with zeros for reserved tokens.  Shapes: (foreign size, D) -> (V, D)."""
        rows = np.array(self.rows)
        ours = table[rows]
        ours[rows < 0] = 0
        return ours

    def write_table(self, table: Array, begins: bool = False) -> Array:
        """Put a table of ours into the foreign order, without what only we have.  Shapes: (V, D) -> (foreign size, D).

        begins: of a table that is read and not written from, where a token that is our BOS too takes its row.
        """
        rows = self._ours
        if begins and self.rows[BOS] >= 0:
            rows = rows.copy()
            rows[self.rows[BOS]] = BOS
        return table[rows]

    def read_bias(self, bias: Array | None) -> Array | None:
        """Put an output bias into our order, None where none is needed.  Shapes: (foreign size,) -> (V,)."""
        if bias is None and not self.aliases:
            return None
        ours = np.zeros(self.size, np.float32) if bias is None else bias[np.array(self.rows)]
        ours[list(self.aliases)] = ABSENT
        return ours


def in_own_order(
    config: Config, arrays: Mapping[str, Array], vocabulary: Vocabulary
) -> tuple[Config, dict[str, Array]]:
    """Put the rows of a model's tables, and the entries of its output bias, into our order.

    It gets an output bias where there are tokens that must never be written. Training leaves that bias as it is, and
    one that comes with a model too: elsewhere it is a constant.
    """
    arrays = dict(arrays)
    for name in TABLES & arrays.keys():
        arrays[name] = vocabulary.read_table(arrays[name])
    bias = vocabulary.read_bias(arrays.get(OUTPUT_BIAS))
    if bias is not None:
        arrays[OUTPUT_BIAS] = bias
    fixed = config.fixed_output_bias or vocabulary != Vocabulary.own(vocabulary.size)
    output = {"output_bias": bias is not None, "fixed_output_bias": bias is not None and fixed}
    return replace(config, vocab_size=vocabulary.size, **output, begin_row=vocabulary.begin_row), arrays


def filled_model(config: Config, arrays: dict[str, Array], where: str) -> Model:
    """Make a model of these parameters.  Raises ModelError, naming `where`, for arrays that do not fit the config."""
    model = new_model(config)
    model.allocate()
    model.load_arrays(arrays, where)
    return model


def with_own_begin(config: Config, arrays: Mapping[str, Array]) -> tuple[Config, dict[str, Array]]:
    """Give the same model, where BOS reads a row of its own."""
    arrays = dict(arrays)
    if config.begin_row != BOS:
        for name in TABLES - {OUTPUT} & arrays.keys():
            arrays[name] = arrays[name].copy()
            arrays[name][BOS] = arrays[name][config.begin_row]
    return replace(config, begin_row=BOS), arrays


def in_foreign_order(
    config: Config, arrays: Mapping[str, Array], vocabulary: Vocabulary
) -> tuple[Config, dict[str, Array]]:
    """Put the rows of a model's tables, and the entries of its output bias, into the foreign order.

    Where training has taught the begin token another row than the token that it was, input and output get tables of
    their own: one reads the begin token, the other writes the token.
    """
    config, arrays = _untied(*with_own_begin(config, arrays), vocabulary)
    for name in TABLES & arrays.keys():
        arrays[name] = vocabulary.write_table(arrays[name], begins=name != OUTPUT)
    bias = vocabulary.write_table(arrays.pop(OUTPUT_BIAS, np.zeros(vocabulary.size, np.float32)))
    if has_bias := bool(bias.any()):
        arrays[OUTPUT_BIAS] = bias
    output = {"output_bias": has_bias, "fixed_output_bias": False}
    return replace(config, vocab_size=vocabulary.foreign_size, **output), arrays


def _untied(config: Config, arrays: dict[str, Array], vocabulary: Vocabulary) -> tuple[Config, dict[str, Array]]:
    """Separate tables of a model, where one table has two rows for one token."""
    if config.tie not in TIED:
        return config, arrays
    table = arrays[TIED[config.tie]]
    if np.array_equal(vocabulary.write_table(table), vocabulary.write_table(table, begins=True)):
        return config, arrays
    if not isinstance(config, GPTConfig):
        arrays.setdefault(TARGET, table)
    arrays[OUTPUT] = table
    return replace(config, tie=False if isinstance(config, GPTConfig) else "none"), arrays
