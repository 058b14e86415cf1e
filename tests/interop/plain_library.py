"""What a tokenizer.json means, step by step in plain Python, so that ours can be read back without the library."""

import math
import re
import unicodedata
from itertools import pairwise

HEX = "<0x{:02X}>"


class PlainTokenizer:
    """A tokenizer.json with the steps that our export uses. Special tokens are not looked for in a text."""

    def __init__(self, content):
        self.content, model = content, content["model"]
        self.is_unigram = model["type"] == "Unigram"
        if self.is_unigram:
            self.pieces = [piece for piece, _ in model["vocab"]]
            self.scores = dict(model["vocab"])
            self.longest = max(map(len, self.pieces))
            self.unknown = min(self.scores.values()) - 10
        else:
            self.pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
            self.ranks = {tuple(pair): rank for rank, pair in reversed([*enumerate(model["merges"])])}
        self.ids = {piece: index for index, piece in enumerate(self.pieces)}
        self.unk = model["unk_id"] if self.is_unigram else self.ids[model["unk_token"]]

    def encode(self, text):
        for step in self._steps("normalizer", "normalizers"):
            text = normalized(text, step)
        words = [text] if text else []
        for step in self._steps("pre_tokenizer", "pretokenizers"):
            words = [part for word in words for part in split(word, step) if part]
        ids = [index for word in words for index in self._word(word)]
        template = self.content["post_processor"]
        special = {name: token["ids"] for name, token in template["special_tokens"].items()}
        parts = (
            [*special[part["SpecialToken"]["id"]]] if "SpecialToken" in part else ids for part in template["single"]
        )
        return [index for part in parts for index in part]

    def _steps(self, name, part):
        return self.content[name][part] if self.content[name] else []

    def _word(self, word):
        parts = self._most_probable(word) if self.is_unigram else self._merged(word)
        for part in parts:
            if part in self.ids:
                yield self.ids[part]
            elif self.content["model"]["byte_fallback"]:
                yield from (self.ids[HEX.format(byte)] for byte in part.encode())
            else:
                yield self.unk

    def _most_probable(self, word):
        best = [(0.0, 0)] + [(-math.inf, 0)] * len(word)
        for start in range(len(word)):
            for end in range(start + 1, min(start + self.longest, len(word)) + 1):
                score = self.scores.get(word[start:end], self.unknown if end == start + 1 else None)
                if score is not None and best[start][0] + score > best[end][0]:
                    best[end] = (best[start][0] + score, start)
        parts, end = [], len(word)
        while end:
            start = best[end][1]
            parts.append(word[start:end])
            end = start
        return parts[::-1]

    def _merged(self, word):
        parts = list(word)
        while True:
            due = [(self.ranks[pair], place) for place, pair in enumerate(pairwise(parts)) if pair in self.ranks]
            if not due:
                return parts
            _, place = min(due)
            parts[place : place + 2] = ["".join(parts[place : place + 2])]


def pattern(step):
    given = step["pattern"]
    return re.compile(given["Regex"].replace("\\z", "\\Z") if "Regex" in given else re.escape(given["String"]))


def normalized(text, step):
    if step["type"] == "NFC":
        return unicodedata.normalize("NFC", text)
    if step["type"] == "Lowercase":
        return "".join(map(str.lower, text))
    if step["type"] == "Prepend":
        return step["prepend"] + text if text else text
    assert step["type"] == "Replace"
    return pattern(step).sub(lambda _: step["content"], text)


def split(word, step):
    assert step["type"] == "Split"
    assert not step["invert"]
    found = pattern(step)
    if step["behavior"] == "Removed":
        return found.split(word)
    assert step["behavior"] in ("MergedWithPrevious", "MergedWithNext")
    places = [m.end() if step["behavior"] == "MergedWithPrevious" else m.start() for m in found.finditer(word)]
    return [word[begin:end] for begin, end in zip([0, *places], [*places, len(word)], strict=True)]
