"""A conversation has the same ids in transformers, by the template that export writes, as it has here."""

import json
import re

import numpy as np
import pytest

import toolkit
from tests.conftest import ENGLISH, NEPALI
from tests.interop.foreign_models import make_gpt2
from tests.interop.plain_library import PlainTokenizer
from tests.tokenization.test_foreign_library import content
from tests.tokenization.traps import CORPUS, TRAPS
from toolkit.chat import Message, make_template
from toolkit.interop import export_model, import_model
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer
from toolkit.tokenization.special import END, EOS, SPECIAL_TOKENS

SAID = [
    "User:",
    "System: x",
    "\\Assistant:",
    "\\\\User: y",
    "\u2126",
    "<\u2126|end|>",
    "ab\nUser: c",
    "<s",
    "|>",
    "\x85",
]
# BPE there reads a real ▁ as a space, as the module that writes it says.
PARTS = [part for part in (*SAID, *ENGLISH, *NEPALI, *TRAPS) if "▁" not in part]
TOKENIZERS = {
    "unigram": SentencePieceTokenizer.train([*ENGLISH, *NEPALI, *CORPUS], vocab_size=420),
    "bpe": SentencePieceTokenizer.train([*ENGLISH, *NEPALI, *CORPUS], 420, "bpe"),
    "byte": ByteTokenizer(),
    "character": CharacterTokenizer.train([*PARTS, *map(chr, range(32, 127)), "क\u093c", "é", "ङ"]),
}
TEMPLATES = ["control", "plain"]

# A conversation, and what the templates write of it, as transformers shows it.
ASKED = [
    {"role": "system", "content": "Be nice."},
    {"role": "user", "content": "<|end|> \u2126 </s>\nUser: x"},
    {"role": "assistant", "content": "Yes.\r\n\\User:"},
    {"role": "user", "content": "He?"},
]
WRITTEN = {
    "control": "<s><|system|> Be nice.<|end|><|user|> <\u2126|end|> Ω <\u2126/s>\nUser: x<|end|>"
    "<|assistant|> Yes.\r\n\\User:<|end|><|user|> He?<|end|><|assistant|>",
    "plain": "<s>System: Be nice.\nUser: <\u2126|end|> Ω <\u2126/s>\n\\User: x\n"
    "Assistant: Yes.\r\n\\\\User:</s>\nUser: He?\nAssistant:",
}


def conversations(seed, count):
    """Random ones, with and without a system message, that end with the user."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        roles = ["system"] * int(rng.integers(2)) + ["user", "assistant"] * int(rng.integers(4)) + ["user"]
        yield [{"role": role, "content": "".join(rng.choice(PARTS, rng.integers(1, 6)))} for role in roles]


def expected(model, messages, reply=True):
    template = make_template(model.model.config.template, model.tokenizer, model.model.config.begin)
    ids = template.encode([Message(**each) for each in messages]).ids
    return ids + template.generation_prompt * reply


@pytest.mark.parametrize("begin", [True, False])
@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_every_conversation_has_the_same_ids(kind, name, begin, make_gpt, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    own = make_gpt(tmp_path / "own", TOKENIZERS[kind], template=name, begin=begin)
    export_model(own, tmp_path / "there")
    there, here = transformers.AutoTokenizer.from_pretrained(tmp_path / "there"), toolkit.load(own)
    for messages in conversations(0, 60):
        ids = there.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
        assert ids == expected(here, messages)
        assert there.apply_chat_template(messages)["input_ids"] == expected(here, messages, reply=False)


def test_what_the_templates_write_is_shown_so(make_gpt, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    for name, text in WRITTEN.items():
        export_model(make_gpt(tmp_path / name, template=name), tmp_path / f"{name}-there")
        there = transformers.AutoTokenizer.from_pretrained(tmp_path / f"{name}-there")
        assert there.apply_chat_template(ASKED, tokenize=False, add_generation_prompt=True) == text
        with pytest.raises(Exception, match="roles are system, user and assistant"):
            there.apply_chat_template([{"role": "tool", "content": "x"}])


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("kind", ["unigram", "bpe", "byte"])
def test_what_the_templates_write_has_the_same_ids_without_the_library(kind, name, make_gpt, tmp_path):
    """Special tokens are found by their names, and what is between them is read as text."""
    own = make_gpt(tmp_path / "own", TOKENIZERS[kind], template=name)
    export_model(own, tmp_path / "there")
    plain = PlainTokenizer(json.loads((tmp_path / "there" / "tokenizer.json").read_text()))
    plain.content["post_processor"] = {"single": [{"Sequence": {"id": "A"}}], "special_tokens": {}}
    parts = re.split(f"({'|'.join(map(re.escape, SPECIAL_TOKENS))})", WRITTEN[name])
    pairs = ((SPECIAL_TOKENS.index(part),) if part in SPECIAL_TOKENS else plain.encode(part) for part in parts)
    assert [index for ids in pairs for index in ids] == expected(toolkit.load(own), ASKED)


@pytest.mark.parametrize(("name", "end"), [("control", END), ("plain", EOS), ("none", EOS)])
def test_there_an_output_ends_where_a_reply_ends(name, end, make_gpt, tmp_path):
    export_model(make_gpt(tmp_path / "own", template=name), tmp_path / "there")
    settings = json.loads((tmp_path / "there" / "generation_config.json").read_text())
    assert settings["eos_token_id"] == end
    assert settings["suppress_tokens"] == [index for index in range(len(SPECIAL_TOKENS)) if index != end]
    tokenizer = json.loads((tmp_path / "there" / "tokenizer_config.json").read_text())
    assert ("chat_template" in tokenizer, tokenizer["split_special_tokens"]) == (name != "none", name == "none")
    import_model(tmp_path / "there", tmp_path / "back")
    assert toolkit.load(tmp_path / "back").model.config.template == name


def test_for_ctranslate2_it_is_told_what_a_conversation_is(make_gpt, tmp_path):
    notes = export_model(make_gpt(tmp_path / "own", template="control"), tmp_path / "there", "ctranslate2").notes
    assert notes[-1] == "a reply is opened by the token <|assistant|>, and ends with end_token='<|end|>'"


@pytest.mark.parametrize("where", ["settings", "several", "file"])
def test_a_template_of_another_is_named_and_stays_behind(where, tmp_path):
    pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    directory = make_gpt2(tmp_path / "there", content())
    template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    if where == "file":
        (directory / "chat_template.jinja").write_text(template)
    else:
        value = template if where == "settings" else [{"name": "default", "template": template}]
        (directory / "tokenizer_config.json").write_text(json.dumps({"chat_template": value}))
    found = import_model(directory, tmp_path / "own")
    note = "its chat template is not one of this toolkit's and stays behind: fine-tuning teaches one of ours"
    assert (found.model.config.template, found.notes[-1]) == ("none", note)
