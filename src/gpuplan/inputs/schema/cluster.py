"""The file format of cluster.yaml: nodes, teams with quotas, policy, services, failures, cloud."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from gpuplan.inputs.schema.keys import (
    Count,
    CountOrZero,
    CountPerNode,
    NonNegative,
    Positive,
    PositiveFrac,
    Ratio,
    Strict,
    Text,
    entries,
    key,
    optional,
)

Replicas = Annotated[list[CountOrZero], Field(min_length=24, max_length=168)]


class NodesSpec(Strict):
    """Nodes of one kind; each node is one NVLink domain."""

    accelerator: Text = key("GPU type, as in the catalog or your own word", example="A100-SXM-80GB")
    nodes: CountOrZero = key("Nodes of this kind; 0: only for `plan` to choose from", example=16)
    accelerators_per_node: CountPerNode = key(
        "GPUs of one node", "accelerators", to="n_accelerators_per_node", example=8
    )
    cpus: Positive | None = optional("CPUs of one node; default: never short", to="n_cpus")
    ram_gib: Positive | None = optional("Memory of one node; default: never short")
    nodes_per_rack: Count | None = optional("Nodes of one rack", "nodes", to="n_nodes_per_rack")
    racks_per_zone: Count | None = optional("Racks of one zone", "racks", to="n_racks_per_zone")
    usd_per_accelerator_h: NonNegative | None = optional(
        "Cost of one GPU-hour, for showback and `plan`; default: the catalog's cheapest in `plan`",
        "USD per hour",
        to="usd_per_accelerator_h",
    )
    speed_ratio: Positive | None = optional(
        "Speed of jobs on this kind relative to the trace's durations; default: the same"
    )
    min_nodes: CountOrZero = key(
        "Fewest nodes of this kind that `plan` may choose", "nodes", to="bounds.n_min", default=0
    )
    max_nodes: CountOrZero | None = optional(
        "Most nodes of this kind that `plan` may choose", "nodes", to="bounds.n_max"
    )


class QuotaSpec(Strict):
    """What a team may use of one GPU type (Kueue's nominalQuota, borrowingLimit, lendingLimit)."""

    accelerator: Text = key("GPU type of the cluster", example="A100-SXM-80GB")
    accelerators: NonNegative = key("Nominal quota", to="n_accelerators", example=24)
    borrow: NonNegative | None = optional("Limit of borrowing", "accelerators", to="n_borrow")
    lend: NonNegative | None = optional("Limit of lending", "accelerators", to="n_lend")


class ClusterTeamSpec(Strict):
    """A team, its quotas and its wait target."""

    name: Text = key("Name, as the trace has it", example="search")
    quotas: list[QuotaSpec] = entries("Quotas by GPU type; default: no limit")
    cohort: Text | None = optional("Teams of one cohort borrow unused quota from each other")
    share: Positive = key("Weight of fair share and DRF", to="share_ratio", default=1.0)
    wait_p90_min: NonNegative | None = optional("Wait target: 90 % of jobs start within it")


class ClusterPolicySpec(Strict):
    """Order, blocking, placement and preemption."""

    order: Literal["fifo", "priority", "shortest", "edf", "fair", "drf", "kueue"] = key(
        "Order of the queue", default="fifo"
    )
    blocking: Literal["strict", "skip", "easy", "conservative"] = key(
        "What a blocked job does to those behind it: strict FIFO, best effort, EASY or "
        "conservative backfill; best effort (skip) is the default of fair, drf and kueue",
        default="easy",
    )
    placement: Literal["pack", "spread", "scatter"] = key(
        "Placement of gangs: packed on full nodes, spread, or scattered over any free GPUs",
        default="pack",
    )
    preempts: bool = key("Whether jobs that go first preempt others", default=False)
    saves_on_preemption: bool = key(
        "Whether a preempted job writes a checkpoint in its grace period", default=True
    )
    depth: Count = key("Queued jobs that one scheduling pass looks at", "jobs", default=100)
    reclaim: Literal["never", "lower_priority", "any"] = key(
        "Kueue's reclaimWithinCohort", default="any"
    )
    within: Literal["never", "lower_priority", "lower_or_newer_equal"] = key(
        "Kueue's withinClusterQueue", default="lower_priority"
    )
    half_life_h: Positive = key("Half-life of the usage that fair share counts", default=168.0)

    @model_validator(mode="before")
    @classmethod
    def queues_of_teams_do_not_backfill(cls, given: Any) -> Any:
        """Best effort where each team has a queue of its own: Kueue's own default strategy."""
        if isinstance(given, dict) and given.get("order") in ("fair", "drf", "kueue"):
            return {"blocking": "skip", **given}
        return given


class ClusterServiceSpec(Strict):
    """An inference service that reserves GPUs by the hour."""

    name: Text = key("Name of the service", example="chat")
    team: Text = key("Team that pays for it", example="search")
    accelerator: Text = key("GPU type of the cluster", example="A100-SXM-80GB")
    accelerators_per_replica: Count = key(
        "GPUs of one replica", "accelerators", to="n_accelerators_per_replica", example=4
    )
    replicas_by_hour: Replicas = key(
        "Replicas in each hour of a day (24) or of a week from Monday (168)",
        "replicas",
        to="replicas_by_hour",
    )


class NodeFailuresSpec(Strict):
    """Failures of nodes."""

    mtbf_h: Positive = key("Mean time between failures of one node", example=2000)
    mttr_h: Positive = key("Mean time to repair", example=6)


class MaintenanceSpec(Strict):
    """A maintenance window."""

    start_h: NonNegative = key("Start, from the first submission", example=100)
    duration_h: Positive = key("Duration", example=4)
    first_node: CountOrZero = key("First node, counted from 0 over all groups", default=0)
    nodes: Count = key("Nodes that are drained", example=4)


class CloudSpec(Strict):
    """Burst of the queue to the cloud."""

    above_queued_accelerators: CountOrZero = key(
        "Jobs that find more than this queued go to the cloud", "accelerators", example=64
    )
    accelerators: Count = key("Maximum GPUs in the cloud at once", example=32)
    start_min: NonNegative = key("Cold start and staging of data", default=0.0)
    speed_ratio: Positive = key("Speed there, relative to the cluster", default=1.0)
    usd_per_accelerator_h: NonNegative | None = optional(
        "Price of one GPU-hour there", "USD per hour", to="usd_per_accelerator_h"
    )


class JobDefaultsSpec(Strict):
    """What jobs have whose trace does not say."""

    checkpoint_min: NonNegative = key("Checkpoint interval; 0: none", default=0.0)
    restart_min: NonNegative = key("Pause of a restart", default=0.0)
    limit_ratio: Ratio | None = optional(
        "Time limit over duration; default: durations are known to the scheduler"
    )


class PlanTermsSpec(Strict):
    """What `gpuplan plan` is held to, and what it may change."""

    budget_usd_per_month: Positive | None = optional("Maximum cost", "USD per month")
    policies: list[Text] = entries(
        "Policies that may be chosen beside the described one, by name (easy, fair, kueue …); "
        "left out: those that suit the file"
    )
    deadlines_met: PositiveFrac = key(
        "Least share of the jobs' deadlines that are met", to="deadlines_frac", default=1.0
    )
    keep_quotas: bool = key(
        "Whether quotas keep the described shares of the hardware", to="keeps_quotas", default=False
    )
    memory_gib: Positive | None = optional(
        "GPU memory that jobs need; default: that of the first kind, on which they ran"
    )


class ClusterSpec(Strict):
    """A shared cluster and its rules."""

    version: Literal[1] = key("Version of the file format", default=1, to="")
    name: Text = key("Name of the cluster", default="cluster")
    nodes: Annotated[list[NodesSpec], Field(min_length=1, max_length=60)] = key(
        "Groups of nodes", to="groups"
    )
    teams: list[ClusterTeamSpec] = entries("Teams; those that only the trace names have no quota")
    policy: ClusterPolicySpec = key("Scheduling policy", default=ClusterPolicySpec())
    services: list[ClusterServiceSpec] = entries("Services that reserve GPUs by the hour")
    failures: NodeFailuresSpec | None = optional("Failures of nodes; default: none")
    maintenance: list[MaintenanceSpec] = entries("Maintenance windows")
    burst: CloudSpec | None = optional("Burst to the cloud; default: none")
    plan: PlanTermsSpec = key("Terms of `gpuplan plan`", default=PlanTermsSpec())
    jobs: JobDefaultsSpec = key(
        "Checkpoints and limits of jobs", to="defaults", default=JobDefaultsSpec()
    )
