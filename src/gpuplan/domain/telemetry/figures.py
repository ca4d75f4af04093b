"""Figures beside a diagnosis: bands over time, the tail of a full pool, service and work done."""

from gpuplan.domain.columns import Floats
from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteUse:
    """Mean utilization of one minute, and its band."""

    at_s: float
    use_frac: float
    band: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A stretch in one band: edges have hysteresis, short visits to another band do not count."""

    band: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTail:
    """How waiting grows in a pool of this size, from a calm utilization to the observed one."""

    n_devices: int
    calm_frac: float
    use_frac: float
    wait_growth_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BandsOverTime:
    """Utilization minute by minute, and what a pool of this size should be held to."""

    minutes: tuple[MinuteUse, ...]
    episodes: tuple[Episode, ...]
    n_crossings: int  # from one band to another and back, before hysteresis
    suggested_low_frac: float
    suggested_high_frac: float
    tail: PoolTail | None  # None: not hot


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Requests that wait, how fast they become more, and what would clear them."""

    n_waiting_requests: int
    growth_requests_per_s: float
    served_requests_per_s: float | None
    deficit_frac: float | None  # of the demand, not served
    n_replicas_more: int | None  # so that the queue drains; None: nobody says what one serves
    replica_requests_per_s: float | None
    clear_s: float | None  # with one replica more; None: one is not enough, or not known


@dataclass(frozen=True, slots=True, kw_only=True)
class SloState:
    """How much of a target is met, how fast its error budget burns, and which phase binds."""

    limit_s: float
    attainment_frac: float
    burn_rate_ratio: float  # of the budget's own pace; above 1 it is used up early
    binding_phase: str  # queue, prefill, decode


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """Tokens that came out, and what they took."""

    output_tokens_per_s: float
    input_tokens_per_s: float
    j_per_output_token: float | None
    mfu_frac: float | None = None
    mbu_frac: float | None = None  # weights alone: a lower bound


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFlow:
    """Output tokens per second over time: written, asked for, and possible."""

    at_s: Floats
    throughput_tokens_per_s: Floats
    demand_tokens_per_s: Floats  # with the queue served at the pace of the batch
    capacity_tokens_per_s: Floats  # at full utilization; as written where none is known


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFigures:
    """What engines say of demand, targets and work; None where they say nothing."""

    backlog: Backlog | None = None
    slo: SloState | None = None
    work: WorkDone | None = None
    flow: TokenFlow | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """Work that shares devices by MIG: the smallest profile that holds each, and how many pack."""

    accelerator: str
    profile: str
    n_before: int
    n_after: int
    usd_per_month: float | None  # saved
