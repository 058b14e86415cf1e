"""toolkit serve: models behind an address, for a browser and for every client of OpenAI's or LibreTranslate's API."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, UseAppendAction, arg

from toolkit import mpi
from toolkit.commands.console import emit
from toolkit.commands.flags import Dtype
from toolkit.display import counted, tell
from toolkit.errors import ConfigError, DataError
from toolkit.models.storage import shipped_models
from toolkit.parallel import available_cores

if TYPE_CHECKING:
    from toolkit.serving.host import Host

_KEYS_VARIABLE = "TOOLKIT_API_KEYS"
# One core for the front, and the rest for the models, but not more processes than this for each.
_MOST_UNASKED = 4
# Seconds between two looks at the checkpoints of a run.
_WATCH_SECONDS = 3.0


@dataclass
class Serve:
    """Serve models: a page for people, and the interfaces of OpenAI and LibreTranslate for programs.

    Requests are decoded together, and each gives what it gives alone. Ctrl-C, or SIGTERM, lets running requests end;
    SIGHUP reads the models anew. It needs the extra serve: pip install starlette uvicorn prometheus-client
    python-multipart.
    """

    examples = (
        "--open",
        "en-ne chat my/run --watch --port 8080",
        "chat --api-keys keys.txt --host 0.0.0.0",
    )

    models: Positional[Annotated[tuple[str, ...], arg(metavar="[MODEL ...]")]] = ()
    """Directories of models or runs, or names of models that come with the toolkit. Default: all of these."""
    host: str = "127.0.0.1"
    """Address to listen at; 0.0.0.0 is every one of this machine: give keys then."""
    port: int = 8000
    """Port to listen at; 0: any that is free."""
    open: bool = False
    """Open the page in the browser."""
    dtype: Dtype = "auto"
    workers: int | None = None
    """Processes for each model. Default: the cores but one, divided among the models; at most 4."""
    watch: bool = False
    """Look for a new best checkpoint every few seconds, and go on with it."""
    api_keys: Path | None = None
    """File with keys, one a line, of which every client needs one; those of the environment's TOOLKIT_API_KEYS, divided
    by commas, count too."""
    cors: UseAppendAction[tuple[str, ...]] = ()
    """Origin of pages elsewhere that may ask, such as https://example.org; * is all. May be given several times."""
    allow_host: UseAppendAction[tuple[str, ...]] = ()
    """Name by which the server is reached besides localhost, while it listens at this machine alone: that of a proxy.
    May be given several times."""
    root_path: str = ""
    """Path at which a proxy shows the server, such as /toolkit, where it does not take that off paths itself."""
    access_log: str | None = None
    """File for a line of JSON about every request, without texts; - is standard error."""
    shutdown_timeout: float = 30.0
    """Seconds that running requests have to end when the server is asked to; 0 ends them at once."""
    max_places: int = 32
    """Sequences that a process writes at once; more requests wait."""
    max_queue: int = 64
    """Requests that wait for a place, of each model; more are refused with 429."""
    max_wait: float = 30.0
    """Seconds that a request waits for a place before it is refused with 503."""
    max_connections: int = 512
    """Connections that are open at once."""
    max_body: int = 1 << 20
    """Bytes of a request."""
    max_tokens: int = 4096
    """New tokens of an output."""
    max_n: int = 16
    """Outputs of a prompt."""
    max_beams: int = 16
    """Beams of a search."""
    max_characters: int = 100_000
    """Characters to translate in a request."""

    def run(self) -> None:
        self._check()
        try:
            from toolkit.serving.server import Server, Settings
        except ImportError as error:
            raise ConfigError(
                f"toolkit serve needs the library {error.name}: "
                "pip install starlette uvicorn prometheus-client python-multipart, the extra serve"
            ) from error
        from toolkit.serving.errors import Limits
        from toolkit.serving.gate import read_keys
        from toolkit.serving.metrics import AccessLog

        keys = read_keys(self.api_keys, os.environ.get(_KEYS_VARIABLE))
        limits = Limits(
            body=self.max_body,
            tokens=self.max_tokens,
            n=self.max_n,
            beams=self.max_beams,
            characters=self.max_characters,
            wait=self.max_wait,
        )
        settings = Settings(
            self.host,
            self.port,
            self.root_path,
            self.allow_host,
            self.cors,
            self.max_connections,
            self.shutdown_timeout,
        )
        try:
            log = AccessLog(self.access_log)
        except OSError as error:
            raise DataError(f"the access log {self.access_log} cannot be written: {error.strerror}") from error
        self._is_open = not settings.is_local and not keys
        try:
            Server(self._hosts(), settings, limits, keys, log).run(self._opened)
        finally:
            log.close()

    def _check(self) -> None:
        """Raises ConfigError for a number that is out of range, a path that is none, and ranks, which serve nobody."""
        if mpi.leading():
            raise ConfigError("serve is one process, and --workers others of this machine: start it without mpiexec")
        least = {name: 1 for name in vars(self) if name.startswith("max_")}
        for name, smallest in {**least, "max_queue": 0, "max_wait": 0, "shutdown_timeout": 0, "port": 0}.items():
            if not getattr(self, name) >= smallest:  # nor is nan
                raise ConfigError(f"{name} is {getattr(self, name)}: it must be at least {smallest}")
        if self.port > 65535:
            raise ConfigError(f"port is {self.port}: it must be at most 65535")
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"workers is {self.workers}: it must be at least 1")
        if self.root_path and (not self.root_path.startswith("/") or self.root_path.endswith("/")):
            raise ConfigError(f"root_path is {self.root_path!r}: it begins with a slash and does not end with one")
        for origin in self.cors:
            if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s]+", origin):
                raise ConfigError(f"cors is {origin!r}: an origin is https://example.org, without a path, or *")
        for name in self.allow_host:
            if not re.fullmatch(r"[\w.-]+|\[[\da-fA-F:.]+\]", name):
                raise ConfigError(f"allow_host is {name!r}: give the name alone")

    def _hosts(self) -> "dict[str, Host]":
        from toolkit.serving.host import Host

        paths = self.models or sorted(shipped_models())
        if not paths:
            raise ConfigError("no models came with the toolkit: name one")
        processes = self.workers or max(1, min(_MOST_UNASKED, (available_cores() - 1) // len(paths)))
        hosts: dict[str, Host] = {}
        for path, name in zip(paths, _names(paths), strict=True):
            hosts[name] = Host(
                path,
                name,
                dtype=self.dtype,
                processes=processes,
                places=self.max_places,
                max_queue=self.max_queue,
                wait=self.max_wait,
                watch=_WATCH_SECONDS if self.watch else None,
            )
        self._served = [f"{name} ({host.kind})" for name, host in hosts.items()]
        return hosts

    def _opened(self, address: str) -> None:
        with suppress(DataError):  # it goes on where nobody can read that
            emit(
                [
                    f"{address}/ is the page; clients of OpenAI's API: {address}/v1, of LibreTranslate's: {address}",
                    f"{counted(len(self._served), 'model')}: {', '.join(self._served)}",
                    "Ctrl-C ends it",
                ]
            )
        if self._is_open:
            tell("toolkit: everybody who reaches this machine can use the server: --api-keys FILE asks for a key")
        if self.open:
            import webbrowser

            # Some browsers are waited for until they are closed.
            Thread(target=webbrowser.open, args=(f"{address}/",), daemon=True).start()

    _served: list[str] = field(default_factory=list, init=False, repr=False)
    _is_open: bool = field(default=False, init=False, repr=False)


def _names(paths: Sequence[str]) -> list[str]:
    """Name models by the last part of their paths, where that is clear, and otherwise by all of them.

    Raises ConfigError for a model that is given twice.
    """
    if len(set(paths)) < len(paths):
        raise ConfigError("a model is given twice: once is enough")
    short = [Path(path).resolve().name for path in paths]
    return [name if short.count(name) == 1 else path for name, path in zip(short, paths, strict=True)]
