"""The next best measurement of a plan, ready to show."""

from gpuplan.domain.plan.probe import Probe, ProbeAdvice, ProbeCost
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.document import Document, pick_each, result_sheet
from gpuplan.report.formats import plural, usd
from gpuplan.report.plan.headline import with_names
from gpuplan.report.table import table
from gpuplan.units import MINUTE


def probe_sheet(found: ProbeAdvice) -> Sheet:
    """What to run, its cost and worth, the commands, and how results come back."""
    numbered = list(enumerate(found.probes, start=1))
    return result_sheet(
        _body(found),
        _tables(found),
        head=_head(found),
        remarks=[
            *((f"Run {place}:", _commands(probe)) for place, probe in numbered),
            ("Then:", [f"{each.what}: {each.command}" for each in found.after]),
            ("Notes:", found.lines),
        ],
        assumptions=found.assumptions,
    )


def _tables(found: ProbeAdvice) -> list[Table]:
    runs = {
        "run": lambda row: f"{row[0]}. {with_names(row[1].subject)}",
        "concurrency": lambda row: ", ".join(str(n) for n in row[1].concurrency),
        ">minutes": lambda row: f"{row[1].cost.duration_s / MINUTE:.0f}",
        ">$": lambda row: f"{row[1].cost.usd:,.2f}",
        ">worth $": lambda row: f"{row[1].cost.value_usd:,.0f}",
        "step time, 80 % now": lambda row: _range(row[1].range_before),
        "after": lambda row: _range(row[1].range_after),
    }
    changes = {
        "run": lambda row: str(row[0]),
        "the plan would change to": lambda row: with_names(row[1].fleet),
        ">probability": lambda row: f"{row[1].probability_frac:.0%}",
        ">$/month": lambda row: f"{row[1].extra_usd_per_month:+,.0f}",
    }
    numbered = list(enumerate(found.probes, start=1))
    flat = [(place, change) for place, probe in numbered for change in probe.changes]
    return [
        table("Runs worth their cost, best first", numbered, runs),
        table("Decisions that a run could change", flat, changes),
    ]


def _head(found: ProbeAdvice) -> str:
    now = f"{with_names(found.fleet)}, {usd(found.usd_per_month)}/month"
    if not found.probes:
        return f"Buy {now} as planned: no short run is worth its cost."
    cost = sum(probe.cost.usd for probe in found.probes)
    minutes = sum(probe.cost.duration_s for probe in found.probes) / MINUTE
    worth = found.probes[0].cost.value_usd
    runs = plural(len(found.probes), "short run")
    return (
        f"Before buying {now}, make {runs} ({minutes:.0f} minutes, {usd(cost)}): the first alone "
        f"is expected to save {usd(worth)} over {found.n_months:g} months."
    )


def _commands(probe: Probe) -> list[str]:
    return [f"{each.what}: {each.command}" for each in probe.commands]


def _range(ends: tuple[float, float]) -> str:
    return f"x{ends[0]:.2f} … x{ends[1]:.2f}"


def _body(found: ProbeAdvice) -> Document:
    return {
        "kind": "probe",
        "name": found.name,
        "fleet": found.fleet,
        "usd_per_month": found.usd_per_month,
        "months": found.n_months,
        "probes": [_document(probe) for probe in found.probes],
        "considered": [{"run": name, **_cost(cost)} for name, cost in found.considered],
        "after": pick_each(found.after, "what", "command"),
        "lines": list(found.lines),
    }


def _document(probe: Probe) -> Document:
    return {
        "workload": probe.workload,
        "subject": probe.subject,
        "concurrency": list(probe.concurrency),
        **_cost(probe.cost),
        "step_time_range_before": list(probe.range_before),
        "step_time_range_after": list(probe.range_after),
        "changes": pick_each(probe.changes, "fleet", "probability_frac", "extra_usd_per_month"),
        "commands": pick_each(probe.commands, "what", "command"),
    }


def _cost(cost: ProbeCost) -> Document:
    return {
        "duration_s": cost.duration_s,
        "cost_usd": cost.usd,
        "value_usd": cost.value_usd,
        "net_usd": cost.net_usd,
    }
