"""Tokens per second of generation over the KV cache: one sequence and 16, one BLAS thread and all.

    python tests/benchmarks/generation.py checkpoints/stories
    python tests/benchmarks/generation.py gpt2 --prompt 32 --tokens 48

A model directory, or the name of a preset, which then has random float32 weights. Nothing else should run meanwhile:
BLAS threads wait for each other, and beside other work two are many times slower than one. A step reads every weight
once, which is what bounds a single sequence of a large model.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from toolkit.decoding import ContinuationConfig
from toolkit.decoding.constraints import Constraints
from toolkit.decoding.prompts import PromptSession
from toolkit.decoding.search import make_writer
from toolkit.models.gpt import GPT
from toolkit.models.presets import PRESETS
from toolkit.models.storage import load_model
from toolkit.nn.memory import Pool


def model_of(name: str) -> GPT:
    if name not in PRESETS:
        return load_model(Path(name))
    model = GPT(PRESETS[name])
    model.allocate()
    model.initialize(np.random.default_rng(0))
    return model


def measure(model: GPT, count: int, prompt: int, tokens: int) -> tuple[float, float]:
    """Seconds for reading the prompts, and the median of the seconds for a step."""
    generator, size = np.random.default_rng(1), model.config.vocab_size
    config = ContinuationConfig(min_new_tokens=tokens - 1)
    begin = time.perf_counter()
    prompts = generator.integers(16, size, (count, prompt)).tolist()
    session = PromptSession(model, prompts, Pool(), new_tokens=tokens)
    read = time.perf_counter() - begin
    constraints = Constraints(np.full(count, tokens), None, config.min_new_tokens, config.forced_end)
    writer, steps = make_writer(session, constraints, config, range(count)), []
    while not writer.done:
        begin = time.perf_counter()
        writer.step()
        steps.append(time.perf_counter() - begin)
    return read, float(np.median(steps))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="directory of a language model, or a preset")
    parser.add_argument("--prompt", type=int, default=16, help="tokens of each prompt")
    parser.add_argument("--tokens", type=int, default=128, help="tokens to write after each")
    arguments = parser.parse_args()
    model = model_of(arguments.model)
    weights = model.parameter_count * model.vector.itemsize
    print(f"{arguments.model}: {model.parameter_count:,} parameters, {os.cpu_count()} cores")
    print("sequences  threads  tokens/s  ms a step  GB of weights/s  prompts read in ms")
    for count in (1, 16):
        for threads in (1, os.cpu_count()):
            with threadpool_limits(threads, user_api="blas"):
                read, step = measure(model, count, arguments.prompt, arguments.tokens)
            rates = f"{count / step:8.0f}  {1e3 * step:9.2f}  {weights / step / 1e9:15.1f}"
            print(f"{count:9}  {threads:7}  {rates}  {1e3 * read:18.0f}", flush=True)


if __name__ == "__main__":
    main()
