"""Memory of the toolkit beside CTranslate2: of a loaded translator, and of a file that it translates.

    python tests/benchmarks/memory.py en-ne-small checkpoints/trained

Every side is a process of its own, of one worker with one thread. Memory is what it has above its imports and no file
stands behind, in MB: once the model is loaded, and the highest while all sentences are translated, 64 at a time.
"""

import argparse
import os
import tempfile
from pathlib import Path

from side_by_side.decoding import CTRANSLATE2, INT8, OURS, OWN_INT8
from side_by_side.machine import describe, in_words
from side_by_side.searches import SENTENCES, Search, write_search
from side_by_side.side import Side

# How each side is called, what it is, and whether it reads a model that is stored in int8.
SIDES = (
    ("toolkit, float32", OURS, False),
    ("CTranslate2, float32", CTRANSLATE2, False),
    ("toolkit, int8", OWN_INT8, False),
    ("CTranslate2, int8", INT8, False),
    ("toolkit, stored in int8", OWN_INT8, True),
    ("CTranslate2, stored in int8", INT8, True),
)


def measured(kind: tuple[str, str], directories: dict[int, Path]) -> list[float]:
    """Megabytes of a loaded model, and the most while it translates; directories: what is read, by number of beams."""
    figures = []
    for directory in directories.values():
        side = Side(*kind)
        side.start(directory=str(directory))
        loaded = side.memory() - side.imported
        figures += [loaded] * (not figures) + [side.peak_memory("run", times=1)]
        side.close()
    return [figure / 1e6 for figure in figures]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("translators", nargs="+", help="names or directories of translators")
    parser.add_argument("--sentences", type=Path, default=SENTENCES, help="what they translate, a line each")
    arguments = parser.parse_args()
    count = sum(1 for line in arguments.sentences.read_text(encoding="utf-8").splitlines() if line.strip())
    print(in_words(describe(1), os.getloadavg()))
    for translator in arguments.translators:
        print(f"\n| {Path(translator).name}, MB | on disk | loaded | {count} sentences, greedy | 4 beams |")
        print("| --- | --- | --- | --- | --- |")
        for name, kind, is_stored in SIDES:
            with tempfile.TemporaryDirectory() as place:
                directories = {beams: Path(place) / str(beams) for beams in (1, 4)}
                for beams, directory in directories.items():
                    directory.mkdir()
                    search = Search(name, name, translator, beams, count, together=True, steps=None)
                    write_search(search, directory, False, arguments.sentences, int8=is_stored)
                own = directories[1] / ("toolkit" if kind in (OURS, OWN_INT8) else "theirs")
                sizes = [sum(path.stat().st_size for path in own.iterdir()) / 1e6, *measured(kind, directories)]
            print(f"| {name} | {' | '.join(f'{size:.1f}' for size in sizes)} |", flush=True)


if __name__ == "__main__":
    main()
