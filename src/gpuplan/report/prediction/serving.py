"""Predictions and rooflines of serving as documents and tables.

A batch of a network: its time, rate and work.

Two measured runs as a sheet: figures that moved, and the versions that moved with them.
"""

from collections.abc import Iterator
from math import ceil

from gpuplan.domain.calibration.constants import HERE
from gpuplan.domain.calibration.runs import RunComparison
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.inference.prediction import OVERLOAD_FRAC, PhasePoint, Prediction, Roofline
from gpuplan.domain.model.other import NetworkForecast
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.document import Document, pick, pick_each, result_sheet, sourced
from gpuplan.report.formats import count, percent, plural, three
from gpuplan.report.prediction.setup import Measure, layout_document, measures_table, precision_name
from gpuplan.report.table import table
from gpuplan.units import GB, GFLOP, MS

# Measure, unit, and what one unit is in base units.
MEASURES = (
    ("output_tokens_per_s", "output throughput", "tok/s", 1.0),
    ("ttft_mean_s", "TTFT mean", "ms", MS),
    ("ttft_p99_s", "TTFT p99", "ms", MS),
    ("tpot_mean_s", "TPOT mean", "ms", MS),
    ("tpot_p50_s", "TPOT p50", "ms", MS),
    ("tpot_p99_s", "TPOT p99", "ms", MS),
    ("e2e_mean_s", "end-to-end latency mean", "s", 1.0),
)
POWER = (
    ("power_w", "power of the accelerators", "W", 1.0),
    ("energy_j_per_output_token", "energy per output token", "J", 1.0),
)
PARTS = {
    "matrices": "matrix products",
    "experts": "experts",
    "attention": "attention and KV cache",
    "activations": "element-wise",
    "operators": "kernel launches",
    "exchange": "communication",
    "host": "host",
}
POINT = (
    "phase",
    "n_tokens",
    "flop",
    "traffic_bytes",
    "intensity_flop_per_byte",
    "compute_s",
    "memory_s",
    "link_s",
    "host_s",
    "step_s",
    "limit",
    "mfu_frac",
    "mbu_frac",
)


def predict_sheet(found: Prediction) -> Sheet:
    """One configuration, ready to show."""
    unknown = found.served.unknown_labels
    novel = (f"no measurement covers {', '.join(unknown)}: ranges are wider",) if unknown else ()
    kind = found.served.novelty.kind
    site = "of your own runs" if kind == HERE else "of a site never seen; `calibrate` narrows it"
    missing = () if found.served.fits else ("it does not fit; gpuplan fit says what would help",)
    return result_sheet(
        _body(found),
        [measures_table(_measures(found)), _breakdown_table(found)],
        head=("" if found.served.fits else "DOES NOT FIT in memory; if it did: ")
        + _head(found.setup)
        + (": overloaded" if found.is_overloaded else ""),
        remarks=[
            ("Warnings:", (*missing, *_overload(found), *novel)),
            ("Novelty:", (f"{kind}: the range is that {site}",)),
        ],
        assumptions=found.assumptions,
        overrides=found.overrides,
    )


def _overload(found: Prediction) -> tuple[str, ...]:
    """A rate that cannot be held, first: its latencies are those of a queue that grows."""
    if not found.is_overloaded:
        return ()
    requested, n = found.setup.load.requests_per_s or 0.0, round(found.setup.n_replicas)
    least = ceil(n * OVERLOAD_FRAC * requested / found.served_per_s)
    return (
        f"overloaded: {requested:.3g} requests/s come, {found.served_per_s:.3g} are served; waits "
        f"grow for as long as the rate lasts. At least {count(least)} replicas would keep up",
    )


def _body(found: Prediction) -> Document:
    served, memory = found.served, found.memory
    return {
        **_setup_document(found.setup),
        **pick(served, "fits", "n_running", unknown="unknown_labels"),
        "novelty": served.novelty.kind,
        "is_overloaded": found.is_overloaded,
        **{name: sourced(getattr(served, name)) for name, *_ in MEASURES},
        **{name: sourced(value) for name, value in found.power.items()},
        "startup_s": {phase: sourced(value) for phase, value in found.startup.items()},
        "memory_bytes": {
            "weights": round(memory.weights_bytes),
            "kv_cache": round(memory.cache_bytes),
            "usable": round(memory.visible_bytes),
        },
        "decode_breakdown_s": {name: getattr(served.decode, f"{name}_s") for name in PARTS},
    }


def _setup_document(setup: ServingSetup) -> Document:
    load = ("regime", "input_tokens", "output_tokens", "requests_per_s")
    return {
        **pick(setup, model="model.name", accelerator="accelerator.id"),
        "n_accelerators": setup.layout.n_accelerators * round(setup.n_replicas),
        "layout": layout_document(setup.layout),
        "replicas": round(setup.n_replicas),
        "precision": precision_name(setup.storage),
        "kv_precision": setup.storage.cache.name,
        **pick(setup.engine, engine="name", engine_version="version"),
        **pick(setup.load, *load, concurrency="n_sequences"),
    }


def _head(setup: ServingSetup) -> str:
    n = setup.layout.n_accelerators * round(setup.n_replicas)
    load = setup.load
    return (
        f"{setup.model.name} ({precision_name(setup.storage)}) on {n} × {setup.accelerator.name}, "
        f"{setup.engine.name} {setup.engine.version}, {load.regime}, "
        f"{count(load.input_tokens)} input and {count(load.output_tokens)} output tokens"
    )


def _measures(found: Prediction) -> Iterator[Measure]:
    for name, label, unit, scale in MEASURES:
        yield label, unit, getattr(found.served, name), scale
    for name, label, unit, scale in POWER:
        if name in found.power:
            yield label, unit, found.power[name], scale
    for phase, value in found.startup.items():
        if value.value > 0:
            yield f"start: {phase.removesuffix('_s').replace('_', ' ')}", "s", value, 1.0


def _breakdown_table(found: Prediction) -> Table:
    decode = found.served.decode
    parts = [(label, getattr(decode, f"{name}_s")) for name, label in PARTS.items()]
    total = sum(seconds for _, seconds in parts)
    columns = {
        "part": lambda part: part[0],
        ">ms": lambda part: f"{part[1] / MS:.2f}",
        ">share": lambda part: percent(part[1] / total),
    }
    title = f"One decode iteration of {count(found.served.n_running)} sequences per replica"
    return table(title, [part for part in parts if part[1] > 0], columns)


def roofline_sheet(found: Roofline) -> Sheet:
    """Phases under the roofline, ready to show."""
    ridge = f"the ridge point is {found.ridge_flop_per_byte:,.0f} FLOP/B"
    body = {
        **_setup_document(found.setup),
        "ridge_flop_per_byte": found.ridge_flop_per_byte,
        "points": pick_each(found.points, *POINT),
    }
    return result_sheet(
        body,
        [_points_table(found.points)],
        head=f"{_head(found.setup)}: {ridge}; phases below it are memory-bound",
        assumptions=found.assumptions,
        overrides=found.overrides,
    )


def _points_table(points: tuple[PhasePoint, ...]) -> Table:
    columns = {
        "phase": lambda p: p.phase,
        ">tokens": lambda p: count(p.n_tokens),
        ">GFLOP": lambda p: three(p.flop / GFLOP),
        ">GB moved": lambda p: three(p.traffic_bytes / GB),
        ">FLOP/B": lambda p: three(p.intensity_flop_per_byte),
        "bound by": lambda p: p.limit,
        ">MFU": lambda p: percent(p.mfu_frac),
        ">MBU": lambda p: percent(p.mbu_frac),
        ">ms": lambda p: f"{p.step_s / MS:.2f}",
    }
    return table("One iteration of one accelerator, at full batch", points, columns)


def network_sheet(found: NetworkForecast) -> Sheet:
    """The forecast, ready to show."""
    work = found.work
    flop = None if work is None else (work.flop + work.attention_flop) / found.batch
    each = "" if flop is None else f", {flop / GFLOP:,.3g} GFLOP per sample"
    body = {
        **pick(found, "name", "kind", "batch", accelerator="accelerator.id"),
        "batch_s": sourced(found.batch_s),
        "samples_per_s": sourced(found.samples_per_s),
        "flop_per_sample": flop,
    }
    measures = [
        ("one batch", "ms", found.batch_s, MS),
        ("samples", "1/s", found.samples_per_s, 1.0),
    ]
    return result_sheet(
        body,
        [measures_table(measures)],
        head=f"{found.name} on {found.accelerator.name}, batch {found.batch}{each}",
        assumptions=found.assumptions,
    )


def runs_sheet(found: RunComparison) -> Sheet:
    """The comparison, ready to show."""
    n = sum(row.is_worse for row in found.rows)
    state = f"{plural(n, 'regression')} beyond {found.tolerance_frac:.0%}"
    return result_sheet(
        _compared_body(found),
        [_figures(found), _versions(found)],
        head=f"{found.names[0]} to {found.names[1]}: {state}",
        remarks=[("Conditions of one run only:", found.unpaired)],
    )


def _compared_body(found: RunComparison) -> Document:
    figures = ("condition", "metric", "change_frac", "is_worse")
    return {
        "before": found.names[0],
        "after": found.names[1],
        "regression": found.is_regression,
        "tolerance_frac": found.tolerance_frac,
        "rows": pick_each(found.rows, *figures, before="n_before", after="n_after"),
        "fingerprint_changes": pick_each(found.fingerprint, "what", "before", "after"),
        "unpaired": list(found.unpaired),
    }


def _figures(found: RunComparison) -> Table:
    columns = {
        "condition": lambda row: row.condition,
        "metric": lambda row: row.metric,
        ">before": lambda row: f"{row.n_before:,.4g}",
        ">after": lambda row: f"{row.n_after:,.4g}",
        ">change": lambda row: f"{row.change_frac:+.1%}",
        "": lambda row: "worse" if row.is_worse else "",
    }
    return table("Measured figures", found.rows, columns)


def _versions(found: RunComparison) -> Table:
    columns = {
        "fingerprint": lambda row: row.what,
        "before": lambda row: row.before,
        "after": lambda row: row.after,
    }
    return table("What changed with them", found.fingerprint, columns)
