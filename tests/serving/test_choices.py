"""Texts as they are written: whole letters, up to a stop string, and tokens whose texts, joined, are the same."""

import random

import pytest

pytest.importorskip("starlette")

from toolkit.decoding.continuous import Token
from toolkit.serving.choices import Choice, alternative_text, completion_logprobs, token_bytes
from toolkit.tokenization import Detokenizer
from toolkit.tokenization.chat_template import ChatTemplate, Message
from toolkit.tokenization.special import END, EOS

TEXTS = ("नमस्ते, तपाईंलाई कस्तो छ? क्षेत्र ज्ञान श्री", "a👨‍👩‍👧b 🇳🇵 é café", "one\n\\User: two\n\nAssistant: three", "x")


def read(choice, ids, random, reason="length"):
    """Push ids, and take now and then -> the parts, and the tokens in the parts."""
    parts, tokens = [], []
    for each in ids:
        choice.push(Token(each, -float(each), []))
        if random.random() < 0.7:
            part, some = choice.take()
            parts.append(part)
            tokens += some
            # Tokens are told when all of their text has been.
            assert "".join(parts).startswith("".join(text for text, _ in tokens))
    choice.end(reason)
    part, some = choice.take()
    return [*parts, part], tokens + some


@pytest.mark.parametrize("kind", ["unigram", "bytes", "bpe"])
@pytest.mark.parametrize("text", TEXTS)
def test_parts_and_tokens_joined_are_the_text(tokenizers, kind, text):
    tokenizer = tokenizers[kind]
    ids = tokenizer.encode(text)
    for seed in range(5):
        choice = Choice(tokenizer, EOS)
        parts, tokens = read(choice, [*ids, EOS], random.Random(seed))
        assert "".join(parts) == "".join(each for each, _ in tokens) == tokenizer.decode(ids) == text
        assert [token.id for _, token in tokens] == [*ids, EOS]
        assert choice.finish_reason == "stop"
        assert bytes(byte for each, token in tokens for byte in token_bytes(tokenizer, each, token.id)) == text.encode()


def test_a_letter_is_whole_in_every_part(tokenizers):
    tokenizer, text = tokenizers["bytes"], TEXTS[0]
    choice, parts = Choice(tokenizer, EOS), []
    for each in tokenizer.encode(text):
        choice.push(Token(each, 0.0, []))
        parts.append(choice.take()[0])
    choice.end("length")
    parts.append(choice.take()[0])
    letters = ["न", "म", "स्ते,", " ", "त", "पा", "ईं", "ला", "ई "]
    assert [each for each in parts if each][: len(letters)] == letters


def test_bytes_that_are_no_character_are_told(tokenizers):
    tokenizer = tokenizers["bytes"]
    ids = tokenizer.encode("क")
    choice = Choice(tokenizer, EOS)
    parts, tokens = read(choice, [*ids[:2], *ids, *ids[:1]], random.Random(0))
    text = tokenizer.decode([*ids[:2], *ids, *ids[:1]])
    assert text == "��क�"
    assert "".join(parts) == "".join(each for each, _ in tokens) == text


@pytest.mark.parametrize("kind", ["unigram", "bytes"])
@pytest.mark.parametrize("stops", [["कस्तो"], ["लाई क", "zzz"], ["न"], ["श्री"], ["ज्ञ", "त्र ज्ञान"], ["छ? क्षे"]])
def test_stop_strings_across_tokens_end_text_and_tokens(tokenizers, kind, stops):
    tokenizer, text = tokenizers[kind], TEXTS[0]
    expected = text[: min(text.find(stop) for stop in stops if stop in text)]
    for seed in range(5):
        choice = Choice(tokenizer, EOS, stops)
        parts, tokens = read(choice, tokenizer.encode(text), random.Random(seed))
        assert "".join(parts) == "".join(each for each, _ in tokens) == expected
        assert choice.finish_reason == "stop"


def test_a_stop_string_that_does_not_come_changes_nothing(tokenizers):
    tokenizer, text = tokenizers["unigram"], TEXTS[0]
    choice = Choice(tokenizer, EOS, ["श्रीमान"])
    parts, tokens = read(choice, tokenizer.encode(text), random.Random(0))
    assert "".join(parts) == "".join(each for each, _ in tokens) == text
    assert choice.finish_reason == "length"


@pytest.mark.parametrize("name", ["control", "plain"])
@pytest.mark.parametrize("text", TEXTS)
def test_replies_are_read_as_the_template_reads_them(tokenizers, name, text):
    tokenizer = tokenizers["bytes"]
    template = ChatTemplate(name, tokenizer, begin=False)
    ids = template.message(Message("assistant", text))[len(template.generation_prompt) :]
    for seed in range(5):
        choice = Choice(tokenizer, template.end, (), template)
        parts, tokens = read(choice, ids, random.Random(seed))
        assert "".join(parts) == "".join(each for each, _ in tokens) == text
    assert template.end in (END, EOS)


def test_random_ids_give_the_text_of_the_library(tokenizers):
    draw = random.Random(0)
    for kind, tokenizer in tokenizers.items():
        for _ in range(50):
            ids = [draw.randrange(8, tokenizer.vocab_size) for _ in range(draw.randrange(1, 30))]
            stops = ["e", "अ", " t"] if draw.random() < 0.5 else []
            alone = Detokenizer(tokenizer, stops)
            expected = "".join(alone.parts(ids))
            parts, tokens = read(Choice(tokenizer, EOS, stops), ids, draw)
            assert "".join(parts) == "".join(each for each, _ in tokens) == expected, (kind, ids)


def test_names_of_the_best_tokens_are_told_apart(tokenizers):
    tokenizer = tokenizers["bytes"]
    first, second, third = tokenizer.encode("क")
    choice = Choice(tokenizer, EOS)
    best = [(first, -0.5), (second, -1.0), (EOS, -2.0), (tokenizer.encode("a")[0], -3.0)]
    choice.push(Token(first, -0.5, best))
    choice.push(Token(second, -1.0, best))
    choice.push(Token(third, -4.0, best))
    choice.push(Token(EOS, -2.0, best))
    found = completion_logprobs(choice, choice.take()[1], 10, 3)
    assert found["tokens"] == ["", "", "क", ""]
    assert found["text_offset"] == [10, 10, 10, 11]
    assert found["token_logprobs"] == [-0.5, -1.0, -4.0, -2.0]
    names = [tokenizer.piece(first), tokenizer.piece(second), "</s>"]
    assert found["top_logprobs"][0] == dict(zip(names, (-0.5, -1.0, -2.0), strict=True))
    assert found["top_logprobs"][2] == {**dict(zip(names, (-0.5, -1.0, -2.0), strict=True)), "क": -4.0}
    assert max(found["top_logprobs"][0].values()) == found["token_logprobs"][0]
    assert alternative_text(tokenizer, EOS) == "</s>"
    assert token_bytes(tokenizer, "</s>", EOS) == []
