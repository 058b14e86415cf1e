"""A request as the front of the server sees it: a stream of news, and the errors that it can end with."""

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from toolkit.decoding.continuous import Progress, Request
from toolkit.errors import ToolkitError

CLOSING = "the server is shutting down"


class ServingError(Exception):
    """Tells a client why it gets no answer: a status of HTTP, a sentence, and in how many seconds to ask again."""

    status = 503

    def __init__(self, message: str, retry_after: int | None = None):
        super().__init__(message)
        self.message, self.retry_after = message, retry_after


class Busy(ServingError):  # noqa: N818  (said of a request)
    """Too many requests wait already."""

    status = 429


class Overdue(ServingError):  # noqa: N818  (said of a request)
    """The request has waited for longer than it may."""


class Unavailable(ServingError):  # noqa: N818  (said of a request)
    """The model is being read, or is going, or cannot be read."""


class Died(ServingError):  # noqa: N818  (said of a request)
    """The process of the model has ended, and the request with it."""


class Failed(ServingError):  # noqa: N818  (said of a request)
    """A fault of ours; the log has its traceback."""

    status = 500


class Stream:
    """The news of one request, in an asynchronous loop; what has come since the last is one Progress.

    So whoever reads slowly, or not at all, holds no more than all that the request writes. It raises the error that the
    request ends with: ServingError, or the ToolkitError of the decoding. `async with` cancels a request that is left.
    """

    def __init__(self, request: Request, leave: Callable[["Stream"], None]):
        self.request, self._leave = request, leave
        config = request.config
        self.places = (
            max(config.num_beams, config.sequences_each) if config else 1
        )  # sequences that are written at once
        self.submitted, self.sent, self.first = time.monotonic(), None, None  # seconds; to a process, news of a token
        self._news: Progress | None = None
        self._error: Exception | None = None
        self._done, self._waiter = False, None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Progress:
        while self._news is None and not self._done:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._news is not None:
            news, self._news = self._news, None
            return news
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cancel()

    @property
    def done(self) -> bool:
        """True where nothing more will come of it than what has not been read."""
        return self._done

    def cancel(self) -> None:
        """Forget the request; its places are free before the next step. After its end it changes nothing."""
        if not self._done:
            self._news = None
            self._end()
            self._leave(self)

    def push(self, news: Progress) -> None:
        """Take news, as the process tells them."""
        if self._done:
            return
        if self.first is None and (news.written or news.hypotheses is not None):
            self.first = time.monotonic()
        if news.error is not None:
            self.fail(news.error)
            return
        if self._news is None:
            self._news = news
        else:
            join(self._news, news)
        if news.hypotheses is not None:
            self._end()
        else:
            self._wake()

    def fail(self, error: ToolkitError | ServingError) -> None:
        """End with an error, after the news that there are."""
        if not self._done:
            self._error = error
            self._end()

    def _end(self) -> None:
        self._done = True
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def join(news: Progress, later: Progress) -> None:
    """Add later news of a request to earlier ones."""
    news.written += later.written
    if later.prompt is not None:
        news.prompt = later.prompt
    news.cached = max(news.cached, later.cached)
    news.hypotheses, news.error = later.hypotheses, later.error
