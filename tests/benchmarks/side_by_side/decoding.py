"""The rows of decoding: every side decodes the same texts in turn."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .rounds import figures, interleave
from .searches import SENTENCES, Search, write_search
from .side import Side

OURS = ("toolkit_decoding", "ToolkitDecoding")
CTRANSLATE2 = ("ctranslate2_decoding", "CTranslate2Decoding")
OWN_INT8 = ("toolkit_decoding", "Int8Decoding")
INT8 = ("ctranslate2_decoding", "Int8Decoding")
TRANSFORMERS = ("transformers_decoding", "TransformersDecoding")

_TURN = 0.4  # seconds that a turn lasts at least
_HOPELESS = 2  # a layout that takes so many times as long as another of the same library is not measured any further


def beside_ctranslate2(
    search: Search, repeats: int, threads: int, skip: Sequence[str] = (), sentences: Path = SENTENCES
) -> dict[str, Any]:
    """Tokens per second of every side and layout, `workers × threads`; one text at a time is one worker's business."""
    layouts = {(threads, 1), (1, threads)} if search.together else {(1, 1)}
    workers = {"workers": threads if search.together else 1}
    sides = {"toolkit": (OURS, workers), "own-int8": (OWN_INT8, workers)}
    for name, kind in (("ctranslate2", CTRANSLATE2), ("int8", INT8)):
        for workers, each in sorted(layouts, reverse=True):
            sides[f"{name} {workers}×{each}"] = (kind, {"workers": workers, "threads": each})
    return _measure(search, sides, repeats, skip, transformers=False, sentences=sentences)


def beside_transformers(search: Search, repeats: int, threads: int, skip: Sequence[str] = ()) -> dict[str, Any]:
    """Tokens per second of every side with one thread and with all."""
    sides = {
        f"{name} {count}": (kind, {"threads": count})
        for name, kind in (("toolkit", OURS), ("transformers", TRANSFORMERS))
        for count in sorted({1, threads})
    }
    return _measure(search, sides, repeats, skip, transformers=True)


def _measure(
    search: Search,
    kinds: dict[str, tuple],
    repeats: int,
    skip: Sequence[str],
    transformers: bool,
    sentences: Path = SENTENCES,
) -> dict[str, Any]:
    kinds = {name: value for name, value in kinds.items() if not set(skip) & set(name.split())}
    with tempfile.TemporaryDirectory() as directory:
        found = {"row": search.name, "title": search.title}
        found |= write_search(search, Path(directory), transformers, sentences)
        sides = {name: Side(*kind) for name, (kind, _) in kinds.items()}
        try:
            for name, side in sides.items():
                side.start(directory=directory, **kinds[name][1])
            outputs = {name: side.call("check") for name, side in sides.items()}
            once = {n: min(side.call("run", times=1)["seconds"] for _ in range(2)) for n, side in sides.items()}
            chosen = {name: side for name, side in sides.items() if once[name] < _HOPELESS * _best_of(name, once)}
            times = max(1, round(_TURN / min(once.values())))
            rounds, idle = interleave(chosen, lambda side, _: side.call("run", times=times), repeats)
        finally:
            for side in sides.values():
                side.close()
    ours = next(iter(outputs.values()))
    same = {name: sum(map(list.__eq__, own, ours)) / len(ours) for name, own in outputs.items()}
    return found | figures(rounds) | {"same_outputs": same, "idle": idle, "first_seconds": once}


def _best_of(name: str, seconds: dict[str, float]) -> float:
    """The shortest time of all layouts of the library of this one."""
    return min(value for other, value in seconds.items() if other.split()[0] == name.split()[0])
