"""--ids: every verb reads and writes ids in place of text, and tells one sentence about what is none."""

import json

import pytest

import toolkit
from tests.parity.cases import FIXTURES
from toolkit.interop import import_model


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    directory = tmp_path_factory.mktemp("ids")
    for name in "gpt2", "marian":
        import_model(FIXTURES / name, directory / name)
    return directory


@pytest.fixture
def writer(run, models):
    """writer(verb, ...): run a verb with a language model, by ids."""
    return lambda verb, *words, **options: run(verb, "--model", models / "gpt2", "--ids", *words, **options)


@pytest.fixture
def translator(run, models):
    return lambda verb, *words, **options: run(verb, "--model", models / "marian", "--ids", *words, **options)


def test_import_and_info_say_that_there_is_no_tokenizer(run, tmp_path):
    done = run("import", FIXTURES / "gpt2", tmp_path / "own")
    assert done.err == "toolkit: it has no tokenizer beside it, and is used by ids: --ids, in place of text\n"
    assert "\ntokenizer   none: it is used by ids (--ids)\n" in run("info", tmp_path / "own").out
    for to in "hugging-face", "ctranslate2":
        assert run("export", tmp_path / "own", tmp_path / to, "--to", to).code == 0
        again = run("import", tmp_path / to, tmp_path / f"from-{to}")
        assert "is used by ids" in again.err
        assert run("generate", "--model", tmp_path / f"from-{to}", "--ids", "12 55", "--temperature", "0").code == 0


@pytest.mark.parametrize("flags", [
    ["--temperature", "0"], ["--num-beams", "3", "--no-do-sample"], ["--seed", "4", "--temperature", "2"],
])  # fmt: skip
def test_every_way_to_generate_gives_the_same_ids(writer, models, flags, tmp_path):
    prompts = ["12 55 9", "7", "3 3 3 61 8"]
    (tmp_path / "prompts").write_text("\n".join(prompts) + "\n")
    flags = [*flags, "--max-new-tokens", "6"]
    found = [json.loads(line) for line in writer("generate", "--file", tmp_path / "prompts", "--json", *flags).lines]
    assert [each["prompt"] for each in found] == prompts
    shown = []
    for prompt, each in zip(prompts, found, strict=True):
        (only,) = each["continuations"]
        ids = [index for index in only["ids"] if index != 61]
        assert only["text"].split() == [*map(str, ids)]
        assert only["tokens"] == [*map(str, only["ids"])]
        shown.append(" ".join(map(str, [*prompt.split(), *ids])))
    assert writer("generate", *prompts, *flags).out == "\n\n".join(shown) + "\n"
    assert writer("generate", prompts[0], *flags).out == shown[0] + "\n"  # as it is written
    assert writer("generate", *prompts[0].split(), *flags, "--only-new").out.split() == shown[0].split()[3:]


def test_translations_are_lines_of_ids_and_are_scored_by_them(translator, tmp_path):
    flags = "--max-new-tokens", "6", "--num-beams", "3"
    texts = "12 55 9\n\n7 8\n12 55 9 0\n0\n"
    lines = translator("translate", *flags, stdin=texts.encode()).lines
    assert lines[0] == lines[3] != ""  # with the end mark or without it
    assert lines[1] == ""
    whole = translator("translate", "--json", "--alignments", *flags, stdin=texts.encode())
    found = [json.loads(line)["translations"] for line in whole.lines]
    assert [each[0]["text"] if each else "" for each in found] == lines
    assert [*map(len, found)] == [1, 0, 1, 1, 1]  # an end mark alone is a source, as there
    (first,) = found[0]
    assert first["source_tokens"] == ["12", "55", "9", "0"]
    assert [target for _, target in first["alignment"]] == [*range(len(first["text"].split()))]  # each id is a word
    again = [json.loads(line)["translations"] for line in translator("score", "--json", stdin=whole.out.encode()).lines]
    for one, other in zip(found, again, strict=True):
        assert [each["ids"] for each in one] == [each["ids"] for each in other]
        assert [each["log_prob"] for each in one] == pytest.approx([each["log_prob"] for each in other], abs=1e-4)
    (tmp_path / "source").write_text("12 55 9\n")
    (tmp_path / "target").write_text(f"{lines[0]}\n")
    both = "--source", tmp_path / "source", "--target", tmp_path / "target"
    assert float(translator("score", *both).out.split()[1]) == pytest.approx(first["log_prob"], abs=1e-4)


def test_bad_words_and_prefixes_are_ids(writer, translator):
    flags = "--temperature", "0", "--min-new-tokens", "2", "--max-new-tokens", "2"
    one, two = writer("generate", "12 55", *flags, "--only-new").out.split()
    other = writer("generate", "12 55", *flags, "--bad-words", f"{one} {two}").out.split()
    assert other[:3] == ["12", "55", one]
    assert other[3:] != [two]
    assert translator("translate", "12 55", "--prefix", "7 8").out.split()[:2] == ["7", "8"]


def test_perplexity_is_of_lines_and_has_no_bits_per_byte(writer, models, tmp_path):
    (tmp_path / "ids").write_text("12 55 9\n\n7\n3 61 8 8\n")
    shown = writer("perplexity", tmp_path / "ids").out
    assert "bits per byte" not in shown
    found = json.loads(writer("perplexity", tmp_path / "ids", "--json").out)
    wanted = toolkit.load(models / "gpt2").perplexity(["12 55 9", "7", "3 61 8 8"])
    assert (found["loss"], found["tokens"]) == (wanted.loss, 2 + 3)
    assert f"{wanted.loss:.4f}" in shown
    assert found["files"][str(tmp_path / "ids")].keys() == {"loss", "perplexity", "tokens"}


@pytest.mark.parametrize(("model", "verb", "words", "stdin", "sentence"), [
    ("gpt2", "generate", ["--ids", "12 x"], "", "the prompt cannot be read: 'x' is no id"),
    ("gpt2", "generate", ["--ids"], "12\n5 62\n", "standard input, line 2 cannot be read: 62 is not one of the ids"),
    ("gpt2", "generate", ["--ids"], "12\n\n5\n", "standard input, line 2 is empty: give it an id to begin with"),
    ("gpt2", "generate", ["--ids", "12", "--stop-strings", "5"], "", "stop strings are of texts, and ids are none"),
    ("gpt2", "generate", ["--ids", "12", "--bad-words", "61"], "", "bad word 1 has the end mark in it"),
    ("gpt2", "generate", ["--ids", "1 " * 40], "", "the prompt has 40 tokens, and the model has room for 31"),
    ("gpt2", "generate", ["12"], "", "gpt2 has no tokenizer: use it by ids, with --ids"),
    ("gpt2", "chat", ["hello"], "", "this model is used by ids, and converses in none"),
    ("gpt2", "perplexity", ["-"], "12", "gpt2 has no tokenizer: use it by ids, with --ids"),
    ("gpt2", "perplexity", ["--ids", "-"], "12 5\n9 99 1\n", "standard input, line 2 cannot be read: 99 is not one"),
    ("gpt2", "perplexity", ["--ids", "-"], "12\n", "standard input cannot be measured: there is nothing to predict"),
    ("gpt2", "perplexity", ["--ids", "--documents", "line", "-"], "1", "every line is a text: leave it out"),
    ("marian", "translate", ["--ids"], "12\n5 61\n", "standard input, line 2 cannot be read: 61 is not one of the ids"),
    ("marian", "translate", ["--ids", "5", "--prefix", "a"], "", "the prefix of the text, line 1 cannot be"),
    ("marian", "translate", ["5"], "", "marian has no tokenizer: use it by ids, with --ids"),
    ("marian", "score", [], '{"source": "5", "target": "7"}', "marian has no tokenizer: use it by ids, with --ids"),
    ("marian", "score", ["--ids"], '{"source": "5", "ids": [7, 61]}', "line 1 cannot be read: 61 is not"),
    ("marian", "score", ["--ids"], '{"source": "5", "ids": [7, 60, 9]}', "line 1 has ids that are no text"),
])  # fmt: skip
def test_what_is_wrong_is_told_in_one_sentence(run, models, model, verb, words, stdin, sentence):
    assert sentence in run(verb, "--model", models / model, *words, stdin=stdin.encode()).sentence


def test_an_own_model_by_ids_gives_what_it_gives_by_text(run, tiny_model):
    tokenizer = toolkit.load(tiny_model).tokenizer
    by_text = json.loads(run("translate", "--model", tiny_model, "--json", "She eats rice.").out)["translations"]
    ids = " ".join(map(str, tokenizer.encode(" She eats rice.")))
    by_ids = json.loads(run("translate", "--model", tiny_model, "--json", "--ids", ids).out)["translations"]
    assert [each["ids"] for each in by_text] == [each["ids"] for each in by_ids]
    assert [each["tokens"] for each in by_text] == [each["tokens"] for each in by_ids]


@pytest.mark.parametrize(("kind", "model"), [("translation", "marian"), ("language-model", "gpt2"), ("chat", "gpt2")])
def test_nothing_is_learned_from_text_without_a_tokenizer(run, models, kind, model, tmp_path):
    told = run("train", kind, "--run", tmp_path / "run", "--start", models / model).sentence
    assert f"{model} has no tokenizer, without which nothing can be learned from text: give another model" in told
    assert not (tmp_path / "run").exists()
