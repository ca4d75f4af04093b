"""A diagnosis, ready to show: figures, causes with evidence, what to do, what it costs.

Figures beside a diagnosis, ready to show: minutes, stretches, backlog, targets, work.
"""

from collections.abc import Iterator

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.telemetry.diagnosis import Diagnosis, Evidence, UseFigures, Verdict
from gpuplan.domain.telemetry.figures import BandsOverTime, Packing, ServiceFigures
from gpuplan.errors import Problem
from gpuplan.report.document import Document, pick, pick_each, result_sheet
from gpuplan.report.table import table
from gpuplan.units import GB, HOUR, KWH, MINUTE, MS

N_RECLAIMS, N_NAMES = 12, 3
N_BAR = 30  # cells of a full bar
WORDS = {True: "yes", False: "no", None: ""}


def diagnose_sheet(found: Diagnosis) -> Sheet:
    """The diagnosis in both forms."""
    quirks = [f"{q.what}: {q.n_cases} ({q.done}) {q.where}"[:200] for q in found.quirks]
    return result_sheet(
        _body(found),
        [*_utilization_tables(found.use), *_tables(found)],
        head=_head(found),
        remarks=[
            ("Warnings:", found.use.warnings if found.use else ()),
            ("Quality:", (found.quality.meaning,)),
            ("Odd in the source:", quirks),
        ],
        assumptions=found.assumptions,
    )


def score_sheet(found: Diagnosis, broken: tuple[Problem, ...]) -> Sheet:
    """What a gate says: the figures, and every limit that is violated."""
    body = {**_body(found), "broken": pick_each(broken, "where", "what", "fix"), "ok": not broken}
    columns = {
        "limit": lambda p: p.where,
        "observed": lambda p: p.what,
        "allowed, or what to do": lambda p: p.fix,
    }
    return result_sheet(
        body,
        [*_utilization_tables(found.use), table("Violated limits", broken, columns)],
        head=f"{len(broken)} of the limits violated" if broken else "all limits met",
        assumptions=found.assumptions,
    )


def _head(found: Diagnosis) -> str:
    first = found.verdicts[0]
    use = ""
    if found.use is not None:
        use = f"utilization mean {found.use.mean_frac:.0%}, peak {found.use.peak_frac:.0%}: "
    more = {True: "; more GPUs would help", False: "; more GPUs will not help", None: ""}
    return f"{use}{first.title}{more[first.more_devices_help]}"


def _utilization_tables(use: UseFigures | None) -> Iterator[Table]:
    if use is None:
        return
    bands = {
        "band": lambda b: b.name,
        "utilization": lambda b: f"{b.low_frac:.0%} to {b.high_frac:.0%}",
        ">share of time": lambda b: f"{b.time_frac:.0%}",
        "": lambda b: "█" * round(N_BAR * b.time_frac),
    }
    layers = {
        "layer": lambda x: x.name,
        ">mean": lambda x: f"{x.mean_frac:.0%}",
        ">p99 minute": lambda x: f"{x.p99_minute_frac:.0%}",
        ">peak minute": lambda x: f"{x.peak_minute_frac:.0%}",
        ">series": lambda x: str(x.n_series),
    }
    safe = f"safe utilization of this pool: {use.safe_frac:.0%}"
    if use.over_time is not None:
        low = use.over_time.suggested_low_frac
        safe = f"suggested for this pool: {low:.0%} to {use.safe_frac:.0%}"
    metric = use.metric.removesuffix("_frac").replace("_", " ")
    yield table(f"Time in each utilization band ({metric}); {safe}", use.bands, bands)
    yield table("Layers of utilization", use.layers, layers)


def _tables(found: Diagnosis) -> Iterator[Table]:
    yield _verdict_table(found)
    yield _action_table(found)
    latencies = {
        "latency": lambda row: row[0].removesuffix("_s"),
        ">p50 (ms)": lambda row: f"{row[1] / MS:,.0f}",
        ">p95 (ms)": lambda row: f"{row[2] / MS:,.0f}",
        ">p99 (ms)": lambda row: f"{row[3] / MS:,.0f}",
    }
    waste = {
        "lost time": lambda w: w.cause,
        ">GPU-hours": lambda w: f"{w.accelerator_s / HOUR:,.1f}",
        ">$": lambda w: _usd(w.usd),
        ">$/month": lambda w: _usd(w.usd_per_month),
        ">kWh": lambda w: "" if w.energy_j is None else f"{w.energy_j / KWH:,.1f}",
    }
    teams = {
        "team": lambda t: t.team,
        ">GPU-hours": lambda t: f"{t.accelerator_s / HOUR:,.1f}",
        ">busy": lambda t: f"{t.busy_frac:.0%}",
        ">idle (h)": lambda t: f"{t.idle_s / HOUR:,.1f}",
        ">$": lambda t: _usd(t.usd),
    }
    yield table("Latency from histograms", found.latencies, latencies)
    yield from service_tables(found.quality.service)
    yield table("Paid and lost", found.waste, waste)
    yield table("By team", found.teams, teams)
    yield _reclaim_table(found)
    yield _packing_table(found.use.packing if found.use else None)


def _packing_table(packing: Packing | None) -> Table:
    columns = {
        "GPU": lambda p: p.accelerator,
        "MIG profile": lambda p: p.profile,
        ">GPUs now": lambda p: str(p.n_before),
        ">GPUs packed": lambda p: str(p.n_after),
        ">saved ($/month)": lambda p: _usd(p.usd_per_month),
    }
    return table("Small work packed onto MIG slices", [packing] if packing else [], columns)


def _verdict_table(found: Diagnosis) -> Table:
    columns = {
        "cause": lambda v: v.cause.replace("_", " "),
        "severity": lambda v: v.severity,
        ">confidence": lambda v: f"{v.confidence_frac:.0%}",
        "evidence": lambda v: "; ".join(_evidence(e) for e in v.evidence),
        "where": _names,
        "more GPUs help": lambda v: WORDS[v.more_devices_help],
    }
    return table("Verdicts", found.verdicts, columns)


def _evidence(evidence: Evidence) -> str:
    against = f" (against {evidence.against})" if evidence.against else ""
    return f"{evidence.what} {evidence.found}{against}"


def _names(verdict: Verdict) -> str:
    if not verdict.subjects:
        return "all"
    rest = len(verdict.subjects) - N_NAMES
    return ", ".join(verdict.subjects[:N_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _action_table(found: Diagnosis) -> Table:
    ranked = [(v.cause, k, a) for v in found.verdicts for k, a in enumerate(v.actions, start=1)]
    columns = {
        "cause": lambda row: row[0].replace("_", " "),
        "": lambda row: str(row[1]),
        "action": lambda row: row[2].what,
        "effect": lambda row: row[2].effect,
        "gain": lambda row: _gain(row[2].gain_low_frac, row[2].gain_high_frac),
        "cost": lambda row: row[2].cost,
    }
    return table("Actions, best first", ranked, columns)


def _gain(low: float, high: float) -> str:
    if high <= 0:
        return ""
    return f"+{high:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"+{low:.0%} to +{high:.0%}"


def _usd(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def _reclaim_table(found: Diagnosis) -> Table:
    columns = {
        "GPU": lambda r: r.subject,
        "owner": lambda r: r.team or "?",
        "job": lambda r: r.job or "?",
        ">idle (h)": lambda r: f"{(r.end_s - r.begin_s) / HOUR:,.1f}",
        ">memory allocated (GB)": lambda r: f"{r.memory_held_bytes / GB:,.1f}",
        ">$/month": lambda r: _usd(r.usd_per_month),
    }
    shown = found.reclaims[:N_RECLAIMS]
    title = f"Reserved and idle: {len(shown)} of {len(found.reclaims)}; ask the owner first"
    return table(title, shown, columns)


# ── for machines ─────────────────────────────────────────────────────────────────────────────────


def _body(found: Diagnosis) -> Document:
    """The diagnosis with every figure."""
    return {
        "source": found.source,
        **_utilization(found.use),
        "verdicts": [_verdict(one) for one in found.verdicts],
        **pick(found.quality, precision="precision_frac", recall="recall_frac"),
        **pick(found.quality, f_beta="f_beta_ratio", beta="beta_ratio", quality_meaning="meaning"),
        **_holdings(found),
        **service_body(found.quality.service),
        "quirks": pick_each(found.quirks, "what", "where", "n_cases", "done"),
    }


def _utilization(use: UseFigures | None) -> Document:
    if use is None:
        unknown = dict.fromkeys(("mean", "peak", "safe"))
        return {
            **unknown,
            "bands": {},
            "layers": [],
            "packing": None,
            "n_devices": 0,
            "span_s": 0.0,
            "warnings": [],
        }
    minutes = {"p99_minute": "p99_minute_frac", "peak_minute": "peak_minute_frac"}
    return {
        **pick(use, mean="mean_frac", peak="peak_frac", safe="safe_frac"),
        "bands": {one.name: one.time_frac for one in use.bands},
        "layers": pick_each(use.layers, "name", "metric", "n_series", mean="mean_frac", **minutes),
        **pick(use, "n_devices", "span_s", "warnings"),
        **times_body(use.over_time),
        "packing": use.packing
        and pick(use.packing, "accelerator", "profile", "n_before", "n_after", "usd_per_month"),
    }


def _holdings(found: Diagnosis) -> Document:
    """What was paid for, by whom, and what became of it."""
    reserved = ("team", "job", "begin_s", "end_s", "usd_per_month", "memory_held_bytes")
    return {
        "latency_s": {
            name: {"p50": p50, "p95": p95, "p99": p99} for name, p50, p95, p99 in found.latencies
        },
        "waste": [
            {
                **pick(w, "cause", "usd", "usd_per_month", "energy_j"),
                "accelerator_h": w.accelerator_s / HOUR,
            }
            for w in found.waste
        ],
        "teams": [
            {
                **pick(t, "team", "busy_frac", "usd"),
                "accelerator_h": t.accelerator_s / HOUR,
                "idle_h": t.idle_s / HOUR,
            }
            for t in found.teams
        ],
        "reclaim": pick_each(found.reclaims, *reserved, device="subject"),
        "phases": pick_each(found.phases, "node", "begin_s", "end_s", "state", "phase"),
    }


def _verdict(one: Verdict) -> Document:
    gains = {"gain_low": "gain_low_frac", "gain_high": "gain_high_frac"}
    return {
        **pick(one, "cause", "title", "severity", "subjects", confidence="confidence_frac"),
        **pick(one, share="share_frac", more_gpus_help="more_devices_help"),
        "evidence": pick_each(one.evidence, "what", "found", "against"),
        "actions": pick_each(one.actions, "what", "effect", "cost", "n_replicas", **gains),
    }


def times_body(times: BandsOverTime | None) -> Document:
    """Minutes with their bands, stretches, and the band that suits this pool."""
    if times is None:
        return {"minutes": [], "episodes": [], "suggested_band": None, "tail": None}
    tail = {"calm": "calm_frac", "utilization": "use_frac", "wait_growth": "wait_growth_ratio"}
    return {
        "minutes": pick_each(times.minutes, "at_s", "band", utilization="use_frac"),
        "episodes": pick_each(times.episodes, "band", "begin_s", "end_s"),
        "suggested_band": {"low": times.suggested_low_frac, "high": times.suggested_high_frac},
        "tail": times.tail and pick(times.tail, "n_devices", **tail),
    }


def service_body(service: ServiceFigures) -> Document:
    """Backlog, SLO and work as a document; None where nothing says it."""
    backlog = {
        "waiting_requests": "n_waiting_requests",
        "clear_s_with_one_more_replica": "clear_s",
        "n_more_replicas": "n_replicas_more",
    }
    rates = ("growth_requests_per_s", "served_requests_per_s", "deficit_frac")
    tokens = ("output_tokens_per_s", "input_tokens_per_s", "j_per_output_token")
    return {
        "backlog": service.backlog and pick(service.backlog, *rates, **backlog),
        "slo": service.slo
        and pick(
            service.slo, "limit_s", "attainment_frac", "binding_phase", burn_rate="burn_rate_ratio"
        ),
        "work": service.work and pick(service.work, *tokens, "mfu_frac", "mbu_frac"),
    }


def service_tables(service: ServiceFigures) -> Iterator[Table]:
    """What engines say, each a row with its value."""
    rows = [*_backlog(service), *_slo(service), *_work(service)]
    columns = {"figure": lambda row: row[0], ">value": lambda row: row[1]}
    yield table("Service and work", rows, columns)


def _backlog(service: ServiceFigures) -> Iterator[tuple[str, str]]:
    found = service.backlog
    if found is None:
        return
    yield "requests waiting", f"{found.n_waiting_requests:,.0f}"
    yield "growth of the backlog (requests/s)", f"{found.growth_requests_per_s:.2f}"
    if found.deficit_frac is not None:
        yield "deficit (share of demand)", f"{found.deficit_frac:.0%}"
    if found.clear_s is not None:
        yield "time to clear with one replica more (min)", f"{found.clear_s / MINUTE:,.0f}"
    if found.n_replicas_more is not None:
        yield "replicas more that drain it", str(found.n_replicas_more)


def _slo(service: ServiceFigures) -> Iterator[tuple[str, str]]:
    found = service.slo
    if found is None:
        return
    yield f"SLO attainment (TTFT within {found.limit_s:g} s)", f"{found.attainment_frac:.1%}"
    yield "burn rate of the error budget (1 %)", f"{found.burn_rate_ratio:.1f}"
    yield "binding phase", found.binding_phase


def _work(service: ServiceFigures) -> Iterator[tuple[str, str]]:
    found = service.work
    if found is None:
        return
    yield "output tokens/s", f"{found.output_tokens_per_s:,.0f}"
    if found.j_per_output_token is not None:
        yield "energy per output token (J)", f"{found.j_per_output_token:.3g}"
    if found.mfu_frac is not None:
        yield "model FLOPs utilization (MFU)", f"{found.mfu_frac:.1%}"
    if found.mbu_frac is not None:
        yield "model bandwidth utilization (MBU, weights)", f"{found.mbu_frac:.1%}"
