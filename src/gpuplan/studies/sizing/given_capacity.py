"""Sizes from what the user knows: capacities within the SLOs, or counts of accelerators."""

from dataclasses import replace

from gpuplan.candidates.prune import policy_check
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.hardware.devices import Accelerator, AcceleratorId
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.sizing import Sized, Sizing, SizingMethod
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.workload import Capacity, Generic
from gpuplan.errors import InputError, one
from gpuplan.studies.sizing.task import SizingTask, estimate_of

# Assumption: what other networks reach of the dense peak; measured image networks span this.
GENERIC_MFU = Range(low=0.15, mid=0.30, high=0.50)
UNITS = {"accelerators": "accelerators", "samples": "samples/s"}  # else requests/s
PUBLISHED = "as published"


def given_sizes(task: SizingTask) -> tuple[Sizing, bool]:
    """Fleets by the user's own figures, and whether every accelerator that is allowed has one."""
    sizer = _GivenSizer(task)
    check, allowed = policy_check(*task.allowed), task.allowed[0]
    sized = [each for each in sizer.sizes() if check(each.candidate) is None]
    known = {str(each.candidate.accelerator) for each in sized}
    has_model = task.workload.model is not None and task.workload.model.name is not None
    is_complete = bool(sized) and ((bool(allowed) and allowed <= known) or not has_model)
    candidates = (task.candidate(c, PUBLISHED) for c in task.catalog.accelerators.values())
    rejected = (found for each in candidates if (found := check(each)) is not None)
    sizing = Sizing(
        workload=task.workload.name,
        demand=task.demand,
        sized=tuple(sized),
        rejected=tuple(rejected) if is_complete else (),
        assumptions=(*task.policy_assumptions, *sizer.assumed) if sized else (),
    )
    return sizing, is_complete


class _GivenSizer:
    """Fleets in proportion to given capacities, up to the highest utilization."""

    def __init__(self, task: SizingTask) -> None:
        self.task, self.demand, self.workload = task, task.demand, task.workload
        self.assumed: list[Assumption] = []
        self.ceiling_frac = self._ceiling()

    def sizes(self) -> list[Sized]:
        """Fleets by count, by given capacity, and by the arithmetic of a sample."""
        if self.demand.unit == "accelerators":
            return self._by_count()
        rates = [c for c in self.workload.capacities if c.rate_per_s is not None]
        sized = [self._by_capacity(c) for c in rates]
        if isinstance(self.workload.work, Generic):
            known = {each.candidate.accelerator for each in sized}
            sized += self._by_arithmetic(self.workload.work, known)
        return sized

    def _assume(self, what: str, value: str, why: str, change: str) -> None:
        self.assumed.append(assume(what, value, why, change))

    def _ceiling(self) -> float:
        usual = self.task.context.options.max_utilization_frac
        is_given = self.task.resilience.max_utilization_frac is not None
        if self.demand.unit == "accelerators" and not is_given:
            return self.task.scenario.growth.target_utilization_frac or 1.0
        if not is_given and not self.task.is_deferrable:
            self._assume(
                "highest utilization",
                f"{usual:.0%} of the given capacity",
                "a capacity says nothing of queues: room is left for chance",
                "policy.max_utilization_frac",
            )
        return self.task.ceiling_frac(usual)

    def _by_capacity(self, capacity: Capacity) -> Sized:
        """So many requests, tokens or samples per second on one accelerator or node."""
        assert capacity.rate_per_s is not None
        offers = {offer.name: offer for offer in self.task.scenario.prices.offers}
        offer = offers.get(capacity.accelerator)
        named = offer.accelerator if offer else capacity.accelerator
        card = find_accelerator(named, self.task.catalog).accelerator
        candidate = replace(
            self.task.candidate(card, PUBLISHED),
            offer=offer.name if offer else "",
            is_node=capacity.is_per_node,
        )
        rate = capacity.rate_per_s.times(1.0 / self._tokens(capacity))
        if not capacity.is_per_node:
            rate = rate.times(float(candidate.n_accelerators))
        return self._sized(candidate, rate)

    def _tokens(self, capacity: Capacity) -> float:
        per = {"output_tokens": self.demand.output_tokens, "input_tokens": self.demand.input_tokens}
        tokens = per.get(capacity.metric or "requests", 1.0)
        if tokens <= 0:
            what = f"given in {capacity.metric}, but requests have none"
            where = f"{self.workload.name}.capacity"
            raise one(InputError, "plan", where, what, "give requests_per_s instead")
        return tokens

    def _sized(self, candidate: Candidate, rate: Range, method: SizingMethod = "given") -> Sized:
        """In proportion, up to the allowed utilization."""
        ceiling = self.ceiling_frac
        tier = "given" if method == "given" else "assumed"
        fleet = self.task.fleet_in_proportion(
            candidate,
            estimate_of(rate.times(ceiling), tier),
            full_per_s=rate.mid,
            safe_frac=ceiling,
            method=method,
            band=f"{ceiling:.0%} is a rule where only a capacity is known",
        )
        peak, unit = self.task.peak_per_s, UNITS.get(self.demand.unit, "requests/s")
        why = (
            f"{peak:.4g} {unit} / ({rate.mid:.4g} x {ceiling:.2g}) = "
            f"{peak / rate.mid / ceiling:.2f}, rounded up to {fleet.n_serving}"
        )
        return replace(fleet, remarks=(why,))

    def _by_count(self) -> list[Sized]:
        """The user counts accelerators: those that are allowed, priced or owned."""
        scenario, catalog, (allowed, forbidden) = (
            self.task.scenario,
            self.task.catalog,
            self.task.allowed,
        )
        named = [o.accelerator for o in scenario.prices.offers]
        named += [o.accelerator for o in scenario.owned]
        ids = {find_accelerator(name, catalog).accelerator.id for name in named}
        cards = [AcceleratorId(x) for x in allowed] or sorted(ids)
        if not cards:
            cards = [c.id for c in catalog.accelerators.values() if not c.is_cpu]
            why = "the count is taken to hold for any accelerator, since none is named"
            change = "policy.accelerators.allowed"
            self._assume("accelerators of the count", "any", why, change)
        return [
            self._sized(self.task.candidate(catalog.accelerators[card], PUBLISHED), exactly(1.0))
            for card in cards
            if card not in forbidden
        ]

    def _by_arithmetic(self, work: Generic, known: set[AcceleratorId]) -> list[Sized]:
        """Samples of known cost on every accelerator without a given capacity."""
        if work.flop_per_sample is None:
            return []
        why = "share of the dense 16-bit peak that networks of unknown kind reach"
        change = "workloads[].capacity"
        self._assume("MFU", "30 % (15 to 50 %)", why, change)
        return [
            self._sized(self.task.candidate(card, PUBLISHED), _rate(card, work), "analytic")
            for card in self.task.catalog.accelerators.values()
            if card.id not in known
        ]


def _rate(card: Accelerator, work: Generic) -> Range:
    """Samples per second: arithmetic at a usual share of the peak, or traffic at full speed."""
    peaks = card.peak_flop_per_s
    peak = peaks.get("bf16") or peaks.get("fp16") or max(peaks.values())
    traffic_s = (work.sample_activation_bytes or 0.0) / card.memory.bytes_per_s

    def rate(mfu: float) -> float:
        assert work.flop_per_sample is not None
        return 1.0 / max(work.flop_per_sample / (peak * mfu), traffic_s)

    return Range(low=rate(GENERIC_MFU.low), mid=rate(GENERIC_MFU.mid), high=rate(GENERIC_MFU.high))
