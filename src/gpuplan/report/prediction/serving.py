"""Predictions, rooflines, speed-up curves and validations as documents and tables."""

from typing import Any

from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.inference.prediction import PhasePoint, Prediction, Roofline
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.formats import count
from gpuplan.report.prediction.fit import precision_name
from gpuplan.report.provenance import (
    SCHEMA_VERSION,
    assumption_lines,
    assumptions_document,
    override_lines,
    overrides_document,
)
from gpuplan.units import GB, GFLOP, MS

Document = dict[str, Any]
# Measure, unit, and what one unit is in base units.
MEASURES = (
    ("output_tokens_per_s", "output throughput", "tok/s", 1.0),
    ("ttft_mean_s", "first token, mean", "ms", MS),
    ("ttft_p99_s", "first token, p99", "ms", MS),
    ("tpot_mean_s", "per output token, mean", "ms", MS),
    ("tpot_p50_s", "per output token, median", "ms", MS),
    ("tpot_p99_s", "per output token, p99", "ms", MS),
    ("e2e_mean_s", "whole answer, mean", "s", 1.0),
)
POWER = (
    ("power_w", "power of the devices", "W", 1.0),
    ("energy_j_per_output_token", "energy per output token", "J", 1.0),
)


def predict_sheet(found: Prediction) -> Sheet:
    """One configuration, ready to show."""
    unknown = found.served.unknown_labels
    novel = (f"no measurement covers {', '.join(unknown)}: ranges are wider",) if unknown else ()
    missing = () if found.served.fits else ("it does not fit; ask gpuplan fit what would help",)
    return Sheet(
        document=predict_document(found),
        tables=(_measures_table(found), _breakdown_table(found)),
        head=_head(found.setup),
        remarks=(
            ("Beware:", (*missing, *novel)),
            ("Assumed:", assumption_lines(found.assumptions)),
            ("Overlay:", override_lines(found.overrides)),
        ),
    )


def predict_document(found: Prediction) -> Document:
    """The machine-readable prediction."""
    measures = {name: _estimate(getattr(found.served, name)) for name, *_ in MEASURES}
    return {
        "schema_version": SCHEMA_VERSION,
        **_setup_document(found.setup),
        "fits": found.served.fits,
        "n_running": found.served.n_running,
        **measures,
        **{name: _estimate(value) for name, value in found.power.items()},
        "startup_s": {phase: _estimate(value) for phase, value in found.startup.items()},
        "memory_bytes": {
            "weights": round(found.memory.weights_bytes),
            "kv_cache": round(found.memory.cache_bytes),
            "usable": round(found.memory.visible_bytes),
        },
        "decode_breakdown_s": {
            name: getattr(found.served.decode, f"{name}_s")
            for name in (
                "matrices",
                "experts",
                "attention",
                "activations",
                "operators",
                "exchange",
                "host",
            )
        },
        "unknown": list(found.served.unknown_labels),
        "assumptions": assumptions_document(found.assumptions),
        "overrides": overrides_document(found.overrides),
    }


def _setup_document(setup: ServingSetup) -> Document:
    return {
        "model": setup.model.name,
        "accelerator": setup.accelerator.id,
        "n_accelerators": setup.layout.n_accelerators * round(setup.n_replicas),
        "layout": {
            "tp": setup.layout.tp,
            "pp": setup.layout.pp,
            "dp": setup.layout.dp,
            "ep": setup.layout.ep,
        },
        "replicas": round(setup.n_replicas),
        "precision": precision_name(setup.storage),
        "kv_precision": setup.storage.cache.name,
        "engine": setup.engine.name,
        "engine_version": setup.engine.version,
        "regime": setup.load.regime,
        "input_tokens": setup.load.input_tokens,
        "output_tokens": setup.load.output_tokens,
        "concurrency": setup.load.n_sequences,
        "requests_per_s": setup.load.requests_per_s,
    }


def _estimate(estimate: Estimate) -> Document:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "tier": estimate.tier,
        "sources": list(estimate.sources),
    }


def _head(setup: ServingSetup) -> str:
    n = setup.layout.n_accelerators * round(setup.n_replicas)
    load = setup.load
    return (
        f"{setup.model.name} in {precision_name(setup.storage)} on {n}x {setup.accelerator.name}, "
        f"{setup.engine.name} {setup.engine.version}, {load.regime}, "
        f"{count(load.input_tokens)} tokens in, {count(load.output_tokens)} out"
    )


def _measures_table(found: Prediction) -> Table:
    rows = [
        _measure_row(label, unit, getattr(found.served, name), scale)
        for name, label, unit, scale in MEASURES
    ]
    rows += [
        _measure_row(label, unit, found.power[name], scale)
        for name, label, unit, scale in POWER
        if name in found.power
    ]
    rows += [
        _measure_row(f"start: {phase.removesuffix('_s').replace('_', ' ')}", "s", value, 1.0)
        for phase, value in found.startup.items()
        if value.value > 0
    ]
    return Table(
        title="Predicted, with the range that holds 80 % of measurements",
        columns=("measure", "value", "low", "high", "unit", "tier"),
        rows=tuple(rows),
        right=("value", "low", "high"),
    )


def _measure_row(label: str, unit: str, estimate: Estimate, scale: float) -> tuple[str, ...]:
    figures = (estimate.value, estimate.low, estimate.high)
    return (label, *(_three(figure / scale) for figure in figures), unit, estimate.tier)


def _three(figure: float) -> str:
    """Three digits: more would claim more than is known."""
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"


def _breakdown_table(found: Prediction) -> Table:
    decode = found.served.decode
    parts = {
        "matrices": decode.matrices_s,
        "experts": decode.experts_s,
        "attention and cache": decode.attention_s,
        "element-wise": decode.activations_s,
        "kernel launches": decode.operators_s,
        "exchange between devices": decode.exchange_s,
        "host": decode.host_s,
    }
    total = sum(parts.values())
    rows = tuple(
        (name, f"{seconds / MS:.2f}", f"{100 * seconds / total:.0f} %")
        for name, seconds in parts.items()
        if seconds > 0
    )
    return Table(
        title=f"One decode iteration of {count(found.served.n_running)} sequences a replica",
        columns=("part", "ms", "share"),
        rows=rows,
        right=("ms", "share"),
    )


def roofline_sheet(found: Roofline) -> Sheet:
    """Phases under the roofline, ready to show."""
    setup = found.setup
    head = (
        f"{_head(setup)}: the ridge lies at {found.ridge_flop_per_byte:,.0f} flop a byte; "
        "phases below it wait for memory"
    )
    rows = tuple(_point_row(point) for point in found.points)
    columns = ("phase", "tokens", "GFLOP", "GB moved", "flop/B", "limit", "MFU", "MBU", "ms")
    table = Table(
        title="One iteration of one device, at full batch of that size",
        columns=columns,
        rows=rows,
        right=("tokens", "GFLOP", "GB moved", "flop/B", "MFU", "MBU", "ms"),
    )
    return Sheet(
        document={
            "schema_version": SCHEMA_VERSION,
            **_setup_document(setup),
            "ridge_flop_per_byte": found.ridge_flop_per_byte,
            "points": [_point_document(point) for point in found.points],
            "assumptions": assumptions_document(found.assumptions),
            "overrides": overrides_document(found.overrides),
        },
        tables=(table,),
        head=head,
        remarks=(
            ("Assumed:", assumption_lines(found.assumptions)),
            ("Overlay:", override_lines(found.overrides)),
        ),
    )


def _point_row(point: PhasePoint) -> tuple[str, ...]:
    return (
        point.phase,
        count(point.n_tokens),
        _three(point.flop / GFLOP),
        _three(point.traffic_bytes / GB),
        _three(point.intensity_flop_per_byte),
        point.limit,
        f"{100 * point.mfu_frac:.0f} %",
        f"{100 * point.mbu_frac:.0f} %",
        f"{point.step_s / MS:.2f}",
    )


def _point_document(point: PhasePoint) -> Document:
    return {
        "phase": point.phase,
        "n_tokens": point.n_tokens,
        "flop": point.flop,
        "traffic_bytes": point.traffic_bytes,
        "intensity_flop_per_byte": point.intensity_flop_per_byte,
        "compute_s": point.compute_s,
        "memory_s": point.memory_s,
        "link_s": point.link_s,
        "host_s": point.host_s,
        "step_s": point.step_s,
        "limit": point.limit,
        "mfu_frac": point.mfu_frac,
        "mbu_frac": point.mbu_frac,
    }
