"""toolkit completion: bash completes verbs, topics, flags, their choices and models; every shell knows the same."""

import re
import shutil
import subprocess

import pytest

from toolkit.cli import KINDS, TOPICS, VERBS
from toolkit.commands import completion

SHIPPED = "chat", "en-ne", "en-ne-small", "ne-en", "stories", "stories-ne"
CASES = {
    "toolkit tran": "translate",
    "toolkit --v": "--version",
    "toolkit ex": "export explain exercise",
    "toolkit explain at": "attention",
    "toolkit explain gradients --se": "--seed",
    "toolkit train lang": "language-model",
    "toolkit train translation --training.updates 5 --training.lea": "--training.learning-rate",
    "toolkit translate --num-b": "--num-beams",
    "toolkit translate hello --model en": "en-ne en-ne-small",
    "toolkit generate --model stories": "stories stories-ne",
    "toolkit translate --long-lines s": "skip",
    "toolkit export en-ne-small there --to c": "ctranslate2",
    "toolkit info st": "stories stories-ne",
    "toolkit completion z": "zsh",
    "toolkit translate --file l": "",  # a name of a file, which bash completes by itself
    "toolkit translate --seed 1": "",
    "toolkit nothing --js": "",
}


@pytest.fixture(scope="module")
def known():
    """All commands with their flags; own runs that lie beside the models that ship are not among their names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(completion, "shipped_models", lambda: dict.fromkeys(SHIPPED))
        return [*completion.commands()]


@pytest.fixture(scope="module")
def scripts(known):
    """The scripts of all shells."""
    return {shell: script(known) for shell, script in completion.SCRIPTS.items()}


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_bash_completes(scripts, tmp_path):
    (tmp_path / "toolkit").write_text("\n".join(scripts["bash"]) + "\n")
    asked = "".join(
        f"COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _toolkit; echo ${{COMPREPLY[*]}}\n"
        for line in CASES
    )
    command = ["bash", "--norc", "-c", f"source {tmp_path / 'toolkit'}; complete -p toolkit\n{asked}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    first, *found = done.stdout.splitlines()
    assert first == "complete -o default -F _toolkit toolkit"
    assert dict(zip(CASES, found, strict=True)) == CASES


def test_the_shells_know_the_same(run, monkeypatch, known, scripts):
    monkeypatch.setattr(completion, "commands", lambda: known)
    for shell, script in scripts.items():
        assert run("completion", shell).lines == script
    assert scripts["zsh"][-len(scripts["bash"]) :] == scripts["bash"]
    told = {}
    for line in scripts["bash"]:
        if found := re.search(r'"([a-z -]+):"\*\) words="(.*)" ;;', line):
            told[found[1]] = {word for word in found[2].split() if word.startswith("--")}
    for line in scripts["fish"]:
        if found := re.search(r"__toolkit_in ([a-z -]+)' -l (\S+)", line):
            told[found[1]].remove(f"--{found[2]}")
    assert told.keys() >= {*VERBS, *(f"explain {topic}" for topic in TOPICS), *(f"train {kind}" for kind in KINDS)}
    assert not [command for command, left in told.items() if left]
    assert "must be one of bash, zsh, fish" in run("completion", "powershell").sentence


def test_descriptions_are_short_and_end_with_a_word(scripts):
    described = [found[1] for line in scripts["fish"] if (found := re.search(r" -d '(.*)'$", line))]
    assert len(described) > 300
    assert max(map(len, described)) <= 70
    assert not [each for each in described if "default" in each and each.startswith("(")]
