"""Judge a translator by the everyday test: sentences from life, names that it has never seen, long real text.

    python -m tests.benchmarks.everyday --model en-ne
    python -m tests.benchmarks.everyday --model ne-en --reverse --num-beams 4
    python -m tests.benchmarks.everyday --model en-ne --split valid --reverse-model ne-en
    python -m tests.benchmarks.everyday --model en-ne --long DIR    # what python -m data.everyday.real wrote
    python -m tests.benchmarks.everyday --model RUN --long DIR --memory --mbr-samples 8

Acceptable is what equals one of the references, the final mark aside. Beside each figure stands that of copying the
translation of the most similar training sentence.
"""

import argparse
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np

import toolkit
from data.everyday import tables
from toolkit.confidence import by_tenths
from toolkit.data.embedded import embedded
from toolkit.data.lines import read_lines
from toolkit.evaluation import bleu_chrf, compare, look_up, matches, sentence_statistics
from toolkit.noisy_channel import WEIGHT

KINDS = ("sentences", "typed", "worded", "swaps", "grammar", "names")
# Letters that people write for one another in names: long and short vowels, the two rows of t and d, nasals.
SAME = str.maketrans("आीूटठडढणशषवँंङञय", "अिुतथदधनससबननननइ", "ा्ः")
SPELLED = (
    ("ph", "f"),
    ("ck", "k"),
    ("c", "k"),
    ("q", "k"),
    ("x", "ks"),
    ("w", "v"),
    ("z", "j"),
    ("ee", "i"),
    ("oo", "u"),
)


def folded(name: str) -> str:
    """Fold the spellings of a name that are as good as each other, in either script."""
    if re.search("[\u0900-\u097f]", name):
        return name.translate(SAME)
    name = re.sub("[^a-z]", "", name.lower())
    for one, other in SPELLED:
        name = name.replace(one, other)
    return re.sub(r"(.)\1", r"\1", re.sub("y|e(?=i)", "i", name)).replace("h", "").rstrip("e")


def percent(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):5.1f} %"


def judge(translator: toolkit.Translator, arguments: argparse.Namespace, folder: Path) -> None:
    """Translate the sentences from life, and print what was right by topic, and by confidence."""
    source, target = ("ne", "en") if arguments.reverse else ("en", "ne")
    sources = read_lines(folder / f"{arguments.split}.{source}")
    references = [line.split("\t") for line in read_lines(folder / f"{arguments.split}.references.{target}")]
    topics = read_lines(folder / f"{arguments.split}.topics")
    settings = searching(arguments) | {"split_sentences": False}
    found = [group[0] for group in translator.translate_n(sources, **settings)]
    texts = [each.text for each in found]
    right = np.array([matches(own, text) for text, own in zip(texts, references, strict=True)])
    copied = look_up(sources, *(taught(folder, side) for side in (source, target)))
    by_topic = defaultdict(list)
    for place, topic in enumerate(topics):
        by_topic[topic].append(place)
    print(f"{'':14}  lines  acceptable    chrF    looked up: acceptable  chrF")
    for topic, places in [*sorted(by_topic.items()), ("all", list(range(len(texts))))]:
        wanted = [references[place] for place in places]
        figures = []
        for system in texts, copied.translations:
            own = [system[place] for place in places]
            good = sum(map(matches, wanted, own))
            figures += [percent(good, len(own)), f"{bleu_chrf(wanted, own).chrf:5.1f}"]
        print(f"{topic:14}  {len(places):5}  {'   '.join(figures)}")
    if all(each.confidence for each in found):
        print_confidence(np.array([each.confidence.sentence for each in found]), found, right)
    if arguments.worst:
        scores = [bleu_chrf([own], [text]).chrf for text, own in zip(texts, references, strict=True)]
        for place in np.argsort(scores)[: arguments.worst]:
            print(f"{scores[place]:5.1f}  {sources[place]}\n       {texts[place]}\n       ({references[place][0]})")


def searching(arguments: argparse.Namespace) -> dict:
    """Give the settings by which all is translated."""
    both = {"reverse": arguments.reverse_model, "reverse_weight": arguments.reverse_weight}
    return {"num_beams": arguments.num_beams} | (both if arguments.reverse_model else {})


def taught(folder: Path, side: str) -> list[str]:
    """Give one side of everything that is taught."""
    return [line for kind in KINDS for line in read_lines(folder / f"{kind}.{side}")]


def print_confidence(confidence: np.ndarray, found: list, right: np.ndarray) -> None:
    """Print how many of the sure ones are right, how many of the wrong ones are not sure, and a table by tenths."""
    sure = np.array([each.confidence.sure for each in found])
    print(f"sure: {sure.sum()} of {len(sure)}, of which {percent(int(right[sure].sum()), int(sure.sum()))} acceptable")
    print(f"wrong: {(~right).sum()}, of which {percent(int((~sure & ~right).sum()), int((~right).sum()))} not sure")
    for tenth in by_tenths(confidence, right):
        print(f"  confidence {tenth['confidence']:.2f}  {tenth['sentences']:4}  right {100 * tenth['right']:5.1f} %")


def unlisted_names(translator: toolkit.Translator, folder: Path) -> list[dict]:
    """Read the names that were never taught, one for each sentence, and take them out of what the translator looks up.

    Shipped ones have them in their lists of known spellings: who writes *Adam* wants it right, tested or not. What is
    written like one of them (Noelle, Noel: नोएल) goes with it.
    """
    names = json.loads((folder / "names-test.json").read_text("utf-8"))
    if translator.speller:
        for word in {word.lower() for name in names for word in (name["latin"], *name["devanagari"])}:
            translator.speller.known.pop(word, None)
    return names


def judge_names(translator: toolkit.Translator, arguments: argparse.Namespace, folder: Path) -> None:
    """Translate names that were never taught, in three sentences each: are they there, in one of their spellings?"""
    source = "ne" if arguments.reverse else "en"
    names = unlisted_names(translator, folder)
    sources = read_lines(folder / f"names-test.{source}")
    texts = translator.translate(sources, **searching(arguments))
    figures, wrong, english = defaultdict(list), [], set(tables.english_names())
    for name, given, text in zip(names, sources, texts, strict=True):
        accepted = [name["latin"]] if arguments.reverse else name["devanagari"]
        exactly = any(each in text for each in accepted)
        nearly = any(folded(each) in folded_words(text) for each in accepted)
        kind = "English" if name["latin"] in english else "other" if name["kind"] in tables.FOREIGN else "Nepali"
        figures[kind].append((exactly, exactly or nearly))
        if not (exactly or nearly):
            wrong.append(f"  {given} -> {text}    ({accepted[0]})")
    for kind, rows in figures.items():
        exact, near = np.array(rows).mean(axis=0)
        print(f"{kind} names, {len(rows)} sentences: {100 * exact:.1f} % exactly, {100 * near:.1f} % acceptably")
    print("\n".join(wrong[:: max(1, len(wrong) // max(arguments.worst, 1))][: arguments.worst]))


def folded_words(text: str) -> str:
    """Fold all words of a text, with a space between."""
    return " ".join(folded(word) for word in re.findall(r"[\w\u0900-\u0963\u200d]+", text))


def judge_long(translator: toolkit.Translator, arguments: argparse.Namespace, folder: Path) -> None:
    """Translate long real text, and compare with looking up over everything that was trained on."""
    source, target = ("ne", "en") if arguments.reverse else ("en", "ne")
    sources, references = (read_lines(arguments.long / f"long.{side}") for side in (source, target))
    rows = [line.split("\t") for line in read_lines(arguments.long / "real.tsv")[1:]]
    train = [taught(folder, side) + [row[side == "ne"] for row in rows] for side in (source, target)]
    settings = searching(arguments) | {"split_sentences": False}
    if arguments.mbr_samples:
        drawn = {"do_sample": True, "temperature": 0.7, "top_p": 0.9, "seed": 1, "no_repeat_ngram_size": 3}
        settings |= drawn | {"mbr_samples": arguments.mbr_samples, "num_beams": 1}
    read = read_lines(arguments.long / "memory.long.en") if arguments.memory else sources
    texts = translator.translate(read, **settings)
    copied = look_up(sources, *train).translations
    for least in 0, 11:
        places = [place for place, text in enumerate(sources) if len(text.split()) >= least]
        ours, theirs, wanted = ([each[place] for place in places] for each in (texts, copied, references))
        statistics = [sentence_statistics(wanted, each) for each in (ours, theirs)]
        one = compare(*statistics)["chrf"]
        scores = [bleu_chrf(wanted, each).chrf for each in (ours, theirs)]
        print(
            f"{len(places)} real lines of {least} words or more: chrF {scores[0]:.1f}, looked up {scores[1]:.1f}, ",
            end="",
        )
        print(f"difference {one.score:+.1f} ({one.low:+.1f} to {one.high:+.1f}), p {one.p_value:.3f}")


def main() -> None:
    """Read the flags and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--reverse", action="store_true", help="from Nepali to English")
    parser.add_argument("--split", default="test", choices=("test", "valid"))
    parser.add_argument("--num-beams", type=int, default=1)
    parser.add_argument(
        "--reverse-model", type=toolkit.load, help="translator of the other direction, to choose by both"
    )
    parser.add_argument("--reverse-weight", type=float, default=WEIGHT, help="and how much that counts")
    parser.add_argument("--worst", type=int, default=0)
    parser.add_argument("--no-names", action="store_true")
    parser.add_argument("--long", type=Path, help="directory with the long test and the real text trained on")
    parser.add_argument("--memory", action="store_true", help="of a model of memory.tsv there: the long test alone")
    parser.add_argument("--mbr-samples", type=int, default=0, help="translations to draw of a line of the long test")
    arguments = parser.parse_args()
    translator, folder = toolkit.load(arguments.model), embedded("everyday")
    if not arguments.memory:
        judge(translator, arguments, folder)
    if not (arguments.no_names or arguments.memory):
        judge_names(translator, arguments, folder)
    if arguments.long:
        judge_long(translator, arguments, folder)


if __name__ == "__main__":
    main()
