"""The command line of the programs that write the corpora, and the list of checksums that stands for their files.

python -m data.NAME.generate              write the files and SHA256SUMS next to the program
python -m data.NAME.generate --out DIR    write them elsewhere
python -m data.NAME.generate --check      compare with the SHA256SUMS that is here; write nothing

The files are not committed; SHA256SUMS is, in the format of sha256sum. The same program writes the same bytes on every
machine, whatever the version of Python and its seed for hashes.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

SUMS = "SHA256SUMS"


def run(here: Path, texts: Callable[[], Iterable[tuple[str, str]]]) -> int:
    """Do what the arguments of the process ask for; returns its exit code, 2 where files are out of date.

    here: the folder of the program. texts: makes the name and the contents of every file, one after the other.
    """
    name = f"data.{here.name}"
    parser = argparse.ArgumentParser(prog=f"python -m {name}.generate", description="Write an embedded corpus.")
    parser.add_argument("--out", type=Path, default=here, help="directory to write to (default: next to this program)")
    parser.add_argument("--check", action="store_true", help=f"compare with {SUMS}; write nothing")
    arguments = parser.parse_args()
    sums = {}
    for file, text in texts():
        content = text.encode()
        sums[file] = sha256(content).hexdigest()
        if not arguments.check:
            arguments.out.mkdir(parents=True, exist_ok=True)
            (arguments.out / file).write_bytes(content)
        print(f"{file}: {text.count(chr(10)):,} lines, {len(content) / 1e6:.2f} MB")
    if not arguments.check:
        listed = "".join(f"{checksum}  {file}\n" for file, checksum in sorted(sums.items()))
        (arguments.out / SUMS).write_text(listed, encoding="ascii")
        return 0
    committed = read_sums(here)
    different = sorted(file for file in sums.keys() | committed if sums.get(file) != committed.get(file))
    if different:
        names = ", ".join(different)
        print(f"{name}: {SUMS} is out of date: {names}; run `python -m {name}.generate`", file=sys.stderr)
    return 2 if different else 0


def read_sums(directory: Path) -> dict[str, str]:
    """The checksums of a folder by the name of the file; none where they have not been written yet."""
    path = directory / SUMS
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return {file: checksum for checksum, file in (line.split("  ", 1) for line in lines)}
