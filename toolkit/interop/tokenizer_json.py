"""Our tokenizers in the format of the `tokenizers` library: a tokenizer.json that gives the same ids.

Three things need care.

- ▁ stands for a space. A real ▁ of a text is spelled in its bytes, which we do by cutting the text there (see
  `toolkit.tokenization.sentencepiece`). Here a normaliser writes the names of the three bytes instead, each behind a
  mark, and a unigram model takes the names for the tokens.
- Nothing else that looks like the name of a byte or of a special token may become one: it is cut.
- The library looks for special tokens in every text. The setting `split_special_tokens` turns that off.

What is not the same. BPE: a real ▁ is read as a space, because that model knows no names. Characters that a character
tokenizer refuses are <unk>. <unk> is shown as nothing. Of a run of bytes that is not all valid, every byte is shown as
U+FFFD. Decoded text is not put into normal form C. Lower case makes every capital sigma σ, where we have ς at the end
of a word. Scores are added up in float64 for every word, by SentencePiece in float32 over the whole text: in texts of
many thousand characters, that decides here and there between two segmentations.
"""

from toolkit.interop.library_format import MARK, Json, bpe, cuts, merges_of, replace, split, tokenizer_content
from toolkit.models.gpt import GPTConfig
from toolkit.models.seq2seq import Seq2SeqConfig
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer
from toolkit.tokenization.pieces import SPACE_MARK
from toolkit.tokenization.sentencepiece import FIRST_PIECE, SPACE_MARK_IDS
from toolkit.tokenization.special import SPECIAL_TOKENS, UNK

OwnTokenizer = SentencePieceTokenizer | CharacterTokenizer | ByteTokenizer

_NORMAL_FORM = {"type": "NFC"}
_BYTES, _TOGETHER = {"type": "ByteFallback"}, {"type": "Fuse"}


def own_content(tokenizer: OwnTokenizer, config: Seq2SeqConfig | GPTConfig) -> Json:
    """The content of tokenizer.json for one of our own tokenizers, in a model of this shape."""
    pieces = [tokenizer.piece(index) for index in range(tokenizer.vocab_size)]
    if not isinstance(tokenizer, SentencePieceTokenizer):
        model = bpe(pieces, [], SPECIAL_TOKENS[UNK], byte_fallback=isinstance(tokenizer, ByteTokenizer))
        return tokenizer_content(config, pieces, [_NORMAL_FORM], [], model, [_BYTES, _TOGETHER])
    normalizers, words = [_NORMAL_FORM, replace(" ", SPACE_MARK)], [split({"String": SPACE_MARK}, "MergedWithNext")]
    if tokenizer.is_bpe:
        model = bpe(pieces, merges_of(pieces[FIRST_PIECE:]), SPECIAL_TOKENS[UNK], byte_fallback=True)
    else:
        vocabulary = [(piece, tokenizer.scores.get(piece, 0.0)) for piece in pieces]
        model = {"type": "Unigram", "unk_id": UNK, "vocab": vocabulary, "byte_fallback": True}
        marked = "".join(MARK + pieces[index] for index in SPACE_MARK_IDS)
        normalizers.insert(1, replace(SPACE_MARK, marked))
        words = [*cuts(pieces[FIRST_PIECE:]), *words]
    return tokenizer_content(config, pieces, normalizers, words, model, [replace(SPACE_MARK, " "), _BYTES, _TOGETHER])
