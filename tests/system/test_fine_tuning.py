"""A model goes on with new texts: its vocabulary, its shape and its way out stay what they were."""

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import toolkit
from tests.conftest import ENGLISH, NEPALI
from tests.interop.foreign_models import edit, make_gpt2, make_llama, make_marian
from tests.interop.test_multilingual import FIXTURES
from tests.system.damage.room import obey
from tests.tokenization.test_foreign_library import content
from toolkit.data.sentences import sentence_ids
from toolkit.data.store import RaggedStore
from toolkit.data.token_stream import stream_encoder
from toolkit.decoding import ContinuationConfig, GenerationConfig, generate
from toolkit.interop import export_model, import_model
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.gpt import ABSENT, GPTConfig
from toolkit.models.seq2seq import translation_batch
from toolkit.models.storage import load_model, model_directory, read_arrays, read_metrics, save_model
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.recipes import translation
from toolkit.recipes.start import tuned
from toolkit.tokenization.special import BOS, EOS, SPECIAL_TOKENS
from toolkit.translator import Translator

TRAINING = "--quiet --training.warmup 2 --training.workers 1 --training.learning-rate 0.01"
PAIRS = f"recipe {TRAINING} --source new.en --target new.ne --valid-source new.en --valid-target new.ne --num-beams 1 "
PAIRS += "--filters.overlap keep --training.tokens-per-batch 200 --training.updates 20 --training.validate-every 10 "
PAIRS += "--training.best-by loss"
TEXTS = f"recipe-lm {TRAINING} --text new.txt --valid-text new.txt --documents line --whole-documents --samples 1 "
TEXTS += "--training.tokens-per-batch 100 --training.updates 20 --training.validate-every 10"
LANGUAGES = Path(__file__).parents[1] / "interop" / "fixtures" / "multilingual" / "m2m100"
STORY = ("She eats rice.", "He drinks rice.", "She drinks water.", "I am rice.")


@pytest.fixture
def room(tmp_path, monkeypatch):
    """New texts of both kinds; the current directory."""
    monkeypatch.chdir(tmp_path)
    for name, lines in ("new.en", ENGLISH), ("new.ne", NEPALI), ("new.txt", STORY):
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


def losses(run="run"):
    records = map(json.loads, Path(run, "log.jsonl").read_text().splitlines())
    return [record["validation"]["loss"] for record in records if "validation" in record]


def settings(directory):
    return asdict(load_model(model_directory(directory)).config)


def test_a_translator_keeps_its_vocabulary_and_its_shape_and_learns(room, tiny_model, capsys):
    assert obey(f"{PAIRS} --start {tiny_model} --run run --model.residual-dropout 0.0625 --training.updates 60") == 0
    said = capsys.readouterr().out
    assert settings("run") == settings(tiny_model) | {"residual_dropout": 0.0625}
    best = model_directory("run")
    assert (best / "tokenizer.model").read_bytes() == (tiny_model / "tokenizer.model").read_bytes()
    metrics = read_metrics(best)
    before, after = metrics["validation_beam_1_before"], metrics["validation_beam_1"]
    assert before["chrf"] < after["chrf"]
    assert f"before: exact match {before['exact_match']:.1f} %, chrF {before['chrf']:.1f}" in said
    assert losses()[-1] < losses()[0]
    assert toolkit.load("run").translate(ENGLISH[0])


def test_wider_models_take_smaller_steps_and_only_our_tokenizers_sample(room, tiny_model):
    found = translation.Settings.defaults({"start": str(tiny_model)})
    assert (found.training.learning_rate, found.training.subword_alpha) == (3e-3, 0.2)
    assert tuned(found.training, GPTConfig(d_model=512)).learning_rate == 1.9e-4
    marian(room, tiny_model)
    import_model("theirs", "start")
    assert translation.Settings.defaults({"start": "start"}).training.subword_alpha == 0


def test_what_begins_as_a_model_begins_there(room, tiny_model, tiny_gpt):
    """After one update with hardly any learning rate, it is still the model that it began with."""
    once = "--training.updates 1 --training.validate-every 1 --training.learning-rate 1e-30 --training.weight-decay 0"
    for command, start in (PAIRS, tiny_model), (TEXTS, tiny_gpt):
        name = Path(start).name
        assert obey(f"{command} --start {start} --run {name} {once}") == 0
        before, after = (read_arrays(model_directory(each) / "model.safetensors") for each in (start, name))
        assert all(np.abs(before[key] - after[key]).max() < 1e-28 for key in before)


@pytest.mark.parametrize("kind", ["pairs", "texts"])
def test_it_is_repeated_and_resumed_with_the_same_bits_and_another_start_is_refused(
    room, make_model, make_gpt, capsys, kind
):
    command, make = {"pairs": (PAIRS, make_model), "texts": (TEXTS, make_gpt)}[kind]
    make(room / "start")
    command += " --start start --training.updates 8 --training.validate-every 4 --training.schedule constant"
    assert obey(f"{command} --run whole") == 0
    assert obey(f"{command} --run run --training.updates 4") == 0
    assert obey(f"{command} --run run --resume") == 0
    whole, resumed = (read_arrays(Path(run, "step-000008", "model.safetensors")) for run in ("whole", "run"))
    assert all(np.array_equal(whole[key], resumed[key]) for key in whole)
    edit(room / "start", format=2)  # the same model
    assert obey(f"{command} --run run --resume") == 0
    weights = room / "start" / "model.safetensors"
    (kept := bytearray(weights.read_bytes()))[-1] ^= 1
    weights.write_bytes(kept)
    capsys.readouterr()
    assert obey(f"{command} --run run --resume") == 2
    assert "other data (the data has changed since: start)" in capsys.readouterr().err


REFUSED = {
    "a width": (
        f"{PAIRS} --start MODEL --model.d-model 32",
        "which --start gives, has a shape of its own: leave out --mod",
    ),
    "a size of the vocabulary": (f"{TEXTS} --start GPT --model.vocab-size 9", "leave out --model.vocab-size"),
    "two settings": (f"{TEXTS} --start GPT --model.bias --model.no-tie", "leave out --model.bias, --model.tie"),
    "a preset": (f"{TEXTS} --start GPT --preset chat", "--start has a shape of its own: leave out --preset"),
    "a tokenizer": (
        f"{TEXTS} --start GPT --tokenizer bpe",
        "vocabulary of a model that is given with --start is its own",
    ),
    "a tokenizer of pairs": (
        f"{PAIRS} --start MODEL --tokenizer bpe",
        "given with --start is its own: leave out --tok",
    ),
    "a language model to translate": (f"{PAIRS} --start GPT", "is a language model, which translates nothing"),
    "a translator to write": (f"{TEXTS} --start MODEL", "is a translator, which continues no text"),
    "no model": (f"{PAIRS} --start nowhere", "there is no model 'nowhere': give the path of a directory, or a name ("),
    "no name": (f"{PAIRS} --start", "--start needs a value"),
    "languages that en_ne has not": (f"{PAIRS} --data en_ne --target-column de", "en_ne has the columns en and ne"),
}


@pytest.mark.parametrize(("command", "words"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused_in_a_sentence(room, tiny_model, tiny_gpt, capsys, command, words):
    assert obey(command.replace("MODEL", str(tiny_model)).replace("GPT", str(tiny_gpt)) + " --run run") == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not Path("run").exists()


def test_a_model_of_another_kind_of_text_is_refused_what_it_cannot_learn(room, make_gpt, capsys):
    """One whose texts begin with no mark has no prompt to be read, and one without an end mark no documents."""
    make_gpt(room / "unmarked", begin=False)
    assert obey(f"{TEXTS} --start unmarked --run run --first-line read") == 2
    assert "--first-line read is for models whose texts begin with <s>" in capsys.readouterr().err
    model, endless = load_model(make_gpt(room / "made", output_bias=True)), room / "endless"
    model.output.bias.data[EOS] = ABSENT
    (room / "made").rename(endless)
    save_model(model, endless)
    assert obey(f"{TEXTS} --start endless --run run") == 2
    assert "endless has no token that ends a text: add --documents none" in capsys.readouterr().err
    assert not Path("run").exists()


def test_a_model_that_converses_still_does(room, make_gpt, capsys):
    make_gpt(room / "start", template="control")
    assert obey(f"{TEXTS} --start start --run run --training.updates 1") == 0
    assert "talk with it: toolkit chat --model run" in capsys.readouterr().out
    assert toolkit.load("run").chat()


def test_what_the_vocabulary_lacks_is_counted(room, make_gpt, capsys):
    make_gpt(room / "start")
    Path("new.txt").write_text("She eats Ω.\nHe drinks Ω.\n", encoding="utf-8")
    assert obey(f"{TEXTS.replace('--quiet', '')} --start start --run run") == 0
    said = capsys.readouterr().err
    assert "training text: 4 of " in said
    assert "are single bytes of characters not in the vocabulary" in said


# Models from elsewhere


def marian(room, tiny_model):
    make_marian(room / "theirs", tiny_model / "tokenizer.model")
    return PAIRS


def llama(room, _):
    make_llama(room / "theirs", [*STORY, *ENGLISH])
    return TEXTS


def gpt2(room, _):
    pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    make_gpt2(room / "theirs", content())
    return TEXTS


@pytest.mark.parametrize("make", [marian, llama, gpt2])
def test_a_model_from_elsewhere_goes_back_as_what_it_was(room, tiny_model, make):
    """In its class, with its tokens in their order, its tokenizer's files, and its authors' way of decoding."""
    command = make(room, tiny_model)
    edit(room / "theirs", num_beams=3, length_penalty=0.5)
    write_by_transformers(command)
    name = import_model("theirs", "start").name
    assert obey(f"{command} --start start --run no --training.subword-alpha 0.1") == 2  # in a sentence, before training
    assert obey(f"{command} --start start --run run --training.keep 2") == 0
    assert losses()[-1] < losses()[0]
    run, start = toolkit.load("run"), toolkit.load("start")
    assert settings("run") == settings("start")
    assert (model_directory("run") / "tokenizer.json").read_bytes() == Path("start", "tokenizer.json").read_bytes()
    if command == TEXTS:
        first = RaggedStore(Path("run", "data", "train"))[0].tolist()
        assert first == [BOS] * start.model.config.begin + start.tokenizer.encode(STORY[0]) + [EOS]
        pieces, _ = stream_encoder(start.tokenizer).encode(["She eats", " rice."])  # as a long text is cut
        assert pieces.tolist() == start.tokenizer.encode("She eats rice.")
    assert export_model("run", "there").name == export_model("start", "untouched").name == name
    for path in Path("untouched").iterdir():
        if path.name != "model.safetensors":
            assert Path("there", path.name).read_bytes() == path.read_bytes()
    assert obey("average run --output mean") == 0
    assert export_model("mean", "mean-there").name == name
    for directory in "there", "mean-there":
        decoding = json.loads(Path(directory, "generation_config.json").read_text())
        assert (decoding["num_beams"], decoding["length_penalty"]) == (3, 0.5)
    assert import_model("there", "back").name == name
    back = toolkit.load("back")
    assert back.tokenizer.rows == start.tokenizer.rows
    assert np.array_equal(logits(back), logits(run))
    assert greedy(back) == greedy(run)
    compare_with_transformers(run)
    compare_with_ctranslate2(run)


def write_by_transformers(command):
    """Have the files of the model written by the library itself, where it is installed."""
    with suppress(ModuleNotFoundError):
        import transformers

        kind = transformers.AutoModelForSeq2SeqLM if command == PAIRS else transformers.AutoModelForCausalLM
        model = kind.from_pretrained("theirs")
        model.generation_config.update(num_beams=3, length_penalty=0.5)
        model.save_pretrained("theirs")


@pytest.mark.parametrize("name", ["m2m100", "nllb"])
def test_of_a_model_that_knows_languages_each_side_begins_with_its_own(room, tiny_model, capsys, name):
    if name == "nllb":
        pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    import_model(FIXTURES / name, "start")
    assert obey(f"{PAIRS} --start start --run run --source-language en") == 2  # and to which?
    assert "--target-language" in capsys.readouterr().err
    assert obey(f"{PAIRS} --start start --run run --source-language en --target-language ne") == 0
    assert losses()[-1] < losses()[0]
    run, known = toolkit.load("run"), toolkit.load("start").tokenizer.languages
    languages = [known.ids[known.code(code)] for code in ("en", "ne")]
    stores = [RaggedStore(Path("run", "data", "ids", f"train.{side}")) for side in ("source", "target")]
    assert [{ids[0] for ids in store} for store in stores] == [{language} for language in languages]
    assert [run.language("source"), run.language("target")] == languages
    assert export_model("run", "there").name == "M2M100ForConditionalGeneration"
    import_model("there", "back")
    assert np.array_equal(logits(toolkit.load("back")), logits(run))
    compare_with_transformers(run)


def test_languages_are_for_models_that_have_some(room, tiny_model, capsys):
    assert obey(f"{PAIRS} --start {tiny_model} --run run --source-language en") == 2
    assert "has no languages to choose" in capsys.readouterr().err
    assert obey(f"{PAIRS} --run run --target-language en") == 2
    assert "are for a model that --start gives" in capsys.readouterr().err


def texts_of(model):
    """Sources and targets as our ids; those of a language model have no sources."""
    if isinstance(model, Translator):
        sources = sentence_ids(model.tokenizer.source, ENGLISH, language=model.language("source"))
        return sources, sentence_ids(model.tokenizer, NEPALI, language=model.language("target"))
    return None, [model.tokenizer.encode(text) for text in STORY]


def logits(model):
    """Scores of all tokens after every token of given texts, tokens in the order of the other library."""
    sources, texts = texts_of(model)
    inputs = [np.array([BOS] * (sources is not None or model.model.config.begin) + ids) for ids in texts]
    columns, tape = Vocabulary(tuple(model.tokenizer.rows)).ours(range(max(model.tokenizer.rows) + 1)), Tape()
    if sources is None:
        x = model.model.read(np.concatenate(inputs), Rows(np.array([*map(len, inputs)])), tape)
    else:
        x = model.model.forward(
            translation_batch(*([np.array(ids) for ids in side] for side in (sources, texts))), tape
        )
    return model.model.output.logits(x, tape)[:, columns]


def greedy(model, count=9):
    """The ids that it writes by itself, in our order, without the end mark."""
    sources, texts = texts_of(model)
    if sources is not None:
        settings = GenerationConfig(max_new_tokens=count, forced_eos="none")
        found = generate(model.model, sources, settings, forced_bos=model.language("target"))
    else:
        settings = ContinuationConfig(do_sample=False, max_new_tokens=count, forced_eos="none")
        found = generate(model.model, [ids[:3] for ids in texts], settings)
    return [[index for index in group[0].ids if index != EOS] for group in found]


def compare_with_transformers(run):
    """Logits to 1e-5 of the largest, and the same greedy outputs, by the ids that it has there."""
    torch = pytest.importorskip("torch", reason="PyTorch, of the extra bench, is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers, of the extra bench, is not installed")
    sources, texts = texts_of(run)
    kind = transformers.AutoModelForCausalLM if sources is None else transformers.AutoModelForSeq2SeqLM
    theirs, rows = kind.from_pretrained("there", dtype=torch.float32).eval(), run.tokenizer.rows

    def ids(ours, *before):
        return torch.tensor([[*before, *(rows[index] for index in ours)]])

    begin = [rows[BOS]] if sources is not None or run.model.config.begin else []
    found, written = [], []
    for number, text in enumerate(texts):
        settings = {"num_beams": 1, "max_new_tokens": 9, "max_length": None, "do_sample": False}
        with torch.no_grad():
            if sources is None:
                found.append(theirs(ids(text, *begin)).logits[0])
                prompt = ids(text[:3], *begin)
                written.append(theirs.generate(prompt, **settings)[0, prompt.shape[1] :].tolist())
            else:
                source = ids([*sources[number], EOS])
                found.append(theirs(input_ids=source, decoder_input_ids=ids(text, *begin)).logits[0])
                written.append(theirs.generate(source, **settings)[0, 1:].tolist())
    found, ours = torch.cat(found).numpy(), logits(run)
    assert np.abs(found - ours).max() <= 1e-5 * np.abs(ours).max()
    assert [[index for index in each if index != rows[EOS]] for each in written] == [
        [rows[index] for index in each] for each in greedy(run)
    ]


def compare_with_ctranslate2(run):
    """The same greedy outputs, by the tokens that it has there."""
    ctranslate2 = pytest.importorskip("ctranslate2", reason="CTranslate2, of the extra bench, is not installed")
    export_model("run", "fast", "ctranslate2")
    sources, texts = texts_of(run)
    never = [[token] for index, token in enumerate(SPECIAL_TOKENS) if index != EOS]
    rules = {"beam_size": 1, "suppress_sequences": never, "disable_unk": True}
    threads = {"inter_threads": 1, "intra_threads": 1, "compute_type": "float32"}

    def tokens(ours, *before):
        return [*before, *map(run.tokenizer.piece, ours)]

    if sources is None:
        begin = [SPECIAL_TOKENS[BOS]] * run.model.config.begin
        rules |= {"max_length": 9, "min_length": 0, "include_prompt_in_result": False}
        found = ctranslate2.Generator("fast", **threads).generate_batch(
            [tokens(ids[:3], *begin) for ids in texts], **rules
        )
        written = [each.sequences[0] for each in found]
    else:
        rules |= {"max_decoding_length": 9, "min_decoding_length": 0}
        found = ctranslate2.Translator("fast", **threads).translate_batch([*map(tokens, sources)], **rules)
        written = [each.hypotheses[0] for each in found]
    assert written == [*map(tokens, greedy(run))]


def test_an_m2m100_is_taught_in_a_direction_that_it_keeps(room, capsys):
    """It is the direction of the run's models, and of what they are in transformers."""
    import_model(LANGUAGES, "start")
    assert obey(f"{PAIRS} --start start --run run --training.updates 30 --target-language ne") == 0
    tuned = toolkit.load("run")
    assert (tuned.tokenizer.languages.source, tuned.tokenizer.languages.target) == ("en", "ne")
    source, target = (RaggedStore(Path("run/data/ids") / f"train.{side}") for side in ("source", "target"))
    ids = tuned.tokenizer.languages.ids
    assert {each[0] for each in source} == {ids["en"]}
    assert {each[0] for each in target} == {ids["ne"]}
    assert losses()[-1] < losses()[0]
    assert tuned.translate(ENGLISH) == tuned.translate(ENGLISH, source_language="en", target_language="ne")
    export_model("run", "out")
    assert json.loads(Path("out/generation_config.json").read_text())["forced_bos_token_id"] == 173
    import_model("out", "again")
    assert toolkit.load("again").translate(list(ENGLISH)) == tuned.translate(list(ENGLISH))
