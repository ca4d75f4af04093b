"""Refits links, power, other networks and start-up from the package's own tables.

    python tools/refit_other.py [links] [power] [networks] [startup]

Writes src/gpuplan/calibration/data/*.json and prints the errors of every cross-validation.
"""

import json
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from fits import held_out as v
from fits import links as links_fit
from fits import networks as other_networks_fit
from fits import power as power_fit
from fits import startup
from fits.held_out import spread_across

from gpuplan.calibration.residuals import Spread, spread_of
from gpuplan.calibration.tables import read_constants
from gpuplan.domain.calibration.constants import FittedConstants
from gpuplan.domain.hardware.links import Protocol
from gpuplan.domain.model.other import NetworkKind

DATA = Path(__file__).parents[1] / "src/gpuplan/calibration/data"
MEASURED_LINKS = ("nvlink3", "nvlink4", "nvlink5", "pcie")
# Classes without rows: whose constants they take, and what is changed by published figures.
INHERITED = {
    "nvlink2": ("nvlink3", {}),
    "nvlink-bridge": ("nvlink3", {}),
    # Against one link of a mesh the local copy is nothing; 47.7 of 64 and 312.9 of 448 GB/s.
    "infinity-fabric": (
        "",
        {
            "ring.rate_frac": 0.72,
            "pairwise.rate_frac": 0.65,
            "ring.copy_frac": 0.03,
            "pairwise.copy_frac": 0.03,
        },
    ),
    "pcie-host": ("pcie", {"ring.rate_frac": 0.40, "pairwise.rate_frac": 0.35}),
    "other": ("", {}),
}
FABRICS = {  # latency of a step, share reached: EFA fitted, the others from published figures
    "efa": {},
    "infiniband": {"alpha_s": 5e-6, "rate_frac": 0.9, "ramp_s": 1e-4, "launch_s": 8e-6},
    "roce": {"alpha_s": 8e-6, "rate_frac": 0.85, "ramp_s": 1.5e-4, "launch_s": 8e-6},
    "tcp": {"alpha_s": 4e-5, "rate_frac": 0.65, "ramp_s": 3e-4, "launch_s": 3e-5},
}


def rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


def write(name: str, stored: dict[str, object]) -> None:
    text = json.dumps(rounded(stored), indent=1, ensure_ascii=False)
    (DATA / name).write_text(text + "\n", encoding="utf-8")
    print(f"wrote {name}")


def show(title: str, folds: v.Folds, *, are_lots: bool = False) -> None:
    s = v.score_folds(folds, are_lots=are_lots)
    held = f" coverage {s.range_coverage:.1%}" if len(folds) > 1 else ""
    print(
        f"{title}: n {s.n} median {s.median_ape:.1%} mean {s.mape:.1%} p90 {s.p90_ape:.1%} "
        f"bias {s.bias:+.1%}{held}"
    )


def link_class(fitted: FittedConstants, link: str, changed: dict[str, float]) -> dict[str, object]:
    values = fitted.values({"link": link or "none", "engine": "none"})

    def value(name: str) -> float:
        return changed.get(name, values[name])

    names = ("launch_s", "alpha_s", "rate_frac", "copy_frac", "ramp_s", "ramp_bytes")
    has_direct = link != "" or "ring.rate_frac" in changed
    return {
        "ring": {name: value(f"ring.{name}") for name in names},
        "pairwise": {name: value(f"pairwise.{name}") for name in names},
        "crowd_frac": value("crowd_frac") if link == "pcie" else 1.0,
        "switch": switch(value) if link in links_fit.SWITCHED else None,
        "direct": direct(value, n_ranks_max=2 if link == "pcie" else 8) if has_direct else None,
    }


def switch(value: Callable[[str], float]) -> dict[str, float]:
    names = ("rate_frac", "extra_s")
    return {**{name: value(f"switch.{name}") for name in names}, "n_ranks_min": 5}


def direct(value: Callable[[str], float], n_ranks_max: int) -> dict[str, float]:
    names = ("launch_s", "sync_s", "rate_frac")
    return {**{name: value(f"direct.{name}") for name in names}, "n_ranks_max": n_ranks_max}


def fabric_class(fitted: FittedConstants, changed: dict[str, float]) -> dict[str, object]:
    values = fitted.values({"link": "none", "engine": "none"})
    base = Protocol(**links_fit.part_values(Protocol, "fabric", values))
    names = ("launch_s", "alpha_s", "rate_frac", "copy_frac", "ramp_s", "ramp_bytes")
    ring = {name: changed.get(name, getattr(base, name)) for name in names}
    pairwise = {**ring, "rate_frac": ring["rate_frac"] * 0.85}
    return {
        "ring": ring,
        "pairwise": pairwise,
        "crowd_frac": 1.0,
        "has_tree": True,
        "switch": None,
        "direct": None,
    }


def refit_links() -> None:
    groups = v.link_groups()
    fitted = v.LINKS.fit(groups)
    by_system = v.LINKS.folds(lambda g: g.system)
    by_link = v.LINKS.folds(lambda g: g.link)
    show("links, held out by system", by_system)
    show("links, held out by link class", by_link)
    show("links, held out by source", v.LINKS.folds(lambda g: g.source.split(":")[0].split()[0]))
    classes: dict[str, object] = {n: link_class(fitted, n, {}) for n in MEASURED_LINKS}
    for name, (parent, changed) in INHERITED.items():
        classes[name] = {**link_class(fitted, parent, changed), "inherits": parent or "all"}
    classes["nvlink-bridge"]["direct"]["n_ranks_max"] = 2  # type: ignore[index]
    classes["pcie-host"]["direct"] = None  # type: ignore[index]
    for name, changed in FABRICS.items():
        classes[name] = {**fabric_class(fitted, changed), "inherits": "efa"}
    engines = fitted.deviation["direct.launch_s:engine"]
    write(
        "links.json",
        {
            "version": "1",
            "n_rows": fitted.n_rows,
            "sources": sorted({s.split(":")[0].split()[0] for s in fitted.sources}),
            "range_known": spread_of(np.concatenate(list(by_system.values()))),
            "range_new": spread_of(np.concatenate(list(by_link.values()))),
            "direct_launch_frac": {
                name: float(np.exp(engines[name])) for name in links_fit.ENGINES.values()
            },
            "classes": classes,
        },
    )


def refit_power() -> None:
    rows = power_fit.read_power_rows()
    fitted = v.POWER.fit(rows)
    works = sorted({row.work for row in rows})
    ranges = {}
    by_model = v.POWER.folds(lambda row: (row.work, row.model))
    for work in works:
        folds = {key: found for key, found in by_model.items() if key[0] == work}
        show(f"power of {work}, held out by model", folds)
        ranges[work] = spread_of(np.concatenate(list(folds.values())))
    show("power, held out by model", by_model)
    by_board = v.POWER.folds(lambda row: (row.work, row.accelerator))
    show("power, held out by accelerator and work", by_board)
    show("power, held out by source", v.POWER.folds(lambda row: row.source))
    cap_ranges = {}
    for kind, errors in v.cap_errors().items():
        show(f"slowdown of {kind} runs, cap at half the limit or more", {kind: errors})
        cap_ranges[kind] = spread_of(errors)

    families = sorted({row.family for row in rows})

    def held(family: str, work: str) -> dict[str, float]:
        return fitted.values({"family": family, "waits": work})

    load = {
        f"{f}|{w}": held(f, w)["load_ratio"] for f, w in sorted({(r.family, r.work) for r in rows})
    }
    load |= {f"|{work}": held("none", work)["load_ratio"] for work in works}
    common = held("none", "none")
    names = ("memory_ratio", "compute_ratio", "unpack_ratio", "gap_s", "peer_gap_s", "layer_gap_s")
    waiting = [work for work in works if work not in power_fit.BUSY_WORK]
    write(
        "power.json",
        {
            "version": "1",
            "n_rows": fitted.n_rows,
            "sources": fitted.sources,
            "families": families,
            **{name: common[name] for name in names},
            "load_ratio": {**load, "|": common["load_ratio"]},
            "busy_frac": {work: held("none", work)["busy_frac"] for work in waiting},
            "ranges": ranges,
            "range_new": spread_of(np.concatenate(list(by_board.values()))),
            "cap_ranges": cap_ranges,
        },
    )


N_FOLDS = 8  # hundreds of vision models: folds of whole models and whole families


def fold_of(name: str) -> int:
    return zlib.crc32(name.encode()) % N_FOLDS


def spread_over(folds: v.Folds) -> Spread:
    return spread_of(np.concatenate(list(folds.values())))


def refit_kind(kind: NetworkKind) -> dict[str, object]:
    rows = other_networks_fit.read_network_rows(kind)
    fitted = v.network_model(kind).fit(rows)
    is_vision = kind.startswith("vision")

    def model(row: other_networks_fit.NetworkRow) -> object:
        return fold_of(other_networks_fit.base_name(row.model)) if is_vision else row.model

    by_row = v.network_model(kind).folds(
        lambda row: fold_of(repr((row.model, row.stack, row.work)))
    )
    show(f"{kind}, held out by row", by_row, are_lots=True)
    by_model = v.network_model(kind).folds(model)
    show(f"{kind}, held out by model", by_model, are_lots=is_vision)
    drawn = spread_over(by_model) if is_vision else spread_across(by_model)
    ranges = dict.fromkeys(("new_model", "new_family", "new_device"), drawn)
    ranges["known"] = spread_over(by_row)
    families = sorted({other_networks_fit.family_of(row.model) for row in rows})
    if is_vision:
        by_family = v.network_model(kind).folds(
            lambda row: fold_of(other_networks_fit.family_of(row.model))
        )
        show(f"{kind}, held out by family", by_family, are_lots=True)
        ranges["new_family"] = spread_over(by_family)
    boards = sorted({row.device_name for row in rows})
    if len(boards) > 1:
        by_board = v.network_model(kind).folds(lambda row: row.device_name)
        show(f"{kind}, held out by board", by_board)
        ranges["new_device"] = widest(ranges["new_model"], spread_across(by_board))
        ranges["new_family"] = widest(ranges["new_family"], ranges["new_device"])
    return {
        "n_rows": fitted.n_rows,
        "sources": fitted.sources,
        "devices": boards,
        "families": families if is_vision else [],
        "ranges": ranges,
        "models": sorted({other_networks_fit.base_name(row.model) for row in rows}),
        "log_value": fitted.log_value,
        "deviation": fitted.deviation,
    }


def widest(a: Spread, b: Spread) -> Spread:
    return Spread(min(a.low, b.low), max(a.high, b.high))


def refit_networks() -> None:
    kinds = {kind: refit_kind(kind) for kind in other_networks_fit.KINDS}
    stored = {"version": "1", "kinds": kinds, "benchmark_range": [0.7, 1.4]}
    write("other_networks.json", stored)
    read_constants.cache_clear()
    folds = v.benchmark_folds()
    show("pipelines, held out by board", folds)
    write("other_networks.json", {**stored, "benchmark_range": spread_over(folds)})


def refit_startup() -> None:
    held, errors = {}, {}
    for phase in startup.PHASES:
        rows = startup.read_phase_rows(phase)
        held[phase] = startup.fit_phase(rows)
        for name, key in (("model", lambda r: r.model), ("host", lambda r: r.host)):
            folds = v.startup_folds(phase, key)
            if folds:
                show(f"start-up, {phase}, held out by {name}", folds)
                errors.setdefault(startup.phase_group(phase), []).extend(folds.values())
    write(
        "startup.json",
        {
            "version": "1",
            "n_rows": len(startup.read_phase_rows()),
            "sources": sorted({row.source for row in startup.read_phase_rows()}),
            "seconds_per_unit": held,
            "ranges": {group: spread_of(np.concatenate(found)) for group, found in errors.items()},
        },
    )


PARTS: dict[str, Callable[[], None]] = {
    "startup": refit_startup,
    "links": refit_links,
    "power": refit_power,
    "networks": refit_networks,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or list(PARTS):
        PARTS[part]()
