"""toolkit exercise: functions of a transformer that a learner finishes, checked with words that help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from toolkit.commands.console import emit
from toolkit.display import aligned
from toolkit.errors import ConfigError

_SOME = Annotated[str, arg(metavar="[NAME]")]


@dataclass
class Start:
    """Write a directory with a file for each exercise, and a list of them. What is there already stays."""

    examples = ("course",)

    directory: Positional[Path]
    """Directory of the learner's files; it may be there."""

    def run(self) -> None:
        from toolkit.exercises import course

        written = course.start(self.directory)
        count = len([path for path in written if path.suffix == ".py" and path.name != course.TOGETHER])
        emit(
            [f"{self.directory}: {count} exercises; cd {self.directory}, read README.md, then: toolkit exercise check"]
        )


@dataclass
class Check:
    """Say what is wrong with an exercise; without a name, with the first that is not right. Exit code 2 if it is wrong.

    The numbers are the same each time; --seed draws others, as a teacher may.
    """

    examples = ("", "layer_norm", "--all --seed 7")

    name: Positional[_SOME] = ""
    """Name or number of the exercise."""
    directory: Path = Path()
    """Directory of the learner's files."""
    all: bool = False
    """Check every exercise."""
    seed: int = 0
    """Of the random numbers."""

    def run(self) -> None:
        from toolkit.exercises import course

        if self.all and self.name:
            raise ConfigError("--all checks every exercise: leave out the name")
        asked = [course.exercise(self.name)] if self.name else list(course.EXERCISES)
        wrong = 0
        for each in asked:
            found = course.check(each, self.directory, self.seed)
            wrong += bool(found)
            emit([f"{each.name}: {'not right yet' if found else 'right'}", *(f"  {line}" for line in found)])
            if found and not self.all:
                break
        if wrong:
            raise ConfigError(
                f"{wrong} of {len(asked)} not right yet" if self.all else "toolkit exercise hint gives a hint"
            )
        if not self.name:
            emit(["All are right."])
        else:
            emit([f"  the toolkit has it in {asked[0].afterwards}"])


@dataclass
class Hint:
    """Show a hint for an exercise; without a name, for the first that is not right. Each time one more is shown."""

    examples = ("", "layer_norm")

    name: Positional[_SOME] = ""
    """Name or number of the exercise."""
    directory: Path = Path()
    """Directory of the learner's files."""

    def run(self) -> None:
        from toolkit.exercises import course

        each = course.exercise(self.name) if self.name else course.first_unsolved(self.directory)
        if each is None:
            emit(["All are right."])
            return
        number, hint = course.next_hint(each, self.directory)
        emit([f"{each.name}, hint {number} of {len(each.hints)}: {hint}"])


@dataclass
class Next:
    """Show the first exercise that is not right: its file, and what is to be found."""

    examples = ("", "--directory course")

    directory: Path = Path()
    """Directory of the learner's files."""

    def run(self) -> None:
        from toolkit.exercises import course

        each = course.first_unsolved(self.directory)
        if each is None:
            emit(["All are right."])
            return
        number = course.EXERCISES.index(each) + 1
        emit(
            [
                f"{number} of {len(course.EXERCISES)}: {each.title}, in {self.directory / each.name}.py",
                "",
                *course.text(each).splitlines(),
            ]
        )


@dataclass
class Status:
    """List the exercises: which are right, how many points they give, how many hints were read."""

    examples = ("", "--directory course")

    directory: Path = Path()
    """Directory of the learner's files."""
    seed: int = 0
    """Of the random numbers."""

    def run(self) -> None:
        from toolkit.exercises import course

        read, rows, points = course.hints_read(self.directory), [], 0
        for number, each in enumerate(course.EXERCISES, 1):
            is_right = not course.check(each, self.directory, self.seed)
            points += each.points * is_right
            hints = f"{read.get(each.name, 0)} of {len(each.hints)}"
            rows.append([str(number), each.name, "right" if is_right else "-", str(each.points), hints, each.title])
        head = ["", "exercise", "", "points", "hints read", "about"]
        total = sum(each.points for each in course.EXERCISES)
        emit([*aligned([head, *rows], left=(1, 2, 5)), "", f"{points} of {total} points"])


@dataclass
class Grade:
    """Write checks for a class: a file for pytest, with points for each exercise and random numbers of your own."""

    examples = ("checks --seed 7",)

    directory: Positional[Path]
    """Directory that gets test_exercises.py; EXERCISES=DIR names the learner's files when it is run."""
    seed: int = 1
    """Of the random numbers; the learner's own checks have 0."""

    def run(self) -> None:
        from toolkit.exercises import course

        path = course.write_checks(self.directory, self.seed)
        emit([f"{path}: EXERCISES=LEARNER'S-DIRECTORY pytest {path}"])
