"""Special tokens: the same ids in every tokenizer, so that models of one kind can be compared and continued.

Chat symbols and spare symbols are reserved from the start: a translation model can later be taught a control
symbol without moving a single row of its embedding.
"""

PAD = 0
UNK = 1
BOS = 2
EOS = 3
SYSTEM = 4
USER = 5
ASSISTANT = 6
END = 7
SPARE = range(8, 16)
FIRST_TOKEN = SPARE.stop  # the first id of a vocabulary of its own

SPECIAL_TOKENS: tuple[str, ...] = (
    "<pad>",
    "<unk>",
    "<s>",
    "</s>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
    *(f"<|spare_{index}|>" for index in range(len(SPARE))),
)

# Of several ids that are one token of a model from elsewhere, the first of these is the one that is written.
WRITTEN_FIRST = (EOS, UNK, PAD, BOS)

# <unk> is not among them: it stands for text that is lost, and a reader should see that something is missing.
CONTROL_IDS: frozenset[int] = frozenset(range(len(SPECIAL_TOKENS))) - {UNK}
