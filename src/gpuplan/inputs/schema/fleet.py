"""The file format of fleet.yaml: pools, autoscaling, failures, router, clients."""

from typing import Annotated, Literal

from pydantic import Field

from gpuplan.inputs.schema.keys import (
    Count,
    CountOrZero,
    Frac,
    NonNegative,
    Positive,
    Strict,
    Text,
    key,
    optional,
)

Hour = Annotated[int, Field(ge=0, le=24)]
Day = Annotated[int, Field(ge=0, le=6)]


class StartSpec(Strict):
    """Phases of a cold start, one after the other."""

    boot_s: NonNegative = key("Boot of the node", default=0.0, example=60)
    image_s: NonNegative = key("Pull and unpacking of the image", default=0.0, example=30)
    load_s: NonNegative = key("Load of the weights", default=0.0, example=20)
    compile_s: NonNegative = key("Compilation and CUDA graph capture", default=0.0, example=40)
    warmup_s: NonNegative = key("Warm-up requests", default=0.0, example=5)


class HoursSpec(Strict):
    """Hours in which a pool has a higher minimum of replicas."""

    from_hour: Hour = key("First hour", example=8)
    to_hour: Hour = key("Hour at which it ends", example=20)
    min_replicas: CountOrZero = key("Minimum replicas in these hours", to="n_least", example=4)
    days: Annotated[list[Day], Field(min_length=1, max_length=7)] = key(
        "Days of the week; 0 is Monday", "weekday", default=[0, 1, 2, 3, 4, 5, 6]
    )


class AutoscalingSpec(Strict):
    """When the pool scales up and down."""

    metric: Literal["concurrency", "queue"] = key(
        "Metric compared with the target: all requests in flight, or queued ones",
        default="concurrency",
    )
    target_requests: Positive = key("Target per replica", example=40)
    interval_s: Positive = key("Interval between two evaluations", default=15.0)
    tolerance_frac: Frac = key(
        "Tolerance around the target within which nothing changes", default=0.1
    )
    up_cooldown_s: NonNegative = key("Cooldown between two scale-ups", default=0.0)
    down_cooldown_s: NonNegative = key("Cooldown between two scale-downs", default=0.0)
    down_window_s: NonNegative = key(
        "Stabilization window: scales down to the highest recommendation within it", default=300.0
    )
    hours: list[HoursSpec] = key("Scheduled minimums by the hour", to="floors", default=[])


class OutageSpec(Strict):
    """An outage of one replica."""

    at_s: NonNegative = key("Start of the outage", example=600)
    replica: CountOrZero = key("Replica of the pool, counted from 0", example=0)
    lasts_s: NonNegative = key("Duration of the outage", example=300)


class FailuresSpec(Strict):
    """Random and scheduled failures of replicas."""

    mtbf_h: Positive | None = optional("Mean time between failures of one replica")
    mttr_min: NonNegative | None = optional("Mean time to repair; default: never repaired")
    repair: Literal["exponential", "fixed"] = key(
        "Distribution of repair times",
        to="is_fixed_repair",
        means={"exponential": False, "fixed": True},
        default="exponential",
    )
    outages: list[OutageSpec] = key("Outages at given times", default=[])
    is_paid: bool = key("Whether failed replicas are paid for", default=True)


class SpotSpec(Strict):
    """Spot capacity, which the cloud reclaims."""

    mean_h: Positive = key("Mean time between reclaims of one replica", example=8)
    notice_s: NonNegative = key("Notice before the node is reclaimed", default=30.0)
    away_min: NonNegative = key("Time until another node is available", default=10.0)


class RestartsSpec(Strict):
    """Rolling restarts of the pool."""

    first_s: NonNegative = key("Start of the first rolling restart", example=3600)
    every_h: Positive | None = optional("Interval between rolling restarts; default: once")
    max_unavailable: Count = key("Replicas restarted at a time", "replicas", default=1)


class AdmissionSpec(Strict):
    """Admission control of a pool."""

    max_outstanding: Count | None = optional(
        "Maximum outstanding requests of one replica; further ones are queued", "requests"
    )
    max_queued: CountOrZero | None = optional(
        "Maximum queue length of the pool; further requests are refused", "requests", to="max_held"
    )


class LoraSpec(Strict):
    """LoRA adapters on one base model, each requested equally often."""

    rank: Count = key("Rank of each LoRA adapter", example=16)
    adapters: Count = key("LoRA adapters in rotation, all of them in memory", default=1, example=8)
    share_frac: Frac = key(
        "Share of the pool's requests that use a LoRA adapter", to="request_frac", default=1.0
    )


class PoolSpec(Strict):
    """A pool of equal replicas."""

    name: Text = key("Name of the pool", example="h100")
    model: Text | None = optional("Model; default: --model")
    on: Text | None = optional("Accelerator of one replica; default: --on")
    tp: Count | None = optional("Tensor-parallel size of one replica (TP)", to="replica.tp")
    ep: Count = key("Expert-parallel size of one replica (EP)", to="replica.ep", default=1)
    lora: LoraSpec | None = optional(
        "LoRA adapters that requests use; default: none", to="replica.adapters"
    )
    replicas: CountOrZero = key("Replicas ready at the first request", to="size.n_first", example=4)
    min_replicas: CountOrZero | None = optional(
        "Minimum replicas under autoscaling", to="size.n_least"
    )
    max_replicas: Count | None = optional("Maximum replicas under autoscaling", to="size.n_most")
    start: StartSpec | None = optional("Phases of a cold start; default: predicted")
    admission: AdmissionSpec | None = optional("Admission control; default: no limits")
    autoscaling: AutoscalingSpec | None = optional(
        "Autoscaling; default: a fixed number of replicas", to="scaler"
    )
    failures: FailuresSpec | None = optional("Failures of replicas; default: none")
    spot: SpotSpec | None = optional("Spot reclaims; default: none")
    restarts: RestartsSpec | None = optional("Rolling restarts; default: none")
    drain_s: NonNegative | None = optional(
        "Time limit to drain a replica; default: as long as it takes"
    )


class ShareSpec(Strict):
    """A pool that serves a service."""

    pool: Text = key("Name of the pool", example="h100")
    weight: Positive = key("Weight of the pool among those of the service", default=1.0)
    spill_requests: Positive = key(
        "Outstanding requests per replica at which traffic spills to the next pool", default=8.0
    )


class ServiceSpec(Strict):
    """A service: a model or LoRA adapter that requests ask for."""

    name: Text = key("Name of the service", example="chat")
    share_frac: Frac | None = optional(
        "Share of the requests; default: equal shares", to="", example=0.7
    )
    pools: Annotated[list[ShareSpec], Field(min_length=1)] = key("Pools that serve it")
    decode_pools: list[ShareSpec] = key(
        "Decode pools, under prefill/decode disaggregation", default=[]
    )


class RouterSpec(Strict):
    """How the router chooses a pool and a replica."""

    rule: Literal[
        "round_robin", "least_outstanding", "power_of_two", "prefix_affinity", "session"
    ] = key("Rule that chooses the replica", default="least_outstanding")
    pool_rule: Literal["load", "share", "order"] = key("Rule that chooses the pool", default="load")
    guard_requests: NonNegative = key(
        "Affinity yields where a replica has this many more outstanding requests than the least",
        default=32.0,
    )
    guard_ratio: NonNegative = key(
        "Affinity yields where, besides, it has more by this ratio", "ratio", default=1.0
    )
    max_resends: CountOrZero = key("Maximum resends of a request whose replica failed", default=3)


class ClientsSpec(Strict):
    """Timeouts and retries of clients."""

    timeout_s: Positive | None = optional("Client timeout; default: none")
    timeout_of: Literal["answer", "first_token"] = key(
        "What the timeout covers: the whole response, or its first token",
        to="is_first_token",
        means={"answer": False, "first_token": True},
        default="answer",
    )
    max_retries: CountOrZero = key("Maximum retries after a refusal or a timeout", default=0)
    backoff_s: NonNegative = key("Back-off before the first retry; doubles each time", default=1.0)
    max_backoff_s: NonNegative = key("Maximum back-off", default=60.0)


class KvTransferSpec(Strict):
    """KV transfer from prefill to decode pools."""

    link_gb_per_s: Positive = key("Bandwidth of one replica for KV transfer", example=50)
    latency_ms: NonNegative = key("Latency of each KV transfer", default=0.0)


class FleetSpec(Strict):
    """A fleet of pools behind a router, autoscaled or fixed."""

    pools: Annotated[list[PoolSpec], Field(min_length=1, max_length=100)] = key("Pools of replicas")
    services: list[ServiceSpec] = key("Services; default: all pools serve all requests", default=[])
    router: RouterSpec = key("Router in front of the pools", default=RouterSpec())
    clients: ClientsSpec = key("Timeouts and retries of clients", default=ClientsSpec())
    kv_transfer: KvTransferSpec | None = optional(
        "KV transfer between prefill and decode pools", to="link"
    )
    first_hour: Annotated[int, Field(ge=0, le=167)] = key(
        "Hour of the week at the first request; 0 is Monday, midnight", default=0
    )
