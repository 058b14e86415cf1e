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
from side_by_side.torch_models import GPT
from torch import Tensor, nn

VALIDATION_WINDOWS = 128  # read at once


def build(recipe: dict) -> GPT:
    """The model with the initial values of GPT-2."""
    names = ("vocab_size", "d_model", "num_heads", "layers", "d_ff")
    rates = {f"{name}_dropout": recipe["dropout"] for name in ("embedding", "attention", "activation", "residual")}
    same = {name: recipe[name] for name in names}
    model = GPT({**same, **rates, "max_length": recipe["context"], "activation": "gelu", "bias": False})
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            writes_to_stream = name.endswith(("output.weight", "down.weight"))
            nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * recipe["layers"]) if writes_to_stream else 0.02)
    return model


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
    model = build(recipe)
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
    tell(parameters=sum(p.numel() for p in build(recipe).parameters()), version=torch.__version__)
    train(recipe, *ids, arguments.seed, arguments.compile)


if __name__ == "__main__":
    main()
