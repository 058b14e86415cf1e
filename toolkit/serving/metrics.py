"""Metrics for Prometheus, and the access log: what is counted of every request, and never what it says."""

import errno
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from toolkit.display import tell
from toolkit.serving.host import Host

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

# Counts of the engine: the name of each, the name among the figures of a host, and the purpose.
_FIGURES = (
    ("prompt_tokens", "prompt_tokens", "Tokens of prompts and sources."),
    ("cached_tokens", "cached_tokens", "Tokens of prompts that were not read again."),
    ("written_tokens", "written_tokens", "Tokens that were written."),
    ("steps", "steps", "Decoding steps."),
    ("step_sequences", "busy", "Sequences that were written, summed over all steps."),
    ("step_seconds", "seconds", "Seconds that the steps took."),
)


class Metrics:
    """Counts since the start, in a registry of their own."""

    def __init__(self, hosts: Mapping[str, Host]):
        self._hosts, self._registry = hosts, CollectorRegistry()
        self._requests = Counter(
            "toolkit_requests", "Requests by path and status.", ["path", "status"], registry=self._registry
        )
        self._duration, self._first, self._queued = (
            Histogram(f"toolkit_{name}_seconds", purpose, [label], registry=self._registry, buckets=_SECONDS)
            for name, purpose, label in (
                ("request", "Seconds that a request took.", "path"),
                ("first_token", "Seconds until the first token, from when the request was read.", "model"),
                ("queue", "Seconds that a request waited for a place.", "model"),
            )
        )
        ProcessCollector("toolkit", registry=self._registry)  # of the front: when it began, its memory and open files
        self._registry.register(self)

    def count(self, path: str, status: int, seconds: float, facts: Mapping[str, Any]) -> None:
        """Count a request that has ended.  facts: as for the access log, times in milliseconds."""
        self._requests.labels(path, status).inc()
        self._duration.labels(path).observe(seconds)
        for name, histogram in (("first_ms", self._first), ("queue_ms", self._queued)):
            if facts.get(name) is not None:
                histogram.labels(facts.get("model", "")).observe(facts[name] / 1000)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Ask the hosts for what they count, when Prometheus asks."""
        hosts = self._hosts.items()
        for name, figure, purpose in _FIGURES:
            family = CounterMetricFamily(f"toolkit_{name}", purpose, labels=["model"])
            for model, host in hosts:
                family.add_metric([model], getattr(host.figures, figure))
            yield family
        restarts = CounterMetricFamily("toolkit_restarts", "Model processes that were started anew.", labels=["model"])
        gauges = {
            "running": GaugeMetricFamily("toolkit_running", "Requests that are decoded.", labels=["model"]),
            "waiting": GaugeMetricFamily("toolkit_waiting", "Requests that wait for a place.", labels=["model"]),
            "ready": GaugeMetricFamily("toolkit_ready", "1 where the model takes requests.", labels=["model"]),
        }
        for model, host in hosts:
            restarts.add_metric([model], host.restarts)
            for name, gauge in gauges.items():
                gauge.add_metric([model], float(getattr(host, name)))
        yield restarts
        yield from gauges.values()

    def text(self) -> bytes:
        """Give all of it in the format that Prometheus reads."""
        return generate_latest(self._registry)


class AccessLog:
    """A line of JSON for every request: when, who, which path, how long, how many tokens; never a text or a key.

    path: a file, to which lines are added; "-" is standard error; None: no log. Where it cannot be written, that is
    told once, and the server goes on without it. Raises OSError for a file that cannot be opened.
    """

    def __init__(self, path: str | None):
        self._path, self._file, self._told = path, None, False
        self.reopen()

    def reopen(self) -> None:
        """Open the file anew, which may have been moved away."""
        self.close()
        if self._path is not None:
            self._file = sys.stderr.buffer if self._path == "-" else _opened(self._path)

    def write(self, facts: Mapping[str, Any]) -> None:
        """Write a line, with the time in front."""
        if self._file is None:
            return
        now = time.time()
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
        line = json.dumps({"time": moment, **facts}).encode() + b"\n"
        try:
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._file.flush()
        except (OSError, ValueError) as error:
            self._tell(error)

    def close(self) -> None:
        """Close the file."""
        if self._path not in (None, "-") and self._file is not None:
            self._file.close()
        self._file = None

    def _tell(self, error: Exception) -> None:
        if not self._told:
            self._told = True
            tell(
                f"toolkit: the access log {self._path} cannot be written, and the server goes on without it: "
                f"{getattr(error, 'strerror', None) or error}"
            )


def _opened(path: str) -> BinaryIO:
    """Open a file to which whole lines are added, so that nothing is left over where the disk is full."""
    return Path(path).open("ab", buffering=0)
