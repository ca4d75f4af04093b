"""What is asked of a simulation, before anything is computed: every fault at once."""

import math

from gpuplan.domain.hardware.catalog import AcceleratorChoice
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.simulation.simulation import SimulateRequest
from gpuplan.errors import InputError, Problem

MOST_REPLICAS = 65_536
LEAST_BIN_S = 0.001
ROUTERS = ("least_outstanding", "round_robin", "power_of_two", "prefix_affinity", "session")


def check_asked(asked: SimulateRequest) -> None:
    """Figures that no run could have; InputError with all of them."""
    problems = []
    if not 1 <= asked.n_replicas <= MOST_REPLICAS:
        fix = f"must be 1 to {MOST_REPLICAS:,}"
        problems.append(Problem("--replicas", f"got {asked.n_replicas}", fix))
    if not (math.isfinite(asked.bin_s) and asked.bin_s >= LEAST_BIN_S):
        fix = f"give seconds from {LEAST_BIN_S:g} on, e.g. 60"
        problems.append(Problem("--bin-s", f"got {asked.bin_s:g}", fix))
    if asked.router not in ROUTERS:
        what, fix = f"got {asked.router!r}", f"use one of {', '.join(ROUTERS)}"
        problems.append(Problem("--router", what, fix))
    if problems:
        raise InputError("simulate", problems)


def unused_accelerators(choice: AcceleratorChoice, layout: ServingLayout) -> list[Assumption]:
    """Accelerators that were named for a replica and have no part in it are told: who pays?"""
    n_named, n_used = choice.n_accelerators, layout.n_accelerators
    if n_named in (1, n_used):
        return []
    value = f"{n_used} of the {n_named} that were named"
    why = "the layout decides what a replica uses and is paid for; others are not simulated"
    change = "--tp, --pp, --dp or --replicas"
    return [Assumption(what="accelerators of a replica", value=value, why=why, change=change)]
