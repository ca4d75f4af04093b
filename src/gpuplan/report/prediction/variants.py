"""Accelerators ranked for a load, and precisions side by side, as documents and tables."""

from gpuplan.domain.inference.variants import (
    AcceleratorRanking,
    PrecisionComparison,
    PrecisionRow,
    RankedAccelerator,
)
from gpuplan.domain.sheet import Sheet
from gpuplan.report.document import Document, result_sheet, sourced
from gpuplan.report.formats import three
from gpuplan.report.table import table
from gpuplan.units import GB, MS


def rank_sheet(found: AcceleratorRanking) -> Sheet:
    """The ranking, ready to show."""
    columns = {
        "accelerator": lambda row: row.accelerator,
        ">output (tok/s)": lambda row: three(row.tokens_per_s) if row.found else "",
        ">TPOT (ms)": lambda row: (
            f"{row.found.served.tpot_mean_s.value / MS:.1f}" if row.found else ""
        ),
        ">tok/J": lambda row: "" if row.tokens_per_j is None else f"{row.tokens_per_j:.2f}",
        "decides": lambda row: row.decides,
        "remark": lambda row: row.reason,
    }
    best = found.rows[0]
    head = f"{found.model} is fastest on {best.accelerator}; {best.decides} decides"
    return result_sheet(
        {"model": found.model, "ranking": [_ranked(row) for row in found.rows]},
        [table("Accelerators under this load", found.rows, columns)],
        head=head if best.found else f"{found.model} runs on none of these accelerators",
        assumptions=found.assumptions,
    )


def _ranked(row: RankedAccelerator) -> Document:
    found = row.found
    return {
        "accelerator": row.accelerator,
        "fits": found is not None,
        "decides": row.decides,
        "reason": row.reason,
        "tokens_per_s": row.tokens_per_s,
        "tokens_per_j": row.tokens_per_j,
        "ttft_mean_s": found and sourced(found.served.ttft_mean_s),
        "tpot_mean_s": found and sourced(found.served.tpot_mean_s),
    }


def precisions_sheet(found: PrecisionComparison) -> Sheet:
    """The comparison, ready to show."""
    columns = {
        "precision": lambda row: row.precision,
        ">output (tok/s)": lambda row: (
            three(row.found.served.output_tokens_per_s.value) if row.speed_ratio else ""
        ),
        ">speed": lambda row: "" if row.speed_ratio is None else f"{row.speed_ratio:.2f} x",
        ">weights (GB)": lambda row: (
            f"{row.found.memory.weights_bytes / GB:.1f}" if row.found else ""
        ),
        ">KV cache (GB)": lambda row: (
            f"{max(0.0, row.found.memory.cache_bytes) / GB:.1f}" if row.found else ""
        ),
        "quality risk": lambda row: row.reason or row.risk or "none: as published or wider",
    }
    title = f"{found.model} on {found.accelerator}, per accelerator"
    return result_sheet(
        {
            "model": found.model,
            "accelerator": found.accelerator,
            "precisions": [_precision(row) for row in found.rows],
        },
        [table(title, found.rows, columns)],
        head=_best(found),
        assumptions=found.assumptions,
    )


def _best(found: PrecisionComparison) -> str:
    known = [row for row in found.rows if row.speed_ratio is not None]
    if not known:
        return f"{found.model} runs on {found.accelerator} in none of these precisions"
    best = max(known, key=lambda row: row.speed_ratio or 0.0)
    risk = best.risk or "no risk to quality"
    return f"{best.precision} is {best.speed_ratio:.2f} x as fast as {known[0].precision}; {risk}"


def _precision(row: PrecisionRow) -> Document:
    found = row.found
    return {
        "precision": row.precision,
        "runs": row.speed_ratio is not None,
        "reason": row.reason,
        "speed_ratio": row.speed_ratio,
        "risk": row.risk,
        "output_tokens_per_s": found and sourced(found.served.output_tokens_per_s),
        "weights_bytes": found and round(found.memory.weights_bytes),
        "kv_cache_bytes": found and round(found.memory.cache_bytes),
    }
