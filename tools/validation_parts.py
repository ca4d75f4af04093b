"""Parts of docs/validation.md: the targets at a glance, and what is no language model."""

import zlib
from collections.abc import Callable, Hashable, Mapping

from fits import held_out as v
from fits.networks import NetworkRow

from gpuplan.calibration.networks.fit import base_name, family_of
from gpuplan.domain.calibration.validation import MetricErrors
from gpuplan.domain.model.other import NetworkKind
from gpuplan.studies.validation.inference import stored_cross
from gpuplan.studies.validation.training import stored_cross_training

N_FOLDS = 8  # hundreds of vision models: folds of whole models and whole families
# What is asked of rows outside the fit: (name, rows in the stored splits, median error in percent).
SERVING_TARGETS = (
    ("LLM throughput at max load", "max_load output_tokens_per_s", 10),
    ("LLM static batch", "static_batch output_tokens_per_s", 20),
    ("TPOT at a known concurrency", "fixed_concurrency tpot_mean_ms", 12),
    ("TTFT at a known concurrency", "fixed_concurrency ttft_mean_ms", 25),
)
TRAINING_TARGETS = (
    ("LLM pre-training step", "pre-training step_s", 8),
    ("fine-tuning step", "fine-tuning step_s", 15),
)
# (name in the table, kind of network, target, further splits beside that by model)
NETWORKS: tuple[tuple[str, NetworkKind, int], ...] = (
    ("CNN and ViT, inference", "vision", 20),
    ("CNN and ViT, training", "vision-training", 20),
    ("CNN and ViT on a processor", "vision-cpu", 20),
    ("encoders", "encoder", 20),
    ("diffusion", "denoiser", 20),
)
HEAD = "| what | held out by | n | median | mean | p90 | bias | in the 80 % range |"
RULE = "|---|---|---:|---:|---:|---:|---:|---:|"
Folds = Mapping[Hashable, v.Floats]


def at_a_glance() -> str:
    """Median errors outside the fit beside what is asked."""
    serving, training = stored_cross(), stored_cross_training()
    lines = [
        "## At a glance",
        "",
        "Median errors of rows outside the fit; **bold** misses what is asked. A held-out model is"
        " new to the fit, a held-out source is new with its servers, software and habits.",
        "",
        "| what | asked | held out by model | by source | in the 80 % range, model / source |",
        "|---|---:|---:|---:|---:|",
        *(_glance(serving, *target) for target in SERVING_TARGETS),
        *(_glance(training, *target) for target in TRAINING_TARGETS),
        "",
    ]
    return "\n".join(lines)


def glance_figures() -> dict[str, dict[str, dict[str, float]]]:
    """The same for programs: what, held out by model and by source, fractions and coverage."""
    serving, training = stored_cross(), stored_cross_training()
    targets = [(serving, *target) for target in SERVING_TARGETS]
    targets += [(training, *target) for target in TRAINING_TARGETS]
    return {
        name: {split: _rounded(splits[split][rows]) for split in ("model", "source")}
        for splits, name, rows, _ in targets
    }


def _rounded(errors: MetricErrors) -> dict[str, float]:
    median, coverage = round(errors.median_ape, 6), round(errors.range_coverage, 6)
    return {"n": errors.n, "median_ape": median, "range_coverage": coverage}


def _glance(
    splits: Mapping[str, Mapping[str, MetricErrors]], name: str, rows: str, asked: int
) -> str:
    found = [splits[split].get(rows) for split in ("model", "source")]
    medians = " | ".join(_marked(e, asked) for e in found)
    held = " / ".join("–" if e is None else f"{100 * e.range_coverage:.0f}" for e in found)
    return f"| {name} | {asked} | {medians} | {held} |"


def _marked(errors: MetricErrors | None, asked: int) -> str:
    if errors is None:
        return "–"
    median = 100 * errors.median_ape
    return f"{median:.1f}" if median <= asked else f"**{median:.1f}**"


def other_networks() -> str:
    """Vision, encoders, diffusion and whole pipelines."""
    lines = ["## Other networks", "", HEAD, RULE]
    for name, kind, _ in NETWORKS:
        for split, key in _network_splits(kind).items():
            folds = v.network_model(kind).folds(key)
            lines.append(_line(name, split, folds, are_lots=kind.startswith("vision")))
    lines.append(_line("pipelines of MLPerf", "board", v.benchmark_folds()))
    asked = "; ".join(f"{name} {asked} %" for name, _, asked in NETWORKS)
    lines += ["", f"Asked of held-out models: {asked}.", ""]
    return "\n".join(lines)


def _network_splits(kind: NetworkKind) -> dict[str, Callable[[NetworkRow], Hashable]]:
    if kind.startswith("vision"):
        return {
            "model": lambda row: _fold(base_name(row.model)),
            "family": lambda row: _fold(family_of(row.model)),
        }
    return {"model": lambda row: row.model, "board": lambda row: row.device_name}


def _fold(name: str) -> int:
    return zlib.crc32(name.encode()) % N_FOLDS


def power() -> str:
    """Draw of accelerators under load, and what a cap costs."""
    lines = ["## Power of accelerators under load", "", HEAD, RULE]
    by_model = v.POWER.folds(lambda row: (row.work, row.model))
    works = sorted({str(key[0]) for key in by_model})  # type: ignore[index]
    for work in works:
        some = {key: found for key, found in by_model.items() if key[0] == work}  # type: ignore[index]
        lines.append(_line(f"power, {work}", "model", some))
    lines.append(_line("power, all", "model", by_model))
    boards = v.POWER.folds(lambda row: (row.work, row.accelerator))
    lines.append(_line("power, all", "accelerator", boards))
    lines.append(_line("power, all", "source", v.POWER.folds(lambda row: row.source)))
    for kind, errors in v.cap_errors().items():
        lines.append(_line(f"slowdown under a cap, {kind}", "nothing", {kind: errors}))
    lines += ["", "Asked of power under load: 8 %. The curves of caps were set on their rows.", ""]
    return "\n".join(lines)


def links() -> str:
    """Collectives."""
    splits: dict[str, Callable[[v.links_fit.Group], Hashable]] = {
        "system": lambda group: group.system,
        "link": lambda group: group.link,
    }
    rows = [_line("collectives", name, v.LINKS.folds(key)) for name, key in splits.items()]
    return "\n".join(["## Collectives", "", HEAD, RULE, *rows, ""])


def _line(name: str, split: str, folds: Folds, *, are_lots: bool = False) -> str:
    found = v.score_folds(folds, are_lots=are_lots)
    held = found.range_coverage if len(folds) > 1 else None
    figures = (found.median_ape, found.mape, found.p90_ape)
    shown = " | ".join(f"{100 * figure:.1f}" for figure in figures)
    inside = "–" if held is None else f"{100 * held:.0f}"
    return f"| {name} | {split} | {found.n} | {shown} | {100 * found.bias:+.1f} | {inside} |"
