"""The recipes of the founding systems: sentences that cannot be read, and flags that mean nothing to vectors."""

from collections.abc import Callable, Iterator
from functools import partial

from tests.system.damage.room import Harm, Kind, change, write
from tests.system.damage.texts import CONTENTS, PLACES

_SIZES = "--run new --model.d-model 8 --model.d-ff 8 --training.updates 2 --training.validate-every 1 "
_SIZES += "--training.workers 1 --training.keep 2 --quiet"
ENCODER = f"recipe-ae {_SIZES} --text lines.en --valid-text valid.en"
SWISH = f"recipe-swish {_SIZES} --sequences 9 --held-out 3 --length 4"

_WORDS = "vectors are taken as they are: leave out"
_MEMORY = "there is not enough memory"
FLAGS: dict[str, dict[str, tuple[str, str]]] = {
    ENCODER: {
        "no sentences": ("--sentences 0", "sentences is 0: it must be at least 1"),
        "sentences in words": ("--sentences many", "--sentences is 'many': it must be a whole number"),
        "no text to give back": ("--text", "--text needs a value"),
        "a text to give back that there is not": ("--text none.en", "none.en does not exist"),
        "vectors of nothing": ("--model.d-model 0", "d_model is 0"),
        "vectors of one number": ("--model.d-model 1 --model.num-heads 1", "has no variance: choose a --model.d-model"),
        "vectors larger than any memory": (f"--model.d-model {10**12}", _MEMORY),
        "heads that do not divide a vector": ("--model.num-heads 3", "d_model 8 cannot be divided into 3 heads"),
        "an auto-encoder of no layers": ("--model.layers 0", "layers is 0"),
        "an activation by another name": ("--model.activation swish", "--model.activation is 'swish'"),
        "a norm of another kind": (
            "--model.norm-position rms",
            "--model.norm-position is 'rms': it must be one of pre, post, none",
        ),
        "a score of texts for vectors": ("--training.best-by chrf", "leave out --training.best-by"),
        "smoothing of what has no labels": ("--training.label-smoothing 0.1", _WORDS),
        "subwords of vectors": ("--training.subword-alpha 0.1", _WORDS),
        "a run of vectors that is there": ("--run model", "model already exists"),
        "a run of vectors below a file": ("--run lines.en/new", "lines.en/new cannot be created"),
        "no run of vectors to resume": ("--resume", "new is not a run: there is no such directory"),
        "a run of texts, resumed with vectors": ("--run run --resume", "run was started with other settings"),
    },
    SWISH: {
        "no sequences": ("--sequences 0", "sequences is 0: it must be at least 1"),
        "fewer sequences than none to hold out": ("--held-out -1", "held_out is -1"),
        "sequences of nothing": ("--length 0", "length is 0"),
        "sequences longer than any memory": (f"--length {10**18}", _MEMORY),
        "more sequences than any number of bytes": (f"--sequences {10**22}", _MEMORY),
        "a network of no width": ("--model.d-ff 0", "d_ff is 0"),
        "a text for a teacher": ("--text lines.en", "there is no flag --text"),
        "a score of texts for a teacher": ("--training.best-by bleu", "leave out --training.best-by"),
        "a directory of files for a run": ("--run tales", "tales already exists"),
    },
}


def kinds() -> Iterator[Kind]:
    """Each of the two texts is harmed in turn."""
    for command, table in FLAGS.items():
        for name, (words, says) in table.items():
            yield Kind(name, command, says, flags=tuple(words.split()), needs="model run tales")
    harms: list[tuple[str, Callable[[str], Harm], str]] = [
        ("nothing but line feeds", lambda file: write(file, "\n \n\n"), "has no sentence to read: give one a line")
    ]
    harms += [(name, how, says or "is a pipe or a device") for name, (how, says) in PLACES.items()]
    harms += [(name, partial(change, how=how), says) for name, (how, says, *_) in CONTENTS.items()]
    for number, (name, harm, says) in enumerate(harms):
        file = ("lines.en", "valid.en")[number % 2]
        yield Kind(f"{name}, as vectors", ENCODER, says, harm(file))
