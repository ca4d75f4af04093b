"""Whether to move from the old plan to the new one, and how far at once."""

from gpuplan.domain.plan.answer import Answer, ChosenPlan
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.telemetry.forecast import DemandForecast
from gpuplan.domain.telemetry.replan import Advice, Drift, Observed, Replanned, ReplanRequest

Found = tuple[Observed, tuple[Drift, ...], DemandForecast | None]


def judged(
    old: Answer,
    new: Answer,
    *,
    request: ReplanRequest,
    found: Found,
    assumptions: tuple[Assumption, ...],
) -> Replanned:
    """Keep, change, or change in steps; the reasons are part of the answer."""
    known, drifts, ahead = found
    added, saved = _difference(old.plan, new.plan)
    advice, reasons = _advice(old, new, request=request, added=added, saved=saved)
    step, advice, reasons = _step(new.plan, request, added, advice, reasons, saved=saved)
    share = step / added if added else 1.0
    once = new.plan.once_usd if new.plan is not None and advice != "keep" else 0.0
    return Replanned(
        old=old,
        new=new,
        observed=known,
        drifts=drifts,
        forecast=ahead,
        advice=advice,
        reasons=reasons,
        n_added=added,
        saved_usd_per_month=saved * share if advice == "change in steps" else saved,
        once_usd=once * share,
        n_step=0 if advice == "keep" else step,
        assumptions=assumptions,
    )


def _step(
    plan: ChosenPlan | None,
    request: ReplanRequest,
    added: int,
    advice: Advice,
    reasons: tuple[str, ...],
    *,
    saved: float,
) -> tuple[int, Advice, tuple[str, ...]]:
    """How many accelerators to change now: whole nodes, within the change budget."""
    most = request.max_added_accelerators
    if most is None or plan is None or abs(added) <= most or advice != "change":
        return added, advice, reasons
    size = min(
        (p.n_accelerators_per_node for pool in plan.pools for p in pool.purchases), default=1
    )
    step = most // size * size
    if not step:
        why = f"a node has {size} accelerators: the change budget of {most} allows none"
        return 0, "keep", (*reasons, why)
    why = f"{abs(added)} at once is above the change budget of {most}; all of them: "
    return (
        step if added > 0 else -step,
        "change in steps",
        (*reasons, f"{why}{-saved:+,.0f} $/month"),
    )


def _difference(old: ChosenPlan | None, new: ChosenPlan | None) -> tuple[int, float]:
    if old is None or new is None:
        return 0, 0.0
    counts = [sum(pool.n_accelerators for pool in plan.pools) for plan in (old, new)]
    return counts[1] - counts[0], old.cost_usd_per_month.value - new.cost_usd_per_month.value


def _advice(
    old: Answer, new: Answer, *, request: ReplanRequest, added: int, saved: float
) -> tuple[Advice, tuple[str, ...]]:
    """Promises first, then money; a small saving is not worth a move."""
    if new.plan is None or old.plan is None:
        return "keep", (
            "no plan meets the new demand within the limits: see what stands in the way",
        )
    if added > 0:
        return "change", (f"the demand to come needs {added} more accelerators",)
    before = old.plan.cost_usd_per_month.value
    if before > 0 and saved / before >= request.hysteresis_frac:
        return "change", (f"{saved / before:.0%} of the bill would be saved",)
    if _fleet(old.plan) == _fleet(new.plan):
        return "keep", ("the same fleet still fits",)
    share = saved / before if before > 0 else 0.0
    limit = f"{request.hysteresis_frac:.0%}"
    return "keep", (f"the saving of {share:.1%} is below the {limit} that a move must bring",)


def _fleet(plan: ChosenPlan) -> tuple[tuple[str, str, int], ...]:
    return tuple((pool.workload, pool.accelerator, pool.n_replicas) for pool in plan.pools)
