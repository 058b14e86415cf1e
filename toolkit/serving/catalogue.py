"""The models that are served, and their tokenizers: GET /v1/models, POST /tokenize and /detokenize."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolkit.serving.answers import computed, find_host, json_response
from toolkit.serving.chat_completions import Conversation, read_messages
from toolkit.serving.connection import json_object, while_connected
from toolkit.serving.errors import ApiError
from toolkit.serving.fields import flag, ids, read_fields, require, text
from toolkit.serving.host import Host
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.special import BOS, EOS, PAD, SPECIAL_TOKENS

KINDS = ("language-model", "chat", "translator")

_TOKENIZE = {"model": text, "prompt": text, "content": text, "messages": read_messages, "add_special_tokens": flag}
_ONE_OF = ("prompt", "content", "messages")  # llama-server's name for it is content
_DETOKENIZE = {"model": text, "tokens": ids}


def model_facts(host: Host) -> dict[str, Any]:
    """Describe a model: OpenAI's fields, and ours."""
    facts = {"kind": host.kind, "languages": host.languages, "ready": host.ready, **host.facts}
    return {"id": host.name, "object": "model", "created": host.created, "owned_by": "toolkit", **facts}


async def _models(request: Request) -> Response:
    hosts = request.app.state.hosts
    return json_response({"object": "list", "data": [model_facts(host) for host in hosts.values()]})


async def _model(request: Request) -> Response:
    return json_response(model_facts(find_host(request, request.path_params["model"], KINDS, "this")))


async def _tokenize(request: Request) -> Response:
    """Give the ids of a text, without BOS unless add_special_tokens says so, or of messages, as they are sent."""
    given = read_fields(await json_object(request), _TOKENIZE)
    if sum(name in given for name in _ONE_OF) != 1:
        raise ApiError(400, "give a prompt (or content, which is the same) or messages, one of them", param="prompt")
    host = find_host(request, given.get("model"), ("chat",) if "messages" in given else KINDS, "messages")
    reader, settings = host.reader, host.reader.model.config
    request.state.log["model"] = host.name
    if "messages" in given:
        conversation = Conversation(reader, given["messages"])
        found = await while_connected(request, computed(conversation.length, lambda: conversation.whole))
    else:
        content = given.get("prompt", given.get("content", ""))
        begin = [BOS] * (given.get("add_special_tokens", False) and getattr(settings, "begin", False))
        found = begin + await while_connected(request, computed(len(content), _encoded, reader.tokenizer, content))
    pieces = [reader.tokenizer.source.piece(each) for each in found]
    counts = {"count": len(found), "max_model_len": settings.max_length}
    return json_response({"model": host.name, **counts, "tokens": found, "token_strs": pieces})


def _encoded(tokenizer: Tokenizer, content: str) -> list[int]:
    """Encode a text; the name of a special token by itself is that token, so that clients can ask for its id."""
    if content in SPECIAL_TOKENS:
        return [SPECIAL_TOKENS.index(content)]
    return tokenizer.source.encode(content)


async def _detokenize(request: Request) -> Response:
    """Give the text that ids stand for, and how people are shown each."""
    given = read_fields(await json_object(request), _DETOKENIZE)
    found = require(given, "tokens", "a list of ids")
    host = find_host(request, given.get("model"), KINDS, "this")
    tokenizer = host.reader.tokenizer
    request.state.log["model"] = host.name
    if found and max(found) >= tokenizer.vocab_size:
        message = f"tokens has the id {max(found)}, and the model has {tokenizer.vocab_size} ids"
        raise ApiError(400, message, param="tokens")
    content = await while_connected(request, computed(len(found), tokenizer.decode, found))
    pieces = [tokenizer.piece(each) for each in found]
    # vLLM calls the text a prompt, llama-server content.
    return json_response({"model": host.name, "prompt": content, "content": content, "token_strs": pieces})


async def _tokenizer_info(request: Request) -> Response:
    """Name the special tokens, as evaluation harnesses ask for them."""
    host = find_host(request, request.query_params.get("model"), KINDS, "this")
    settings = host.reader.model.config
    names = {"eos_token": SPECIAL_TOKENS[EOS], "pad_token": SPECIAL_TOKENS[PAD]}
    begins = getattr(settings, "begin", False)
    names["bos_token"] = SPECIAL_TOKENS[BOS] if begins else None
    facts = {"model": host.name, "vocab_size": settings.vocab_size, "max_length": settings.max_length}
    return json_response({**facts, **names})


def routes() -> list[Route]:
    """List the routes of this chapter."""
    found = [Route("/v1/models", _models), Route("/v1/models/{model:path}", _model)]
    for before in "", "/v1":
        found += [
            Route(f"{before}/tokenize", _tokenize, methods=["POST"]),
            Route(f"{before}/detokenize", _detokenize, methods=["POST"]),
            Route(f"{before}/tokenizer_info", _tokenizer_info),
        ]
    return found
