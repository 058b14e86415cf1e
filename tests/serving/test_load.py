"""Requests of all kinds at once, some of them wrong: `load` does for minutes what these do once."""

import asyncio

from tests.serving import hostile
from tests.serving.load import Load, alone, settled
from tests.serving.mix import mixed


def test_what_is_wrong_is_refused_and_says_why(server):
    assert asyncio.run(hostile.refusals(server.address)) == []


def test_answers_at_once_are_those_that_come_alone_and_who_leaves_leaves_nothing(server):
    cases = mixed(39, 5)

    async def asked() -> tuple[Load, dict[str, float]]:
        load = Load(server.address, cases, await alone(server.address, cases), 5)
        leaving = [load.leave(each, 0.01 * place) for place, each in enumerate(cases[:8])]
        await asyncio.gather(load.all_at_once(), *leaving)
        return load, await settled(server.address)

    load, gauges = asyncio.run(asked())
    assert load.faults == []
    assert load.counts["answered"] == len(cases)
    assert load.counts["lost"] == 0
    assert gauges
    assert not any(gauges.values())
