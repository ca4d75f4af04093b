"""What a kind of fleet costs as its load moves: the same arithmetic as its sizing, at any load."""

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.packing import nodes_for


def engines_of(layout: ServingLayout, groups: Floats) -> Ints:
    """Whole engines of each role in so many disaggregated groups: they are added one by one."""
    each = [np.ceil(groups * n - 1e-9) for n in (layout.n_prefill, layout.n_decode)]
    return np.asarray(each[0] + each[1], dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetCurve:
    """One candidate on one kind of node, paid in one way."""

    name: str
    candidate: Candidate
    n_per_node: int
    n_load_per_replica: float  # carried within the promises, in the unit of the load
    n_spare: int
    usd_per_node_h: float
    is_committed: bool  # paid at its peak all the time
    speed_log_sd_ratio: float = 0.0  # of the logarithm of the load that a replica carries
    n_base_nodes: int = 0  # owned or reserved: paid all the time, the rest by need
    base_usd_per_node_h: float = 0.0

    @property
    def kind(self) -> str:
        """The accelerator."""
        return str(self.candidate.accelerator)

    def n_replicas(self, loads: Floats, speed_ratio: float | Floats = 1.0) -> Ints:
        """Replicas with spares; none where there is no load."""
        need = np.ceil(loads / (self.n_load_per_replica * speed_ratio) - 1e-9).astype(np.int64)
        return np.where(need > 0, need + self.n_spare, 0)

    def n_nodes(self, loads: Floats, speed_ratio: float | Floats = 1.0) -> Ints:
        """Whole nodes at each load."""
        layout = self.candidate.layout
        if layout.is_disaggregated and layout.network_bytes_per_s is not None:
            return self._nodes_of_engines(loads / (self.n_load_per_replica * speed_ratio))
        replicas = self.n_replicas(loads, speed_ratio)
        distinct, place = np.unique(replicas, return_inverse=True)
        nodes = [nodes_for(self.candidate, int(n), self.n_per_node) or 0 for n in distinct]
        return np.asarray(np.array(nodes, dtype=np.int64)[place].reshape(replicas.shape))

    def _nodes_of_engines(self, groups: Floats) -> Ints:
        """Nodes of so many groups."""
        layout = self.candidate.layout
        spare = np.where(groups > 0, self.n_spare * layout.n_roles, 0)
        engines = engines_of(layout, groups) + spare
        n_here = self.n_per_node // layout.engine.n_accelerators
        return np.ceil(engines / max(1, n_here) - 1e-9).astype(np.int64)

    def usd_per_h(
        self, loads: Floats, weights: Floats, speed_ratio: float | Floats = 1.0
    ) -> Floats:
        """Mean hourly price over the last axis: loads, each with its share of the time."""
        rented = np.maximum(0, self.n_nodes(loads, speed_ratio) - self.n_base_nodes)
        mean = rented.max(axis=-1) if self.is_committed else (rented * weights).sum(axis=-1)
        base = self.n_base_nodes * self.base_usd_per_node_h
        return np.asarray(base + mean * self.usd_per_node_h, dtype=np.float64)
