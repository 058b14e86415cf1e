"""What an editor and a type checker see of the library, and what `import toolkit` gives and costs."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

import toolkit
from toolkit.decoding import ContinuationConfig, ContinuationSettings, GenerationConfig, GenerationSettings

ROOT = Path(toolkit.__file__).parent.parent


def test_what_is_public_is_listed_and_there():
    assert {"load", "load_translator", "load_language_model", "Translator", "interop", "explain", "train"} <= {
        *dir(toolkit)
    }
    assert not {"Any", "TYPE_CHECKING"} & {*dir(toolkit)}
    assert all(getattr(toolkit, name) is not None for name in dir(toolkit))
    assert (ROOT / "toolkit" / "py.typed").is_file()  # without it, a checker takes every type for Any
    with pytest.raises(AttributeError, match="module 'toolkit' has no attribute 'nothing'"):
        _ = toolkit.nothing
    with pytest.raises(AttributeError, match=r"module 'toolkit\.pages' has no attribute 'nothing'"):
        _ = toolkit.pages.nothing


def test_modules_are_there_after_import_and_are_not_imported_with_it():
    program = """
import sys, toolkit
assert not {"numpy", "sentencepiece", "tyro"} & {*sys.modules}, "too much is imported"
print(toolkit.train.__name__, toolkit.recipes.translation.Settings.__name__)
print(toolkit.interop.import_model.__name__, toolkit.interop.export_model.__name__)
print(toolkit.pages.html.document.__name__, toolkit.explain.attention.attention_page.__name__)
print(toolkit.pages.terminal.lines.__name__, toolkit.errors.DataError.__name__)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == [
        "train",
        "Settings",
        "import_model",
        "export_model",
        "document",
        "attention_page",
        "lines",
        "DataError",
    ]


@pytest.mark.parametrize(
    ("config", "settings"),
    [(GenerationConfig, GenerationSettings), (ContinuationConfig, ContinuationSettings)],
    ids=["translators", "language models"],
)
def test_the_keywords_that_a_checker_knows_are_those_of_the_settings(config, settings):
    hints = get_type_hints(config)
    own = {field.name: hints[field.name] for field in fields(config)}
    del own["num_return_sequences"]  # only the verbs whose names end with _n have it
    assert get_type_hints(settings) == own


USE = """
import toolkit
from typing import assert_type
from toolkit.outputs import Continuation
from toolkit.outputs import Translation
from toolkit.training.run import Run

model = toolkit.load_translator("en-ne-small")
assert_type(model, toolkit.Translator)
assert_type(model.translate("a", num_beams=4), str)
assert_type(model.translate(["a"], num_beams=4), list[str])
assert_type(model.translate_n("a", num_return_sequences=2), list[Translation])
assert_type(model.score(["a"], [[1, 2]]), list[Translation])
stories = toolkit.load_language_model("stories")
assert_type(stories.generate(iter(["a"]), top_p=0.9), list[str])
assert_type(stories.generate_n("a"), list[Continuation])
assert_type(toolkit.load("en-ne-small"), toolkit.Translator | toolkit.LanguageModel)
assert_type(toolkit.train("language-model", text="a.txt", training={"updates": 2}), Run)
assert_type(toolkit.train("chat", seeds=[1, 2]), list[Run])
assert_type(toolkit.load(toolkit.train("translation")), toolkit.Translator | toolkit.LanguageModel)
toolkit.train("translator")  # wrong: a kind
model.translate("a", num_beam=4)  # wrong: a name
model.translate("a", num_beams="4")  # wrong: a type
toolkit.nothing  # wrong: there is none
"""


def test_a_type_checker_knows_the_library_and_the_examples_of_the_readmes(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed: nothing here needs it")
    readmes = [ROOT / "README.md", *sorted((ROOT / "toolkit").rglob("README.md"))]
    blocks = [
        each for path in readmes for each in re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.DOTALL)
    ]
    (tmp_path / "use.py").write_text(USE)
    for number, block in enumerate(block for block in blocks if "toolkit.load" in block and "Heat" not in block):
        (tmp_path / f"block{number}.py").write_text(f"import toolkit\n{block}")
    assert (tmp_path / "block3.py").exists()
    # Only these files are judged: of the modules that they import, signatures are read, and no bodies of functions.
    flags = ["--follow-imports", "silent", "--cache-dir", os.devnull]
    command = [sys.executable, "-m", "mypy", *flags, *sorted(tmp_path.glob("*.py"))]
    environment = {"MYPYPATH": str(ROOT), "PATH": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    wrong = {line.split(":")[1] for line in done.stdout.splitlines() if re.match(r"use\.py:\d+: error", line)}
    assert wrong == {str(number) for number, line in enumerate(USE.split("\n"), start=1) if "# wrong" in line}
    assert not re.search(r"^block\d+\.py:\d+: error.*", done.stdout, re.MULTILINE), done.stdout
