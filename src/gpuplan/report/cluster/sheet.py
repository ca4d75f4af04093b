"""A simulated cluster, and the start of a job, as documents and tables."""

from collections.abc import Sequence

import numpy as np

from gpuplan.domain.cluster.answer import (
    ClusterSimulation,
    FractionAdvice,
    PolicyRow,
    QuotaAdvice,
    StartEstimate,
    TeamBill,
    WaitRow,
    WaitShare,
)
from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.document import Document, pick, pick_each, result_sheet
from gpuplan.report.formats import count, percent, plural, usd
from gpuplan.report.formats import span as long_span
from gpuplan.report.table import pairs, table
from gpuplan.units import HOUR, MINUTE

WAITS: tuple[str, ...] = (
    "name",
    "n_jobs",
    "n_never",
    "wait_mean_s",
    "wait_p50_s",
    "wait_p90_s",
    "wait_p99_s",
)
WAITS += ("slowdown_p50_ratio", "slowdown_p90_ratio", "target_p90_s")
LAYERS = {
    "jobs": "batch_frac",
    "services": "service_frac",
    "down": "down_frac",
    "idle, nobody waits": "idle_frac",
    "free, over quota": "quota_blocked_frac",
    "free, too few for the next job": "too_few_frac",
    "free, fragmented": "fragmented_frac",
}
CHANGE = ("name", "wait_mean_s", "wait_p90_s", "saved_mean_s", "saved_low_s", "saved_high_s")
N_WORST = 5


def span(seconds: float) -> str:
    """A wait: whole seconds, then minutes, hours and days."""
    return f"{seconds:.0f} s" if seconds < 5 * MINUTE else long_span(seconds)


def cluster_sheet(found: ClusterSimulation) -> Sheet:
    """One run, ready to show."""
    tables = [
        wait_table("Waits by team", found.by_team),
        wait_table("Waits by size", found.by_size),
        _layer_table(found),
        bill_table(found),
        _share_table(found.shares),
        _change_table("Policies compared, same jobs and failures", found.advice.policies),
        _change_table("More and fewer GPUs", found.advice.changes),
        _quota_table(found.advice.quotas),
        *(_fraction_table(one) for one in found.advice.fractions),
    ]
    remarks = [
        ("Trace:", found.jobs.remarks),
        ("Last useful GPU:", _last_lines(found)),
        ("Advice:", found.advice.notes),
    ]
    return result_sheet(
        _body(found), tables, head=_head(found), remarks=remarks, assumptions=found.assumptions
    )


def _head(found: ClusterSimulation) -> str:
    row, use, cluster = found.all_jobs, found.use, found.cluster
    used = percent(use.batch_frac + use.service_frac)
    half = "at once" if row.wait_p50_s < 1 else f"within {span(row.wait_p50_s)}"
    of = "of the others " if row.n_never else ""
    waits = f"{of}half start {half}, 90 % within {span(row.wait_p90_s)}"
    if row.wait_p90_s < 1:
        waits = f"{of}90 % or more start at once"
    if row.n_never:
        waits = f"{count(row.n_never)} can never start" + f", {waits}" * (row.n_never < row.n_jobs)
    text = (
        f"{plural(row.n_jobs, 'job')} on {count(cluster.n_accelerators)} GPUs "
        f"({cluster.policy.order}, {cluster.policy.blocking}): {waits}; {used} of GPU time used"
    )
    violated = [row.name for row in found.by_team if row.is_violated]
    return text + (f"; out of target: {', '.join(violated)}" if violated else "") + "."


def _body(found: ClusterSimulation) -> Document:
    outcome, advice = found.found, found.advice
    return {
        "n_jobs": found.all_jobs.n_jobs,
        "n_accelerators": found.cluster.n_accelerators,
        "n_unfit": outcome.n_unfit,
        "wall_s": outcome.wall_s,
        "jobs_per_wall_s": found.all_jobs.n_jobs / max(outcome.wall_s, 1e-9),
        "wait_s": pick(found.all_jobs, *WAITS),
        "by_team": pick_each(found.by_team, *WAITS),
        "by_size": pick_each(found.by_size, *WAITS),
        "utilization": pick(found.use, **{v: v for v in LAYERS.values()}),
        "goodput": found.use.goodput_frac,
        "lost_gpu_h": found.use.lost_accelerator_s / HOUR,
        "precision": found.use.precision_frac,
        "recall": found.use.recall_frac,
        "service_short_gpu_h": outcome.service_short_accelerator_s / HOUR,
        "bills": [_bill(bill) for bill in found.bills],
        "waits_for": pick_each(found.shares, "team", "holder", "wait_frac"),
        "policies": [_change(row) for row in advice.policies],
        "changes": [_change(row) for row in advice.changes],
        "last_useful": dict(advice.last_useful),
        "fractions": [_fraction(one) for one in advice.fractions],
        "advice_notes": list(advice.notes),
        "quotas": pick_each(
            advice.quotas, "team", "accelerator", "n_now", "n_advised", "wait_now_s", "wait_then_s"
        ),
    }


def _bill(bill: TeamBill) -> Document:
    return {
        **pick(bill, "team", "used_usd", "idle_usd", "service_usd", "cloud_usd", "total_usd"),
        "held_gpu_h": bill.held_accelerator_s / HOUR,
        "lost_gpu_h": bill.lost_accelerator_s / HOUR,
    }


def _change(row: PolicyRow) -> Document:
    document = pick(row, *CHANGE, "utilization_frac", "goodput_frac", "n_preempted", "n_violated")
    # A stream too short for an interval has none.
    return {k: None if isinstance(v, float) and np.isinf(v) else v for k, v in document.items()}


def wait_table(title: str, rows: Sequence[WaitRow]) -> Table:
    """Waits and slowdown, one row for each kind of jobs."""
    never = {">never start": lambda row: count(row.n_never)} if any(r.n_never for r in rows) else {}
    return table(
        title,
        rows,
        {
            "jobs": lambda row: row.name,
            ">number": lambda row: count(row.n_jobs),
            **never,
            ">wait p50": lambda row: span(row.wait_p50_s),
            ">p90": lambda row: span(row.wait_p90_s),
            ">p99": lambda row: span(row.wait_p99_s),
            ">slowdown p90": lambda row: f"{row.slowdown_p90_ratio:,.3g}",
            ">target p90": lambda row: "" if row.target_p90_s is None else span(row.target_p90_s),
            "": lambda row: "violated" if row.is_violated else "",
        },
    )


def _layer_table(found: ClusterSimulation) -> Table:
    use = found.use
    rows = [(name, percent(getattr(use, field))) for name, field in LAYERS.items()]
    rows += [
        ("goodput of allocated GPU time", percent(use.goodput_frac)),
        ("precision (useful share of paid GPU time)", percent(use.precision_frac)),
        ("recall (work started within its wait target)", percent(use.recall_frac)),
    ]
    return pairs("GPU time until the last submission", rows, "layer", "share")


def quota_rows(cluster: Cluster) -> list[Document]:
    """Quotas of every team, as they stand."""
    return [
        {
            "team": team.name,
            "cohort": team.cohort,
            **pick(quota, "accelerator", quota="n_accelerators", borrow="n_borrow", lend="n_lend"),
        }
        for team in cluster.teams
        for quota in team.quotas
    ]


def bill_table(found: ClusterSimulation) -> Table:
    """GPU-hours and, where there are prices, cost by team."""
    has_prices = any(bill.total_usd > 0 for bill in found.bills)
    columns = {
        "team": lambda bill: bill.team,
        ">GPU-hours": lambda bill: count(bill.held_accelerator_s / HOUR),
        ">lost": lambda bill: count(bill.lost_accelerator_s / HOUR),
    }
    if has_prices:
        columns |= {
            ">jobs": lambda bill: usd(bill.used_usd),
            ">services": lambda bill: usd(bill.service_usd),
            ">idle": lambda bill: usd(bill.idle_usd),
            ">cloud": lambda bill: usd(bill.cloud_usd),
            ">total": lambda bill: usd(bill.total_usd),
        }
    shown: list[TeamBill] = [b for b in found.bills if b.held_accelerator_s or b.total_usd]
    return table("Showback by team", shown, columns)


def _share_table(shares: Sequence[WaitShare]) -> Table:
    worst = sorted(shares, key=lambda one: -one.wait_frac)
    others = [one for one in worst if one.team != one.holder][:N_WORST]
    return table(
        "Who waits for whom",
        others,
        {
            "team": lambda one: one.team,
            "waits while GPUs are allocated to": lambda one: one.holder,
            ">share of its waiting": lambda one: percent(one.wait_frac),
        },
    )


def _change_table(title: str, rows: Sequence[PolicyRow]) -> Table:
    def saved(row: PolicyRow) -> str:
        sign = "" if row.saved_mean_s >= 0 else "-"
        mean = f"{sign}{span(abs(row.saved_mean_s))}"
        error = (row.saved_high_s - row.saved_low_s) / 2
        return mean if np.isinf(error) else f"{mean} ± {span(error)}"

    return table(
        title,
        rows,
        {
            "change": lambda row: row.name,
            ">mean wait": lambda row: span(row.wait_mean_s),
            ">p90": lambda row: span(row.wait_p90_s),
            ">saved (90 %)": saved,
            ">utilization": lambda row: percent(row.utilization_frac),
            ">preempted": lambda row: count(row.n_preempted),
            ">violated": lambda row: count(row.n_violated),
        },
    )


def _quota_table(rows: Sequence[QuotaAdvice]) -> Table:
    return table(
        "Quotas that meet the wait targets",
        rows,
        {
            "team": lambda row: row.team,
            "GPU": lambda row: row.accelerator,
            ">quota now": lambda row: f"{row.n_now:g}",
            ">advised": lambda row: "none does" if row.n_advised is None else f"{row.n_advised:g}",
            ">wait p90 now": lambda row: span(row.wait_now_s),
            ">then": lambda row: span(row.wait_then_s),
            ">target": lambda row: span(row.target_s),
        },
    )


def _fraction_table(advice: FractionAdvice) -> Table:
    """Ways to share GPUs of a type; the partition in the row of MIG."""
    cut = " + ".join(f"{n} × ({name})" for name, n in advice.partitions)
    return table(
        f"{advice.accelerator} for jobs on part of a GPU",
        advice.options,
        {
            "sharing": lambda one: one.way,
            ">GPUs": lambda one: count(one.n_accelerators),
            ">$/month": lambda one: "" if one.usd_per_month is None else usd(one.usd_per_month),
            "partition": lambda one: cut if one.way == "MIG" else "",
            "isolation": lambda one: one.isolation,
        },
    )


def _fraction(advice: FractionAdvice) -> Document:
    return {
        "accelerator": advice.accelerator,
        "slices": dict(advice.slices),
        "partitions": dict(advice.partitions),
        "options": pick_each(advice.options, "way", "n_accelerators", "usd_per_month", "isolation"),
    }


def _last_lines(found: ClusterSimulation) -> tuple[str, ...]:
    groups = {group.accelerator: group.n_accelerators for group in found.cluster.groups}
    return tuple(
        f"{name}: {count(n)} of {count(groups[name])}"
        + ("; fewer would make jobs wait longer" if n == groups[name] else "; the rest saves < 1 %")
        for name, n in found.advice.last_useful
    )


def eta_sheet(found: StartEstimate) -> Sheet:
    """When the job would start."""
    requested = found.request
    low, high = span(found.wait_low_s), span(found.wait_high_s)
    when = f"in about {span(found.wait_p50_s)} (80 %: {low} to {high})"
    if found.wait_high_s < MINUTE:
        when = "at once: the GPUs are free"
    gpus = plural(requested.n_accelerators, "GPU")
    head = f"{gpus} for {span(requested.duration_s)} would start {when}."
    body = {
        **pick(found, "wait_p50_s", "wait_low_s", "wait_high_s", "n_running", "n_queued"),
        **pick(found, "queued_accelerators", "n_record"),
        **pick(requested, "n_accelerators", "duration_s", "team", "accelerator", "at_s"),
    }
    rows = [
        ("jobs running", count(found.n_running)),
        ("jobs queued", count(found.n_queued)),
        ("GPUs that they wait for", count(found.queued_accelerators)),
        ("recent jobs that the range is taken from", count(found.n_record)),
    ]
    return result_sheet(
        body, [pairs("The cluster now", rows)], head=head, assumptions=found.assumptions
    )


def job_columns(found: ClusterSimulation) -> dict[str, object]:
    """Every job of the stream with what became of it, for a file."""
    jobs, outcome = found.jobs, found.found.jobs
    return {
        "submit_s": jobs.arrive_s,
        "team": [jobs.team_names[t] for t in jobs.team],
        "gpus": jobs.n_accelerators,
        "duration_s": jobs.duration_s,
        "start_s": outcome.start_s,
        "end_s": outcome.end_s,
        "wait_s": outcome.start_s - jobs.arrive_s,
        "n_preempted": outcome.n_preempted,
        "n_failed": outcome.n_failed,
        "held_gpu_s": outcome.held_accelerator_s,
        "lost_gpu_s": outcome.lost_accelerator_s,
        "node": outcome.node,
    }
