"""Output of commands that answer line by line: standard output, or a file that takes its name when it is whole.

Until then whole pieces lie in FILE.part, and FILE.part.json, the journal, says which lines they answer and what was
asked for. So work that was interrupted goes on with --resume, and gives the bytes that it would have given.
"""

import hashlib
import json
import os
import signal
import stat
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from toolkit import __version__, mpi
from toolkit.commands.console import emit_results
from toolkit.commands.lines import Answer, Window, Work, is_input, is_same_file
from toolkit.data.lines import count_lines, digest_of_files
from toolkit.display import counted, progress_bar, tell
from toolkit.errors import ConfigError, DataError, ModelError, ToolkitError
from toolkit.files import check_writable, flush_to_disk
from toolkit.functional import tuning
from toolkit.lock import locked
from toolkit.models.storage import METRICS_FILE, read_json, read_model
from toolkit.parallel import in_order
from toolkit.process import Stopped, postponed
from toolkit.untrusted import OBJECT, Maybe, Record, Text, Whole

# The last is a journal that is being written: by this name, because the next start then finds what a kill has left.
PART, JOURNAL, NEXT = ".part", ".part.json", ".part.json.new"

# Flags that decide nothing of what is written, or are compared by what they stand for: texts and the model.
_FREE = {"text", "file", "source", "target", "prefix_file", "model"}
_FREE |= {"output", "resume", "workers", "quiet", "generation"}
_ADVICE = "resume with the same, or remove it"
_DIGEST = Text(64, "[0-9a-f]{64}", "a digest")


@dataclass(frozen=True)
class Done:
    """Work that is done: lines that are answered, bytes of outputs, a digest of those lines, and the too long ones."""

    lines: int = 0
    bytes: int = 0
    input: str = ""
    long: int = 0
    first_long: str = ""

    def and_then(self, answer: Answer, size: int = 0, digest: str = "") -> "Done":
        """Count an answer in, whose outputs have a size, with the digest of all lines up to there."""
        long, first = self.long + len(answer.long), self.first_long or "".join(answer.long[:1])
        return Done(self.lines + len(answer.outputs), self.bytes + size, digest, long, first)


_DONE = {"lines": Whole(0), "bytes": Whole(0), "input": _DIGEST, "long": Whole(0), "first_long": Text()}
_FIELDS = {"done": Record(_DONE, needed=_DONE), "model": _DIGEST, "seed": Maybe(Whole(0)), "asked": OBJECT}
_JOURNAL = Record(_FIELDS, needed=_FIELDS)


def answer_all(
    kind: type[Work], command: Any, windows: Iterable[Window | None], path: Path | None, between: str = ""
) -> None:
    """Answer all windows by the command's workers, and write the outputs in order where its --output says.

    kind: of the work. path: the file of the lines, for a progress bar, which is shown where results do not go to the
    same terminal. between: stands in front of every output but the first. How many lines were too long is told at the
    end.
    """
    with opened_output(command, between) as output:
        work = kind(command)
        bar = None if command.quiet else output.bar(path)
        shared = OnRanks.of(work, command.model) if mpi.leading() else work
        answers = in_order(shared, output.rest(windows), command.workers)
        with closing(answers), nullcontext() if bar is None else bar:
            for answer in answers:
                work.tell_seed()
                output.write(answer)
                if bar is not None:
                    bar.update(len(answer.outputs))
    if count := output.done.long:
        how = f"{'was' if count == 1 else 'were'} {'skipped' if command.long_lines == 'skip' else 'cut off'}"
        which = output.done.first_long if count == 1 else f"the first is {output.done.first_long}"
        tell(f"toolkit: {counted(count)} too long for the model {how}: {which}")


class OnRanks:
    """The same work on all ranks: by the same model, wherever it lies, and by the kernels of the first rank.

    Ranks that share a machine compute by one thread each.  Raises ModelError on a rank that has another model.
    """

    def __init__(self, work: Work, model: str, digest: str, choices: dict[str, tuning.Choice]):
        self._made_of = work, model, digest, choices
        here = mpi.world()
        if here.rank and model_digest(model) != digest:
            raise ModelError(f"{model} of {here.name} is another one than that of the first rank: copy it there anew")
        tuning.adopt(choices)
        if len(here.ranks_of_machine()) > 1:
            threadpool_limits(1)

    @classmethod
    def of(cls, work: Work, model: str) -> "OnRanks":
        """Let other ranks do what the first one can."""
        return cls(work, model, model_digest(model), {source: tuning.choose(source) for source in tuning.FIXED})

    def __reduce__(self) -> tuple:
        return OnRanks, self._made_of

    def __call__(self, window: Window) -> Answer:
        return self._made_of[0](window)


def written_file(command: Any) -> Path | None:
    """Find the file that a command writes; None where that is standard output."""
    return None if command.output is None or is_input(command.output) else command.output


def check_output(command: Any, **paths: Path | None) -> None:
    """Raises ConfigError where the output would replace what a flag of this name reads, or nothing can go on."""
    written = written_file(command)
    if command.resume and written is None:
        raise ConfigError("--resume goes on with the file of --output: give its name")
    for name, path in paths.items() if written else ():
        if path and is_same_file(path, written):
            raise ConfigError(f"--output would replace {path}, which --{name.replace('_', '-')} reads: choose another")


@contextmanager
def opened_output(command: Any, between: str = "") -> Iterator["Output"]:
    """Open what a command writes to; within the block of a file it is this process's alone.

    Raises ConfigError where there is unfinished work and no --resume, or it is that of another command; DataError for a
    file that cannot be written. An error in the block says in the end how much of the work is kept.
    """
    path = written_file(command)
    if path is None:
        yield Output(between)
        return
    check_writable(path)
    model = model_digest(command.model)
    target = path.resolve() if path.is_symlink() else path  # a link keeps being a link
    part = target.with_name(target.name + PART)
    with locked(part, lambda: _make(part), "written"):
        output = PartFile(target, command, model, between)
        try:
            yield output
        except BaseException as error:
            output.leave(error)
            raise
        output.finish()


def _make(part: Path) -> None:
    """Make an empty file where there is none.  Raises ConfigError where something else is in the way."""
    if os.path.lexists(part) and not stat.S_ISREG(part.lstat().st_mode):
        raise ConfigError(f"{part} is in the way, and no file: choose another --output, or remove it")
    with _writing(part):
        part.open("ab").close()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error


def model_digest(name: str) -> str:
    """Digest the files of a model, but for that of its figures.  Raises ModelError where there is none."""

    def digest(directory: Path) -> str:
        found = sorted(path for path in directory.iterdir() if path.is_file() and path.name != METRICS_FILE)
        return digest_of_files(found)

    return read_model(name, digest)


def _asked(command: Any) -> dict[str, Any]:
    """Give the flags that decide what is written, as they are read back from a journal."""
    flags = {name: value for name, value in vars(command).items() if name not in _FREE}
    if config := getattr(command, "generation", None):
        flags |= asdict(config)
        del flags["seed"]
        if not command.json:
            del flags["batch_size"]  # it changes the last digits of numbers, and no text
    return json.loads(json.dumps({"toolkit": __version__, **flags}, default=str))


def _seed(command: Any) -> int | None:
    """Give the seed of what is drawn."""
    config = getattr(command, "generation", None)
    return config.seed if config and config.samples else None


class Output:
    """Standard output: outputs are printed as they come.  between: stands in front of every output but the first."""

    def __init__(self, between: str = ""):
        self._between, self.done = between, Done()

    def bar(self, path: Path | None) -> Any:
        """Make a progress bar, where results do not go to the same terminal.  path: of the lines."""
        shown = self._elsewhere() and sys.stderr is not None and sys.stderr.isatty()
        total = count_lines(path) if shown and path and not is_input(path) and path.is_file() else None
        settings = {"total": total, "initial": self.done.lines, "unit": " lines", "dynamic_ncols": True}
        return progress_bar(False, **settings) if shown else None

    def _elsewhere(self) -> bool:
        return sys.stdout is not None and not sys.stdout.isatty()

    def rest(self, windows: Iterable[Window | None]) -> Iterable[Window | None]:
        """Give the windows that are not answered yet."""
        return windows

    def write(self, answer: Answer) -> None:
        """Write the outputs of the next window."""
        emit_results(self._texts(answer))
        self.done = self.done.and_then(answer)

    def _texts(self, answer: Answer) -> Iterator[str]:
        for number, text in enumerate(answer.outputs, start=self.done.lines):
            yield self._between + text if number else text


class _OtherInputError(ConfigError):
    """Lines that are not those which were answered."""


class PartFile(Output):
    """A file that grows in whole pieces, each of which is on the disk before the journal speaks of it."""

    def __init__(self, target: Path, command: Any, model: str, between: str = ""):
        super().__init__(between)
        self._target, self._command, self._model = target, command, model
        self.part, self._journal, self._next = (target.with_name(target.name + end) for end in (PART, JOURNAL, NEXT))
        self._digest = hashlib.sha256()  # of all lines so far
        self._ahead: deque[str] = deque()  # that digest at the end of each window that has no answer yet
        self._asked = _asked(command)
        with _writing(self.part):
            self._next.unlink(missing_ok=True)
            try:
                self.done = self._begun()
            except ConfigError:
                if not self.part.stat().st_size:
                    self.part.unlink()
                raise
            self._file = self.part.open("r+b")
            self._file.truncate(self.done.bytes)
            self._file.seek(self.done.bytes)

    def _begun(self) -> Done:
        """Find what is done already.  Raises ConfigError where it must not be gone on with."""
        size, journal, resume = self.part.stat().st_size, self._read_journal(), self._command.resume
        if journal is None and size:
            raise ConfigError(f"{self.part} is in the way, and not our work: choose another --output, or remove it")
        done = Done(**journal["done"]) if journal and size else Done()
        what = f"the first {counted(done.lines)} of interrupted work"
        if done.lines and not resume:
            raise ConfigError(f"{self.part} has {what}: add --resume to go on, or remove it")
        if done.lines:
            self._compare(journal)
            if size < done.bytes:
                raise ConfigError(f"{self.part} is shorter than {self._journal} says: remove both, and begin anew")
        else:
            self._journal.unlink(missing_ok=True)
        if resume and not self._command.quiet:
            tell(f"toolkit: {self.part} " + (f"has {what}" if done.lines else "is new: all is to be done"))
        return done

    def _read_journal(self) -> dict[str, Any] | None:
        if not os.path.lexists(self._journal):
            return None
        try:
            return read_json(self._journal, "journal", _JOURNAL)
        except ToolkitError as error:
            raise ConfigError(f"{error}: choose another --output, or remove it and {self.part}") from None

    def _compare(self, journal: dict[str, Any]) -> None:
        """Raises ConfigError where something else was asked for; a seed that was drawn is taken over."""
        if journal["model"] != self._model:
            raise ConfigError(f"{self.part} was written by another model than {self._command.model}: {_ADVICE}")
        config = getattr(self._command, "generation", None)
        if config and config.samples and config.seed is None:
            self._command.generation = replace(config, seed=journal["seed"])
        before = journal["asked"] | {"seed": journal["seed"]}
        now = self._asked | {"seed": _seed(self._command)}
        if not journal["done"]["long"]:  # then it does not matter what becomes of such lines
            before["long_lines"] = now["long_lines"]
        names = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
        changes = [f"{name.replace('_', '-')}: {before.get(name)} → {now.get(name)}" for name in names]
        if changes:
            raise ConfigError(f"{self.part} was written with other settings ({', '.join(changes)}): {_ADVICE}")

    def _elsewhere(self) -> bool:
        return True

    def rest(self, windows: Iterable[Window | None]) -> Iterator[Window]:
        """Give the windows that are not answered yet.  Raises ConfigError where the lines before have changed."""
        done, left = self.done, self.done.lines
        for window in filter(None, windows):
            cut = min(left, len(window.lines))
            self._read(window.part(0, cut))
            left -= cut
            if cut and not left and self._digest.hexdigest() != done.input:
                raise _OtherInputError(f"{self.part} is of an input whose first lines were others: {_ADVICE}")
            if cut < len(window.lines):
                rest = window.part(cut, len(window.lines))
                self._read(rest)
                self._ahead.append(self._digest.hexdigest())
                yield rest
        if left:
            raise _OtherInputError(f"{self.part} has {counted(done.lines)}, the input only {done.lines - left:,}")

    def _read(self, window: Window) -> None:
        texts = window.lines
        if window.partners is not None:
            texts = [text for both in zip(window.lines, window.partners, strict=True) for text in both]
        self._digest.update("".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass"))

    def write(self, answer: Answer) -> None:
        signals: list[int] = []
        with postponed(signals.append):  # what the journal says, and what this process knows, must not differ
            self._write(answer)
        for number in signals:
            raise KeyboardInterrupt if number == signal.SIGINT else Stopped(number)

    def _write(self, answer: Answer) -> None:
        data = "".join(f"{text}\n" for text in self._texts(answer)).encode()
        with _writing(self._target):
            self._file.write(data)
            self._file.flush()
            os.fsync(self._file.fileno())
        done = self.done.and_then(answer, len(data), self._ahead.popleft())
        journal = {"done": asdict(done), "seed": _seed(self._command), "model": self._model, "asked": self._asked}
        with _writing(self._journal):
            with self._next.open("wb") as file:
                file.write(json.dumps(journal, indent=2).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            self._next.replace(self._journal)
            flush_to_disk(self._journal.parent)
        self.done = done

    def leave(self, error: BaseException) -> None:
        """Keep what is done, and raise the error, which then says so; where nothing is done, nothing stays.

        Raises nothing where the error stands for itself.
        """
        with suppress(OSError):
            self._next.unlink(missing_ok=True)
            self._file.close()  # what it holds may find no room on the disk
        if not self.done.lines:
            self._journal.unlink(missing_ok=True)
            self.part.unlink(missing_ok=True)
            return
        with suppress(OSError):
            os.truncate(self.part, self.done.bytes)
        kept = f"the first {counted(self.done.lines)} {'is' if self.done.lines == 1 else 'are'} in {self.part}"
        if isinstance(error, _OtherInputError):
            return
        if isinstance(error, ToolkitError):
            raise type(error)(f"{error}; {kept}: put that right and add --resume") from error
        if isinstance(error, KeyboardInterrupt | Stopped):
            number = error.number if isinstance(error, Stopped) else signal.SIGINT
            raise Stopped(number, f"stopped: {kept}, go on with --resume") from error
        tell(f"toolkit: {kept}, --resume goes on")

    def finish(self) -> None:
        """Give the file its name; nothing can stop that."""
        with _writing(self._target), postponed(lambda number: None):
            os.fsync(self._file.fileno())  # of a file without a piece, too
            self._file.close()
            self.part.replace(self._target)
            self._journal.unlink(missing_ok=True)
            flush_to_disk(self._target.parent)
