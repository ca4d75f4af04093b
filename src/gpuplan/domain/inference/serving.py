"""How a model is laid out for inference, how the engine is set, and what memory that takes."""

from dataclasses import replace

from gpuplan.domain.model.precision import NumberFormat
from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLayout:
    """How one replica is spread over accelerators."""

    tp: int = 1  # tensor parallel
    pp: int = 1  # pipeline stages
    dp: int = 1  # attention replicas that share the experts (DP-attention)
    ep: int = 1  # expert parallelism: accelerators sharing the experts; 1 = sharded by tp
    cp: int = 1  # context parallel: copies that share each sequence's prompt and cache
    # Of one server towards the others, one direction; None: inside one server.
    network_bytes_per_s: float | None = None
    # Of prefill/decode disaggregation: engines of each role that make one replica; 0: aggregated.
    n_prefill: int = 0
    n_decode: int = 0

    @property
    def is_disaggregated(self) -> bool:
        """Whether engines that prefill hand their KV cache to engines that decode."""
        return self.n_prefill > 0

    @property
    def engine(self) -> "ServingLayout":
        """One engine of the replica: the same where prefill and decode are not apart."""
        if not self.is_disaggregated:
            return self
        return replace(self, n_prefill=0, n_decode=0, network_bytes_per_s=None)

    @property
    def n_roles(self) -> int:
        """Engines of a disaggregated replica; 1 of an aggregated one."""
        return self.n_prefill + self.n_decode or 1

    @property
    def n_joined(self) -> int:
        """Accelerators of one stage, which talk in every layer."""
        return self.tp * self.dp * self.cp

    @property
    def is_expert_parallel_over_servers(self) -> bool:
        """Whether data-parallel attention and its experts span servers, without stages."""
        return self.network_bytes_per_s is not None and self.pp == 1 and self.dp > 1

    @property
    def n_accelerators(self) -> int:
        """Accelerators of one replica."""
        return self.tp * self.pp * self.dp * self.cp * self.n_roles

    @property
    def name(self) -> str:
        """As people write it: TP2 PP2, DP8 EP8 for data-parallel attention, 1P2D TP2; TP1 alone."""
        if self.is_disaggregated:
            return f"{self.n_prefill}P{self.n_decode}D {self.engine.name}"
        sizes = {"TP": self.tp, "PP": self.pp, "DP": self.dp, "EP": self.ep, "CP": self.cp}
        return " ".join(f"{way}{n}" for way, n in sizes.items() if n > 1) or "TP1"

    @property
    def n_engines(self) -> int:
        """Batches that one replica carries at once: one a stage, one an attention replica."""
        return self.pp * self.dp * self.n_roles


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraSlots:
    """Adapters that the engine keeps room for: sized by the largest rank, not by those loaded."""

    n_slots: int
    max_rank: int


USUAL_RANK = 16  # where none is stated


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraUse:
    """Adapters that the requests ask for, each as likely as the other."""

    rank: int
    n_adapters: int = 1
    request_frac: float = 1.0  # of all requests, that ask for one
    n_slots: int | None = None  # in memory, and in one iteration; None: all of them

    @property
    def n_held(self) -> int:
        """Adapters that an engine has room for at once."""
        return self.n_adapters if self.n_slots is None else min(self.n_slots, self.n_adapters)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What of an inference engine decides its memory."""

    name: str
    memory_use_frac: float  # share of the visible memory that the engine may take
    max_sequences: int  # sequences per iteration
    max_batch_tokens: int  # tokens per iteration
    block_tokens: int  # cache is handed out in blocks of this many tokens
    sampler_bytes_per_logit: float  # peak of sampling, which every rank does on whole logits
    counts_graphs: bool  # captured graphs are taken from the engine's share, not from what is left
    lora: LoraSlots | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceLoad:
    """What has to be held at once."""

    context_tokens: int
    n_sequences: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFormats:
    """Formats in memory, which need not be those of the checkpoint."""

    base: NumberFormat
    quantized: NumberFormat | None
    parts: tuple[str, ...]  # model parts in the quantized format
    cache: NumberFormat
    others: tuple[tuple[str, NumberFormat], ...] = ()  # parts in a third format

    def format_of(self, part: str) -> NumberFormat:
        """What this part lies in."""
        for name, stored in self.others:
            if name == part:
                return stored
        return self.quantized if self.quantized and part in self.parts else self.base


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceMemory:
    """Memory of the fullest accelerator of a replica."""

    visible_bytes: float  # what a program can address on the device
    budget_bytes: float  # the engine's share of it
    weights_bytes: float
    activation_bytes: float
    graphs_bytes: float
    communication_bytes: float
    context_bytes: float  # driver and runtime
    lora_bytes: float
    cache_bytes: float  # left for the cache; negative when even the rest does not fit
    sequence_bytes: float  # cache of one sequence of the asked length, in whole blocks
    block_bytes: float  # one block over all layers with a growing cache
    needed_bytes: float  # cache that the asked load needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """One change that would make it fit, and what it would leave."""

    change: str
    how: str  # flags to type
    headroom_bytes: float
    caveat: str = ""
