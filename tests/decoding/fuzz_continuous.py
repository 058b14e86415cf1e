"""Are requests that are decoded together what they are alone?

python -m tests.decoding.fuzz_continuous --cases 2000 --seed 1
"""

import argparse
import copy
import random
from collections import Counter

import numpy as np

import toolkit
from tests.decoding.conftest import random_gpt, random_model
from toolkit.decoding import ContinuationConfig, GenerationConfig, generate
from toolkit.decoding.continuous import ContinuousBatch, Request
from toolkit.errors import ToolkitError
from toolkit.tokenization.special import END, EOS

make_gpt, make_seq2seq = random_gpt.__wrapped__(), random_model.__wrapped__()

GPTS = [
    {"norm": "rms", "activation": "swiglu", "num_key_value_heads": 2},
    {"norm": "layer", "activation": "gelu_tanh", "positions": "learned", "bias": True, "output_bias": True},
    {"num_key_value_heads": 1, "positions": "sinusoidal", "tie": True, "bias": True, "activation": "swiglu"},
    {"positions": "rotary", "begin": False},
]
SEQ2SEQS = [{}, {"norm_position": "pre", "positions": "learned"}, {"output_bias": True, "tie": "all"}]


def is_at_a_border(model, request, found):
    """Whether the output changes to what was found when the weights change by the last bits of a number."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        twin = copy.deepcopy(model)
        for parameter in twin.parameters().values():
            if isinstance(parameter.data, np.ndarray):
                size = np.finfo(parameter.data.dtype).eps * rng.choice((1, 4, 16))
                parameter.data *= 1 + size * rng.choice((-1, 0, 1), parameter.data.shape)
        if [each.ids for each in alone(twin, request)] == [each.ids for each in found]:
            return True
    return False


def model_of(rng, dtype):
    if rng.random() < 0.6:
        return make_gpt(dtype, seed=rng.randrange(9), max_length=rng.choice((12, 24, 40)), **rng.choice(GPTS))
    return make_seq2seq(dtype, seed=rng.randrange(9), **rng.choice(SEQ2SEQS))


def request_of(rng, model, key, earlier):
    continues, size = hasattr(model, "trunk"), model.config.vocab_size
    settings = {"seed": rng.randrange(5)}
    kind = rng.choice(("greedy", "sample", "samples", "beams"))
    if kind == "beams":
        settings["num_beams"] = rng.choice((2, 3, 4))
        settings["num_return_sequences"] = rng.randint(1, settings["num_beams"])
        settings["early_stopping"] = rng.choice(("settled", True, False, "never"))
        settings["length_penalty"] = rng.choice((1.0, 0.0, 0.6))
    settings["do_sample"] = kind.startswith("sample")
    settings["temperature"] = 1.0
    if settings["do_sample"]:
        settings["temperature"] = rng.choice((1.0, 0.7))
        settings["top_k"] = rng.choice((0, 5, 50))
        settings["top_p"] = rng.choice((1.0, 0.9))
        settings["min_p"] = rng.choice((0.0, 0.05))
        settings["num_return_sequences"] = 1 if kind == "sample" else rng.randint(2, 4)
    elif continues:
        settings["min_p"] = 0.0
    settings["forced_eos"] = rng.choice(("scored", "free", "none"))
    if rng.random() < 0.3:
        settings["min_new_tokens"] = rng.randint(1, 3)
    if rng.random() < 0.6:
        settings["max_new_tokens"] = rng.randint(5, 15)
    if rng.random() < 0.2:
        settings["repetition_penalty"] = 1.2
    if rng.random() < 0.2:
        settings["no_repeat_ngram_size"] = 2
    extra = {}
    if rng.random() < 0.1:
        extra["bad_words"] = [[30], [20, 21]]
    elif rng.random() < 0.2:
        extra["bad_words"] = [[rng.randrange(16, size) for _ in range(rng.randint(1, 2))] for _ in range(3)]
    length = rng.randint(1, 10)
    ids = [rng.randrange(16, size) for _ in range(length)]
    if continues:
        if earlier and rng.random() < 0.6:
            old = rng.choice(earlier)
            ids = (old[: rng.choice((len(old), rng.randint(0, len(old))))] + ids)[: model.config.max_length - 3]
        if rng.random() < 0.4:
            settings["past_context"] = "slide"
            settings["max_new_tokens"] = rng.randint(5, 60)
        else:
            settings.pop("min_new_tokens", None)
            ids = ids[: model.config.max_length - 3]
        extra["end"] = rng.choice((EOS, END))
        extra["score_prompt"] = rng.random() < 0.2
    else:
        if rng.random() < 0.3:
            extra["forced_bos"] = rng.randrange(16, size)
        if rng.random() < 0.3:
            extra["prefix"] = [rng.randrange(16, size) for _ in range(rng.randint(1, 3))]
    config = (ContinuationConfig if continues else GenerationConfig)(**settings)
    alternatives = rng.choice((0, 0, 3))
    return Request(key, ids, config, number=rng.randrange(3), alternatives=alternatives, **extra)


def alone(model, request):
    settings = {"forced_bos": request.forced_bos, "end": request.end, "bad_words": request.bad_words}
    prefixes = [request.prefix] if len(request.prefix) else None
    return generate(model, [request.ids], request.config, prefixes=prefixes, numbers=[request.number], **settings)[0]


def same(found, expected, tolerance):
    if [each.ids for each in found] != [each.ids for each in expected]:
        return f"ids {[each.ids for each in found]} alone {[each.ids for each in expected]}"
    for one, other in zip(found, expected, strict=True):
        if one.finished != other.finished:
            return "finished"
        if not np.allclose(one.token_log_probs, other.token_log_probs, atol=tolerance):
            return f"log-probabilities {np.abs(np.subtract(one.token_log_probs, other.token_log_probs)).max()}"
        if not np.isclose(one.score, other.score, atol=tolerance):
            return "score"
    return ""


def case(number, seed, dtype, model=None, tolerance=None):
    """Decode the requests of a case; yields the differences, and then how many requests there were."""
    rng = random.Random(f"{seed} {number}")
    model = model or model_of(rng, dtype)
    batch = ContinuousBatch(model, places=rng.choice((1, 3, 6, 16)), piece=rng.choice((1, 3, 64)))
    pending, found, written, earlier, cancelled = {}, {}, {}, [], set()
    requests = rng.randint(2, 12)
    key = 0
    while key < requests or not batch.idle:
        while key < requests and rng.random() < 0.5:
            request = request_of(rng, model, key, earlier)
            try:
                batch.add(request)
                pending[key] = request
                earlier.append(list(request.ids))
            except ToolkitError:
                pass
            key += 1
        if pending and rng.random() < 0.05:
            gone = rng.choice(list(pending))
            batch.cancel(gone)
            del pending[gone]
            cancelled.add(gone)
        if batch.idle:
            continue
        for news in batch.step():
            assert news.key not in cancelled, "news of a cancelled request"
            assert news.key in pending, "news of a request that has ended"
            for sample, token in news.written:
                written.setdefault(news.key, {}).setdefault(sample, []).append(token)
            if news.error:
                raise news.error
            if news.hypotheses is not None:
                found[news.key] = pending.pop(news.key), news.hypotheses
                earlier += [[*found[news.key][0].ids, *each.ids] for each in news.hypotheses]
    assert not pending
    assert batch._used == 0
    tolerance = tolerance or (1e-8 if dtype is np.float64 else 1e-4)
    for key, (request, hypotheses) in found.items():
        expected = alone(model, request)
        if difference := same(hypotheses, expected, tolerance):
            why = ""
            if difference.startswith("ids") and dtype is not np.float64:
                why = "at a border: " if is_at_a_border(model, request, hypotheses) else "NOT at a border: "
            yield f"{why}case {number} request {request!r}: {difference}"
            continue
        if request.config.num_beams == 1:
            samples = written[key]
            outputs = sorted([tuple(t.id for t in tokens if t.id != request.end) for tokens in samples.values()])
            if outputs != sorted(tuple(each.ids) for each in expected):
                yield f"case {number} request {request}: written {outputs}"
    yield len(found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--model", help="a shipped model or a directory, in its own precision or int8")
    parser.add_argument("--tolerance", type=float, help="of log-probabilities; 1e-8 in float64, otherwise 1e-4")
    arguments = parser.parse_args()
    model, dtype = None, arguments.dtype
    if arguments.model:
        model = toolkit.load(arguments.model, dtype="int8" if dtype == "int8" else "auto").model
        dtype = "float32"
    settings = np.dtype(dtype).type, model, arguments.tolerance
    counts = Counter()
    for number in [arguments.only] if arguments.only is not None else range(arguments.cases):
        try:
            for each in case(number, arguments.seed, *settings):
                if isinstance(each, int):
                    counts["requests"] += each
                else:
                    counts["at a border" if each.startswith("at a border") else "differences"] += 1
                    print(each, flush=True)
        except Exception as error:
            if arguments.only is not None:
                raise
            counts["errors"] += 1
            print(f"case {number}: {type(error).__name__}: {error}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
