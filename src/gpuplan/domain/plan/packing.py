"""How replicas fill whole nodes: nobody rents half a machine."""

from math import ceil

from gpuplan.domain.plan.candidate import Candidate


def whole_nodes(n_replicas: int, size: int, n_per_node: int) -> int | None:
    """Nodes for replicas that fit into one: none straddles two; None where none fits."""
    return ceil(n_replicas / (n_per_node // size)) if size <= n_per_node else None


def nodes_for(candidate: Candidate, n_replicas: int, n_per_node: int) -> int | None:
    """Whole nodes that so many replicas take; None where a replica cannot stand there.

    A replica that fits into a node never straddles two. One that is larger than a node takes
    whole nodes of its own, whose network it was judged with. Ranks that talk in every layer stay
    inside one of them; of a run, and where experts are dealt over nodes, tensor-parallel ranks.
    """
    if candidate.is_node or n_replicas <= 0:
        return max(0, n_replicas)
    if n_per_node < 1:
        return None
    if candidate.share is not None:
        return ceil(candidate.n_accelerators_for(n_replicas) / n_per_node)
    size, layout = candidate.n_accelerators, candidate.layout
    if layout.is_disaggregated and layout.network_bytes_per_s is not None:
        # Engines stand anywhere: KV caches travel over the network that it was judged with.
        return whole_nodes(n_replicas * layout.n_roles, layout.engine.n_accelerators, n_per_node)
    if size <= n_per_node:
        return whole_nodes(n_replicas, size, n_per_node)
    is_served = candidate.engine is not None
    group = (
        layout.n_joined if is_served and not layout.is_expert_parallel_over_servers else layout.tp
    )
    is_apart = is_served and layout.network_bytes_per_s is None
    is_split_inside_groups = group > n_per_node or n_per_node % group != 0
    return None if is_apart or is_split_inside_groups else n_replicas * ceil(size / n_per_node)


def accelerators_for(candidate: Candidate, n_replicas: int, n_per_node: int) -> int | None:
    """Accelerators of a pool that so many replicas keep busy, with what packing loses.

    Replicas of one size that divides the node lose nothing, so that others may share the node.
    """
    if n_replicas <= 0:
        return 0
    if candidate.is_node:
        return n_replicas * max(1, n_per_node)
    size, is_spread = candidate.n_accelerators, candidate.layout.network_bytes_per_s is not None
    if candidate.share is not None:
        return candidate.n_accelerators_for(n_replicas)
    unit = candidate.layout.engine.n_accelerators if is_spread else size
    if unit <= n_per_node and n_per_node % unit == 0:
        return n_replicas * size
    nodes = nodes_for(candidate, n_replicas, n_per_node)
    return None if nodes is None else nodes * n_per_node
