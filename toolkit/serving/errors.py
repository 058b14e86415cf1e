"""Refusals: the limits of a request, and the errors in the forms that OpenAI's and LibreTranslate's clients read."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import JSONResponse

from toolkit.display import escaped, sentence
from toolkit.errors import DivergenceError, LengthError, ModelError, ToolkitError
from toolkit.serving.stream import ServingError

# Where errors have LibreTranslate's form; the last two it has and this server has not.
LIBRETRANSLATE = ("/translate", "/languages", "/detect", "/frontend/settings", "/suggest", "/translate_file")

_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_CODES = {404: "not_found", 413: "request_too_large", 429: "too_many_requests", 503: "unavailable"}

# Seconds after which it is worth asking again, where nobody knows better.
_RETRY_AFTER = 1


@dataclass(frozen=True)
class Limits:
    """The most that one request may ask for; more is refused, in a sentence with both numbers."""

    body: int = 1 << 20  # bytes
    tokens: int = 4096  # new ones, of each output
    n: int = 16  # outputs of a prompt
    beams: int = 16
    prompts: int = 64  # in a list
    texts: int = 2000  # to translate, in a list
    characters: int = 100_000  # to translate, of all texts
    stops: int = 16  # stop strings, and as many bad words again
    logprobs: int = 20  # alternatives that are told beside each token
    wait: float = 30.0  # seconds in the queue, unless the request says less


class ApiError(Exception):
    """Refuses a request.

    status: of HTTP. type, code: None: the usual ones of the status. param: the field that is wrong.
    """

    def __init__(
        self,
        status: int,
        message: str,
        type: str | None = None,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ):
        message, param = sentence(message), param and escaped(param)  # which may be what a client has sent
        super().__init__(message)
        usual = "invalid_request_error" if status < 500 else "server_error" if status == 500 else "unavailable_error"
        self.status, self.message, self.param = status, message, param
        self.type, self.code, self.headers = (
            type or _TYPES.get(status, usual),
            code or _CODES.get(status),
            headers or {},
        )

    def body(self) -> dict:
        """Give it as OpenAI's clients read it, which is also how it is told in the middle of a stream."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


def refusal_of(error: Exception) -> ApiError:
    """Say what a client is told of an error: of the library's, of the engine's, or of one that nobody expected."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ModelError | DivergenceError):  # a model that is damaged is no fault of who asks it
        return ApiError(500, str(error))
    if isinstance(error, ToolkitError):
        code = "context_length_exceeded" if isinstance(error, LengthError) else None
        return ApiError(400, str(error), code=code)
    if isinstance(error, ServingError):
        headers = {"Retry-After": str(error.retry_after or _RETRY_AFTER)} if error.status in (429, 503) else {}
        return ApiError(error.status, error.message, headers=headers)
    return ApiError(500, f"the server has made a mistake ({type(error).__name__}): its log says more")


def error_response(error: Exception, path: str) -> JSONResponse:
    """Answer with an error, in the form that clients of this path read."""
    refusal = refusal_of(error)
    body = {"error": refusal.message} if path in LIBRETRANSLATE else refusal.body()
    # Clients ask again after these by themselves, and would only get the same answer.
    again = {"x-should-retry": "false"} if refusal.status in (408, 409, 500, 501) else {}
    return JSONResponse(body, refusal.status, {**refusal.headers, **again})
