"""Any published configuration to the network that it describes."""

from collections.abc import Mapping

from gpuplan.catalog.architectures.decoder import embedding, text_stack
from gpuplan.catalog.architectures.fields import Fields, Notes, class_defaults
from gpuplan.catalog.architectures.names import is_named_tied, named_type
from gpuplan.catalog.architectures.quantization import read_checkpoint
from gpuplan.catalog.architectures.shape import read_shape
from gpuplan.domain.model import Model

TEXT_PARTS = ("text_config", "llm_config", "language_config")


def read_model(config: Mapping[str, object], *, name: str, source: str = "") -> Model:
    """The network that a `config.json` describes."""
    notes = Notes(name)
    top = _top(config, notes, name)
    text = top.child(*TEXT_PARTS) or top
    model_type = text.text("model_type") or top.text("model_type")
    shape = read_shape(text, model_type)
    if not shape.family.is_known:
        notes.assume("architecture", "Llama-like decoder", f"unknown model_type {model_type!r}")
    model = Model(
        name=name,
        kind="decoder",
        architecture=model_type,
        embedding=embedding(shape, is_tied=tied(top, text, name)),
        stacks=(text_stack(shape),),
        max_context_tokens=shape.max_context,
        checkpoint=read_checkpoint(top, text, n_layers=shape.n_layers),
        assumptions=tuple(notes.assumptions),
        source=source,
    )
    notes.raise_problems()
    return model


def _top(config: Mapping[str, object], notes: Notes, name: str) -> Fields:
    model_type = config.get("model_type")
    if isinstance(model_type, str) and not model_type.startswith("("):
        return Fields(config, notes, defaults=class_defaults(model_type))
    plain = Fields({k: v for k, v in config.items() if k != "model_type"}, notes)
    kind = named_type(plain, name)
    usual = {k: v for k, v in class_defaults(kind).items() if k != "tie_word_embeddings"}
    return Fields({**plain.values, "model_type": kind}, notes, defaults=usual)


def tied(top: Fields, text: Fields, name: str) -> bool:
    """Whether the head shares the input table: what is said, else what the type of model does."""
    for part in (top, text):
        if part.given("tie_word_embeddings"):
            return part.flag("tie_word_embeddings")
    for part in (top, text):
        if part.defaults.get("tie_word_embeddings") is not None:
            return part.flag("tie_word_embeddings")
    is_tied = is_named_tied(name)
    told = "tied to the input" if is_tied else "separate"
    top.notes.assume("output table", told, "the configuration does not say; by its name")
    return is_tied
