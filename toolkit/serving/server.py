"""The server: sockets and signals around the application, from the first request to the last."""

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolkit.display import tell
from toolkit.errors import ConfigError, DataError, ToolkitError
from toolkit.serving.app import Keys, application
from toolkit.serving.errors import Limits
from toolkit.serving.host import Host
from toolkit.serving.metrics import AccessLog
from toolkit.serving.stream import ServingError

# Seconds: for the headers of a request, for a connection without one, for answers to be written when all has ended.
_HEADER_SECONDS, _KEEP_ALIVE, _FLUSH = 15.0, 30, 5.0
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Settings:
    """Where the server listens, to whom, and how it ends."""

    host: str = "127.0.0.1"
    port: int = 8000
    root_path: str = ""  # in front of all paths, where a proxy has put it
    allowed_hosts: Sequence[str] = ()  # names besides those of this machine
    origins: Sequence[str] = ()
    connections: int = 512
    shutdown_timeout: float = 30.0

    @property
    def is_local(self) -> bool:
        """True where only this machine can reach it."""
        return self.host in ("127.0.0.1", "::1", "localhost")


class Protocol(H11Protocol):
    """HTTP, for no more connections than there may be, and for no longer than the headers of a request may take."""

    most = 512
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.close()
        else:
            self._timer = self.loop.call_later(_HEADER_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        waits = self.conn.their_state is h11.IDLE
        if waits and self._timer is None:
            self._timer = self.loop.call_later(_HEADER_SECONDS, self.transport.close)
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Uvicorn(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # they are ours


class Server:
    """Models behind one address, from `run` to a signal."""

    def __init__(self, hosts: Mapping[str, Host], settings: Settings, limits: Limits, keys: Keys, log: AccessLog):
        self.hosts, self.settings, self._log = hosts, settings, log
        names = {*_LOOPBACK, *settings.allowed_hosts} if settings.is_local else ()
        self.app = application(hosts, limits, keys, log, settings.origins, names)
        self._stopping: asyncio.Event | None = None

    def run(self, opened: Any = None) -> None:
        """Serve until a signal asks for the end.

        opened: called with the address when the models are ready. Raises ConfigError where the address cannot be had,
        and ToolkitError where a model cannot be read.
        """
        with _listening(self.settings) as listener:
            asyncio.run(self._serve(listener, opened))

    async def _serve(self, listener: socket.socket, opened: Any) -> None:
        settings, self._stopping = self.settings, asyncio.Event()
        Protocol.most = settings.connections
        config = uvicorn.Config(
            self.app,
            http=Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            root_path=settings.root_path,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=2,
            backlog=1024,
        )
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        server = _Uvicorn(config)
        self._handle_signals()
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        stopped = asyncio.create_task(self._stopping.wait())
        loading = asyncio.gather(*(host.start() for host in self.hosts.values()))
        try:
            await asyncio.wait([loading, stopped, serving], return_when=asyncio.FIRST_COMPLETED)
            if loading.done():
                loading.result()  # raises
                if opened is not None:
                    opened(_address(listener, settings))
                await asyncio.wait([stopped, serving], return_when=asyncio.FIRST_COMPLETED)
            else:
                loading.cancel()
                await asyncio.gather(loading, return_exceptions=True)
        finally:
            await self._close(settings.shutdown_timeout)
            server.should_exit = True
            await serving
            stopped.cancel()

    async def _close(self, timeout: float) -> None:
        """Take no more requests, let those that there are end, and end the processes."""
        self.app.state.closing = True
        closing = asyncio.gather(*(host.close(timeout) for host in self.hosts.values()))
        self._stopping.clear()
        again = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([closing, again], return_when=asyncio.FIRST_COMPLETED)
        if not closing.done():  # a second signal
            await asyncio.gather(*(host.close(0) for host in self.hosts.values()))
            await closing
        again.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH):
                while self.app.state.active:
                    await asyncio.sleep(0.02)

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for name in ("SIGINT", "SIGTERM"):
            loop.add_signal_handler(getattr(signal, name), self._stopping.set)
        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, lambda: loop.create_task(self._reload()))

    async def _reload(self) -> None:
        """Read every model anew, and open the log anew."""
        with suppress(OSError):
            self._log.reopen()
        for name, host in self.hosts.items():
            try:
                await host.reload()
                tell(f"toolkit: {name} is read anew: {host.facts.get('checkpoint', name)}")
            except (ToolkitError, ServingError) as error:
                tell(f"toolkit: {name} goes on as it was: {error}")


@contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """Open the socket.  Raises ConfigError where that cannot be."""
    where = f"{settings.host} port {settings.port}"
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"there is no address {settings.host!r}: {error.strerror or error}") from error
    with listener:
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(1024)
        except OSError as error:
            raise ConfigError(
                f"{where} cannot be had ({error.strerror}): choose another with --port (0: any that is free)"
            ) from error
        yield listener


def _address(listener: socket.socket, settings: Settings) -> str:
    """Write the address of the page."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{host}:{port}{settings.root_path}"


def read_keys(path: Path | None, variable: str) -> Keys:
    """Read the keys of a file, one a line, and of an environment variable, divided by commas.

    Raises DataError for a file that cannot be read, or has none in it.
    """
    keys = [each.strip() for each in variable.split(",") if each.strip()]
    if path is not None:
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeError) as error:
            raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
        own = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if not own:
            raise DataError(f"{path} has no key in it: write one a line")
        keys += own
    return Keys(keys)
