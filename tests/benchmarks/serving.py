"""`toolkit serve` beside the library's own batch, and beside `transformers serve` with the same weights.

    python -m tests.benchmarks.serving --json figures.json
    python -m tests.benchmarks.serving --only batch first
    python -m tests.benchmarks.serving --only beside --transformers .venv/bin/python    # with transformers[serving]

batch: 16 conversations at once, replies of 64 tokens, by `generate` and through HTTP, in turns. first: the time to the
first token of a new conversation while 15 others are written, in steps of that time. beside: clients that ask one
request after the other, of each server in turn. All on loopback: the clients share the cores with the server, and their
part is told. Nothing else should run meanwhile.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import toolkit
from tests.benchmarks.side_by_side.machine import describe, in_words
from tests.benchmarks.side_by_side.servers import CHAT, NEW_TOKENS, TOGETHER, ask, beside, conversations, works
from tests.serving.answers import first_text
from tests.serving.client import Connection
from tests.serving.served import Served
from toolkit.decoding import ContinuationConfig, generate
from toolkit.tokenization.chat_template import Message, make_template

# Tokens that leave room in a context for a short conversation.
_LONG = 400


def reply_fields(messages: Sequence[dict[str, str]], tokens: int, streams: bool) -> dict[str, Any]:
    """Ask for the most probable reply of so many tokens."""
    fields = {"model": "chat", "messages": messages, "max_tokens": tokens, "min_tokens": tokens, "temperature": 0}
    return {**fields, "stream": True, "stream_options": {"include_usage": True}} if streams else fields


class Library:
    """The library's own batch of conversations."""

    def __init__(self) -> None:
        self._model = toolkit.load("chat")
        self._template = make_template("control", self._model.tokenizer, self._model.model.config.begin)

    def replies(self, several: Sequence[Sequence[dict[str, str]]]) -> tuple[float, int]:
        """Write the replies -> seconds, tokens."""
        begin = time.perf_counter()
        skipped = len(self._template.begin)
        ids = [self._template.prompt([Message(**each) for each in messages])[skipped:] for messages in several]
        config = ContinuationConfig(do_sample=False, max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS)
        with self._model.arithmetic():
            found = generate(self._model.model, ids, config, batch_size=TOGETHER, end=self._template.end)
        for [each] in found:
            self._model.tokenizer.decode(each.ids)
        return time.perf_counter() - begin, sum(len(each.token_log_probs) for [each] in found)


async def batch(served: Served, repeats: int) -> dict[str, Any]:
    """Have 16 conversations answered at once: by the library, and through HTTP as a whole and in a stream."""
    library = Library()
    connections = [Connection(served.url) for _ in range(TOGETHER)]
    speeds: dict[str, list[float]] = {"library": [], "whole": [], "streamed": []}
    shares: dict[str, list[list[float]]] = {"whole": [], "streamed": []}
    names = list(speeds)
    for number in range(-1, repeats):
        for name in names[number % 3 :] + names[: number % 3]:
            # Of each its own: the server keeps what it has read.
            several = conversations(3 * (number + 1) + names.index(name))
            await asyncio.sleep(0.1)
            if name == "library":
                seconds, tokens = library.replies(several)
            else:
                before = [sum(os.times()[:2]), *served.busy()]
                begin = time.perf_counter()
                fields = [reply_fields(each, NEW_TOKENS, name == "streamed") for each in several]
                asked = zip(connections, fields, strict=True)
                found = await asyncio.gather(*(ask(connection, CHAT, each) for connection, each in asked))
                seconds, tokens = time.perf_counter() - begin, sum(each.tokens for each in found)
                after = [sum(os.times()[:2]), *served.busy()]
                shares[name].append([(now - then) / seconds for now, then in zip(after, before, strict=True)])
            if number >= 0:  # the first round warms up
                speeds[name].append(tokens / seconds)
    for each in connections:
        await each.close()
    return {
        "speeds": speeds,
        "ratios": {name: median(np.divide(speeds[name], speeds["library"]).tolist()) for name in shares},
        "cores": {name: np.median(each, axis=0).round(2).tolist() for name, each in shares.items()},
    }


async def first(served: Served, repeats: int) -> dict[str, Any]:
    """Take the time to the first token of a new conversation, alone and while 15 others are written."""
    alone = [await _new(served.url, 1000 + number) for number in range(repeats)]
    others = [asyncio.create_task(_write_on(served.url, number)) for number in range(TOGETHER - 1)]
    await asyncio.sleep(1)
    before, begin = await _steps(served.url), time.perf_counter()
    beside = []
    for number in range(repeats):
        beside.append(await _new(served.url, 2000 + number))
        await asyncio.sleep(0.05)
    after, seconds = await _steps(served.url), time.perf_counter() - begin
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    steps = after[0] - before[0]
    step = seconds / steps
    return {
        "alone_ms": (1e3 * np.array(alone)).tolist(),  # first token, first letters
        "beside_ms": (1e3 * np.array(beside)).tolist(),
        "step_ms": 1e3 * step,  # on the clock
        "computed_ms": 1e3 * (after[1] - before[1]) / steps,  # of it, within the batch
        "steps": ((np.median(beside, axis=0) - np.median(alone, axis=0)) / step).tolist(),
    }


async def _new(url: str, seed: int) -> tuple[float, float]:
    """Ask for a reply of a few tokens to a conversation that was never read -> seconds to the first, and to letters.

    The stream begins with the first token, which is often a space in front of the first word.
    """
    async with Connection(url) as connection:
        await connection.ask("GET", "/health")
        answer = await connection.ask("POST", CHAT, reply_fields(conversations(seed)[0], 4, True))
    events = answer.events()
    return events[0][0], first_text(events) or answer.seconds


async def _write_on(url: str, number: int) -> None:
    async with Connection(url) as connection:
        while True:
            await ask(connection, CHAT, reply_fields(conversations(3000 + number)[0], _LONG, True))
            number += TOGETHER


async def _steps(url: str) -> tuple[float, float]:
    """Read how many steps the model has made, and in how many seconds."""
    async with Connection(url) as connection:
        text = (await connection.ask("GET", "/metrics")).body.decode()
    names = ("toolkit_steps_total", "toolkit_step_seconds_total")
    found = (re.search(rf'^{name}{{model="chat"}} (\S+)$', text, re.MULTILINE)[1] for name in names)
    return tuple(map(float, found))


def batch_lines(found: dict[str, Any]) -> list[str]:
    """Write the table of 16 conversations at once."""
    own = median(found["speeds"]["library"])
    lines = ["", "| 16 conversations | tokens/s | of the library | cores: clients, front, model |", "|---|---|---|---|"]
    lines.append(f"| the library's batch | {own:,.0f} | | |")
    for name, title in (("whole", "through HTTP"), ("streamed", "through HTTP, streamed")):
        rounds = np.divide(found["speeds"][name], found["speeds"]["library"])
        client, front, *others = found["cores"][name]
        lines.append(
            f"| {title} | {median(found['speeds'][name]):,.0f} | {found['ratios'][name]:.2f} ({min(rounds):.2f} to "
            f"{max(rounds):.2f}) | {client:.2f}, {front:.2f}, {sum(others):.2f} |"
        )
    return lines


def first_lines(found: dict[str, Any]) -> list[str]:
    """Write the table of first tokens."""
    lines = [
        "",
        "| ms | alone p50 | p99 | beside 15 others p50 | p99 | steps more than alone |",
        "|---|---|---|---|---|---|",
    ]
    for place, name in enumerate(("first token", "first letters")):
        times = [np.percentile(np.array(found[each])[:, place], [50, 99]) for each in ("alone_ms", "beside_ms")]
        cells = [f"{each:.1f}" for each in (*times[0], *times[1], found["steps"][place])]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, "", f"a step took {found['step_ms']:.2f} ms, {found['computed_ms']:.2f} of it in the batch"]


def beside_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Write the table of servers."""
    heads = ("work", "clients", "server", "first p50, ms", "p99", "whole p50", "p99", "requests/s", "tokens/s", "cores")
    lines = ["", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in rows:
        for count in row["sides"]["toolkit"]:
            for name, figures in row["sides"].items():
                each = figures[count]
                times = [f"{value:,.1f}" for value in (*each["first"], *each["whole"])]
                speeds = f"{each['requests_a_second']:,.1f}", f"{each['tokens_a_second']:,.0f}"
                shares = "{:.2f} + {:.2f}".format(*each["cores"])
                cells = (row["title"], str(count), name, *times, *speeds, shares)
                lines.append(f"| {' | '.join(cells)} |")
    return lines


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure what is asked for."""
    found: dict[str, Any] = {"machine": describe(1), "loads": [os.getloadavg()[0]]}
    if {"batch", "first"} & set(arguments.only):
        with Served("chat", *arguments.serve) as served:
            await served.ready()
            if "batch" in arguments.only:
                found["batch"] = await batch(served, arguments.repeats)
            if "first" in arguments.only:
                found["first"] = await first(served, 4 * arguments.repeats)
    if "beside" in arguments.only:
        with tempfile.TemporaryDirectory() as name:
            found["beside"] = []
            for number, work in enumerate(works(Path(name))):
                if arguments.work is None or arguments.work in work.title:
                    exported = Path(name) / f"exported-{number}"
                    rows = await beside(work, exported, arguments.transformers, arguments.rounds, arguments.seconds)
                    found["beside"].append(rows)
    found["loads"].append(os.getloadavg()[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=("batch", "first", "beside"), default=["batch", "first", "beside"])
    parser.add_argument("--repeats", type=int, default=10, help="of batch; of first four times as many")
    parser.add_argument("--rounds", type=int, default=2, help="of beside")
    parser.add_argument("--seconds", type=float, default=3, help="of a turn of beside")
    parser.add_argument("--work", help="a part of the title of one row of beside")
    parser.add_argument("--transformers", default=sys.executable, help="the Python that has transformers[serving]")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", nargs=argparse.REMAINDER, default=[], help="further flags of toolkit serve")
    arguments = parser.parse_args()
    found = asyncio.run(measure(arguments))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(in_words(found["machine"], found["loads"]))
    for name, lines in (("batch", batch_lines), ("first", first_lines), ("beside", beside_lines)):
        if name in found:
            print("\n".join(lines(found[name])))


if __name__ == "__main__":
    main()
