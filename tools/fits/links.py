"""Fit of link constants: measured collectives and the formula in, constants per link class out.

Every constant has one value for all links and a shrunk deviation per link class; the kernels of
serving engines have one per engine besides. A class without rows keeps the common value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.fit import Measurements, Observed
from gpuplan.calibration.tables import read_rows
from gpuplan.domain.calibration.constants import Labels
from gpuplan.domain.hardware.links import DirectKernel, LinkModel, Protocol, SwitchReduction
from gpuplan.units import GB

Floats = NDArray[np.float64]
US = 1e-6
SWITCHED = ("nvlink4", "nvlink5")  # generations whose switch reduces
ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}
# Constants that no measurement of these parts moves.
FIXED = {"fabric.copy_frac": 0.0, "switch.n_ranks_min": 5, "direct.n_ranks_max": 8}


class Group(NamedTuple):
    """Measured messages that share everything but their size."""

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
    found: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for row in read_rows("links.csv"):
        key = (
            row["link"],
            float(row["line_gb_per_s"]) * GB,
            float(row["fabric_gb_per_s"]) * GB,
            row["op"],
            int(row["n_nodes"]),
            int(row["n_per_node"]),
            row["library"],
            row["system"],
            ":".join(row["source"].split(":")[:2]),  # lines of one file are one source
        )
        found.setdefault(key, []).append((float(row["message_bytes"]), float(row["time_us"]) * US))
    return tuple(Group(*key, *np.array(points).T) for key, points in found.items())


def labels_of(group: Group) -> Labels:
    """What the deviations of a group's constants depend on."""
    engine = ENGINES.get(group.library.split("-", maxsplit=1)[0], "nccl")
    return {"link": group.link, "engine": engine}


def inner_link(group: Group, values: Mapping[str, float]) -> LinkModel:
    """The link inside the node, with only the algorithms that the measured library offers."""
    is_direct = group.op == "direct_all_reduce"
    has_switch = group.link in SWITCHED and group.library != "nccl-ring"
    return LinkModel(
        name=group.link,
        bytes_per_s=group.line_bytes_per_s,
        pair_bytes_per_s=None,
        contended_frac=values["crowd_frac"] if group.link == "pcie" else 1.0,
        has_tree=False,
        ring=Protocol(**part_values(Protocol, "ring", values)),
        pairwise=Protocol(**part_values(Protocol, "pairwise", values)),
        switch=SwitchReduction(**part_values(SwitchReduction, "switch", values))
        if has_switch
        else None,
        direct=DirectKernel(**part_values(DirectKernel, "direct", values)) if is_direct else None,
    )


def outer_link(group: Group, values: Mapping[str, float]) -> LinkModel:
    """The NICs of one node together; between nodes a rank's own part is never copied apart."""
    fabric = Protocol(**part_values(Protocol, "fabric", values))
    return LinkModel(
        name="efa",
        bytes_per_s=group.fabric_bytes_per_s,
        pair_bytes_per_s=None,
        contended_frac=1.0,
        has_tree=True,
        ring=fabric,
        pairwise=fabric,
    )


def part_values(noun: Any, part: str, values: Mapping[str, float]) -> dict[str, Any]:
    """The constants of one part of a link, by field of its noun."""
    known = {**FIXED, **values}
    return {field.name: known[f"{part}.{field.name}"] for field in fields(noun)}


def measurements(groups: Sequence[Group], predict: Predict) -> Measurements:
    """The times of these groups' messages, and the formula that predicts them."""
    row = np.concatenate([np.full(len(g.time_s), i) for i, g in enumerate(groups)])
    logs = np.log(np.concatenate([g.time_s for g in groups]))

    def log_times(values: Mapping[str, Floats]) -> Floats:
        parts = []
        for i, group in enumerate(groups):
            mine = {name: float(column[i]) for name, column in values.items()}
            parts.append(predict(group, inner_link(group, mine), outer_link(group, mine)))
        logs: Floats = np.log(np.concatenate(parts))
        return logs

    observed = Observed(row, logs, np.ones(len(logs)))
    sources = [group.source for group in groups]
    return Measurements([labels_of(group) for group in groups], log_times, observed, sources)
