"""toolkit explain: topics, where a page goes, and what happens to what was there before."""

import io
import sys
from dataclasses import dataclass

import pytest

from toolkit.cli import TOPICS, parsed
from toolkit.commands.explain import Explanation, has_color
from toolkit.errors import ConfigError, DataError
from toolkit.pages.blocks import Page, Section, Text
from toolkit.pages.html import document


@dataclass(kw_only=True)
class Greeting(Explanation):
    """Says good day."""

    name: str = "केटा"

    def page(self) -> Page:
        if not self.name:
            raise ConfigError("nobody has no name")
        return Page("Namaste", "A greeting.", [Section("Words", [Text(f"नमस्ते, {self.name}!")])])


def test_alone_it_lists_the_topics(run):
    assert run("explain") == run("explain", "--help")
    shown = run("explain").lines
    assert all(any(line.startswith(f"  {topic} ") for line in shown) for topic in TOPICS)


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_explains_its_flags(run, topic):
    outcome = run("explain", topic, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"usage: toolkit explain {topic}" in outcome.out
    assert "--html" in outcome.out


def test_an_unknown_topic_is_told_in_one_sentence(run):
    assert run("explain", "everything").sentence.startswith("toolkit: there is no topic 'everything': ")
    assert "with a topic of attention, translate" in run("explain", "--html").sentence


def test_a_topic_is_read_with_its_flags():
    with pytest.raises(ConfigError, match="there is no flag --no-such"):
        parsed(["training", "--no-such"], "toolkit explain")


def test_a_page_is_printed_or_written(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    Greeting().run()
    assert "नमस्ते, केटा!" in capsys.readouterr().out.splitlines()
    file = tmp_path / "page.html"
    file.write_text("before")
    Greeting(html=file).run()
    assert file.read_text(encoding="utf-8") == document(Greeting().page())
    assert capsys.readouterr().out == f"{file}: open it in a browser\n"


def test_what_goes_wrong_leaves_the_file_as_it_was(tmp_path):
    file = tmp_path / "page.html"
    file.write_text("before")
    with pytest.raises(ConfigError, match="nobody"):
        Greeting(name="", html=file).run()
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
    assert file.read_text() == "before"
    with pytest.raises(DataError, match="cannot be written"):
        Greeting(name="", html=tmp_path / "nowhere" / "page.html").run()  # told before the work is done


def test_an_error_of_the_work_is_not_taken_for_one_of_writing(tmp_path):
    class Broken(Greeting):
        def page(self) -> Page:
            return Page("", (tmp_path / "missing").read_text(), [])

    with pytest.raises(FileNotFoundError):
        Broken(html=tmp_path / "page.html").run()
    assert not list(tmp_path.iterdir())


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert has_color()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_color()
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not has_color()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert not has_color()
