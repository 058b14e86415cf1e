"""Conversations as files: a line of JSON, {"messages": [{"role": …, "content": …}, …]}, as fine-tuning reads it."""

import codecs
import json
import os
from collections.abc import Sequence

from toolkit.data.messages import Message, check_conversation, messages_from_json, messages_to_json
from toolkit.errors import DataError
from toolkit.files import atomic_writer
from toolkit.untrusted import VOCABULARY_BYTES, UnfitError, parse_json, read_bytes


def write_conversation(path: str | os.PathLike[str], messages: Sequence[Message]) -> None:
    """Write a conversation, whole or not at all.  Raises DataError where that fails, and for one without messages."""
    check_conversation(messages, "the conversation")
    line = json.dumps({"messages": messages_to_json(messages)}, ensure_ascii=False)
    with atomic_writer(path) as file:
        file.write(f"{line}\n".encode())


def read_conversation(path: str | os.PathLike[str]) -> list[Message]:
    """The conversation of a file.  Raises DataError for a file that is missing or holds something else."""
    try:
        value = parse_json(read_bytes(path, VOCABULARY_BYTES).removeprefix(codecs.BOM_UTF8))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnfitError as error:
        raise DataError(
            f"{path} is damaged, or is not the JSON of one conversation: give a file that was saved"
        ) from error
    if not isinstance(value, dict) or "messages" not in value:
        raise DataError(f'{path} is no conversation: it must hold {{"messages": […]}}')
    return messages_from_json(value["messages"], str(path))
