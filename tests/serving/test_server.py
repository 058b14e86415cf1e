"""The server at work: what dies, what is told to go, what is read anew; nothing is left behind."""

import contextlib
import http.client
import json
import os
import pty
import shutil
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.serving.conftest import needs_server, until
from toolkit.models.storage import WEIGHTS_FILE

pytestmark = [needs_server, pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are counted")]

SHORT = {"prompt": "I am", "max_tokens": 4, "min_tokens": 4, "temperature": 0}
# So much that it does not end by itself while a test waits for something else.
LONG = {"prompt": "I am", "max_tokens": 4000, "min_tokens": 4000, "n": 16, "temperature": 1, "seed": 1}
ORIGIN = "https://app.example"
# The terminal that is the standard input becomes the one that controls the server.
AT_A_TERMINAL = "import fcntl, os, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)"


@pytest.fixture(scope="module")
def patient_gpt(make_gpt, tmp_path_factory):
    """A model that can write for long."""
    return make_gpt(tmp_path_factory.mktemp("models") / "patient", max_length=4096)


@pytest.fixture
def pool():
    with ThreadPoolExecutor(4) as pool:
        yield pool


def alive(pids):
    """Those of the processes that still run: a zombie has ended."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
            found += [pid] if state != "Z" else []
    return found


def metric(served, name):
    text = served.ask("/metrics")[1]
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"{name}{{"))


def held(served, pool, number=1, **fields):
    """Ask for something, of model processes that are stopped -> the answer, when it comes."""
    answer = pool.submit(served.ask, "/v1/completions", {**SHORT, **fields})
    until(lambda: metric(served, "toolkit_running") == number)
    return answer


def events(served, body):
    """Ask for a stream -> its events one by one, the first of which has come."""
    connection = http.client.HTTPConnection(served.address.removeprefix("http://"), timeout=60)
    connection.request("POST", "/v1/completions", json.dumps({**body, "stream": True}))
    answer = connection.getresponse()

    def lines():
        with contextlib.closing(connection):
            for line in answer:
                if line.startswith(b"data: "):
                    yield line[6:].strip()

    found = lines()
    return next(found), found


def preflight(served, origin):
    """Ask as a browser does before it sends what a page of another origin wants to send."""
    connection = http.client.HTTPConnection(served.address.removeprefix("http://"), timeout=60)
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, content-type"}
    with contextlib.closing(connection):
        connection.request("OPTIONS", "/v1/chat/completions", headers={"Origin": origin, **asked})
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers["access-control-allow-origin"]


def test_nothing_is_lost_but_what_a_dead_process_had_begun_and_a_shutdown_waits(pool, serve, tiny_gpt, tmp_path):
    own = shutil.copytree(tiny_gpt, tmp_path / "own")
    served = serve(own, "--access-log", "/dev/full").opened()
    whole = served.ask("/v1/completions", SHORT)[1]["choices"]

    # A process that is killed.
    [process] = served.children()
    os.kill(process, signal.SIGSTOP)
    answer = held(served, pool)
    os.kill(process, signal.SIGKILL)
    status, error, told = answer.result()
    assert (status, error["error"]["code"], int(told["retry-after"]) > 0) == (503, "unavailable", True)
    assert "ended unexpectedly" in error["error"]["message"]
    until(lambda: served.ask("/ready")[0] == 200)
    assert served.ask("/v1/completions", SHORT)[1]["choices"] == whole
    assert metric(served, "toolkit_restarts_total") == 1

    # Weights that were written anew: the request that runs ends where it is.
    [process] = served.children()
    os.kill(process, signal.SIGSTOP)
    answer = held(served, pool)
    os.utime(own / WEIGHTS_FILE, (1, 1))
    served.process.send_signal(signal.SIGHUP)
    until(lambda: served.ask("/v1/models")[1]["data"][0]["created"] == 1)
    [newer] = {*served.children()} - {process}
    assert served.ask("/v1/completions", SHORT)[1]["choices"] == whole  # by the newer one
    os.kill(process, signal.SIGCONT)
    assert answer.result()[1]["choices"] == whole

    # A shutdown: what runs ends, what comes is refused.
    os.kill(newer, signal.SIGSTOP)
    answer = held(served, pool)
    served.process.send_signal(signal.SIGTERM)
    status, error, told = until(lambda: (found := served.ask("/ready"))[0] == 503 and found)
    assert error["status"] == "closing"
    assert served.ask("/health")[0] == 200
    status, error, told = served.ask("/v1/completions", SHORT)
    assert (status, told["connection"], told["retry-after"]) == (503, "close", "5")
    assert error["error"]["message"] == "the server is shutting down"
    os.kill(newer, signal.SIGCONT)
    assert answer.result()[1]["choices"] == whole

    code, out, errors = served.end()
    assert code == 0
    assert out.splitlines()[1] == "1 model: own (language-model)"
    lines = errors.splitlines()
    assert len(lines) == 3, errors
    assert lines[0].startswith(
        "toolkit: the access log /dev/full cannot be written, and the server goes on without it: "
    )
    assert lines[1].startswith("toolkit: a process of own has ended")
    assert lines[2].startswith("toolkit: own was read anew")
    assert alive([process, newer]) == []


def test_a_request_that_asks_its_model_several_times_is_answered_in_a_shutdown(pool, serve):
    served = serve("en-ne-small").opened()
    [process] = served.children()
    os.kill(process, signal.SIGSTOP)
    body = {"q": ["I am a boy."] * 40, "source": "en", "target": "ne", "details": True}
    answer = pool.submit(served.ask, "/translate", body)
    until(lambda: metric(served, "toolkit_running") > 0)
    served.process.send_signal(signal.SIGTERM)
    until(lambda: served.ask("/ready")[0] == 503)
    os.kill(process, signal.SIGCONT)
    status, found, _ = answer.result()
    assert (status, len({*found["translatedText"]}), len(found["details"])) == (200, 1, 40)
    assert served.end()[0] == 0


@pytest.mark.parametrize("how", ["timeout", "Ctrl-C twice", "terminal closed"])
def test_what_does_not_end_in_time_is_told_so(serve, patient_gpt, how):
    terminal, theirs = pty.openpty()
    seconds = 60 if how == "Ctrl-C twice" else 0
    served = serve(patient_gpt, "--shutdown-timeout", seconds, first=AT_A_TERMINAL, stdin=theirs).opened()
    os.close(theirs)
    try:
        [process] = served.children()
        first, rest = events(served, LONG)
        assert json.loads(first)["choices"]
        if how == "timeout":
            served.process.send_signal(signal.SIGTERM)
        elif how == "terminal closed":
            os.close(terminal)
        else:
            os.write(terminal, b"\x03")
            until(lambda: served.ask("/ready")[1]["status"] == "closing")
            assert served.process.poll() is None
            os.write(terminal, b"\x03")
        *_, last = rest
        error = json.loads(last)["error"]
        assert (error["code"], error["message"]) == (
            "unavailable",
            "the server is shutting down, and the request has not ended in time",
        )
        served.process.wait(60)
        code, _, errors = served.end()
        assert (code, errors) == (0, "")
        assert alive([process]) == []
    finally:
        if how != "terminal closed":
            os.close(terminal)


def test_ctrl_c_while_models_are_read_leaves_nothing(serve, tiny_gpt):
    served = serve(tiny_gpt, "--workers", 2)
    processes = until(lambda: len(found := served.children()) == 2 and found)
    code, out, errors = served.end(signal.SIGINT)
    assert (code, out, errors) == (0, "", "")
    assert alive(processes) == []


def test_a_port_that_is_given_is_taken_the_browser_is_opened_and_an_origin_is_let_in(serve, tiny_gpt, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    note = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\necho $1 > {note}.part\nmv {note}.part {note}\n", encoding="utf-8")
    browser.chmod(0o755)
    where = ("--port", port, "--host", "0.0.0.0", "--cors", ORIGIN, "--cors", "http://localhost:3000")
    served = serve(tiny_gpt, *where, "--open", BROWSER=f"{browser} %s").opened()
    assert served.address == f"http://127.0.0.1:{port}"
    until(note.exists)
    assert note.read_text("utf-8") == f"{served.address}/\n"
    assert served.ask("/health", Host="any.name.example")[0] == 200
    for path, body, status in (
        ("/v1/completions", SHORT, 200),
        ("/v1/completions", {"n": "x"}, 400),
        ("/x", None, 404),
    ):
        found, _, told = served.ask(path, body, Origin=ORIGIN)
        assert (found, told["access-control-allow-origin"]) == (status, ORIGIN)
        assert "X-Request-Id" in told["access-control-expose-headers"]
    status, _, told = served.ask("/v1/completions", SHORT, Origin="https://other.example")
    assert (status, "access-control-allow-origin" in told) == (403, False)
    assert preflight(served, ORIGIN) == (200, ORIGIN)
    assert preflight(served, "https://other.example") == (400, None)
    code, _, errors = served.end()
    assert (code, errors.splitlines()) == (
        0,
        ["toolkit: everybody who reaches this machine can use the server: --api-keys FILE asks for a key"],
    )
