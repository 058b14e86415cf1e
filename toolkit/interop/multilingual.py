"""The tokenizers of models that know several languages, M2M100 and NLLB, in and out.

Both have a token for each language. The files of an NllbTokenizer are those of the `tokenizers` library; an
M2M100Tokenizer has a vocabulary, a SentencePiece model, and languages that no file lists.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.errors import ModelError
from toolkit.interop.hugging_face_files import ForeignSettings
from toolkit.interop.tokenizer_reading import (
    BPE_FILE,
    LIBRARY_FILE,
    PIECES_FILE,
    SETTINGS_FILE,
    USUAL_TOKENS,
    ReadTokenizer,
    TokenizerDirectory,
    library_tokenizer,
    sentencepiece_tokenizer,
)
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.storage import write_json
from toolkit.tokenization.foreign import ForeignSentencePieceTokenizer, ForeignTokenizer
from toolkit.tokenization.foreign_library import LibraryTokenizer
from toolkit.tokenization.languages import Languages
from toolkit.tokenization.special import FIRST_TOKEN, SPECIAL_TOKENS
from toolkit.tokenization.tokenizer import write_file

MULTILINGUAL = "m2m_100"  # the model_type of M2M100 and NLLB
_NLLB_CLASSES = ("NllbTokenizer", "NllbTokenizerFast")
_LIBRARY_CLASSES = (None, *_NLLB_CLASSES, "PreTrainedTokenizerFast", "TokenizersBackend")
_PIECES_CLASS = "M2M100Tokenizer"

# The tokens of languages follow the vocabulary of an M2M100Tokenizer, in this order, which no file says.
_M2M100_CODES = {
    "m2m100": "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr "
    "ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps "
    "pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu",
    "wmt21": "en ha is ja cs ru zh de",
}
_LANGUAGE = re.compile("__([a-z]{2,3})__|([a-z]{2,3}_[A-Z][a-z]{3})")  # M2M100's tokens, and NLLB's


def read_multilingual(config: ForeignSettings, size: int, end_token: str | None = None) -> ReadTokenizer:
    """Read the tokenizer of an M2M100 or NLLB, and its languages.

    Raises ModelError as `read_tokenizer`, and for one that puts the language elsewhere than in front of a text.
    """
    found = TokenizerDirectory(config, size, end_token)
    name, settings = found.settings.get("tokenizer_class"), found.path / SETTINGS_FILE
    if found.settings.get("legacy_behaviour"):
        raise ModelError(
            f"{settings} has legacy_behaviour true, which puts a source's language behind its end mark: NLLB was "
            "trained with it in front, and so must the model be to be read here (legacy_behaviour false)"
        )
    if name not in (*_LIBRARY_CLASSES, _PIECES_CLASS):
        raise ModelError(
            f"{settings} has tokenizer_class {name!r:.60}: of an {MULTILINGUAL}, NllbTokenizer and {_PIECES_CLASS} "
            "are read, which put the language in front of a text"
        )
    if name == _PIECES_CLASS or not found.has(LIBRARY_FILE):
        read = _m2m100(found)
    else:
        read = library_tokenizer(found, begins=False)
    forced = config.tokens("forced_bos_token_id")
    languages = languages_of(read.tokens, read.vocabulary, found.path, found.settings, forced)
    if languages is None and name in _NLLB_CLASSES:
        raise ModelError(f"{found.path} has no tokens of languages, such as eng_Latn, though it has an {name}")
    return read._replace(tokenizer=read.tokenizer.with_languages(languages)) if languages else read


def _m2m100(found: TokenizerDirectory) -> ReadTokenizer:
    """Read an M2M100Tokenizer: a vocabulary, the SentencePiece model that cuts texts, and languages."""
    if not found.has(PIECES_FILE, BPE_FILE):
        raise ModelError(
            f"{found.path} has no tokenizer that the toolkit can read: it looks for {LIBRARY_FILE}, and for an "
            f"{_PIECES_CLASS}'s {PIECES_FILE} and {BPE_FILE}"
        )
    ids, kind = found.json(PIECES_FILE), found.settings.get("language_codes", "m2m100")
    if kind not in [*_M2M100_CODES]:
        raise ModelError(f"{found.path / SETTINGS_FILE} has language_codes {kind!r:.60}: {', '.join(_M2M100_CODES)}")
    codes = enumerate(_M2M100_CODES[kind].split(), start=len(ids))
    tokens = found.by_id(ids | {_token(code): index for index, code in codes}, PIECES_FILE)
    vocabulary = found.vocabulary(tokens, {role: ids[name] for role, name in USUAL_TOKENS.items() if name in ids})
    return ReadTokenizer(sentencepiece_tokenizer(tokens, vocabulary, found.path / BPE_FILE), vocabulary, None, tokens)


def _token(code: str) -> str:
    """Name the token of a language as M2M100Tokenizer does."""
    return f"__{code}__"


def languages_of(
    tokens: Sequence[str | None],
    vocabulary: Vocabulary,
    origin: Path,
    settings: Mapping[str, Any] | None = None,
    forced: Sequence[int] = (),
) -> Languages | None:
    """Find the languages of an M2M100 or NLLB by the names of their tokens; None where there are none.

    tokens: by foreign id. settings: of tokenizer_config.json, which may say which are meant. forced: the foreign id
    that config.json lets outputs begin with, if it does.

    Raises ModelError, naming the `origin`, where one of them is a special token.
    """
    names = {index: match for index, token in enumerate(tokens) if (match := _LANGUAGE.fullmatch(token or ""))}
    codes = {index: match[1] or match[2] for index, match in names.items()}
    if not codes:
        return None
    ids = dict(zip(codes.values(), vocabulary.ours(codes), strict=True))
    for index, code in codes.items():
        if ids[code] < FIRST_TOKEN:
            raise ModelError(
                f"{origin} has a language, {code}, as {SPECIAL_TOKENS[ids[code]]} (token {index}): of its outputs, "
                "the end mark is what they begin with, and forced_bos_token_id says their language"
            )
    source, target = (
        code if isinstance(code, str) and code in ids else None
        for code in map((settings or {}).get, ("src_lang", "tgt_lang"))
    )
    return Languages(ids, source, codes.get(forced[0], target) if forced else target)


def write_multilingual(tokenizer: ForeignTokenizer, names: Sequence[str], directory: Path) -> dict[str, Any]:
    """Write the files of a tokenizer that has languages -> what its settings say.  names: of the foreign ids.

    Raises ModelError for one that neither class of transformers can be.
    """
    languages, rows = tokenizer.languages, tokenizer.rows
    assert languages
    first = min(rows[index] for index in languages.ids.values())
    codes = sorted(languages.ids, key=lambda code: rows[languages.ids[code]])
    settings = {"src_lang": languages.source, "tgt_lang": languages.target}
    if isinstance(tokenizer, LibraryTokenizer):
        write_json(directory / LIBRARY_FILE, tokenizer.content)
        if any(code not in names for code in codes):  # tokens that are not called as NllbTokenizer calls them
            return {"tokenizer_class": "PreTrainedTokenizerFast"}
        settings |= {"legacy_behaviour": False, "split_special_tokens": True}
        # Where none are named, NllbTokenizer adds those of NLLB-200.
        return {"tokenizer_class": "NllbTokenizer", "additional_special_tokens": codes, **settings}
    kind = next((kind for kind, known in _M2M100_CODES.items() if known.split() == codes), None)
    if kind is None or not isinstance(tokenizer, ForeignSentencePieceTokenizer):
        raise ModelError(
            f"its tokenizer is a SentencePiece model with languages of its own, such as {codes[0]}: no class of "
            f"transformers has that, so import it with a {LIBRARY_FILE} beside"
        )
    write_json(directory / PIECES_FILE, {name: index for index, name in enumerate(names[:first])})
    write_file(directory, BPE_FILE, tokenizer.models[0])
    settings |= {"language_codes": kind, "num_madeup_words": len(names) - first - len(codes)}
    # Where none are named, M2M100Tokenizer shows languages as text.
    return {"tokenizer_class": _PIECES_CLASS, "additional_special_tokens": [*map(_token, codes)], **settings}
