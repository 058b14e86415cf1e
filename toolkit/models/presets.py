"""Language models by name: the shapes of published ones, and our own."""

from toolkit.models.gpt import GPTConfig


def _gpt2(width: int, layers: int, heads: int) -> GPTConfig:
    """Radford et al. 2019, table 2, with the dropout they were trained with."""
    return GPTConfig(
        vocab_size=50257,
        d_model=width,
        layers=layers,
        num_heads=heads,
        d_ff=4 * width,
        activation="gelu_tanh",
        bias=True,
        positions="learned",
        max_length=1024,
        embedding_dropout=0.1,
        attention_dropout=0.1,
        residual_dropout=0.1,
    )


def _nanogpt(width: int, layers: int, heads: int, context: int, dropout: float) -> GPTConfig:
    """nanoGPT's models of the characters of Shakespeare: windows of one text without marks."""
    return GPTConfig(
        vocab_size=65,
        d_model=width,
        layers=layers,
        num_heads=heads,
        d_ff=4 * width,
        activation="gelu",
        positions="learned",
        max_length=context,
        begin=False,
        embedding_dropout=dropout,
        attention_dropout=dropout,
        residual_dropout=dropout,
    )


PRESETS = {
    "stories": GPTConfig(num_heads=8),
    "chat": GPTConfig(vocab_size=2400, d_model=192, layers=6, num_heads=6, d_ff=768, max_length=512),
    "nanogpt-cpu": _nanogpt(128, 4, 4, 64, 0.0),
    "nanogpt-gpu": _nanogpt(384, 6, 6, 256, 0.2),
    "tinystories-260k": GPTConfig(
        vocab_size=512,
        d_model=64,
        layers=5,
        num_heads=8,
        num_key_value_heads=4,
        d_ff=172,
        activation="swiglu",
        norm="rms",
        max_length=512,
    ),
    "gpt2": _gpt2(768, 12, 12),
    "gpt2-medium": _gpt2(1024, 24, 16),
    "gpt2-large": _gpt2(1280, 36, 20),
    "gpt2-xl": _gpt2(1600, 48, 25),
}
