"""The tokens of a CTranslate2 model: files with one list for all texts, or one for sources and one for targets."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.models.gpt import ABSENT
from toolkit.tokenization.special import EOS
from toolkit.tokenization.tokenizer import write_file
from toolkit.untrusted import VOCABULARY_BYTES, Items, Text, check, parse_json, read_bytes

SHARED, SOURCE, TARGET, ALONE = "shared_vocabulary", "source_vocabulary", "target_vocabulary", "vocabulary"

_TOKENS = Items(Text())


def distinct(tokens: Sequence[str]) -> list[str]:
    """Tokens with another name for each that is called like another: CTranslate2 knows them by their names.

    The end mark keeps its name, where an imported model has one token for several purposes; of others the first does.
    """
    taken = set(tokens)
    found: dict[str, int] = {}
    for index in sorted(range(len(tokens)), key=lambda index: index != EOS):
        name, end = tokens[index], ""
        while name in found or (end and name in taken):
            name, end = f"<|{index}{end}|>", f"{end}_"
        found[name] = index
    return sorted(found, key=found.__getitem__)


def write_tokens(directory: Path, name: str, tokens: Sequence[str]) -> None:
    """Write one of the lists.  Raises DataError where that fails."""
    write_file(directory, f"{name}.json", (json.dumps(list(tokens), ensure_ascii=False, indent=0) + "\n").encode())


def read_tokens(directory: Path, *names: str) -> list[str]:
    """The tokens in the first of these lists that is there, as JSON or, as older versions wrote it, one on each line.

    Raises ModelError where none is there, or it is damaged.
    """
    for path in (directory / f"{name}.{end}" for name in names for end in ("json", "txt")):
        try:
            content = read_bytes(path, VOCABULARY_BYTES)
            if path.suffix == ".txt":
                return content.decode().removesuffix("\n").split("\n")
            return check(parse_json(content), _TOKENS)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ModelError(f"{path} cannot be read: {error.strerror}") from None
        except ValueError:
            raise ModelError(f"{path} is damaged: it is not a list of tokens in UTF-8") from None
    raise ModelError(f"{directory} is not a whole CTranslate2 model: it has no {names[-1]}.json")


class Union:
    """Two vocabularies as one: the tokens of targets, then those that sources alone have."""

    def __init__(self, source: Sequence[str], target: Sequence[str]):
        known = {token: index for index, token in enumerate(target)}
        new = list(dict.fromkeys(token for token in source if token not in known))
        known |= {token: len(target) + index for index, token in enumerate(new)}
        self.tokens = [*target, *new]
        self._of_source = np.array([known[token] for token in source], np.int64)
        self._targets = len(target)

    def source_table(self, table: Array) -> Array:
        """Rows of sources in their new places, and zeros.  Shapes: (source size, D) -> (V, D)."""
        rows = np.zeros((len(self.tokens), table.shape[1]), table.dtype)
        rows[self._of_source] = table
        return rows

    def target_table(self, table: Array) -> Array:
        """Shapes: (target size, D) -> (V, D)."""
        return np.pad(table, ((0, len(self.tokens) - self._targets), (0, 0)))

    def output_bias(self, bias: Array | None) -> Array:
        """What sources alone have is never written.  Shapes: (target size,) -> (V,)."""
        found = np.full(len(self.tokens), ABSENT, np.float32)
        found[: self._targets] = 0 if bias is None else bias
        return found
