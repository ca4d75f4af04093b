"""A plan as tables and remarks: the answer first, then what it rests on."""

from dataclasses import replace

from gpuplan.domain.plan.answer import Answer, ChosenPlan, PlannedPool, Replay, SloResult
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.formats import kw, signed_usd, span, usd, usd_range
from gpuplan.report.plan.document import plan_document
from gpuplan.report.provenance import assumption_lines
from gpuplan.units import DAY, HOUR, KWH, MINUTE, MONTH

N_SHOWN_REJECTED = 8
N_SHOWN_ALTERNATIVES = 8
UNEVEN_FRAC = 0.02  # less is the rounding of months
SHORT_SPAN_S = 300 * DAY  # a run with an end rather than a service


def plan_sheet(answer: Answer) -> Sheet:
    """One plan, ready to show."""
    tables = _tables(answer, n_most=N_SHOWN_REJECTED)
    return Sheet(
        document=plan_document(answer),
        tables=tables,
        whole_tables=_tables(answer, n_most=None),
        head=head_line(answer),
        remarks=(
            ("Why:", (*answer.explanation.why, *answer.explanation.binding)),
            ("Nothing fits:", answer.explanation.conflicts),
            ("How busy it may be:", _use_lines(answer)),
            (
                "Load:",
                tuple(f"{load.workload}: {line}" for load in answer.load for line in load.lines),
            ),
            ("Assumed:", assumption_lines(answer.assumptions)),
        ),
    )


def head_line(answer: Answer) -> str:
    """The answer in one sentence."""
    if answer.plan is None:
        return f"{answer.name}: NO PLAN meets every limit"
    told = [pool for pool in answer.plan.pools if pool.n_accelerators or _is_cpu(pool)]
    fleets = "; ".join(fleet_line(pool) for pool in told) or "nothing to get"
    kept = "" if answer.plan.slo.is_kept else ", a promise is BROKEN"
    plan = answer.plan
    cost = f"{usd_range(plan.cost_usd_per_month)} a month"
    if plan.span_s < MONTH:
        cost = f"{usd_range(_in_all(plan))} in {span(plan.span_s)}"
    elif plan.span_s < SHORT_SPAN_S:
        cost = f"{usd(plan.total_usd)} in {span(plan.span_s)}, {cost}"
    elif _is_uneven(plan):
        cost = f"{usd(plan.total_usd)} in {span(plan.span_s)}, {cost} while all of it runs"
    return f"{answer.name}: {fleets}: {cost}{kept}"


def _is_uneven(plan: ChosenPlan) -> bool:
    """Whether runs end before the services do: then no month is like the others."""
    even = plan.once_usd + plan.cost_usd_per_month.value * plan.span_s / MONTH
    return plan.total_usd < (1 - UNEVEN_FRAC) * even


def _in_all(plan: ChosenPlan) -> Estimate:
    """The whole of a short run, with the range of its monthly rate."""
    month = plan.cost_usd_per_month
    ratio = plan.total_usd / month.value if month.value else 1.0
    return replace(month, value=plan.total_usd, low=month.low * ratio, high=month.high * ratio)


def fleet_line(pool: PlannedPool) -> str:
    """A pool in a few words."""
    if pool.n_accelerators == 0 and not _is_cpu(pool):
        return f"a part of {pool.accelerator}"
    if pool.n_accelerators == 0:
        n = sum(line.n_nodes for line in pool.purchases)
        return f"{n} CPU node{'s' if n != 1 else ''} ({pool.accelerator}), no GPU needed"
    shape = f" as {pool.n_replicas} x TP{pool.tp}" if pool.tp > 1 or pool.n_replicas > 1 else ""
    stages = f" PP{pool.pp}" if pool.pp > 1 else ""
    return f"{pool.n_accelerators} x {pool.accelerator}{shape}{stages}"


def _is_cpu(pool: PlannedPool) -> bool:
    return pool.accelerator.startswith("cpu")


def _tables(answer: Answer, n_most: int | None) -> tuple[Table, ...]:
    tables = []
    if answer.plan is not None:
        tables += [_pool_table(answer.plan), _purchase_table(answer.plan)]
        tables += [_promise_table(answer.plan), _replay_table(answer.plan), _figure_table(answer)]
        if answer.plan.limits:
            tables.append(_limit_table(answer.plan))
        tables.append(growth_table(answer))
    if answer.alternatives:
        tables.append(_alternative_table(answer, n_most and N_SHOWN_ALTERNATIVES))
    if answer.rejected:
        tables.append(_rejected_table(answer, n_most))
    return tuple(table for table in tables if table.rows)


def _pool_table(plan: ChosenPlan) -> Table:
    rows = tuple(
        (
            pool.workload,
            pool.accelerator,
            str(pool.n_accelerators) if pool.n_accelerators or _is_cpu(pool) else "part",
            f"{pool.n_replicas}"
            + (f" ({pool.n_spare_replicas} spare)" if pool.n_spare_replicas else ""),
            f"{pool.tp}/{pool.pp}",
            pool.precision,
            pool.source,
        )
        for pool in plan.pools
    )
    columns = ("workload", "accelerator", "count", "replicas", "TP/PP", "precision", "from")
    return Table(title="What to get", columns=columns, rows=rows, right=("count",))


def _purchase_table(plan: ChosenPlan) -> Table:
    rows = tuple(
        (
            f"{line.purchase} {line.offer}".strip(),
            str(line.n_nodes),
            str(line.n_accelerators_per_node),
            f"{line.price_usd_per_node_h.value:,.2f}",
            f"{100 * line.paid_frac:.0f} %",
            usd(line.usd_per_month),
            line.price_date or "yours",
        )
        for pool in plan.pools
        for line in pool.purchases
    )
    columns = ("how it is paid", "nodes", "per node", "$/node-h", "of hours", "$/month", "price of")
    return Table(title="What it costs", columns=columns, rows=rows, right=columns[1:6])


def _promise_table(plan: ChosenPlan) -> Table:
    rows = tuple(_promise_row(promise) for promise in plan.slo.promises)
    columns = ("workload", "promise", "limit", "reached", "80 % range", "kept")
    return Table(title="What is promised", columns=columns, rows=rows, right=columns[2:5])


def _promise_row(promise: SloResult) -> tuple[str, ...]:
    reached = promise.reached_s
    given = "by your capacity"
    return (
        promise.workload,
        promise.what,
        span(promise.limit_s),
        given if reached is None else span(reached.value),
        "" if reached is None else f"{span(reached.low)} … {span(reached.high)}",
        "yes" if promise.is_kept else "NO",
    )


def _replay_table(plan: ChosenPlan) -> Table:
    """Hours count from midnight, or from the first hour of the profile."""
    rows = tuple(
        (
            r.workload,
            f"{r.n_hours} h{_part(r)}, {r.n_requests:,} requests",
            f"{r.n_replicas_least}"
            + (f" … {r.n_replicas_most}" if r.n_replicas_most > r.n_replicas_least else ""),
            f"{100 * r.kept_frac:.2f} %",
            f"{r.worst_hour}: {100 * r.worst_kept_frac:.2f} %",
            f"{100 * r.mean_use_frac:.0f} %",
            str(len(r.broken_hours)),
        )
        for r in plan.replays
    )
    columns = ("workload", "replayed", "replicas", "in time", "worst hour", "mean use", "broken h")
    return Table(title="The plan replayed", columns=columns, rows=rows, right=columns[2:])


def _part(replay: Replay) -> str:
    """How much of each hour was run, where it was not all of it."""
    return "" if replay.run_s >= HOUR else f" of {replay.run_s / MINUTE:.3g} min"


def _figure_table(answer: Answer) -> Table:
    plan = answer.plan
    if plan is None:
        return Table(title="", columns=(), rows=())
    rows = [("power at the peak", kw(plan.power_w.value))]
    rows.append((f"in all, over {span(plan.span_s)}", usd(plan.total_usd)))
    if plan.once_usd:
        rows.append(("of it paid at the start", usd(plan.once_usd)))
    if plan.energy_j_per_month:
        rows.append(("energy of the machines", f"{plan.energy_j_per_month / KWH:,.0f} kWh a month"))
    if plan.carbon_kg_per_month is not None:
        rows.append(("carbon, grid average", f"{plan.carbon_kg_per_month:,.0f} kg CO2e a month"))
    for pool in plan.pools:
        use = pool.use
        if use.peak_frac is not None:
            rows.append((f"{pool.workload}: use at the peak", f"{100 * use.peak_frac:.0f} %"))
        if use.safe_frac is not None:
            rows.append((f"{pool.workload}: safe use of this pool", f"{100 * use.safe_frac:.0f} %"))
    if answer.proof is not None:
        rows.append(("proven gap to the best plan", f"{100 * answer.proof.gap_frac:.2f} %"))
    if answer.uncertainty is not None:
        kept = 100 * answer.uncertainty.kept_frac
        rows.append(("the plan is enough when inputs vary", f"{kept:.0f} % of samples"))
    return Table(title="Figures", columns=("what", "value"), rows=tuple(rows), right=("value",))


def growth_table(answer: Answer) -> Table:
    """Counts and cost under low, middle and high growth; empty where nothing grows."""
    rows = tuple(
        (
            f"{row.workload}, {row.name}: {100 * row.per_month_frac:.3g} % a month",
            f"x {row.load_ratio:.2f}",
            f"{row.first_fleet} → {row.last_fleet}",
            usd(row.first_usd_per_month),
            usd(row.last_usd_per_month),
            usd(row.mean_usd_per_month),
        )
        for row in answer.explanation.growth
    )
    columns = ("growth", "load at last", "fleet", "$/month first", "at last", "mean")
    return Table(title="If demand grows", columns=columns, rows=rows, right=columns[3:])


def _limit_table(plan: ChosenPlan) -> Table:
    rows = tuple(
        (
            use.name,
            use.used,
            use.limit,
            f"{100 * use.used_frac:.0f} %",
            "yes" if use.is_kept else "NO",
        )
        for use in plan.limits
    )
    columns = ("limit", "used", "at most", "share", "kept")
    return Table(title="Your limits", columns=columns, rows=rows, right=columns[1:4])


def _alternative_table(answer: Answer, n_most: int | None) -> Table:
    rows = tuple(
        (
            other.kind,
            other.fleet,
            usd(other.usd_per_month),
            signed_usd(other.extra_usd_per_month),
            other.remark,
        )
        for other in answer.alternatives[:n_most]
    )
    columns = ("alternative", "fleet", "$/month", "difference", "remark")
    return Table(title="Alternatives", columns=columns, rows=rows, right=columns[2:4])


def _rejected_table(answer: Answer, n_most: int | None) -> Table:
    shown = answer.rejected[:n_most]
    rows = tuple((r.candidate, r.reason, r.relaxation or "nothing known") for r in shown)
    rest = f"; {len(shown)} of {len(answer.rejected)}" if len(shown) < len(answer.rejected) else ""
    columns = ("candidate", "why not", "what would help")
    return Table(title=f"Left out{rest}", columns=columns, rows=rows)


def _use_lines(answer: Answer) -> tuple[str, ...]:
    pools = answer.plan.pools if answer.plan else ()
    return tuple(f"{pool.workload}: {pool.use.remark}" for pool in pools if pool.use.remark)
