"""A diagnosis, ready to show: figures, causes with evidence, what to do, what it costs."""

import math
from typing import Any

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.telemetry.diagnosis import Diagnosis, Evidence, Layer, UseFigures, Verdict
from gpuplan.errors import Problem
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document
from gpuplan.units import HOUR, KWH

N_RECLAIMS, N_NAMES = 12, 3
WORDS = {True: "yes", False: "no", None: ""}


def diagnose_sheet(found: Diagnosis) -> Sheet:
    """The diagnosis in both forms."""
    tables = [*_use_tables(found.use), _verdict_table(found), _action_table(found)]
    if found.latencies:
        tables.append(_latency_table(found))
    if found.waste:
        tables.append(_waste_table(found))
    if found.teams:
        tables.append(_team_table(found))
    if found.reclaims:
        tables.append(_reclaim_table(found))
    quirks = tuple(f"{q.what}: {q.n_cases} ({q.done}) {q.where}"[:200] for q in found.quirks)
    return Sheet(
        document=diagnosis_document(found),
        tables=tuple(tables),
        head=_head(found),
        remarks=(
            ("Mind:", found.use.warnings if found.use else ()),
            ("Quality:", (found.quality.meaning,)),
            ("Odd in the source:", quirks),
            ("Assumed:", assumption_lines(found.assumptions)),
        ),
    )


def score_sheet(found: Diagnosis, broken: tuple[Problem, ...]) -> Sheet:
    """What a gate says: the figures, and every limit that is broken."""
    document = diagnosis_document(found)
    document["broken"] = [{"where": one.where, "what": one.what, "fix": one.fix} for one in broken]
    document["ok"] = not broken
    rows = tuple((one.where, one.what, one.fix) for one in broken)
    table = Table(title="Broken", columns=("limit", "found", "allowed or what to do"), rows=rows)
    return Sheet(
        document=document,
        tables=(*_use_tables(found.use), *((table,) if broken else ())),
        head=f"{len(broken)} of the limits are broken" if broken else "all limits are kept",
    )


def _head(found: Diagnosis) -> str:
    first = found.verdicts[0]
    use = ""
    if found.use is not None:
        use = f"mean {found.use.mean_frac:.0%}, peak {found.use.peak_frac:.0%}: "
    more = {True: "; more devices would help", False: "; more devices will not help", None: ""}
    return f"{use}{first.title}{more[first.more_devices_help]}"


def _use_tables(use: UseFigures | None) -> list[Table]:
    if use is None:
        return []
    bands = tuple(
        (
            one.name,
            f"{one.low_frac:.0%} to {one.high_frac:.0%}",
            f"{one.time_frac:.0%}",
            _bar(one.time_frac),
        )
        for one in use.bands
    )
    layers = tuple(
        (
            one.name,
            f"{one.mean_frac:.0%}",
            f"{one.p99_minute_frac:.0%}",
            f"{one.peak_minute_frac:.0%}",
            str(one.n_series),
        )
        for one in use.layers
    )
    title = f"Time in each band ({use.metric}); this pool can bear {use.safe_frac:.0%}"
    return [
        Table(title=title, columns=("band", "use", "time", ""), rows=bands, right=("time",)),
        Table(
            title="Layers of utilization",
            columns=("layer", "mean", "p99 minute", "peak minute", "series"),
            rows=layers,
            right=("mean", "p99 minute", "peak minute", "series"),
        ),
    ]


def _bar(share: float) -> str:
    return "█" * round(share * 30)


def _verdict_table(found: Diagnosis) -> Table:
    rows = tuple(
        (
            one.cause,
            one.severity,
            f"{one.confidence_frac:.0%}",
            "; ".join(_said(evidence) for evidence in one.evidence),
            _names(one),
            WORDS[one.more_devices_help],
        )
        for one in found.verdicts
    )
    columns = ("cause", "kind", "sure", "evidence", "where", "more devices help")
    return Table(title="Verdicts", columns=columns, rows=rows, right=("sure",))


def _said(evidence: Evidence) -> str:
    against = f" (against {evidence.against})" if evidence.against else ""
    return f"{evidence.what} {evidence.found}{against}"


def _names(verdict: Verdict) -> str:
    if not verdict.subjects:
        return "all"
    rest = len(verdict.subjects) - N_NAMES
    return ", ".join(verdict.subjects[:N_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _action_table(found: Diagnosis) -> Table:
    rows = tuple(
        (
            one.cause,
            str(k),
            action.what,
            action.effect,
            _gain(action.gain_low_frac, action.gain_high_frac),
            action.cost,
        )
        for one in found.verdicts
        for k, action in enumerate(one.actions, start=1)
    )
    columns = ("cause", "", "what to do", "effect", "gain", "cost")
    return Table(title="What helps, best first", columns=columns, rows=rows)


def _gain(low: float, high: float) -> str:
    return f"+{low:.0%} to +{high:.0%}" if high > 0 else ""


def _latency_table(found: Diagnosis) -> Table:
    rows = tuple(
        (name.removesuffix("_s"), *(f"{value * 1e3:,.0f} ms" for value in values))
        for name, *values in found.latencies
    )
    return Table(
        title="Latency from histograms",
        columns=("what", "p50", "p95", "p99"),
        rows=rows,
        right=("p50", "p95", "p99"),
    )


def _waste_table(found: Diagnosis) -> Table:
    rows = tuple(
        (
            one.cause,
            f"{one.accelerator_s / HOUR:,.1f}",
            _usd(one.usd),
            "" if one.energy_j is None else f"{one.energy_j / KWH:,.1f}",
        )
        for one in found.waste
    )
    columns = ("idle time", "accelerator-h", "USD", "kWh")
    return Table(title="Paid and not used", columns=columns, rows=rows, right=columns[1:])


def _usd(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def _team_table(found: Diagnosis) -> Table:
    rows = tuple(
        (
            one.team,
            f"{one.accelerator_s / HOUR:,.1f}",
            f"{one.busy_frac:.0%}",
            f"{one.idle_s / HOUR:,.1f}",
            _usd(one.usd),
        )
        for one in found.teams
    )
    columns = ("team", "accelerator-h", "busy", "idle h", "USD")
    return Table(title="By team", columns=columns, rows=rows, right=columns[1:])


def _reclaim_table(found: Diagnosis) -> Table:
    rows = tuple(
        (
            one.subject,
            one.team or "?",
            one.job or "?",
            f"{(one.end_s - one.begin_s) / HOUR:,.1f} h",
            f"{one.memory_held_bytes / 1e9:,.1f} GB",
            _usd(one.usd_per_month),
        )
        for one in found.reclaims[:N_RECLAIMS]
    )
    n_shown = min(len(found.reclaims), N_RECLAIMS)
    title = f"Held and unused: {n_shown} of {len(found.reclaims)}; ask first"
    columns = ("device", "owner", "job", "idle for", "holds", "USD/month")
    return Table(title=title, columns=columns, rows=rows, right=("holds", "USD/month"))


# ── for machines ─────────────────────────────────────────────────────────────────────────────────


def diagnosis_document(found: Diagnosis) -> dict[str, Any]:
    """The diagnosis with every figure."""
    use = found.use
    return {
        "schema_version": SCHEMA_VERSION,
        "source": found.source,
        "mean": None if use is None else use.mean_frac,
        "peak": None if use is None else use.peak_frac,
        "safe": None if use is None else use.safe_frac,
        "bands": {} if use is None else {one.name: one.time_frac for one in use.bands},
        "layers": [] if use is None else [_layer(one) for one in use.layers],
        "n_devices": 0 if use is None else use.n_devices,
        "span_s": 0.0 if use is None else use.span_s,
        "warnings": [] if use is None else list(use.warnings),
        "verdicts": [_verdict(one) for one in found.verdicts],
        "precision": found.quality.precision_frac,
        "recall": found.quality.recall_frac,
        "f_beta": found.quality.f_beta_ratio,
        "beta": found.quality.beta_ratio,
        "quality_meaning": found.quality.meaning,
        **_holdings(found),
        "quirks": [
            {"what": q.what, "where": q.where, "n_cases": q.n_cases, "done": q.done}
            for q in found.quirks
        ],
        "assumptions": assumptions_document(found.assumptions),
    }


def _holdings(found: Diagnosis) -> dict[str, Any]:
    """What was paid for, by whom, and what became of it."""
    return {
        "latency_s": {
            name: {"p50": p50, "p95": p95, "p99": p99} for name, p50, p95, p99 in found.latencies
        },
        "waste": [
            {
                "cause": w.cause,
                "accelerator_h": w.accelerator_s / HOUR,
                "usd": w.usd,
                "energy_j": w.energy_j,
            }
            for w in found.waste
        ],
        "teams": [
            {
                "team": t.team,
                "accelerator_h": t.accelerator_s / HOUR,
                "busy_frac": t.busy_frac,
                "idle_h": t.idle_s / HOUR,
                "usd": t.usd,
            }
            for t in found.teams
        ],
        "reclaim": [
            {
                "device": r.subject,
                "team": r.team,
                "job": r.job,
                "begin_s": r.begin_s,
                "end_s": r.end_s,
                "usd_per_month": r.usd_per_month,
                "memory_held_bytes": r.memory_held_bytes,
            }
            for r in found.reclaims
        ],
        "phases": [
            {
                "node": p.node,
                "begin_s": p.begin_s,
                "end_s": p.end_s,
                "state": p.state,
                "phase": p.phase,
            }
            for p in found.phases
        ],
    }


def _layer(one: Layer) -> dict[str, Any]:
    return {
        "name": one.name,
        "metric": one.metric,
        "mean": one.mean_frac,
        "p99_minute": one.p99_minute_frac,
        "peak_minute": one.peak_minute_frac,
        "n_series": one.n_series,
    }


def _verdict(one: Verdict) -> dict[str, Any]:
    return {
        "cause": one.cause,
        "title": one.title,
        "severity": one.severity,
        "confidence": one.confidence_frac,
        "share": one.share_frac,
        "more_gpus_help": one.more_devices_help,
        "subjects": list(one.subjects),
        "evidence": [
            {"what": e.what, "found": e.found, "against": e.against} for e in one.evidence
        ],
        "actions": [
            {
                "what": a.what,
                "effect": a.effect,
                "cost": a.cost,
                "gain_low": a.gain_low_frac,
                "gain_high": a.gain_high_frac,
            }
            for a in one.actions
        ],
    }


def is_drawable(found: Diagnosis) -> bool:
    """Whether there is something over time to draw."""
    return found.heat is not None and not all(math.isnan(v) for v in found.heat.use_frac.ravel())
