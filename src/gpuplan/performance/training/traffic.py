"""Seconds that one training configuration spends on links, at full link rate and before overlap."""

from typing import NamedTuple

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.network import Model
from gpuplan.domain.training.setup import ParallelLayout, TrainingSetup
from gpuplan.domain.training.time import Fabric
from gpuplan.performance.training import process_groups as links
from gpuplan.performance.training.layers import (
    BYTES_16,
    LayerWork,
    Split,
)


class LinkBasis(NamedTuple):
    """Seconds on links, before overlap."""

    tp_s: float  # forward, one micro-batch, one stage
    tp_far_s: float  # the same where the group leaves its scale-up domain
    n_tp_calls: float
    cp_s: float
    ep_s: float
    ep_far_s: float
    p2p_s: float  # one micro-batch through one stage, both directions
    fsdp_s: float  # one micro-batch
    dp_s: float  # one step


class Case(NamedTuple):
    """The nouns of one configuration, handed down together."""

    model: Model
    accelerator: Accelerator
    setup: TrainingSetup
    layout: ParallelLayout
    fabric: Fabric
    split: Split


class RankParams(NamedTuple):
    """Parameters that one rank trains or gathers."""

    n_dense: float
    n_expert: float
    n_trained_frac: float  # 1, or the adapters' share

    @property
    def n_all(self) -> float:
        """Dense and expert parameters together."""
        return self.n_dense + self.n_expert


def link_basis(case: Case, layers: LayerWork, rank: RankParams) -> LinkBasis:
    """Tensor, context, expert, pipeline and data parallelism, each on its links."""
    layout, fabric, split = case.layout, case.fabric, case.split
    if layout.n_accelerators == 1:
        return LinkBasis(*[0.0] * len(LinkBasis._fields))
    hidden_bytes = BYTES_16 * split.n_tokens * case.model.main.hidden_size
    n_reductions = layers.n_tp_reductions / layout.pp * (layout.tp > 1)
    ring = links.gather_s(
        layers.kv_bytes * layout.cp, links.process_group("cp", layout, fabric), fabric
    )
    expert_group = links.process_group("ep", layout, fabric)
    sent_s = links.all_to_all_s(layers.all_to_all_bytes, layers.far_bytes, expert_group, fabric)
    expert_s = 2.0 / layout.pp * sent_s
    reduced_s = n_reductions * links.tp_s(hidden_bytes, layout, fabric)
    scatters = layout.has_sequence_parallel or case.setup.execution.scatters_stage_output
    n_pieces = layout.tp if scatters else 1
    is_far = links.process_group("tp", layout, fabric).n_islands > 1
    return LinkBasis(
        tp_s=0.0 if is_far else reduced_s,
        tp_far_s=reduced_s if is_far else 0.0,
        n_tp_calls=n_reductions,
        cp_s=ring / layout.pp if layout.cp > 1 else 0.0,
        ep_s=expert_s if expert_group.n_islands == 1 else 0.0,
        ep_far_s=expert_s if expert_group.n_islands > 1 else 0.0,
        p2p_s=links.p2p_s(hidden_bytes / n_pieces, layout, fabric),
        fsdp_s=_fsdp_s(case, rank) if layout.sharding == "zero3" else 0.0,
        dp_s=_dp_s(case, rank),
    )


def _fsdp_s(case: Case, rank: RankParams) -> float:
    """Gathering weights for forward and backward, and scattering gradients, every micro-batch."""
    states = case.setup.states
    group = links.process_group("shard", case.layout, case.fabric)
    weights = rank.n_all * states.compute_bytes_per_param
    gradients = rank.n_all * rank.n_trained_frac * case.setup.states.gradient_bytes_per_param
    if case.setup.execution.accumulates_unsharded:
        gradients /= case.setup.n_micro_batches
    gathers = 2.0 * links.gather_s(weights, group, case.fabric)
    return gathers + links.gather_s(gradients, group, case.fabric)


def _dp_s(case: Case, rank: RankParams) -> float:
    """What is exchanged once per step between copies of the parameters."""
    layout, fabric = case.layout, case.fabric
    trained = rank.n_trained_frac
    if layout.sharding == "zero3":
        shard = rank.n_all * trained / layout.n_shards
        group = links.process_group("replica", layout, fabric)
        return links.all_reduce_s(shard * case.setup.states.gradient_bytes_per_param, group, fabric)
    total_s = 0.0
    for n_params, group in (
        (rank.n_dense, links.process_group("dp", layout, fabric)),
        (rank.n_expert, links.process_group("expert_dp", layout, fabric)),
    ):
        moved = n_params * trained
        if layout.sharding == "none":
            total_s += links.all_reduce_s(
                moved * case.setup.states.gradient_bytes_per_param, group, fabric
            )
        else:
            total_s += links.gather_s(
                moved * case.setup.states.gradient_bytes_per_param, group, fabric
            )
            total_s += links.gather_s(moved * BYTES_16, group, fabric)
    return total_s
