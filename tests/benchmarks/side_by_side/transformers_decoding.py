"""Hugging Face's side of the rows of decoding: `generate` of `transformers`."""

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM
from transformers.utils import logging

from .search_work import SearchSide


class TransformersDecoding(SearchSide):
    """The class that the exported model's config names, `threads` threads."""

    def __init__(self, directory: str, threads: int = 1):
        super().__init__(directory)
        torch.set_num_threads(threads)
        logging.set_verbosity_error()
        where = f"{directory}/theirs"
        is_translator = AutoConfig.from_pretrained(where).is_encoder_decoder
        kind = AutoModelForSeq2SeqLM if is_translator else AutoModelForCausalLM
        self.model = kind.from_pretrained(where).eval()

    @torch.inference_mode()
    def decode(self, texts: list[list[int]]) -> list[list[int]]:
        given = torch.tensor(texts)
        forced = {"max_new_tokens": self.steps, "min_new_tokens": self.steps}
        skipped = given.shape[1]
        if self.model.config.is_encoder_decoder:
            ends = torch.full((len(given), 1), self.model.generation_config.eos_token_id)
            given, skipped = torch.cat([given, ends], dim=1), 1
        found = self.model.generate(given, attention_mask=torch.ones_like(given), do_sample=False, **forced)
        return found[:, skipped:].tolist()
