"""Training jobs: flop, utilization and goodput -> accelerators in whole nodes, and days."""

from math import ceil

from gpuplan.candidates.jobs import Deadline, fewest_for, part_of_node, wall_s, whole_nodes
from gpuplan.candidates.prune import rejection
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.nodes import node_sizes
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.network import Model
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import SizedJob, Sizing
from gpuplan.domain.provenance import Assumption, Estimate, assume
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.workload import Training, Workload
from gpuplan.domain.training.time import CheckpointWrites, FailureRate, Goodput
from gpuplan.errors import InputError, PlannerError, one
from gpuplan.performance.training.goodput import goodput
from gpuplan.performance.training.run import FORWARD_BACKWARD, checkpoint_bytes
from gpuplan.studies.naming import model_named
from gpuplan.studies.power.training import training_power
from gpuplan.studies.sizing.demand import training_tokens
from gpuplan.studies.sizing.task import SizingTask, estimate_of
from gpuplan.studies.training.predict import predict_training
from gpuplan.units import DAY, GB

# Assumption: what published dense runs reach where nothing is given and nothing can be predicted.
ASSUMED_MFU = Range(low=0.30, mid=0.40, high=0.50)
RESTART_S = 900.0  # Assumption: detect, replace, load, warm up
# Frozen weights need no gradients of their own: forward and the way back through them.
ADAPTER_FLOP = 4.0
# Weights, gradients, master weights and both moments [Rajbhandari2020]; adapters keep the base.
STATE_BYTES = {"pretraining": 16.0, "full": 16.0, "lora": 2.2, "qlora": 0.8}
ROOM_FRAC = 0.8  # of the memory, for states; the rest is activations and buffers
TASKS = {"pretraining": "pretrain", "full": "full", "lora": "lora", "qlora": "qlora"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a training workload asks for, whatever runs it."""

    workload: Workload
    work: Training
    n_params: float
    n_active_params: float
    model: Model | None

    @property
    def flop(self) -> float:
        """Of the model alone: recompute is no work done."""
        per_param = ADAPTER_FLOP if self.work.method in ("lora", "qlora") else FORWARD_BACKWARD
        return per_param * self.n_active_params * training_tokens(self.work)

    @property
    def states_bytes(self) -> float:
        """Weights and all that goes with them."""
        return STATE_BYTES[self.work.method] * self.n_params


def training_sizes(task: SizingTask) -> Sizing:
    """The job on every accelerator that may run it, or why it may not."""
    sizer = JobSizer(job_of(task.workload), task.catalog)
    jobs, rejected = task.on_each_accelerator("bf16", sizer.size)
    return Sizing(
        workload=task.workload.name,
        demand=task.demand,
        jobs=tuple(jobs),
        rejected=rejected,
        assumptions=(*task.policy_assumptions, *sizer.assumptions),
    )


def job_of(workload: Workload) -> Job:
    """The job with its parameters, by the name of the model or as given."""
    assert isinstance(workload.work, Training)
    ref = workload.model
    if ref is None or (ref.name is None and ref.n_params is None):
        fix = "name the model or give its parameters"
        raise one(InputError, "plan", f"{workload.name}.model", "is not known", fix)
    model = model_named(ref.name) if ref.name is not None else None
    n_params = float(model.n_params if model else ref.n_params or 0.0)
    n_active = model.n_active_params if model else ref.n_active_params
    return Job(
        workload=workload,
        work=workload.work,
        n_params=n_params,
        n_active_params=float(n_active or n_params),
        model=model,
    )


class JobSizer:
    """Sizes one job on one accelerator after another."""

    def __init__(self, job: Job, catalog: Catalog) -> None:
        self.job, self.catalog = job, catalog
        self.nodes = node_sizes(catalog)
        self._told: dict[str, Assumption] = {}
        self._given = {
            str(find_accelerator(c.accelerator, catalog).accelerator.id): c.mfu_frac
            for c in job.workload.capacities
            if c.mfu_frac is not None
        }

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What the sizes rest on."""
        return tuple(self._told.values())

    def size(self, candidate: Candidate, card: Accelerator) -> SizedJob | Rejection:
        """Accelerators for the deadline, or as few as hold the job where there is none."""
        peak = card.peak_flop_per_s.get(candidate.precision)
        if peak is None or card.is_cpu:
            has = ", ".join(sorted(card.peak_flop_per_s))
            reason = (
                f"{card.name} is a CPU: it would take years"
                if card.is_cpu
                else f"{card.name} does not compute in {candidate.precision} (has {has})"
            )
            return rejection(candidate, "precision", reason, "use another accelerator")
        mfu, tier = self.mfu(card)
        deadline_s = self.job.work.deadline_s
        n_node = self.nodes[str(card.id)]
        if deadline_s is None:
            n = whole_nodes(self.n_least(card), n_node)
            return self.at(candidate, card, n, mfu=mfu, tier=tier)
        n_found = self._fewest(card, peak * mfu.mid, deadline_s, rates=self._write(1))
        if n_found is None:
            reason = f"failures leave no progress before {deadline_s / DAY:.0f} days"
            fix = "write checkpoints faster, or give more time"
            return rejection(candidate, "deadline", reason, fix)
        return self.at(candidate, card, n_found, mfu=mfu, tier=tier)

    def n_least(self, card: Accelerator) -> int:
        """Accelerators whose memory holds the states."""
        return max(1, ceil(self.job.states_bytes / (ROOM_FRAC * card.memory.visible_bytes)))

    def _fewest(
        self, card: Accelerator, flop_per_s: float, deadline_s: float, *, rates: float | None
    ) -> int | None:
        deadline = Deadline(
            accelerator_s=self.job.flop / flop_per_s,
            deadline_s=deadline_s,
            n_per_node=self.nodes[str(card.id)],
            n_least=self.n_least(card),
            goodput_at=lambda n: self._useful(n, rates),
        )
        return part_of_node(deadline) or fewest_for(deadline)

    def at(
        self, candidate: Candidate, card: Accelerator, n: int, *, mfu: Range, tier: str = "given"
    ) -> SizedJob:
        """The job on so many accelerators."""
        peak = card.peak_flop_per_s[candidate.precision]
        work_s = Range(
            low=self.job.flop / (peak * mfu.high),
            mid=self.job.flop / (peak * mfu.mid),
            high=self.job.flop / (peak * mfu.low),
        )
        lost = self.goodput_at(n, self._write(1))
        deadline_s = self.job.work.deadline_s
        slow = None
        if deadline_s is not None:
            slow = self._fewest(card, peak * mfu.low, deadline_s, rates=self._write(0))
        return SizedJob(
            candidate=candidate,
            method="given" if tier == "given" else "analytic",
            n_accelerators=n,
            n_accelerators_per_node=min(n, self.nodes[str(card.id)]),
            n_slow_end=slow,
            flop=self.job.flop,
            accelerator_s=estimate_of(work_s, tier),
            ideal_s=work_s.mid / n,
            wall_s=self._wall(work_s, n, tier),
            goodput=lost,
            power_w=training_power(card, peak * mfu.mid, n_accelerators=n).get("power_w"),
            remarks=self._remarks(card, n, lost),
        )

    def _wall(self, work_s: Range, n: int, tier: str) -> Estimate:
        def took(seconds: float, place: int) -> float:
            return wall_s(seconds, n, lambda m: self._useful(m, self._write(place))) or float("inf")

        ends = Range(low=took(work_s.low, 2), mid=took(work_s.mid, 1), high=took(work_s.high, 0))
        return estimate_of(ends, tier)

    def mfu(self, card: Accelerator) -> tuple[Range, str]:
        """Given for this accelerator, given for the job, predicted, or assumed."""
        given = self._given.get(str(card.id)) or self.job.work.mfu_frac
        if given is not None:
            return given, "given"
        return self._predicted(card) or self._assumed_mfu()

    def _predicted(self, card: Accelerator) -> tuple[Range, str] | None:
        model = self.job.model
        if model is None:
            return None
        n = whole_nodes(self.n_least(card), self.nodes[str(card.id)])
        work = self.job.work
        columns = {
            "id": "plan",
            "model": model.name,
            "accelerator": str(card.id),
            "n_accelerators": str(n),
            "seq_len": str(work.sequence_tokens),
            "global_batch": str(max(n, 128)),
            "micro_batch": "1",
            "precision": "bf16",
            "task": TASKS[work.method],
        }
        try:
            found = predict_training(columns).mfu_frac
        except PlannerError:
            return None
        return Range(low=found.low, mid=found.value, high=found.high), found.tier

    def _assumed_mfu(self) -> tuple[Range, str]:
        self._tell(
            "MFU",
            f"{ASSUMED_MFU.mid:.0%} (30 to 50 %)",
            "what published runs of dense models reach",
            "workloads[].training.mfu_frac",
        )
        return ASSUMED_MFU, "assumed"

    def _write(self, place: int) -> float | None:
        """Rate of writing checkpoints: slow, middle or fast; None: not given."""
        plan = self.job.work.checkpoint
        given = plan.write_bytes_per_s if plan else None
        return None if given is None else (given.low, given.mid, given.high)[place]

    def goodput_at(self, n: int, write_bytes_per_s: float | None) -> Goodput | None:
        """Useful share of the clock on so many; None where checkpoints are not described."""
        work, plan = self.job.work, self.job.work.checkpoint
        if write_bytes_per_s is None:
            self._tell(
                "goodput",
                "unknown: nothing is taken off",
                "neither failures nor checkpoints are described",
                "workloads[].training.accelerator_mtbf_h, .checkpoint.write_gb_per_s",
            )
            return None
        size = (
            plan.state_bytes if plan and plan.state_bytes else checkpoint_bytes(self.job.n_params)
        )
        restart = plan.restart_s if plan else None
        if restart is None:
            self._tell(
                "restart after a failure",
                f"{RESTART_S / 60:.0f} minutes",
                "detect, replace, load, warm up",
                "workloads[].training.checkpoint.restart_min",
            )
        mtbf = None if work.accelerator_mtbf_s is None else work.accelerator_mtbf_s / n
        return goodput(
            FailureRate(mtbf_s=mtbf, restart_s=RESTART_S if restart is None else restart),
            CheckpointWrites(
                size_bytes=size,
                write_bytes_per_s=write_bytes_per_s,
                interval_s=plan.interval_s if plan else None,
            ),
        )

    def _useful(self, n: int, write_bytes_per_s: float | None) -> float | None:
        found = self.goodput_at(n, write_bytes_per_s)
        return found.goodput_frac if found else None

    def _tell(self, what: str, value: str, why: str, change: str) -> None:
        self._told.setdefault(what, assume(what, value, why, change))

    def _remarks(self, card: Accelerator, n: int, lost: Goodput | None) -> tuple[str, ...]:
        found = [f"{self.job.flop:.3g} flop of the model"]
        if n == whole_nodes(self.n_least(card), self.nodes[str(card.id)]):
            found.append(
                f"the fewest that hold {self.job.states_bytes / GB:.0f} GB of model states"
            )
        if lost and lost.goodput_frac is not None and lost.interval_s is not None:
            found.append(
                f"goodput {lost.goodput_frac:.1%}, a checkpoint every {lost.interval_s / 60:.0f} "
                f"minutes of {lost.write_s:.0f} s"
            )
        batch = self.job.work.global_batch_tokens
        if batch and n > batch / self.job.work.sequence_tokens:
            found.append(
                "less than one sequence per accelerator: model parallelism is needed as well"
            )
        return tuple(found)
