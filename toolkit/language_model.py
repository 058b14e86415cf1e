"""From a prompt to its continuation, and from a text to what a language model thinks of it."""

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Unpack, overload

import numpy as np

from toolkit.chat import ChatSession
from toolkit.continuations import ContinuationsSettings, WritingSettings
from toolkit.decoding import (
    ContinuationConfig,
    ContinuationSettings,
    Hypothesis,
    PrefixCache,
    generate,
    stream,
)
from toolkit.decoding.generation import SEQUENCES_AT_ONCE as BATCH_SIZE
from toolkit.decoding.loop import StoppingCriteria, check_stopping
from toolkit.display import counted
from toolkit.errors import DataError, LengthError
from toolkit.models.gpt import GPT
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.outputs import Continuation, continuation
from toolkit.text_model import TextModel, Where, check_length
from toolkit.tokenization import StopStrings, TextStream
from toolkit.tokenization.normal_form import check_text, normal_form, text_list
from toolkit.tokenization.special import BOS, EOS

if TYPE_CHECKING:
    from toolkit.evaluation.perplexity import Perplexity


class LanguageModel(TextModel):
    """A decoder-only model with its tokenizer: the beginning of a text to the rest of it."""

    model: GPT

    @overload
    def generate(self, prompt: str = "", **settings: Unpack[WritingSettings]) -> str: ...

    @overload
    def generate(self, prompt: Iterable[str], **settings: Unpack[WritingSettings]) -> list[str]: ...

    def generate(
        self,
        prompt: str | Iterable[str] = "",
        *,
        max_new_tokens: int | None = None,
        min_new_tokens: int = 0,
        do_sample: bool = True,
        temperature: float = 0.7,
        top_k: int = 50,
        top_p: float = 1.0,
        min_p: float = 0.1,
        repetition_penalty: float = 1.0,
        no_repeat_ngram_size: int = 0,
        num_beams: int = 1,
        early_stopping: Literal[True, False, "never", "settled"] = "settled",
        forced_end: Literal["scored", "free", "none"] = "none",
        length_penalty: float = 1.0,
        seed: int = 0,
        past_context: Literal["stop", "slide"] = "stop",
        stop_strings: Sequence[str] = (),
        bad_words: Sequence[str] = (),
        batch_size: int = BATCH_SIZE,
    ) -> str | list[str]:
        """Continue a prompt, or each of a list or other iterable; the settings are those of `ContinuationConfig`.

        An empty prompt lets the model begin: with its begin mark, or after a line feed where it knows no marks. Prompts
        are put into Unicode normal form C and otherwise taken as they are: one that ends within a word, or with a
        space, is continued from there.

        stop_strings: the text ends in front of the first of them. bad_words: not written, each as it is tokenized by
            itself and after a space; a model may still spell it in other tokens.

        Raises DataError for an item that is no text, a prompt that is not Unicode, has characters that the model does
        not know, or leaves no room in the context; ConfigError for a setting out of range.
        """
        config = ContinuationConfig(
            max_new_tokens=max_new_tokens,
            min_new_tokens=min_new_tokens,
            do_sample=do_sample,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            no_repeat_ngram_size=no_repeat_ngram_size,
            num_beams=num_beams,
            early_stopping=early_stopping,
            forced_end=forced_end,
            length_penalty=length_penalty,
            seed=seed,
            past_context=past_context,
        )
        prompts, where = _listed(prompt)
        texts = [
            group[0].text for group in self.continuations(prompts, config, stop_strings, bad_words, batch_size, where)
        ]
        return texts[0] if isinstance(prompt, str) else texts

    @overload
    def generate_n(self, prompts: str, **settings: Unpack[ContinuationsSettings]) -> list[Continuation]: ...

    @overload
    def generate_n(
        self, prompts: Iterable[str], **settings: Unpack[ContinuationsSettings]
    ) -> list[list[Continuation]]: ...

    def generate_n(
        self,
        prompts: str | Iterable[str],
        *,
        num_return_sequences: int = 1,
        stop_strings: Sequence[str] = (),
        bad_words: Sequence[str] = (),
        batch_size: int = BATCH_SIZE,
        **settings: Unpack[ContinuationSettings],
    ) -> list[Continuation] | list[list[Continuation]]:
        """Write `num_return_sequences` continuations, the most probable first: of a prompt, or of each of a list.

        All continuations of a prompt come from one reading of it. Samples may repeat; of beams there may be fewer than
        asked for. The other settings are those of `generate`, which says what is refused.
        """
        config = ContinuationConfig(num_return_sequences=num_return_sequences, **settings)
        listed, where = _listed(prompts)
        found = self.continuations(listed, config, stop_strings, bad_words, batch_size, where)
        return found[0] if isinstance(prompts, str) else found

    def stream(
        self,
        prompt: str = "",
        *,
        stop_strings: Sequence[str] = (),
        bad_words: Sequence[str] = (),
        **settings: Unpack[ContinuationSettings],
    ) -> Iterator[str]:
        """The text that `generate` gives with the same settings, part by part as it is written.

        Only whole letters come, and nothing that could belong to a stop string. Beams come at their end. What is wrong
        with prompt or settings is raised here, not by the iterator.
        """
        check_text(prompt, "the prompt")
        return self.stream_with(prompt, ContinuationConfig(**settings), stop_strings, bad_words)

    def continuations(
        self,
        prompts: Sequence[str],
        config: ContinuationConfig,
        stop_strings: Sequence[str] = (),
        bad_words: Sequence[str] = (),
        batch_size: int = BATCH_SIZE,
        where: Where = "prompt {}".format,
        first: int = 0,
    ) -> list[list[Continuation]]:
        """As `generate_n`.  where: names a prompt in an error. first: how many prompts came before these; samples
        depend on the number of their prompt."""
        ids = self.encode(prompts, config, where)
        bans, stopping = self._bad_ids(bad_words), self._stopping(stop_strings)
        with self.arithmetic():
            found = generate(
                self.model,
                ids,
                config,
                batch_size,
                numbers=range(first, first + len(ids)),
                bad_words=bans,
                stopping=stopping,
            )
        self.check_finite([prob for group in found for prob in [each.log_prob for each in group] or [math.nan]])
        return [
            [continuation(prompt, hypothesis, self.tokenizer, stop_strings) for hypothesis in group]
            for prompt, group in zip(prompts, found, strict=True)
        ]

    def stream_with(
        self,
        prompt: str,
        config: ContinuationConfig,
        stop_strings: Sequence[str] = (),
        bad_words: Sequence[str] = (),
        first: int = 0,
    ) -> Iterator[str]:
        """As `stream`.  first: how many prompts came before, as for `continuations`."""
        [ids] = self.encode([prompt], config, lambda _: "the prompt")
        check_stopping(config, self._stopping(stop_strings))
        written = self.stream_ids(ids, config, bad_words, first)
        return TextStream(self.tokenizer, stop_strings).parts(written)

    def stream_ids(
        self,
        ids: Sequence[int],
        config: ContinuationConfig,
        bad_words: Sequence[str] = (),
        first: int = 0,
        end: int = EOS,
        prefix_cache: PrefixCache | None = None,
    ) -> Generator[int, None, Hypothesis]:
        """As `decoding.stream`: the ids that the model writes after these, which stand after its begin mark."""
        self.check_finite([self._largest_logit])
        bad_ids = self._bad_ids(bad_words)
        return stream(self.model, ids, config, bad_ids, first, end, prefix_cache, self.arithmetic)

    def chat(
        self,
        system: str = "",
        template: str | None = None,
        *,
        stop_strings: Sequence[str] = (),
        bad_words: Sequence[str] = (),
        **settings: Unpack[ContinuationSettings],
    ) -> ChatSession:
        """A conversation with the model, which remembers it by being sent all of it again.

        system: says how the assistant is to answer. template: how messages are written, "control" or "plain"; None is
        what the model was taught. The other settings are those of `ContinuationConfig`, but that nothing is sampled
        unless do_sample says so.

        Raises ModelError for a model that was taught no template where none is given, ConfigError for a setting that
        does not fit, and DataError for a system message that the model cannot read.
        """
        config = ContinuationConfig(**{"do_sample": False, **settings})
        self._bad_ids(bad_words)  # told now, not with the first reply
        return ChatSession(
            self, system=system, template=template, config=config, stop_strings=stop_strings, bad_words=bad_words
        )

    def perplexity(self, text: str | Iterable[str], *, overlap: int = 0) -> "Perplexity":
        """What the model thinks of a text, or of several together, each read by itself.

        A model whose texts have marks reads a text after its begin mark and predicts its end mark too; any other
        predicts all tokens but the first. Texts beyond the context are read in windows; overlap: how many tokens of a
        window the next one reads again as context (0 reads fastest).

        Raises DataError where there is nothing to predict or a text is not Unicode, ConfigError for an overlap that
        does not fit the context.
        """
        texts = [text] if isinstance(text, str) else text_list(text, "texts", "text {}".format)
        return self.perplexity_of(((normal_form(each), True) for each in texts), overlap)

    def perplexity_of(
        self,
        pieces: Iterable[tuple[str, bool]],
        overlap: int = 0,
        marks: bool = True,
        separator: int = 0,
        each: Callable[[Callable, Iterable], Iterable] = map,
    ) -> "Perplexity":
        """As `perplexity`, for texts that come in pieces and need not fit into memory.

        pieces: text in normal form C, and whether a document ends with it; tokenized piece by piece. marks: whether the
        end of a document is predicted, by a model that knows marks. separator: bytes between two documents. each:
        what does the work for each batch, in order; `map` does it in this process.
        """
        from toolkit.evaluation.perplexity import MarkedTexts, WindowLosses, batches, perplexity, windows

        begin = self.model.config.begin
        texts = MarkedTexts(pieces, self.tokenizer, begin, begin and marks, separator)
        cut = batches(windows(texts, self.model.config.max_length, overlap))
        loss, tokens = 0.0, 0
        # Where processes share the work, each has one thread.
        with self.arithmetic(threads=None if each is map else 1):
            for nats, count in each(WindowLosses(self.model), cut):
                loss, tokens = loss + nats, tokens + count
        if not tokens or not texts.bytes:
            raise DataError("there is nothing to predict: the text has less than two tokens")
        self.check_finite([loss])
        return perplexity(loss, tokens, texts.bytes)

    @cached_property
    def _largest_logit(self) -> float:
        """Of what may follow one token: not finite where the weights overflow."""
        tape = Tape()
        with self.arithmetic():
            logits = self.model.logits(self.model.read(np.array([BOS]), Rows(np.array([1])), tape), tape)
            return float(np.abs(logits).max())

    def encode(self, prompts: Sequence[str], config: ContinuationConfig, where: Where) -> list[list[int]]:
        """The ids of every prompt.  Raises DataError for one that the model cannot read, LengthError for a long one."""
        context, stops = self.model.config.max_length, config.past_context == "stop"
        room = context - self.model.config.begin - max(config.shortest, 1)
        found = []
        for number, prompt in enumerate(prompts, start=1):
            if stops:
                check_length(prompt, where(number), context)
            try:
                ids = self.tokenizer.encode(prompt or self._beginning)
            except DataError as error:
                if not prompt:
                    raise DataError(f"{where(number)} is empty, and this model cannot begin: give it a word") from error
                raise DataError(f"{where(number)} cannot be read: {error}") from error
            if stops and len(ids) > room:
                raise LengthError(
                    f"{where(number)} has {counted(len(ids), 'token')}, and the model has room for {max(room, 0)} "
                    "before what it writes: shorten it, or let past_context be slide"
                )
            found.append(ids)
        return found

    @property
    def _beginning(self) -> str:
        """What an empty prompt stands for."""
        return "" if self.model.config.begin else "\n"

    def _stopping(self, stops: Sequence[str]) -> Callable[[], StoppingCriteria] | None:
        """Make criteria that end a sequence at a stop string.  Raises ConfigError for stop strings that are none."""
        StopStrings(stops)
        if not stops:
            return None
        return lambda: TextStream(self.tokenizer, stops).ends_with


def _listed(prompt: str | Iterable[str]) -> tuple[list[str], Where]:
    """A prompt as a list of one, or the list of several, and how an error calls each."""
    if isinstance(prompt, str):
        return [prompt], lambda _: "the prompt"
    return text_list(prompt, "prompts", "prompt {}".format), "prompt {}".format
