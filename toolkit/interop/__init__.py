"""Weights and tokenizers of other libraries, in and out: Hugging Face's transformers, and CTranslate2."""

from toolkit.interop.exchange import Exchanged, export_model, import_model
from toolkit.interop.hugging_face import read_hugging_face, write_hugging_face

__all__ = ["Exchanged", "export_model", "import_model", "read_hugging_face", "write_hugging_face"]
