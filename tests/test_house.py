"""The plan of the house holds: imports point downward, files are chapters, docstrings begin with what is done."""

import ast
import re
from collections import Counter

from tests.house import CLONE, module_name, room_imports

# From the ground up: a room may import those above it in this list, and no other.
FLOORS = (
    *("toolkit", "process", "display", "errors", "launcher", "untrusted", "tensors", "files"),
    *("lock", "mpi", "parallel", "plain"),
    *("functional", "proof", "tokenization", "pages", "nn", "models", "data", "decoding", "evaluation", "training"),
    *("text_model", "confidence", "outputs", "speller", "translation_reader", "noisy_channel", "minimum_risk"),
    *("translator", "chat", "language_model", "api"),
    *("preference", "interop", "explain", "exercises", "serving", "recipes", "commands"),
)

FILES = sorted((CLONE / "toolkit").rglob("*.py"))


def test_imports_point_downward():
    graph = room_imports()
    assert set(graph) == set(FLOORS)
    upward = [
        line
        for room, others in graph.items()
        for other, lines in others.items()
        if FLOORS.index(other) >= FLOORS.index(room)
        for line in lines
    ]
    assert upward == []


def test_what_is_read_first_stands_alone():
    graph = room_imports()
    assert not graph["plain"]
    assert set(graph["proof"]) <= {"functional"}
    assert set(graph["functional"]) <= {"errors", "files", "untrusted"}


def test_no_file_is_a_monster_and_no_name_occurs_everywhere():
    long = {str(path): count for path in FILES if (count := len(path.read_text("utf-8").splitlines())) > 400}
    assert long == {}
    # What a learner gets has the names of what it is about.
    names = Counter(path.name for path in FILES if path.name != "__init__.py" and path.parent.name != "tasks")
    assert {name for name, count in names.items() if count > 3} == set()


def test_docstrings_begin_with_what_is_done():
    found = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = (ast.get_docstring(node) or "").split("\n")[0]
                if re.match(r"(What|How|Where|Who|Whether)\b", first):
                    found.append(f"{module_name(path)}: {first}")
    assert found == []
