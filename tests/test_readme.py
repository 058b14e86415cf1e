"""The READMEs show code that runs and does what is said of it, and point at what is there."""

import re
import textwrap
from pathlib import Path

import pytest

from tests.explain.drawn import cells

ROOT = Path(__file__).resolve().parent.parent
READMES = [
    path
    for pattern in (
        "*.md",
        ".github/*.md",
        "recipes/**/*.md",
        "data/*/*.md",
        "toolkit/**/*.md",
        "tests/benchmarks/*.md",
    )
    for path in sorted(ROOT.glob(pattern))
]


def blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?) *```", path.read_text("utf-8"), re.DOTALL)


def anchor(heading: str) -> str:
    """Give the name that a heading has in links."""
    return re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).strip().replace(" ", "-")


def test_the_first_readme_is_short_and_shows_the_page_with_the_transformer():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 200
    [heart] = [each for each in blocks(ROOT / "README.md") if "def block(" in each]
    page = (ROOT / "toolkit" / "plain.py").read_text("utf-8")
    assert [part for part in heart.strip().split("\n\n\n") if part not in page] == []


def test_the_check_says_of_the_example_what_the_readme_says(capsys):
    [example] = [each for each in blocks(ROOT / "README.md") if "toolkit.proof" in each]
    exec(textwrap.dedent(example), {})
    assert example.strip().splitlines()[-1].removeprefix("   # ") in capsys.readouterr().out.splitlines()


def test_a_training_loop_of_ones_own_learns(capsys):
    [loop] = [each for each in blocks(ROOT / "toolkit" / "README.md") if "model.backward(tape)" in each]
    exec(loop, {})
    losses = [float(line.split(": ")[1]) for line in capsys.readouterr().out.splitlines()]
    assert len(losses) == 10
    assert losses == sorted(losses, reverse=True)
    first, last = re.search(r"# (\S+) at first, (\S+) in the end", loop).groups()
    assert (f"{losses[0]:.1f}", f"{losses[-1]:.1f}") == (first, last)


def test_the_picture_is_what_its_lines_draw(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [lines] = [each for each in blocks(ROOT / "toolkit" / "explain" / "README.md") if "attention.svg" in each]
    exec(lines, {})
    drawn, shown = ((each / "attention.svg").read_text("utf-8") for each in (tmp_path, ROOT / ".github"))
    told = [[title.rsplit(": ", 1) for title, _ in cells(svg)] for svg in (drawn, shown)]
    assert [names for names, _ in told[0]] == [names for names, _ in told[1]]
    for (names, value), (_, expected) in zip(*told, strict=True):
        assert float(value) == pytest.approx(float(expected), abs=1e-3), names
    assert len(shown) < 40_000


@pytest.mark.parametrize("path", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, place = target.partition("#")
        other = path if not name else (path.parent / name).resolve()
        if name.startswith("http") or not other.exists():
            broken += [] if name.startswith("http") else [target]
        elif place:
            anchors = {anchor(each) for each in re.findall(r"^#+ (.+)$", other.read_text("utf-8"), re.MULTILINE)}
            broken += [] if place in anchors else [target]
    assert broken == []
