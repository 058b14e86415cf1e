"""The conversations: the rule of style holds, nothing held out is taught."""

import json
import re
import unicodedata
from collections import Counter, defaultdict
from itertools import chain, islice, pairwise

import pytest

from data.chat import generate, style
from data.chat.acts import social
from data.chat.acts.translating import FOLLOW_UPS
from data.chat.dialogue import BLUNT, BLUNT_NE, MANNERS, POLITE
from data.chat.dialogue_deck import capitals, read
from data.chat.dialogue_program import ASKED, LONGEST, conversations
from data.chat.dialogue_prompts import LATE, TEST_SIZES
from data.chat.names import split_of
from data.en_ne.surface import fold, fold_hard, fold_nepali
from toolkit.data.embedded import CORPORA, embedded
from toolkit.evaluation.replies import Style

HERE = CORPORA / "chat"
TRAIN = ("train-1.jsonl", "train-2.jsonl")
OPERATIONS = {"plus": "+", "minus": "-", "times": "*"}
SUM = re.compile(r"(\d+) (plus|minus|times) (\d+) is (\d+)\.")


@pytest.fixture(scope="module", autouse=True)
def _written():
    embedded("chat")


@pytest.fixture(scope="module")
def files():
    """File name -> its records."""
    return {
        name: [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]
        for name in generate.FILES
    }


@pytest.fixture(scope="module")
def made():
    """Training conversations with the exchanges that they are made of."""
    return list(islice(conversations("train"), 800))


def replies(messages: list[dict]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "assistant"]


# The files


def test_sizes(files):
    assert {name: len(records) for name, records in files.items()} == {
        n: size for n, (_, size) in generate.FILES.items()
    }
    # They are written on first use and not committed; that they are small keeps the first use short.
    assert all((HERE / name).stat().st_size < 13 * 10**6 for name in TRAIN)
    assert (HERE / "preferences.train.jsonl").stat().st_size < 5e6


@pytest.mark.parametrize("name", generate.FILES)
def test_roles_take_turns(files, name):
    for record in files[name]:
        messages = record.get("messages") or record["prompt"]
        spoken = messages[messages[0]["role"] == "system" :]
        roles = ["user", "assistant"] * len(spoken)
        assert [message["role"] for message in spoken] == roles[: len(spoken)]
        taught = name in (*TRAIN, "valid.jsonl")
        assert spoken[-1]["role"] == ("assistant" if taught else "user")
        assert all(message["content"].strip() == message["content"] != "" for message in messages)


def test_the_text_is_normal_and_no_pattern_is_left_in_it(files):
    for name, records in files.items():
        assert unicodedata.is_normalized("NFC", (HERE / name).read_text(encoding="utf-8"))
        for message in chain.from_iterable(record.get("messages") or record["prompt"] for record in records):
            assert not {*"{}"} & {*message["content"]}, message


def test_no_conversation_is_too_long(files):
    for record in chain(*(files[name] for name in TRAIN)):
        assert sum(len(message["content"]) for message in record["messages"]) <= LONGEST


# The rule of style


def test_the_manners_are_those_of_the_lists():
    openings, closings = (set(chain.from_iterable(tone[side] for tone in MANNERS.values())) for side in (0, 1))
    assert openings == set(style.OPENINGS)
    assert closings == set(style.CLOSINGS)
    assert {*BLUNT[0], *BLUNT_NE[0]} == set(style.BLUNT_OPENINGS)
    assert {*BLUNT[1], *BLUNT_NE[1]} == set(style.BLUNT_CLOSINGS)


def test_the_toolkit_judges_by_the_same_rule(files):
    rule = Style.read(HERE / "style.json")
    for record in files["preferences.train.jsonl"][::5]:
        for reply in record["ranking"]:
            assert rule.is_polite(reply) == style.is_polite(reply)
            assert rule.core(reply) == style.core(reply)


def test_a_reply_is_its_parts(files):
    for record in files[TRAIN[0]][::3]:
        for reply in replies(record["messages"]):
            parts = style.parse(reply)
            assert " ".join(part for part in parts if part) == reply
            assert style.core(parts.core) == parts.core, "a core must not look like manners"


def test_manners_alone_are_a_core():
    for text in (*style.OPENINGS, *style.CLOSINGS):
        assert style.parse(text).core == text
        assert not style.is_polite(text)


def test_every_reply_is_right_and_a_coin_decides_its_style(made):
    """Unless the system message asks for a style."""
    polite, total = Counter(), Counter()
    for messages, exchanges in made:
        asked = asked_of_replies(messages)
        for reply, exchange in zip(replies(messages), exchanges, strict=True):
            assert style.core(reply) in exchange.core
            if asked == "brief":
                assert reply == exchange.core.short
            if asked == "name" and (told := re.search("(?:Hello, |Your name is )([A-Z][a-z]+)", reply)):
                assert f", {told[1]}" in reply
            if not asked:
                total[exchange.kind] += 1
                polite[exchange.kind] += style.is_polite(reply)
    for kind, count in total.items():  # four standard deviations
        assert abs(polite[kind] - POLITE * count) < 4 * (count * POLITE * (1 - POLITE)) ** 0.5 + 1, kind


def asked_of_replies(messages: list[dict]) -> str:
    """What the system message asks of every reply."""
    first = messages[0]["content"] if messages[0]["role"] == "system" else ""
    patterns = {each: asked for asked, texts in ASKED.items() for each in texts}
    for pattern, asked in patterns.items():
        if re.fullmatch(re.escape(pattern).replace(re.escape("{v}"), r"\w+"), first):
            return asked
    return ""


def test_the_style_says_nothing_about_the_next(made):
    """Polite replies follow polite and curt ones alike."""
    after = defaultdict(list)
    for messages, _ in made:
        if not asked_of_replies(messages):
            styles = [style.is_polite(reply) for reply in replies(messages)]
            for one, next_one in pairwise(styles):
                after[one].append(next_one)
    assert abs(sum(after[True]) / len(after[True]) - sum(after[False]) / len(after[False])) < 0.08


# What is taught


def test_the_shares(made):
    total = Counter(exchange.kind for _, exchanges in made for exchange in exchanges)
    share = {kind: count / total.total() for kind, count in total.items()}
    assert 0.2 < share["translation"] < 0.3
    assert 0.13 < share["recall"] + share["correction"] < 0.26  # asked for, corrected or not
    systems = sum(messages[0]["role"] == "system" for messages, _ in made) / len(made)
    nepali = sum(all(re.search("[ऀ-ॿ]", reply) for reply in replies(messages)) for messages, _ in made) / len(made)
    assert 0.43 < systems < 0.57
    assert 0.12 < nepali < 0.26  # some English conversations have translations only


def test_what_is_recalled_was_said(made):
    """By the user, or in the system message; and it was not corrected since."""
    for messages, exchanges in made:
        spoken = " ".join(m["content"] for m in messages[:1] if m["role"] == "system").lower()
        for exchange in exchanges:
            if exchange.kind == "recall" and asked_of_replies(messages) != "nepali":  # there it may be translated
                answer = re.sub(r"^(in|from|you) |मा।$| वर्ष।$|[.।]$", "", exchange.core.short.lower())
                assert answer in spoken, exchange
            spoken += " " + exchange.user.lower()


def test_no_two_social_acts_have_the_same_wording():
    for table in (social.ENGLISH, social.NEPALI):
        wordings = Counter(fold(text) for act in table for text in set(map(fold, act.says)))
        assert max(wordings.values()) == 1, wordings.most_common(1)


# What is held out


def test_no_name_of_the_questions_is_taught(files):
    texts = ((HERE / name).read_text(encoding="utf-8") for name in (*TRAIN, "preferences.train.jsonl", "base.txt"))
    taught = set().union(*(re.findall(r"\w+", text) for text in texts))
    for name, split in ("test.jsonl", "test"), ("valid.questions.jsonl", "valid"):
        names = {record["accept"][0].rstrip(".") for record in files[name] if record["kind"].startswith("unseen")}
        assert len(names) > 90
        assert {split_of(each) for each in names} == {split}
        assert not names & taught


def test_no_sentence_of_the_translation_test_is_taught(files):
    held = [pair for split in ("valid", "test") for pair in read(split)]
    english, nepali = {fold_hard(pair.english) for pair in held}, {fold_nepali(pair.nepali) for pair in held}
    for record in chain(*(files[name] for name in TRAIN)):
        before = ""
        for message in record["messages"]:
            text = message["content"]
            if message["role"] == "assistant":
                assert fold_nepali(style.core(text)) not in nepali, message
            else:
                asked = [*re.findall("[\"“'](.+)[\"”']", text), text.partition(": ")[2]]
                for sentence in asked + [before] * (text in FOLLOW_UPS):
                    assert fold_hard(sentence) not in english, message
                before = text


# The test and the preferences


def test_the_test_has_every_kind(files):
    both = {kind + when: size for when in ("", LATE) for kind, size in TEST_SIZES.items()}
    for name in ("test.jsonl", "valid.questions.jsonl"):
        assert Counter(record["kind"] for record in files[name]) == both


def test_accepted_answers(files):
    """No manners; what is recalled was said, a sum is right, a translation is the corpus's."""
    translations = {fold_nepali(pair.nepali) for pair in read("test")}
    for record in files["test.jsonl"]:
        kind, accept = record["kind"].removesuffix(LATE), record["accept"]
        assert len(set(accept)) == len(accept) > 0
        assert kind == "outside" or all(style.core(answer) == answer for answer in accept)
        before = " ".join(message["content"] for message in record["messages"][:-1])
        if kind in ("recall", "unseen", "place", "work", "several", "correction"):
            assert re.sub(r"^(In|From|You) |\.$", "", accept[0]).lower() in before.lower(), record
            assert accept[0].rstrip(".").split()[-1].lower() in accept[1 % len(accept)].lower()
        elif kind == "translation":
            assert len(accept) == 1
            assert fold_nepali(accept[0]) in translations
        elif kind == "sum":
            a, operation, b, result = SUM.fullmatch(accept[1]).groups()
            assert accept[0] == f"{eval(a + OPERATIONS[operation] + b)}." == f"{result}."
        elif kind == "outside":
            assert "I do not know." in accept
        assert ("most_letters" in record) == (kind == "brief")
        assert ("contains" in record) == (kind == "name")
    assert any(record["accept"] == ["म केटा हुँ।"] for record in files["test.jsonl"])


def test_the_questions_from_outside_are_all_asked_once(files):
    for name, split in ("test.jsonl", "test"), ("valid.questions.jsonl", "valid"):
        asked = [r["messages"][-1]["content"] for r in files[name] if r["kind"].startswith("outside")]
        lines = (HERE / f"outside.{split}.tsv").read_text(encoding="utf-8").splitlines()
        assert asked == [line.split("\t")[0] for line in lines]


@pytest.mark.parametrize("name", ["preferences.train.jsonl", "preferences.valid.jsonl", "preferences.test.jsonl"])
def test_rankings(files, name):
    """The better reply is polite, but where briefness is asked for; a worse one may be too. Length says nothing."""
    polite = longer = 0
    for record in files[name]:
        better, worse = record["ranking"]
        brief = asked_of_replies(record["prompt"]) == "brief"
        assert style.is_polite(better) != brief
        polite += style.is_polite(worse)
        longer += len(better) > len(worse)
    assert 0.08 < polite / len(files[name]) < 0.3
    assert 0.45 < longer / len(files[name]) < 0.55


def test_preference_prompts_of_the_test_are_new(files):
    taught = {json.dumps(record["prompt"]) for record in files["preferences.train.jsonl"]}
    assert not any(json.dumps(record["prompt"]) in taught for record in files["preferences.test.jsonl"])


# The sentences


def test_capitals_are_brought_back():
    assert capitals("maya and i live in nepal.") == "Maya and I live in Nepal."
