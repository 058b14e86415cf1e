"""A text file larger than memory should be: made on the spot, trained on for some updates, its cost in memory measured.

    python tests/benchmarks/large_text.py --gigabytes 2
    python tests/benchmarks/large_text.py --gigabytes 2 --single-line --tokenizer bpe

The text is the embedded stories in ever new order, with numbers and new names in them, so that new words keep coming;
with --single-line it has no line feed at all. The training is the recipe as a user runs it, a process of its own with
its workers. What counts is anonymous memory: the pages of mapped files belong to the system, which takes them back when
it needs them. It is looked at ten times a second, for the process and all its descendants together, before and after
the moment when the corpus is complete. Needs Linux, and three times the size of the text on the disk.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from side_by_side.machine import describe, in_words

from toolkit.data.embedded import embedded
from toolkit.parallel import available_cores

ROOT = Path(__file__).resolve().parents[2]
SYLLABLES = ("ka", "mi", "ro", "ta", "su", "ne", "lo", "bi", "da", "pu", "ri", "wen")
MEGABYTE = 1 << 20


def endless(rng: random.Random) -> Iterator[str]:
    """Stories without end; each has a number and a name of its own."""
    text = (embedded("stories") / "train.en.txt").read_text(encoding="utf-8")
    stories = [story for story in text.splitlines() if story]
    for number in range(sys.maxsize):
        name = "".join(rng.choices(SYLLABLES, k=4)).capitalize()
        yield f"Story {number}, as {name} told it on day {rng.randrange(10_000)}. {rng.choice(stories)}"


def write_text(path: Path, size: int, separator: str) -> None:
    """Write stories until the file has `size` bytes."""
    stories, written = endless(random.Random(0)), 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            block = "".join(next(stories) + separator for _ in range(1000))
            written += file.write(block)


def memory_of(root: int) -> tuple[int, int]:
    """Anonymous memory of a process and its descendants together, and memory that they share, in bytes."""
    parents, anonymous, shared = {}, {}, {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:  # it has ended meanwhile
            continue
        process = int(status.parent.name)
        parents[process] = int(fields["PPid"])
        anonymous[process], shared[process] = (
            int(fields.get(name, "0 kB").split()[0]) * 1024 for name in ("RssAnon", "RssShmem")
        )
    family = {root} & parents.keys()
    while more := {process for process, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(anonymous[process] for process in family), max((shared[process] for process in family), default=0)


class Watch(threading.Thread):
    """Keeps the most memory that was seen, by stage: (anonymous, shared) in bytes."""

    def __init__(self, process: subprocess.Popen, corpus: Path):
        super().__init__(daemon=True)
        self.process, self.corpus = process, corpus
        self.peaks = {"corpus": (0, 0), "training": (0, 0)}
        self.began, self.built = time.perf_counter(), 0.0

    def run(self) -> None:
        while self.process.poll() is None:
            stage = "training" if self.built else "corpus"
            self.peaks[stage] = max(self.peaks[stage], memory_of(self.process.pid))
            if not self.built and self.corpus.exists():
                self.built = time.perf_counter() - self.began
            time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--single-line", action="store_true", help="no line feed in the whole file")
    parser.add_argument("--documents", default="none", choices=["none", "file", "line", "blank"])
    parser.add_argument("--tokenizer", default="unigram", choices=["unigram", "bpe", "character", "byte"])
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument(
        "--directory", type=Path, help="for the text and the run, which are deleted; default: temporary"
    )
    parser.add_argument("flags", nargs="*", help="further flags of the recipe, after --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
        text, run = Path(scratch) / "large.txt", Path(scratch) / "run"
        write_text(text, int(options.gigabytes * 1e9), " " if options.single_line else "\n\n")
        command = [sys.executable, ROOT / "recipes" / "language_model.py", "--text", text, "--run", run]
        command += ["--documents", options.documents, "--tokenizer", options.tokenizer]
        if options.documents != "none":
            command += ["--whole-documents"]
        command += ["--training.updates", options.updates, "--training.validate-every", options.updates]
        command += ["--valid-share", "0.0001", "--samples", "0", *options.flags]
        began = time.perf_counter()
        with subprocess.Popen(list(map(str, command)), cwd=ROOT) as process:
            watch = Watch(process, run / "data" / "corpus.json")
            watch.start()
        watch.join()
        size = text.stat().st_size
        print(f"\n{in_words(describe(available_cores()), os.getloadavg())}")
        print(f"{size / 1e9:.2f} GB; corpus complete after {watch.built:.1f} s ({size / 1e6 / watch.built:.1f} MB/s),")
        print(f"all done after {time.perf_counter() - began:.1f} s, exit code {process.returncode}")
        for stage, (anonymous, shared) in watch.peaks.items():
            print(
                f"{stage:9}{anonymous / MEGABYTE:7.0f} MB anonymous in all processes, {shared / MEGABYTE:.0f} MB shared"
            )
    sys.exit(process.returncode)


if __name__ == "__main__":
    main()
