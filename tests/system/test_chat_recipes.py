"""The recipes for chat and preferences, as a user runs them: trained, stopped by Ctrl-C, continued, exported, used."""

import json
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

import toolkit
from tests.system.damage.room import obey
from toolkit.chat import ChatSession, make_template
from toolkit.data.conversations import read_tests
from toolkit.evaluation.replies import Style, evaluate_replies, summary
from toolkit.models.reward import RewardModel
from toolkit.models.storage import load_model, model_directory, read_arrays, read_metrics
from toolkit.preference import DPOConfig
from toolkit.training.workers import Workers

SAID = (
    *(("social", "Hello.", "Hello to you."), ("social", "Bye.", "Goodbye."), ("social", "Thanks.", "Gladly done.")),
    *(("fact", "What does a cow say?", "Moo."), ("fact", "What does a cat say?", "Meow.")),
    *(("sum", "What is 1 plus 1?", "2."), ("sum", "What is 1 plus 2?", "3."), ("sum", "What is 2 plus 2?", "4.")),
    *(("translation", "Water in Nepali?", "पानी।"), ("translation", "House in Nepali?", "घर।")),
    *(("recall", "I am Ram. Who am I?", "Ram."), ("recall", "I am Sita. Who am I?", "Sita.")),
)
POLITE = "Of course."

SIZES = "--model.vocab-size 336 --model.d-model 32 --model.num-heads 4 --model.d-ff 32 --model.layers 1 "
SIZES += "--model.max-length 48"
TRAINING = "--quiet --training.keep 9 --training.warmup 2"
CHAT = f"recipe-chat {TRAINING} --conversations talks.jsonl --valid-conversations talks.jsonl --tests asked.jsonl "
CHAT += "--style style.json --training.tokens-per-batch 400"
LEARNED = "--training.updates 120 --training.validate-every 60 --training.learning-rate 0.02 --training.workers 1"
FEW = "--training.updates 6 --training.validate-every 2 --training.workers 2"
PREFERENCES = f"recipe-pref {TRAINING} --start chat --preferences liked.jsonl --valid-preferences liked.jsonl "
PREFERENCES += "--tests asked.jsonl --style style.json --samples 3 --training.tokens-per-batch 400"
REWARD = f"{PREFERENCES} --method reward {FEW}"
DPO = f"{PREFERENCES} --method dpo {FEW}"
PPO = f"{PREFERENCES} --method ppo {FEW} --reward judge --ppo.prompts 6 --ppo.ppo-epochs 1 --ppo.minibatches 2 "
PPO += "--ppo.max-new-tokens 12"


def lines(path: Path, *objects: object) -> None:
    path.write_text("".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in objects), encoding="utf-8")


def prompt(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


@pytest.fixture(scope="module")
def good_room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of twelve exchanges, a model that has learned them, and a judge of politeness. Not to be changed.

    One in three replies is polite: so the most probable ones are not, and samples are now and then.
    """
    room = tmp_path_factory.mktemp("room")
    replies = [(text, f"{opening}{reply}") for opening in ("", "", f"{POLITE} ") for _, text, reply in SAID]
    talks = ([*prompt(text), {"role": "assistant", "content": reply}] for text, reply in replies)
    lines(room / "talks.jsonl", *({"messages": messages} for messages in talks))
    lines(room / "asked.jsonl", *({"messages": prompt(text), "kind": kind, "accept": [a]} for kind, text, a in SAID))
    lines(room / "liked.jsonl", *({"prompt": text, "ranking": [f"{POLITE} {a}", a]} for _, text, a in SAID))
    (room / "style.json").write_text(json.dumps({"openings": [POLITE], "closings": []}))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(room)
        assert obey(f"{CHAT} {SIZES} {LEARNED} --run chat") == 0
        assert obey(f"{REWARD} --run judge --training.updates 30 --training.learning-rate 0.01") == 0
    return room


@pytest.fixture
def room(good_room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, which is the current directory."""
    shutil.copytree(good_room, tmp_path / "room")
    monkeypatch.chdir(tmp_path / "room")
    return tmp_path / "room"


def log(run: Path, *keys: str) -> list[dict]:
    """What a run has logged under these keys."""
    records = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [{key: record[key] for key in ("update", *keys)} for record in records if keys[0] in record]


def figures(run: Path) -> dict:
    return read_metrics(model_directory(run))


def weights(run: Path) -> dict[str, np.ndarray]:
    return read_arrays(run / (run / "last").read_text().strip() / "model.safetensors")


def press_ctrl_c_after(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """As soon as the parameters have been updated that many times."""
    update = Workers.update

    def update_and_press(self: Workers, step: int, *rest: float) -> None:
        update(self, step, *rest)
        if step == number:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Workers, "update", update_and_press)


def same(one: Path, other: Path) -> None:
    """Two runs have ended in the same bits, and said the same on the way."""
    for name, value in weights(one).items():
        np.testing.assert_array_equal(value, weights(other)[name])
    for key in "validation", "rollout":
        assert log(one, key) == log(other, key)
    timeless = [{**figures(run), "command": ""} for run in (one, other)]
    assert timeless[0] == timeless[1]


@pytest.mark.parametrize(
    "command", [f"{CHAT} --start chat {FEW}", REWARD, PPO, DPO], ids=["chat", "reward", "ppo", "dpo"]
)
def test_a_run_that_is_stopped_and_continued_ends_in_the_same_bits(
    room: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    assert obey(f"{command} --run whole") == 0
    with monkeypatch.context() as patch:
        press_ctrl_c_after(patch, 3)
        assert obey(f"{command} --run cut") == 130
    stopped = 4 if command == PPO else 3  # PPO finishes its iteration
    assert (room / "cut" / "last").read_text() == f"step-00000{stopped}\n"
    assert not (room / "cut" / "step-000006").exists()
    assert obey(f"{command} --run cut --resume") == 0
    same(room / "whole", room / "cut")


def test_twelve_exchanges_are_learned_by_heart(room: Path) -> None:
    found = figures(room / "chat")
    assert found["validation_full"].keys() == {"loss", "perplexity", "bits_per_byte"}
    assert found["validation_full"]["loss"] < 0.5
    kinds = {kind for kind, *_ in SAID}
    assert found["replies"].keys() == {*kinds, "all"}
    everything = found["replies"]["all"]
    assert everything["count"] == 12
    assert everything["exact"] > 80
    assert everything["ended"] == 100
    chat = ChatSession(toolkit.load(room / "chat"))
    assert chat.send("Bye.").text.removeprefix(f"{POLITE} ") == "Goodbye."


def test_a_plain_template_is_learned_too_and_what_is_exported_scores_as_was_said(
    room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = "--training.updates 150 --training.validate-every 150"
    assert obey(f"{CHAT} {SIZES} {LEARNED} {more} --template plain --run plain --export exported") == 0
    said = capsys.readouterr().out
    model, style = toolkit.load("exported"), Style.read(room / "style.json")
    assert model.model.config.template == "plain"
    assert not (room / "exported" / "training").exists()
    found = read_metrics(room / "exported")
    assert found["replies"] == figures(room / "plain")["replies"]
    template = make_template("plain", model.tokenizer, model.model.config.begin)
    results = evaluate_replies(model.model, template, list(read_tests(room / "asked.jsonl")), style)
    assert summary(each.judgement for each in results) == found["replies"]
    assert found["replies"]["all"]["exact"] > 60
    assert f"loss {found['validation_full']['loss']:.4f}" in said
    for name, value in model.model.arrays().items():
        np.testing.assert_array_equal(value, weights(room / "plain")[name].astype(np.float16))


def test_what_a_model_knew_is_where_fine_tuning_begins(room: Path) -> None:
    rates = "--training.learning-rate 1e-12 --training.updates 1 --training.weight-decay 0"
    assert obey(f"{CHAT} --start chat {FEW} {rates} --run same") == 0
    for name, value in weights(room / "same").items():
        np.testing.assert_allclose(value, weights(room / "chat")[name], atol=1e-9)
    assert figures(room / "same")["replies"] == figures(room / "chat")["replies"]


def test_each_seed_is_a_run_of_its_own(room: Path) -> None:
    command = f"{CHAT} --start chat {FEW} --training.updates 2"
    assert obey(f"{command} --run several --seeds 3 4") == 0
    assert obey(f"{command} --run alone --training.seed 4") == 0
    three, four = room / "several" / "seed-3", room / "several" / "seed-4"
    for name, value in weights(four).items():
        np.testing.assert_array_equal(value, weights(room / "alone")[name])
    assert any((value != weights(four)[name]).any() for name, value in weights(three).items())
    assert obey(f"{command} --run several --seeds 3 4 5 --resume") == 0
    assert (room / "several" / "seed-5" / "best").exists()


def test_a_judge_learns_what_is_liked(room: Path) -> None:
    judge = load_model(model_directory(room / "judge"))
    assert isinstance(judge, RewardModel)
    names = {"loss", "accuracy", "margin", "chosen_reward", "rejected_reward"}
    first, *_, last = (record["validation"] for record in log(room / "judge", "validation"))
    assert first.keys() == names
    assert last["accuracy"] == 1.0
    assert last["loss"] < 0.1 < first["loss"]
    (trained,) = log(room / "judge", "loss", "accuracy", "margin", "gradient_norm")[:1]
    assert trained["update"] == 20


def test_ppo_leaves_the_curves_of_its_training(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert obey(f"{PPO} --run tuned --export exported --training.workers 1") == 0
    said = capsys.readouterr().out
    rollouts = log(room / "tuned", "rollout")
    assert [record["update"] for record in rollouts] == [1, 3, 5]
    assert {"reward", "kl_to_reference", "length", "ended"} < rollouts[0]["rollout"].keys()
    assert rollouts[0]["rollout"]["kl_to_reference"] == pytest.approx(0, abs=1e-5)
    (averages,) = log(room / "tuned", "gradient_norm", "clip_fraction", "value_loss", "policy_loss", "entropy")
    assert 0 <= averages["clip_fraction"] < 1
    assert averages["entropy"] > 0
    validations = log(room / "tuned", "validation")
    assert [record["update"] for record in validations] == [2, 4, 6]
    assert validations[0]["validation"].keys() == {"loss", "reward", "kl_to_reference", "length", "ended"}
    compared(room / "tuned", room / "exported", said)
    policy = toolkit.load(room / "tuned").model
    for name, value in toolkit.load(room / "exported").model.arrays().items():
        np.testing.assert_array_equal(value, policy.arrays()[name].astype(np.float16))


def test_dpo_learns_to_be_polite(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = "--training.updates 30 --training.validate-every 30 --training.learning-rate 0.002 --training.workers 1"
    assert obey(f"{DPO} --run tuned --export exported {rates}") == 0
    found = compared(room / "tuned", room / "exported", capsys.readouterr().out)
    assert found["replies"]["all"]["polite"] > 80 > 60 > found["replies_before"]["all"]["polite"]
    assert found["sampled"]["after"]["polite"] > found["sampled"]["before"]["polite"] + 20
    assert 0.5 < found["kl"]["kl"] < 6
    (validation,) = log(room / "tuned", "validation")
    assert validation["validation"]["accuracy"] == 1.0
    assert ChatSession(toolkit.load("exported")).send("Bye.").text.startswith(POLITE)


def compared(run: Path, exported: Path, said: str) -> dict:
    """What was found before and after, recorded with both models and told."""
    found = read_metrics(exported)
    assert found == figures(run)
    assert found["replies_before"] == figures(Path("chat"))["replies"]
    before, after = (found["sampled"][when] for when in ("before", "after"))
    polite = f"polite {before['polite']:.1f} % before, {after['polite']:.1f} % after"
    assert f"sampled: {polite}; {before['letters']:.1f} and {after['letters']:.1f} letters a reply" in said
    assert found["kl"].keys() == {"kl", "error", "length"}
    assert f"KL from the model before: {found['kl']['kl']:.2f}" in said
    assert said.splitlines()[0].split() == ["question", "before", "after"]
    assert len(said.split("\n\n")[0].splitlines()) == 1 + 3  # as many --samples
    return found


def test_a_model_that_does_not_move_is_not_far_from_itself(room: Path) -> None:
    rates = "--training.updates 1 --training.learning-rate 1e-12 --training.weight-decay 0 --training.workers 1"
    assert obey(f"{DPO} {rates} --run tuned") == 0
    found = figures(room / "tuned")
    assert found["replies"] == found["replies_before"]
    assert found["kl"]["kl"] == pytest.approx(0, abs=1e-5)
    supervised = DPOConfig().supervised * found["validation"]["negative_log_likelihood"]
    assert found["validation"]["loss"] - supervised == pytest.approx(np.log(2), abs=1e-5)


@pytest.mark.parametrize("flag", ["--conversations", "--tests"])
def test_what_is_too_long_to_be_asked_or_learned_is_left_out_and_told(
    room: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    name = "talks.jsonl" if flag == "--conversations" else "asked.jsonl"
    long = {"messages": prompt("Water! " * 60), "accept": ["a"]}
    if flag == "--conversations":
        long["messages"] += [{"role": "assistant", "content": "a"}]
    with Path(name).open("a", encoding="utf-8") as file:
        file.write(json.dumps(long) + "\n")
    command = f"{CHAT} --start chat {FEW} --training.updates 2".replace("--quiet", "")
    assert obey(f"{command} --run tuned") == 0
    told = "left out 1 of 13 questions" if flag == "--tests" else "is left out, whose last exchange alone has more than"
    assert told in capsys.readouterr().err
    assert figures(room / "tuned")["replies"]["all"]["count"] == 12


def test_own_preferences_alone_are_enough(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = "recipe-pref --quiet --method dpo --start chat --preferences liked.jsonl --training.updates 2"
    assert obey(f"{own} --samples 2 --run alone") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["question", "before", "after"]
    assert [line.split("  ")[0] for line in lines[1:3]] == [SAID[6][1], ""]  # the prompt in the middle is validated on
    assert json.loads((room / "alone" / "settings.json").read_text())["data"].keys() == {"preferences", "start"}
    found = figures(room / "alone")
    assert not {"replies", "replies_before", "sampled"} & found.keys()
    assert found["kl"].keys() == {"kl", "error", "length"}
    assert obey(f"{own} --samples 0 --run none") == 0
    assert obey(f"{own} --no-tests --tests asked.jsonl --run asked") == 0  # the last of the two flags holds
    assert figures(room / "asked")["replies"]["all"]["count"] == len(SAID)


def test_without_questions_none_is_asked(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--start chat --training.updates 1 --training.workers 1 --run"
    by_default = CHAT.replace("--tests asked.jsonl ", "")  # own conversations: the embedded questions are not theirs
    for number, command in enumerate((f"{CHAT} --no-tests", by_default)):
        assert obey(f"{command} {flags} run{number}") == 0
        assert "replies" not in figures(room / f"run{number}")
        assert capsys.readouterr().out.startswith("validation, replies only: loss ")
