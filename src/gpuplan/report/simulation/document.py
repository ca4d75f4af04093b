"""A simulated run for machines: setup, latencies, throughput, utilization, power, classes.

Simulated requests as rows: one line each, in order of arrival.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuplan.domain.columns import Ints
from gpuplan.domain.inference.serving import LoraUse
from gpuplan.domain.simulation.batching import BatchPolicy
from gpuplan.domain.simulation.fleet import ENDS
from gpuplan.domain.simulation.outcome import Outcome, RequestTimes, SloTargets, Summary
from gpuplan.domain.simulation.simulation import (
    NetworkSimulation,
    Simulation,
    SmallestFleet,
    StreamedSimulation,
)
from gpuplan.domain.traffic.stream import Requests
from gpuplan.report.document import Document, pick, pick_each, plain
from gpuplan.report.prediction.setup import precision_name
from gpuplan.report.simulation.utilization import share, use_document
from gpuplan.units import KWH

Cell = float | int | str | None


Served = Simulation | StreamedSimulation
Run = Served | NetworkSimulation
MEASURES = ("ttft", "tpot", "e2e", "wait")
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


def verdict(found: Run) -> str:
    """One word: overloaded, missed where an SLO is violated too often, else within limits."""
    if found.statistics.is_overloaded:
        return "overloaded"
    if found.outcome.n_completed == 0:
        return "nothing served"
    if found.statistics.recall_frac >= found.slo.kept_frac:
        return "within limits"
    return "objective missed" if found.slo.is_given else "not all served"


def run_body(found: Run) -> Document:
    """Everything about the run but what it assumes."""
    statistics, outcome = found.statistics, found.outcome
    return {
        **_setup_document(found),
        **pick(outcome, "n_requests", "n_completed", "n_refused"),
        "refused": dict(outcome.refused),
        "wall_s": found.wall_s,
        "requests_per_wall_s": outcome.n_requests / max(found.wall_s, 1e-9),
        **_latency_documents(found),
        "definitions": DEFINITIONS,
        "tpot_definition": DEFINITIONS["tpot"],
        "n_measured": statistics.n_measured,
        "simulated_s": outcome.totals.span_s,
        **_delivery_document(found),
        "n_iterations": outcome.totals.n_steps,
        "n_preemptions": outcome.totals.n_preemptions,
        "prompt_tokens_looked_up": outcome.totals.n_asked_tokens if _has_prefix_cache(found) else 0,
        "prompt_tokens_found": outcome.totals.n_hit_tokens,
        "utilization": use_document(outcome, statistics.busy_frac),
        "power": _power_document(found),
        "precision": share(statistics.precision_frac),
        "recall": statistics.recall_frac,
        "backlog_growth_requests_per_s": statistics.backlog_requests_per_s,
        "load": _load_document(found),
        "classes": _class_documents(found),
        "verdict": verdict(found),
        "smallest_fleet": found.holding and _smallest_document(found.holding),
    }


def _has_prefix_cache(found: Run) -> bool:
    return not isinstance(found, NetworkSimulation) and found.fleet.limits.caches_prefixes


def _latency_documents(found: Run) -> Document:
    statistics, gaps = found.statistics, found.gaps
    warmup = ("cut_s", "n_requests", "is_automatic", "is_settled", "note")
    return {
        **{f"{name}_s": _summary(getattr(statistics, name)) for name in MEASURES},
        "itl_mean_s": statistics.delivery.itl_mean_s,
        "itl_s": gaps and {"n": gaps.n, **_points(gaps, "mean", *PERCENTILES, "max")},
        "warmup": pick(statistics.delivery.warmup, *warmup),
    }


def _points(found: object, *names: str) -> Document:
    return pick(found, **{name: f"{name}_s" for name in names})


def _summary(summary: Summary | None) -> Document | None:
    if summary is None:
        return None
    return {
        **_points(summary, "mean", *PERCENTILES, "max", "mean_low", "mean_high"),
        "intervals": {b.percentile: {"low": b.low_s, "high": b.high_s} for b in summary.bounds},
    }


def _delivery_document(found: Run) -> Document:
    delivery = found.statistics.delivery
    return {
        "output_tokens_per_s": found.statistics.output_tokens_per_s,
        **pick(delivery, "input_tokens_per_s", "requests_per_s"),
        "goodput_requests_per_s": delivery.good_requests_per_s,
        "goodput_output_tokens_per_s": delivery.good_output_tokens_per_s,
        "token_recall": delivery.token_recall_frac,
    }


def _power_document(found: Run) -> Document | None:
    power = found.power
    if power is None:
        return None
    kwh = {name: getattr(power.energy_j, name) / KWH for name in ("value", "low", "high")}
    return {
        **pick(power, "mean_power_w", "energy_j_per_output_token", "bin_s"),
        "energy_kwh": {**kwh, "tier": power.energy_j.tier},
        "power_w_over_time": plain(power.power_w),
    }


def _smallest_document(fleet: SmallestFleet) -> Document:
    keys = {"replicas": "n_replicas", "recall": "recall_frac", "overloaded": "is_overloaded"}
    return {
        **pick(fleet, "criterion", replicas="n_replicas"),
        "tried": pick_each(fleet.tried, **keys),
    }


def _load_document(found: Run) -> Document | None:
    """None of runs that keep no request."""
    load = found.load if isinstance(found, Simulation) else None
    if load is None:
        return None
    return {
        **pick(load, "input_tokens_per_s", "output_tokens_per_s"),
        **pick(load, requests_per_s="mean_requests_per_s", gap_cv="gap_cv_ratio"),
        **pick(load, busiest_minute_requests_per_s="peak_minute_requests_per_s"),
        **pick(load, busiest_hour_requests_per_s="peak_hour_requests_per_s"),
        "dispersion_per_minute": load.dispersion_ratio,
    }


def _class_documents(found: Run) -> list[Document]:
    """Services or priorities; empty where all requests are of one class."""
    if not isinstance(found, Simulation):
        return []
    return [
        {
            **pick(each, "name", "n_requests", "n_completed", recall="recall_frac"),
            **{f"{time}_s": _class_points(getattr(each, time)) for time in MEASURES[:3]},
        }
        for each in found.classes
    ]


def _class_points(summary: Summary | None) -> Document | None:
    return None if summary is None else _points(summary, "mean", "p50", "p95", "p99")


def _setup_document(found: Run) -> Document:
    setup = _network(found) if isinstance(found, NetworkSimulation) else _serving(found)
    return {**setup, "slo_s": slo_document(found.slo), "slo_kept_frac": found.slo.kept_frac}


def slo_document(slo: SloTargets) -> Document:
    """The targets of single requests, None where there is none."""
    return _points(slo, "ttft", "tpot", "e2e")


def _network(found: NetworkSimulation) -> Document:
    servers = found.servers
    return {
        **pick(found.forecast, "kind", model="name", accelerator="accelerator.id"),
        "replicas": servers.n_engines,
        "router": servers.router if servers.n_engines > 1 else None,
        "batching": _policy(servers.policy),
        "batch_s_by_size": plain(servers.table.batch_s),
    }


def _serving(found: Served) -> Document:
    setup, limits = found.setup, found.fleet.limits
    return {
        **pick(setup, model="model.name", accelerator="accelerator.id"),
        **pick(setup.layout, "tp", "pp", "dp", "ep"),
        "lora": _lora(setup.load.adapters),
        "replicas": found.fleet.n_engines // setup.n_engines,
        "decode_replicas": found.fleet.decode.n_engines if found.fleet.decode else None,
        "batching": _policy(found.fleet.batching),
        "router": found.fleet.router if found.fleet.n_engines > 1 else None,
        "weights_precision": precision_name(setup.storage),
        "kv_precision": setup.storage.cache.name,
        **pick(setup.engine, engine="name", engine_version="version"),
        **pick(limits, max_num_seqs="max_sequences", kv_blocks="n_blocks"),
        "max_num_batched_tokens": limits.max_batch_tokens,
    }


def _policy(policy: BatchPolicy | None) -> Document | None:
    """How batches are formed; None where requests join and leave at any time."""
    if policy is None:
        return None
    return pick(policy, "max_batch", "max_delay_s", preferred_sizes="sizes")


def _lora(adapters: LoraUse | None) -> Document | None:
    if adapters is None:
        return None
    return pick(adapters, "rank", adapters="n_adapters", share="request_frac")


def request_columns(outcome: Outcome, end: Ints | None = None) -> dict[str, list[Cell]]:
    """Columns by name; what a request never had is empty."""
    columns = passed_columns(outcome.requests, outcome.times, end=end)
    # Masked values become None.
    return {name: column.tolist() for name, column in columns.items()}


def passed_columns(
    requests: Requests, times: RequestTimes, *, first: int = 0, end: Ints | None = None
) -> dict[str, Any]:
    """Columns of arrays, the requests numbered from `first`; what never was is masked.

    `end` says how each request ended, as a place in ENDS; of equal engines it is known without.
    """
    is_lost = times.is_finished == 0
    has_no_tpot = is_lost | (requests.output_tokens <= 1)
    return {
        "request_id": np.arange(first, first + len(requests)),
        "arrival_s": requests.arrive_s,
        "ttft_s": np.ma.masked_array(times.ttft_s, is_lost),
        "tpot_s": np.ma.masked_array(times.tpot_s, has_no_tpot),
        "e2e_s": np.ma.masked_array(times.e2e_s, is_lost),
        "n_preemptions": times.n_preemptions,
        "wait_s": np.ma.masked_array(times.wait_s, is_lost),
        "input_tokens": requests.input_tokens,
        "output_tokens": requests.output_tokens,
        "cached_tokens": _cached(times),
        "session": np.ma.masked_array(requests.session, requests.session < 0),
        "priority": requests.priority,
        "end": np.array(ENDS)[is_lost.astype(np.int64) if end is None else end],
    }


def _cached(times: RequestTimes) -> Any:
    n_all, found = len(times.e2e_s), times.n_cached_tokens
    if found is None:
        return np.ma.masked_array(np.zeros(n_all, dtype=np.int64), np.ones(n_all, dtype=np.bool_))
    return found


def requests_csv(outcome: Outcome, end: Ints | None = None) -> Iterator[str]:
    """Lines of a CSV file."""
    columns = request_columns(outcome, end)
    yield ",".join(columns) + "\n"
    for row in zip(*columns.values(), strict=True):
        yield ",".join("" if cell is None else str(cell) for cell in row) + "\n"
