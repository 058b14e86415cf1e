"""What an answer of the server says, however it came: streams put together, and two answers compared."""

from typing import Any


def joined(events: list[Any]) -> dict[str, Any]:
    """Make of the chunks of a stream the answer that would have come without one, and check their form."""
    *chunks, done = events
    assert done == "[DONE]", done
    whole: dict[str, Any] = {"choices": [], "object": chunks[0]["object"].removesuffix(".chunk")}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        assert "error" not in chunk, chunk
        assert chunk["id"] == chunks[0]["id"], chunk
        whole |= {name: chunk[name] for name in ("model", "usage", "dropped_messages") if chunk.get(name) is not None}
        for each in chunk["choices"]:
            _extend(choices.setdefault(each["index"], {"index": each["index"], "finish_reason": None}), each)
    whole["choices"] = [choices[index] for index in sorted(choices)]
    return whole


def _extend(choice: dict[str, Any], chunk: dict[str, Any]) -> None:
    """Add what a chunk says of a choice."""
    assert choice["finish_reason"] is None or "delta" not in chunk or not chunk["delta"], "text after the end"
    choice["finish_reason"] = chunk.get("finish_reason") or choice["finish_reason"]
    if "delta" in chunk:
        message = choice.setdefault("message", {"role": "assistant", "content": ""})
        message["content"] += chunk["delta"].get("content") or ""
    else:
        choice["text"] = choice.get("text", "") + chunk["text"]
    if chunk.get("logprobs"):
        found = choice.setdefault("logprobs", {})
        for name, values in chunk["logprobs"].items():
            found[name] = values if found.get(name) is None else found[name] + (values or [])


def first_text(events: list[tuple[float, Any]]) -> float | None:
    """Find out after how many seconds the first text of a stream came; None where there is none."""
    for seconds, chunk in events:
        for each in chunk["choices"] if isinstance(chunk, dict) else ():
            if each.get("text") or each.get("delta", {}).get("content"):
                return seconds
    return None


def difference(one: Any, two: Any, tolerance: float = 1e-4, where: str = "") -> str:
    """Say where two answers differ, and how; empty where they do not. Numbers with a fraction may by `tolerance`.

    What says which answer it is, what was read before, and if a model is ready now, is passed over.
    """
    if isinstance(one, dict) and isinstance(two, dict):
        names = (one.keys() | two.keys()) - {"id", "created", "prompt_tokens_details", "ready"}
        pairs = [(one.get(name), two.get(name), f"{where}.{name}") for name in sorted(names)]
        if one and ".top_logprobs[" in where and all(isinstance(each, float) for each in one.values()):
            return _difference_of_alternatives(one, two, tolerance, where)
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        pairs = [(*pair, f"{where}[{place}]") for place, pair in enumerate(zip(one, two, strict=True))]
        if where.endswith(".top_logprobs") and one and one[0] and "token" in one[0]:
            named = [{str((each["token"], each["bytes"])): each["logprob"] for each in some} for some in (one, two)]
            return _difference_of_alternatives(*named, tolerance, where)
    elif isinstance(one, float) and isinstance(two, float) and abs(one - two) <= tolerance:
        return ""
    else:
        return "" if one == two else f"{where}: {one!r:.300} and {two!r:.300}"
    return next(filter(None, (difference(*pair[:2], tolerance, pair[2]) for pair in pairs)), "")


def _difference_of_alternatives(one: dict[str, float], two: dict[str, float], tolerance: float, where: str) -> str:
    """Compare the most probable tokens: of two that are as probable, either may be among them."""
    values = zip(sorted(one.values()), sorted(two.values()), strict=False)
    close = all(abs(mine - other) <= tolerance for mine, other in values)
    close = close and all(abs(one[name] - two[name]) <= tolerance for name in one.keys() & two.keys())
    return "" if close and len(one) == len(two) else f"{where}: {one} and {two}"
