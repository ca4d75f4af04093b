"""Sizes from what the user knows: capacities within the promises, or counts of accelerators."""

from math import ceil

from gpuplan.candidates.need import need_in_proportion
from gpuplan.candidates.prune import rejection
from gpuplan.candidates.reserve import reserve_for
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.nodes import node_sizes
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator, AcceleratorId
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import DemandProfile, PoolUtilization, Sized, Sizing, SizingOptions
from gpuplan.domain.provenance import Assumption, Estimate
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Batch, Capacity, Generic, Workload
from gpuplan.errors import InputError, one
from gpuplan.studies.naming import allowed_ids

BATCH_FRAC = 0.95
# Assumption: what other networks reach of the dense peak; measured image networks span this.
GENERIC_MFU = Range(low=0.15, mid=0.30, high=0.50)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSizes:
    """What the user's own figures settle."""

    sizing: Sizing
    is_complete: bool  # every accelerator that is allowed has a figure


def given_sizes(
    workload: Workload, scenario: Scenario, demand: DemandProfile, *, catalog: Catalog,
    options: SizingOptions,
) -> GivenSizes:  # fmt: skip
    """Fleets by the user's capacities, in proportion and below the allowed utilization."""
    (allowed, forbidden), told = allowed_ids(scenario.policy, catalog)
    sizer = _GivenSizer(workload, scenario, demand, catalog=catalog, options=options)
    if demand.unit == "accelerators":
        sized = sizer.by_count(allowed, forbidden)
    else:
        rates = [c for c in workload.capacities if c.rate_per_s is not None]
        sized = [sizer.by_capacity(c) for c in rates]
        if isinstance(workload.work, Generic):
            sized += sizer.by_arithmetic(workload.work, {s.candidate.accelerator for s in sized})
    kept = [s for s in sized if _is_allowed(s.candidate, allowed, forbidden)]
    known = {str(s.candidate.accelerator) for s in kept}
    has_model = workload.model is not None and workload.model.name is not None
    is_complete = bool(kept) and ((bool(allowed) and allowed <= known) or not has_model)
    sizing = Sizing(
        workload=workload.name,
        demand=demand,
        sized=tuple(kept),
        jobs=(),
        rejected=tuple(_not_allowed(workload, catalog, allowed, forbidden)) if is_complete else (),
        skipped=(),
        assumptions=(*told, *sizer.assumed) if kept else (),
    )
    return GivenSizes(sizing=sizing, is_complete=is_complete)


def _is_allowed(candidate: Candidate, allowed: frozenset[str], forbidden: frozenset[str]) -> bool:
    card = str(candidate.accelerator)
    return card not in forbidden and (not allowed or card in allowed)


def _not_allowed(
    workload: Workload, catalog: Catalog, allowed: frozenset[str], forbidden: frozenset[str]
) -> list[Rejection]:
    found = []
    for card in catalog.accelerators:
        candidate = _candidate(workload, card)
        if not _is_allowed(candidate, allowed, forbidden):
            fix = f"add {card} to policy.accelerators.allowed"
            found.append(rejection(candidate, "policy", f"{card} is not among the allowed", fix))
    return found


def _candidate(
    workload: Workload, card: AcceleratorId, *, offer: str = "", is_node: bool = False
) -> Candidate:
    asked = workload.layout
    layout = ServingLayout(
        tp=(asked.n_tensor if asked else None) or 1, pp=(asked.n_pipeline if asked else None) or 1
    )
    precision = workload.precisions[0] if workload.precisions else "as published"
    return Candidate(
        workload=workload.name, accelerator=card, layout=layout, precision=precision, offer=offer,
        is_node=is_node,
    )  # fmt: skip


class _GivenSizer:
    def __init__(
        self, workload: Workload, scenario: Scenario, demand: DemandProfile, *, catalog: Catalog,
        options: SizingOptions,
    ) -> None:  # fmt: skip
        self.workload, self.scenario, self.demand = workload, scenario, demand
        self.catalog = catalog
        self.nodes = node_sizes(catalog)
        self.assumed: list[Assumption] = []
        self.ceiling_frac = self._ceiling(options)

    def _ceiling(self, options: SizingOptions) -> float:
        given = self.scenario.policy.resilience.max_utilization_frac
        if given is not None:
            return given
        if self.demand.unit == "accelerators":
            return self.scenario.growth.target_utilization_frac or 1.0
        if isinstance(self.workload.work, Batch):
            return BATCH_FRAC
        frac = options.max_utilization_frac
        self.assumed.append(
            Assumption(
                what="highest utilization", value=f"{frac:.0%} of the given capacity",
                why="a capacity says nothing of queues: room is left for chance",
                change="policy.max_utilization_frac",
            )
        )  # fmt: skip
        return frac

    def by_capacity(self, capacity: Capacity) -> Sized:
        """So many requests, tokens or samples per second on one accelerator or node."""
        assert capacity.rate_per_s is not None
        offers = {offer.name: offer for offer in self.scenario.prices.offers}
        offer = offers.get(capacity.accelerator)
        named = offer.accelerator if offer else capacity.accelerator
        card = find_accelerator(named, self.catalog).accelerator
        candidate = _candidate(
            self.workload, card.id, offer=offer.name if offer else "", is_node=capacity.is_per_node
        )
        rate = capacity.rate_per_s.times(1.0 / self._tokens(capacity))
        if not capacity.is_per_node:
            rate = rate.times(float(candidate.n_accelerators))
        return self.sized(candidate, rate, tier_note="the user's own capacity")

    def _tokens(self, capacity: Capacity) -> float:
        per = {"output_tokens": self.demand.output_tokens, "input_tokens": self.demand.input_tokens}
        tokens = per.get(capacity.metric or "requests", 1.0)
        if tokens <= 0:
            what = f"given in {capacity.metric}, but requests have none"
            where = f"{self.workload.name}.capacity"
            raise one(InputError, "plan", where, what, "give requests_per_s instead")
        return tokens

    def sized(self, candidate: Candidate, rate: Range, *, tier_note: str) -> Sized:
        """In proportion, up to the allowed utilization."""
        safe = rate.times(self.ceiling_frac)
        need = need_in_proportion(self.demand, safe.mid)
        n = need.n_peak
        resilience = self.scenario.policy.resilience
        peak = self.demand.peak_of(0, 0)
        is_given = tier_note != ""
        return Sized(
            candidate=candidate,
            method="given" if is_given else "analytic",
            need=need,
            reserve=reserve_for(
                candidate, n, resilience,
                n_accelerators_per_node=self.nodes.get(candidate.accelerator, 1),
            ),
            capacity_per_s=Estimate(
                value=safe.mid, low=safe.low, high=safe.high,
                tier="given" if is_given else "assumed",
            ),
            n_slow_end=ceil(peak / safe.low - 1e-9),
            limits=(),
            little=None,
            utilization=PoolUtilization(
                peak_frac=peak / (n * rate.mid) if n else None, safe_frac=self.ceiling_frac,
                band=f"{self.ceiling_frac:.0%} is a rule where only a capacity is known",
            ),
            power_w=None,
            cold_start_s=None,
            remarks=(self._why(peak, rate, n),),
        )  # fmt: skip

    def _why(self, peak: float, rate: Range, n: int) -> str:
        unit = {"accelerators": "accelerators", "samples": "samples/s"}.get(
            self.demand.unit, "requests/s"
        )
        return (
            f"{peak:.4g} {unit} / ({rate.mid:.4g} x {self.ceiling_frac:.2g}) = "
            f"{peak / rate.mid / self.ceiling_frac:.2f}, rounded up to {n}"
        )

    def by_count(self, allowed: frozenset[str], forbidden: frozenset[str]) -> list[Sized]:
        """The user counts accelerators: those that are allowed, priced or owned."""
        named = [o.accelerator for o in self.scenario.prices.offers]
        named += [o.accelerator for o in self.scenario.owned]
        ids = {find_accelerator(name, self.catalog).accelerator.id for name in named}
        cards = [AcceleratorId(x) for x in allowed] or sorted(ids)
        if not cards:
            cards = [c.id for c in self.catalog.accelerators.values() if not c.is_cpu]
            why = "the count is taken to hold for any accelerator, since none is named"
            self.assumed.append(
                Assumption(
                    what="accelerators of the count", value="any", why=why,
                    change="policy.accelerators.allowed",
                )
            )  # fmt: skip
        exact = Range(low=1.0, mid=1.0, high=1.0)
        return [
            self.sized(_candidate(self.workload, card), exact, tier_note="counted")
            for card in cards
            if card not in forbidden
        ]

    def by_arithmetic(self, work: Generic, known: set[AcceleratorId]) -> list[Sized]:
        """Samples of known cost on every accelerator without a given capacity."""
        if work.flop_per_sample is None:
            return []
        why = "share of the dense 16-bit peak that networks of unknown kind reach"
        self.assumed.append(
            Assumption(
                what="utilization of arithmetic", value="30 % (15 to 50 %)", why=why,
                change="workloads[].capacity",
            )
        )  # fmt: skip
        cards = [c for c in self.catalog.accelerators.values() if c.id not in known]
        return [
            self.sized(_candidate(self.workload, card.id), _rate(card, work), tier_note="")
            for card in cards
        ]


def _rate(card: Accelerator, work: Generic) -> Range:
    """Samples per second: arithmetic at a usual share of the peak, or traffic at full speed."""
    assert work.flop_per_sample is not None
    peaks = card.peak_flop_per_s
    peak = peaks.get("bf16") or peaks.get("fp16") or max(peaks.values())
    traffic_s = (work.sample_activation_bytes or 0.0) / card.memory.bytes_per_s

    def rate(mfu: float) -> float:
        assert work.flop_per_sample is not None
        return 1.0 / max(work.flop_per_sample / (peak * mfu), traffic_s)

    return Range(low=rate(GENERIC_MFU.low), mid=rate(GENERIC_MFU.mid), high=rate(GENERIC_MFU.high))
