"""The `toolkit` command: finds the verb, runs it, and turns what goes wrong into one sentence and an exit code."""

import shlex
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from toolkit import __version__, launcher, mpi
from toolkit.commands.console import emit
from toolkit.display import meant, tell
from toolkit.errors import ConfigError, ToolkitError
from toolkit.process import Stopped, discard, stderr_or_nowhere, stoppable

# The class in toolkit.commands that each verb is done by, and the purpose of it. It is imported only when it is used.
VERBS = {
    "translate": ("translate.Translate", "Translate text, a file, or what you type at a prompt."),
    "generate": ("generate.Generate", "Continue a text: a prompt, a file of prompts, or what you type."),
    "chat": ("chat.Chat", "Converse with a model: at a prompt, in a pipe, in JSON lines."),
    "serve": ("serve.Serve", "Serve models: a page, OpenAI's and LibreTranslate's interfaces."),
    "train": ("", "Train a translator, a language model, a chat model, and others."),
    "models": ("catalogue.Models", "List the models there are: kind, languages, size, scores."),
    "info": ("models.Info", "Show what a model is, how large it is and how well it did."),
    "score": ("score.Score", "Score given translations: how probable a model finds them."),
    "calibrate": ("calibrate.Calibrate", "Learn what a translator's probabilities mean: confidence."),
    "evaluate": ("evaluate.Evaluate", "Score translations against references: BLEU, chrF, exact match."),
    "perplexity": (
        "perplexity.MeasurePerplexity",
        "Measure how well a model predicts text: loss, bits per byte.",
    ),
    "runs": ("runs.Runs", "Compare training runs: settings that differ, scores, time."),
    "plot": ("runs.Plot", "Draw the training curves of runs, as PNG or SVG."),
    "average": ("models.Average", "Average the weights of several checkpoints into one model."),
    "import": ("models.ImportModel", "Make a model of transformers or CTranslate2 one of this toolkit."),
    "export": ("models.ExportModel", "Write a model for transformers or CTranslate2."),
    "presets": ("models.Presets", "Show the named shapes of language models and their sizes."),
    "explain": ("", "Follow a sentence through a model in numbers; check derivatives."),
    "exercise": ("", "Finish the functions of a transformer; checks say what is wrong."),
    "completion": ("completion.Completion", "Write a script by which bash, zsh or fish completes commands."),
}

TOPICS = {
    topic: (f"explain.Explain{topic.title()}", purpose)
    for topic, purpose in {
        "attention": "One sentence through a model: formulas, shapes and numbers.",
        "translate": "How a translation came about: attention, candidates, the beam.",
        "generate": "How a text goes on: every next token, before and after sampling.",
        "training": "Teacher forcing on one pair, and one step of AdamW in numbers.",
        "parallel": "Why attention is parallel and looks far back, unlike recurrence.",
        "gradients": "Every derivative: formula, source, a check; well-known wrong ones.",
    }.items()
}
KINDS = {
    "translation": ("", "A translator: English to Nepali, or your own pairs."),
    "language-model": ("", "A language model: little stories, or your own text."),
    "chat": ("", "A model that converses: from nothing or a language model."),
    "preference": ("", "A reward model, PPO or DPO: which replies are better."),
    "autoencoder": ("", "The auto-encoder of the founding documents 000 and 001."),
    "residual-swish": ("", "The transformer of the founding document 003."),
}
STEPS = {
    "start": ("exercise.Start", "Write a directory with a file for each exercise."),
    "check": ("exercise.Check", "Say what is wrong with an exercise, or that it is right."),
    "hint": ("exercise.Hint", "Show a hint, each time one more."),
    "next": ("exercise.Next", "Show the first that is not right, and what is to be found."),
    "status": ("exercise.Status", "List the exercises: which are right, points, hints read."),
    "grade": ("exercise.Grade", "Write checks for a class: pytest, points, other random numbers."),
}
# By the words before it: the name of a choice, the choices, the flags that may stand in its place, and a last line.
MENUS = {
    "toolkit": ("verb", VERBS, ("--help", "--version"), "explains the flags of a verb, with examples."),
    "toolkit train": ("kind", KINDS, (), "explains its settings, each of which is a flag."),
    "toolkit explain": ("topic", TOPICS, (), "explains its flags; --html FILE writes a page."),
    "toolkit exercise": ("step", STEPS, (), "explains its flags."),
}

USER_ERROR, INTERRUPTED, BROKEN_PIPE = 2, 130, 141
SIGNALLED = 128  # and the number of the signal, as a shell reports it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 2 for a mistake in what it was given, 130 for Ctrl-C.

    Other signals that ask it to end give 128 and their number: 143 for SIGTERM, 129 for SIGHUP, 138 for SIGUSR1.
    """
    return reported(lambda: _run(list(sys.argv[1:] if arguments is None else arguments)))


def reported(action: Callable[[], None]) -> int:
    """Do something on the user's behalf -> an exit code; what the user got wrong is told in one sentence.

    Under a launcher such as mpiexec the first rank does it, and tells.
    """
    if sys.stdout is not None:
        # Nepali is written in UTF-8, and a line ends with LF, whatever this machine would do by itself.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    with stderr_or_nowhere():
        try:
            with stoppable():
                mpi.led(action)
            return 0
        except (ToolkitError, MemoryError, KeyboardInterrupt, Stopped) as error:
            sentence, code = _ending(error)
            if sentence is not None and launcher.tells():
                tell(sentence)
            return code
        except BrokenPipeError:
            discard(sys.stdout)
            return BROKEN_PIPE


def _ending(error: BaseException) -> tuple[str | None, int]:
    """Return what is told of an error that ends the command, and the exit code."""
    if isinstance(error, ToolkitError):
        return f"toolkit: {error}", USER_ERROR
    if isinstance(error, MemoryError):
        return "toolkit: there is not enough memory for this: a smaller model, batch or text needs less", USER_ERROR
    if isinstance(error, Stopped):
        return str(error) or None, SIGNALLED + error.number
    return "", INTERRUPTED  # the shell's prompt begins a new line


def _run(arguments: Sequence[str], program: str = "toolkit") -> None:
    what, choices, flags, ending = MENUS[program]
    choice, *rest = arguments or ["--help"]
    if choice in ("-h", "--help"):
        width, usage = max(map(len, choices)), " ".join([program, *map("[{}]".format, flags), what.upper(), "..."])
        purposes = (f"  {name:{width}}  {purpose}" for name, (_, purpose) in choices.items())
        emit([f"usage: {usage}", "", *purposes, "", f"`{program} {what.upper()} --help` {ending}"])
    elif choice == "--version" and flags:
        emit([f"toolkit {__version__}"])
    elif f"{program} {choice}" in MENUS:
        _run(rest, f"{program} {choice}")
    else:
        parsed(arguments, program).run()


def parsed(arguments: Sequence[str], program: str = "toolkit") -> Any:
    """Read a verb and its flags, or a topic or kind where the program is "toolkit explain" or "toolkit train".

    Returns what does it, by its `run`.

    Raises ConfigError for a verb that does not exist, and as `parse_flags` does.
    """
    from toolkit.commands.flags import parse_flags

    what, choices, flags, _ = MENUS[program]
    choice, *rest = arguments
    if choice not in choices:
        kind, one = "flag" if choice.startswith("-") else what, f"{program} {what.upper()}"
        near = meant(choice, [*choices, *flags]) or _elsewhere(choice)
        advice = f"did you mean {near}?" if near else f"it is {one}, with a {what} of {', '.join(choices)}"
        raise ConfigError(f"there is no {kind} {choice!r}: {advice}")
    if choices is KINDS:
        from toolkit.commands.train import Training

        return Training.read(choice, f"{program} {choice}", rest, shlex.join([*program.split(), *arguments]))
    module, name = choices[choice][0].split(".")
    return parse_flags(getattr(import_module(f"toolkit.commands.{module}"), name), f"{program} {choice}", rest)


def _elsewhere(choice: str) -> str:
    """Find the menu that has a choice: `attention` is a topic of `explain`."""
    return next((f"{menu} {choice}" for menu, (_, choices, *_) in MENUS.items() if choice in choices), "")
