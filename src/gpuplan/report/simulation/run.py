"""A simulated run as a document and tables."""

from typing import Any

from gpuplan.domain.inference.serving import LoraUse
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.simulation.batching import BatchPolicy
from gpuplan.domain.simulation.outcome import Summary
from gpuplan.domain.simulation.simulation import (
    NetworkSimulation,
    Simulation,
    SmallestFleet,
    StreamedSimulation,
)
from gpuplan.report.formats import count
from gpuplan.report.prediction.fit import precision_name
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document
from gpuplan.report.simulation.classes import class_documents, class_tables
from gpuplan.report.simulation.load import load_document, load_lines
from gpuplan.report.simulation.totals import totals_table
from gpuplan.report.simulation.utilization import share, use_document, use_table
from gpuplan.units import KWH, MS

Document = dict[str, Any]
Served = Simulation | StreamedSimulation
Run = Served | NetworkSimulation
MEASURES = (
    ("ttft", "first token"),
    ("tpot", "per token after the first"),
    ("e2e", "whole answer"),
    ("wait", "in the queue"),
)
PERCENTILES = ("p50", "p90", "p95", "p99", "p999")
DEFINITIONS = {
    "ttft": "arrival to first token, with what a request takes outside the engine",
    "tpot": "(last token - first token) / (tokens - 1), answers of 2 tokens or more",
    "itl_mean": "mean of all single gaps between tokens, over all answers",
    "itl": "single gaps between tokens of all answers, whole run; null unless --itl",
    "e2e": "arrival to last token",
    "wait": "arrival to the first iteration that reads the prompt",
    "intervals": "95 %, by 20 batches of consecutive requests; null: the run is too short",
    "precision": "share of the paid accelerator time that worked on requests within the objective",
    "recall": "share of the requests served within the objective; refused ones are missed",
}
N_SHOWN_BINS = 20


def simulate_sheet(found: Run) -> Sheet:
    """One run, ready to show."""
    refused = tuple(f"{why}: {count(n)} requests" for why, n in found.outcome.refused)
    first = (_latency_table(found), *class_tables(found), totals_table(found))
    return Sheet(
        document=simulate_document(found),
        tables=(*first, use_table(found.outcome, N_SHOWN_BINS)),
        whole_tables=(*first, _interval_table(found), use_table(found.outcome, None)),
        head=_head(found),
        remarks=(
            ("Overloaded:", overload_lines(found)),
            ("Too small:", away_lines(found)),
            ("Refused:", refused),
            ("Measured:", _measured_lines(found)),
            ("Assumed:", assumption_lines(found.outcome.assumptions)),
        ),
    )


def verdict(found: Run) -> str:
    """One word: overloaded, missed where a promise is broken too often, else kept."""
    if found.statistics.is_overloaded:
        return "overloaded"
    if found.outcome.n_completed == 0:
        return "nothing served"
    if found.statistics.recall_frac >= found.slo.kept_frac:
        return "within limits"
    return "objective missed" if found.slo.is_given else "not all served"


def overload_lines(found: Run) -> tuple[str, ...]:
    """How fast the queue grows, and what would hold the load."""
    if not found.statistics.is_overloaded:
        return ()
    growth = found.statistics.backlog_requests_per_s
    lines = [f"the queue grows by {growth:,.2f} requests a second: waits have no upper limit"]
    if found.holding is not None:
        lines.append(holding_line(found.holding))
    return tuple(lines)


def away_lines(found: Run) -> tuple[str, ...]:
    """Of a fleet that turns requests away instead of queueing them, what would serve them."""
    if found.statistics.is_overloaded or found.holding is None:
        return ()
    return ("requests are refused, or given up by their clients", holding_line(found.holding))


def holding_line(holding: SmallestFleet) -> str:
    """The smallest fleet, and what shows that it is the smallest."""
    if holding.n_replicas is None:
        most = max(point.n_replicas for point in holding.tried)
        return f"not even {most:,} replicas hold it ({holding.criterion})"
    below = [p for p in holding.tried if p.n_replicas == holding.n_replicas - 1]
    proof = f"; {below[0].n_replicas:,} do not" if below else ""
    return f"{holding.n_replicas:,} replicas would hold it ({holding.criterion}{proof})"


def simulate_document(found: Run) -> Document:
    """The machine-readable run."""
    statistics, outcome = found.statistics, found.outcome
    return {
        "schema_version": SCHEMA_VERSION,
        **_setup_document(found),
        "n_requests": outcome.n_requests,
        "n_completed": outcome.n_completed,
        "n_refused": outcome.n_refused,
        "refused": dict(outcome.refused),
        "wall_s": found.wall_s,
        "requests_per_wall_s": outcome.n_requests / max(found.wall_s, 1e-9),
        **{f"{name}_s": _summary(getattr(statistics, name)) for name, _ in MEASURES},
        "itl_mean_s": statistics.delivery.itl_mean_s,
        "itl_s": _gaps_document(found),
        "definitions": DEFINITIONS,
        "tpot_definition": DEFINITIONS["tpot"],
        "n_measured": statistics.n_measured,
        "warmup": _warmup_document(found),
        "simulated_s": outcome.totals.span_s,
        **_delivery_document(found),
        "n_iterations": outcome.totals.n_steps,
        "n_preemptions": outcome.totals.n_preemptions,
        "prompt_tokens_looked_up": outcome.totals.n_asked_tokens if _keeps_text(found) else 0,
        "prompt_tokens_found": outcome.totals.n_hit_tokens,
        "utilization": use_document(outcome, statistics.busy_frac),
        "power": _power_document(found),
        "precision": share(statistics.precision_frac),
        "recall": statistics.recall_frac,
        "token_recall": statistics.delivery.token_recall_frac,
        "backlog_growth_requests_per_s": statistics.backlog_requests_per_s,
        "load": load_document(found),
        "classes": class_documents(found),
        "verdict": verdict(found),
        "smallest_fleet": _holding_document(found.holding),
        "assumptions": assumptions_document(outcome.assumptions),
    }


def _keeps_text(found: Run) -> bool:
    return not isinstance(found, NetworkSimulation) and found.fleet.limits.caches_prefixes


def _gaps_document(found: Run) -> Document | None:
    gaps = found.gaps
    if gaps is None:
        return None
    points = {p: getattr(gaps, f"{p}_s") for p in PERCENTILES}
    return {"n": gaps.n, "mean": gaps.mean_s, **points, "max": gaps.max_s}


def _delivery_document(found: Run) -> Document:
    statistics, delivery = found.statistics, found.statistics.delivery
    return {
        "output_tokens_per_s": statistics.output_tokens_per_s,
        "input_tokens_per_s": delivery.input_tokens_per_s,
        "requests_per_s": delivery.requests_per_s,
        "goodput_requests_per_s": delivery.good_requests_per_s,
        "goodput_output_tokens_per_s": delivery.good_output_tokens_per_s,
    }


def _warmup_document(found: Run) -> Document:
    warmup = found.statistics.delivery.warmup
    return {
        "cut_s": warmup.cut_s,
        "n_requests": warmup.n_requests,
        "is_automatic": warmup.is_automatic,
        "is_settled": warmup.is_settled,
        "note": warmup.note,
    }


def _power_document(found: Run) -> Document | None:
    power = found.power
    if power is None:
        return None
    each = power.energy_j_per_output_token
    return {
        "mean_power_w": _estimate(power.mean_power_w),
        "energy_kwh": _estimate(power.energy_j, KWH),
        "energy_j_per_output_token": None if each is None else _estimate(each),
        "bin_s": power.bin_s,
        "power_w_over_time": power.power_w.tolist(),
    }


def _estimate(estimate: Estimate, unit: float = 1.0) -> Document:
    return {
        "value": estimate.value / unit,
        "low": estimate.low / unit,
        "high": estimate.high / unit,
        "tier": estimate.tier,
    }


def _holding_document(holding: SmallestFleet | None) -> Document | None:
    if holding is None:
        return None
    return {
        "replicas": holding.n_replicas,
        "criterion": holding.criterion,
        "tried": [
            {"replicas": p.n_replicas, "recall": p.recall_frac, "overloaded": p.is_overloaded}
            for p in holding.tried
        ],
    }


def policy_document(policy: BatchPolicy | None) -> Document | None:
    """How batches are formed; None where requests join and leave at any time."""
    if policy is None:
        return None
    return {
        "max_batch": policy.max_batch,
        "max_delay_s": policy.max_delay_s,
        "preferred_sizes": list(policy.sizes),
    }


def _network_document(found: NetworkSimulation) -> Document:
    forecast, servers = found.forecast, found.servers
    return {
        "model": forecast.name,
        "kind": forecast.kind,
        "accelerator": forecast.accelerator.id,
        "replicas": servers.n_engines,
        "router": servers.router if servers.n_engines > 1 else None,
        "batching": policy_document(servers.policy),
        "batch_s_by_size": servers.table.batch_s.tolist(),
        "slo_s": {"ttft": found.slo.ttft_s, "tpot": found.slo.tpot_s, "e2e": found.slo.e2e_s},
        "slo_kept_frac": found.slo.kept_frac,
    }


def _lora_document(adapters: LoraUse | None) -> Document | None:
    if adapters is None:
        return None
    return {
        "rank": adapters.rank,
        "adapters": adapters.n_adapters,
        "share": adapters.request_frac,
    }


def _setup_document(found: Run) -> Document:
    if isinstance(found, NetworkSimulation):
        return _network_document(found)
    setup, limits = found.setup, found.fleet.limits
    return {
        "model": setup.model.name,
        "accelerator": setup.accelerator.id,
        "tp": setup.layout.tp,
        "pp": setup.layout.pp,
        "dp": setup.layout.dp,
        "ep": setup.layout.ep,
        "lora": _lora_document(setup.load.adapters),
        "replicas": found.fleet.n_engines // setup.layout.n_engines,
        "batching": policy_document(found.fleet.batching),
        "router": found.fleet.router if found.fleet.n_engines > 1 else None,
        "weights_precision": precision_name(setup.storage),
        "kv_precision": setup.storage.cache.name,
        "engine": setup.engine.name,
        "engine_version": setup.engine.version,
        "max_num_seqs": limits.max_sequences,
        "max_num_batched_tokens": limits.max_batch_tokens,
        "kv_blocks": limits.n_blocks,
        "slo_s": {"ttft": found.slo.ttft_s, "tpot": found.slo.tpot_s, "e2e": found.slo.e2e_s},
        "slo_kept_frac": found.slo.kept_frac,
    }


def _summary(summary: Summary | None) -> Document | None:
    if summary is None:
        return None
    return {
        "mean": summary.mean_s,
        **{p: getattr(summary, f"{p}_s") for p in PERCENTILES},
        "max": summary.max_s,
        "mean_low": summary.mean_low_s,
        "mean_high": summary.mean_high_s,
        "intervals": {b.percentile: {"low": b.low_s, "high": b.high_s} for b in summary.bounds},
    }


def _deployment(found: Run) -> str:
    if isinstance(found, NetworkSimulation):
        forecast = found.forecast
        return f"{forecast.name} on {found.servers.n_engines} x {forecast.accelerator.name}"
    setup = found.setup
    n = found.fleet.n_engines // setup.layout.n_engines
    return (
        f"{setup.model.name} in {precision_name(setup.storage)} on {n} x "
        f"{setup.layout.n_accelerators} {setup.accelerator.name}, "
        f"{setup.engine.name} {setup.engine.version}"
    )


def _head(found: Run) -> str:
    return (
        f"{_deployment(found)}: {count(found.outcome.n_completed)} of "
        f"{count(found.outcome.n_requests)} requests served, {verdict(found)}"
    )


def _latency_table(found: Run) -> Table:
    rows = []
    for name, label in MEASURES:
        summary: Summary | None = getattr(found.statistics, name)
        if summary is not None:
            figures = (summary.mean_s, *(getattr(summary, f"{p}_s") for p in PERCENTILES))
            p99 = next(b for b in summary.bounds if b.percentile == "p99")
            interval = f"{_off(p99.low_s, summary.p99_s)} {_off(p99.high_s, summary.p99_s)}"
            rows.append((label, *(_ms(figure) for figure in figures), interval))
    if found.gaps is not None:
        points = (getattr(found.gaps, f"{p}_s") for p in PERCENTILES)
        rows.append(("single gaps", _ms(found.gaps.mean_s), *(_ms(p) for p in points), ""))
    heads = (*(f"{p} ms" for p in ("p50", "p90", "p95", "p99", "p99.9")), "p99 ± %")
    columns = ("time", "mean ms", *heads)
    return Table(title="What users feel", columns=columns, rows=tuple(rows), right=columns[1:])


def _interval_table(found: Run) -> Table:
    """Every percentile with its bounds."""
    rows = []
    for name, label in MEASURES:
        summary: Summary | None = getattr(found.statistics, name)
        if summary is None:
            continue
        rows.append(
            (label, "mean", _ms(summary.mean_s), _ms(summary.mean_low_s), _ms(summary.mean_high_s))
        )
        rows += [
            (
                label,
                b.percentile,
                _ms(getattr(summary, f"{b.percentile}_s")),
                _ms(b.low_s),
                _ms(b.high_s),
            )
            for b in summary.bounds
        ]
    columns = ("time", "statistic", "ms", "low ms", "high ms")
    return Table(title="95 % intervals", columns=columns, rows=tuple(rows), right=columns[2:])


def _ms(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    return f"{seconds / MS:,.1f}" if seconds < 10 else f"{seconds / MS:,.0f}"


def _off(bound_s: float | None, value_s: float) -> str:
    """How far a bound is from its value, in percent."""
    if bound_s is None or value_s <= 0:
        return "?"
    return f"{100 * (bound_s / value_s - 1):+.0f}"


def _warmup_line(found: Run) -> str:
    warmup = found.statistics.delivery.warmup
    if not warmup.is_automatic and warmup.cut_s == 0:
        return "none, the run is measured from its first request"
    how = "found by MSER-5" if warmup.is_automatic and warmup.is_settled else warmup.note
    cut = f"{warmup.cut_s:,.1f} s and {count(warmup.n_requests)} requests not measured"
    return f"{cut} ({how})"


def _measured_lines(found: Run) -> tuple[str, ...]:
    gap_s = found.statistics.delivery.itl_mean_s
    lines = [*load_lines(found), f"per token after the first: {DEFINITIONS['tpot']}"]
    if gap_s is not None:
        more = "" if found.gaps else "; percentiles with --itl"
        lines.append(f"single gaps between tokens (ITL): mean of all {_ms(gap_s)} ms{more}")
    lines.append(f"warm-up: {_warmup_line(found)}; change with --warmup")
    lines.append("busy: an iteration runs, however small its batch; the other layers say how full")
    return (*lines, "p99 ± %: its 95 % interval; ? where the run is too short to bound it")
