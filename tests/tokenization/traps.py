"""Texts that tokenizers trip over."""

from hypothesis import strategies as st

CORPUS = [
    "I am a boy.",
    "I am reading a book.",
    "She is reading two books.",
    "म केटा हुँ।",
    "म किताब पढ्दै छु।",
    "उनले भात खाइन्, उसले गर्‍यो।",
    "a tab\tand a line\nend, 1234567890",
] * 5

# White space of every kind, their own marks, their own piece names, joiners, code points at the edges of UTF-8
# lengths, and a decomposed letter.
TRAPS = (
    *(" ", "  ", "\t", "\n", "\r\n", "\0", "\u00a0", "\u0085", "\u2028", "\u3000", "\ufeff"),
    *("▁", "▁▁", "▅", " ⁇ ", "\ufffd", "\ue000", "\uf8ff", "\U0010ffff", "\x7f", "\u07ff", "\u0800", "\uffff"),
    *("<s>", "</s>", "<pad>", "<unk>", "<|user|>", "<|spare_3|>", "<0x41>", "<0xE2>", "<0x96>", "<0x81>"),
    *("गर्\u200dयो", "क्\u200cष", "👩\u200d👩\u200d👧", "🇳🇵", "e\u0301", "क\u093c", "boy", "म", "é"),
)
TEXTS = st.one_of(st.text(), st.lists(st.one_of(st.sampled_from(TRAPS), st.text(max_size=3))).map("".join))
