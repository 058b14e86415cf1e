"""The gate of the server: keys, origins, sizes, slow clients; what it tells of requests, and what it never tells."""

import base64
import errno
import gzip
import hashlib
import json
import os
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.serving.conftest import PATIENCE, Served, needs_server, until

pytest.importorskip("prometheus_client")
from prometheus_client.parser import text_string_to_metric_families

from toolkit.serving.metrics import AccessLog

pytestmark = needs_server

# Whoever is slow is slow after a second.
IMPATIENT = """
import toolkit.serving.gate as gate, toolkit.serving.server as server
gate._BODY_SECONDS = server._HEADER_SECONDS = server._UNREAD_SECONDS = 1.0
"""
FILE_KEY, OTHER_KEY = "of-the-file", "of-the-environment"
BODY, CONNECTIONS = 5000, 12
SECRET = "nobody reads this"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("log") / "access.jsonl"


@pytest.fixture(scope="module")
def gate(tiny_gpt, log):
    """A server with keys that is soon out of patience."""
    keys = log.with_name("keys.txt")
    keys.write_text(f"# whose it is\n\n{FILE_KEY}\nanother\n", encoding="utf-8")
    keys.chmod(0o600)
    limits = ("--max-body", BODY, "--max-connections", CONNECTIONS, "--max-queue", 0)
    where = ("--root-path", "/base", "--allow-host", "Models.Example.org", "--access-log", log, "--api-keys", keys)
    served = Served(tiny_gpt, *limits, *where, first=IMPATIENT, TOOLKIT_API_KEYS=f"{OTHER_KEY}, more").opened()
    served.address = served.address.removesuffix("/base")
    yield served
    code, _, errors = served.end()
    assert (code, errors) == (0, "")


def sent(gate, *pieces, wait=0.0):
    """Send bytes as they are -> all that comes back until the server closes the connection."""
    host, port = gate.address.removeprefix("http://").split(":")
    found = b""
    with socket.create_connection((host, int(port)), PATIENCE) as connection:
        with suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(wait)
        with suppress(ConnectionError):
            while piece := connection.recv(65536):
                found += piece
    return found


def head(request="GET /health", **headers):
    lines = {"Host": "127.0.0.1", "Connection": "close", **headers}
    return "\r\n".join([f"{request} HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items()), "", ""]).encode()


def status_of(answer):
    return int(answer.split(b" ", 2)[1])


def error_in(answer):
    return json.loads(answer.partition(b"\r\n\r\n")[2])["error"]


# Who is let in


def test_a_key_of_the_file_or_the_environment_is_needed(gate):
    for key in (FILE_KEY, "another", OTHER_KEY, "more"):
        assert gate.ask("/v1/models", Authorization=f"Bearer {key}")[0] == 200
        assert gate.ask("/v1/models", X_Api_Key=key)[0] == 200
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"X_Api_Key": f"{FILE_KEY}x"}, {"Authorization": "Bearer "}):
        for path, body in (("/v1/models", None), ("/v1/completions", {}), ("/metrics", None), ("/nowhere", None)):
            status, answer, told = gate.ask(path, body, **headers)
            assert (status, answer["error"]["type"]) == (401, "authentication_error")
            assert told["www-authenticate"] == "Bearer"
            assert FILE_KEY not in str(answer)


def test_libretranslates_clients_may_have_it_in_the_body_and_read_403(gate):
    bodies = {"/translate": {"q": "I am a boy.", "source": "en", "target": "ne"}, "/detect": {"q": "I am a boy."}}
    for path, body in bodies.items():
        for wrong in ({}, {"api_key": "wrong"}, {"api_key": ""}):
            status, answer, _ = gate.ask(path, {**body, **wrong})
            assert (status, [*answer]) == (403, ["error"])
            assert "key" in answer["error"]
        assert gate.ask(path, {**body, "api_key": OTHER_KEY})[0] not in (401, 403)
    assert gate.ask("/explain/generate?model=tiny-gpt&text=a")[0] == 401


def test_health_and_the_page_need_none(gate):
    for path in ("/", "/health", "/ready", "/languages", "/frontend/settings"):
        assert gate.ask(path)[0] == 200
    assert gate.ask("/health")[1] == {"status": "ok"}


def test_pages_elsewhere_and_names_that_are_not_ours_are_refused(gate):
    address = gate.address.removeprefix("http://")
    refused = {"Origin": "https://elsewhere.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}
    for headers in refused:
        answer = sent(gate, head("POST /v1/completions", **{"Content-Length": 2, **headers}), b"{}")
        assert (status_of(answer), error_in(answer)["type"]) == (403, "permission_error")
        assert b"access-control" not in answer.lower()
    allowed = {"Origin": gate.address, "Host": address}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}
    for headers in (*allowed, {"Host": "models.example.org:443"}, {"Host": "localhost"}, {"Host": "[::1]:1"}):
        assert status_of(sent(gate, head(**headers))) == 200
    answer = sent(gate, head(Host="rebound.example:80"))
    assert status_of(answer) == 400
    assert "--allow-host rebound.example" in error_in(answer)["message"]


# What is sent


def test_a_body_that_is_too_large_is_refused_and_whoever_sends_it_reads_that(gate):
    for body in (b"x" * 3_000_000, iter([b"x" * 50_000] * 60)):
        status, answer, told = gate.ask("/v1/completions", body, X_Api_Key=FILE_KEY)
        assert (status, told["connection"]) == (413, "close")
        assert answer["error"]["message"].endswith(f"and may have {BODY}: divide it")
    assert gate.ask("/v1/completions", b"x" * 3_000_000)[0] == 401
    assert gate.ask("/v1/completions", b"x" * BODY, X_Api_Key=FILE_KEY)[0] == 400
    asked = head(
        "POST /v1/completions", **{"X-Api-Key": FILE_KEY, "Content-Length": BODY + 1, "Expect": "100-continue"}
    )
    assert status_of(sent(gate, asked)) == 413  # before anything is sent


def test_whoever_is_slow_is_cut_off(gate):
    slow = head("POST /v1/completions", **{"X-Api-Key": FILE_KEY, "Content-Length": 99})
    with ThreadPoolExecutor(4) as pool:  # at the same time
        silent = pool.submit(sent, gate)
        headers = pool.submit(sent, gate, b"GET /health HT", *[b"T"] * 8, wait=0.2)
        body = pool.submit(sent, gate, slow, *[b" "] * 8, wait=0.2)
        twice = pool.submit(sent, gate, head(Connection="keep-alive"), b"GET", wait=0.1)
    assert silent.result() == b""
    for each in (headers, body):
        assert status_of(each.result()) == 408
        assert "not come within 1 seconds" in error_in(each.result())["message"]
    # Of two requests on a connection, the second is the slow one.
    assert [status_of(answer) for answer in re.split(rb"(?=HTTP/1.1)", twice.result())[1:]] == [200, 408]


def test_whoever_does_not_read_is_cut_off(gate):
    host, port = gate.address.removeprefix("http://").split(":")
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((host, int(port)))
        connection.sendall(head("GET /", Connection="keep-alive") * 200)  # 16 MB of answers

        def closed():
            try:
                connection.send(b"\r\n")
            except OSError:
                return True
            return False

        until(closed)


@pytest.mark.parametrize(
    "rubbish",
    [
        b"rubbish\r\n\r\n",
        head(**{"Content-Length": -1}),
        b"\x16\x03\x01\x02\x00\x01",
        b"GET / HTTP/1.1\r\nA: " + b"x" * 99_999,
    ],
    ids=["words", "length", "TLS", "long"],
)
def test_what_is_no_request_is_told(gate, rubbish):
    answer = sent(gate, rubbish, b"\r\n\r\n")
    assert answer == b"" or status_of(answer) == 400  # some systems drop the answer where more is sent than is read
    if len(rubbish) < 9999:
        assert "not HTTP/1.1" in error_in(answer)["message"]


def test_more_connections_than_allowed_are_refused(gate):
    host, port = gate.address.removeprefix("http://").split(":")
    with ExitStack() as idle:
        for _ in range(CONNECTIONS):
            idle.enter_context(socket.create_connection((host, int(port))))
        answer = sent(gate)
        assert (status_of(answer), error_in(answer)["code"]) == (503, "unavailable")
        assert b"\r\nRetry-After: 1\r\n" in answer
    assert gate.ask("/health")[0] == 200


# What is answered


def test_every_answer_has_a_number_which_is_that_of_the_request_where_it_is_sane(gate):
    assert gate.ask("/health", X_Request_Id="Trace-1.2:3")[2]["x-request-id"] == "Trace-1.2:3"
    for bad in ("with space", "x" * 129, "नाम".encode().decode("latin-1"), ""):
        assert re.fullmatch("[0-9a-f]{16}", gate.ask("/nowhere", X_Request_Id=bad)[2]["x-request-id"])


def test_what_there_is_not_is_told_with_what_was_meant(gate):
    for path, meant in {
        "/chat/completions": "/v1/chat/completions",
        "/v1/completion": "/v1/completions",
        "/helth": "/health",
    }.items():
        status, answer, _ = gate.ask(path, X_Api_Key=FILE_KEY)
        assert status == 404
        assert answer["error"]["message"] == f"there is nothing at {path}: did you mean {meant}?"
    status, answer, _ = gate.ask("/suggest", X_Api_Key=FILE_KEY)  # LibreTranslate has it
    assert (status, answer) == (404, {"error": "there is nothing at /suggest"})
    status, answer, told = gate.ask("/v1/completions", X_Api_Key=FILE_KEY)
    assert (status, told["allow"]) == (405, "POST")
    assert answer["error"]["message"] == "/v1/completions is not asked by GET: by POST"


def test_a_proxy_may_leave_its_path_in_front(gate):
    assert gate.ask("/base/health")[0] == gate.ask("/base/")[0] == 200
    assert gate.ask("/base/v1/models", X_Api_Key=FILE_KEY)[1] == gate.ask("/v1/models", X_Api_Key=FILE_KEY)[1]
    answer = sent(gate, head("GET /base"))
    assert (status_of(answer), b"location: /base/\r\n" in answer) == (308, True)
    assert gate.ask("/basement/health", X_Api_Key=FILE_KEY)[0] == 404


def test_the_page_is_compressed_and_runs_nothing_but_its_own(gate):
    status, page, told = gate.ask("/")
    assert (status, told["content-type"]) == (200, "text/html; charset=utf-8")
    policy = dict(part.split(" ", 1) for part in told["content-security-policy"].split("; "))
    for tag, rule in {"script": "script-src", "style": "style-src"}.items():
        contents = re.findall(f"<{tag}[^>]*>(.*?)</{tag}>", page, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in contents]
        assert policy[rule] == " ".join(f"'sha256-{each}'" for each in hashes)
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    packed = sent(gate, head("GET /", **{"Accept-Encoding": "gzip, br"})).partition(b"\r\n\r\n")
    assert b"content-encoding: gzip\r\n" in packed[0]
    assert gzip.decompress(packed[2]).decode() == page
    assert gate.ask("/", If_None_Match=told["etag"])[0] == 304


# What is told of it


def test_metrics_are_read_by_prometheus_and_count_what_was_asked(gate):
    def counted():
        status, text, told = gate.ask("/metrics", X_Api_Key=FILE_KEY)
        assert (status, told["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
        assert all(each.name.startswith("toolkit_") for each in samples)
        return {(each.name, *each.labels.values()): each.value for each in samples if "le" not in each.labels}

    before = counted()
    body = {"model": "tiny-gpt", "prompt": "I am", "max_tokens": 3, "min_tokens": 3}
    assert gate.ask("/v1/completions", body, X_Api_Key=FILE_KEY)[0] == 200
    assert gate.ask("/v1/completions", {"prompt": {}}, X_Api_Key=FILE_KEY)[0] == 400
    gate.ask("/what/there/is/not", X_Api_Key=FILE_KEY)
    unknown = ("toolkit_requests_total", "other", "404")
    after = until(lambda: (found := counted())[unknown] > before.get(unknown, 0) and found)
    grown = {name: after[name] - before.get(name, 0) for name in after if name[0].endswith(("_total", "_count"))}
    assert grown["toolkit_requests_total", "/v1/completions", "200"] == 1
    assert grown["toolkit_requests_total", "/v1/completions", "400"] == 1
    assert grown["toolkit_request_seconds_count", "/v1/completions"] == 2
    assert grown["toolkit_written_tokens_total", "tiny-gpt"] == 3
    assert grown["toolkit_prompt_tokens_total", "tiny-gpt"] > 0
    for name in ("first_token", "queue"):
        assert grown[f"toolkit_{name}_seconds_count", "tiny-gpt"] == 1
    assert grown[unknown] == 1  # a path that there is not costs no series
    assert (after["toolkit_ready", "tiny-gpt"], after["toolkit_running", "tiny-gpt"]) == (1, 0)
    assert after["toolkit_process_start_time_seconds",] <= time.time()


def test_the_log_has_a_line_for_each_request_and_nothing_of_what_it_says(gate, log):
    body = {"model": "tiny-gpt", "prompt": SECRET, "max_tokens": 4, "min_tokens": 4}
    headers = {"X_Api_Key": FILE_KEY, "X_Request_Id": "mine"}
    written = gate.ask("/v1/completions", body, **headers)[1]["choices"][0]["text"]
    gate.ask(f"/health?text={SECRET.replace(' ', '+')}", X_Request_Id="other")
    until(lambda: '"other"' in log.read_text("utf-8"))
    lines = {each["id"]: each for each in map(json.loads, log.read_text("utf-8").splitlines())}
    line = lines["mine"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert [line[name] for name in ("client", "method", "path", "status", "model", "new_tokens")] == [
        *("127.0.0.1", "POST", "/v1/completions", 200, "tiny-gpt", 4),
    ]
    assert 0 < line["first_ms"] <= line["ms"]
    assert line["queue_ms"] >= 0
    assert line["prompt_tokens"] > 0
    assert lines["other"]["path"] == "/health"
    text = log.read_text("utf-8")
    for secret in (SECRET, SECRET.split()[0], FILE_KEY, OTHER_KEY, *([written] if len(written) > 5 else [])):
        assert secret not in text


def test_the_log_is_opened_anew_and_a_full_disk_is_told_once(tmp_path, capsys):
    path, moved = tmp_path / "log", tmp_path / "log.1"
    log = AccessLog(str(path))
    log.write({"id": "first"})
    path.rename(moved)
    log.write({"id": "नाम"})
    log.reopen()
    log.write({"id": "third"})
    log.close()
    log.write({"id": "nobody keeps it"})
    found = [[json.loads(line)["id"] for line in each.read_text("utf-8").splitlines()] for each in (moved, path)]
    assert found == [["first", "नाम"], ["third"]]
    if Path("/dev/full").exists():
        log = AccessLog("/dev/full")
        for _ in range(3):
            log.write({"id": "lost"})
        log.close()
        assert capsys.readouterr().err == (
            "toolkit: the access log /dev/full cannot be written, and the server goes on without it: "
            f"{os.strerror(errno.ENOSPC)}\n"
        )
