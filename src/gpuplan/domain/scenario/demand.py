"""What is asked of the hardware: arrivals, the shape of a request, limits, growth."""

from typing import Literal

from gpuplan.domain.inference.serving import USUAL_RANK, LoraUse
from gpuplan.domain.noun import dataclass
from gpuplan.domain.ranges import Range

# near: within a tenth of the mean, where one figure is all that is known.
LengthShape = Literal["fixed", "near", "lognormal", "exponential", "uniform"]
LatencyMetric = Literal["ttft", "tpot", "itl", "e2e"]
Statistic = Literal["mean", "p50", "p95", "p99"]
USUAL_TOKEN_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLengths:
    """How long prompts or answers are; what the user did not say is None."""

    shape: LengthShape
    mean_tokens: float
    p50_tokens: float | None = None
    p95_tokens: float | None = None
    p99_tokens: float | None = None
    max_tokens: float | None = None
    spread_ratio: float | None = None  # standard deviation over mean


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaShape:
    """Sound, images and clips of one request."""

    audio_s: float | None = None  # of one request to a speech model
    image_width_px: int | None = None
    image_height_px: int | None = None
    n_steps: int | None = None  # of denoising
    n_frames: int | None = None  # of a clip

    @property
    def item(self) -> str:
        """What a batch of such requests is counted in."""
        if self.n_frames or self.image_width_px:
            return "video clips" if self.n_frames else "images"
        return "audio segments" if self.audio_s else "documents"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestShape:
    """What one request looks like to the engine."""

    input: TokenLengths
    output: TokenLengths
    prefix_hit_frac: Range  # of input tokens found in the cache: saves prefill, not residency
    n_turns: float  # requests of one conversation
    think_s: float | None = None  # pause of the user between turns
    max_tokens: int | None = None  # of the answer, as asked for; None: what it gets
    media: MediaShape = MediaShape()
    n_texts: int | None = None  # that one request to an encoder holds: passages to rerank
    n_adapters: int | None = None  # LoRA adapters, each asked for as often; None: none
    lora_rank: int | None = None

    @property
    def adapters(self) -> LoraUse | None:
        """The LoRA adapters that requests ask for."""
        if self.n_adapters is None:
            return None
        return LoraUse(rank=self.lora_rank or USUAL_RANK, n_adapters=self.n_adapters)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStep:
    """One step of a load-duration curve: at least this load, for this long in each week."""

    held_s: float  # of the 604,800 seconds of a week
    requests_per_s: float | None = None
    n_accelerators: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """When requests come. A rate is None where a trace or a concurrency stands in its place."""

    peak_requests_per_s: float | None
    mean_requests_per_s: float | None
    burstiness_ratio: float  # deviation over mean of the gaps between arrivals; 1 is Poisson
    n_users: float | None = None
    n_concurrent: float | None = None  # clients of a closed loop: each asks when it is answered
    hourly_profile: tuple[float, ...] = ()  # relative load: 24 hours of a day or 168 of a week
    steps: tuple[LoadStep, ...] = ()  # rising load, falling duration
    trace: str | None = None  # file


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyLimit:
    """A promise about one latency.

    ttft: arrival to first token. tpot: mean gap between the tokens of one answer, the first left
    out. itl: any single gap between two tokens. e2e: arrival to last token.
    """

    metric: LatencyMetric
    statistic: Statistic
    limit_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """What the service promises."""

    limits: tuple[LatencyLimit, ...]
    availability_frac: float | None = None

    def limit_s(self, metric: LatencyMetric, statistic: Statistic) -> float | None:
        """The promised latency, or None where nothing is promised."""
        for limit in self.limits:
            if (limit.metric, limit.statistic) == (metric, statistic):
                return limit.limit_s
        return None

    def response_s(self, output_tokens: float) -> float:
        """End-to-end latency of a request that just meets every SLO.

        Assumption: a token every 50 ms where no SLO says how fast a response comes.
        """
        least = {
            metric: min((x.limit_s for x in self.limits if x.metric == metric), default=None)
            for metric in ("ttft", "tpot", "itl", "e2e")
        }
        if least["e2e"] is not None:
            return least["e2e"]
        token_s = least["tpot"] or least["itl"] or USUAL_TOKEN_S
        return (least["ttft"] or 0.0) + max(1.0, output_tokens) * token_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How demand moves, and how fast hardware can follow."""

    per_month_frac: Range  # compound
    monthly_profile: tuple[float, ...] = ()  # relative load of the 12 months of a year
    lead_time_s: Range | None = None  # from order to service
    trigger_utilization_frac: float | None = None  # order when the peak reaches this
    target_utilization_frac: float | None = None  # size new capacity for this at the peak
