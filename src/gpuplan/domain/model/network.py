"""A network as its configuration describes it: parameters, arithmetic and memory per token."""

from collections.abc import Iterator
from typing import Literal

from gpuplan.domain.model.layers import Attention, Cache, LatentAttention, LayerGroup, Recurrence
from gpuplan.domain.model.precision import FORMATS, NumberFormat
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption

ModelKind = Literal[
    "decoder",
    "encoder",
    "encoder-decoder",
    "speech",
    "vision-language",
    "vision",
    "diffusion",
    "recommender",
]
Role = Literal["text", "encoder", "vision", "audio", "denoiser", "mtp"]
# In order of preference: a decoder before the encoder that feeds it.
MAIN_ROLES: tuple[Role, ...] = ("text", "denoiser", "encoder", "vision", "audio")
# What a checkpoint may store in a format of its own.
Part = Literal[
    "attention", "feed_forward", "experts", "shared_experts", "embedding", "head", "tower"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """Tables from tokens to vectors and back."""

    n_vocab: int
    n_input_params: int
    n_output_params: int = 0  # 0: tied to the input, or no head
    n_position_params: int = 0
    is_tied: bool = False
    n_head_matrix_params: int = 0  # what the head multiplies with, tied or not
    n_rows_per_sample: int = 0  # of a recommender: rows of its tables that one item reads

    @property
    def n_params(self) -> int:
        """All tables."""
        return self.n_input_params + self.n_output_params + self.n_position_params


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerStack:
    """Layers that a sequence passes in turn."""

    role: Role
    hidden_size: int
    groups: tuple[LayerGroup, ...]
    n_other_params: int = 0  # final norm, projector, patch embedding …

    @property
    def n_layers(self) -> int:
        """Depth."""
        return sum(group.n_layers for group in self.groups)

    @property
    def n_params(self) -> int:
        """Resident parameters."""
        return self.n_other_params + sum(group.n_params for group in self.groups)

    @property
    def n_active_params(self) -> int:
        """Parameters that one token passes."""
        return self.n_other_params + sum(group.n_active_params for group in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The precision a model is published in."""

    base: NumberFormat  # of everything not quantized
    quantized: NumberFormat | None = None
    parts: tuple[Part, ...] = ()  # what is in the quantized format
    cache: NumberFormat | None = None  # cache precision that the configuration asks for
    # Parts in a third format: 8-bit attention beside 4-bit experts.
    others: tuple[tuple[Part, NumberFormat], ...] = ()

    def format_of(self, part: Part) -> NumberFormat:
        """What this part is stored in."""
        for name, stored in self.others:
            if name == part:
                return stored
        return self.quantized if self.quantized and part in self.parts else self.base


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A network read from its configuration."""

    name: str
    kind: ModelKind
    architecture: str  # model_type of the configuration
    embedding: Embedding
    stacks: tuple[LayerStack, ...]
    max_context_tokens: int | None
    checkpoint: Checkpoint
    assumptions: tuple[Assumption, ...] = ()
    source: str = ""

    @property
    def main(self) -> LayerStack:
        """The stack that makes the output."""
        # Plain loops: layouts of training ask for it a hundred thousand times.
        for role in MAIN_ROLES:
            for stack in self.stacks:
                if stack.role == role:
                    return stack
        raise LookupError(f"{self.name} has no main stack")

    @property
    def n_params(self) -> int:
        """All parameters, towers included, multi-token-prediction layers left out."""
        return self.embedding.n_params + sum(s.n_params for s in self._without_mtp())

    @property
    def n_mtp_params(self) -> int:
        """Parameters of the multi-token-prediction layers."""
        return sum(stack.n_params for stack in self.stacks if stack.role == "mtp")

    @property
    def n_active_params(self) -> int:
        """Parameters that one token passes, both embedding tables counted."""
        return self.embedding.n_params + sum(s.n_active_params for s in self._without_mtp())

    @property
    def n_embedding_params(self) -> int:
        """Input, output and position tables."""
        return self.embedding.n_params

    @property
    def is_moe(self) -> bool:
        """Some parameters rest while others work."""
        return self.n_active_params < self.n_params

    def caches(self) -> Iterator[tuple[int, Cache]]:
        """Every cache of the main stack with the number of layers that keep it."""
        for group in self.main.groups:
            for cache in group.caches:
                yield group.n_layers, cache

    def kv_bytes_per_token(self, cache_format: NumberFormat = FORMATS["bf16"]) -> float:
        """Key-value bytes that a token adds while every window still holds it."""
        kinds = [(n, cache) for n, cache in self.caches() if cache.role == "kv"]
        return sum(n * c.elements_per_token * _element_bytes(c, cache_format) for n, c in kinds)

    def indexer_bytes_per_token(self) -> float:
        """Bytes that sparse attention's index adds per token, beside the cache itself."""
        kinds = [(n, cache) for n, cache in self.caches() if cache.role == "indexer"]
        return sum(n * c.elements_per_token * _element_bytes(c, FORMATS["fp8"]) for n, c in kinds)

    def state_bytes_per_sequence(self) -> float:
        """Recurrent state, the same at any context."""
        groups = self.main.groups
        return sum(
            g.n_layers * state.n_elements * state.element_bytes
            for g in groups
            for state in g.states
        )

    def forward_flop_per_token(self, context_tokens: float) -> float:
        """One token through the network with this many tokens before it, head included."""
        matrices = self.embedding.n_head_matrix_params + sum(
            g.n_active_matrix_params for g in self.main.groups
        )
        return 2.0 * matrices + sum(
            g.n_layers * mixing_flop_per_token(g, context_tokens) for g in self.main.groups
        )

    def prefill_flop(self, n_tokens: int) -> float:
        """A whole prompt: causal attention sees half of the square on average."""
        flop_per_token = self.forward_flop_per_token((n_tokens + 1) / 2)
        return n_tokens * flop_per_token

    def training_flop_per_token(self, sequence_tokens: int) -> float:
        """Forward once and backward twice as much, no recompute [Kaplan2020, Korthikanti2022]."""
        return 3.0 * self.forward_flop_per_token((sequence_tokens + 1) / 2)

    def _without_mtp(self) -> list[LayerStack]:
        return [stack for stack in self.stacks if stack.role != "mtp"]


def _element_bytes(cache: Cache, cache_format: NumberFormat) -> float:
    return cache.fixed_element_bytes or cache_format.stored_bytes


def mixing_flop_per_token(group: LayerGroup, context_tokens: float) -> float:
    """Attention scores and values, or the recurrence, of one token in one layer."""
    mixer = group.mixer
    if mixer is None:
        return 0.0
    if isinstance(mixer, Recurrence):
        return mixer.scan_flop_per_token
    observed = _attended_tokens(mixer, context_tokens)
    if isinstance(mixer, LatentAttention):
        width = mixer.qk_nope_dim + mixer.qk_rope_dim + mixer.v_head_dim
    else:
        width = mixer.qk_head_dim + mixer.v_head_dim
    return 2.0 * mixer.n_heads * width * observed


def _attended_tokens(mixer: Attention | LatentAttention, context_tokens: float) -> float:
    if isinstance(mixer, LatentAttention) and mixer.tokens_per_entry > 1:
        entries = context_tokens / mixer.tokens_per_entry
        chosen = entries if mixer.selected_tokens is None else min(entries, mixer.selected_tokens)
        return chosen + min(context_tokens, mixer.window_tokens or 0)
    limits = [mixer.window_tokens, mixer.selected_tokens]
    return min([context_tokens, *(limit for limit in limits if limit is not None)])
