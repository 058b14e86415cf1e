"""The house measured: files, lines and statements of every room, and which room imports which.

    python -m tests.house                    this clone
    python -m tests.house ../before .        two clones, side by side
    python -m tests.house --graph            the imports among rooms, from the ground up

A room is a directory of `toolkit`; its single files are counted as `top`, and stand by themselves in the graph, but for
the command (`cli`, `__main__`), which is of the room `commands`. A statement is one of Python's, docstrings aside.
"""

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CLONE = Path(__file__).resolve().parent.parent

# The five rooms that are read as one book: how a transformer is written, trained and decoded, and why it is right.
BOOK = ("plain", "proof", "functional", "nn", "models", "training", "decoding")


class Size(NamedTuple):
    """The size of a room."""

    files: int = 0
    lines: int = 0
    statements: int = 0

    def __add__(self, other: "Size") -> "Size":  # type: ignore[override]
        return Size(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def size_of(path: Path) -> Size:
    """Measure one file."""
    text = path.read_text("utf-8")
    return Size(1, len(text.splitlines()), sum(1 for node in ast.walk(ast.parse(text)) if _counts(node)))


def _counts(node: ast.AST) -> bool:
    docstring = (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
    return isinstance(node, ast.stmt) and not docstring


def measured(clone: Path) -> dict[str, Size]:
    """Measure every room of a clone, the recipes, and three sums: book, package, tests."""
    sizes: dict[str, Size] = defaultdict(Size)
    for path in (clone / "toolkit").rglob("*.py"):
        room, size = path.relative_to(clone / "toolkit").parts[0], size_of(path)
        room = room.removesuffix(".py")
        names = [room if (clone / "toolkit" / room).is_dir() or room == "plain" else "top", "= package"]
        for name in [*names, "= book"] if room in BOOK else names:
            sizes[name] += size
    for directory in ("recipes", "tests"):
        for path in (clone / directory).rglob("*.py"):
            sizes[f"= {directory}"] += size_of(path)
    return sizes


def module_name(path: Path, clone: Path = CLONE) -> str:
    """Name the module that a file is, with dots."""
    return ".".join(path.relative_to(clone).with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> Iterator[str]:
    """Yield all modules of ours that a file imports, within functions too, but not those for type checkers alone."""
    for node in _executed(ast.parse(path.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name for name in names if name.split(".")[0] == "toolkit")


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            yield node
            yield from _executed(node)


def room_of(module: str) -> str:
    """Name the room of a module: the directory or the single file below `toolkit`."""
    parts = module.split(".")
    if len(parts) == 1 or not ((CLONE / "toolkit" / parts[1]).is_dir() or _is_file(parts[1])):
        return "toolkit"  # `__init__` itself, or a name that it offers
    return "commands" if parts[1] in ("cli", "__main__") else parts[1]


def _is_file(name: str) -> bool:
    return (CLONE / "toolkit" / f"{name}.py").is_file()


def room_imports() -> dict[str, dict[str, list[str]]]:
    """Find, for every room, the rooms that it imports, and by which files."""
    graph: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted((CLONE / "toolkit").rglob("*.py")):
        room = room_of(module_name(path))
        graph[room] = graph[room]  # a room that imports nothing is in the graph too
        for module in imports(path):
            if room_of(module) != room:
                graph[room][room_of(module)].append(f"{path.relative_to(CLONE)} imports {module}")
    return graph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", nargs="*", type=Path, default=[CLONE])
    parser.add_argument("--graph", action="store_true", help="show which room imports which")
    arguments = parser.parse_args()
    if arguments.graph:
        for room, others in room_imports().items():
            print(f"{room:14} <- {' '.join(sorted(others))}")
        return
    tables = [measured(clone) for clone in arguments.clones]
    print(f"{'room':14}" + "".join(f"{name:>12}" for _ in tables for name in Size._fields))
    for room in sorted(set().union(*tables), key=lambda name: (name.startswith("="), name)):
        print(f"{room:14}" + "".join(f"{number:12,}" for table in tables for number in table.get(room, Size())))


if __name__ == "__main__":
    main()
