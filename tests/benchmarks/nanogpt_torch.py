"""The PyTorch side of `nanogpt.py`, which starts it with an interpreter that has PyTorch.

Reads the token ids and the recipe that it is given as files, trains GPT-2 blocks without biases, and prints a line of
JSON for every full validation pass: {"update": 250, "loss": nats per token}.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

VALIDATION_WINDOWS = 128  # read at once


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x)) (Radford et al. 2019)."""

    def __init__(self, width: int, heads: int, feed_forward: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = (nn.LayerNorm(width, bias=False) for _ in range(2))
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.expand = nn.Linear(width, feed_forward, bias=False)
        self.contract = nn.Linear(feed_forward, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + F.dropout(self.output(self.attend(self.norm1(x))), self.dropout, self.training)
        return x + F.dropout(self.contract(F.gelu(self.expand(self.norm2(x)))), self.dropout, self.training)

    def attend(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.query_key_value(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        rate = self.dropout if self.training else 0.0
        context = F.scaled_dot_product_attention(query, key, value, dropout_p=rate, is_causal=True)
        return context.transpose(1, 2).reshape(batch, length, width)


class GPT(nn.Module):
    """Learned positions, tied output table, initial values of GPT-2."""

    def __init__(self, recipe: dict):
        super().__init__()
        width, layers = recipe["width"], recipe["layers"]
        self.tokens = nn.Embedding(recipe["vocab_size"], width)
        self.positions = nn.Embedding(recipe["context"], width)
        sizes = width, recipe["heads"], recipe["feed_forward"], recipe["dropout"]
        self.blocks = nn.ModuleList(Block(*sizes) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        self.dropout = recipe["dropout"]
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                writes_to_stream = name.endswith(("output.weight", "contract.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if writes_to_stream else 0.02)

    def forward(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """The mean loss.  Shapes: inputs and labels (B, T)."""
        x = self.tokens(inputs) + self.positions.weight[: inputs.shape[1]]
        x = F.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        logits = self.norm(x) @ self.tokens.weight.T
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def learning_rate(recipe: dict, update: int) -> float:
    """Linear warm-up, then half a cosine wave; updates are counted from 0, as nanoGPT does."""
    if update < recipe["warmup"]:
        return recipe["learning_rate"] * (update + 1) / (recipe["warmup"] + 1)
    progress = (update - recipe["warmup"]) / (recipe["updates"] - recipe["warmup"])
    span = recipe["learning_rate"] - recipe["final_learning_rate"]
    return recipe["final_learning_rate"] + span * 0.5 * (1 + math.cos(math.pi * progress))


@torch.inference_mode()
def validation_loss(model: nn.Module, ids: Tensor, context: int) -> float:
    """Nats per token over the whole text, in windows of the context: every token but the first is predicted once."""
    model.eval()
    whole = (len(ids) - 1) // context
    inputs, labels = (ids[shift : shift + whole * context].view(whole, context) for shift in (0, 1))
    batches = list(zip(inputs.split(VALIDATION_WINDOWS), labels.split(VALIDATION_WINDOWS), strict=True))
    if rest := (len(ids) - 1) % context:
        batches.append((ids[None, -rest - 1 : -1], ids[None, -rest:]))
    total = sum(model(*batch).item() * batch[1].numel() for batch in batches)
    model.train()
    return total / (len(ids) - 1)


def make_optimizer(model: nn.Module, recipe: dict) -> torch.optim.Optimizer:
    """AdamW; matrices decay, embeddings included, gains do not."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    gains = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": recipe["weight_decay"]}, {"params": gains, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1.0, betas=(recipe["beta1"], recipe["beta2"]), eps=recipe["eps"], fused=True)


def train(recipe: dict, train_ids: Tensor, valid_ids: Tensor, seed: int, compiled: bool) -> None:
    torch.manual_seed(seed)
    model = GPT(recipe)
    optimizer = make_optimizer(model, recipe)
    step_model = torch.compile(model) if compiled else model
    context = recipe["context"]
    within = torch.arange(context)
    for update in range(recipe["updates"]):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, update)
        begins = torch.randint(len(train_ids) - context, (recipe["batch"], 1))
        loss = step_model(train_ids[begins + within], train_ids[begins + within + 1])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), recipe["clip"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if (update + 1) % recipe["validate_every"] == 0 or update + 1 == recipe["updates"]:
            found = validation_loss(model, valid_ids, context)
            tell(update=update + 1, loss=found)


def tell(**record: object) -> None:
    print(json.dumps(record), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="with recipe.json, train.npy and valid.npy")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    recipe = json.loads((arguments.directory / "recipe.json").read_text(encoding="utf-8"))
    ids = [torch.from_numpy(np.load(arguments.directory / f"{name}.npy")).long() for name in ("train", "valid")]
    tell(parameters=sum(p.numel() for p in GPT(recipe).parameters()), version=torch.__version__)
    train(recipe, *ids, arguments.seed, arguments.compile)


if __name__ == "__main__":
    main()
