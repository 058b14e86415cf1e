"""Servers side by side: clients that ask one request after the other, of each server in its turn."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import toolkit
from tests.serving.answers import first_text
from tests.serving.client import Connection
from tests.serving.mix import STORIES, conversation
from tests.serving.served import Served
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.storage import save_model, shipped_models

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
TOGETHER, NEW_TOKENS = 16, 64
CLIENTS = (1, 4, 16)


class Asked(NamedTuple):
    """An answer to a client: seconds to its first text and to its end, and its tokens."""

    first: float
    whole: float
    tokens: int


async def ask(connection: Connection, path: str, fields: dict[str, Any]) -> Asked:
    """Ask, and take the time.  Raises RuntimeError where the server refuses."""
    answer = await connection.ask("POST", path, fields)
    if answer.status != 200:
        raise RuntimeError(f"{answer.status} {answer.body[:300]!r}")
    if not answer.streamed:
        return Asked(answer.seconds, answer.seconds, answer.json["usage"]["completion_tokens"])
    events = answer.events()
    tokens = max((each.get("usage") or {}).get("completion_tokens", 0) for _, each in events if isinstance(each, dict))
    return Asked(first_text(events) or answer.seconds, answer.seconds, tokens)


def conversations(seed: int) -> list[list[dict[str, str]]]:
    """Draw conversations, each with a user of another name, so that little of them was read before."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(TOGETHER):
        messages = conversation(rng)
        said = f"I am number {rng.integers(1 << 20)}. {messages[-1]['content']}"
        found.append([*messages[:-1], {"role": "user", "content": said}])
    return found


class Work(NamedTuple):
    """What clients ask both servers for, of a model."""

    title: str
    model: Path
    path: str
    fields: Callable[[int], dict[str, Any]]


class Turn(NamedTuple):
    """What a server gave to clients for some seconds."""

    asked: list[Asked]
    seconds: float
    cores: tuple[float, float]  # kept busy by the clients, and by the server


def works(directory: Path) -> list[Work]:
    """List what is asked, and write the model of random weights."""
    tokenizer, wide = toolkit.load("stories").tokenizer, directory / "wide"
    model = GPT(GPTConfig(vocab_size=tokenizer.vocab_size, d_model=256, layers=9, num_heads=8, d_ff=1024))
    model.allocate()
    model.initialize(np.random.default_rng(0))
    wide.mkdir()
    tokenizer.save(wide)
    save_model(model, wide, {})
    shipped, size = shipped_models(), model.parameter_count / 1e6
    return [
        Work("stories, 64 tokens, streamed", shipped["stories"], COMPLETIONS, _story),
        Work("chat, whole replies", shipped["chat"], CHAT, _reply),
        Work(f"random weights, {size:.1f}M, 64 tokens, streamed", wide, COMPLETIONS, _story),
    ]


def _story(number: int) -> dict[str, Any]:
    return {
        "prompt": f"{STORIES[number % 4]} There were {number} of them.",
        "max_tokens": NEW_TOKENS,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _reply(number: int) -> dict[str, Any]:
    messages = conversations(number // TOGETHER)[number % TOGETHER]
    return {"messages": messages, "max_tokens": NEW_TOKENS, "temperature": 0}


async def beside(work: Work, exported: Path, python: str, repeats: int, seconds: float) -> dict[str, Any]:
    """Ask both servers in turns, by 1, 4 and 16 clients -> rows of a table."""
    command = [sys.executable, "-m", "toolkit", "export", str(work.model), str(exported)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ)
    theirs = (
        python,
        "-m",
        "transformers.cli.transformers",
        "serve",
        str(exported),
        "--device",
        "cpu",
        "--dtype",
        "float32",
    )
    async with AsyncExitStack() as stack:
        sides = {
            "toolkit": (stack.enter_context(Served(str(work.model))), "/ready", work.model.name),
            "transformers": (stack.enter_context(Served(command=theirs)), "/health", str(exported)),
        }
        for served, ready, _ in sides.values():
            await served.ready(ready)
        rows = {name: {count: [] for count in CLIENTS} for name in sides}
        for number in range(-1, repeats):
            for count in CLIENTS:
                names = list(sides) if number % 2 else [*reversed(sides)]
                for name in names:
                    served, _, model = sides[name]
                    turn = await clients(served, work, model, count, seconds if number >= 0 else 1, max(number, 0))
                    if number >= 0:  # the first round warms up
                        rows[name][count].append(turn)
    return {"title": work.title, "sides": {name: _figures(turns) for name, turns in rows.items()}}


async def clients(served: Served, work: Work, model: str, count: int, seconds: float, turn: int) -> Turn:
    """Let clients ask for so long, each as soon as it has an answer."""
    asked: list[Asked] = []
    until = time.perf_counter() + seconds

    async def client(number: int) -> None:
        async with Connection(served.url) as connection:
            while time.perf_counter() < until:
                fields = {"model": model, **work.fields(turn * 10_000 + number)}
                asked.append(await ask(connection, work.path, fields))
                number += count

    own, busy, begin = sum(os.times()[:2]), sum(served.busy()), time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(count)))
    taken = time.perf_counter() - begin
    shares = (sum(os.times()[:2]) - own) / taken, (sum(served.busy()) - busy) / taken
    return Turn(asked, taken, shares)


def _figures(turns: Mapping[int, Sequence[Turn]]) -> dict[int, dict[str, Any]]:
    """Sum up the turns of each number of clients; times in milliseconds."""
    found = {}
    for count, several in turns.items():
        asked, seconds = [each for turn in several for each in turn.asked], sum(turn.seconds for turn in several)
        firsts, wholes = ([1e3 * getattr(each, name) for each in asked] for name in ("first", "whole"))
        found[count] = {
            "requests_a_second": len(asked) / seconds,
            "tokens_a_second": sum(each.tokens for each in asked) / seconds,
            "tokens_each": sum(each.tokens for each in asked) / len(asked),
            "first": np.percentile(firsts, [50, 99]).tolist(),
            "whole": np.percentile(wholes, [50, 99]).tolist(),
            "cores": np.mean([turn.cores for turn in several], axis=0).tolist(),
        }
    return found
