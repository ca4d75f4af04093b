"""A simulated run as a document and tables."""

from typing import Any

from gpuplan.domain.outcome import Outcome, Summary
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.simulation import Simulation
from gpuplan.report.fit import precision_name
from gpuplan.report.numbers import count
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document
from gpuplan.units import MS

Document = dict[str, Any]
MEASURES = (("ttft", "first token"), ("tpot", "per token after the first"),
            ("e2e", "whole answer"), ("wait", "in the queue"))  # fmt: skip
PERCENTILES = ("p50", "p90", "p95", "p99")
N_SHOWN_BINS = 20


def simulate_sheet(found: Simulation) -> Sheet:
    """One run, ready to show."""
    refused = tuple(f"{why}: {count(n)} requests" for why, n in found.outcome.refused)
    return Sheet(
        document=simulate_document(found),
        tables=(_latency_table(found), _totals_table(found), _use_table(found, N_SHOWN_BINS)),
        whole_tables=(_latency_table(found), _totals_table(found), _use_table(found, None)),
        head=_head(found),
        remarks=(
            ("Refused:", refused),
            ("Assumed:", assumption_lines(found.outcome.assumptions)),
        ),
    )


def verdict(found: Simulation) -> str:
    """One word: overloaded, missed where a promise is broken too often, else kept."""
    if found.statistics.is_overloaded:
        return "overloaded"
    if found.outcome.n_completed == 0:
        return "nothing served"
    return "within limits" if found.statistics.recall_frac >= 0.99 else "objective missed"


def simulate_document(found: Simulation) -> Document:
    """The machine-readable run."""
    statistics, outcome = found.statistics, found.outcome
    return {
        "schema_version": SCHEMA_VERSION,
        **_setup_document(found),
        "n_requests": len(outcome.requests),
        "n_completed": outcome.n_completed,
        "n_refused": outcome.n_refused,
        "refused": dict(outcome.refused),
        "wall_s": found.wall_s,
        "requests_per_wall_s": len(outcome.requests) / max(found.wall_s, 1e-9),
        **{f"{name}_s": _summary(getattr(statistics, name)) for name, _ in MEASURES},
        "tpot_definition": "(last token - first token) / (tokens - 1), answers of 2 tokens or more",
        "n_measured": statistics.n_measured,
        "simulated_s": outcome.totals.span_s,
        "output_tokens_per_s": statistics.output_tokens_per_s,
        "n_iterations": outcome.totals.n_steps,
        "n_preemptions": outcome.totals.n_preemptions,
        "utilization": _use_document(outcome, statistics.busy_frac),
        "precision": statistics.precision_frac,
        "recall": statistics.recall_frac,
        "backlog_growth_requests_per_s": statistics.backlog_requests_per_s,
        "verdict": verdict(found),
        "assumptions": assumptions_document(outcome.assumptions),
    }


def _setup_document(found: Simulation) -> Document:
    setup, limits = found.setup, found.fleet.limits
    return {
        "model": setup.model.name,
        "accelerator": setup.accelerator.id,
        "tp": setup.layout.tp,
        "replicas": found.fleet.n_engines,
        "router": found.fleet.router,
        "weights_precision": precision_name(setup.storage),
        "kv_precision": setup.storage.cache.name,
        "engine": setup.engine.name,
        "engine_version": setup.engine.version,
        "max_num_seqs": limits.max_sequences,
        "max_num_batched_tokens": limits.max_batch_tokens,
        "kv_blocks": limits.n_blocks,
        "slo_s": {"ttft": found.slo.ttft_s, "tpot": found.slo.tpot_s, "e2e": found.slo.e2e_s},
    }


def _summary(summary: Summary | None) -> Document | None:
    if summary is None:
        return None
    return {
        "mean": summary.mean_s,
        **{p: getattr(summary, f"{p}_s") for p in PERCENTILES},
        "mean_low": summary.mean_low_s,
        "mean_high": summary.mean_high_s,
    }


def _use_document(outcome: Outcome, busy_frac: float) -> Document:
    use, span_s = outcome.use, outcome.totals.span_s
    n_bins = span_s / use.bin_s if span_s > 0 else 1.0
    return {
        "busy": busy_frac,
        "kv_cache": float(use.cache_frac.sum()) / n_bins,
        "compute": float(use.compute_frac.sum()) / n_bins,
        "bandwidth": float(use.bandwidth_frac.sum()) / n_bins,
        "bin_s": use.bin_s,
        "over_time": {
            "busy": use.busy_frac.tolist(),
            "kv_cache": use.cache_frac.tolist(),
            "compute": use.compute_frac.tolist(),
            "bandwidth": use.bandwidth_frac.tolist(),
        },
    }


def _head(found: Simulation) -> str:
    setup, n = found.setup, found.fleet.n_engines
    return (
        f"{setup.model.name} in {precision_name(setup.storage)} on {n} x {setup.layout.tp} "
        f"{setup.accelerator.name}, {setup.engine.name} {setup.engine.version}: "
        f"{count(found.outcome.n_completed)} of {count(len(found.outcome.requests))} requests "
        f"served, {verdict(found)}"
    )


def _latency_table(found: Simulation) -> Table:
    rows = []
    for name, label in MEASURES:
        summary: Summary | None = getattr(found.statistics, name)
        if summary is not None:
            figures = (summary.mean_s, *(getattr(summary, f"{p}_s") for p in PERCENTILES))
            rows.append((label, *(f"{figure / MS:,.1f}" for figure in figures)))
    columns = ("time", "mean ms", *(f"{p} ms" for p in PERCENTILES))
    return Table(title="What users feel", columns=columns, rows=tuple(rows), right=columns[1:])


def _totals_table(found: Simulation) -> Table:
    statistics, totals = found.statistics, found.outcome.totals
    rows = (
        ("output tokens a second", f"{statistics.output_tokens_per_s:,.0f}"),
        ("busy share of the time", f"{100 * statistics.busy_frac:.1f} %"),
        ("precision: useful share of paid time", f"{100 * statistics.precision_frac:.1f} %"),
        ("recall: requests within the objective", f"{100 * statistics.recall_frac:.1f} %"),
        ("preemptions", count(totals.n_preemptions)),
        ("iterations", count(totals.n_steps)),
        ("simulated", f"{totals.span_s:,.1f} s"),
        ("requests simulated a second", f"{len(found.outcome.requests) / found.wall_s:,.0f}"),
    )
    return Table(title="The fleet", columns=("measure", "value"), rows=rows, right=("value",))


def _use_table(found: Simulation, n_most: int | None) -> Table:
    use = found.outcome.use
    columns = ("from", "busy", "key-value cache", "compute", "bandwidth")
    parts = (use.busy_frac, use.cache_frac, use.compute_frac, use.bandwidth_frac)
    rows = tuple(
        (_clock(b * use.bin_s), *(f"{100 * part[b]:.0f} %" for part in parts))
        for b in range(len(use.busy_frac))
    )
    shown = rows if n_most is None else rows[:n_most]
    rest = f"; the first {n_most} of {len(rows)}" if len(shown) < len(rows) else ""
    title = f"Use over time, bins of {use.bin_s:,.0f} s{rest}"
    return Table(title=title, columns=columns, rows=shown, right=columns[1:])


def _clock(seconds: float) -> str:
    minutes = int(seconds // 60)
    return f"{minutes // 60}:{minutes % 60:02d}"
