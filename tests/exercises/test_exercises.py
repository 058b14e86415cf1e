"""The exercises: right solutions pass, known mistakes are named, and no mutation of a right one passes unseen."""

import ast
import copy
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from tests.house import CLONE
from toolkit.exercises.course import EXERCISES, HINTS_READ, check, next_hint, start, write_checks
from toolkit.exercises.exercise import Exercise

SOLUTIONS = Path(__file__).parent / "solutions"
MISTAKES = [(each, mistake) for each in EXERCISES for mistake in each.mistakes]


def with_function(exercise: Exercise, function) -> types.SimpleNamespace:
    """A module that has nothing but this function."""
    return types.SimpleNamespace(__file__=f"{exercise.name}.py", **{exercise.name: function})


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """A learner's directory in which everything is right."""
    directory = tmp_path_factory.mktemp("solved")
    for path in SOLUTIONS.glob("*.py"):
        (directory / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    return directory


def test_there_are_some_25_and_their_names_differ():
    assert len(EXERCISES) >= 25
    assert len({each.name for each in EXERCISES}) == len(EXERCISES)
    assert all(2 <= len(each.hints) <= 3 for each in EXERCISES)


def test_the_course_has_each_of_them_in_one_lesson():
    text = (CLONE / "recipes" / "notebooks" / "README.md").read_text(encoding="utf-8")
    given = re.findall(r"`(\w+)`", " ".join(re.findall(r"\*\*Exercises\.\*\*(.*)", text)))
    assert sorted(name for name in given if name != "python") == sorted(each.name for each in EXERCISES)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.name)
def test_it_says_where_to_look_afterwards(exercise):
    places = re.findall(r"(toolkit/[\w/]+\.py)(?:: (\w+))?", exercise.afterwards)
    assert places
    for path, name in places:
        assert re.search(rf"\b{name}\b", (CLONE / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.name)
def test_right_is_right_and_unfinished_is_not(exercise, solved, tmp_path):
    for seed in (0, 7):
        assert exercise.check(with_function(exercise, exercise.right), seed) == []
        assert check(exercise, solved, seed) == []
    start(tmp_path)
    found = check(exercise, tmp_path)
    assert len(found) == 1
    assert "not finished" in found[0]


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES, ids=lambda each: getattr(each, "name", ""))
def test_a_known_mistake_is_named(exercise, mistake):
    for seed in (0, 7):
        assert exercise.check(with_function(exercise, mistake.function), seed) == [mistake.told]


# Mutations


class Mutation(ast.NodeTransformer):
    """Changes the node of this number that can be changed."""

    SWAPPED: ClassVar = {
        ast.Add: ast.Sub,
        ast.Sub: ast.Add,
        ast.Mult: ast.Div,
        ast.Div: ast.Mult,
        ast.MatMult: ast.Mult,
        ast.Lt: ast.LtE,
        ast.LtE: ast.Lt,
        ast.Gt: ast.GtE,
        ast.GtE: ast.Gt,
    }

    def __init__(self, number: int):
        self.number, self.seen, self.done = number, -1, ""

    def turn(self) -> bool:
        self.seen += 1
        return self.seen == self.number

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if type(node.op) in self.SWAPPED and self.turn():
            self.done = ast.unparse(node)
            return ast.BinOp(node.left, self.SWAPPED[type(node.op)](), node.right)
        return node

    def visit_Compare(self, node):
        self.generic_visit(node)
        if type(node.ops[0]) in self.SWAPPED and self.turn():
            self.done = ast.unparse(node)
            return ast.Compare(node.left, [self.SWAPPED[type(node.ops[0])]()], node.comparators)
        return node

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if node.attr in ("T", "sum", "mean", "argmax") and self.turn():
            self.done = ast.unparse(node)
            other = {"sum": "mean", "mean": "sum", "argmax": "argmin"}.get(node.attr)
            return ast.Attribute(node.value, other, node.ctx) if other else node.value
        return node

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        if isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant) and self.turn():
            self.done = ast.unparse(node)
            return node.operand
        return node


def mutants(exercise: Exercise, directory: Path) -> Iterator[tuple[str, str]]:
    """The wrong versions of a solution: what was changed, and the text."""
    source = (directory / f"{exercise.name}.py").read_text(encoding="utf-8")
    task = (Path(start.__code__.co_filename).parent / "tasks" / f"{exercise.name}.py").read_text(encoding="utf-8")
    given = {ast.unparse(node) for node in ast.walk(ast.parse(task)) if isinstance(node, ast.BinOp | ast.Attribute)}
    for number in range(40):
        mutation, tree = Mutation(number), ast.parse(source)
        tree = ast.fix_missing_locations(mutation.visit(copy.deepcopy(tree)))
        if not mutation.done:
            return
        if mutation.done not in given:
            yield mutation.done, ast.unparse(tree)


# Changes that change nothing: where the two numbers are equal both ways give the same, or they never are equal.
EQUIVALENT = {("clip_gradients", "norm > limit"), ("learning_rate", "step <= warmup"), ("top_p", "before < p")}


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.name)
def test_no_mutation_of_a_solution_passes(exercise, solved, tmp_path):
    for path in solved.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    for changed, source in mutants(exercise, solved):
        (tmp_path / f"{exercise.name}.py").write_text(source, encoding="utf-8")
        found = check(exercise, tmp_path)
        assert found or (exercise.name, changed) in EQUIVALENT, f"{changed} was changed, and nobody noticed"
        assert all(len(line) > 20 for line in found)


def test_a_hundred_wrong_solutions_are_told(solved):
    assert len(MISTAKES) + sum(len(list(mutants(each, solved))) for each in EXERCISES) >= 100


# The learner's directory


def test_what_is_there_stays(tmp_path):
    first = start(tmp_path)
    (tmp_path / "linear.py").write_text("mine", encoding="utf-8")
    assert start(tmp_path) == []
    assert (tmp_path / "linear.py").read_text(encoding="utf-8") == "mine"
    assert len(first) == len(EXERCISES) + 2  # README.md and gpt.py


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def linear(x", "is not valid Python"),
        ("import nothing_of_this_name", "cannot be imported"),
        ("", "there is no function 'linear'"),
        ("def linear(x, weight, bias):\n    return x @ weight + bias", "must return two things"),
        ("def linear(x, weight, bias):\n    return x @ bias @ weight, None", "line 2"),
        ("def linear(x, weight, bias):\n    x += 1\n    return x @ weight + bias, lambda dy: 1", "has changed what"),
    ],
)
def test_what_cannot_be_run_is_told(tmp_path, text, words):
    (tmp_path / "linear.py").write_text(text, encoding="utf-8")
    (found,) = check(next(each for each in EXERCISES if each.name == "linear"), tmp_path)
    assert words in found


def test_hints_come_one_by_one(tmp_path):
    each = EXERCISES[0]
    read = [next_hint(each, tmp_path) for _ in range(len(each.hints) + 1)]
    assert [text for _, text in read] == [*each.hints, each.hints[-1]]
    assert (tmp_path / HINTS_READ).exists()


def test_checks_for_a_class(solved, tmp_path):
    """Right everywhere, each exercise passes by other random numbers; a wrong one fails, and says why."""
    (tmp_path / "learner").mkdir()
    for path in solved.glob("*.py"):
        (tmp_path / "learner" / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    wrong = "def kl_estimate(log_probs, log_probs_before):\n    return 1.0\n"
    (tmp_path / "learner" / "kl_estimate.py").write_text(wrong, encoding="utf-8")
    checks = write_checks(tmp_path / "checks", seed=7)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", str(checks)]
    environment = os.environ | {"EXERCISES": str(tmp_path / "learner"), "PYTHONPATH": str(CLONE)}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert f"1 failed, {len(EXERCISES) - 1} passed" in found.stdout
    assert "is 1, it must be" in found.stdout


# The command


def test_the_command(run, tmp_path):
    directory = tmp_path / "course"
    assert f"{len(EXERCISES)} exercises" in run("exercise", "start", str(directory)).out
    wrong = run("exercise", "check", "--directory", str(directory))
    assert wrong.code == 2
    assert "softmax: not right yet" in wrong.out
    assert "1 of" in run("exercise", "hint", "--directory", str(directory)).out
    assert "Probabilities from scores" in run("exercise", "next", "--directory", str(directory)).out
    assert "0 of" in run("exercise", "status", "--directory", str(directory)).out
    assert "there is no exercise 'sofmax'" in run("exercise", "check", "sofmax").sentence
    assert "is missing" in run("exercise", "check", "linear", "--directory", str(tmp_path)).sentence
    assert "test_exercises.py" in run("exercise", "grade", str(tmp_path / "checks")).out


@pytest.mark.parametrize(
    ("name", "right", "wrong", "told"),
    [
        (
            "residual",
            "return dy + back_norm(back_layer(dy))",
            "dy += back_norm(back_layer(dy))\n        return dy",
            "the dy",
        ),
        ("cross_entropy", "dlogits = p.copy()", "dlogits = p", "called again"),
        ("softmax", "return ", "return 1, ", "one result is wanted"),
        (
            "rms_norm",
            '{"gain": (dy * normal).sum(axis=0)}',
            "(dy * normal).sum(axis=0)",
            "must be a dictionary with 'gain'",
        ),
        ("beam_search", "beams = beam_step(", "beam_step(", "does the loop end?"),
    ],
)
def test_what_a_walk_through_them_has_found(solved, tmp_path, name, right, wrong, told):
    for path in solved.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    text = (solved / f"{name}.py").read_text(encoding="utf-8")
    assert right in text
    head, _, tail = text.rpartition(right)
    (tmp_path / f"{name}.py").write_text(head + wrong + tail, encoding="utf-8")
    (found,) = check(next(each for each in EXERCISES if each.name == name), tmp_path)
    assert told in found


def test_a_function_that_a_right_one_uses_is_blamed_where_it_is_wrong(solved, tmp_path):
    for path in solved.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "softmax.py").write_text("import numpy as np\n\ndef softmax(x):\n    return np.exp(x) / 7\n")
    attention = next(each for each in EXERCISES if each.name == "attention")
    assert check(attention, tmp_path) == [
        "softmax.py, which this one uses, is not right: toolkit exercise check softmax"
    ]
