"""Training of image networks on every kind of server: the time of a batch, and its gradients.

The time of a batch on one accelerator is that of `predict-network --train`; more of them are
data-parallel ranks whose gradients are reduced beside the backward pass, as `scale` counts them.
"""

from collections.abc import Iterator
from functools import cache
from math import exp, inf, log
from statistics import NormalDist

from gpuplan.candidates.prune import rejection
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.model.other import NetworkForecast
from gpuplan.domain.plan.candidate import Candidate, Rejection, RunShape, RunSteps
from gpuplan.domain.plan.sizing import SizedJob, Sizing
from gpuplan.domain.provenance import assume
from gpuplan.domain.ranges import Range
from gpuplan.domain.requests.requests import NetworkRequest
from gpuplan.domain.scenario.workload import Training
from gpuplan.domain.training.setup import ParallelLayout, StateBytes, TrainingSetup
from gpuplan.errors import PlannerError
from gpuplan.performance.training.run import GivenStep, given_step
from gpuplan.studies.market.ranks import RentedServer
from gpuplan.studies.measured.training import fabric_of
from gpuplan.studies.networks.predict import predict_network
from gpuplan.studies.sizing.task import SizingTask, estimate_of
from gpuplan.studies.sizing.training.counts import CountSearch, RunCount
from gpuplan.studies.training.interruptions import Interruptions
from gpuplan.studies.training.shapes import ServerKind, Trial

BATCHES = (256, 128, 64, 32, 16, 8)
MOST_SAMPLES = 8192  # of one update: beyond, accuracy falls [Goyal2017]
BACKWARD = 3.0  # of training over the forward pass
STATE_BYTES = 16.0  # per parameter: weights, gradients, moments and their 32-bit copy
KEPT_FRAC = 0.8  # Assumption: of the memory, for states and activations
Z_80 = NormalDist().inv_cdf(0.9)


class ImageRun:
    """One run on one kind of server, number by number."""

    def __init__(self, task: SizingTask, server: RentedServer, card: Accelerator) -> None:
        work = task.workload.work
        assert isinstance(work, Training)
        self.task, self.work, self.card = task, work, card
        self.node = server.node
        self.server = ServerKind(
            accelerator=card, n_per_node=self.node.n_accelerators, fabric=self.node.fabric
        )
        self.n_samples = (work.n_samples or work.n_tokens or 0.0) * work.n_epochs
        n_params = float(task.model.n_params)
        self.stops = Interruptions(work.checkpoint, n_params, work.accelerator_mtbf_s)
        requested = task.context.options.min_probability_frac
        self.z = NormalDist().inv_cdf(requested) if requested and work.deadline_s else 0.0
        self.forecast = cache(self._forecast)

    def _forecast(self, batch: int) -> NetworkForecast:
        ref = self.task.workload.model
        name = ref.name if ref and ref.name else self.task.model.name
        request = NetworkRequest(batch=batch, is_training=True)
        return predict_network(name, str(self.card.id), request)

    def layouts(self, n: int) -> tuple[Trial, ...]:
        """Data-parallel ranks with the largest batch that fits; none where not even a small one."""
        n_params = float(self.task.model.n_params)
        room = KEPT_FRAC * self.card.memory.visible_bytes - STATE_BYTES * n_params
        for batch in BATCHES:
            found = self.forecast(batch)
            taken = found.work.activation_bytes if found.work else inf
            if taken <= room and n * batch <= MOST_SAMPLES:
                return (self._trial(n, batch, found.batch_s.value),)
        return ()

    def resized(self, like: Trial, n: int) -> tuple[Trial, ...]:
        """The same on another number."""
        del like
        return self.layouts(n)

    def _trial(self, n: int, batch: int, compute_s: float) -> Trial:
        layout = ParallelLayout(dp=n)
        node = self.node
        fabric = fabric_of(self.card, stated=node.fabric, n_node=node.n_accelerators)
        given = GivenStep(
            compute_s=compute_s, n_params=float(self.task.model.n_params), n_micro_batches=1
        )
        step_s = given_step(given, layout, fabric).step_s if n > 1 else compute_s
        setup = TrainingSetup(
            task="full", states=StateBytes(), micro_batch=batch, sequence_tokens=1
        )
        return Trial(layout, setup, step_s)

    def run_s(self, trial: Trial) -> Range:
        """The run without stops; its range is that of the batch."""
        batch = self.forecast(trial.setup.micro_batch).batch_s
        mid = self.n_samples * trial.s_per_sample
        return Range(
            low=mid * batch.low / batch.value, mid=mid, high=mid * batch.high / batch.value
        )

    def wall(self, n: int, trial: Trial) -> Range:
        """The run with failures and checkpoints."""
        work, useful = self.run_s(trial), self.stops.useful_frac(n)
        ends = ((work.low, useful.high), (work.mid, useful.mid), (work.high, useful.low))
        low, mid, high = (s / share if share > 0 else inf for s, share in ends)
        return Range(low=low, mid=mid, high=high)

    def wall_s(self, n: int, trial: Trial) -> float:
        """What the run takes at most, with the probability that is asked for."""
        found = self.wall(n, trial)
        return found.mid * exp(self.z * log(found.high / found.low) / (2 * Z_80))

    def sized(self, candidate: Candidate, n_most: int | None) -> SizedJob | Rejection:
        """The fewest that end in time, or one server where there is no deadline."""
        node = self.node.n_accelerators
        most = None if n_most is None else n_most * node
        counts = CountSearch(self, self.wall_s, n_least=1.0, n_most=most)
        deadline_s = self.work.deadline_s
        found = counts.first() if deadline_s is None else counts.fewest(deadline_s)
        if found is None:
            fix = "more time, or servers whose network is stated"
            return rejection(candidate, "deadline", "no number of them meets the deadline", fix)
        return self._job(candidate, found)

    def _job(self, candidate: Candidate, found: RunCount) -> SizedJob:
        n, trial = found.n, found.trial
        batch = self.forecast(trial.setup.micro_batch)
        tier, run = batch.batch_s.tier, self.run_s(trial)
        each = batch.work.flop / batch.batch if batch.work else 0.0
        return SizedJob(
            candidate=Candidate(
                workload=candidate.workload,
                accelerator=candidate.accelerator,
                layout=ServingLayout(dp=n),
                precision=candidate.precision,
                run=self._shape(trial),
            ),
            method="analytic",
            n_accelerators=n,
            n_accelerators_per_node=min(n, self.node.n_accelerators),
            n_slow_end=None,
            flop=BACKWARD * each * self.n_samples,
            accelerator_s=estimate_of(run.times(n), tier),
            wall_s=estimate_of(self.wall(n, trial), tier),
            goodput=self.stops.goodput(n),
            power_w=None,
            remarks=tuple(self._remarks(trial)),
        )

    def _shape(self, trial: Trial) -> RunShape:
        steps = RunSteps(
            micro_batch=trial.setup.micro_batch,
            global_batch=trial.n_samples,
            recompute="none",
            fabric=self.node.fabric,
        )
        n = self.node.n_accelerators
        return RunShape(sharding="none", framework="pytorch", steps=steps, n_per_node=n)

    def _remarks(self, trial: Trial) -> Iterator[str]:
        batch = self.forecast(trial.setup.micro_batch)
        rate = trial.n_samples / trial.step_s
        yield (
            f"{self.n_samples:,.0f} images: batches of {batch.batch} in {batch.batch_s.value:.3g} "
            f"s on each, {trial.step_s:.3g} s with the gradients of {trial.layout.dp}: "
            f"{rate:,.0f} images/s, which storage and decoding have to deliver"
        )


def image_training_sizes(task: SizingTask) -> Sizing:
    """The run on every accelerator that may carry it, or why it may not."""
    found, rejected = task.on_each_accelerator(
        "fp16", lambda candidate, card: _on_servers(task, candidate, card)
    )
    work = task.workload.work
    assert isinstance(work, Training)
    n_params = float(task.model.n_params)
    stops = Interruptions(work.checkpoint, n_params, work.accelerator_mtbf_s)
    why = "the usual mixed precision; time is that of predict-network --train"
    notes = assume("training of images", "data parallel, 16 bits", why, "gpuplan predict-network")
    return Sizing(
        workload=task.workload.name,
        demand=task.demand,
        jobs=tuple(job for each in found for job in each),
        rejected=rejected,
        assumptions=(*task.policy_assumptions, notes, *stops.assumptions),
    )


def _on_servers(
    task: SizingTask, candidate: Candidate, card: Accelerator
) -> list[SizedJob] | Rejection:
    """The run on each kind of server with this accelerator; the first reason where on none."""
    if card.is_cpu or "fp16" not in card.peak_flop_per_s:
        return rejection(candidate, "precision", f"{card.name} does not train", "use a GPU")
    found = [
        _on_server(task, candidate, card, server)
        for server in task.context.servers
        if server.node.accelerator == str(card.id)
    ]
    jobs = [each for each in found if isinstance(each, SizedJob)]
    reasons = [each for each in found if isinstance(each, Rejection)]
    none = rejection(candidate, "policy", "no price is known", "give prices.offers")
    return jobs or next(iter(reasons), none)


def _on_server(
    task: SizingTask, candidate: Candidate, card: Accelerator, server: RentedServer
) -> SizedJob | Rejection:
    try:
        return ImageRun(task, server, card).sized(candidate, server.n_most)
    except PlannerError as error:
        return rejection(candidate, "software", str(error), "name another network")
