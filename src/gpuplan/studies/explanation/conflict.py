"""Why there is no plan, in words: limits that clash by how much, or work that nothing can do."""

from collections import Counter
from collections.abc import Sequence

from gpuplan.domain.plan.candidate import Rejection
from gpuplan.domain.plan.selection import Conflict, SelectionProblem
from gpuplan.domain.plan.sizing import Sizing
from gpuplan.studies.explanation.rejected import ORDER, nearest_first
from gpuplan.studies.planning.limits import amount_text

N_SHOWN = 5


def conflict_lines(found: Conflict, problem: SelectionProblem) -> tuple[str, ...]:
    """Each limit that clashes, with the least that would do."""
    if found.without_limits:
        return (found.without_limits,)
    limits = {limit.name: limit for limit in problem.limits}
    period_s = problem.horizon.period_s
    together = "cannot hold together" if len(found.limits) > 1 else "cannot be kept"
    lines = [f"{', '.join(found.limits)}: {together}"]
    for alone in found.alone:
        for name, most, needed in zip(alone.limits, alone.most, alone.needed, strict=True):
            gap, wanted, now = (
                amount_text(limits[name], amount, period_s)
                for amount in (needed - most, needed, most)
            )
            lines.append(f"{name}: {gap} short; {wanted} would do (now {now})")
    return tuple(lines)


def hopeless_lines(lost: Sequence[Sizing]) -> tuple[str, ...]:
    """For each workload that nothing can do: the commonest reasons, and what would help."""
    return tuple(line for sizing in lost for line in _hopeless(sizing))


def _hopeless(sizing: Sizing) -> list[str]:
    counts = Counter(r.constraint for r in sizing.rejected)
    unpriced = sum(s.cost_least_usd_per_h is None for s in sizing.skipped)
    n = len(sizing.rejected) + len(sizing.skipped)
    why = ", ".join(f"{count} by {name}" for name, count in counts.most_common(N_SHOWN))
    lines = [f"{sizing.workload}: none of {n} candidates can do it ({why or 'no price'})"]
    if unpriced:
        lines.append(f"{sizing.workload}: {unpriced} candidates have no price")
    nearest: dict[str, Rejection] = {}
    for rejection in nearest_first(reversed(sizing.rejected)):
        if rejection.relaxation:
            nearest.setdefault(rejection.constraint, rejection)
    # The later a test fails, the nearer the candidate came.
    for constraint in sorted(nearest, key=ORDER.index)[:N_SHOWN]:
        found = nearest[constraint]
        lines.append(f"{found.candidate.name}: {found.reason}; {found.relaxation}")
    return lines
