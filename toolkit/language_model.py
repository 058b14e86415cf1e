"""A decoder-only model with its tokenizer: `generate`, `generate_n`, `stream`, `chat` and `perplexity`."""

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np

from toolkit.decoding import ContinuationConfig, ContinuationSettings, Hypothesis, PrefixCache, generate, stream
from toolkit.decoding.generation import SEQUENCES_AT_ONCE as BATCH_SIZE
from toolkit.decoding.loop import StoppingCriteria, check_stopping
from toolkit.display import counted
from toolkit.errors import ConfigError, DataError, LengthError
from toolkit.models.gpt import GPT
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.outputs import Continuation, continuation
from toolkit.text_model import TextModel, Where, check_length, config_of, listed
from toolkit.tokenization import Detokenizer
from toolkit.tokenization.normal_form import check_text, normal_form, text_list
from toolkit.tokenization.special import BOS, EOS

if TYPE_CHECKING:
    from toolkit.chat import ChatSession
    from toolkit.evaluation.perplexity import Perplexity


class WritingSettings(ContinuationSettings, total=False):
    """The keywords of `LanguageModel.generate`, for editors and type checkers."""

    stop_strings: Sequence[str]
    bad_words: Sequence[str]
    batch_size: int
    where: Where
    first: int


class ContinuationsSettings(WritingSettings, total=False):
    """Those of `LanguageModel.generate_n`."""

    num_return_sequences: int


class LanguageModel(TextModel):
    """A decoder-only model with its tokenizer: the beginning of a text to the rest of it."""

    model: GPT

    @overload
    def generate(
        self, prompt: str = "", config: ContinuationConfig | None = None, **settings: Unpack[WritingSettings]
    ) -> str: ...

    @overload
    def generate(
        self, prompt: Iterable[str], config: ContinuationConfig | None = None, **settings: Unpack[WritingSettings]
    ) -> list[str]: ...

    def generate(
        self, prompt: str | Iterable[str] = "", config: ContinuationConfig | None = None, **settings: Any
    ) -> str | list[str]:
        """Continue a prompt, or each of a list or other iterable.

        An empty prompt lets the model begin: with BOS, or after a line feed where it knows no BOS. Prompts are put into
        Unicode normal form C and otherwise taken as they are: one that ends within a word, or with a space, is
        continued from there. One that was taught to converse is asked by `chat`: here it gets the bare text.

        config: how to decode; settings: those of `ContinuationConfig` by name, which change it, and these:
        stop_strings: the text ends in front of the first of them.
        bad_words: not written, each as it is tokenized by itself and after a space; a model may still spell it in other
            tokens.
        batch_size: the sequences that are written at once (16).
        where, first: for parts of a longer input: a function that names a prompt in an error, by its number from 1; and
            the number of prompts that came before these (samples depend on the number of their prompt).

        Raises DataError for an item that is no text, a prompt that is not Unicode, has characters that the model does
        not know, or leaves no room in the context; ConfigError for a setting out of range.
        """
        config = config_of(ContinuationConfig, config, settings, WritingSettings.__optional_keys__)
        if config.num_return_sequences > 1:
            raise ConfigError(f"num_return_sequences is {config.num_return_sequences}: generate_n gives several")
        texts = [group[0].text for group in self._continued(prompt, config, **settings)]
        return texts[0] if isinstance(prompt, str) else texts

    @overload
    def generate_n(
        self, prompts: str, config: ContinuationConfig | None = None, **settings: Unpack[ContinuationsSettings]
    ) -> list[Continuation]: ...

    @overload
    def generate_n(
        self,
        prompts: Iterable[str],
        config: ContinuationConfig | None = None,
        **settings: Unpack[ContinuationsSettings],
    ) -> list[list[Continuation]]: ...

    def generate_n(
        self, prompts: str | Iterable[str], config: ContinuationConfig | None = None, **settings: Any
    ) -> list[Continuation] | list[list[Continuation]]:
        """Write `num_return_sequences` continuations, the most probable first: of a prompt, or of each of a list.

        All continuations of a prompt come from one reading of it. Samples may repeat; of beams there may be fewer than
        asked for. The settings are those of `generate`, which says what is refused.
        """
        config = config_of(ContinuationConfig, config, settings, WritingSettings.__optional_keys__)
        found = self._continued(prompts, config, **settings)
        return found[0] if isinstance(prompts, str) else found

    def stream(
        self,
        prompt: str = "",
        config: ContinuationConfig | None = None,
        *,
        stop_strings: Sequence[str] = (),
        bad_words: Sequence[str] = (),
        first: int = 0,
        **settings: Unpack[ContinuationSettings],
    ) -> Iterator[str]:
        """Yield the text that `generate` gives with the same settings, part by part as it is written.

        Only whole letters come, and nothing that could belong to a stop string. Beams come at their end. Errors of
        prompt and settings are raised here, not by the iterator.
        """
        config = config_of(ContinuationConfig, config, settings)
        check_text(prompt, "the prompt")
        [ids] = self.encode([prompt], config, lambda _: "the prompt")
        check_stopping(config, self._stopping(stop_strings))
        written = self.stream_ids(ids, config, bad_words, first)
        return Detokenizer(self.tokenizer, stop_strings).parts(written)

    def _continued(
        self,
        prompt: str | Iterable[str],
        config: ContinuationConfig,
        *,
        stop_strings: Sequence[str] = (),
        bad_words: Sequence[str] = (),
        batch_size: int = BATCH_SIZE,
        where: Where | None = None,
        first: int = 0,
    ) -> list[list[Continuation]]:
        """Encode and decode -> the continuations of every prompt."""
        prompts, where = listed(prompt, "prompt", where)
        ids = self.encode(prompts, config, where)
        numbers, bad_ids = range(first, first + len(ids)), self.bad_ids(bad_words)
        stopping = self._stopping(stop_strings)
        with self.arithmetic():
            found = generate(self.model, ids, config, batch_size, numbers=numbers, bad_words=bad_ids, stopping=stopping)
        self.check_finite([prob for group in found for prob in [each.log_prob for each in group] or [math.nan]])
        return [
            [continuation(text, hypothesis, self.tokenizer, stop_strings) for hypothesis in group]
            for text, group in zip(prompts, found, strict=True)
        ]

    def stream_ids(
        self,
        ids: Sequence[int],
        config: ContinuationConfig,
        bad_words: Sequence[str] = (),
        first: int = 0,
        end: int = EOS,
        prefix_cache: PrefixCache | None = None,
    ) -> Generator[int, None, Hypothesis]:
        """Yield the ids that the model writes after these, which stand after its BOS; see `decoding.stream`."""
        self.check_finite([self._largest_logit])
        bad_ids = self.bad_ids(bad_words)
        return stream(self.model, ids, config, bad_ids, first, end, prefix_cache, self.arithmetic)

    def chat(
        self,
        system: str = "",
        template: str | None = None,
        *,
        stop_strings: Sequence[str] = (),
        bad_words: Sequence[str] = (),
        **settings: Unpack[ContinuationSettings],
    ) -> "ChatSession":
        """Begin a conversation with the model; see `ChatSession` for the arguments and for what is refused.

        settings: those of `ContinuationConfig`, but that nothing is sampled unless do_sample says so.
        """
        from toolkit.chat import ChatSession

        config = config_of(ContinuationConfig, None, {"do_sample": False, **settings})
        self.bad_ids(bad_words)  # told now, not with the first reply
        return ChatSession(
            self, system=system, template=template, config=config, stop_strings=stop_strings, bad_words=bad_words
        )

    def perplexity(self, text: str | Iterable[str], *, overlap: int = 0) -> "Perplexity":
        """Measure how well the model predicts a text, or several together, each read by itself.

        A model that knows BOS reads a text after it, and predicts EOS too; any other predicts all tokens but the
        first. Texts beyond the context are read in windows; overlap: how many tokens of a window the next one reads
        again as context (0 reads fastest).

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
        """Measure as `perplexity` does, for texts that come in pieces and need not fit into memory.

        pieces: text in normal form C, and whether a document ends with it; tokenized piece by piece. marks: whether EOS
        is predicted at the end of a document, by a model that knows it. separator: bytes between two documents. each:
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
        return perplexity(loss, tokens, 0 if self.by_ids else texts.bytes)

    @cached_property
    def _largest_logit(self) -> float:
        """Find the largest logit after one token: not finite where the weights overflow."""
        tape = Tape()
        with self.arithmetic():
            logits = self.model.output.logits(self.model.read(np.array([BOS]), Rows(np.array([1])), tape), tape)
            return float(np.abs(logits).max())

    def encode(self, prompts: Sequence[str], config: ContinuationConfig, where: Where) -> list[list[int]]:
        """Give the ids of every prompt.  Raises DataError for one that cannot be read, LengthError for a long one."""
        context, stops = self.model.config.max_length, config.past_context == "stop"
        room = context - self.model.config.begin - max(config.shortest, 1)
        beginning, found = "" if self.model.config.begin else "\n", []  # what an empty prompt stands for
        for number, prompt in enumerate(prompts, start=1):
            if stops:
                check_length(prompt, where(number), context)
            try:
                ids = self.tokenizer.encode(prompt or beginning)
            except DataError as error:
                if not prompt:
                    raise DataError(f"{where(number)} is empty, and this model cannot begin: give it a word") from error
                raise DataError(f"{where(number)} cannot be read: {error}") from error
            if stops and len(ids) > room:
                raise LengthError(
                    f"{where(number)} has {counted(len(ids), 'token')}, and the model has room for {max(room, 0)} "
                    "before what it writes: shorten it, or let past_context be slide"
                )
            if self.by_ids and not ids:
                raise DataError(f"{where(number)} is empty: give it an id to begin with")
            found.append(ids)
        return found

    def _stopping(self, stops: Sequence[str]) -> Callable[[], StoppingCriteria] | None:
        """Make criteria that end a sequence at a stop string.

        Raises ConfigError for stop strings that are none, and for a model that is used by ids.
        """
        if stops and self.by_ids:
            raise ConfigError("stop strings are of texts, and ids are none: leave them out, or use the model by text")
        Detokenizer(self.tokenizer, stops)
        return (lambda: Detokenizer(self.tokenizer, stops).ends_with) if stops else None
