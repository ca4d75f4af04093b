"""Fit of link constants, in: measured collectives and the formula; out: constants per link class.

Every constant has one value for all links and a shrunk deviation per link class; the kernels of
serving engines have one per engine besides. A class without rows keeps the common value.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration import fit as robust
from gpuplan.calibration.tables import read_rows
from gpuplan.domain.calibration.constants import Constant, Effect, FittedConstants, Labels
from gpuplan.domain.hardware.links import DirectKernel, LinkModel, Protocol, SwitchReduction
from gpuplan.units import GB

Floats = NDArray[np.float64]
US = 1e-6
BY_LINK = Effect(kinds=("link",), log_sd=0.5)
RATE_BY_LINK = Effect(kinds=("link",), log_sd=0.15)
BY_ENGINE = Effect(kinds=("engine",), log_sd=0.3)
SWITCHED = ("nvlink4", "nvlink5")  # generations whose switch adds
ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}


class Group(NamedTuple):
    """Rows that share everything but the message."""

    link: str
    line_bytes_per_s: float
    fabric_bytes_per_s: float
    op: str
    n_nodes: int
    n_per_node: int
    library: str
    system: str
    source: str
    message_bytes: Floats
    time_s: Floats


# group, link inside the node, link of one node towards the fabric -> seconds per message
Predict = Callable[[Group, LinkModel, LinkModel], Floats]


def read_groups() -> tuple[Group, ...]:
    """The measured collectives of the package, grouped."""
    found: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    keys = ("link", "line_gb_per_s", "fabric_gb_per_s", "op", "n_nodes", "n_per_node", "library",
            "system", "source")  # fmt: skip
    for row in read_rows("links.csv"):
        key = tuple(row[name] for name in keys)
        # Lines of one file are one source.
        key = (*key[:-1], ":".join(key[-1].split(":")[:2]))
        found.setdefault(key, []).append((float(row["message_bytes"]), float(row["time_us"]) * US))
    return tuple(_group(key, points) for key, points in found.items())


def _group(key: tuple[str, ...], points: Sequence[tuple[float, float]]) -> Group:
    sizes, times = np.array(points).T
    return Group(
        link=key[0],
        line_bytes_per_s=float(key[1]) * GB,
        fabric_bytes_per_s=float(key[2]) * GB,
        op=key[3],
        n_nodes=int(key[4]),
        n_per_node=int(key[5]),
        library=key[6],
        system=key[7],
        source=key[8],
        message_bytes=sizes,
        time_s=times,
    )


def constants() -> tuple[Constant, ...]:
    """Priors: orders of magnitude that any link of this kind has."""

    def of(name: str, value: float, log_sd: float, *effects: Effect, most: float | None = None):  # type: ignore[no-untyped-def]
        return Constant(name=name, value=value, log_sd=log_sd, effects=effects, most=most)

    found = []
    for kind in ("ring", "pairwise"):
        found += [
            of(f"{kind}.launch_s", 6e-6, 0.7, BY_LINK),
            of(f"{kind}.alpha_s", 1e-6, 0.7, BY_LINK),
            of(f"{kind}.rate_frac", 0.75, 0.2, RATE_BY_LINK, most=0.98),
            of(f"{kind}.copy_frac", 0.4, 0.5, BY_LINK),
            of(f"{kind}.ramp_s", 3e-5, 1.0, BY_LINK),
            of(f"{kind}.ramp_bytes", 2e6, 1.5, BY_LINK),
        ]
    return (
        *found,
        of("crowd_frac", 0.6, 0.3, most=1.0),
        of("switch.rate_frac", 0.65, 0.1, RATE_BY_LINK, most=0.98),
        of("switch.extra_s", 1e-4, 1.0, Effect(kinds=("link",), log_sd=1.0)),
        of("direct.launch_s", 4.5e-6, 0.5, BY_LINK, BY_ENGINE),
        of("direct.sync_s", 5e-6, 0.7, BY_LINK, BY_ENGINE),
        of("direct.rate_frac", 0.62, 0.2, RATE_BY_LINK, most=0.98),
        of("fabric.launch_s", 4e-5, 1.0),
        of("fabric.alpha_s", 1.5e-5, 1.0),
        of("fabric.rate_frac", 0.8, 0.15, most=0.98),
        of("fabric.ramp_s", 3e-4, 1.0),
        of("fabric.ramp_bytes", 1e7, 1.0),
    )


def labels_of(group: Group) -> Labels:
    """What the deviations of a group's constants depend on."""
    engine = ENGINES.get(group.library.split("-", maxsplit=1)[0], "nccl")
    return {"link": group.link, "engine": engine}


def inner_link(group: Group, value: Callable[[str], float]) -> LinkModel:
    """The link inside the node, with only the algorithms that the measured library offers."""
    is_direct = group.op == "direct_all_reduce"
    has_switch = group.link in SWITCHED and group.library != "nccl-ring"
    return LinkModel(
        name=group.link,
        bytes_per_s=group.line_bytes_per_s,
        pair_bytes_per_s=None,
        crowd_frac=value("crowd_frac") if group.link == "pcie" else 1.0,
        has_p2p=True,
        has_tree=False,
        ring=protocol_of("ring", value),
        pairwise=protocol_of("pairwise", value),
        switch=switch_of(value) if has_switch else None,
        direct=direct_of(value) if is_direct else None,
    )


def outer_link(group: Group, value: Callable[[str], float]) -> LinkModel:
    """One node's adapters together."""
    fabric = fabric_protocol(value)
    return LinkModel(
        name="efa",
        bytes_per_s=group.fabric_bytes_per_s,
        pair_bytes_per_s=None,
        crowd_frac=1.0,
        has_p2p=True,
        has_tree=True,
        ring=fabric,
        pairwise=fabric,
    )


def protocol_of(kind: str, value: Callable[[str], float]) -> Protocol:
    """The protocol's constants by name."""
    return Protocol(
        launch_s=value(f"{kind}.launch_s"),
        alpha_s=value(f"{kind}.alpha_s"),
        rate_frac=value(f"{kind}.rate_frac"),
        copy_frac=value(f"{kind}.copy_frac"),
        ramp_s=value(f"{kind}.ramp_s"),
        ramp_bytes=value(f"{kind}.ramp_bytes"),
    )


def fabric_protocol(value: Callable[[str], float]) -> Protocol:
    """Between nodes a rank's own part is never copied apart."""
    return Protocol(
        launch_s=value("fabric.launch_s"),
        alpha_s=value("fabric.alpha_s"),
        rate_frac=value("fabric.rate_frac"),
        copy_frac=0.0,
        ramp_s=value("fabric.ramp_s"),
        ramp_bytes=value("fabric.ramp_bytes"),
    )


def switch_of(value: Callable[[str], float]) -> SwitchReduction:
    """Reduction in the switch; libraries use it from five ranks on."""
    return SwitchReduction(
        rate_frac=value("switch.rate_frac"), extra_s=value("switch.extra_s"), n_ranks_min=5
    )


def direct_of(value: Callable[[str], float], n_ranks_max: int = 8) -> DirectKernel:
    """Kernels of serving engines."""
    return DirectKernel(
        launch_s=value("direct.launch_s"),
        sync_s=value("direct.sync_s"),
        rate_frac=value("direct.rate_frac"),
        n_ranks_max=n_ranks_max,
    )


def fit_links(groups: Sequence[Group], predict: Predict) -> FittedConstants:
    """Constants that these groups support."""
    rows = constants()
    cols = robust.columns(rows, [labels_of(group) for group in groups])
    row = np.concatenate([np.full(len(g.time_s), i) for i, g in enumerate(groups)])
    logs = np.log(np.concatenate([g.time_s for g in groups]))
    observed = robust.Observed(row, logs, np.ones(len(logs)))

    def log_times(values: Mapping[str, Floats]) -> Floats:
        parts = []
        for i, group in enumerate(groups):

            def value(name: str, i: int = i) -> float:
                return float(values[name][i])

            parts.append(predict(group, inner_link(group, value), outer_link(group, value)))
        logs: Floats = np.log(np.concatenate(parts))
        return logs

    beta = robust.fit(cols, log_times, observed)
    sources = [group.source for group in groups]
    return robust.fitted(rows, cols, beta, n_rows=len(logs), sources=sources)


def log_errors(groups: Sequence[Group], fitted: FittedConstants, predict: Predict) -> list[Floats]:
    """Log of predicted over measured, per group."""
    found = []
    for group in groups:
        value = fitted.values(labels_of(group)).__getitem__
        times = predict(group, inner_link(group, value), outer_link(group, value))
        found.append(np.log(times / group.time_s))
    return found
