"""The server: sockets and signals around the application, from the first request to the last."""

import asyncio
import http
import json
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolkit.display import tell
from toolkit.errors import ConfigError, ToolkitError
from toolkit.serving.app import application
from toolkit.serving.errors import ApiError, Limits
from toolkit.serving.gate import Keys
from toolkit.serving.host import Host
from toolkit.serving.metrics import AccessLog
from toolkit.serving.stream import ServingError

# Seconds: for the headers of a request, for a connection without one, for a client to read what fills all buffers, for
# answers to be written when all has ended.
_HEADER_SECONDS, _KEEP_ALIVE, _UNREAD_SECONDS, _FLUSH = 15.0, 30, 120.0, 2.0
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Settings:
    """Settings of the server: its address, who is let in, how it ends."""

    host: str = "127.0.0.1"
    port: int = 8000
    root_path: str = ""  # in front of all paths, where a proxy leaves it there
    allowed_hosts: Sequence[str] = ()  # names besides those of this machine
    origins: Sequence[str] = ()
    connections: int = 512
    shutdown_timeout: float = 30.0

    @property
    def is_local(self) -> bool:
        """True where only this machine can reach it."""
        return self.host in ("127.0.0.1", "::1", "localhost")


class Protocol(H11Protocol):
    """HTTP, for no more connections than there may be, and no longer than clients may take to write and to read."""

    most = 512
    _timer: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._refuse(ApiError(503, f"the server has {self.most} connections already", headers={"Retry-After": "1"}))
        else:
            self._timer = self.loop.call_later(_HEADER_SECONDS, self._abandon)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self.conn.their_state is h11.IDLE and self._timer is None:
            self._timer = self.loop.call_later(_HEADER_SECONDS, self._abandon)
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_unread()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(_UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_unread()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP; in the middle of an answer there is nothing to say."""
        self._refuse(ApiError(400, "this is not HTTP/1.1 as this server reads it"))

    def _abandon(self) -> None:
        """Close a connection whose request has not come; one that was only opened has asked for nothing."""
        begun = self.conn.trailing_data[0]
        refusal = ApiError(408, f"the headers have not come within {_HEADER_SECONDS:g} seconds")
        self._refuse(refusal) if begun else self.transport.close()

    def _refuse(self, refusal: ApiError) -> None:
        answering = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE) and not answering:
            body = json.dumps(refusal.body()).encode()
            reason = http.HTTPStatus(refusal.status).phrase
            fields = {"Content-Type": "application/json", "Content-Length": len(body), "Connection": "close"}
            lines = [f"{name}: {value}\r\n" for name, value in {**fields, **refusal.headers}.items()]
            self.transport.write(f"HTTP/1.1 {refusal.status} {reason}\r\n{''.join(lines)}\r\n".encode() + body)
        self.transport.close()

    def _stop_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

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
        names = {*_LOOPBACK, *map(str.lower, settings.allowed_hosts)} if settings.is_local else ()
        self.app = application(hosts, limits, keys, log, settings.origins, names, settings.root_path)
        self._asked = 0  # how many signals have asked for the end
        self._signal = asyncio.Event()

    def run(self, opened: Callable[[str], None] | None = None) -> None:
        """Serve until a signal asks for the end.

        opened: called with the address when the models are ready. Raises ConfigError where the address cannot be had,
        and ToolkitError where a model cannot be read.
        """
        with _listening(self.settings) as listener:
            try:
                asyncio.run(self._serve(listener, opened))
            except ServingError as error:
                raise ToolkitError(error.message) from error

    async def _serve(self, listener: socket.socket, opened: Callable[[str], None] | None) -> None:
        settings = self.settings
        Protocol.most = settings.connections
        config = uvicorn.Config(
            self.app,
            http=Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=2,
            backlog=1024,
        )
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        server = _Uvicorn(config)
        self._handle_signals()
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        stopped = asyncio.create_task(self._signalled(1))
        loading = asyncio.gather(*(host.start() for host in self.hosts.values()))
        try:
            await asyncio.wait([loading, stopped, serving], return_when=asyncio.FIRST_COMPLETED)
            if loading.done():
                loading.result()  # raises
                if opened is not None and not self._asked:
                    opened(_address(listener, settings))
                await asyncio.wait([stopped, serving], return_when=asyncio.FIRST_COMPLETED)
            else:
                loading.cancel()
                await asyncio.gather(loading, return_exceptions=True)
        finally:
            stopped.cancel()
            await self._close(settings.shutdown_timeout, server)
            server.should_exit = True
            await serving

    async def _close(self, timeout: float, server: uvicorn.Server) -> None:
        """Take no more requests, let those that there are end, and end the processes; at once after two signals.

        A request may ask its model several times: until it has been answered, the models go on.
        """
        self.app.state.closing = True
        answered, hurried = asyncio.create_task(self._answered()), asyncio.create_task(self._signalled(2))
        await asyncio.wait([answered, hurried], timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        await asyncio.gather(*(host.close(0) for host in self.hosts.values()))
        await asyncio.wait([answered], timeout=_FLUSH)
        if not answered.done():  # somebody does not read
            for connection in [*server.server_state.connections]:
                connection.transport.abort()
            await asyncio.wait([answered], timeout=_FLUSH)
        answered.cancel()

    async def _answered(self) -> None:
        """Wait until all requests have been answered."""
        while self.app.state.active:
            await asyncio.sleep(0.02)

    async def _signalled(self, times: int) -> None:
        """Wait until so many signals have asked for the end."""
        while self._asked < times:
            self._signal.clear()
            await self._signal.wait()

    def _handle_signals(self) -> None:
        """Handle signals, but those that the server was started to ignore (`nohup`, a script's background)."""
        loop, actions = asyncio.get_running_loop(), {"SIGINT": self._stop, "SIGTERM": self._stop}
        had_terminal = _has_terminal()

        def hang_up() -> None:
            if had_terminal and not _has_terminal():  # it was closed
                self._stop()
            else:
                self._reloading = loop.create_task(self._reload())

        for name, action in {**actions, "SIGHUP": hang_up}.items():
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                with suppress(NotImplementedError):  # on Windows, where Ctrl-C is an exception
                    loop.add_signal_handler(number, action)

    def _stop(self) -> None:
        self._asked += 1
        self._signal.set()

    async def _reload(self) -> None:
        """Open the log anew, and read every model anew."""
        try:
            self._log.reopen()
        except OSError as error:
            tell(f"toolkit: the access log cannot be opened anew, and the server goes on without it: {error.strerror}")
        for name, host in self.hosts.items():
            try:
                await host.reload()
                tell(f"toolkit: {name} was read anew: {host.facts.get('checkpoint', name)}")
            except (ToolkitError, ServingError) as error:
                tell(f"toolkit: {name} goes on as it was: {error}")


def _has_terminal() -> bool:
    """Tell if there is a terminal that controls this process."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


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
