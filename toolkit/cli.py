"""The `toolkit` command: finds the verb, runs it, and turns what goes wrong into one sentence and an exit code."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from toolkit import __version__
from toolkit.commands.console import discard_output, emit
from toolkit.display import tell
from toolkit.errors import ConfigError, ToolkitError
from toolkit.process import Stopped, stderr_or_nowhere, stoppable

# What each verb is for, and what in toolkit.commands does it: a class, or a function of the words after the verb that
# gives an instance. A verb is imported only when it is used.
VERBS = {
    "translate": ("translate.Translate", "Translate text, a file, or what you type at a prompt."),
    "generate": ("generate.Generate", "Continue a text: a prompt, a file of prompts, or what you type."),
    "chat": ("chat.Chat", "Converse with a model: at a prompt, through a pipe, or in JSON lines."),
    "score": ("score.Score", "Score given translations: the log-probability that a model gives them."),
    "evaluate": ("evaluate.Evaluate", "Score translations against references: BLEU, chrF, exact match, significance."),
    "perplexity": (
        "perplexity.MeasurePerplexity",
        "Measure how well a language model predicts text: loss, bits per byte.",
    ),
    "runs": ("runs.Runs", "Compare training runs: settings that differ, scores, time."),
    "plot": ("plot.Plot", "Draw the training curves of runs, as PNG or SVG."),
    "average": ("models.Average", "Average the weights of several checkpoints into one model."),
    "import": ("models.ImportModel", "Make a model of transformers or CTranslate2 one of this toolkit."),
    "export": ("models.ExportModel", "Write a model for transformers or CTranslate2."),
    "presets": ("models.Presets", "Show the named shapes of language models and their sizes."),
    "info": ("models.Info", "Show what a model is, how large it is and how well it did."),
    "explain": ("explain.explain", "Follow a sentence through a model, number by number, and prove every derivative."),
}

USER_ERROR, INTERRUPTED, BROKEN_PIPE = 2, 130, 141
SIGNALLED = 128  # and the number of the signal, as a shell reports it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 2 for a mistake in what it was given, 130 for Ctrl-C.

    Other signals that ask it to end give 128 and their number: 143 for SIGTERM, 129 for SIGHUP.
    """
    return reported(lambda: _run(list(sys.argv[1:] if arguments is None else arguments)))


def reported(action: Callable[[], None]) -> int:
    """Do something on the user's behalf -> an exit code; what the user got wrong is told in one sentence."""
    if sys.stdout is not None:
        # Nepali is written in UTF-8, and a line ends with LF, whatever this machine would do by itself.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    with stderr_or_nowhere():
        return _exit_code(action)


def _exit_code(action: Callable[[], None]) -> int:
    try:
        with stoppable():
            action()
        return 0
    except ToolkitError as error:
        tell(f"toolkit: {error}")
        return USER_ERROR
    except MemoryError:
        tell("toolkit: there is not enough memory for this: a smaller model, batch or text needs less")
        return USER_ERROR
    except KeyboardInterrupt:
        tell("")  # the shell's prompt begins a new line
        return INTERRUPTED
    except Stopped as stopped:
        if str(stopped):
            tell(str(stopped))
        return SIGNALLED + stopped.number
    except BrokenPipeError:
        discard_output()
        return BROKEN_PIPE


def _run(arguments: list[str]) -> None:
    verb, *rest = arguments or ["--help"]
    if verb in ("-h", "--help"):
        emit(_help())
    elif verb == "--version":
        emit([f"toolkit {__version__}"])
    elif verb in VERBS:
        _parse(verb, rest).run()
    else:
        kind = "flag" if verb.startswith("-") else "verb"
        raise ConfigError(f"there is no {kind} {verb!r}: it is toolkit VERB, with a verb of {', '.join(VERBS)}")


def _parse(verb: str, arguments: list[str]):
    from toolkit.commands.flags import parse_flags

    module, name = VERBS[verb][0].split(".")
    command = getattr(import_module(f"toolkit.commands.{module}"), name)
    if not isinstance(command, type):
        return command(arguments)
    return parse_flags(command, f"toolkit {verb}", arguments)


def _help() -> list[str]:
    width = max(map(len, VERBS))
    return [
        "usage: toolkit [--help] [--version] VERB ...",
        "",
        *(f"  {verb:{width}}  {purpose}" for verb, (_, purpose) in VERBS.items()),
        "",
        "`toolkit VERB --help` explains the flags of a verb.",
    ]
