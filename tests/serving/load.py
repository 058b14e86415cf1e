"""A server under load: many clients, mixed requests, some who leave and some who do wrong; every answer is checked.

    python -m tests.serving.load --clients 64 --seconds 300
    python -m tests.serving.load --clients 8 --seconds 20 --serve --max-places 4 --max-queue 4
    python -m tests.serving.load --clients 16 --seconds 30 --kill 3 --reload 5

Each request is first asked alone; what comes under load must be the same, log-probabilities within 1e-4. Requests are
sent again when the server is too busy (429, 503), and counted; so are those that a killed model process broke off. At
the end the server gets SIGTERM. The exit code is 1 where an answer was wrong, a request was lost, or anything was left.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.serving import hostile
from tests.serving.answers import difference, first_text, joined
from tests.serving.client import Answer, Connection
from tests.serving.mix import Case, mixed
from tests.serving.served import Served, State

MODELS = ("en-ne-small", "stories", "chat")
LEAVING, HOSTILE = 0.1, 0.05
THREADS = min(32, (os.cpu_count() or 1) + 4)
_WATCH = 5.0  # seconds between two looks at the processes
_LONGEST = 120.0  # seconds after which a request without an answer is lost


class Load:
    """Clients that ask, and what has come of it."""

    def __init__(self, url: str, cases: Sequence[Case], expected: Sequence[Any], seed: int):
        self.url, self.cases, self.expected, self.seed = url, cases, expected, seed
        self.kills = False  # whether model processes are killed meanwhile
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.firsts: dict[str, list[float]] = defaultdict(list)  # seconds to the first text, by kind
        self.wholes: dict[str, list[float]] = defaultdict(list)

    async def run(self, clients: int, seconds: float) -> None:
        """Let clients ask for so long; what they have asked last they wait for."""
        until = time.monotonic() + seconds
        await asyncio.gather(*(self._client(number, until) for number in range(clients)))

    async def all_at_once(self) -> None:
        """Ask for each answer once, all at once."""

        async def asked(place: int) -> None:
            async with Connection(self.url) as connection:
                await self._ask(connection, place)

        await asyncio.gather(*(asked(place) for place in range(len(self.cases))))

    async def _client(self, number: int, until: float) -> None:
        rng = np.random.default_rng((self.seed, number))
        async with Connection(self.url) as connection:
            while time.monotonic() < until:
                chance, place = rng.random(), int(rng.integers(len(self.cases)))
                if chance < HOSTILE:
                    self._note("hostile", await hostile.act(self.url, rng))
                elif chance < HOSTILE + LEAVING:
                    await self.leave(self.cases[place], float(rng.exponential(0.2)))
                else:
                    await self._ask(connection, place)

    def _note(self, what: str, fault: str) -> None:
        self.counts[what] += 1
        if fault:
            self.counts["faults"] += 1
            self.faults.append(f"{what}: {fault}")

    async def leave(self, case: Case, seconds: float) -> None:
        """Ask, and close the socket after some time, unless the whole answer has come before."""
        try:
            async with Connection(self.url) as connection:
                left = await connection.ask(case.method, case.path, case.fields, leave=seconds) is None
        except (OSError, EOFError) as error:
            self._note("lost", f"{case}: {error!r}")
        else:
            self.counts["left midway" if left else "answered before leaving"] += 1

    async def _ask(self, connection: Connection, place: int) -> None:
        """Ask until there is an answer, and check it."""
        case = self.cases[place]
        while True:
            try:
                answer = await connection.ask(case.method, case.path, case.fields, leave=_LONGEST)
            except (OSError, EOFError) as error:
                self._note("lost", f"{case}: {error!r}")
                return
            if answer is not None and answer.streamed and _breaks_off(answer):
                self._note("broken off", "" if self.kills else f"{case}: {answer.body[-300:]!r}")
                continue
            if answer is None or answer.status not in hostile.BUSY:
                break
            retry = answer.headers.get("retry-after", "")
            self._note(f"refused with {answer.status}", "" if retry.isdigit() and b'"error"' in answer.body else "rude")
            await asyncio.sleep(min(int(retry or 1), 2))
        if answer is None:
            self._note("lost", f"{case}: no answer in {_LONGEST:g} s")
            return
        self._note("answered", wrong(case, answer, self.expected[place]))
        self.wholes[case.kind].append(answer.seconds)
        first = first_text(answer.events()) if answer.streamed else None
        self.firsts[case.kind].append(first or answer.seconds)


def _breaks_off(answer: Answer) -> bool:
    """True where a stream ends with an error."""
    _, last = answer.events()[-1]
    return isinstance(last, dict) and "error" in last


def wrong(case: Case, answer: Answer, expected: Any) -> str:
    """Say what is wrong with an answer; empty where nothing is."""
    if answer.status != 200:
        return f"{case}: {answer.status} {answer.body[:300]!r}"
    try:
        found = joined([each for _, each in answer.events()]) if answer.streamed else answer.json
    except (AssertionError, ValueError, KeyError) as error:
        return f"{case}: {error!r} {answer.body[-300:]!r}"
    if case.fields and case.fields.get("stream"):
        expected = {name: value for name, value in expected.items() if name in found}
    found = difference(expected, found)
    return found and f"{case}: alone and here differ at {found}"


async def alone(url: str, cases: Sequence[Case]) -> list[Any]:
    """Ask for each answer while nobody else asks.  Raises ValueError where one is refused."""
    found = []
    async with Connection(url) as connection:
        for case in cases:
            answer = await connection.ask(*case.plain[1:])
            if answer.status != 200:
                raise ValueError(f"{case}: {answer.status} {answer.body[:300]!r}")
            found.append(answer.json)
    return found


async def watch(served: Served, states: list[State]) -> None:
    """Look at the processes every few seconds, until this is cancelled."""
    while True:
        states.append(served.state())
        await asyncio.sleep(_WATCH)


async def disturb(served: Served, load: Load, kill: float, reload: float) -> None:
    """Kill a model process, and have the models read anew, every so many seconds; 0 is never."""

    async def every(seconds: float, what: str, act: Callable[[], None]) -> None:
        while seconds:
            await asyncio.sleep(seconds)
            act()
            load.counts[what] += 1

    rng = np.random.default_rng(load.seed)
    load.kills = bool(kill)
    await asyncio.gather(
        every(kill, "killed", lambda: os.kill(int(rng.choice(served.models())), signal.SIGKILL)),
        every(reload, "reloaded", lambda: served.process.send_signal(signal.SIGHUP)),
    )


async def settled(url: str, timeout: float = 60) -> dict[str, float]:
    """Wait until nothing runs and nothing waits -> the gauges that say so, as they were last."""
    until = time.monotonic() + timeout
    async with Connection(url) as connection:
        while True:
            lines = (await connection.ask("GET", "/metrics")).body.decode().splitlines()
            pairs = (line.rsplit(" ", 1) for line in lines if line[:1] != "#")
            gauges = {name: float(value) for name, value in pairs if "running" in name or "waiting" in name}
            if not any(gauges.values()) or time.monotonic() > until:
                return gauges
            await asyncio.sleep(0.1)


async def rested(served: Served, before: State, timeout: float = 30) -> State:
    """Wait until there are as few processes and files as before: those of an older model end after some seconds."""
    until = time.monotonic() + timeout
    while True:
        await asyncio.sleep(1)
        state = served.state()
        if (len(state.memory), state.files) <= (len(before.memory), before.files) or time.monotonic() > until:
            return state


def percentiles(times: Sequence[float]) -> str:
    """Write the 50th and the 99th percentile in milliseconds."""
    low, high = np.percentile(times, [50, 99]) * 1e3
    return f"{low:,.0f} | {high:,.0f}"


def table(load: Load) -> str:
    """Write a row of times for each kind of request."""
    lines = ["| request | number | first text p50, ms | p99 | whole p50, ms | p99 |", "|---|---|---|---|---|---|"]
    for kind in sorted(load.wholes):
        firsts, wholes = load.firsts[kind], load.wholes[kind]
        lines.append(f"| {kind} | {len(wholes):,} | {percentiles(firsts)} | {percentiles(wholes)} |")
    return "\n".join(lines)


def memory(states: Sequence[State]) -> str:
    """Write the memory of each process at the begin, in the middle and at the end, and of all together its growth."""
    rows = [states[0], states[len(states) // 2], states[-1]]
    told = (f"after {each.seconds:.0f} s {' + '.join(f'{own:.0f}' for own in each.memory)} MB" for each in rows)
    later = [(each.seconds, sum(each.memory)) for each in states[len(states) // 2 :]]
    slope = statistics.linear_regression(*zip(*later, strict=True)).slope * 60 if len(later) > 2 else float("nan")
    return f"memory, front + models: {'; '.join(told)}; in the second half {slope:+.2f} MB a minute"


async def main() -> int:
    arguments = make_parser().parse_args()
    begin = time.monotonic()
    with Served(*MODELS, *arguments.serve) as served:
        await served.ready()
        print(f"ready after {time.monotonic() - begin:.2f} s")
        cases = mixed(arguments.cases, arguments.seed, arguments.without)
        load = Load(served.url, cases, await alone(served.url, cases), arguments.seed)
        hostile_faults = [*await hostile.refusals(served.url), *await hostile.slow_acts(served.url)]
        load.faults += [f"hostile: {each}" for each in hostile_faults]
        before, states = served.state(), []
        busy, own, begin = served.busy(), sum(os.times()[:2]), time.monotonic()
        beside = [watch(served, states), disturb(served, load, arguments.kill, arguments.reload)]
        beside = [asyncio.create_task(each) for each in beside]
        await load.run(arguments.clients, arguments.seconds)
        seconds = time.monotonic() - begin
        shares = [(now - then) / seconds for now, then in zip(served.busy(), busy, strict=False)]
        share = (sum(os.times()[:2]) - own) / seconds
        for each in beside:
            each.cancel()
        gauges = await settled(served.url)
        states.append(after := await rested(served, before))
        code, left = served.end(arguments.end)
        printed = served.printed()
    print(f"{arguments.clients} clients for {seconds:.1f} s: {json.dumps(load.counts)}")
    print(table(load))
    print(memory(states))
    print(f"cores kept busy: the load program {share:.2f}, the server {' + '.join(f'{each:.2f}' for each in shares)}")
    print(f"threads {before.threads} and {after.threads}, files {before.files} and {after.files}; gauges {gauges}")
    print(f"exit code {code}, processes left: {left}")
    for fault in load.faults[:40]:
        print(f"FAULT {fault}")
    if "Traceback" in printed:
        print(printed[printed.index("Traceback") :][:4000])
    still = [name for name, value in gauges.items() if value]
    # The front keeps the threads by which it encodes long texts, which are no more than these.
    grown = after.files > before.files or after.threads > before.threads + THREADS
    return int(
        bool(
            load.faults
            or code not in (0, -9)
            or left
            or still
            or grown
            or load.counts["lost"]
            or "Traceback" in printed
        )
    )


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--cases", type=int, default=195, help="different requests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kill", type=float, default=0, help="seconds after which a model process is killed, again")
    parser.add_argument("--reload", type=float, default=0, help="seconds after which the models are read anew, again")
    parser.add_argument("--without", nargs="*", default=[], help="parts of paths that are not asked")
    parser.add_argument("--end", choices=("SIGTERM", "SIGKILL"), default="SIGTERM", help="signal at the end")
    parser.add_argument("--serve", nargs=argparse.REMAINDER, default=[], help="further flags of toolkit serve")
    return parser


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
