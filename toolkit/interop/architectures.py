"""The classes of Hugging Face's transformers whose models are exchanged, and which of them a model belongs to."""

from toolkit.errors import ModelError
from toolkit.interop.architecture import Architecture, Config
from toolkit.interop.encoder_decoders import Marian, Pegasus
from toolkit.interop.foreign_settings import ForeignSettings
from toolkit.interop.language_models import GPT2, Llama, Starcoder2

ARCHITECTURES: tuple[Architecture, ...] = (Marian(), Pegasus(), GPT2(), Llama(), Starcoder2())


def architecture_of(settings: ForeignSettings) -> Architecture:
    """The class of a model from elsewhere.  Raises ModelError for one that the toolkit has no counterpart of."""
    if settings.values.get("quantization_config") is not None:
        raise ModelError(f"{settings.path} describes quantised weights: import the model as it was before")
    name, model_type = settings.architecture, settings.values.get("model_type")
    for architecture in ARCHITECTURES:
        if name == architecture.name or (name is None and model_type == architecture.model_type):
            return architecture
    known = ", ".join(architecture.name for architecture in ARCHITECTURES)
    what = f"a {name}" if name else "a model of an unknown class"
    raise ModelError(f"{settings.path} describes {what}: this toolkit reads {known}")


def fitting_architecture(config: Config) -> Architecture:
    """The class that computes what a model of ours does.  Raises ModelError, with what each lacks, where none does."""
    reasons = []
    for architecture in ARCHITECTURES:
        if isinstance(config, architecture.config_class):
            wrong = architecture.misfits(config)
            if not wrong:
                return architecture
            reasons.append(f"{architecture.name} has no {' and no '.join(wrong)}")
    raise ModelError(f"no class of transformers computes what this model does: {'; '.join(reasons)}")
