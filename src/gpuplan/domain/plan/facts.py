"""What a checker is given beside a plan: facts, the scenario, and a replay that it may call."""

from collections.abc import Callable, Mapping

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.network import Model
from gpuplan.domain.noun import dataclass
from gpuplan.domain.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedRequests:
    """Requests of one workload on its planned replicas, on draws that the planner never saw."""

    n_replicas: int
    arrive_s: Floats
    ttft_s: Floats
    tpot_s: Floats
    e2e_s: Floats
    output_tokens: Ints
    is_finished: Ints  # 1 or 0


FreshReplay = Callable[[str], ReplayedRequests | None]  # of a workload; None: it is not simulated


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFacts:
    """Everything that a plan can be checked with; nothing of it comes from the plan."""

    scenario: Scenario
    accelerators: Mapping[str, Accelerator]
    models: Mapping[str, Model]  # by workload; absent: not a network of known layers
    allowed: frozenset[str]  # accelerators that the policy names; empty: all
    forbidden: frozenset[str]
    catalog_sha256: str
    replay: FreshReplay
