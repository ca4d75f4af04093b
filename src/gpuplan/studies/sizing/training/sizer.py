"""Training runs on every kind of server that may carry them, or why they may not."""

from collections.abc import Iterator, Sequence

from gpuplan.candidates.prune import rejection
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.nodes import node_sizes
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.money.rates import NodeKind
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import SizedJob, Sizing
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range
from gpuplan.errors import PlannerError
from gpuplan.studies.market.ranks import RentedServer, with_reference_fabric
from gpuplan.studies.sizing.task import SizingTask
from gpuplan.studies.sizing.training.job import Job, job_of
from gpuplan.studies.sizing.training.run import PATIENCE_S, RunOdds, RunSizer
from gpuplan.units import DAY

INFERENCE_ONLY = ("inferentia",)  # Neuron trains on Trainium alone
NF4_VENDORS = ("NVIDIA", "AMD", "Intel")  # bitsandbytes' back ends
UNMEASURED = ("estimated", "assumed")
# Where no probability is asked for: the predicted time counts, and memory as it does by default.
DEFAULT_ODDS = RunOdds(fits_frac=0.8, whole_frac=0.5)


def training_sizes(task: SizingTask) -> Sizing:
    """The run on every accelerator that may carry it, or why it may not."""
    sizer = JobSizer(task, job_of(task))
    found, rejected = task.on_each_accelerator("bf16", sizer.on_accelerator)
    every = [job for each in found for job in each]
    jobs = tuple(job for job in every if sizer.is_mainstream(job, every))
    return Sizing(
        workload=task.workload.name,
        demand=task.demand,
        jobs=jobs,
        rejected=(*rejected, *sizer.unmeasured(every)),
        assumptions=(*task.policy_assumptions, *sizer.assumptions()),
    )


class JobSizer:
    """Sizes one job on one accelerator after another."""

    def __init__(self, task: SizingTask, job: Job) -> None:
        self.task, self.job = task, job
        self._servers: dict[str, list[RentedServer]] = {}
        for server in task.context.servers:
            self._servers.setdefault(server.node.accelerator, []).append(self._capped(server))
        self._given = {
            str(find_accelerator(c.accelerator, task.catalog).accelerator.id): c.mfu_frac
            for c in job.workload.capacities
            if c.mfu_frac is not None
        }
        self._stops: tuple[Assumption, ...] = ()
        requested = task.context.options.min_probability_frac
        self._odds = DEFAULT_ODDS if requested is None else RunOdds(requested, requested)

    @property
    def _n_allowed(self) -> int | None:
        return self.task.scenario.policy.n_accelerators_max

    def _capped(self, server: RentedServer) -> RentedServer:
        """Servers of one's own with the power cap that the scenario states."""
        node = server.node
        for owned in self.task.scenario.owned if server.is_own else ():
            card = find_accelerator(owned.accelerator, self.task.catalog).accelerator
            kind = (str(card.id), owned.n_accelerators_per_node)
            if kind == (node.accelerator, node.n_accelerators):
                return server._replace(cap_w=owned.accelerator_cap_w)
        return server

    def on_accelerator(self, candidate: Candidate, card: Accelerator) -> list[SizedJob] | Rejection:
        """The run on each kind of server with this accelerator; the first reason where on none."""
        refusal = self._refused(candidate, card)
        if refusal is not None:
            return refusal
        jobs: list[SizedJob] = []
        first: Rejection | None = None
        for found in self._on_servers(candidate, card):
            if isinstance(found, SizedJob):
                jobs.append(found)
            else:
                first = first or found
        none = rejection(candidate, "policy", "no price is known", "give prices.offers")
        return jobs or first or none

    def _on_servers(
        self, candidate: Candidate, card: Accelerator
    ) -> Iterator[SizedJob | Rejection]:
        """Cheapest accelerators first; servers that cannot be cheaper than one found are left."""
        least_usd: float | None = None
        for server in self._kinds(card):
            try:
                run = RunSizer(self.job, server, card, given=self.mfu(card), odds=self._odds)
                self._stops = run.stops.assumptions
                each_usd = server.usd_per_h / server.node.n_accelerators
                if least_usd is not None and each_usd * run.least_accelerator_s >= least_usd:
                    continue
                found = run.unfit_within(candidate, self._n_allowed) or run.sized(candidate)
            except PlannerError as error:
                yield rejection(candidate, "software", str(error), "name another model or layout")
                return
            if isinstance(found, Rejection):
                yield found
                continue
            for job in found:
                usd = each_usd * job.n_accelerators * job.wall_s.value
                least_usd = usd if least_usd is None else min(least_usd, usd)
            yield from found

    def _kinds(self, card: Accelerator) -> list[RentedServer]:
        """The servers of the market; the usual one where no market is at hand."""
        if self.task.context.servers:
            most = self._n_allowed
            found = self._servers.get(str(card.id), [])
            # Servers are had whole: one with more than is allowed is refused by the selection.
            found = [x for x in found if most is None or x.node.n_accelerators <= most] or found
            return [self._hurried(server) for server in found]
        n = node_sizes(self.task.catalog)[str(card.id)]
        node = NodeKind(name="usual server", accelerator=str(card.id), n_accelerators=n)
        return [RentedServer(with_reference_fabric(node, card), float(n), None)]

    def _hurried(self, server: RentedServer) -> RentedServer:
        """All servers that a limit allows, where the least time is sought and no deadline set."""
        most = self._n_allowed
        if most is None or self.task.scenario.objective != "time" or self.job.work.deadline_s:
            return server
        n_most = max(1, most // server.node.n_accelerators)
        had = n_most if server.n_most is None else min(n_most, server.n_most)
        return server._replace(n_most=had, is_all_used=True)

    def mfu(self, card: Accelerator) -> Range | None:
        """Utilization that was given for this accelerator or for the job; None: predict it."""
        return self._given.get(str(card.id)) or self.job.work.mfu_frac

    def is_mainstream(self, job: SizedJob, every: Sequence[SizedJob]) -> bool:
        """Whether measurements cover it, or it was asked for, or nothing else does it."""
        is_requested = str(job.candidate.accelerator) in self.task.allowed[0]
        is_measured = job.wall_s.tier not in UNMEASURED
        return is_requested or is_measured or all(each.wall_s.tier in UNMEASURED for each in every)

    def unmeasured(self, every: Sequence[SizedJob]) -> Iterator[Rejection]:
        """The best run of each accelerator that no measurement covers, as what it would take."""
        known = set()
        for job in every:
            card = job.candidate.accelerator
            if card in known or self.is_mainstream(job, every):
                continue
            known.add(card)
            reason = (
                f"no measurement covers training on it; {job.n_accelerators} of them would take "
                f"{job.wall_s.value / DAY:,.1f} days by estimate"
            )
            fix = f"name {card} in policy.accelerators.allowed"
            yield rejection(job.candidate, "software", reason, fix)

    def _refused(self, candidate: Candidate, card: Accelerator) -> Rejection | None:
        precision = candidate.precision
        if card.is_cpu:
            reason = f"{card.name} is a CPU: it would take years"
            return rejection(candidate, "precision", reason, "use an accelerator")
        if str(card.id).startswith(INFERENCE_ONLY):
            reason = f"{card.name} is for inference: no framework trains on it"
            return rejection(candidate, "software", reason, "use Trainium")
        if precision not in card.peak_flop_per_s:
            has = ", ".join(sorted(card.peak_flop_per_s))
            reason = f"{card.name} does not compute in {precision} (has {has})"
            return rejection(candidate, "precision", reason, "use another accelerator")
        if self.job.work.method == "qlora" and card.vendor not in NF4_VENDORS:
            reason = f"4-bit base weights (bitsandbytes) do not run on {card.name}"
            return rejection(candidate, "software", reason, "use method: lora")
        if not self.job.has_shape and self.mfu(card) is None:
            reason = "the step of a mixture of experts needs its layers"
            return rejection(candidate, "software", reason, "name the model, or give mfu_frac")
        return None

    def assumptions(self) -> Iterator[Assumption]:
        """What the sizes rest on."""
        yield from (*self.job.assumptions, *self._stops)
        value = f"layouts that fit with at least {self._odds.fits_frac:.0%} probability"
        why = "by the error of predicted against measured peaks; it counts in the odds of the run"
        yield assume("memory", value, why, "policy.min_probability_frac")
        if self.job.work.deadline_s is None:
            value = f"{PATIENCE_S / DAY:.0f} days at most, as long as more accelerators still pay"
            why = "no deadline was given: the cheapest number, unless it takes very long"
            if self.task.scenario.objective == "time" and self._n_allowed is not None:
                value = f"as short as {self._n_allowed:,} accelerators make it"
                why = "no deadline was given, and the least time is sought"
            yield assume("length of the run", value, why, "workloads[].training.deadline_days")
