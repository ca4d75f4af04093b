"""What became of jobs on a simulated cluster."""

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcomes:
    """Every job of the stream, in its order; NaN where it never started or ended."""

    start_s: Floats  # first start
    end_s: Floats
    n_preempted: Ints
    n_failed: Ints  # stopped by the failure of a node
    held_accelerator_s: Floats  # GPU time that was allocated to it
    lost_accelerator_s: Floats  # of it: work done again, and pauses of restarts
    group: Ints  # of nodes; -1: never started, -2: in the cloud
    node: Ints  # first node of the last run; -1: none


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTimeline:
    """What GPUs and the queue did in bins of equal length: means over each bin."""

    bin_s: float
    batch: Floats  # GPUs that jobs hold, and so on
    service: Floats
    down: Floats
    idle: Floats  # free, nobody waits
    quota_blocked: Floats  # free, the first blocked job is over its team's quota
    too_few: Floats  # free, fewer than the first blocked job needs
    fragmented: Floats  # free and enough, but on the wrong nodes
    queued_jobs: Floats
    queued_accelerators: Floats
    cloud: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRuns:
    """Runs of jobs from a start to a stop, a row for each node; as many as were asked for."""

    start_s: Floats
    end_s: Floats
    job: Ints  # beyond the stream: replicas of services
    node: Ints  # -1: in the cloud
    n_accelerators: Floats  # on this node
    ending: Ints  # 0 finished, 1 preempted, 2 failed, 3 resized
    n_total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOutcome:
    """A run: jobs, timeline, and how the services fared."""

    jobs: JobOutcomes
    timeline: ClusterTimeline
    runs: JobRuns
    service_short_accelerator_s: float  # reserved by services and not delivered
    service_accelerator_s: float  # reserved
    end_s: float
    n_unfit: int  # jobs that no group of nodes could ever hold
    wall_s: float
