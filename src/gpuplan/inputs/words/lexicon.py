"""Who knows names: what a description needs of the catalog, handed in from above."""

from collections.abc import Callable
from typing import NamedTuple

from gpuplan.domain.model.network import ModelKind


class NamedModel(NamedTuple):
    """A model as the catalog knows it."""

    name: str  # to write into the scenario
    kind: ModelKind
    why: str = ""  # it was chosen, where the words do not name it whole
    max_context_tokens: int | None = None

    @property
    def is_reranker(self) -> bool:
        """Whether it scores pairs of query and passage."""
        return "rerank" in self.name.lower() or "ms-marco" in self.name.lower()


class Lexicon(NamedTuple):
    """Names to what they mean; None where a text is no such name."""

    model: Callable[[str], NamedModel | None]
    card: Callable[[str], str | None]
    cloud: Callable[[str], str | None]
    place: Callable[[str], str | None]
    nearest_models: Callable[[str], str]  # a sentence
