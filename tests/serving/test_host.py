"""Model processes answer as the library does, whoever comes, leaves or dies meanwhile; none outlives its front."""

import asyncio
import gc
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import toolkit
from tests.conftest import ENGLISH
from toolkit.decoding import ContinuationConfig, GenerationConfig, cross_attention, generate
from toolkit.decoding.continuous import ContinuousBatch, Progress, Request, Token
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.models.reward import ActorCritic
from toolkit.models.storage import load_model, save_model
from toolkit.serving import engine, host, replicas
from toolkit.serving.engine import Messages, message_bytes, unpacked
from toolkit.serving.host import Host
from toolkit.serving.stream import Busy, Died, Failed, Overdue, Stream, Unavailable
from toolkit.tokenization import ByteTokenizer, IdTokenizer

ROOT = Path(toolkit.__file__).parent.parent
FAULT = 13  # a request of this number is a fault of ours
PATIENCE = 60

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are killed")


class Gated(ContinuousBatch):
    """Decodes only while a file is there."""

    def __init__(self, gate, *arguments):
        super().__init__(*arguments)
        self.gate = gate

    def add(self, request):
        self.faulty = request.number == FAULT
        if request.number == FAULT + 1:
            raise KeyError("a fault with one request")
        super().add(request)

    def step(self):
        if self.faulty:
            raise KeyError("a fault")
        if not self.gate.exists():
            time.sleep(0.001)
            return []
        return super().step()


class Doomed(ContinuousBatch):
    """Ends its process."""

    def __init__(self, *_):
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def runner():
    """Runs coroutines in one loop, with its debug mode's complaints."""
    with asyncio.Runner() as runner:
        yield lambda work: runner.run(asyncio.wait_for(work, PATIENCE))
    assert multiprocessing.active_children() == []


@pytest.fixture(scope="module")
def writer(runner, tiny_gpt):
    """A host of the tiny language model."""
    found = Host(tiny_gpt)
    runner(found.start())
    yield found
    runner(found.close(0))


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    return tmp_path_factory.mktemp("gate") / "open"


@pytest.fixture(scope="module")
def gated(runner, tiny_gpt, gate):
    """A host of two places that decodes while the gate is open."""
    found = Host(tiny_gpt, places=2, max_queue=2, batch=partial(Gated, gate))
    runner(found.start())
    yield found
    runner(found.close(0))


@pytest.fixture(autouse=True)
def _closed_gate(gate):
    yield
    gate.unlink(missing_ok=True)


def request_of(ids=(20, 30, 40), number=0, **settings):
    settings = {"max_new_tokens": 8, "seed": 1, **settings}
    return Request(0, list(ids), ContinuationConfig(**settings), number)


async def read(stream):
    """Read a stream to its end -> the ids of every sample as they came, and the hypotheses."""
    samples, hypotheses = {}, None
    async with stream:
        async for news in stream:
            assert hypotheses is None
            for sample, token in news.written:
                samples.setdefault(sample, []).append(token.id)
            hypotheses = news.hypotheses
    return samples, hypotheses


async def until(true):
    """Wait until something is so."""
    while not true():
        await asyncio.sleep(0.002)


def gone(pid):
    """Say if a process has ended, if nobody has asked for its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


SETTINGS = (
    {"do_sample": False, "temperature": 1.0, "min_p": 0.0},
    {"seed": 5},
    {"seed": 7, "num_return_sequences": 3},
    {"do_sample": False, "temperature": 1.0, "min_p": 0.0, "num_beams": 3, "num_return_sequences": 2},
)


def test_a_process_writes_what_the_library_writes(runner, writer, tiny_gpt):
    model = load_model(tiny_gpt)
    requests = [
        request_of(range(20, 21 + number), number, **SETTINGS[number % 4], max_new_tokens=5) for number in range(12)
    ]

    async def together():
        return await asyncio.gather(*(read(writer.submit(each)) for each in requests))

    answers = runner(together())
    for each, (samples, hypotheses) in zip(requests, answers, strict=True):
        [alone] = generate(model, [each.ids], each.config, numbers=[each.number])
        assert [found.ids for found in hypotheses] == [found.ids for found in alone]
        assert [found.log_prob for found in hypotheses] == pytest.approx([found.log_prob for found in alone], abs=1e-4)
        if each.config.num_beams == 1:
            assert sorted(ids for ids in samples.values()) == sorted(
                [*found.ids, *[3] * (len(found.token_log_probs) > len(found.ids))] for found in alone
            )
    written = sum(len(ids) for samples, _ in answers for ids in samples.values())
    beams = sum(len(each.token_log_probs) for samples, found in answers if not samples for each in found)
    assert writer.figures.written_tokens == written + beams
    assert writer.figures.busy >= written
    assert writer.figures.prompt_tokens == sum(len(each.ids) for each in requests) > writer.figures.cached_tokens
    assert (writer.running, writer.waiting, writer.restarts) == (0, 0, 0)


def test_the_reader_has_no_weights_and_reads_as_the_model(tiny_gpt, tiny_model, make_gpt, tmp_path, writer):
    text = ENGLISH[0]
    assert writer.reader.tokenizer.encode(text) == toolkit.load(tiny_gpt).tokenizer.encode(text)
    assert not hasattr(writer.reader.model, "vector")
    assert (writer.kind, writer.languages, writer.ready) == ("language-model", [], True)
    assert (writer.facts["dtype"], writer.facts["max_length"]) == ("float32", 32)
    translator = Host(tiny_model)
    assert (translator.kind, translator.ready, translator.name) == ("translator", False, "tiny")
    assert Host("en-ne-small").languages == ["en", "ne"]
    assert Host(make_gpt(tmp_path / "chat", ByteTokenizer(), template="control")).kind == "chat"
    policy = ActorCritic(replace(writer.reader.model.config))
    policy.allocate()
    shutil.copytree(tiny_gpt, tmp_path / "policy")
    save_model(policy, tmp_path / "policy")
    assert Host(tmp_path / "policy").reader.tokenizer.encode(text) == writer.reader.tokenizer.encode(text)
    with pytest.raises(ModelError, match="has no tokenizer"):
        Host(make_gpt(tmp_path / "ids", IdTokenizer(range(40))))
    with pytest.raises(ModelError, match="there is no model"):
        Host("nothing")


def test_attention_is_computed_in_the_process(runner, tiny_model):
    found, model = Host(tiny_model), load_model(tiny_model)
    pairs = [(list(range(20, 22 + number)), [30] * (number + 1)) for number in range(20)]

    async def asked():
        with pytest.raises(Unavailable, match="is being read"):
            found.submit(request_of())
        await found.start()
        source = found.submit(Request(0, [20, 21, 22], GenerationConfig(max_new_tokens=9)))
        maps = await found.attention(pairs)
        with pytest.raises(DataError, match="vocabulary"):
            await found.attention([([10**6], [5])])
        await read(source)
        await found.close(1)
        return maps

    for (source, target), got in zip(pairs, runner(asked()), strict=True):
        [expected] = cross_attention(model, [source], [target])
        assert got == pytest.approx(expected, abs=1e-5)
    with pytest.raises(Unavailable, match="shutting down"):
        found.submit(request_of())


def test_what_cannot_be_decoded_is_told_and_nothing_else_is_disturbed(runner, writer):
    async def asked():
        other = writer.submit(request_of())
        with pytest.raises(DataError, match="vocabulary"):
            await read(writer.submit(request_of([10**6])))
        with pytest.raises(ConfigError, match="the ban"):
            await read(writer.submit(replace(request_of(), bad_words=[[10**6]])))
        assert (await read(other))[1]

    runner(asked())


def test_a_request_that_is_left_frees_its_place(runner, gated, gate):
    async def asked():
        first, second = gated.submit(request_of()), gated.submit(request_of())
        advance, waits = gated.submit(request_of()), gated.submit(request_of())
        assert (gated.running, gated.waiting) == (3, 1)
        first.cancel()
        assert (gated.running, gated.waiting) == (3, 0)
        with pytest.raises(StopAsyncIteration):
            await anext(first)
        with pytest.raises(KeyError, match="the client left"):
            async with second:
                raise KeyError("the client left")
        assert gated.running == 2
        gate.touch()
        assert [len(await read(each)) for each in (advance, waits)] == [2, 2]
        assert gated.running == 0

    runner(asked())


def test_a_full_queue_is_told_and_so_is_a_long_wait(runner, gated, gate):
    async def asked():
        streams = [gated.submit(request_of()) for _ in range(4)]
        late = gated.submit(request_of(), wait=0.01)
        with pytest.raises(Busy, match="2 requests wait already") as busy:
            gated.submit(request_of())
        assert (busy.value.status, busy.value.retry_after >= 1) == (429, True)
        with pytest.raises(Overdue, match=r"has waited for 0\.01 s") as overdue:
            await anext(late)
        assert (overdue.value.status, overdue.value.retry_after >= 1) == (503, True)
        wide = gated.submit(request_of(num_return_sequences=9))  # more than there are places, and nobody before it
        gate.touch()
        for each in streams:
            assert (await read(each))[1]
        assert len((await read(wide))[1]) == 9

    runner(asked())


def test_a_process_that_is_killed_is_told_and_started_again(runner, gated, gate, capfd):
    async def asked():
        begun = [gated.submit(request_of(number=number)) for number in range(2)]
        others = [gated.submit(request_of(number=number)) for number in range(2, 5)]
        [pid] = gated.pids()
        asking = asyncio.create_task(gated.attention([([5], [6])]))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        for each in begun:
            with pytest.raises(Died, match="started again: ask again") as died:
                await read(each)
            assert (died.value.status, died.value.retry_after) == (503, 1)
        with pytest.raises((Died, ModelError)):
            await asking
        await until(lambda: gated.ready)
        assert gated.pids() != [pid]
        gate.touch()
        return [await read(each) for each in others]

    before = gated.restarts
    found = runner(asked())
    assert [len(hypotheses) for _, hypotheses in found] == [1, 1, 1]
    assert gated.restarts == before + 1
    assert "exit code -9" in capfd.readouterr().err


def test_a_fault_in_a_step_is_told_and_the_process_started_again(runner, gated, gate, capfd):
    gate.touch()

    async def asked():
        with pytest.raises(Failed, match=r"made a mistake \(KeyError\)") as fault:
            await read(gated.submit(request_of(number=FAULT + 1)))
        assert fault.value.status == 500
        for _ in range(2):  # the second process has the standard error of this test
            [pid] = gated.pids()
            with pytest.raises(Failed, match=r"made a mistake \(KeyError\)"):
                await read(gated.submit(request_of(number=FAULT)))
            assert (await read(gated.submit(request_of())))[1]
            assert gated.pids() != [pid]

    runner(asked())
    assert "KeyError: 'a fault'" in capfd.readouterr().err


def test_weights_that_are_damaged_later_fail_a_reload_and_a_new_start(runner, tiny_gpt, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(replicas, "_FIRST_PAUSE", 0.01)
    path = shutil.copytree(tiny_gpt, tmp_path / "model")
    found = Host(path, processes=1)

    async def asked():
        await found.start()
        weights = (path / "model.safetensors").read_bytes()
        (path / "model.safetensors").write_bytes(weights[: len(weights) // 2])
        pids = found.pids()
        with pytest.raises(ModelError, match=r"model\.safetensors"):
            await found.reload()
        assert found.pids() == pids
        assert (await read(found.submit(request_of())))[1]
        (path / "model.safetensors").write_bytes(b"damaged")
        os.kill(pids[0], signal.SIGKILL)
        await until(lambda: found.problem and "in a row" in found.problem)
        assert not found.ready
        with pytest.raises(Unavailable, match=r"3 times in a row: .*damaged"):
            found.submit(request_of())
        (path / "model.safetensors").write_bytes(weights)
        await until(lambda: found.ready)
        assert (await read(found.submit(request_of())))[1]
        await found.close(1)

    runner(asked())
    assert "has ended" in capfd.readouterr().err
    (path / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelError, match="damaged"):
        Host(path)


def test_weights_that_cannot_be_read_and_a_process_that_dies_are_told_at_the_start(runner, tiny_gpt, tmp_path):
    path = shutil.copytree(tiny_gpt, tmp_path / "model")
    found = Host(path, processes=2)
    weights = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(weights[:-8])
    before = {*multiprocessing.active_children()}
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        runner(found.start())
    with pytest.raises(Died, match="has ended while it read the model"):
        runner(Host(tiny_gpt, batch=Doomed).start())
    assert {*multiprocessing.active_children()} == before


FRONT = """
import asyncio, sys
from toolkit.serving.host import Host
from tests.serving.test_host import request_of

async def serve():
    host = Host(sys.argv[1], processes=2)
    await host.start()
    stream = host.submit(request_of(max_new_tokens=20))
    print(*host.pids(), flush=True)
    await asyncio.sleep(600)

if __name__ == "__main__":
    asyncio.run(serve())
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_no_process_outlives_a_front_that_is_killed_and_a_signal_ends_none(tiny_gpt, tmp_path):
    program = tmp_path / "front.py"
    program.write_text(FRONT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(program), str(tiny_gpt)]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as front:
        pids = [int(each) for each in front.stdout.readline().split()]
        assert len(pids) == 2
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for pid in pids:
                os.kill(pid, number)
        assert not any(map(gone, pids))
        front.kill()
    end = time.monotonic() + PATIENCE
    while not all(map(gone, pids)):
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_reload_loses_no_request_and_readers_keep_their_processes(
    runner, make_gpt, tiny_gpt, tmp_path, gate, monkeypatch
):
    monkeypatch.setattr(host, "_GRACE", 0.01)
    run = tmp_path / "run"
    run.mkdir()
    shutil.copytree(tiny_gpt, run / "step-000001")
    (run / "best").write_text("step-000001\n")
    make_gpt(run / "step-000002", ByteTokenizer())
    found = Host(run, places=2, batch=partial(Gated, gate), watch=0.01)

    async def asked():
        await found.start()
        old, [pid] = found.reader, found.pids()
        streams = [found.submit(request_of(number=number), reader=old) for number in range(6)]
        (run / "best").write_text("step-000003\n")  # there is no such checkpoint: the old one stays
        await asyncio.sleep(0.05)
        (run / "best").write_text("step-000002\n")
        await until(lambda: found.reader is not old)
        assert isinstance(found.reader.tokenizer, ByteTokenizer)
        assert found.facts["checkpoint"] == "step-000002"
        assert (found.running, found.waiting) == (3, 3)
        gate.touch()
        new = await read(found.submit(request_of(), reader=found.reader))
        answers = [await read(each) for each in streams]
        await until(lambda: len(found.pids()) == 1)
        assert found.pids() != [pid]
        await until(lambda: gone(pid))
        with pytest.raises(Unavailable, match="replaced by a newer one"):
            found.submit(request_of(), reader=old)
        assert found.figures.written_tokens >= 7
        await found.close(1)
        return new, answers

    new, answers = runner(asked())
    for number, (_, hypotheses) in enumerate(answers):
        each = request_of(number=number)
        [alone] = generate(load_model(run / "step-000001"), [each.ids], each.config, numbers=[number])
        assert hypotheses[0].ids == alone[0].ids
    [alone] = generate(load_model(run / "step-000002"), [request_of().ids], request_of().config)
    assert new[1][0].ids == alone[0].ids


@pytest.mark.parametrize("timeout", [0.01, PATIENCE, 10 * PATIENCE])
def test_shutting_down_lets_requests_end_in_time_and_leaves_nothing(runner, tiny_gpt, gate, timeout):
    def held():
        gc.collect()
        return len([*Path("/proc/self/fd").iterdir()]), threading.active_count(), len(multiprocessing.active_children())

    async def asked():
        await asyncio.to_thread(int)  # the loop keeps its thread and sockets
        before = held()
        found = Host(tiny_gpt, places=1, batch=partial(Gated, gate))
        await found.start()
        streams = [found.submit(request_of()) for _ in range(4)]
        closing = asyncio.create_task(found.close(timeout))
        await asyncio.sleep(0)
        with pytest.raises(Unavailable, match="shutting down"):
            found.submit(request_of())
        if timeout == PATIENCE:
            gate.touch()
        elif timeout > PATIENCE:  # somebody is in a hurry
            await found.close(0)
        results = await asyncio.gather(*map(read, streams), return_exceptions=True)
        await closing
        assert held() == before
        return results

    for each in runner(asked()):
        if timeout == PATIENCE:  # and the gate was opened
            assert each[1]
        else:
            assert isinstance(each, Unavailable)
            assert "has not ended in time" in str(each)


def test_several_processes_share_the_work_and_prompts_find_where_they_were_read(runner, tiny_gpt, gate):
    found = Host(tiny_gpt, processes=2, places=2, batch=partial(Gated, gate))

    async def asked():
        await found.start()
        one, two = found._version.replicas.processes
        prompts = [[20, 21, 22], [30, 31, 32], [20, 21, 23], [30, 31, 33]]
        streams = [found.submit(request_of(ids)) for ids in prompts]
        assert [len(each.requests) for each in (one, two)] == [2, 2]
        gate.touch()
        for each in streams:
            await read(each)
        for ids in ([30, 31, 40], [20, 21, 40], [30, 50]):
            process = max((one, two), key=lambda each: each.remembers(ids))
            stream = found.submit(request_of(ids))
            assert [len(each.requests) for each in (one, two)] == [each is process for each in (one, two)]
            await read(stream)
        await found.close(1)

    runner(asked())


def test_a_slow_reader_holds_one_piece_of_news():
    async def slow():
        stream = Stream(request_of(), lambda _: None)
        for number in range(1000):
            stream.push(Progress(0, [(0, Token(number, -1.0, []))], cached=3 if not number else 0))
        assert len(gc.get_referents(stream)) < 30
        first = await anext(stream)
        assert ([token.id for _, token in first.written], first.cached) == (list(range(1000)), 3)
        stream.push(Progress(0, [(0, Token(7, -1.0, []))]))
        stream.push(Progress(0, error=DataError("wrong")))
        stream.push(Progress(0, [(0, Token(8, -1.0, []))]))
        assert [token.id for _, token in (await anext(stream)).written] == [7]
        with pytest.raises(DataError, match="wrong"):
            await anext(stream)
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    asyncio.run(slow())


class Endless:
    """Stands for a batch: writes many tokens of one request as fast as they are taken."""

    count, prompt_tokens, cached_tokens, sequences = 20_000, 0, 0, 1

    def __init__(self):
        self.written, self.idle, self.done = 0, True, threading.Event()

    def add(self, request):
        self.key, self.idle = request.key, False

    def step(self):
        self.written += 1
        self.idle = self.written == self.count
        if self.idle:
            self.done.set()
        return [Progress(self.key, [(0, Token(self.written, -0.5, []))], hypotheses=[] if self.idle else None)]


def test_a_front_that_does_not_read_stops_no_process_and_gets_joined_news():
    batch, (ours, theirs) = Endless(), socket.socketpair()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    def work():
        with theirs, pytest.raises(EOFError):
            engine.Engine(engine.Channel(theirs), None, batch).run()

    thread = threading.Thread(target=work)
    thread.start()
    with ours:
        ours.sendall(message_bytes(("add", request_of())))
        assert batch.done.wait(PATIENCE)
        messages, found, last = Messages(), [], None
        while last is None:
            for _, [news], _, _ in messages.push(ours.recv(1 << 16)):
                last = unpacked(news).hypotheses
                found.append([token.id for _, token in unpacked(news).written])
    thread.join()
    assert [each for some in found for each in some] == list(range(1, batch.count + 1))
    assert len(found) < batch.count / 10
