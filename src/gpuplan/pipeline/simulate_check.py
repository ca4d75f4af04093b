"""What is asked of a simulation, before anything is computed: every fault at once."""

import math

from gpuplan.domain.catalog import AcceleratorChoice
from gpuplan.domain.serving import ServingLayout
from gpuplan.domain.simulation import SimulateRequest
from gpuplan.errors import InputError, Problem, one

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


def check_named(choice: AcceleratorChoice, layout: ServingLayout) -> None:
    """A replica uses all accelerators that were named for it, or the bill would be another."""
    n_named, n_used = choice.n_accelerators, layout.n_accelerators
    if n_named not in (1, n_used):
        name = choice.accelerator.id
        what = f"names {n_named}, but one replica of this layout has {n_used}"
        fix = f"write {n_used}x{name}, and --replicas for more of them"
        raise one(InputError, "simulate", "--on", what, fix)
