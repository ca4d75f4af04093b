"""The file format of fleet.yaml: pools, their replicas' lives, the router and its clients."""

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
    """Phases of a start, one after the other."""

    boot_s: NonNegative = key("Of the node", "s", default=0.0, example=60)
    image_s: NonNegative = key("Pulled and unpacked", "s", default=0.0, example=30)
    load_s: NonNegative = key("Weights", "s", default=0.0, example=20)
    compile_s: NonNegative = key("Compiled and captured", "s", default=0.0, example=40)
    warmup_s: NonNegative = key("First requests", "s", default=0.0, example=5)


class HoursSpec(Strict):
    """Hours at which a pool keeps more replicas."""

    from_hour: Hour = key("From this hour on", example=8)
    to_hour: Hour = key("Up to this hour", example=20)
    min_replicas: CountOrZero = key("So many are kept", example=4)
    days: Annotated[list[Day], Field(min_length=1, max_length=7)] = key(
        "0 is Monday", default=[0, 1, 2, 3, 4, 5, 6]
    )


class AutoscalingSpec(Strict):
    """When the pool grows and shrinks."""

    metric: Literal["concurrency", "queue"] = key(
        "What is compared with the target: all requests, or those that wait", default="concurrency"
    )
    target_requests: Positive = key("Per replica", "requests", example=40)
    interval_s: Positive = key("How often it looks", "s", default=15.0)
    tolerance_frac: Frac = key("Of the target within which nothing changes", default=0.1)
    up_cooldown_s: NonNegative = key("Between two growths", "s", default=0.0)
    down_cooldown_s: NonNegative = key("Between two shrinkings", "s", default=0.0)
    down_window_s: NonNegative = key("It shrinks to the most wanted within", "s", default=300.0)
    hours: list[HoursSpec] = key("Floors by the hour", default=[])


class OutageSpec(Strict):
    """One replica is gone."""

    at_s: NonNegative = key("From this instant on", "s", example=600)
    replica: CountOrZero = key("Of the pool, from 0", example=0)
    lasts_s: NonNegative = key("How long", "s", example=300)


class FailuresSpec(Strict):
    """Replicas that fail."""

    mtbf_h: Positive | None = optional("Mean time between failures of one replica", "h")
    mttr_min: NonNegative | None = optional("Mean time to repair; left out: never", "min")
    repair: Literal["exponential", "fixed"] = key("How repairs are drawn", default="exponential")
    outages: list[OutageSpec] = key("At given instants", default=[])
    is_paid: bool = key("Failed replicas are paid for", default=True)


class SpotSpec(Strict):
    """Machines that their owner takes back."""

    mean_h: Positive = key("Between reclaims of one replica", "h", example=8)
    notice_s: NonNegative = key("From the notice to the end", "s", default=30.0)
    away_min: NonNegative = key("Until another machine is to be had", "min", default=10.0)


class RestartsSpec(Strict):
    """Rolling restarts."""

    first_s: NonNegative = key("The first roll", "s", example=3600)
    every_h: Positive | None = optional("Between rolls; left out: once", "h")
    max_unavailable: Count = key("Replicas at a time", default=1)


class AdmissionSpec(Strict):
    """How much a pool takes."""

    max_outstanding: Count | None = optional("Of one replica; further ones wait", "requests")
    max_queued: CountOrZero | None = optional(
        "Before the pool; further ones are refused", "requests"
    )


class LoraSpec(Strict):
    """Adapters on one base model, each as likely as the other."""

    rank: Count = key("Of each adapter", example=16)
    adapters: Count = key("In rotation, all of them in memory", default=1, example=8)
    share_frac: Frac = key("Of the pool's requests that ask for one", default=1.0)


class PoolSpec(Strict):
    """Equal replicas."""

    name: Text = key("A name of your own", example="h100")
    model: Text | None = optional("Left out: --model")
    on: Text | None = optional("Accelerator of one replica; left out: --on")
    tp: Count | None = optional("Tensor parallel of one replica")
    ep: Count = key("Devices that the experts are dealt to", default=1)
    lora: LoraSpec | None = optional("Adapters that its requests ask for; left out: none")
    replicas: CountOrZero = key("Ready at the first request", example=4)
    min_replicas: CountOrZero | None = optional("With autoscaling")
    max_replicas: Count | None = optional("With autoscaling")
    start: StartSpec | None = optional("Phases of a start; left out: predicted")
    admission: AdmissionSpec | None = optional("How much it takes; left out: everything")
    autoscaling: AutoscalingSpec | None = optional("Left out: the size stays")
    failures: FailuresSpec | None = optional("Left out: none")
    spot: SpotSpec | None = optional("Left out: none")
    restarts: RestartsSpec | None = optional("Left out: none")
    drain_s: NonNegative | None = optional("For a leaving replica; left out: all it takes", "s")


class ShareSpec(Strict):
    """A pool that serves a service."""

    pool: Text = key("Its name", example="h100")
    weight: Positive = key("Of its share, or of the strength of its replicas", default=1.0)
    spill_requests: Positive = key("Per replica, at which the next is asked", default=8.0)


class ServiceSpec(Strict):
    """What requests ask for."""

    name: Text = key("A name of your own", example="chat")
    share_frac: Frac | None = optional("Of the requests; left out: equal shares", example=0.7)
    pools: Annotated[list[ShareSpec], Field(min_length=1)] = key("Who serves it")
    decode_pools: list[ShareSpec] = key("Who writes the answers, if others do", default=[])


class RouterSpec(Strict):
    """Which pool, and which replica."""

    rule: Literal[
        "round_robin", "least_outstanding", "power_of_two", "prefix_affinity", "session"
    ] = key("Which replica", default="least_outstanding")
    pool_rule: Literal["load", "share", "order"] = key("Which pool", default="load")
    guard_requests: NonNegative = key("Affinity gives way at so many more", default=32.0)
    guard_ratio: NonNegative = key("And at such a ratio more", default=1.0)
    max_resends: CountOrZero = key("Of a request whose replica died", default=3)


class ClientsSpec(Strict):
    """Patience and persistence."""

    timeout_s: Positive | None = optional("Left out: endless patience", "s")
    timeout_of: Literal["answer", "first_token"] = key("What they wait for", default="answer")
    max_retries: CountOrZero = key("After a refusal or a timeout", default=0)
    backoff_s: NonNegative = key("Before the first retry; doubles", "s", default=1.0)
    max_backoff_s: NonNegative = key("The longest pause", "s", default=60.0)


class HandoverSpec(Strict):
    """How keys and values travel from prefill to decode pools."""

    link_gb_per_s: Positive = key("Of one replica", "GB/s", example=50)
    latency_ms: NonNegative = key("Of each transfer", "ms", default=0.0)


class FleetSpec(Strict):
    """A fleet that lives."""

    pools: Annotated[list[PoolSpec], Field(min_length=1, max_length=100)] = key("Its replicas")
    services: list[ServiceSpec] = key("Left out: all pools serve all requests", default=[])
    router: RouterSpec = key("Who goes where", default=RouterSpec())
    clients: ClientsSpec = key("Who asks", default=ClientsSpec())
    handover: HandoverSpec | None = optional("Between prefill and decode pools")
    first_hour: Annotated[int, Field(ge=0, le=167)] = key("Of the week, at the start", default=0)
