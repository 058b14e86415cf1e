"""toolkit serve: what keeps it from starting is told in one sentence, and nothing is left behind."""

import multiprocessing
import re
import shutil
import socket
import sys
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest

import toolkit
from tests.serving.conftest import needs_server
from toolkit.cli import parsed
from toolkit.commands.serve import Serve
from toolkit.models.storage import WEIGHTS_FILE

pytest.importorskip("prometheus_client")
from toolkit.serving import server
from toolkit.serving.engine import Figures
from toolkit.serving.errors import Limits
from toolkit.serving.gate import read_keys
from toolkit.serving.metrics import Metrics
from toolkit.serving.replicas import QueueLimits

pytestmark = needs_server

README = Path(toolkit.__file__).parent / "serving" / "README.md"


@pytest.fixture
def serve(run, monkeypatch):
    """Run `toolkit serve`, which is not to start."""
    monkeypatch.delenv("TOOLKIT_API_KEYS", raising=False)
    yield lambda *arguments: run("serve", *arguments).sentence.removeprefix("toolkit: ").strip()
    assert multiprocessing.active_children() == []


def test_an_address_that_cannot_be_had(serve, tiny_gpt):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        told = serve(tiny_gpt, "--port", port)
    assert told.startswith(f"127.0.0.1 port {port} cannot be had (Address already in use): choose another with --port ")
    assert serve(tiny_gpt, "--host", "no.such.host.invalid").startswith("there is no address 'no.such.host.invalid': ")
    assert "203.0.113.1 port 0 cannot be had" in serve(tiny_gpt, "--host", "203.0.113.1", "--port", 0)


def test_a_model_that_is_missing_damaged_or_given_twice(serve, tiny_gpt, tmp_path):
    assert serve("en-nee", "--port", 0) == "there is no model 'en-nee': did you mean en-ne?"
    assert serve(tmp_path, "--port", 0).startswith(f"{tmp_path} ")
    assert serve(tiny_gpt, tiny_gpt) == "a model is given twice: once is enough"
    damaged = shutil.copytree(tiny_gpt, tmp_path / "damaged")
    weights = (damaged / WEIGHTS_FILE).read_bytes()
    (damaged / WEIGHTS_FILE).write_bytes(weights[:-100])
    assert str(damaged) in serve(tiny_gpt, damaged, "--port", 0)  # the other one was started meanwhile


def test_keys_that_lock_nothing_or_cannot_be_sent(serve, tiny_gpt, tmp_path, monkeypatch):
    file = tmp_path / "keys"
    arguments = (tiny_gpt, "--port", 0, "--api-keys", file)
    assert serve(*arguments) == f"{file} cannot be read: No such file or directory"
    for text, problem in {
        "": "has no key in it: one is any word, such as ",
        "# none\n \n": "has no key in it: one is any word, such as ",
        "good\nतालो\n": "has a key that cannot be sent, number 2: letters of ASCII without spaces",
        "two words": "has a key that cannot be sent, number 1: letters of ASCII without spaces",
    }.items():
        file.write_text(text, encoding="utf-8")
        assert serve(*arguments).startswith(f"{file} {problem}")
    file.write_bytes(b"\xff\n")
    assert serve(*arguments).startswith(f"{file} cannot be read: ")
    monkeypatch.setenv("TOOLKIT_API_KEYS", " , ")
    assert serve(tiny_gpt, "--port", 0).startswith("the environment's TOOLKIT_API_KEYS has no key in it")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--port", 65536], "port is 65536: it must be at most 65535"),
        (["--port", -1], "port is -1: it must be at least 0"),
        (["--workers", 0], "workers is 0: it must be at least 1"),
        (["--max-body", 0], "max_body is 0: it must be at least 1"),
        (["--max-queue", -1], "max_queue is -1: it must be at least 0"),
        (["--max-wait", "nan"], "max_wait is nan: it must be at least 0"),
        (["--shutdown-timeout", -1], "shutdown_timeout is -1.0: it must be at least 0"),
        (["--root-path", "toolkit"], "root_path is 'toolkit': it begins with a slash and does not end with one"),
        (["--root-path", "/"], "root_path is '/': it begins with a slash and does not end with one"),
        (["--cors", "example.org"], "cors is 'example.org': an origin is https://example.org, without a path, or *"),
        (["--allow-host", "a:80"], "allow_host is 'a:80': give the name alone"),
        (
            ["--access-log", "/no/such/directory/log"],
            "the access log /no/such/directory/log cannot be written: No such",
        ),
    ],
)
def test_values_that_do_not_fit(serve, tiny_gpt, flags, sentence):
    assert serve(tiny_gpt, *flags).startswith(sentence)


def test_a_library_that_is_not_installed(serve, tiny_gpt, monkeypatch):
    monkeypatch.delitem(sys.modules, "toolkit.serving.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert serve(tiny_gpt) == (
        "toolkit serve needs the library uvicorn: "
        "pip install starlette uvicorn prometheus-client python-multipart, the extra serve"
    )


def test_whom_it_lets_in_is_told(tiny_gpt, tmp_path, capsys):
    file = tmp_path / "keys"
    file.write_text("sesame\n", encoding="utf-8")
    file.chmod(0o644)
    keys = read_keys(file, "other , more")
    assert capsys.readouterr().err.startswith(f"toolkit: everybody on this machine can read the keys in {file}: chmod")
    file.chmod(0o600)
    assert read_keys(file, None)
    assert capsys.readouterr().err == ""
    assert [keys.permits(key) for key in ("sesame", "other", "more", "sesam", "", None)] == [True] * 3 + [False] * 3
    assert (bool(read_keys(None, None)), read_keys(None, None).permits(None)) == (False, True)


def test_flags_that_may_be_given_several_times():
    command = parsed(["serve", "a", "b", "--cors", "https://a.b", "--cors", "*", "--allow-host", "x", "--max-n", "2"])
    assert (command.models, command.cors, command.allow_host) == (("a", "b"), ("https://a.b", "*"), ("x",))
    assert command.max_n == 2


def test_every_flag_gets_to_where_it_is_used(run, tiny_gpt, tiny_model, tmp_path, monkeypatch):
    found = []

    class Recorder:
        def __init__(self, *settings):
            found[:] = settings

        def run(self, opened):
            opened("http://127.0.0.1:1")

    monkeypatch.setattr(server, "Server", Recorder)
    monkeypatch.setenv("TOOLKIT_API_KEYS", "sesame")
    flags = {
        "port": 1,
        "dtype": "float32",
        "workers": 3,
        "shutdown-timeout": 4,
        "max-places": 5,
        "max-queue": 6,
        "max-wait": 7,
        "max-connections": 8,
        "max-body": 9,
        "max-tokens": 10,
        "max-n": 11,
        "max-beams": 12,
        "max-characters": 13,
        "root-path": "/base",
        "access-log": tmp_path / "log",
        "host": "localhost",
    }
    words = [word for name, value in flags.items() for word in (f"--{name}", value)]
    lines = run("serve", tiny_model, tiny_gpt, *words, "--watch", "--cors", "*", "--allow-host", "a").lines
    hosts, settings, limits, keys, _ = found
    assert lines[1] == "2 models: tiny (translator), tiny-gpt (language-model)"
    assert settings == server.Settings("localhost", 1, "/base", ("a",), ("*",), 8, 4.0)
    assert limits == Limits(body=9, tokens=10, n=11, beams=12, characters=13, wait=7.0)
    assert keys.permits("sesame")
    assert not keys.permits("other")
    assert (tmp_path / "log").exists()
    for host in hosts.values():
        own = host._settings
        assert (host._count, host._limits, own["places"], own["dtype"]) == (3, QueueLimits(6, 7.0), 5, "float32")
        assert host._watch > 0


def test_processes_are_as_many_as_cores_allow(run, tiny_gpt, tiny_model, monkeypatch):
    counts = []
    monkeypatch.delenv("TOOLKIT_API_KEYS", raising=False)
    monkeypatch.setattr(
        server,
        "Server",
        lambda hosts, *_: SimpleNamespace(run=lambda _: counts.append([each._count for each in hosts.values()])),
    )
    for cores in (1, 2, 5, 64):
        monkeypatch.setattr("toolkit.commands.serve.available_cores", lambda cores=cores: cores)
        assert run("serve", tiny_model, tiny_gpt).code == 0
    assert counts == [[1, 1], [1, 1], [2, 2], [4, 4]]


def test_it_serves_where_nobody_can_read_what_it_prints(run, tiny_gpt, monkeypatch):
    opened = []

    def serve(opening):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", None)
            opening("http://127.0.0.1:1")
            opened.append(True)

    monkeypatch.setattr(server, "Server", lambda *_: SimpleNamespace(run=serve))
    assert run("serve", tiny_gpt) == (0, "", "")
    assert opened == [True]


def test_the_readme_has_every_flag_and_every_default():
    flags = {f"--{each.name.replace('_', '-')}": each.default for each in fields(Serve) if each.init}
    lines = README.read_text("utf-8").splitlines()
    rows = "\n".join(line for line in lines if line.startswith("| "))
    assert {flag for flag in flags if flag not in rows} == {"--models"}
    told = "\n".join(line for line in lines if "toolkit serve " in line or line.startswith("| `--"))
    assert {*re.findall(r"(?<!-)--[a-z][a-z-]+[a-z]", told)} - {"--max"} <= flags.keys()
    limits = "\n".join(line for line in rows.splitlines() if "--max-" in line)
    for flag, default in flags.items():
        if flag.startswith("--max-"):
            shown = "1 MiB" if flag == "--max-body" else f"{int(default):,}"
            assert re.search(rf"\b{shown}\b.*{flag}\b", limits), flag


def test_the_readme_names_every_metric():
    class Nobody:
        figures, running, waiting, restarts, ready = Figures(), 0, 0, 0, True

    text = README.read_text("utf-8")
    names = re.findall(r"^# TYPE (\w+) ", Metrics({"nobody": Nobody()}).text().decode(), re.MULTILINE)
    for name in {name.removesuffix("_created") for name in names}:
        short = f"…{name.removeprefix('toolkit_').removesuffix('_total')}…"
        assert name in text or short in text or name.startswith("toolkit_process_")
