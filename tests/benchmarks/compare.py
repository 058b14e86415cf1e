"""The toolkit beside PyTorch, CTranslate2 and Hugging Face's `generate`, on the same weights, shapes and cores.

    python tests/benchmarks/compare.py --pairs train.en train.ne --json figures.json
    python tests/benchmarks/compare.py --only decode-trained --repeats 20

Every row is one piece of work. Each side does it in a process of its own, and they take turns: ours, theirs, ours, and
so on, while the others sleep. Speeds are medians over the turns, in real tokens per second; a ratio is ours divided by
theirs, with the lowest and the highest of all rounds behind it. Before anything is timed, the first loss and the norm
of its gradient must agree, and outputs are compared. Nothing else should run meanwhile: two threads that wait for each
other lose far more to a busy neighbour than two processes do.
"""

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path

from side_by_side.decoding import beside_ctranslate2, beside_transformers
from side_by_side.machine import describe, in_words
from side_by_side.searches import AGAINST_TRANSFORMERS, SENTENCES, against_ctranslate2
from side_by_side.table import ctranslate2_table, lines_of, training_table, transformers_table
from side_by_side.training import measure
from side_by_side.workloads import TRAINING, read_pairs

SIDES = ("compiled", "eager", "products", "ctranslate2", "own-int8", "int8", "transformers")  # that can be left out


def main() -> None:
    parser = make_parser()
    arguments = parser.parse_args()
    pairs = read_pairs(arguments.pairs) if arguments.pairs else []
    if not pairs:
        print("without --pairs, training on translations is left out", file=sys.stderr)
    shared = {"threads": arguments.threads, "repeats": arguments.repeats, "skip": arguments.skip}
    groups = {
        "training": ([row for row in TRAINING if pairs or not row.smoothing], partial(measure, pairs=pairs)),
        "ctranslate2": (
            against_ctranslate2(arguments.translator),
            partial(beside_ctranslate2, sentences=arguments.sentences),
        ),
        "transformers": (AGAINST_TRANSFORMERS, beside_transformers),
    }
    names = [row.name for rows, _ in groups.values() for row in rows]
    for word in arguments.only:
        if not any(word in name for name in names):
            needs = " without --pairs" if any(word in row.name for row in TRAINING) else ""
            parser.error(f"--only {word}: there is no such row{needs}; the rows are {', '.join(names)}")
    everything = {"machine": describe(arguments.threads)} | {name: [] for name in groups}
    for name, (rows, measured) in groups.items():
        for row in rows:
            if arguments.only and not any(word in row.name for word in arguments.only):
                continue
            load = os.getloadavg()[0]
            everything[name].append(measured(row, **shared) | {"load_before": load})
            print("\n".join(lines_of(everything[name][-1])), file=sys.stderr, flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(everything, indent=2) + "\n", encoding="utf-8")
    loads = [row["load_before"] for name in groups for row in everything[name]]
    print(in_words(everything["machine"], [*loads, os.getloadavg()[0]]))
    tables = (training_table, ctranslate2_table, transformers_table)
    for table, name in zip(tables, groups, strict=True):
        print("\n".join(table(everything[name])))


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, nargs=2, metavar=("SOURCE", "TARGET"), help="aligned lines to train on")
    parser.add_argument("--translator", default="en-ne-small", help="the trained model that decodes")
    parser.add_argument("--sentences", type=Path, default=SENTENCES, help="what it translates: the first 64 lines")
    parser.add_argument("--only", nargs="+", default=[], metavar="ROW", help="train, decode, generate, or more exactly")
    parser.add_argument("--skip", nargs="+", default=[], choices=SIDES, help="leave out these sides")
    parser.add_argument("--repeats", type=int, default=10, help="turns of every side")
    parser.add_argument("--threads", type=int, default=2, help="threads of the others, workers of the toolkit")
    parser.add_argument("--json", type=Path, help="write all that was measured to this file")
    return parser


if __name__ == "__main__":
    main()
